"""The page *The house*: a picture and a table of the package, made from its imports.

A room is a folder of the package or a module next to the folders. Names that are looked up on first
use, such as ``pm.ask``, count as imports of the room that defines them.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import networkx as nx
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

import psychometrics

PACKAGE = Path(psychometrics.__file__).parent
WIDTH = 360  # of the picture; a phone of 390 pixels shows it at nearly its own size
LETTER = 7  # width of a letter of 12 pixels
HEIGHT = 24  # of a box
GAP = 8
FLOOR = 30  # between floors, for the arrows


@dataclass
class Room:
    """A folder or a module: what it is for, its size, and the rooms that it imports."""

    name: str
    purpose: str = ""
    files: int = 0
    lines: int = 0
    imports: set[str] = field(default_factory=set)


def rooms(package: Path = PACKAGE) -> dict[str, Room]:
    """Return the rooms of a package by name."""
    lazy = _lazy_names(package)
    house = {}

    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        if parts == ("__init__",) or "_shipped" in parts:
            continue

        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        room = house.setdefault(parts[0], Room(parts[0]))
        room.files += 1
        room.lines += len(source.splitlines())
        room.imports |= _imported(tree, ("psychometrics", *parts), lazy)

        if len(parts) == 1 or parts[1:] == ("__init__",):
            room.purpose = (ast.get_docstring(tree) or "").partition("\n")[0]

    for room in house.values():
        room.imports &= set(house) - {room.name}

    return house


def _lazy_names(package: Path) -> dict[str, str]:
    """Return the room of each name that the package's front door offers."""
    stub = package / "__init__.pyi"
    if not stub.is_file():
        return {}

    names = {}
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                names[alias.asname or alias.name] = (node.module or alias.name).partition(".")[0]

    return names


def _imported(tree: ast.Module, parts: tuple[str, ...], lazy: dict[str, str]) -> set[str]:
    """Return the rooms that one file imports, anywhere in the file."""
    folder = parts[:-1]
    imported = set()
    front = set()  # names under which the file knows the package itself

    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                imported.add(alias.name.removeprefix("psychometrics.").partition(".")[0])
                if alias.name == "psychometrics":
                    front.add(alias.asname or alias.name)

        elif isinstance(node, ast.ImportFrom):
            base = folder[: len(folder) - node.level + 1] if node.level else ()
            full = [*base, *(node.module or "").split(".")] if node.module else [*base]
            if full[:1] == ["psychometrics"]:
                names = [alias.name for alias in node.names]
                imported |= {full[1]} if len(full) > 1 else {lazy.get(name, name) for name in names}

    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", None) in front:
            imported.add(lazy.get(node.attr, node.attr))

    return imported


def floors(house: dict[str, Room]) -> list[list[list[str]]]:
    """Return the floors from the ground up; rooms that import each other are in one group.

    Examples
    --------
    >>> a, b, c = Room("a", imports={"b"}), Room("b", imports={"a", "c"}), Room("c")
    >>> floors({"a": a, "b": b, "c": c})
    [[['c']], [['a', 'b']]]
    """
    groups = _group_rooms(house)
    places = {name: place for place, name in enumerate(house)}

    def rank(group: tuple[str, ...]) -> tuple[int, int]:
        below = sum(map(len, nx.descendants(groups, group)))
        return below, min(places[name] for name in group)

    levels = nx.topological_generations(groups.reverse())
    return [[list(group) for group in sorted(level, key=rank)] for level in levels]


def _group_rooms(house: dict[str, Room]) -> nx.DiGraph:
    """Return the imports between groups of rooms; rooms that import each other are one group."""
    imports = nx.DiGraph([(name, other) for name in house for other in house[name].imports])
    imports.add_nodes_from(house)
    groups = nx.condensation(imports)
    names = {node: tuple(sorted(members)) for node, members in groups.nodes(data="members")}
    return nx.relabel_nodes(groups, names)


