"""Draft a questionnaire's file from a table of items, with comments on what is missing."""

from __future__ import annotations

import json
import re
import tempfile
import unicodedata
import warnings
from pathlib import Path
from typing import Any

import pandas as pd

from ..checks import check_choice, check_columns
from ..data import text_table, write_text
from ..exceptions import ParameterError, QuestionnaireError, writing
from ..questionnaires.library import load_questionnaire
from .option_forms import join_option_columns, parse_options
from .wording import LANGUAGES, RULES, _sided_words

COLUMNS = ("item", "scale", "reverse", "options", "source", "inverse", "premise", "hypothesis")
"""Columns of the table; only ``item`` is required, and the others may be empty."""
_REVERSE = dict.fromkeys(
    ("yes", "y", "ja", "sí", "oui", "true", "1", "-1", "r", "reverse", "x"), True
)
_REVERSE |= dict.fromkeys(("", "no", "n", "nein", "non", "false", "0", "+1"), False)
_HEAD = (Path(__file__).parent / "templates" / "draft.yaml").read_text(encoding="utf-8")
_NO_OPTIONS = """\
# options:  # from least to most, for people and chat models
#   - {value: 0, label: Not at all}
#   - {value: 1, label: Often}"""
_USUAL_OPTIONS = """\
# The table names no options. These are usual words of agreement: replace them with your own.
options:"""
_NUMBERED_OPTIONS = """\
# The table's options have no numbers: they count from 1. If your scale counts from 0, change them.
options:"""
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "æ": "ae", "ø": "oe"})


def draft(
    table: str | Path | pd.DataFrame,
    path: str | Path,
    language: str = "en",
) -> Path:
    """Write a questionnaire's file from a table of items, and list in comments what is missing.

    Parameters
    ----------
    table : str, Path or DataFrame
        A CSV file or a frame with the columns :data:`COLUMNS` and one row per item: its text; its
        ``scale`` (without this column, all items form one scale); ``reverse``, yes if agreement
        lowers the score; ``options`` from least to most, as
        :func:`psychometrics.authoring.option_forms.parse_options` reads them, in the first row for
        all items, in other rows for that item alone (or one column an option, ``option 1``,
        ``option 2`` …); for NLI prompts ``source`` and ``inverse`` terms separated by semicolons,
        ``premise`` and ``hypothesis`` with ``{term}`` and ``{intensifier}``. A table with neither
        options nor prompts gets the language's usual words of agreement.
    path : str or Path
        A ``.yaml`` file; its name becomes the questionnaire's id.
    language : {"en", "de", "es", "fr"}
        Language of the items. It determines the words of frequency, the hypothesis and the usual
        words of agreement, which come from ``data/languages.yml``. That file also names their
        sources.

    Returns
    -------
    Path
        The file, which can be loaded. Its items can be asked in modes ``options`` and ``chat`` at
        once, and in mode ``nli`` once their terms and templates are filled in.

    Raises
    ------
    ParameterError, QuestionnaireError
        The table has no items, a row or its options cannot be read, or the file exists. The message
        names the table and the line.

    Warns
    -----
    UserWarning
        A row has no item text and is left out; the warning names its line.

    Examples
    --------
    >>> import tempfile
    >>> rows = pd.DataFrame({"item": ["I like tea.", "I pour tea away."], "reverse": ["", "yes"],
    ...                      "options": ["0=no; 1=yes", ""]})
    >>> file = draft(rows, Path(tempfile.mkdtemp()) / "tea.yaml")
    >>> load_questionnaire(file).scales[0].reverse
    ('tea_2',)
    """
    check_choice(LANGUAGES, language=language)
    path = Path(path)
    name = path.stem

    if path.suffix not in (".yaml", ".yml") or not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", name):
        raise ParameterError(f"{path}: use lower-case letters, digits, - and _, then .yaml.")
    if path.exists():
        raise ParameterError(f"{path} exists already: name another file, or delete this one.")

    source = "The table" if isinstance(table, pd.DataFrame) else str(table)
    rows = _read_rows(table, name, source)
    title = name.replace("_", " ").replace("-", " ").capitalize()
    levels = "\n".join(
        f"  - {{weight: {level['weight']}, terms: [{', '.join(level['terms'])}]}}"
        for level in LANGUAGES[language]["frequency"]
    )
    parts = {"size": len(rows), "name": name, "title": title, "language": language}
    parts |= {"intensifiers": levels, "options": _common_options(rows, language)}
    lines = [_HEAD.format(**parts).rstrip(), *_scale_lines(rows, name, title), "items:"]
    common = rows["options"].iloc[0]
    for row in rows.itertuples(index=False):
        lines += _item_lines(row, row.options != common, language)

    lines += ["# The rules that `psychometrics check` applies:"]
    lines += [f"# - {rule}: {sentence}" for rule, sentence in RULES.items()]
    _write(path, "\n".join(lines) + "\n", source, rows)
    return path


