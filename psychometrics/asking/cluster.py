"""Put questionnaires to respondents on the machines of a Ray cluster (``engine="ray"``).

Each model is one task, or several if it has very many prompts. A task requests processors, memory
and, if the cluster has GPUs, a share of one, all according to the model's size. It loads the model
on any machine with room and writes into the store itself; the driver then reads all answers from
the store. So the cluster returns the same answers as the local engine, and a stopped run resumes
where it stopped.

If a task's process or machine is lost, the task is tried again, at most twice, on another machine
if possible; its stored answers are not asked again. A respondent that cannot answer on one machine
is tried on others, and the error from the last machine is reported.

Only this module imports Ray, and ``ask`` imports this module only for ``engine="ray"``. This module
therefore contains all code for a run on a cluster: its tasks, their machines, and the recovery from
losses.
"""

from __future__ import annotations

import math
import os
import re
import socket
import threading
import time
import uuid
import warnings
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..exceptions import ParameterError, PsychometricsError, RespondentError, StoreError
from ..models.sources import SMOLLM2, find
from ..modes import mode_named
from ..modes.mode import Asking, Identity
from ..modes.prompting import PromptMode
from ..progress import Progress
from ..questionnaires import Questionnaire
from ..questionnaires.prompts import prompts
from ..store import CHUNK, StoredAnswers
from .plan import _Participant, _Plan

os.environ.setdefault("RAY_raylet_start_wait_time_s", "120")  # read when Ray is imported
ray: Any
try:
    import ray
except ImportError:  # Ray is an extra
    ray = None

# Most prompts of a task: whole chunks, so that batches do not depend on the division into tasks.
_PER_TASK = 40 * CHUNK
_TRIES = 3
# Seconds in which the head of a cluster must accept a connection.
_CONNECT = 10
# The beginning of a Ray client's message; the head replies with a frame of the same type
# (settings).
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
# Seconds between two checks of a task's progress.
_TICK = 0.25
_LOADABLE = ("embedded", "local", "packed", "hub")
_PER_CPU = 50e6
# Number of parameters per requested processor, and most processors for a task.
_MOST_CPUS = 8
_UNKNOWN = 500e6  # parameters, if the number is unknown
_GPU = 16 * 2**30  # least assumed memory of a GPU, in bytes
_LIBRARIES = 2**30  # bytes for libraries and activations, besides the weights
# The type of :attr:`psychometrics.progress.Progress.counts`.
_Counts = tuple[int, int, int, int]
_Node = dict[str, Any]  # a machine of the cluster: its resources and its id
_Report = dict[str, Any]  # a task's progress, or the error that ended it


def _ask_on_cluster(
    plan: _Plan, store: str | Path | None, bar: Progress, address: str | None = None
) -> dict[str, object]:
    """Ask the plan's models that a cluster's machines can load.

    Parameters
    ----------
    plan : _Plan
        The plan. Respondents with a known failure that would recur are left out.
    store : str or Path, optional
        A folder that all machines share, or a URL.
    bar : Progress
        Shows the joint progress of all tasks.
    address : str, optional
        Address of a running cluster, such as ``"10.0.0.1:6379"``; by default the one in
        ``RAY_ADDRESS`` or one that runs on this machine, otherwise a new one. ``"local"`` always
        starts a new one.

    Returns
    -------
    dict
        For each respondent asked on the cluster, by name, a stand-in with which its answers are
        read from the store. The stand-in itself cannot answer: if asked, it raises the respondent's
        error.

    Raises
    ------
    ParameterError
        Ray is not installed, no cluster is at the address, or no respondent can be asked on it.
    StoreError
        The store cannot be written to, or differs between machines.
    """
    url = _shared_url(store)
    there = _travellers(plan)
    if ray is None:
        raise ParameterError("engine='ray' needs Ray: pip install ray, or leave engine out.")

    tasks = []
    stored = []
    for identity, respondent, mode, _ in there:
        order = _Order(identity, respondent, mode.name, [], url, plan.conditions)
        counts = _stored(plan.questionnaires, order)
        stored += counts or []
        tasks += [] if counts else _tasks(plan.questionnaires, order)

    bar.pairs += len(stored) + sum(len(task.order.jobs) for task in tasks)
    bar.pairs -= len(there) * len(plan.questionnaires)
    bar.show_sum(stored)

    errors = _run_connected(tasks, stored, bar, url, address) if tasks else {}
    missing = StoreError(
        f"Answers that a machine of the cluster has written are not in {url}: name a folder that "
        "all machines share in PSYCHOMETRICS_STORE; if they do share it, run again, because a "
        "network disk may show a file late."
    )
    names = [identity.respondent_id for identity, *_ in there]

    return {name: _StandIn(errors.get(name, missing)) for name in names}


