"""Tables of chapters, with as few columns and rows of heads as their content needs.

The names of the rows stand in the first row of the head, an interval stands behind its value, a
verdict stands first, and the outer names of the rows become rows of their own. Each cell carries
the name of its column: where a table is wider than its place, its rows become paragraphs that show
these names in place of the head.
"""

from bs4 import BeautifulSoup, Tag

INTERVAL = "95 % interval"
FEW = 3  # so many columns of values leave room for two columns of names
MANY = 8  # more columns than this are set small
NARROW = 4  # more columns than this are wider than a phone
SOFT_HYPHEN = "\N{SOFT HYPHEN}"
LONG = 60  # more rows than this are scrolled on a phone, too
BREAKS = (
    "contra|dicted", "correla|tions", "discrimi|nant", "inconclu|sive", "repro|duced",
    "silhou|ettes", "silhou|ette", "transfor|mers",
)  # fmt: skip
ROLES = {"table": "table", "thead": "rowgroup", "tbody": "rowgroup", "tr": "row", "td": "cell"}


def compact(soup: BeautifulSoup, table: Tag) -> None:
    """Rearrange a table in place; one without a head is left as it is."""
    if not table.thead or not table.tbody or not table.tbody.find("tr"):
        return

    names = len(table.tbody.find("tr").find_all("th"))
    _name_the_rows(table, names)
    if len(table.thead.find_all("tr")) > 1:
        return

    _join_intervals(soup, table, names)
    _put_the_verdict_first(table, names)
    if names > 1 and len(_heads(table)) - names > FEW:
        _group_rows(soup, table)

    for cell in table.tbody.find_all("td"):
        if cell.string and cell.string.startswith("< "):
            cell.string = cell.string.replace("< ", "<\N{NO-BREAK SPACE}", 1)

    columns = len(_heads(table))
    _name_the_cells(table)
    if len(table.tbody.find_all("tr")) > LONG:
        _add_class(table, "long")
    elif columns > NARROW:
        _add_class(table, "turns")
    if columns > MANY:
        _add_class(table, "many")
        _let_long_words_break(table)


def _heads(table: Tag) -> list[Tag]:
    return table.thead.find_all("tr")[0].find_all(["th", "td"])


def _values(table: Tag) -> list[list[Tag]]:
    return [row.find_all("td") for row in table.tbody.find_all("tr")]


def _name_the_rows(table: Tag, names: int) -> None:
    """Move the names of the rows' labels from a second row of the head into the first."""
    rows = table.thead.find_all("tr")
    if len(rows) != 2:
        return

    second = rows[1].find_all(["th", "td"])
    if any(cell.get_text(strip=True) for cell in second[names:]):
        return

    for cell, name in zip(_heads(table)[:names], second, strict=False):
        cell.string = name.get_text()

    rows[1].decompose()


def _join_intervals(soup: BeautifulSoup, table: Tag, names: int) -> None:
    """Put each interval behind its value."""
    heads = _heads(table)
    columns = _columns_of_intervals([head.get_text(strip=True) for head in heads], names)

    for place, column in sorted(columns.items(), reverse=True):
        heads[column].append(f" ({INTERVAL})")
        heads[place].decompose()
        for cells in _values(table):
            ends = cells[place - names]
            text = ends.get_text(strip=True)
            if text:
                interval = soup.new_tag("span", attrs={"class": "interval"})
                interval.string = f"({text})"
                cells[column - names].extend([" ", interval])

            ends.decompose()


def _columns_of_intervals(words: list[str], names: int) -> dict[int, int]:
    """Return the place of each interval, with the place of its value.

    An interval with a name belongs to the column of this name, or to the column before it if that
    begins with the name. One without a name belongs to the last column before it without another
    interval.
    """
    intervals = {
        place: word.removesuffix(INTERVAL).strip()
        for place, word in enumerate(words)
        if place > names and word.endswith(INTERVAL)
    }
    values = [place for place in range(names, len(words)) if place not in intervals]
    columns = {}
    for place, name in intervals.items():
        named = [value for value in values if words[value] == name]
        if name and place - 1 in values and words[place - 1].startswith(name):
            named.append(place - 1)
        if named:
            columns[place] = named[0]

    for place, name in intervals.items():
        free = [value for value in values if value < place and value not in columns.values()]
        if not name and free:
            columns[place] = free[-1]

    return columns


def _put_the_verdict_first(table: Tag, names: int) -> None:
    heads = _heads(table)
    words = [head.get_text(strip=True) for head in heads]
    if "verdict" not in words[names + 1 :]:
        return

    place = words.index("verdict")
    heads[names].insert_before(heads[place].extract())
    for cells in _values(table):
        cells[0].insert_before(cells[place - names].extract())


def _group_rows(soup: BeautifulSoup, table: Tag) -> None:
    """Turn the outer label of several rows into a row above them."""
    rows = table.tbody.find_all("tr")
    names = len(rows[0].find_all("th"))
    outer = [row.th for row in rows if len(row.find_all("th")) == names]
    if len(outer) == len(rows):
        return

    heads = _heads(table)
    heads[1].string = f"{heads[0].get_text()}, {heads[1].get_text()}".strip(", ")
    heads[0].decompose()
    width = len(_heads(table))
    for label in outer:
        label["colspan"] = width
        label["scope"] = "rowgroup"
        del label["rowspan"]
        inner = soup.new_tag("span")
        inner.extend(list(label.contents))
        label.append(inner)
        above = soup.new_tag("tr", attrs={"class": "group"})
        row = label.parent
        above.append(label.extract())
        row.insert_before(above)


def _let_long_words_break(table: Tag) -> None:
    """Put soft hyphens into the long words of the head."""
    for head in _heads(table):
        text = head.get_text()
        for word in BREAKS:
            text = text.replace(word.replace("|", ""), word.replace("|", SOFT_HYPHEN))

        head.string = text


def _name_the_cells(table: Tag) -> None:
    """Name each cell's column, and keep the roles that a table without its layout would lose."""
    for tag, role in ROLES.items():
        for element in [table] if tag == "table" else table.find_all(tag):
            element["role"] = role

    heads = _heads(table)
    for head in table.find_all("th"):
        head["role"] = "columnheader" if head.find_parent("thead") else "rowheader"

    for row in table.tbody.find_all("tr"):
        cells = row.find_all("td")
        for cell, head in zip(cells, heads[len(heads) - len(cells) :], strict=True):
            cell["data-label"] = head.get_text().removesuffix(f" ({INTERVAL})")


def _add_class(table: Tag, name: str) -> None:
    table["class"] = [*table.get("class", []), name]
