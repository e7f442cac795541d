"""Put questionnaires to respondents on the machines of a Ray cluster (``engine="ray"``).

Each model is a task, one with very many prompts several. A task asks for processors, memory and,
where the cluster has any, a share of a GPU by the model's size, loads the model on whichever
machine has room, and writes into the store itself; the driver then reads all answers from there,
as it reads those that were asked before. So what is returned is what the local engine returns, and
a run that is stopped, on whichever side, goes on where it was.

A task whose process or machine is lost is tried again, twice at most, on another machine where
there is one; what it had stored is not asked again. A respondent that cannot answer on one machine
is tried on another, and what is said there is then its reason.

Ray is imported here alone, and only when something is asked.
"""

from __future__ import annotations

import importlib.util
import math
import os
import re
import threading
import time
import uuid
import warnings
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..exceptions import ParameterError, PsychometricsError, RespondentError, StoreError
from ..models.packed import SMOLLM2
from ..models.sources import find
from ..modes import mode_named
from ..modes.mode import Mode
from ..modes.prompting import CHUNK, PromptMode
from ..questionnaires import Questionnaire
from ..questionnaires.prompts import prompts
from .failures import told
from .progress import Progress
from .store import open_answers, resolved

PER_TASK = 40 * CHUNK
"""Prompts of one task at most; whole chunks, so that they are asked in the same company."""
TRIES = 3
TICK = 0.25
"""Seconds between two looks at how far a task has come."""
_TRAVELLING = ("embedded", "local", "adapter", "packed", "hub")
_PER_CPU, _MOST_CPUS = 50e6, 8
"""Parameters for which a processor is asked, and the most that one task asks for."""
_UNKNOWN = 500e6  # parameters, where nothing tells how many
_GPU = 16 * 2**30  # bytes that a GPU is taken to have at least
Counts = tuple[int, int, int, int]
"""What :attr:`psychometrics.asking.progress.Progress.counts` is."""
_ROOM = 2**30  # bytes beside the weights: libraries, and what is computed


def asked(
    questionnaires: list[Questionnaire],
    who: list[tuple[dict, object, Mode]],
    store: str | Path | None,
    bar: Progress,
    address: str | None = None,
    **conditions: object,
) -> dict[str, object]:
    """Ask those respondents on a cluster who are models that can be loaded there.

    Parameters
    ----------
    questionnaires : list of Questionnaire
    who : list of (identity, respondent, mode)
        As :func:`psychometrics.asking.ask` identifies them.
    store : str or Path, optional
        Folder that all machines share, or URL.
    bar : Progress
        Shows how far all have come together.
    address : str, optional
        Of a running cluster, such as ``"10.0.0.1:6379"``; by default the one that ``RAY_ADDRESS``
        names or that runs here, else this machine is made one. ``"local"`` does so in any case.
    **conditions
        Of the mode.

    Returns
    -------
    dict
        For each respondent that was asked there, by its name, what stands in its place when its
        answers are read from the store: it can be asked nothing, and says why.

    Raises
    ------
    ParameterError
        Ray is not installed, there is no cluster at the address, or nobody can be asked there.
    StoreError
        The store cannot be written to, or is not the same for all machines.
    """
    open_answers(store, "nli", "", "")  # refuses what cannot be opened
    place = resolved(store)
    if place.startswith("memory:"):
        raise StoreError(
            f"{place} is one process's own memory, and a cluster has many: name a folder that all "
            "machines share, or a URL such as s3://bucket/answers, in PSYCHOMETRICS_STORE."
        )
    away = [one for one in who if _travels(*one[:2])]
    if who and not away:
        raise ParameterError(
            "None of these respondents is a model that a cluster could load (people, functions, "
            "endpoints and what is loaded already stay here): leave engine='ray' out."
        )
    if not importlib.util.find_spec("ray"):
        raise ParameterError(
            "engine='ray' needs Ray, which is not installed: run "
            "`pip install 'psychometrics-of-language-models[ray]'`, or leave it out."
        )
    failed, tasks, stored = {}, [], []
    for identity, respondent, how in away:
        counts = _stored(questionnaires, identity, how, place, conditions)
        stored += counts or []
        tasks += [] if counts else _tasks(questionnaires, identity, respondent, how)
    bar.puts += len(stored) + sum(len(task.jobs) for task in tasks)
    bar.puts -= len(away) * len(questionnaires)
    bar.gather(stored)
    if tasks:
        begun = _connected(address)
        mark = _marked(place)
        try:
            failed = _run(tasks, stored, place, mark, bar, conditions)
        finally:
            if mark:
                Path(mark).unlink(missing_ok=True)
            if begun:
                import ray

                ray.shutdown()
    missing = StoreError(
        f"Answers that a machine of the cluster has written are not in {place}: name a folder that "
        "all machines share in PSYCHOMETRICS_STORE; if they do share it, run it again, as a "
        "network's disk may show a file late."
    )
    names = [identity["respondent_id"] for identity, *_ in away]
    return {name: _Stored(failed.get(name, missing)) for name in names}


