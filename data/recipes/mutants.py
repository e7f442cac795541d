"""Check that the tests would notice a wrong number: ``make mutants``.

A mutant is a module with one change: another operator, comparison or constant, a negated condition,
or a dropped statement. A sample is drawn with a seed; each mutant must fail a doctest of its module
or a test of the files that use the module. Mutants run one after another in a copy of the project,
from an empty store and an empty cache. A test kills a mutant only if the unchanged code passes it.

Killed mutants are kept in ``runs/mutants.jsonl``, from which a stopped run resumes; survivors are
tried again. ``equivalent_mutants.csv`` lists the changes that make no difference to a result, with
the reason. The exit status is 1 if fewer than 90 % of the others are killed. A mutant takes about
half a minute on one processor core.
"""

from __future__ import annotations

import argparse
import ast
import csv
import difflib
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from psychometrics.files import digest_text

from .elsewhere import link_downloads

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "runs" / "mutants.jsonl"
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.csv")
MODULES = (
    "psychometrics/measures/*.py",
    "psychometrics/nulls/*.py",
    "psychometrics/store/*.py",
    "psychometrics/checks.py",
    "psychometrics/modes/replies.py",
    "psychometrics/modes/nli.py",
    "psychometrics/questionnaires/psychobench.py",
    "psychometrics/questionnaires/question_llm.py",
    "psychometrics/questionnaires/readers.py",
)
NEAR = {
    "checks": ["answers"],
    "folder": ["store"],
    "marginal_likelihood": ["irt"],
    "nli": ["respondents_nli"],
    "normalisation": ["scoring"],
    "psychobench": ["questionnaires", "library"],
    "question_llm": ["questionnaires", "library"],
    "readers": ["questionnaires", "library"],
    "replies": ["messages"],
    "structure": ["validity"],
    "urls": ["store"],
    "watching": ["store"],
}
"""Test files of modules without a test file of their own name."""
FAR = re.compile(
    r"test_(ask|authoring|chat_at_scale|diagnostic|explorers|families|improving|interventions"
    r"|profile|r|ray|respondents_\w+|tables)\.py"
)
"""Slow files that use nearly all modules, or need R: errors should be found by closer tests."""
WANTED = 0.9
"""Smallest share of killed mutants among those that are not equivalent."""
CPU_SECONDS = 150
"""Processor time of a test process; a mutant that exceeds it is killed if the code does not."""
WALL_SECONDS = 1800
"""Seconds after which a test counts as endless, even on a busy machine."""
MEMORY = 16 << 30
"""Bytes of address space, so that an array of the wrong size does not fill the memory."""

_SWAPS = {
    ast.Add: [ast.Sub], ast.Sub: [ast.Add], ast.Mult: [ast.Div], ast.Div: [ast.Mult],
    ast.FloorDiv: [ast.Mult], ast.Mod: [ast.Mult], ast.Pow: [ast.Mult], ast.MatMult: [ast.Mult],
    ast.BitAnd: [ast.BitOr], ast.BitOr: [ast.BitAnd], ast.And: [ast.Or], ast.Or: [ast.And],
    ast.Lt: [ast.LtE, ast.GtE], ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE], ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq], ast.NotEq: [ast.Eq], ast.In: [ast.NotIn], ast.NotIn: [ast.In],
    ast.Is: [ast.IsNot], ast.IsNot: [ast.Is], ast.USub: [ast.UAdd],
}  # fmt: skip


@dataclass(frozen=True)
class Place:
    """One possible change: a field of a node of the syntax tree, and its other value."""

    node: ast.AST
    field: str
    value: object
    line: int
    kind: str


@dataclass(frozen=True)
class Mutant:
    """A changed module: the place, the old source and the new one."""

    file: str
    line: int
    kind: str
    was: str
    becomes: str
    source: str


