"""Put questionnaires to respondents in any mode; a stopped call resumes where it stopped."""

from __future__ import annotations

import itertools
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from .. import asking  # its cluster is imported on first use
from ..checks import check_kinds
from ..exceptions import ParameterError, RespondentError
from ..models.devices import computing_on, resolve_device
from ..modes import mode_named
from ..modes.mode import Asking, Identity
from ..progress import Progress
from ..questionnaires import AnyQuestionnaires
from ..store import watched
from .plan import _Participant, _Plan

_KINDS = {
    "mode": str,
    "failures": str | Path | None,
    "dtype": Literal["auto", "float32", "bfloat16", "float16"] | None,
    "device": str | None,
    "progress": bool,
    "engine": Literal["local", "ray"],
    "keep_downloads": bool,
}


def ask(
    questionnaires: AnyQuestionnaires,
    respondents: object,
    store: str | Path | None = None,
    mode: str = "nli",
    dtype: str | None = None,
    progress: bool = True,
    engine: str = "local",
    address: str | None = None,
    failures: str | Path | None = None,
    keep_downloads: bool = True,
    device: str | None = None,
    **conditions: object,
) -> pd.DataFrame:
    """Put questionnaires to respondents, except for questions whose answers are stored.

    Parameters
    ----------
    questionnaires : str, Path or Questionnaire, or several
        Names of shipped questionnaires, paths of files, or loaded ones.
    respondents : str or respondent, or several
        A string names a population (see :func:`psychometrics.asking.population`): ``"embedded"``,
        or names, folders, hub ids and populations' files, separated by commas. Other respondents
        depend on the mode: loaded models, a number of simulated respondents, or a function. With
        the default ``mode``, a loaded respondent is asked in its own mode.
    store : str or Path, optional
        Folder or URL of the response store; by default the one in ``PSYCHOMETRICS_STORE``, or else
        the user's cache.
    mode : str
        How respondents answer: a name in :func:`psychometrics.modes.mode_names`, such as ``"nli"``,
        ``"mlm"``, ``"options"``, ``"chat"`` or ``"human"``.
    dtype : {"auto", "float32", "bfloat16", "float16"}, optional
        Precision of models; by default, and for "auto", float32. bfloat16 is for large populations
        on hardware with fast bfloat16, float16 for older GPUs. ``attrs["summary"]["precision"]``
        lists the precision of each respondent.
    progress : bool
        Whether to show a progress bar, and a summary at the end. Before requests go to an endpoint
        with a key or a price, their number and likely cost are also shown.
    engine : {"local", "ray"}
        Where models are loaded and asked: on this machine, one after the other, or on the machines
        of a Ray cluster, as many at once as fit; see :mod:`psychometrics.asking.cluster`. Both
        engines give the same result.
    address : str, optional
        Address of the Ray cluster, such as ``"10.0.0.1:6379"``; by default a cluster that runs on
        this machine, otherwise a new one.
    failures : str or Path, optional
        A CSV file of failed respondents, with the kinds of failure. If a failure would recur (no
        safetensors, remote code, architecture, labels, memory), the respondent is not tried again
        until the model or the way of asking changes, or its line is deleted from the file.
    keep_downloads : bool
        Whether weights downloaded from the hub stay in its local cache. Otherwise each model's
        weights are removed once it has answered, so any number of models can be asked on a small
        disk.
    device : str, optional
        Device for models on this machine, such as ``"cuda:1"`` or ``"cpu"``; by default the one in
        ``PSYCHOMETRICS_DEVICE``, or else the GPU if there is one.
    **conditions
        Conditions of the mode and, for a role (or persona) with gaps, ``personas``: a DataFrame or
        a table's path, with one row per persona and columns that fill the gaps, as in ``role="You
        are a {age}-year-old {job}."``. Answers then have the ``persona_row`` (from 1) and these
        columns; ``scale_scores(..., by=["persona_row"])`` scores the personas separately.

    Returns
    -------
    DataFrame
        Respondents in the given order, each with its questionnaires. Modes that answer prompts have
        one row per prompt: ``respondent_id, mode``, the prompt table's columns, and float32
        ``entailment, neutral, contradiction`` or ``probability``. Other modes have one row per item
        and run: ``respondent_id, questionnaire, mode, run, item_id, value, status``. Columns of the
        mode's conditions follow. ``attrs["summary"]`` has the numbers of answers ``asked``, taken
        ``from_store`` and ``unanswered`` (a status other than ``ok``; ``statuses`` counts them, if
        there are any), the ``failed`` respondents with reasons, their ``kinds`` (of
        :data:`psychometrics.exceptions.KINDS`), the ``seconds`` taken, and, if any, the number of
        answers ``removed`` from the store in the meantime; for endpoints the ``tokens`` of this
        call's replies, their ``cost`` if prices are known, and the number ``unasked`` for lack of
        budget.

    Raises
    ------
    ParameterError, QuestionnaireError
        A mode, a condition, a questionnaire or a file cannot be used, or ``engine="ray"`` is set
        and Ray is not installed. No respondent is asked.
    RespondentError
        No respondent can answer. If some respondents can answer, a warning names the others
        instead.
    StoreError
        The store cannot be read or written; earlier answers are still stored.

    Warns
    -----
    UserWarning
        A respondent failed; the warning gives the reason. The others were asked.

    Examples
    --------
    >>> answers = ask("challenges", "minilm-mnli-l3-s16", store="memory://ask", progress=False)
    >>> answers.attrs["summary"]["asked"] == len(answers) == 192
    True
    """
    began = time.perf_counter()
    check_kinds(locals(), _KINDS)
    dtype = None if dtype == "auto" else dtype

    _check_engine(engine, address, keep_downloads, device)
    if device is not None:
        resolve_device(device)

    plan = _Plan(questionnaires, respondents, mode, dtype, conditions, failures)
    if len(plan.ways) > 1 and engine == "ray":
        raise ParameterError("personas are asked on this machine: leave engine='ray' out.")

    pairs = len(plan.respondents) * len(plan.questionnaires) * len(plan.ways)
    with (
        computing_on(device),
        watched() as watch,
        Progress(desc="asking", unit="answer", disable=not progress, pairs=pairs, total=0) as bar,
    ):
        try:
            on_cluster = {}
            if engine == "ray":
                on_cluster = asking.cluster._ask_on_cluster(plan, store, bar, address)

            tables = []
            for respondent in plan.respondents:
                tables += _ask_respondent(plan, respondent, store, bar, on_cluster, keep_downloads)
        except KeyboardInterrupt:
            bar.close()
            message = f"{bar.asked} answers of this call are stored; repeat it to ask the rest."
            print(f"Stopped: {message}", file=sys.stderr)
            raise

    removed = watch.removed()
    for name, count in removed.items():
        reason = "of its answers were removed from the store while others were added"
        error = RespondentError(f"{name}: {count} {reason}; ask again to replace only these.")
        plan.failures.add(name, error)

    RespondentError.tell(plan.failures.errors, tables)
    answers = _summarise(tables, plan, bar, time.perf_counter() - began)
    if removed:
        answers.attrs["summary"]["removed"] = removed.total()

    if progress:
        print(_summary_line(answers.attrs["summary"]), file=sys.stderr)

    return answers


