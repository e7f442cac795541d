"""Check that the tests would notice a wrong number: ``make mutants``.

A mutant is a module with one change: another operator, comparison or constant, a negated condition,
or a dropped statement. A sample is drawn with a seed; each mutant must fail a doctest of its module
or a test of the files that use the module. Mutants run one after another in a copy of the project,
from an empty store and an empty cache. A test kills a mutant only if the unchanged code passes it.

Results are kept in ``runs/mutants.jsonl``, from which a stopped run resumes. Survivors are tried
again when their tests have changed. ``equivalent_mutants.csv`` lists the changes that make no
difference to a result, with the reason. The exit status is 1 if fewer than 90 % of the others are
killed. A mutant takes about half a minute on one processor core.
"""

from __future__ import annotations

import argparse
import ast
import csv
import difflib
import hashlib
import importlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

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
    "conditional_likelihood": ["irt"],
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
# Forked tests find these modules in memory, which saves each of them seconds. The project's own
# modules are not among them, because a mutant must be imported afresh.
_LIBRARIES = (
    "filelock", "numpy", "pandas", "pingouin", "pyarrow.parquet", "pydantic", "scipy.optimize",
    "scipy.stats", "sklearn", "statsmodels.api", "torch",
)  # fmt: skip


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


@dataclass(frozen=True)
class Result:
    """The outcome of a mutant: killed (by a test), timed out, or survived."""

    file: str
    line: int
    kind: str
    was: str
    becomes: str
    outcome: str
    test: str
    seconds: float
    module: str
    tests: str


class _FirstFailure:
    """A pytest plugin that remembers the first test that failed."""

    def __init__(self) -> None:
        self.test = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.test:
            self.test = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.test:
            self.test = report.nodeid


class Copy:
    """A copy of the project, in which tests are run on one changed module at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.scratch = folder / "scratch"
        self._passes: dict[tuple[str, ...], bool] = {}
        self._writes = 0
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
        original = self.read(mutant.file)
        for group in groups:
            refused: list[str] = []
            while True:
                self._write(mutant.file, mutant.source)
                failure = self._failure(group, refused)
                self._write(mutant.file, original)

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
            self._passes[key] = self._failure(tests, []) == ""
            if not self._passes[key]:
                print(f"{tests[0]}: fails without a mutant; left out.", flush=True)
        return self._passes[key]

    def _write(self, name: str, source: str) -> None:
        """Write a module with a new time stamp, since it distinguishes compiled files."""
        path = self.folder / name
        path.write_text(source, "utf-8")
        self._writes += 1
        later = time.time() + 2 * self._writes
        os.utime(path, (later, later))

    def _failure(self, tests: list[str], left_out: list[str]) -> str:
        """Return the first test that fails in a separate process, or "time" for too long a run."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        shutil.rmtree(self.folder / ".hypothesis", ignore_errors=True)
        (self.scratch / "tmp").mkdir(parents=True)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                self._run(tests, left_out)
                status = 0
            finally:
                if status:
                    traceback.print_exc()

                sys.stderr.flush()
                os._exit(status)

        end = time.monotonic() + WALL_SECONDS
        while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
            if time.monotonic() > end:
                os.killpg(child, signal.SIGKILL)

            time.sleep(0.1)

        if os.WIFSIGNALED(ended[1]):
            return "time"
        if ended[1]:
            raise RuntimeError(f"{tests[0]}: {(self.scratch / 'log').read_text('utf-8')}")

        return (self.scratch / "failure").read_text("utf-8")

    def _run(self, tests: list[str], left_out: list[str]) -> None:
        """Run tests in this process, which ends with them."""
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        log = os.open(self.scratch / "log", os.O_WRONLY | os.O_CREAT)

        for stream in (1, 2):
            os.dup2(log, stream)

        os.environ |= _surroundings(self.folder, self.scratch)
        tempfile.tempdir = None
        os.chdir(self.folder)
        sys.path[:] = [str(self.folder), *(p for p in sys.path if p not in ("", str(ROOT)))]

        first = _FirstFailure()
        options = ["-x", "-q", "-p", "no:cacheprovider", "-n0", "--timeout=0", "--durations=0"]
        options += ["-Wignore::pytest.PytestAssertRewriteWarning"]  # of libraries in memory
        options += ["--hypothesis-seed=0", f"--basetemp={self.scratch / 'tests'}"]
        options += [f"--deselect={test}" for test in left_out]
        status = pytest.main([*options, *tests], plugins=[first])
        broken = status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        text = first.test or tests[0] if broken else ""
        (self.scratch / "failure").write_text(text, "utf-8")