def picture(house: dict[str, Room]) -> str:
    """Draw the house as SVG: floors from the top, arrows down to the rooms needed directly."""
    placed, height = _places(floors(house)[::-1])
    direct = nx.transitive_reduction(_group_rooms(house))  # without imports through another room
    arrows = "".join(
        _arrow(placed[group], placed[target])
        for group in placed
        for target in sorted(direct[group])
    )
    boxes = "".join(_box(group, *place) for group, place in placed.items())
    return (
        f'<svg class="house" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-labelledby="house-title" style="width:100%;max-width:{WIDTH * 1.5:.0f}px">'
        '<title id="house-title">The rooms by floor; the table of rooms lists the imports of each.'
        "</title>"
        '<g fill="none" stroke="currentColor" stroke-opacity=".35">'
        f"{arrows}</g>{boxes}</svg>\n"
    )


def _places(levels: list[list[list[str]]]) -> tuple[dict[tuple[str, ...], tuple], int]:
    """Return left edge, top and width of each group's box, and the height of the picture."""
    placed = {}
    top = 2
    for level in levels:
        rows = [[]]
        for group in level:
            width = max(len(line) for line in _lines(group)) * LETTER + 12
            if sum(box[1] + GAP for box in rows[-1]) + width > WIDTH:
                rows.append([])
            rows[-1].append((group, width))

        for row in rows:
            left = (WIDTH - sum(width + GAP for _, width in row) + GAP) / 2
            tallest = max(_tall(group) for group, _ in row)
            for group, width in row:
                placed[tuple(group)] = (left, top, width)
                left += width + GAP

            top += tallest + GAP

        top += FLOOR - GAP

    return placed, top - FLOOR + 2


def _lines(group: list[str] | tuple[str, ...]) -> list[str]:
    """Return the lines of a box: one name, or all names that import each other."""
    if len(group) == 1:
        return [group[0]]

    lines = ["a circle of imports:"]
    for name in group:
        fits = len(lines) > 1 and len(lines[-1]) + len(name) < 40
        lines[-1:] = [f"{lines[-1]} {name}"] if fits else [lines[-1], name]

    return lines


def _tall(group: list[str] | tuple[str, ...]) -> int:
    return HEIGHT + 16 * (len(_lines(group)) - 1)


def _arrow(start: tuple, end: tuple) -> str:
    x, y, width = start
    to_x, to_y, to_width = end
    x += width / 2
    to_x += to_width / 2
    y += HEIGHT
    bend = (to_y - y) / 2

    middle = f"{x:.0f} {y + bend:.0f} {to_x:.0f} {to_y - bend:.0f}"
    return f'<path d="M{x:.0f} {y} C{middle} {to_x:.0f} {to_y}"/>'


def _box(group: tuple[str, ...], left: float, top: float, width: float) -> str:
    dashed = ' stroke-dasharray="4 3"' if len(group) > 1 else ""
    text = "".join(
        f'<text x="{left + width / 2:.0f}" y="{top + 16 + 16 * number}" text-anchor="middle" '
        f'fill="currentColor" style="font:12px sans-serif">{escape(line)}</text>'
        for number, line in enumerate(_lines(group))
    )

    return (
        f'<rect x="{left:.0f}" y="{top}" width="{width:.0f}" height="{_tall(group)}" rx="4" '
        f'style="fill:var(--pst-color-background,#fff);stroke:currentColor"{dashed}/>{text}'
    )


class HousePicture(SphinxDirective):
    """Insert the picture of the house."""

    def run(self):
        _watch(self.env)
        return [nodes.raw("", picture(rooms()), format="html")]


class HouseRooms(SphinxDirective):
    """Insert a table of the rooms by floor, with their purpose, size and imports."""

    def run(self):
        _watch(self.env)
        house = rooms()
        lines = [
            "| room | what lives there | files | lines | imports |",
            "| --- | --- | ---: | ---: | --- |",
        ]
        for level in floors(house)[::-1]:
            for name in sorted(name for group in level for name in group):
                room = house[name]
                needs = ", ".join(sorted(room.imports)) or "–"
                cells = (f"`{name}`", room.purpose, room.files, f"{room.lines:,}", needs)
                lines.append("| " + " | ".join(map(str, cells)) + " |")

        place = nodes.container()
        self.state.nested_parse(StringList(lines), self.content_offset, place)
        for table in place.findall(nodes.table):
            table["classes"].append("rooms")

        return place.children


def _watch(environment) -> None:
    """Make Sphinx redraw the page when a file of the package has changed."""
    for path in PACKAGE.rglob("*.py"):
        environment.note_dependency(str(path))


def setup(app):
    app.add_directive("house-picture", HousePicture)
    app.add_directive("house-rooms", HouseRooms)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