def _shared_url(store: str | Path | None) -> str:
    """Return the store's URL, after checking that it opens and that machines can share it."""
    url = StoredAnswers(store, "nli", "", "").url

    if url.startswith("memory:"):
        raise StoreError(
            f"{url} is one process's own memory, and a cluster has many: name a folder that all "
            "machines share, or a URL such as s3://bucket/answers, in PSYCHOMETRICS_STORE."
        )
    return url


def _travellers(plan: _Plan) -> list[_Participant]:
    """Return the respondents that a cluster's machines can load and should try."""
    to_try = [
        participant
        for participant in plan.respondents
        if not any(plan.failures.known(participant.identity, q.id) for q in plan.questionnaires)
    ]
    travellers = [each for each in to_try if _can_travel(each.identity, each.respondent)]

    if to_try and not travellers:
        raise ParameterError("No respondent is a model for a cluster: leave engine='ray' out.")
    return travellers


def _run_connected(
    tasks: list[_Task], stored: list[_Counts], bar: Progress, url: str, address: str | None
) -> dict[str, RespondentError]:
    """Run the tasks; then leave the cluster, or stop it if this call started it."""
    started = _connect(address)
    mark = _make_mark(url)
    for task in tasks:
        task.order = replace(task.order, mark=mark)

    try:
        return _run(tasks, stored, bar)
    finally:
        if mark:
            Path(mark).unlink(missing_ok=True)

        if started:
            ray.shutdown()


class _StandIn:
    """A stand-in for a respondent whose answers are in the store; it raises an error if asked."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __call__(self, *_: object, **__: object) -> None:
        raise self._error


@dataclass(frozen=True)
class _Order:
    """A worker's task: put questionnaires, or a part of their prompts, to one respondent."""

    identity: Identity
    respondent: str | Path
    mode: str
    jobs: list[tuple[Questionnaire, slice]]
    store: str
    conditions: dict[str, Any]
    mark: str | None = None  # a file in the store that every machine must see


@dataclass
class _Task:
    """The state of a task: the number and places of its attempts, and its progress."""

    order: _Order
    parameters: float
    tries: int = 0
    nodes: list[str] = field(default_factory=list)  # machines of earlier attempts
    node: str = ""  # its present machine
    needs: dict[str, float] = field(default_factory=dict)
    counts: list[_Counts] = field(default_factory=list)  # for each job
    stored: dict[int, tuple[int, int]] = field(default_factory=dict)  # by job: attempt, stored

    @property
    def name(self) -> str:
        return self.order.identity.respondent_id

    def note(self, counts: list[_Counts]) -> None:
        """Record a report of the task's progress."""
        self.counts = counts
        for job, (begun, _, stored, _) in enumerate(counts):
            if begun and self.stored.setdefault(job, (self.tries, 0))[0] == self.tries:
                self.stored[job] = self.tries, stored

    def total(self) -> Iterator[_Counts]:
        """Return each job's counts; answers of earlier attempts count as asked, not as stored."""
        for job, (begun, expected, stored, asked) in enumerate(self.counts):
            before = self.stored[job][1] if begun else 0
            yield begun, expected, before, stored + asked - before


