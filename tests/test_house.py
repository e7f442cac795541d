"""The house: imports run one way, rooms are few, every function that is public has its place."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import psychometrics as pm
from psychometrics.paths import book_dir, notebooks_dir

PACKAGE = Path(pm.__file__).parent
FLOORS = [
    ["exceptions", "paths"],
    ["data"],
    ["questionnaires"],
    ["answers", "prompts", "messages", "store"],
    ["respondents"],
    ["population"],
    ["scoring"],
    ["ask"],
    ["trends", "reliability", "items", "irt", "norms", "styles", "beliefs", "intervals"],
    ["validity"],
    ["content", "training", "nulls", "authoring"],
    ["interventions"],
    ["figures"],
    ["studies"],
    ["parameters", "claims"],
    ["book"],
    ["rules", "page"],
    ["profiles"],
    ["study", "runs"],
    ["cli"],
]
"""The rooms from the ground up: each may import from its own floor and those below."""
PURE = {"scoring", "trends", "reliability", "items", "irt", "norms", "styles", "beliefs",
        "intervals", "validity"}  # fmt: skip
"""Frames and arrays in, frames and arrays out."""


def _modules() -> dict[str, Path]:
    files = [path for path in PACKAGE.rglob("*.py") if "_shipped" not in path.parts]
    return {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path
        for path in files
        if path != PACKAGE / "__init__.py"
    }


def _arrows() -> dict[str, set[str]]:
    """Modules of the package that each module imports, wherever in the file."""
    modules = _modules()
    arrows = {}
    for name, path in modules.items():
        package = ["psychometrics", *name.split(".")]
        package = package if path.name == "__init__.py" else package[:-1]
        found = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                base = package[: len(package) - node.level + 1] if node.level else []
                full = ".".join([*base, *(node.module or "").split(".")]).strip(".")
                found |= {full, *(f"{full}.{alias.name}" for alias in node.names)}
        own = {target.removeprefix("psychometrics.") for target in found}
        arrows[name] = {target for target in own if target in modules and target != name}
        if path.name == "__init__.py":  # a package may look into its own rooms
            arrows[name] = {t for t in arrows[name] if not t.startswith(f"{name}.")} | {
                t for t in arrows[name] if t.startswith(f"{name}.")
            }
    return arrows


def test_there_is_no_circle_of_imports():
    arrows = _arrows()

    def reached(start: str) -> set[str]:
        seen, todo = set(), list(arrows[start])
        while todo:
            name = todo.pop()
            if name not in seen:
                seen.add(name)
                todo += arrows[name]
        return seen

    assert [name for name in arrows if name in reached(name)] == []


def test_imports_run_one_way():
    floor = {room: height for height, rooms in enumerate(FLOORS) for room in rooms}
    up = [
        f"{name} -> {target}"
        for name, targets in _arrows().items()
        for target in targets
        if floor[target.split(".")[0]] > floor[name.split(".")[0]]
    ]
    assert up == []


def test_every_room_has_its_floor_and_there_are_at_most_thirty():
    rooms = {name.split(".")[0] for name in _modules()}
    assert rooms == {room for floor in FLOORS for room in floor}
    assert len([path for path in PACKAGE.glob("*.py")]) <= 30


def test_method_modules_load_no_model_and_read_no_file():
    for name, targets in _arrows().items():
        if name in PURE:
            rooms = {target.split(".")[0] for target in targets}
            assert not rooms & {"respondents", "ask", "data", "paths", "store"}, name
            assert not re.search(r"read_csv|read_parquet|open\(", _modules()[name].read_text()), (
                name
            )


def _public() -> dict[str, object]:
    found = {}
    for name in _modules():
        if name.rpartition(".")[2].startswith("_"):
            continue
        module = importlib.import_module(f"psychometrics.{name}")
        for own, value in vars(module).items():
            of_here = getattr(value, "__module__", None) == module.__name__
            if not own.startswith("_") and of_here and (
                inspect.isfunction(value) or inspect.isclass(value)
            ):  # fmt: skip
                found[f"{name}.{own}"] = value
    return found


def test_public_names_are_few_and_documented():
    public = _public()
    assert len(public) <= 448
    assert [name for name, value in public.items() if not value.__doc__] == []


def test_no_example_is_skipped():
    skipped = [name for name, path in _modules().items() if "doctest: +SKIP" in path.read_text()]
    assert skipped == []


def test_the_front_door_has_these_names():
    assert set(pm.__all__) == set(FRONT_DOOR)
    for name in pm.__all__:
        assert getattr(pm, name) is not None


def test_importing_the_package_is_quick_and_loads_nothing_heavy():
    code = (
        "import sys, time; began = time.perf_counter(); import psychometrics as pm; "
        "took = time.perf_counter() - began; "
        "assert not {'torch', 'transformers', 'pandas', 'scipy'} & set(sys.modules); "
        "assert took < 0.3, took"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_private_names_stay_in_their_room():
    strays = []
    for name, path in _modules().items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level:
                strays += [f"{name}: {a.name}" for a in node.names if a.name.startswith("_")
                           and a.name != "__version__"]  # fmt: skip
    assert strays == []


def test_every_room_has_its_page_in_the_reference():
    pages = "".join(path.read_text() for path in (book_dir() / "reference").glob("*.md"))
    documented = set(re.findall(r"automodule:: psychometrics\.([\w.]+)", pages))
    rooms = {m.name.removeprefix("psychometrics.") for m in
             pkgutil.walk_packages(pm.__path__, "psychometrics.")}  # fmt: skip
    private = {name for name in rooms if name.rpartition(".")[2].startswith("_")}
    assert rooms - private == documented


FORMULA = re.compile(r"\$\$\s*\((eq-[\w-]+)\)")
ROW = re.compile(r"^\| \{eq\}`(eq-[\w-]+)` .*?\{func\}`~?psychometrics\.([\w.]+)`", re.M)


def test_every_numbered_formula_has_a_row_with_its_function():
    chapters = "".join(path.read_text(encoding="utf-8") for path in notebooks_dir().glob("*.ipynb"))
    page = (book_dir() / "reference" / "formulas.md").read_text(encoding="utf-8")
    rows = dict(ROW.findall(page))
    assert set(FORMULA.findall(chapters)) == set(rows)
    assert chapters.count("$$") == 2 * len(rows), "every formula on a line of its own has a number"
    public = _public()
    for name in re.findall(r"\{func\}`~?psychometrics\.([\w.]+)`", page):
        room, _, own = name.rpartition(".")
        assert name in public or own in vars(importlib.import_module(f"psychometrics.{room}"))


@pytest.mark.parametrize("word", ["instrument", "inventory"])
def test_there_is_one_word_for_a_questionnaire(word):
    for name, path in _modules().items():
        found = re.findall(rf'(?<!["-])\b{word}(?:s|ies)?\b', path.read_text(encoding="utf-8"))
        assert not found, (name, len(found))


FRONT_DOOR = [
    "__version__", "answers", "ask", "beliefs", "book", "check_parameters", "claims", "compact",
    "content", "data", "exceptions", "figures", "interventions", "intervals", "irt", "item_scores",
    "items", "load_questionnaire", "load_respondent", "manifests", "messages", "norms",
    "null_answers", "null_distribution", "nulls",
    "paths", "population", "population_table", "prompts", "pss", "questionnaire_names",
    "questionnaires", "readable_names", "reliability", "respondents",
    "scale_scores", "scoring", "store", "studies", "styles", "training", "trends", "two_way",
    "untouched_bases", "validity",
]  # fmt: skip
