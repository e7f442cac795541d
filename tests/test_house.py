"""The package is small, its imports run one way, and its public functions are documented."""

from __future__ import annotations

import ast
import importlib
import inspect
import io
import pkgutil
import re
import subprocess
import sys
import tokenize
import tomllib
from pathlib import Path

import psychometrics as pm
from psychometrics.paths import book_dir, data_dir, notebooks_dir
from tests.conftest import IN_ALL, SMOKE

PACKAGE = Path(pm.__file__).parent
FRONT = PACKAGE / "__init__.py"
CORE = {"exceptions", "files", "paths", "data", "checks", "progress", "store", "questionnaires",
        "asking", "answers", "models", "modes", "endpoints", "measures", "nulls",
        "training"}  # fmt: skip
"""What reports and the command are made of: it imports nothing of theirs."""
LAYERS = (
    {"files", "paths"},
    {"exceptions"},
    {"checks", "data", "formats", "progress"},
    {"questionnaires", "store"},
    {"endpoints", "models"},
    {"measures", "modes"},
    {"answers", "nulls"},
    {"asking", "serving"},
    {"authoring"},
)
"""Rooms from the foundation up: each imports from the layers below its own; others come on top."""
LARGEST = {"code lines": 22_214, "public constants": 58, "root modules": 10}
"""Today's sizes. They only fall: whoever adds lines removes at least as many.

They rose three times: when pages about models, the audit, the null server and ONNX files came in,
when chat models got control questions and ONNX files answered by their options, and when tables and
replies with two readings were refused.
"""


def _modules() -> dict[str, Path]:
    files = [path for path in PACKAGE.rglob("*.py") if "_shipped" not in path.parts]
    return {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path
        for path in files
        if path != FRONT
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


def _front_door() -> dict[str, str]:
    """The room of each public name of the package, as the stub beside it lists them."""
    rooms = {}
    tree = ast.parse(FRONT.with_suffix(".pyi").read_text(encoding="utf-8"))
    for node in tree.body:
        for alias in node.names if isinstance(node, ast.ImportFrom) else ():
            rooms[alias.name] = (node.module or alias.name).split(".")[0]
    return rooms


def _lazy_rooms(path: Path) -> set[str]:
    """Rooms that a file reaches through names of the front door, at their first use."""
    front = _front_door()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    depth = len(path.relative_to(PACKAGE).parts)
    nicknames = set()
    rooms = set()

    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            whole = [alias for alias in node.names if alias.name == "psychometrics"]
            nicknames |= {alias.asname or alias.name for alias in whole}
        elif isinstance(node, ast.ImportFrom) and node.level == depth and node.module is None:
            rooms |= {front[alias.name] for alias in node.names if alias.name in front}

    for node in ast.walk(tree):
        of_name = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if of_name and node.value.id in nicknames and node.attr in front:
            rooms.add(front[node.attr])

    return rooms


def _room_arrows() -> dict[str, set[str]]:
    """Rooms (folders, and files beside them) that each room imports, lazily or not."""
    modules = _modules()
    rooms: dict[str, set[str]] = {}
    for name, targets in _arrows().items():
        room = name.split(".")[0]
        met = {target.split(".")[0] for target in targets} | _lazy_rooms(modules[name])
        rooms.setdefault(room, set()).update(met - {room})
    return rooms


def test_folders_depend_on_each_other_in_one_direction():
    rooms = _room_arrows()
    heights = {room: height for height, layer in enumerate(LAYERS) for room in layer}
    top = len(LAYERS)
    up = [
        f"{room} -> {target}"
        for room, targets in rooms.items()
        for target in targets
        if room in heights and heights[room] <= heights.get(target, top)
    ]
    assert up == []

    upper = {room: targets - set(heights) for room, targets in rooms.items() if room not in heights}
    while upper:
        free = {room for room, targets in upper.items() if not targets & set(upper)}
        assert free, f"these rooms import each other in a circle: {sorted(upper)}"
        upper = {room: targets for room, targets in upper.items() if room not in free}


def test_a_lazy_name_of_the_front_door_counts_as_an_import(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    room = tmp_path / "store" / "late.py"
    room.parent.mkdir()
    room.write_text("import psychometrics as pm\n\ndef late():\n    return pm.ask\n")
    assert _lazy_rooms(room) == {"asking"}
    room.write_text("def late():\n    from .. import modes\n")
    assert _lazy_rooms(room) == {"modes"}


def test_the_core_imports_nothing_of_the_book_or_the_command():
    up = [
        f"{name} -> {target}"
        for name, targets in _arrows().items()
        for target in targets
        if name.split(".")[0] in CORE and target.split(".")[0] not in CORE
    ]
    assert up == []


PRESS = book_dir() / "psychometrics_book"


def test_the_instrument_never_imports_the_press():
    sources = {path: path.read_text("utf-8") for path in PACKAGE.rglob("*.py*")}
    assert [path for path, source in sources.items() if "psychometrics_book" in source] == []


def test_the_press_documents_its_public_names_and_each_module_has_its_page():
    modules = [path for path in PRESS.rglob("*.py") if path.name != "__init__.py"]
    names = {".".join(path.relative_to(PRESS).with_suffix("").parts) for path in modules}
    pages = "".join(path.read_text() for path in (book_dir() / "reference").glob("*.md"))
    documented = set(re.findall(r"automodule:: psychometrics_book\.([\w.]+)", pages))
    outside = ("cli.", "sphinx.")  # commands have their help, extensions their directives
    assert {name for name in names if not name.startswith(outside)} <= documented
    for path in modules:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            is_public = isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name[0] != "_"
            is_public = is_public and node.name != "setup"  # which Sphinx calls
            assert not is_public or ast.get_docstring(node), f"{path.name}: {node.name}"


def test_measures_load_no_model_and_read_no_file():
    for name, targets in _arrows().items():
        if name.startswith("measures."):
            rooms = {target.split(".")[0] for target in targets}
            assert rooms <= {"exceptions", "checks", "questionnaires", "measures"}, name
            assert not re.search(r"read_csv|read_parquet|open\(", _modules()[name].read_text()), (
                name
            )


def _code_lines(source: str) -> int:
    """Lines with code: without blank lines, comments and docstrings."""
    documented, lines = set(), set()
    kinds = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
            documented |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    layout = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
              tokenize.ENDMARKER)  # fmt: skip
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in layout:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - documented)