def _stored(questionnaires: list[Questionnaire], order: _Order) -> list[_Counts] | None:
    """Return each questionnaire's counts if the store has all answers, otherwise None."""
    bars = [Progress(disable=True) for _ in questionnaires]
    nobody = _StandIn(RespondentError("It would have to be asked."))
    mode = mode_named(order.mode)

    try:
        for questionnaire, bar in zip(questionnaires, bars, strict=True):
            mode.answer(
                questionnaire, Asking(nobody, order.identity, order.store, bar, order.conditions)
            )
    except RespondentError:
        return None

    return [bar.counts for bar in bars]


def _can_travel(identity: Identity, respondent: object) -> bool:
    return isinstance(respondent, str | Path) and identity.source in _LOADABLE


def _connect(address: str | None) -> bool:
    """Connect to a cluster, and return whether this call made the connection."""
    if ray.is_initialized():
        return False
    if str(address).startswith("ray://"):
        raise ParameterError(
            f"{address} is a Ray Client's address: run this on a machine of the cluster and give "
            "the address that `ray start` printed, such as 10.0.0.1:6379."
        )

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    named = address or os.environ.get("RAY_ADDRESS", "")

    try:
        place = re.fullmatch(r"\[?([^\s/]+?)\]?:(\d+)", named)
        if place and os.environ.get("RAY_USE_TLS", "0") == "0":  # Ray itself would wait for minutes
            with socket.create_connection((place[1], int(place[2])), timeout=_CONNECT) as head:
                head.sendall(_HELLO)
                if head.recv(9)[3:4] != _HELLO[-6:-5]:
                    raise OSError("the server there is not Ray")

        ray.init(
            address=address, log_to_driver=False, logging_level="ERROR", include_dashboard=False
        )
    except (OSError, OverflowError, ValueError, RuntimeError) as error:
        raise ParameterError(
            f"There is no Ray cluster at {address or 'the address in RAY_ADDRESS'} "
            f"({' '.join(str(error).split())[:200]}): start one with `ray start --head`, or leave "
            "the address out."
        ) from error

    return True


def _make_mark(url: str) -> str | None:
    """Make a file in a store's folder, to verify that every machine sees the same folder."""
    folder = re.sub(r"^file://", "", url)
    if "://" in folder:
        return None

    path = Path(folder, f".{uuid.uuid4().hex}.seen")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    except OSError as error:
        raise StoreError(f"{folder}: {error.strerror}; name a writable folder.") from error

    return str(path)


def _tasks(questionnaires: list[Questionnaire], order: _Order) -> list[_Task]:
    """Return a respondent's tasks: a single task, or as many as its prompts need."""
    respondent = order.respondent
    here = Path(respondent).expanduser()
    files = order.identity.source in ("local", "packed")
    if files and respondent != SMOLLM2 and here.exists():
        respondent = here.absolute()  # a worker has another working directory

    try:
        parameters = find(respondent).parameters()
    except Exception:  # its faults appear when it is loaded
        parameters = _UNKNOWN

    pieces = [(questionnaire, slice(None), 0) for questionnaire in questionnaires]
    mode = mode_named(order.mode)
    if isinstance(mode, PromptMode):
        pieces = []
        for questionnaire in questionnaires:
            count = len(prompts(questionnaire)[list(mode.question_columns)].drop_duplicates())
            for start in range(0, count, _PER_TASK):
                stop = min(start + _PER_TASK, count)
                pieces.append((questionnaire, slice(start, stop), stop - start))

    parts: list[list[tuple[Questionnaire, slice]]] = []
    room = 0
    for questionnaire, part, size in pieces:
        if not parts or size > room:
            parts.append([])
            room = _PER_TASK

        parts[-1].append((questionnaire, part))
        room -= size

    return [_Task(replace(order, respondent=respondent, jobs=jobs), parameters) for jobs in parts]