def _check_engine(
    engine: str, address: str | None, keep_downloads: bool, device: str | None
) -> None:
    """Refuse settings that do not apply to the engine: a cluster or this machine."""
    if address is not None and engine != "ray":
        raise ParameterError("address is for a Ray cluster: add engine='ray', or drop address.")

    if engine == "ray" and not keep_downloads:
        raise ParameterError("keep_downloads=False works on one machine: leave engine='ray' out.")
    if engine == "ray" and device is not None:
        raise ParameterError("device works on one machine: leave out device or engine='ray'.")


def ask_ways(
    questionnaires: AnyQuestionnaires,
    respondents: object,
    ways: Mapping[str, Mapping[str, Any]],
    mode: str = "chat",
    store: str | Path | None = None,
    **shared: object,
) -> pd.DataFrame:
    """Put questionnaires to respondents in several named ways.

    In mode ``chat`` each item is asked once, alone and in the questionnaire's order, even if its
    reply cannot be read.

    Parameters
    ----------
    questionnaires, respondents, mode, store
        As in :func:`ask`.
    ways : mapping of str to mapping
        The conditions of each way, by the way's name.
    **shared
        Conditions that all ways share, unless a way has its own.

    Returns
    -------
    DataFrame
        Answers from all ways of asking, with a column ``way``.

    References
    ----------
    Huang et al. (2024), sections 3 and 4: roles, wordings, runs, labels, order, cipher.

    Examples
    --------
    >>> ways = {"sentence": {}, "this is": {"wording": "This is {label}."}}
    >>> table = ask_ways("ipip20", ["minilm-mnli-l3-s16"], ways, mode="options")
    >>> table["way"].value_counts().to_dict()
    {'sentence': 20, 'this is': 20}
    """
    by_name = isinstance(ways, Mapping) and all(isinstance(w, Mapping) for w in ways.values())
    if not by_name or not ways:
        raise ParameterError("ways must map names to conditions, as in {'plain': {}}.")

    usual = mode_named(mode).asked_once
    tables = []
    for way, conditions in ways.items():
        settings: dict[str, Any] = {"progress": False, **usual, **shared, **conditions}
        answers = ask(questionnaires, respondents, store, mode, **settings)
        tables.append(answers.assign(way=way))

    return pd.concat(tables, ignore_index=True)