def _common_options(rows: pd.DataFrame, language: str) -> str:
    """Return the options of all items: the table's or, without prompts, the usual words."""
    options = rows["options"].iloc[0]
    if options:
        place = rows["place"].iloc[0]
        has_numbers = parse_options(options, place)[0][0] is not None
        head = "options:" if has_numbers else _NUMBERED_OPTIONS
        return "\n  - ".join([head, *_option_lines(options, place)])

    prompts = rows[["source", "inverse", "premise", "hypothesis"]].ne("").all(axis=1)
    if rows["options"].eq("").all() and not prompts.any():
        levels = LANGUAGES[language]["agreement"]
        # Of two words, use the pair that differs only at its end: somewhat disagree, ... agree.
        words = [level["terms"][0 if level["weight"] < 0 else -1] for level in levels]
        lines = [f"{{value: {n}, label: {_quote(word)}}}" for n, word in enumerate(words, start=1)]
        return "\n  - ".join([_USUAL_OPTIONS, *lines])
    return _NO_OPTIONS


def _scale_lines(rows: pd.DataFrame, name: str, title: str) -> list[str]:
    """Return a line for each scale; refuse two scales whose names differ only in spelling."""
    lines = []
    places: dict[str, tuple[str, str]] = {}
    for number, (scale, items) in enumerate(rows.groupby("scale", sort=False), start=1):
        plain = unicodedata.normalize("NFC", scale).lower().translate(_UMLAUTS)
        letters = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
        scale_id = re.sub(r"[^a-z0-9]+", "_", letters).strip("_") or f"scale_{number}"
        place = items["place"].iloc[0]
        if scale_id in places:
            before, line = places[scale_id]
            raise ParameterError(
                f"{place}: the scale '{scale}' is called '{before}' in {line}; use one spelling, "
                "or rename one."
            )

        places[scale_id] = scale, place.rpartition(", ")[2]
        entry = f"id: {scale_id if scale else name}, title: {_quote(scale or title)}"
        entry += f", items: [{', '.join(items['id'])}]"
        reverse = items.loc[items["reverse"], "id"].tolist()
        if reverse:
            entry += f", reverse: [{', '.join(reverse)}]"

        lines.append(f"  - {{{entry}}}")

    return lines


def _write(path: Path, text: str, source: str, rows: pd.DataFrame) -> None:
    """Write the draft if it can be loaded; otherwise report its mistakes by the table's lines."""
    with tempfile.TemporaryDirectory() as folder:  # leave no draft that does not load
        written = Path(folder) / path.name
        written.write_text(text, encoding="utf-8")
        try:
            load_questionnaire(written)
        except QuestionnaireError as error:
            message = str(error)  # names lines of the table instead of items of the draft
            for name, place in zip(rows["id"], rows["place"], strict=True):
                line = place.rpartition(", ")[2]
                message = message.replace(f"items: '{name}' is", f"{line} is")
                message = message.replace(f"as '{name}'", f"as {line}")

            message = re.sub(
                rf"(?m)^[^\n]*?{re.escape(written.name)}(?:, item (\d+) \([^)]*\))?",
                lambda match: rows["place"].iloc[int(match[1]) - 1] if match[1] else source,
                message,
            )
            raise QuestionnaireError(message) from None

    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)