class _Stored:
    """Stands for a respondent whose answers are in the store; asked, it says why they are not."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def answer(self, *_: object, **__: object) -> None:
        raise self._error

    batches = replies = __call__ = answer


@dataclass
class _Task:
    """Questionnaires, or a part of one's prompts, that one respondent is asked on one machine."""

    identity: dict
    respondent: str | Path
    mode: str
    jobs: list[tuple[Questionnaire, slice]]
    parameters: float
    tries: int = 0
    nodes: list[str] = field(default_factory=list)  # where it was tried
    node: str = ""  # where it runs
    needs: dict = field(default_factory=dict)
    counts: list[Counts] = field(default_factory=list)  # of each job
    kept: dict[int, tuple[int, int]] = field(default_factory=dict)  # of each: try, and in the store

    def see(self, counts: list[Counts]) -> None:
        """Take note of how far it has come."""
        self.counts = counts
        for job, (begun, _, kept, _) in enumerate(counts):
            if begun and self.kept.setdefault(job, (self.tries, 0))[0] == self.tries:
                self.kept[job] = self.tries, kept

    def total(self) -> Iterator[Counts]:
        """Counts of each job; what an earlier try had asked counts as asked, not as stored."""
        for job, (begun, expected, kept, asked) in enumerate(self.counts):
            before = self.kept[job][1] if begun else 0
            yield begun, expected, before, kept + asked - before


def _stored(
    questionnaires: list[Questionnaire], identity: dict, how: Mode, place: str, conditions
) -> list[Counts] | None:
    """Counts of each questionnaire if the store has all answers, so that nothing is to be done."""
    bars = [Progress(disable=True) for _ in questionnaires]
    nobody = _Stored(RespondentError("It would have to be asked."))
    try:
        for questionnaire, bar in zip(questionnaires, bars, strict=True):
            how.answer(questionnaire, nobody, identity, place, bar, **conditions)
    except RespondentError:
        return None
    return [bar.counts for bar in bars]


def _travels(identity: dict, respondent: object) -> bool:
    return isinstance(respondent, str | Path) and identity.get("source") in _TRAVELLING


def _connected(address: str | None) -> bool:
    """Connect to a cluster; whether that was done here."""
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "120")  # read when Ray is imported
    import ray

    if ray.is_initialized():
        return False
    if str(address).startswith("ray://"):
        raise ParameterError(
            f"{address} is a Ray Client's address: run this on a machine of the cluster and give "
            "the address that `ray start` printed, such as 10.0.0.1:6379."
        )
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    quiet = {"log_to_driver": False, "logging_level": "ERROR", "include_dashboard": False}
    try:
        ray.init(address=address, **quiet)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise ParameterError(
            f"There is no Ray cluster at {address or 'the address in RAY_ADDRESS'} "
            f"({' '.join(str(error).split())[:200]}): start one with `ray start --head`, or leave "
            "the address out."
        ) from error
    return True


def _marked(place: str) -> str | None:
    """A file in a store that is a folder, for each machine to see that it is the same there."""
    folder = re.sub(r"^file://", "", place)
    if "://" in folder:
        return None
    path = Path(folder, f".{uuid.uuid4().hex}.seen")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be written to ({error.strerror}): give access to it, or name another "
            "folder in PSYCHOMETRICS_STORE."
        ) from error
    return str(path)


