"""Put questionnaires to respondents on the machines of a Ray cluster (``engine="ray"``).

Each model is one task, which requests processors, memory and, if the cluster has GPUs, a share of
one, all according to the model's size. It loads the model on any machine with room and writes into
the store itself; the driver then reads all answers from the store. So the cluster returns the same
answers as the local engine, and a stopped run resumes where it stopped.

If a task's process or machine is lost, Ray runs the task again, at most twice; its stored answers
are not asked again.

Only this module imports Ray, and ``ask`` imports this module only for ``engine="ray"``.
"""

from __future__ import annotations

import math
import os
import re
import socket
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..exceptions import ParameterError, PsychometricsError, RespondentError, StoreError
from ..models.sources import SMOLLM2, find
from ..modes import mode_named
from ..modes.mode import Asking, Identity
from ..progress import Progress
from ..questionnaires import Questionnaire
from ..store import StoredAnswers
from .plan import _Participant, _Plan

os.environ.setdefault("RAY_raylet_start_wait_time_s", "120")  # read when Ray is imported
os.environ.setdefault("RAY_task_oom_retries", "2")  # otherwise Ray retries for ever
ray: Any
try:
    import ray
except ImportError:  # Ray is an extra
    ray = None

# Number of times that Ray runs a task again whose process or machine is lost.
_RETRIES = 2
# Seconds in which the head of a cluster must accept a connection.
_CONNECT = 10
_LOADABLE = ("embedded", "local", "packed", "hub")
# Number of parameters per requested processor, and most processors for a task.
_PER_CPU = 50e6
_MOST_CPUS = 8
_UNKNOWN = 500e6  # parameters, if the number is unknown
_GPU = 16 * 2**30  # least assumed memory of a GPU, in bytes
_LIBRARIES = 2**30  # bytes for libraries and activations, besides the weights


@dataclass(frozen=True)
class _Task:
    """A worker's task: put questionnaires to one respondent."""

    identity: Identity
    respondent: str | Path
    mode: str
    questionnaires: list[Questionnaire]
    store: str
    conditions: dict[str, Any]

    def answer(self, stand_in: _StandIn | None = None) -> _Report:
        """Put the questionnaires to the respondent, or to a stand-in that cannot be asked."""
        bars = [Progress(disable=True) for _ in self.questionnaires]
        mode = mode_named(self.mode)
        failure: PsychometricsError | None = None

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                respondent: Any = stand_in
                if stand_in is None:
                    self.check_model()
                    respondent = mode.open(self.respondent, self.identity, **self.conditions)

                for questionnaire, bar in zip(self.questionnaires, bars, strict=True):
                    asking = Asking(respondent, self.identity, self.store, bar, self.conditions)
                    mode.answer(questionnaire, asking)
            except PsychometricsError as error:
                failure = type(error)(str(error))  # its causes may not be picklable
                failure.__dict__.update(vars(error))
            except Exception as error:
                reason = RespondentError.of(self.identity.respondent_id, error)
                failure = RespondentError(str(reason), kind=reason.kind)

        texts = tuple(str(w.message) for w in caught if issubclass(w.category, UserWarning))
        return _Report([bar.counts for bar in bars], texts, failure)

    def check_model(self) -> None:
        """Refuse a machine with a different model of the same name."""
        dtype = self.identity.dtype
        model_here = mode_named(self.mode).identify(self.respondent, dtype, **self.conditions)
        if model_here.fingerprint != self.identity.fingerprint:
            name = self.identity.respondent_id
            place = ray.util.get_node_ip_address()
            raise RespondentError(f"{name} differs on {place}: copy the model again.")

    def estimate_resources(self, nodes: list[dict[str, float]]) -> dict[str, float]:
        """Return the processors, memory and share of a GPU that the model needs on a machine."""
        try:
            parameters = find(self.respondent).parameters()
        except Exception:  # its faults appear when it is loaded
            parameters = _UNKNOWN

        most = {
            kind: max((node.get(kind, 0) for node in nodes), default=0)
            for kind in ("CPU", "GPU", "memory")
        }
        cpus = min(_MOST_CPUS, math.ceil(parameters / _PER_CPU), int(most["CPU"]))
        resources: dict[str, float] = {"num_cpus": max(1, cpus)}
        # Loaded in float32, then possibly copied to bfloat16.
        resources["memory"] = int(min(_LIBRARIES + 6 * parameters, most["memory"]))

        if most["GPU"]:
            width = 4 if self.identity.dtype == "float32" else 2
            share = (_LIBRARIES + width * parameters) / _GPU
            resources["num_gpus"] = min(1.0, math.ceil(8 * share) / 8)

        return resources