def _read_rows(table: str | Path | pd.DataFrame, name: str, source: str) -> pd.DataFrame:
    if not isinstance(table, pd.DataFrame):
        table = text_table(table)

    unit = "line" if "lines" in table.attrs else "row"
    lines = table.attrs.get("lines", range(1, len(table) + 1))
    places = [f"{source}, {unit} {line}" for line in lines]
    table = table.rename(columns=lambda name: str(name).strip().lower()).fillna("").astype(str)
    check_columns(table, ())
    table = join_option_columns(table)
    strange = [column for column in table.columns if column not in COLUMNS]
    if strange:
        raise ParameterError(
            f"'{strange[0]}' is not a column of a table of items; use {', '.join(COLUMNS)}, or "
            "'option 1', 'option 2' and so on for one column an option."
        )
    if "item" not in table:
        raise ParameterError("There is no column 'item' for the items' texts: add this column.")

    table = table.reindex(columns=list(COLUMNS), fill_value="").map(str.strip).assign(place=places)
    left_out = table["item"].eq("") & table[list(COLUMNS)].ne("").any(axis=1)
    for place in table.loc[left_out, "place"]:
        warnings.warn(f"{place}: has no item text and is left out.", stacklevel=3)

    table = table[table["item"] != ""].reset_index(drop=True)
    if table.empty:
        raise ParameterError("The table has no items: add a row for each item.")

    reverse = table["reverse"].str.lower().map(_REVERSE)
    if reverse.isna().any():
        wrong = table[reverse.isna()].iloc[0]
        raise ParameterError(f"{wrong['place']}: reverse is yes or no, got '{wrong['reverse']}'.")

    ids = [f"{name}_{number}" for number in range(1, len(table) + 1)]
    return table.assign(id=ids, reverse=reverse.astype(bool))


def _item_lines(row: Any, differs: bool, language: str) -> list[str]:
    """Return the lines of one item, from the row of a table of items with its place and id."""
    lines = [f"  - id: {row.id}", f"    text: {_quote(row.item)}"]
    if differs and row.options:
        options = _option_lines(row.options, row.place)
        lines += ["    options:", *(f"      - {option}" for option in options)]

    sides = (row.source.split(";"), row.inverse.split(";"))
    source, inverse = ([term.strip() for term in side if term.strip()] for side in sides)
    premise = row.premise
    hypothesis = row.hypothesis
    mark = ""

    if not (source and inverse and premise and hypothesis):
        mark = "# "
        if not source and language == "en":
            source = _sided_words(row.item)

        guess = f" (taken for it: {', '.join(source)})" if source else ""
        lines += [
            f"    # For NLI prompts: the words that carry the stance{guess},",
            "    # opposites that fit the same sentence, a template that is neutral without them.",
        ]
        stance = rf"\b{re.escape(source[0])}\b" if source else r"(?!)"  # nothing to replace
        premise = premise or re.sub(stance, "{term}", row.item, flags=re.IGNORECASE)
        hypothesis = hypothesis or LANGUAGES[language]["hypothesis"]

    return [
        *lines,
        f"    {mark}terms:",
        f"    {mark}  source: [{', '.join(map(_quote, source))}]",
        f"    {mark}  inverse: [{', '.join(map(_quote, inverse))}]",
        f"    {mark}templates:",
        f"    {mark}  - premise: {_quote(premise)}",
        f"    {mark}    hypothesis: {_quote(hypothesis)}",
    ]


def _option_lines(text: str, place: str) -> list[str]:
    """Return a line for each option; options without numbers count from 1."""
    lines = []
    for number, (value, label) in enumerate(parse_options(text, place), start=1):
        score = number if value is None else value
        lines.append(f"{{value: {score:g}, label: {_quote(label)}}}")
    return lines


def _quote(text: str) -> str:
    """Quote a text for YAML, which accepts JSON strings."""
    return json.dumps(text, ensure_ascii=False)