def _surroundings(copy: Path, scratch: Path) -> dict[str, str]:
    """Return the environment of tests, in which nothing that a mutant writes survives."""
    cache = scratch / "cache" / "psychometrics"
    cache.mkdir(parents=True)
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")

    for downloads in ("external", "mirror", "models"):
        if (home / "psychometrics" / downloads).is_dir():
            (cache / downloads).symlink_to(home / "psychometrics" / downloads)

    return {
        "PYTHONPATH": str(copy),
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


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def _kept() -> dict[tuple[str, ...], Result]:
    """Return earlier results by their mutants and tests."""
    if not RESULTS.is_file():
        return {}
    rows = [Result(**json.loads(line)) for line in RESULTS.read_text("utf-8").splitlines()]
    return {(row.module, row.was, row.becomes, str(row.line)): row for row in rows}


def _result(copy: Copy, mutant: Mutant, kept: dict[tuple[str, ...], Result]) -> Result:
    """Return the outcome of a mutant, from an earlier run if nothing has changed since."""
    groups = covering(copy, mutant.file)
    names = sorted({test for group in groups for test in group})
    module = _digest(mutant.file, copy.read(mutant.file))
    tests = _digest(*map(copy.read, names))
    earlier = kept.get((module, mutant.was, mutant.becomes, str(mutant.line)))

    if earlier and (earlier.outcome != "survived" or earlier.tests == tests):
        return earlier

    began = time.perf_counter()
    outcome, test = copy.outcome(mutant, groups)
    fields = {key: value for key, value in vars(mutant).items() if key != "source"}
    seconds = round(time.perf_counter() - began, 1)
    result = Result(
        **fields, outcome=outcome, test=test, seconds=seconds, module=module, tests=tests
    )
    RESULTS.parent.mkdir(exist_ok=True)

    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(result)) + "\n")

    return result


def _equivalent() -> dict[tuple[str, str, str], str]:
    """Return the reasons why some changes make no difference."""
    if not EQUIVALENT.is_file():
        return {}
    with EQUIVALENT.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {(row["file"], row["was"], row["becomes"]): row["why"] for row in rows}


def _main() -> int:
    parser = argparse.ArgumentParser(prog="python -m recipes.mutants")
    parser.add_argument("--number", type=int, default=200, help="mutants to draw")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", nargs="+", default=list(MODULES), help="patterns of modules")
    options = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}

    for library in _LIBRARIES:
        importlib.import_module(library)

    counts = dict.fromkeys(("killed", "timed out", "equivalent", "survived"), 0)
    survivors = []
    equivalent = _equivalent()

    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Copy(Path(folder))
        chosen = {path for pattern in options.files for path in copy.folder.glob(pattern)}
        files = sorted(str(path.relative_to(copy.folder)) for path in chosen)
        kept = _kept()

        for mutant in draw(copy.read, files, options.number, options.seed):
            result = _result(copy, mutant, kept)
            place = f"{mutant.file}:{mutant.line}"
            change = f"{mutant.was}  ->  {mutant.becomes or 'dropped'}"
            outcome = result.outcome
            if outcome == "survived" and (mutant.file, mutant.was, mutant.becomes) in equivalent:
                outcome = "equivalent"

            if outcome == "survived":
                survivors.append(f"{place}: {change}")

            counts[outcome] += 1
            print(outcome, place, change, result.test, f"{result.seconds} s", sep="\t", flush=True)

    killed = counts["killed"] + counts["timed out"]
    judged = killed + counts["survived"]
    print(*(f"{number} {name}" for name, number in counts.items()), sep=", ")
    print(
        f"{killed} of {judged} non-equivalent mutants were killed. Survivors:", *survivors, sep="\n"
    )

    return 0 if killed >= WANTED * judged else 1


if __name__ == "__main__":
    sys.exit(_main())