def _tasks(
    questionnaires: list[Questionnaire], identity: dict, respondent: str | Path, how: Mode
) -> list[_Task]:
    """A respondent's tasks: one, or as many as its prompts need."""
    here = Path(respondent).expanduser()
    if identity.get("source") in _TRAVELLING[1:4] and respondent != SMOLLM2 and here.exists():
        respondent = here.absolute()  # a worker has another working directory
    try:
        parameters = find(respondent).parameters()
    except Exception:  # what is wrong with it shows when it is loaded
        parameters = _UNKNOWN
    pieces = [(questionnaire, slice(None), 0) for questionnaire in questionnaires]
    if isinstance(how, PromptMode):
        pieces = []
        for questionnaire in questionnaires:
            count = len(prompts(questionnaire)[list(how.asked)].drop_duplicates())
            for start in range(0, count, PER_TASK):
                stop = min(start + PER_TASK, count)
                pieces.append((questionnaire, slice(start, stop), stop - start))
    parts, room = [], 0
    for questionnaire, part, size in pieces:
        if not parts or size > room:
            parts.append([])
            room = PER_TASK
        parts[-1].append((questionnaire, part))
        room -= size
    return [_Task(identity, respondent, identity["mode"], jobs, parameters) for jobs in parts]


def _run(
    tasks: list[_Task],
    stored: list[Counts],
    place: str,
    mark: str | None,
    bar: Progress,
    conditions: dict,
) -> dict[str, RespondentError]:
    """Have all tasks done; respondents of whom one could not be, with the reason."""
    import ray

    waiting, running, failed = deque(tasks), {}, {}
    do = ray.remote(_work)
    nodes, looked = _nodes(), time.monotonic()
    try:
        while waiting or running:
            # Enough for a cluster that grows by what waits, and few enough to be looked through.
            while waiting and len(running) < 8 + 2 * sum(node.get("CPU", 0) for node in nodes):
                task = waiting.popleft()
                if task.identity["respondent_id"] in failed:
                    continue
                task.needs, task.node, task.tries = _needs(task, nodes), "", task.tries + 1
                options = {**task.needs, **_elsewhere(task, nodes)}
                given = task.identity, task.respondent, task.mode, task.jobs, place, mark
                stream = do.options(num_returns="streaming", max_retries=0, **options).remote(
                    *given, conditions, task.needs["num_cpus"]
                )
                running[stream] = task
            for stream in ray.wait(list(running), timeout=TICK)[0]:
                task = running[stream]
                try:
                    said = ray.get(next(stream))
                except StopIteration:
                    del running[stream]
                    continue
                except Exception as error:  # the process or the machine is gone, or has no package
                    del running[stream]
                    _try_again(task, error, nodes, waiting, failed)
                    continue
                task.node = said["node"]
                if "counts" in said:
                    task.see(said["counts"])
                    bar.gather([*stored, *(count for one in tasks for count in one.total())])
                for text in said.get("warnings", []):
                    warnings.warn(text, stacklevel=4)
                if (error := said.get("error")) is not None:
                    del running[stream]
                    if not isinstance(error, RespondentError):
                        raise error
                    _try_again(task, error, nodes, waiting, failed)
            if time.monotonic() - looked > 2:
                nodes, looked = _nodes(), time.monotonic()
                for stream, task in list(running.items()):
                    if not task.node and not _fits(task.needs, nodes) and nodes:
                        # The machine that it was to run on has left.
                        ray.cancel(stream)
                        del running[stream]
                        task.tries -= 1
                        waiting.append(task)
    finally:
        for stream in running:
            ray.cancel(stream, force=True)
    return failed


def _try_again(
    task: _Task, error: Exception, nodes: list[dict], waiting: deque, failed: dict
) -> None:
    """Put a task that failed into the queue once more, or its respondent among the failed."""
    import ray

    if task.node:
        task.nodes.append(task.node)
    lost = not isinstance(error, RespondentError)
    if task.tries < TRIES and (lost or _untried(task, nodes)):
        waiting.append(task)
        return
    name = task.identity["respondent_id"]
    if isinstance(error, ray.exceptions.OutOfMemoryError):
        error = MemoryError()
    elif lost:
        first = (str(error).strip().splitlines() or [""])[0].rstrip(".")
        error = RespondentError(
            f"{name} was tried {task.tries} times, and its process was lost each time "
            f"({type(error).__name__}: {first}): look into the machine's logs, or use a smaller "
            "model."
        )
    failed.setdefault(name, told(name, error))


def _nodes() -> list[dict]:
    """The cluster's machines that are there, by what they have."""
    import ray

    return [{**node["Resources"], "id": node["NodeID"]} for node in ray.nodes() if node["Alive"]]


