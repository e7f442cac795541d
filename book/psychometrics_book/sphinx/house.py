"""The page *The house*: a picture and a table of the package, made from its imports.

A room is a folder of the package or a module next to the folders. Names that are looked up on first
use, such as ``pm.ask``, count as imports of the room that defines them.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from importlib.util import resolve_name
from pathlib import Path

import networkx as nx
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

import psychometrics

from ..templating import fill_template

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
        room.imports |= _imported(tree, ".".join(("psychometrics", *parts[:-1])), lazy)

        if len(parts) == 1 or parts[1:] == ("__init__",):
            room.purpose = (ast.get_docstring(tree) or "").partition("\n")[0]

    for room in house.values():
        room.imports &= set(house) - {room.name}

    return house


def _lazy_names(package: Path) -> dict[str, str]:
    """Return the room of each name that the package's front door offers."""
    names = {}
    for node in ast.parse((package / "__init__.pyi").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                names[alias.asname or alias.name] = (node.module or alias.name).partition(".")[0]

    return names


def _imported(tree: ast.Module, folder: str, lazy: dict[str, str]) -> set[str]:
    """Return the rooms that a file of a folder imports, anywhere in the file."""
    imported = set()
    front = set()  # names under which the file knows the package itself

    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                imported.add(alias.name.removeprefix("psychometrics.").partition(".")[0])
                if alias.name == "psychometrics":
                    front.add(alias.asname or alias.name)

        elif isinstance(node, ast.ImportFrom):
            module = resolve_name("." * node.level + (node.module or ""), folder)
            if module == "psychometrics":
                imported |= {lazy.get(alias.name, alias.name) for alias in node.names}
            elif module.startswith("psychometrics."):
                imported.add(module.split(".")[1])

    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", None) in front:
            imported.add(lazy.get(node.attr, node.attr))

    return imported


def floors(house: dict[str, Room]) -> list[list[str]]:
    """Return the floors from the ground up; no rooms import each other.

    Examples
    --------
    >>> floors({"a": Room("a", imports={"b", "c"}), "b": Room("b"), "c": Room("c", imports={"b"})})
    [['b'], ['c'], ['a']]
    """
    imports = _import_graph(house)
    places = list(house)

    def rank(name: str) -> tuple[int, int]:
        return len(nx.descendants(imports, name)), places.index(name)

    return [sorted(level, key=rank) for level in nx.topological_generations(imports.reverse())]


def _import_graph(house: dict[str, Room]) -> nx.DiGraph:
    return nx.DiGraph({name: room.imports for name, room in house.items()})


def picture(house: dict[str, Room]) -> str:
    """Draw the house as SVG: floors from the top, arrows down to the rooms needed directly."""
    boxes, height = _places(floors(house)[::-1])
    direct = nx.transitive_reduction(_import_graph(house))  # without imports through another room
    arrows = []
    for name, (left, top, width) in boxes.items():
        for target in sorted(direct[name]):
            to_left, to_top, to_width = boxes[target]
            start = left + width / 2, top + HEIGHT
            end = to_left + to_width / 2, to_top
            arrows.append((*start, (start[1] + end[1]) / 2, *end))

    size = {"width": WIDTH, "height": height, "box_height": HEIGHT}
    return fill_template("house.svg.j2", boxes=boxes, arrows=arrows, **size)


def _places(levels: list[list[str]]) -> tuple[dict[str, tuple], int]:
    """Return left edge, top and width of each room's box, and the height of the picture."""
    placed = {}
    top = 2
    for level in levels:
        rows = [[]]
        for name in level:
            width = len(name) * LETTER + 12
            if sum(box[1] + GAP for box in rows[-1]) + width > WIDTH:
                rows.append([])
            rows[-1].append((name, width))

        for row in rows:
            left = (WIDTH - sum(width + GAP for _, width in row) + GAP) / 2
            for name, width in row:
                placed[name] = (left, top, width)
                left += width + GAP

            top += HEIGHT + GAP

        top += FLOOR - GAP

    return placed, top - FLOOR + 2


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
            for name in sorted(level):
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