class Copy:
    """A copy of the project, in which tests are run on one changed module at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.scratch = folder / "scratch"
        self._passes: dict[tuple[str, ...], bool] = {}
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for name in filter(None, names.split("\0")):
            if (ROOT / name).is_file():
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.folder / name)

    def read(self, name: str) -> str:
        """Return the text of a file."""
        return (self.folder / name).read_text("utf-8")

    def outcome(self, mutant: Mutant, groups: list[list[str]]) -> tuple[str, str]:
        """Run groups of tests until one fails; return the outcome, and the test."""
        module = self.folder / mutant.file
        original = module.read_text("utf-8")
        for group in groups:
            refused: list[str] = []
            while True:
                module.write_text(mutant.source, "utf-8")
                failure = self._first_failure(group, refused)
                module.write_text(original, "utf-8")

                if failure == "":
                    break

                suspects = group if failure == "time" else [failure]
                if self._passed(suspects):
                    return ("timed out", group[0]) if failure == "time" else ("killed", failure)
                if failure == "time" or failure in refused:
                    break

                refused.append(failure)

        return "survived", ""

    def _passed(self, tests: list[str]) -> bool:
        """Return whether the unchanged code passes tests."""
        key = tuple(tests)
        if key not in self._passes:
            self._passes[key] = self._first_failure(tests, []) == ""
            if not self._passes[key]:
                print(f"{tests[0]}: fails without a mutant; left out.", flush=True)
        return self._passes[key]

    def _first_failure(self, tests: list[str], left_out: list[str]) -> str:
        """Return the first test that fails, or "time" for too long a run."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        shutil.rmtree(self.folder / ".hypothesis", ignore_errors=True)
        (self.scratch / "tmp").mkdir(parents=True)

        options = ["-x", "-q", "-rfE", "-p", "no:cacheprovider", "-n0", "--timeout=0"]
        options += ["--hypothesis-seed=0", f"--basetemp={self.scratch / 'tests'}"]
        options += [f"--deselect={test}" for test in left_out]
        command = [sys.executable, "-m", "pytest", *options, *tests]
        settings = {
            "cwd": self.folder,
            "env": os.environ | _surroundings(self.folder, self.scratch),
        }
        settings |= {"timeout": WALL_SECONDS, "preexec_fn": _limit_resources}
        try:
            run = subprocess.run(command, check=False, capture_output=True, text=True, **settings)
        except subprocess.TimeoutExpired:
            return "time"

        if run.returncode < 0:  # ended by the limit of processor time
            return "time"
        if run.returncode in (0, 5):  # passed, or no test was collected
            return ""

        failure = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", run.stdout, re.MULTILINE)
        return failure[1] if failure else tests[0]


def _limit_resources() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def _surroundings(copy: Path, scratch: Path) -> dict[str, str]:
    """Return the environment of tests, in which nothing that a mutant writes survives."""
    link_downloads(scratch / "cache" / "psychometrics")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return {
        "PYTHONPATH": os.pathsep.join(str(copy / part) for part in ("", "book", "data")),
        "PYTHONDONTWRITEBYTECODE": "1",  # a mutant may be as old and as long as the original
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PSYCHOMETRICS_STORE": str(scratch / "store"),
        "XDG_CACHE_HOME": str(scratch / "cache"),
        "HF_HOME": os.environ.get("HF_HOME") or str(home / "huggingface"),
        "TMPDIR": str(scratch / "tmp"),
    }


def places(tree: ast.Module) -> Iterator[Place]:
    """Yield the possible changes of a module, in the order of its source."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        yield from _places(node)
        todo += reversed(list(_children(node)))


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node that compute something, not annotations, decorators or messages."""
    if isinstance(node, ast.JoinedStr | ast.Raise):
        return
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        parts = value if isinstance(value, list) else [value]
        yield from (part for part in parts if isinstance(part, ast.AST))


def _places(node: ast.AST) -> Iterator[Place]:
    """Yield the changes of one node, without the changes of its parts."""
    line = getattr(node, "lineno", 0)
    match node:
        case ast.BinOp(left=left) if _is_text(left) or _is_text(node.right):
            return
        case ast.BinOp(op=operator) | ast.BoolOp(op=operator) | ast.UnaryOp(op=operator):
            for other in _SWAPS.get(type(operator), []):
                yield Place(node, "op", other(), line, "operator")
            if isinstance(operator, ast.Not):
                yield Place(node, "operand", _negated(node.operand), line, "condition")
        case ast.Compare():
            for i, operator in enumerate(node.ops):
                for other in _SWAPS[type(operator)]:
                    changed = [*node.ops[:i], other(), *node.ops[i + 1 :]]
                    yield Place(node, "ops", changed, line, "comparison")
        case ast.Constant(value=bool()):
            yield Place(node, "value", not node.value, line, "constant")
        case ast.Constant(value=int() | float()):
            yield Place(node, "value", node.value + 1, line, "constant")
        case ast.If() | ast.IfExp() | ast.While():
            yield Place(node, "test", _negated(node.test), line, "condition")
        case ast.comprehension(ifs=[_, *_]):
            yield Place(node, "ifs", [], node.target.lineno, "condition")

    for field in ("body", "orelse"):
        block = getattr(node, field, None)
        if not isinstance(block, list):
            continue

        for i, statement in enumerate(block):
            if _can_be_dropped(statement):
                shorter = [*block[:i], ast.Pass(), *block[i + 1 :]]
                yield Place(node, field, shorter, statement.lineno, "statement")


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", None), str)


def _negated(node: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), node)


def _can_be_dropped(statement: ast.stmt) -> bool:
    """Return whether the module may still run without a statement, other than a docstring."""
    if isinstance(statement, ast.Expr):
        return not isinstance(statement.value, ast.Constant)
    without_else = isinstance(statement, ast.If) and not statement.orelse
    return without_else or isinstance(statement, ast.AugAssign | ast.Raise | ast.Delete)


