"""How time, memory and the store grow with what is asked; each size in a process of its own.

Who answers is computed from the prompt in no time, so that what is measured is the bookkeeping.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from psychometrics.exceptions import PsychometricsError

from .rows import OURS, peak_mb, row

SIZES = {
    "prompts": (1_000, 10_000, 100_000, 1_000_000),
    "models": (1, 10, 50, 200),
    "answers of people": (10_000, 100_000, 1_000_000, 10_000_000),
    "stored answers": (100_000, 1_000_000, 10_000_000),
    "respondents × items": (100_000, 1_000_000, 10_000_000, 100_000_000),
}
"""What is made larger, in steps; answers of people and tables are respondents times items."""


def growth(largest: int = 1_000_000, repetitions: int = 1) -> list[dict]:
    """Rows of the steps of each task, at each size.

    Parameters
    ----------
    largest : int
        Most prompts; ten times as many answers of people, and a hundred times as large a table of
        respondents by items. A million is the whole of :data:`SIZES`.
    repetitions : int
    """
    most = {"prompts": largest, "models": 200, "answers of people": 10 * largest,
            "stored answers": 10 * largest, "respondents × items": 100 * largest}  # fmt: skip
    rows = []
    for what, sizes in SIZES.items():
        for size in sizes:
            if size > most[what]:
                continue
            for number in range(repetitions):
                rows += [
                    row("growth", f"{what}: {one.pop('task')}", size, OURS, one.pop("seconds"),
                        repetition=number + 1, **one)
                    for one in _measured(what, size)
                ]  # fmt: skip
    return rows


def _measured(what: str, size: int) -> list[dict]:
    """What a child process tells of a size."""
    command = [sys.executable, "-m", __name__, what, str(size)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise PsychometricsError(f"{what} of {size:,} could not be measured: {last[:300]}")
    return json.loads(done.stdout.splitlines()[-1])


class _Computed:
    """A respondent whose answers are a digest of the prompt."""

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.identity = {
            "respondent_id": f"computed-{number}", "source": "computed", "model": "crc",
            "revision": None, "mode": "nli", "dtype": "float32", "fingerprint": f"crc-{number}",
            "device": "cpu",
        }  # fmt: skip

    def batches(self, pairs: Sequence[tuple[str, str]]) -> Iterator[tuple[list, np.ndarray]]:
        """All prompts at once, as a quick model's batches are large."""
        from zlib import crc32

        pairs = sorted(set(pairs))
        seeds = np.array([crc32(f"{self.number} {p} {h}".encode()) for p, h in pairs])
        first = (seeds % 1009 + 1) / 1011.0
        values = np.stack([first, (1 - first) / 3, (1 - first) * 2 / 3], axis=1)
        yield pairs, values.astype("float32")

    def answer(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """In the order of the pairs."""
        known = {pair: row for done, rows in self.batches(pairs)
                 for pair, row in zip(done, rows, strict=True)}  # fmt: skip
        return np.array([known[pair] for pair in pairs])


def _prompts(size: int) -> Iterator[tuple[str, Callable]]:
    """A questionnaire of so many prompts, 48 an item, put to one respondent."""
    questionnaire = _long(size)
    yield from _asked(questionnaire, [_Computed()])


def _models(size: int) -> Iterator[tuple[str, Callable]]:
    """GAD-7 put to so many models."""
    from psychometrics.questionnaires import load_questionnaire

    yield from _asked(load_questionnaire("gad7"), [_Computed(number) for number in range(size)])


def _asked(questionnaire, respondents: list) -> Iterator[tuple[str, Callable]]:
    from psychometrics.asking.ask import ask
    from psychometrics.measures.scoring import item_scores
    from psychometrics.questionnaires.prompts import prompts

    kept = {}
    store = tempfile.TemporaryDirectory()

    def put() -> dict:
        kept["answers"] = ask(questionnaire, respondents, store=store.name, progress=False)
        files = [file for file in Path(store.name).rglob("*") if file.is_file()]
        return {"store_mb": sum(file.stat().st_size for file in files) / 1e6}

    yield "prompt table", lambda: _drop(prompts(questionnaire))
    yield "asked and stored", put
    yield "read from the store", put
    yield "item scores", lambda: _drop(item_scores(kept["answers"]))
    store.cleanup()


def _people(size: int) -> Iterator[tuple[str, Callable]]:
    """IPIP-50 answered by simulated people: so many answers."""
    from psychometrics.asking.ask import ask
    from psychometrics.measures.scoring import scale_scores

    kept = {}

    def put() -> None:
        people = max(2, size // 50)
        kept["answers"] = ask("ipip50", people, mode="simulated", progress=False)

    yield "simulated and put together", put
    yield "scale scores", lambda: _drop(scale_scores(kept["answers"]))


def _stored(size: int) -> Iterator[tuple[str, Callable]]:
    """Three questionnaires put to models, 50 at a time, and read from the store as often."""
    from psychometrics.asking.ask import ask
    from psychometrics.measures import irt, reliability
    from psychometrics.measures.scoring import item_scores, keyed_items, scale_scores
    from psychometrics.questionnaires import load_questionnaire
    from psychometrics.questionnaires.prompts import prompts

    questionnaires = [load_questionnaire(name) for name in ("gad7", "phq9", "soc13")]
    prompts_each = sum(len(prompts(questionnaire)) for questionnaire in questionnaires)
    models, kept = [_Computed(number) for number in range(size // prompts_each)], {}
    store = tempfile.TemporaryDirectory()

    def tables() -> Iterator[pd.DataFrame]:
        for first in range(0, len(models), 50):
            some = models[first : first + 50]
            yield ask(questionnaires, some, store=store.name, progress=False)

    def alphas() -> None:
        kept["items"] = keyed_items(map(item_scores, tables()), questionnaires[-1])
        reliability.alpha(kept["items"])

    yield "asked, table by table", lambda: _drop(sum(map(len, tables())))
    yield "scale scores, table by table", lambda: _drop(scale_scores(tables()))
    yield "alpha, table by table", alphas
    yield "Rasch", lambda: _drop(irt.fit((kept["items"] > 0).astype(float)))
    store.cleanup()


def _tables(size: int) -> Iterator[tuple[str, Callable]]:
    """A table of 0/1 answers, of a hundred times as many respondents as items."""
    from psychometrics.measures import items, reliability

    number = max(10, round(np.sqrt(size / 100)))
    rng = np.random.default_rng(1)
    ability = rng.normal(size=(size // number, 1)).astype("float32")
    drawn = rng.random((size // number, number), dtype="float32")
    chance = 1 / (1 + np.exp(-ability + rng.normal(size=number).astype("float32")))
    answers = pd.DataFrame((drawn < chance).astype("float64")).add_prefix("item")
    del drawn, chance
    yield "Cronbach's alpha", lambda: _drop(reliability.alpha(answers))
    yield "item-rest correlations", lambda: _drop(items.item_rest(answers))


def _drop(_: object) -> None:
    """Keep nothing: memory is that of the step."""


def _long(size: int):
    """A questionnaire of so many prompts: GAD-7's first templates with numbers in them."""
    from psychometrics.questionnaires import load_questionnaire

    given = load_questionnaire("gad7")
    items = []
    for number in range(max(1, round(size / 48))):
        item = given.items[number % len(given.items)]
        first = item.templates[0]
        first = first.model_copy(update={"premise": f"On day {number}: {first.premise}"})
        items.append(item.model_copy(update={"id": f"item_{number}", "templates": [first]}))
    return given.model_copy(update={"id": "long", "items": items, "scales": [], "norms": []})


_TASKS = {"prompts": _prompts, "models": _models, "answers of people": _people,
          "stored answers": _stored, "respondents × items": _tables}  # fmt: skip


def _main(what: str, size: int) -> None:
    import pingouin  # noqa: F401

    found = []
    for task, step in _TASKS[what](size):
        began = time.perf_counter()
        gave = step() or {}
        took = time.perf_counter() - began
        found.append({"task": task, "seconds": took, "memory_mb": peak_mb(), **gave})
    print(json.dumps(found))


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]))