def _run(tasks: list[_Task], stored: list[_Counts], bar: Progress) -> dict[str, RespondentError]:
    """Complete all tasks, and return the failed respondents with the reasons."""
    waiting = deque(tasks)
    running: dict[Any, _Task] = {}
    errors: dict[str, RespondentError] = {}
    work = ray.remote(_work)
    nodes = _nodes()
    looked = time.monotonic()

    try:
        while waiting or running:
            # Enough for a cluster that grows with its queue, and few enough to scan.
            while waiting and len(running) < 8 + 2 * sum(node.get("CPU", 0) for node in nodes):
                task = waiting.popleft()
                if task.name not in errors:
                    running[_start(task, work, nodes)] = task

            for stream in ray.wait(list(running), timeout=_TICK)[0]:
                task = running[stream]
                report = _next_report(stream)
                if report is None or "error" in report:
                    del running[stream]

                if report is None:
                    continue
                task.node = report.get("node", task.node)
                if "counts" in report:
                    task.note(report["counts"])
                    bar.show_sum([*stored, *(count for one in tasks for count in one.total())])

                for text in report.get("warnings", []):
                    warnings.warn(text, stacklevel=5)

                if "error" in report:
                    _try_again(task, report, nodes, waiting, errors)

            if time.monotonic() - looked > 2:
                nodes = _nodes()
                looked = time.monotonic()
                _call_back(running, nodes, waiting)
    finally:
        for stream in running:
            ray.cancel(stream, force=True)

    return errors


def _next_report(stream: Iterator[Any]) -> _Report | None:
    """Return a task's next report, or None if it has ended."""
    try:
        report: _Report = ray.get(next(stream))
        return report
    except StopIteration:
        return None
    except Exception as error:  # the process or machine is gone, or lacks the package
        return {"error": error, "lost": True}


def _start(task: _Task, work: Any, nodes: list[_Node]) -> Any:
    """Submit a task, and return the stream of its reports."""
    task.needs = _needs(task, nodes)
    task.node = ""
    task.tries += 1
    options = {**task.needs, **_elsewhere(task, nodes)}
    submit = work.options(num_returns="streaming", max_retries=0, **options)
    return submit.remote(task.order, task.needs["num_cpus"])


def _call_back(running: dict[Any, _Task], nodes: list[_Node], waiting: deque[_Task]) -> None:
    """Requeue tasks that wait for a machine that is gone."""
    for stream, task in list(running.items()):
        if not task.node and not _fits(task.needs, nodes) and nodes:
            ray.cancel(stream)
            del running[stream]
            task.tries -= 1
            waiting.append(task)


def _try_again(
    task: _Task,
    report: _Report,
    nodes: list[_Node],
    waiting: deque[_Task],
    errors: dict[str, RespondentError],
) -> None:
    """Requeue a failed task, or add its respondent to the errors."""
    error = report["error"]
    if not (isinstance(error, RespondentError) or report.get("lost")):
        raise error

    if task.node:
        task.nodes.append(task.node)

    lost = not isinstance(error, RespondentError)
    if task.tries < _TRIES and (lost or _untried(task, nodes)):
        waiting.append(task)
        return

    if isinstance(error, ray.exceptions.OutOfMemoryError):
        error = MemoryError()
    elif lost:
        first = (str(error).strip().splitlines() or [""])[0].rstrip(".")
        error = RespondentError(
            f"{task.name} was tried {task.tries} times, and its process was lost each time "
            f"({type(error).__name__}: {first}): look into the machine's logs, or use a smaller "
            "model."
        )

    errors.setdefault(task.name, RespondentError.of(task.name, error))


def _nodes() -> list[_Node]:
    """Return the machines that the cluster has now, with their resources."""
    return [{**node["Resources"], "id": node["NodeID"]} for node in ray.nodes() if node["Alive"]]