def _needs(task: _Task, nodes: list[dict]) -> dict:
    """Processors, memory and share of a GPU for a model, at most what a machine has."""
    most = {what: max((node.get(what, 0) for node in nodes), default=0) for what in ("CPU", "GPU")}
    memory = max((node.get("memory", 0) for node in nodes if node.get("CPU")), default=0)
    needs = {"num_cpus": min(_MOST_CPUS, math.ceil(task.parameters / _PER_CPU), int(most["CPU"]))}
    needs["num_cpus"] = max(1, needs["num_cpus"])
    # Loaded in float32, then perhaps copied into bfloat16.
    needs["memory"] = int(min(_ROOM + 6 * task.parameters, memory))
    if most["GPU"]:
        width = 2 if task.identity["dtype"] == "bfloat16" else 4
        share = (_ROOM + width * task.parameters) / _GPU
        needs["num_gpus"] = min(1.0, math.ceil(8 * share) / 8)
    return needs


def _fits(needs: dict, nodes: list[dict]) -> bool:
    names = {"num_cpus": "CPU", "num_gpus": "GPU", "memory": "memory"}
    return any(all(node.get(names[k], 0) >= v for k, v in needs.items()) for node in nodes)


def _untried(task: _Task, nodes: list[dict]) -> list[str]:
    return [n["id"] for n in nodes if n["id"] not in task.nodes and _fits(task.needs, [n])]


def _elsewhere(task: _Task, nodes: list[dict]) -> dict:
    """Where a task that failed is to be tried; anywhere if it was tried everywhere."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    if not task.nodes or not (untried := _untried(task, nodes)):
        return {}
    return {"scheduling_strategy": NodeAffinitySchedulingStrategy(untried[0], soft=True)}


def _work(
    identity: dict,
    respondent: str | Path,
    mode: str,
    jobs: list[tuple[Questionnaire, slice]],
    place: str,
    mark: str | None,
    conditions: dict,
    threads: int,
) -> Iterator[dict]:
    """Do a task on a machine of the cluster; say again and again how far it is, then how it went.

    It is done in a thread, as a process that is at work cannot say anything.
    """
    import ray
    import torch

    torch.set_num_threads(threads)
    node = ray.get_runtime_context().get_node_id()
    bars = [Progress(disable=True) for _ in jobs]
    end: dict = {"warnings": []}
    given = identity, respondent, mode, jobs, place, mark, conditions, bars, end
    thread = threading.Thread(target=_put, args=given, daemon=True)
    thread.start()
    while thread.is_alive():
        yield {"node": node, "counts": [bar.counts for bar in bars]}
        thread.join(TICK)
    yield {"node": node, "counts": [bar.counts for bar in bars], **end}


def _put(identity, respondent, mode, jobs, place, mark, conditions, bars, end) -> None:
    name, how = identity["respondent_id"], mode_named(mode)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            _check_here(identity, respondent, how, place, mark, conditions)
            respondent = how.open(respondent, identity, **conditions)
            for (questionnaire, part), bar in zip(jobs, bars, strict=True):
                if isinstance(how, PromptMode):
                    how.answer_part(questionnaire, respondent, identity, place, bar, part)
                else:
                    how.answer(questionnaire, respondent, identity, place, bar, **conditions)
        except PsychometricsError as error:
            end["error"] = type(error)(str(error))  # its causes may not travel
            vars(end["error"]).update(vars(error))
        except Exception as error:
            reason = told(name, error)
            end["error"] = RespondentError(str(reason), kind=reason.kind)
    end["warnings"] = [str(w.message) for w in said if issubclass(w.category, UserWarning)]


def _check_here(identity, respondent, how, place: str, mark: str | None, conditions) -> None:
    """Refuse a machine that has another store, or another model of the name."""
    import ray

    here = ray.util.get_node_ip_address()
    if mark and not Path(mark).exists():
        raise StoreError(
            f"{place} is not the same folder on {here}, a machine of the cluster: name one that "
            "all machines share, or a URL such as s3://bucket/answers, in PSYCHOMETRICS_STORE."
        )
    if (
        how.identify(respondent, identity["dtype"], **conditions)["fingerprint"]
        != (identity["fingerprint"])
    ):
        raise RespondentError(
            f"{identity['respondent_id']} is not the same on {here}, a machine of the cluster: "
            "copy the model and this package there anew."
        )