def draw(read: Callable[[str], str], files: list[str], number: int, seed: int) -> list[Mutant]:
    """Draw mutants of files; a larger number adds to the mutants of a smaller one."""
    trees = {file: ast.parse(read(file)) for file in files}
    every = [(file, place) for file, tree in trees.items() for place in places(tree)]
    random.Random(seed).shuffle(every)
    print(
        f"{len(every)} possible mutants; {min(number, len(every))} drawn, seed {seed}", flush=True
    )
    return [_mutant(file, trees[file], place) for file, place in every[:number]]


def _mutant(file: str, tree: ast.Module, place: Place) -> Mutant:
    """Return a module with one change, leaving the tree unchanged."""
    before = ast.unparse(tree)
    value = getattr(place.node, place.field)
    setattr(place.node, place.field, place.value)
    after = ast.unparse(tree)
    setattr(place.node, place.field, value)

    lines = list(difflib.unified_diff(before.split("\n"), after.split("\n"), n=0, lineterm=""))[3:]
    was, becomes = (
        " ".join(line[1:].strip() for line in lines if line[0] == sign) for sign in "-+"
    )

    return Mutant(file, place.line, place.kind, was, becomes, after)


def covering(copy: Copy, file: str) -> list[list[str]]:
    """Return groups of tests of a module: doctests and its own file first, then shorter files."""
    *_, room, name = Path(file).with_suffix("").parts
    front = copy.read("psychometrics/__init__.pyi")
    public = re.findall(rf"^from \.{room}\.{name} import (.+)$", front, re.MULTILINE)
    names = [name, *", ".join(public).split(", ")] if public else [name]
    uses = re.compile(
        rf"psychometrics\.{room}\.{name}\b|\bpm\.({'|'.join(names)})\b"
        rf"|from psychometrics\.{room} import \(?[^()\n]*\b{name}\b"
    )
    own = [f"tests/test_{stem}.py" for stem in [name, *NEAR.get(name, [])]]
    files = sorted((copy.folder / "tests").glob("test_*.py"), key=lambda path: path.stat().st_size)
    near = [path for path in files if not FAR.fullmatch(path.name)]
    others = [f"tests/{path.name}" for path in near if uses.search(path.read_text("utf-8"))]
    own = [test for test in own if (copy.folder / test).is_file()]

    return [[file, *own], *([test] for test in others if test not in own)]


def _try(copy: Copy, mutant: Mutant) -> tuple[str, str]:
    """Return the outcome of a mutant and the test that killed it, from an earlier run if kept."""
    key = [digest_text(copy.read(mutant.file)), str(mutant.line), mutant.was, mutant.becomes]
    rows = RESULTS.read_text("utf-8").splitlines() if RESULTS.is_file() else []
    for row in map(json.loads, rows):
        if row["key"] == key:
            return row["outcome"], row["test"]

    outcome, test = copy.outcome(mutant, covering(copy, mutant.file))
    if outcome != "survived":
        RESULTS.parent.mkdir(exist_ok=True)
        with RESULTS.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": key, "outcome": outcome, "test": test}) + "\n")

    return outcome, test


def _equivalent() -> set[tuple[str, str, str]]:
    """Return the changes that make no difference."""
    with EQUIVALENT.open(encoding="utf-8", newline="") as file:
        return {(row["file"], row["was"], row["becomes"]) for row in csv.DictReader(file)}


def _main() -> int:
    parser = argparse.ArgumentParser(prog="python -m recipes.mutants")
    parser.add_argument("--number", type=int, default=200, help="mutants to draw")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", nargs="+", default=list(MODULES), help="patterns of modules")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    survivors = []
    equivalent = _equivalent()

    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Copy(Path(folder))
        chosen = {path for pattern in options.files for path in copy.folder.glob(pattern)}
        files = sorted(str(path.relative_to(copy.folder)) for path in chosen)
        for mutant in draw(copy.read, files, options.number, options.seed):
            outcome, test = _try(copy, mutant)
            place = f"{mutant.file}:{mutant.line}"
            change = f"{mutant.was}  ->  {mutant.becomes or 'dropped'}"
            if outcome == "survived" and (mutant.file, mutant.was, mutant.becomes) in equivalent:
                outcome = "equivalent"

            if outcome == "survived":
                survivors.append(f"{place}: {change}")

            counts[outcome] += 1
            print(outcome, place, change, test, sep="\t", flush=True)

    killed = counts["killed"] + counts["timed out"]
    judged = killed + counts["survived"]
    print(*(f"{number} {name}" for name, number in counts.items()), sep=", ")
    print(
        f"{killed} of {judged} non-equivalent mutants were killed. Survivors:", *survivors, sep="\n"
    )

    return 0 if killed >= WANTED * judged else 1


if __name__ == "__main__":
    sys.exit(_main())