def test_the_package_is_small():
    sources = [path.read_text(encoding="utf-8") for path in [*_modules().values(), FRONT]]
    constants = re.findall(r"^[A-Za-z]\w*(?:: [^=\n]+)? = ", "\n".join(sources), re.M)
    sizes = {
        "code lines": sum(map(_code_lines, sources)),
        "public constants": len(constants),
        "root modules": len(list(PACKAGE.glob("*.py"))),
    }
    assert {what: size for what, size in sizes.items() if size > LARGEST[what]} == {}


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


def test_public_names_are_documented():
    assert [name for name, value in _public().items() if not value.__doc__] == []


def test_no_example_is_skipped():
    skipped = [name for name, path in _modules().items() if "doctest: +SKIP" in path.read_text()]
    assert skipped == []


def test_importing_the_package_is_quick_and_loads_nothing_heavy():
    code = (
        "import sys, time; began = time.process_time(); import psychometrics as pm; "
        "took = time.process_time() - began; "
        "assert not {'torch', 'transformers', 'pandas', 'scipy'} & set(sys.modules); "
        "assert took < 0.3, took"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def _relative_imports(name: str, path: Path) -> list[tuple[str, str]]:
    """Modules and names that a module imports from other modules of the package."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            module = ".".join([*base, *(node.module or "").split(".")]).strip(".")
            found += [(module, alias.name) for alias in node.names]
    return found


def _hidden(source: str) -> set[str]:
    """Return imports and functions of a file whose name a function gives to something else."""
    tree = ast.parse(source)
    blocks = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.If))]
    top = [node for block in blocks for node in block]
    imports = {
        (alias.asname or alias.name).partition(".")[0]
        for node in top
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    own = {node.name for node in top if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    found = set()
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            parameters = {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)}
            names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
            assigned = {node.id for node in names if isinstance(node.ctx, ast.Store)}
            # a parameter may be called like a function of its file: callers know it by that name
            found |= (imports & (parameters | assigned)) | (own & (assigned - parameters))
    return found


def test_no_variable_hides_an_import_or_a_function_of_its_file():
    planted = "import re\ndef f(re): ...\ndef g(f):\n    f = 1\ndef h():\n    for g in []: ..."
    assert _hidden(planted) == {"re", "g"}

    recipes = (data_dir() / "recipes").rglob("*.py")
    hidden = {path: _hidden(path.read_text("utf-8")) for path in [*PACKAGE.rglob("*.py"), *recipes]}
    assert not {path.name: names for path, names in hidden.items() if names}


def test_private_names_stay_in_their_room():
    strays = [
        f"{name}: {imported}"
        for name, path in _modules().items()
        for module, imported in _relative_imports(name, path)
        if imported.startswith("_") and imported != "__version__"
        and module.split(".")[0] != name.split(".")[0]
    ]  # fmt: skip
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


def test_every_numbered_formula_has_a_row_with_function_chapter_and_source():
    chapters = "".join(path.read_text(encoding="utf-8") for path in notebooks_dir().glob("*.ipynb"))
    page = (book_dir() / "reference" / "formulas.md").read_text(encoding="utf-8")
    assert set(FORMULA.findall(chapters)) == set(dict(ROW.findall(page)))
    assert chapters.count("$$") == 2 * len(ROW.findall(page)), "formulas on own lines are numbered"
    public = _public()
    lines = [line for line in page.splitlines() if "{func}" in line and line.startswith("| ")]
    assert len(lines) > 50
    for line in lines:
        *_, function, chapter, source, _ = [cell.strip() for cell in line.strip("|").split("|")]
        assert {*re.findall(r"\{func\}`~?psychometrics\.([\w.]+)`", function)} <= set(public), line
        assert re.fullmatch(r"(\{ref\}`[\w-]+`(, )?)+", chapter), line
        assert "{cite:t}`" in source or source == "this book", line


def test_every_source_of_the_reference_is_in_the_references():
    known = re.findall(r"^@\w+\{([^,]+),", (book_dir() / "references.bib").read_text("utf-8"), re.M)
    pages = "".join(page.read_text() for page in (book_dir() / "reference").glob("*.md"))
    assert set(re.findall(r"\{cite:t\}`(\w+)`", pages)) <= set(known)
    assert len(known) == len(set(known))


def test_the_stub_exports_all_that_it_imports_so_that_type_checkers_see_it():
    for stub in PACKAGE.rglob("*.pyi"):
        tree = ast.parse(stub.read_text(encoding="utf-8"))
        imported = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
        names = {alias.asname or alias.name for node in imported for alias in node.names}
        (exported,) = [node.value for node in tree.body if isinstance(node, ast.Assign)]
        assert {*ast.literal_eval(exported)} - {"__version__"} == names, stub


def test_the_type_checker_reads_the_whole_instrument_and_types_are_shipped():
    root = Path(__file__).parents[1]
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
    assert settings["files"] == ["psychometrics"]
    assert settings["strict"] is True
    assert (PACKAGE / "py.typed").is_file()


def test_commands_name_test_files_that_are_there():
    root = Path(__file__).parents[1]
    named = set(re.findall(r"tests/test_\w+\.py", (root / ".ci" / "run").read_text()))
    quick = re.search(r"^QUICK := (.+)$", (root / "Makefile").read_text(), re.M)[1]
    named |= {f"tests/test_{name}.py" for name in quick.split()}
    assert [name for name in sorted(named) if not (root / name).is_file()] == []


def test_lists_of_slow_and_smoke_tests_name_tests_that_are_there():
    files = list(Path(__file__).parent.rglob("test_*.py"))
    there = {path.stem.removeprefix("test_") for path in files}
    for path in files:
        there |= set(re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.M))
    slow = {name for names in IN_ALL.values() for name in names.split()}
    assert (slow | SMOKE) - there == set()