def _ask_respondent(
    plan: _Plan,
    participant: _Participant,
    store: str | Path | None,
    bar: Progress,
    on_cluster: dict[str, object],
    keep_downloads: bool,
) -> list[pd.DataFrame]:
    """Put the questionnaires to one respondent; if it fails, return its answers so far."""
    identity, respondent, mode, loaded_with = participant
    name = identity.respondent_id
    questionnaire = ""
    tables = []
    # An endpoint gets the requests of all questionnaires at once.
    together = identity.source == "endpoint"
    rounds = [plan.questionnaires] if together else [[each] for each in plan.questionnaires]

    try:
        with nullcontext() if keep_downloads else _remove_downloads(identity):
            if name in on_cluster:  # its answers are already in the store
                respondent = on_cluster[name]
                bar = Progress(disable=True)
            else:
                respondent = mode.open(respondent, identity, **plan.conditions)

            for (conditions, persona), questionnaires in itertools.product(plan.ways, rounds):
                call = Asking(respondent, identity, store, bar, conditions | loaded_with)
                questionnaire = "" if together else questionnaires[0].id
                error = plan.failures.find_error(identity, questionnaire)
                if error:
                    raise error

                for answers in mode.answer_all(questionnaires, call):
                    # One by one, so that the answers before an error count.
                    tables.append(answers.assign(**persona))

        plan.failures.remove({name, str(participant.respondent)})
    except Exception as error:
        plan.failures.add(name, error, identity, questionnaire)
        # The frames of the failure still refer to the model: clear them, to free its memory.
        cause: BaseException | None = error
        while cause is not None:
            traceback.clear_frames(cause.__traceback__)
            cause = cause.__cause__ or cause.__context__

    return tables


def _summarise(
    tables: list[pd.DataFrame], plan: _Plan, bar: Progress, seconds: float
) -> pd.DataFrame:
    """Combine all answers in one table, with a summary of the call."""
    errors = plan.failures.errors
    answers = pd.concat(tables, ignore_index=True)
    statuses = {}
    if "status" in answers:
        without = answers.loc[~answers["status"].isin(["ok", "unasked"]), "status"]
        statuses = without.value_counts().to_dict()

    summary = {
        "asked": bar.asked,
        "from_store": bar.stored,
        "unanswered": sum(statuses.values()),
        "failed": {name: " ".join(str(error).split()) for name, error in errors.items()},
        "kinds": {name: error.kind for name, error in errors.items()},
        "precision": {who.respondent_id: who.dtype for who, *_ in plan.respondents},
        "seconds": round(seconds, 2),
    }

    occasional = {
        "statuses": statuses,
        "unasked": bar.unasked,
        "unused": bar.unused if bar.asked else 0,
    }
    summary |= {name: value for name, value in occasional.items() if value}
    if bar.spending.replies:
        summary |= bar.spending.summary()

    answers.attrs = {"summary": summary}
    return answers


def _summary_line(summary: dict[str, Any]) -> str:
    kinds = ", ".join(f"{n} {kind}" for kind, n in Counter(summary["kinds"].values()).items())
    reasons = ", ".join(f"{n} {status}" for status, n in summary.get("statuses", {}).items())
    parts = [
        f"{summary['asked']} asked",
        f"{summary['from_store']} from the store or shipped",
        f"{summary['unanswered']} refused or unreadable" + (f" ({reasons})" if reasons else ""),
        f"{len(summary['failed'])} failed" + (f" ({kinds})" if kinds else ""),
    ]

    if "unused" in summary:
        reason = "(different precision, weights or prompts)"
        parts.append(f"{summary['unused']} in the store not used {reason}")

    if "unasked" in summary:
        parts.append(f"{summary['unasked']} left unasked")

    tokens = summary.get("tokens")
    if tokens:
        approximately = "about " if tokens["estimated"] else ""
        sent = f"{approximately}{tokens['prompt']:,} tokens sent"
        if "requests" in summary:
            sent = f"{summary['requests']} requests to be sent, of {sent.removesuffix(' sent')}"

        parts += [sent, f"{approximately}{tokens['completion']:,} received"]

    if "refused" in summary:
        parts.append(f"{summary['refused']} requests came too early and were sent again")

    if "cost" in summary:
        parts.append(f"for {summary['cost']:.4g}")

    precision = Counter(filter(None, summary["precision"].values()))
    if precision:
        parts.append("in " + " and ".join(f"{name} ({n})" for name, n in precision.items()))

    return ", ".join(parts) + f", in {summary['seconds']:.1f} s."


@contextmanager
def _remove_downloads(identity: Identity) -> Iterator[None]:
    """Remove, at the end, the weights that the hub's local cache has gained since the start.

    The small files stay: they identify a model without a request to the hub.
    """
    if identity.source != "hub":
        yield
        return

    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    folder = repo_folder_name(repo_id=identity.model or "", repo_type="model")
    snapshots = Path(constants.HF_HUB_CACHE) / folder / "snapshots"

    def weights() -> dict[Path, Path]:
        return {file: file.resolve() for file in snapshots.glob("*/*.safetensors")}

    before = weights()
    try:
        yield
    finally:
        for file, blob in weights().items():
            if blob not in before.values():
                file.unlink()
                blob.unlink(missing_ok=True)