@dataclass(frozen=True)
class _Report:
    """The result of a task: each questionnaire's counts, warnings, and the error that ended it.

    The counts are those of :attr:`psychometrics.progress.Progress.counts`.
    """

    counts: list[tuple[int, int, int, int]]
    warnings: tuple[str, ...] = ()
    error: PsychometricsError | None = None


class _StandIn:
    """A stand-in for a respondent whose answers are in the store; it raises an error if asked."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __call__(self, *_: object, **__: object) -> None:
        raise self._error


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
    url = StoredAnswers(store, "nli", "", "").url
    if url.startswith("memory:"):
        raise StoreError(
            f"{url} is one process's own memory, and a cluster has many: name a folder that all "
            "machines share, or a URL such as s3://bucket/answers, in PSYCHOMETRICS_STORE."
        )

    participants = _loadable_participants(plan)
    if ray is None:
        raise ParameterError("engine='ray' needs Ray: pip install ray, or leave engine out.")

    tasks = []
    counts = []
    for identity, respondent, mode, _ in participants:
        task = _Task(identity, respondent, mode.name, plan.questionnaires, url, plan.conditions)
        stored = task.answer(_StandIn(RespondentError("It would have to be asked.")))
        counts += [] if stored.error else stored.counts
        tasks += [task] if stored.error else []

    bar.show_sum(counts)
    errors = {}
    if tasks:
        is_new = _connect(address)
        try:
            errors = _run(tasks, counts, bar)
        finally:
            if is_new:
                ray.shutdown()

    missing = StoreError(
        f"Answers that a machine of the cluster has written are not in {url}: name a folder that "
        "all machines share in PSYCHOMETRICS_STORE; if they do share it, run again, because a "
        "network disk may show a file late."
    )
    names = [identity.respondent_id for identity, *_ in participants]

    return {name: _StandIn(errors.get(name, missing)) for name in names}


def _loadable_participants(plan: _Plan) -> list[_Participant]:
    """Return the respondents that a cluster's machines can load and should try."""
    loadable = [
        participant
        for participant in plan.respondents
        if isinstance(participant.respondent, str | Path)
        and participant.identity.source in _LOADABLE
    ]
    if not loadable:
        raise ParameterError("No respondent is a model for a cluster: leave engine='ray' out.")

    names = [questionnaire.id for questionnaire in plan.questionnaires]
    return [
        participant
        for participant in loadable
        if not any(plan.failures.find_error(participant.identity, name) for name in names)
    ]


def _connect(address: str | None) -> bool:
    """Connect to a cluster, and return whether this call made the connection."""
    if ray.is_initialized():
        return False

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    place = re.fullmatch(r"\[?([^\s/]+?)\]?:(\d+)", address or os.environ.get("RAY_ADDRESS", ""))

    try:
        if place:  # Ray itself would wait for minutes
            socket.create_connection((place[1], int(place[2])), timeout=_CONNECT).close()

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


def _run(
    tasks: list[_Task], counts: list[tuple[int, int, int, int]], bar: Progress
) -> dict[str, RespondentError]:
    """Complete all tasks, and return the failed respondents with the reasons."""
    work = ray.remote(max_retries=_RETRIES)(_work)
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    errors: dict[str, RespondentError] = {}
    running = {}
    for task in tasks:
        resources = task.estimate_resources(nodes)
        path = Path(task.respondent).expanduser()
        is_file = task.identity.source in ("local", "packed") and task.respondent != SMOLLM2
        request = task
        if is_file and path.exists():  # a worker has another working folder
            request = replace(task, respondent=path.absolute())

        result = work.options(**resources).remote(request, resources["num_cpus"])
        running[result] = task.identity.respondent_id

    try:
        while running:
            for result in ray.wait(list(running), timeout=1)[0]:
                name = running.pop(result)
                try:
                    report = ray.get(result)
                except ray.exceptions.RayError as error:
                    errors[name] = _describe_loss(name, error)
                    continue

                counts += report.counts
                bar.show_sum(counts)
                for text in report.warnings:
                    warnings.warn(text, stacklevel=5)

                if isinstance(report.error, RespondentError):
                    errors[name] = report.error
                elif report.error:
                    raise report.error
    finally:
        for result in running:
            ray.cancel(result, force=True)

    return errors


def _describe_loss(name: str, error: Exception) -> RespondentError:
    """Return the error of a respondent whose process was lost each time."""
    if isinstance(error, ray.exceptions.OutOfMemoryError):
        return RespondentError.of(name, MemoryError())

    reason = (str(error).strip().splitlines() or [""])[0].rstrip(".")
    return RespondentError(
        f"{name} was tried {_RETRIES + 1} times, and its process was lost each time "
        f"({type(error).__name__}: {reason}): look into the machine's logs, or use a smaller "
        "model."
    )


def _work(task: _Task, threads: int) -> _Report:
    """Carry out a task on a machine of the cluster."""
    import torch

    torch.set_num_threads(threads)
    return task.answer()
