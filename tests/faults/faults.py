"""Does to runs and stores what goes wrong, and counts what is lost: ``data/faults.csv``.

``python -m tests.faults [faults] [--times N] [--output file]`` (a quarter of an hour
of one processor core for N = 20) makes small models, kills real runs with SIGKILL at random moments
until each mode was hit N times, and lets drivers write to one store at once. Each finished store is
then compared, key by key, with that of an undisturbed run. Rows of other faults and engines in the
file stay: full disks and wrong clocks were injected in November 2026, and tests of the store have
both. ``killed_on_ray`` kills drivers and workers, in turns, on a Ray cluster of two machines that
are processes of this one, if Ray is installed.

Columns: ``fault, engine, mode``; ``runs`` begun and ``interrupted`` ones; answers that were
``lost`` (in the undisturbed store alone, or there once and gone after a kill), ``doubled`` (a key
twice, or a question asked again by a run that is not interrupted) and ``different`` (another value,
or answers that do not belong there); ``note``.

All is done in forked processes, so that a kill takes a run and nothing else.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib.util
import itertools
import json
import os
import pickle
import random
import signal
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from psychometrics.asking.ask import ask
from psychometrics.endpoints.endpoint import Endpoint
from psychometrics.models.loading import quietly
from psychometrics.modes import load_respondent
from psychometrics.modes.completions import mine
from psychometrics.paths import data_dir
from psychometrics.questionnaires import load_questionnaire
from psychometrics.store import StoredAnswers, compact, manifests
from psychometrics_book.studies.meaningless import null_model
from tests.conftest import _save_tiny_model
from tests.endpoint import Endpoint as ServedEndpoint
from tests.endpoint import served

if TYPE_CHECKING:
    import psutil
    from ray.cluster_utils import Cluster

COLUMNS = ["fault", "engine", "mode", "runs", "interrupted", "lost", "doubled", "different", "note"]
MODELS = ("one", "two", "three")
SMALL_ROUND = ("nli", "chat", "custom")
"""Modes whose runs are killed once in each round of the tests: prompts, an endpoint, a function."""
ASKED = ("challenges", "placebo_habits")
ON_RAY = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_raylet_start_wait_time_s": "200",  # read when Ray is imported
    # Not behind all else on this machine, and kept for the next run with what they imported.
    "RAY_worker_niceness": "0",
    "RAY_num_workers_soft_limit": "8",
    "RAY_idle_worker_killing_time_threshold_ms": "600000",
}
SMALL = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False}
_LIBRARIES = (
    "transformers.models.auto.modeling_auto",
    "transformers.models.bert.modeling_bert",
    "transformers.models.gpt2.modeling_gpt2",
    "psychometrics.modes.nli",
)
Row = dict[str, object]


# Processes


def _start(function: Callable, *given: object) -> tuple[int, int]:
    """Fork a process that runs a function; its id, and where its result will be read."""
    here, there = os.pipe()
    if not (child := os.fork()):
        try:
            os.close(here)
            result = pickle.dumps(function(*given))
            with os.fdopen(there, "wb") as pipe:
                pipe.write(result)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(there)
    return child, here


def _ended(process: tuple[int, int], kill: bool = False) -> tuple[bool, object]:
    """Whether a process came to its end by itself, and its result."""
    child, here = process
    if kill:
        os.kill(child, signal.SIGKILL)
    with os.fdopen(here, "rb") as pipe:
        content = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == -signal.SIGKILL:
        return False, None
    if code:
        raise RuntimeError(f"A run failed by itself, with status {code}.")
    return True, pickle.loads(content)


def _apart(function: Callable, *given: object) -> object:
    """The result of a function in a process of its own."""
    return _ended(_start(function, *given))[1]


def _runs(process: tuple[int, int]) -> bool:
    return os.waitid(os.P_PID, process[0], os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def _parts(store: Path) -> set[str]:
    return {name for _, _, names in os.walk(store) for name in names if name.startswith("v1-")}


def _until(process: tuple[int, int], store: Path, saves: int, seconds: float) -> None:
    """Wait for so many saves, then so many seconds; no longer than the process runs."""
    before = _parts(store)
    while saves and _runs(process) and len(_parts(store) - before) < saves:
        time.sleep(0.002)
    end = time.perf_counter() + seconds
    while _runs(process) and (left := end - time.perf_counter()) > 0:
        time.sleep(min(left, 0.005))


# What is asked


def _models(place: Path) -> None:
    """Save three classifiers, a masked and a causal model, small and with random weights."""
    from transformers import AutoConfig, AutoModelForMaskedLM

    with quietly():
        for seed, name in enumerate((*MODELS, "masked")):
            _save_tiny_model(place / name, seed=seed)
        model = AutoModelForMaskedLM.from_config(AutoConfig.from_pretrained(place / "masked"))
        model.save_pretrained(place / "masked")
    null_model(place, 3)


def _often() -> None:
    """Save at every batch, in small batches, and merge few parts: more that a kill can hit."""
    importlib.import_module("psychometrics.store.answers")._MANY_PARTS = 16
    importlib.import_module("psychometrics.store.answers")._SAVE_EVERY = 0.0
    importlib.import_module("psychometrics.modes.option_table")._PROMPTS = 4


@functools.cache
def _loaded(path: Path) -> object:
    respondent = load_respondent(path, dtype="float32")
    respondent.token_budget = 400
    return respondent


def _nli(store: Path, place: Path, questionnaires: tuple = ASKED, models: tuple = MODELS) -> int:
    _often()
    asked, loaded = 0, [load_questionnaire(name, texts=False) for name in questionnaires]
    for name in models:  # one after the other, as a population is asked
        respondent = _loaded(place / name)
        answers = ask(loaded, [respondent], store, progress=False)
        asked += answers.attrs["summary"]["asked"]
    return asked


def _options(store: Path, place: Path) -> int:
    _often()
    both = [place / "null-3", place / "one"]  # by its logits, and by entailment
    answers = ask("ipip20", both, store, "options", dtype="float32", progress=False)
    return answers.attrs["summary"]["asked"]


def _on_ray(store: Path, place: Path) -> int:
    import ray

    ray.init((place / "ray").read_text(), log_to_driver=False, logging_level="ERROR")
    models = [str(place / name) for name in MODELS]
    answers = ask(ASKED, models, store, dtype="float32", engine="ray", progress=False)
    return answers.attrs["summary"]["asked"]


def _completions(store: Path, place: Path) -> None:
    _often()
    templates = [f"I feel [M] {number}." for number in range(120)]
    importlib.import_module("psychometrics.modes.completions")._BATCH = 2
    mine(place / "masked", templates, 5, store=store, progress=False)


def _chat(store: Path, place: Path) -> None:
    endpoint = Endpoint((place / "url").read_text(), concurrency=4)
    how = {"endpoint": endpoint, "runs": 10, "batch_size": 2}
    ask("ipip20", ["model"], store, "chat", progress=False, **how)


def _custom(store: Path, place: Path) -> None:
    def respondent(prompt: list[dict]) -> str:
        with (place / "calls").open("a") as file:
            file.write("\n")
        time.sleep(0.02)
        reply = ServedEndpoint().completion({"model": "m", "messages": prompt})
        return reply["choices"][0]["message"]["content"]

    respondent.respondent_id = "function"
    ask("ipip20", [respondent], store, "custom", progress=False, runs=4, batch_size=2)


def _human(store: Path, _: Path) -> None:
    def read(_: str) -> str:
        time.sleep(0.05)
        return "3"

    ask("ipip20", ["ann"], store, "human", progress=False, read=read, write=str)


WAYS = {
    "nli": _nli, "options": _options, "completions": _completions, "chat": _chat, "custom": _custom,
    "human": _human,
}  # fmt: skip


def _serve(place: Path) -> None:
    """A chat endpoint that takes a while; it notes each request that it answers."""
    with served(delay=0.05, log=place / "calls") as server:
        (place / "url.new").write_text(server.url)
        (place / "url.new").rename(place / "url")
        threading.Event().wait()


def _two_machines() -> Cluster:
    """A Ray cluster of two machines of one processor each, which are processes of this one."""
    from ray.cluster_utils import Cluster

    machines = Cluster(initialize_head=True, head_node_args=SMALL)
    machines.add_node(**SMALL)
    machines.wait_for_nodes(float(ON_RAY["RAY_raylet_start_wait_time_s"]))
    return machines


def _workers(of: int | None = None) -> list[psutil.Process]:
    """Processes that do a task of Ray now, on machines that a process (this one) has started."""
    import psutil

    found = []
    for process in psutil.Process(of).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            found += [process] if "ray::_work" in " ".join(process.cmdline()) else []
    return found


def _machines(place: Path) -> None:
    """Have two machines until a file says that it is enough."""
    machines = _two_machines()
    (place / "ray.new").write_text(machines.address)
    (place / "ray.new").rename(place / "ray")
    while not (place / "enough").exists():
        time.sleep(0.05)
    machines.shutdown()


def _calls(place: Path) -> int:
    path = place / "calls"
    return path.stat().st_size if path.exists() else 0


# What is compared


def _content(store: Path | str) -> pd.DataFrame:
    """All rows of a store; people, whose keys hold the time, by item."""
    said, parts = manifests(store), []
    who = said[["mode", "questionnaire", "respondent_id"]].drop_duplicates()
    for mode, questionnaire, name in who.itertuples(index=False, name=None):
        rows = StoredAnswers(store, mode, questionnaire, name).rows.reset_index()
        if mode == "human":
            rows["key"] = rows["item_id"] + " " + rows["number"].astype(str)
        place = f"{mode}/{questionnaire}/{name}/"
        parts.append(rows.assign(key=place + rows["key"]).set_index("key"))
    rows = pd.concat(parts) if parts else pd.DataFrame()
    rows.attrs["answers"] = int(said["answers"].sum()) if len(said) else 0
    return rows


def _keys(store: Path | str) -> set[str]:
    return set(_content(store).index)


def _compared(store: Path | str, undisturbed: Path | str) -> dict[str, int]:
    """What a finished store has lost, doubled and otherwise than an undisturbed one."""
    found, expected = _content(store), _content(undisturbed)
    doubled = int(found.index.duplicated().sum()) + abs(found.attrs["answers"] - len(found))
    found = found[~found.index.duplicated()]
    common = expected.index.intersection(found.index)
    wrong = pd.Series(False, index=common)
    for name in expected.columns:
        a, b = expected.loc[common, name], found.loc[common].get(name)
        if b is None:
            wrong |= a.notna()
        elif pd.api.types.is_numeric_dtype(a) and pd.api.types.is_numeric_dtype(b):
            wrong |= ~np.isclose(
                a.astype(float), b.astype(float), rtol=0, atol=1e-6, equal_nan=True
            )
        else:
            wrong |= ~((a == b) | (a.isna() & b.isna()))
    return {
        "lost": len(expected.index.difference(found.index)),
        "doubled": doubled,
        "different": int(wrong.sum()) + len(found.index.difference(expected.index)),
    }


def _undisturbed(place: Path, mode: str = "nli") -> tuple[Path, float, int]:
    """The store of a run that nothing disturbs, its seconds, and how many requests it sent."""
    store, measured = place / "undisturbed" / mode, place / f"{mode}.json"
    if not measured.exists():
        calls, began = _calls(place), time.perf_counter()
        _apart(WAYS[mode], store, place)
        measured.write_text(json.dumps([time.perf_counter() - began, _calls(place) - calls]))
    return store, *json.loads(measured.read_text())


def _sent_again(sent: int, needed: int) -> str:
    """What the note says of requests, in modes that send any."""
    return f"; requests sent again: {sent - needed}" if needed else ""


def _row(fault: str, mode: str, note: str = "") -> Row:
    counts = dict.fromkeys(("runs", "interrupted", "lost", "doubled", "different"), 0)
    return {"fault": fault, "engine": "local", "mode": mode, **counts, "note": note}


def _add(row: Row, counts: dict[str, int]) -> None:
    for name, count in counts.items():
        row[name] += count


def _add_both(row: Row, store: Path, undisturbed: Path) -> None:
    """Compare a store, compact it, and compare again."""
    _add(row, _apart(_compared, store, undisturbed))
    _apart(compact, store)
    _add(row, _apart(_compared, store, undisturbed))


# Faults


def _kill_driver(run: tuple[int, int]) -> bool:
    os.kill(run[0], signal.SIGKILL)
    return False  # it may have ended before: its status tells


def _killed(
    place: Path,
    times: int,
    chance: random.Random,
    ways: dict[str, Callable] = WAYS,
    engine: str = "local",
    hit: Callable[[tuple[int, int]], bool] = _kill_driver,
) -> list[Row]:
    """Kill runs of each mode at random moments, again and again until they end."""
    rows, modes = [], list(ways) if times > 1 else [mode for mode in ways if mode in SMALL_ROUND]
    for mode in modes:
        way, row = ways[mode], _row("kill -9", mode) | {"engine": engine}
        undisturbed, seconds, needed = _undisturbed(place, mode)
        calls, stores = _calls(place), 0
        while row["interrupted"] < times:
            store, kept, done = place / f"killed-{engine}-{mode}-{stores}", set(), False
            stores += 1
            while not done:
                last, others = row["interrupted"] >= times, False
                run = _start(way, store, place)
                if not last:  # at any moment, mostly of those at which something is kept
                    saves = chance.choice((0, 1, 2, 5))
                    _until(run, store, saves, chance.uniform(0, 0.1 if saves else seconds))
                    others = hit(run)
                before = kept
                done, asked = _ended(run)
                row["runs"] += 1
                row["interrupted"] += others or not done
                kept = _apart(_keys, store)
                row["lost"] += len(before - kept)
                if done and asked is not None:  # no more than what was missing; less where
                    # workers of a driver that was killed have saved what they had in hand
                    row["doubled"] += max(0, asked - len(kept - before))
            _add(row, _apart(_compared, store, undisturbed))
        row["note"] = f"stores: {stores}"
        row["note"] += _sent_again(_calls(place) - calls, stores * needed)
        rows.append(row)
    return rows


def _killed_on_ray(place: Path, times: int, chance: random.Random) -> list[Row]:
    """Kill drivers and workers in turns; a run whose worker is killed goes on to its end."""
    if importlib.util.find_spec("ray") is None:
        print("killed_on_ray: Ray is not installed", flush=True)
        return []
    os.environ.update(ON_RAY)
    importlib.import_module("ray")
    machines = _start(_machines, place)
    while not (place / "ray").exists():
        time.sleep(0.05)
        if not _runs(machines):
            _ended(machines)
    hits = {"drivers": 0, "workers": 0}

    def hit(run: tuple[int, int]) -> bool:
        if hits["workers"] < hits["drivers"]:
            for process in _workers(machines[0])[:1]:
                process.kill()
                hits["workers"] += 1
                return True
            return False
        hits["drivers"] += _runs(run)
        return _kill_driver(run)

    try:
        rows = _killed(place, times, chance, {"nli": _on_ray}, "ray", hit)
    finally:
        (place / "enough").touch()
        _ended(machines)
    rows[0]["note"] += "; killed: " + ", ".join(f"{many} {who}" for who, many in hits.items())
    return rows


def _compact_for_ever(store: Path) -> None:
    while True:
        compact(store)
        time.sleep(0.05)


def _drivers(place: Path, times: int, chance: random.Random) -> list[Row]:
    """Let two and four drivers write to one store while one compacts and one is killed."""
    rows = []
    counts = (2, 4) if times > 1 else (2,)
    for mode, count in itertools.product(("nli", "chat"), counts):
        undisturbed, _, needed = _undisturbed(place, mode)
        row, stores = _row(f"{count} drivers at once", mode), max(1, times // 4)
        calls = _calls(place)
        for number in range(stores):
            store = place / f"drivers-{mode}-{count}-{number}"
            orders = [()] * count
            if mode == "nli" and number % 2:  # each begins with another model and questionnaire
                orders = [
                    (ASKED[:: (-1) ** who], MODELS[who % 3 :] + MODELS[: who % 3])
                    for who in range(count)
                ]
            compacting = _start(_compact_for_ever, store)
            running = [_start(WAYS[mode], store, place, *order) for order in orders]
            row["runs"] += count
            _until(running[0], store, 3, chance.uniform(0, 0.5))
            if not _ended(running[0], kill=True)[0]:
                row["interrupted"] += 1
                running[0] = _start(WAYS[mode], store, place, *orders[0])
                row["runs"] += 1
            for run in running:
                _ended(run)
            _ended(compacting, kill=True)
            _add_both(row, store, undisturbed)
        row["note"] = f"stores: {stores}, with another process that compacts"
        row["note"] += _sent_again(_calls(place) - calls, stores * needed)
        rows.append(row)
    return rows


FAULTS = {"killed": _killed, "killed_on_ray": _killed_on_ray, "drivers": _drivers}


def _write(rows: list[Row], path: Path) -> None:
    """Put rows into the table, in the place of those of the same faults, engines and modes."""
    table = pd.DataFrame(rows, columns=COLUMNS)
    by = ["fault", "engine", "mode"]
    if path.exists():
        table = pd.concat([pd.read_csv(path), table]).drop_duplicates(by, keep="last")
    table.to_csv(path, index=False)


def inject(named: list[str], times: int, output: Path, seed: int = 0) -> None:
    """Inject faults one after another, and write their rows."""
    # Once, and not in each process; nothing is computed here, so that forking is safe.
    for name in ("torch", "filelock", "aiohttp", *_LIBRARIES):
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        _apart(_models, place)
        server = _start(_serve, place)
        while not (place / "url").exists():
            time.sleep(0.01)
        try:
            for name in named:
                began = time.perf_counter()
                rows = FAULTS[name](place, times, random.Random(seed))
                _write(rows, output)
                took = time.perf_counter() - began
                print(pd.DataFrame(rows, columns=COLUMNS).to_string(index=False))
                print(f"{name}: {took:.0f} s", flush=True)
        finally:
            _ended(server, kill=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("faults", nargs="*", choices=[*FAULTS, []], metavar="fault")
    parser.add_argument("--times", type=int, default=20, help="how often each fault is to hit")
    parser.add_argument("--output", type=Path, default=data_dir() / "faults.csv")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    inject(given.faults or list(FAULTS), given.times, given.output, given.seed)