def _needs(task: _Task, nodes: list[_Node]) -> dict[str, float]:
    """Return the processors, memory and share of a GPU that a model needs on a machine."""
    most = {kind: max((node.get(kind, 0) for node in nodes), default=0) for kind in ("CPU", "GPU")}
    memory = max((node.get("memory", 0) for node in nodes if node.get("CPU")), default=0)
    cpus = min(_MOST_CPUS, math.ceil(task.parameters / _PER_CPU), int(most["CPU"]))
    needs: dict[str, float] = {"num_cpus": max(1, cpus)}
    # Loaded in float32, then possibly copied to bfloat16.
    needs["memory"] = int(min(_LIBRARIES + 6 * task.parameters, memory))

    if most["GPU"]:
        width = 4 if task.order.identity.dtype == "float32" else 2
        share = (_LIBRARIES + width * task.parameters) / _GPU
        needs["num_gpus"] = min(1.0, math.ceil(8 * share) / 8)

    return needs


def _fits(needs: dict[str, float], nodes: list[_Node]) -> bool:
    names = {"num_cpus": "CPU", "num_gpus": "GPU", "memory": "memory"}
    return any(all(node.get(names[k], 0) >= v for k, v in needs.items()) for node in nodes)


def _untried(task: _Task, nodes: list[_Node]) -> list[str]:
    return [n["id"] for n in nodes if n["id"] not in task.nodes and _fits(task.needs, [n])]


def _elsewhere(task: _Task, nodes: list[_Node]) -> dict[str, Any]:
    """Return the machines on which to retry a failed task; any machine if all have failed."""
    untried = _untried(task, nodes)
    if not task.nodes or not untried:
        return {}
    strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    return {"scheduling_strategy": strategy(untried[0], soft=True)}


def _work(order: _Order, threads: int) -> Iterator[_Report]:
    """Carry out an order on a machine of the cluster, and report progress regularly.

    The work runs in a thread, because a busy generator cannot report.
    """
    import torch

    torch.set_num_threads(threads)
    node = ray.get_runtime_context().get_node_id()
    bars = [Progress(disable=True) for _ in order.jobs]
    end: _Report = {"warnings": []}
    thread = threading.Thread(target=_put, args=(order, bars, end), daemon=True)
    thread.start()

    while thread.is_alive():
        yield {"node": node, "counts": [bar.counts for bar in bars]}
        thread.join(_TICK)

    yield {"node": node, "counts": [bar.counts for bar in bars], **end}


def _put(order: _Order, bars: list[Progress], end: _Report) -> None:
    identity = order.identity
    mode = mode_named(order.mode)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            _check_machine(order)
            respondent = mode.open(order.respondent, identity, **order.conditions)
            for (questionnaire, part), bar in zip(order.jobs, bars, strict=True):
                asking = Asking(respondent, identity, order.store, bar, order.conditions)
                if isinstance(mode, PromptMode):
                    mode.answer_part(questionnaire, asking, part)
                else:
                    mode.answer(questionnaire, asking)
        except PsychometricsError as error:
            copy = type(error)(str(error))  # its causes may not be picklable
            copy.__dict__.update(vars(error))
            end["error"] = copy
        except Exception as error:
            reason = RespondentError.of(identity.respondent_id, error)
            end["error"] = RespondentError(str(reason), kind=reason.kind)

    end["warnings"] = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]


def _check_machine(order: _Order) -> None:
    """Refuse a machine with a different store, or with a different model of the same name."""
    here = ray.util.get_node_ip_address()
    identity = order.identity
    if order.mark and not Path(order.mark).exists():
        raise StoreError(f"{order.store} is another folder on {here}: name a shared folder.")

    mode = mode_named(order.mode)
    model_here = mode.identify(order.respondent, identity.dtype, **order.conditions)
    if model_here.fingerprint != identity.fingerprint:
        raise RespondentError(f"{identity.respondent_id} differs on {here}: copy the model again.")
