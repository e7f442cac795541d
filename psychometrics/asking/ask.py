"""Put questionnaires to respondents in any mode, resumably, and keep the answers."""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path

import pandas as pd

from ..exceptions import ParameterError, PsychometricsError, RespondentError
from ..modes import conditions_of, mode_named
from ..modes.mode import Mode
from ..questionnaires import Questionnaire, load_questionnaire
from .failures import Failures, discarding, let_go, told
from .population import population
from .progress import Progress


def ask(
    questionnaires: str | Path | Questionnaire | Iterable[str | Path | Questionnaire],
    respondents: object,
    store: str | Path | None = None,
    mode: str = "nli",
    dtype: str | None = None,
    progress: bool = True,
    engine: str = "local",
    address: str | None = None,
    failures: str | Path | None = None,
    keep_downloads: bool = True,
    **conditions: object,
) -> pd.DataFrame:
    """Put questionnaires to respondents; answers that are in the store are not asked again.

    Parameters
    ----------
    questionnaires : str, Path or Questionnaire, or several
        Names of shipped questionnaires, paths of files, or loaded ones.
    respondents : str or respondent, or several
        A string names a population (see :func:`psychometrics.asking.population`): ``"embedded"``,
        or
        names, folders, hub ids and populations' files separated by commas. What else there is
        depends on the mode: respondents that were loaded, a number of simulated ones, a function.
        A loaded one is asked in the mode it was loaded for, unless another than ``"nli"`` is given.
    store : str or Path, optional
        Folder or URL of the response store; by default ``PSYCHOMETRICS_STORE``, else the user's
        cache.
    mode : str
        How respondents answer: a file of :mod:`psychometrics.modes`, such as ``"nli"``,
        ``"mlm"``, ``"options"``, ``"chat"`` or ``"human"``.
    dtype : {"auto", "float32", "bfloat16"}, optional
        Precision of respondents that are loaded here; by default, and for "auto", what suits the
        machine.
    progress : bool
        Show a progress bar, and a summary at the end.
    engine : {"local", "ray"}
        Where models are loaded and asked: here, one after the other, or on the machines of a Ray
        cluster, as many at once as there is room for; see
        :mod:`psychometrics.asking.cluster`. What is returned is the same.
    address : str, optional
        Of the Ray cluster, such as ``"10.0.0.1:6379"``; by default the one that is running here,
        else this machine is made one.
    failures : str or Path, optional
        A CSV file of those who failed, by kind, which is kept as they fail. Who is in it for a
        reason that would be met again (no safetensors, remote code, architecture, labels, memory)
        is not tried again as long as neither the model nor the way of asking has changed; a line
        that is taken out is.
    keep_downloads : bool
        Whether weights that are downloaded from the hub stay in its local cache; else each model's
        are removed when it has answered, so that a disk holds any number of models.
    **conditions
        Conditions of the mode.

    Returns
    -------
    DataFrame
        Respondents in the order given, each with its questionnaires. In the modes that answer
        prompts one row per prompt: ``respondent_id, mode``, the prompt table's columns, and
        float32 ``entailment, neutral, contradiction`` or ``probability``. In the others one row
        per item and run: ``respondent_id, questionnaire, mode, run, item_id, value, status``.
        Then the mode's conditions. ``attrs["summary"]`` says how many answers were ``asked``, came
        ``from_store`` and are ``unanswered`` (their status is not ``ok``), who ``failed`` and why,
        their ``kinds`` (of :data:`psychometrics.exceptions.KINDS`), and the ``seconds`` it took; of
        endpoints the ``tokens`` of the replies that came in this call, their ``cost`` where prices
        were given, and how many are ``unasked`` as it would have been exceeded.

    Raises
    ------
    ParameterError, QuestionnaireError
        A mode, a condition, a questionnaire or a file is not usable, or there is no Ray for
        ``"ray"``; nobody is asked.
    RespondentError
        No respondent can answer. If some can, the others are told by a warning.
    StoreError
        The store cannot be read or written; what was stored before is still there.

    Warns
    -----
    UserWarning
        A respondent failed, with the reason; the others were asked.

    Examples
    --------
    >>> answers = ask("challenges", "minilm-mnli-l3-s16", store="memory://ask", progress=False)
    >>> answers.attrs["summary"]["asked"] == len(answers) == 192
    True
    """
    began = time.perf_counter()
    dtype = None if dtype == "auto" else dtype
    if engine not in ("local", "ray"):
        raise ParameterError(f"engine must be 'local' or 'ray', got {engine!r}.")
    if address is not None and engine != "ray":
        raise ParameterError("address is a Ray cluster's: give engine='ray' too, or leave it out.")
    if engine == "ray" and not keep_downloads:
        raise ParameterError("keep_downloads=False is for this machine: leave engine='ray' out.")
    given = _loaded(questionnaires)
    module, conditions = mode_named(mode), conditions_of(mode, conditions)
    failed: dict[str, RespondentError] = {}
    table = Failures(failures, mode, dtype, conditions)
    who = _identified(respondents, mode, module, dtype, conditions, failed)
    for name, error in failed.items():
        table.add(name, error)
    if not who:
        raise next(iter(failed.values()))
    away, parts = {}, []
    bar = Progress(
        desc="asking", unit="answer", disable=not progress, puts=len(who) * len(given), total=0
    )
    with bar:
        if engine == "ray":
            from . import cluster

            new = [one for one in who if not any(table.knows(one[0], q.id) for q in given)]
            away = cluster.asked(given, new, store, bar, address, **conditions)
        for identity, respondent, how in who:
            name, put, shown = identity["respondent_id"], None, bar
            names = {name, str(respondent)}
            try:
                with nullcontext() if keep_downloads else discarding(identity):
                    if name in away:
                        respondent, shown = away[name], Progress(disable=True)
                    else:
                        respondent = how.open(respondent, identity, **conditions)
                    if identity.get("source") == "endpoint":
                        for answers in how.answer_all(
                            given, respondent, identity, store, bar, **conditions
                        ):
                            parts.append(answers)
                    else:
                        for put in given:
                            table.check(identity, put.id)
                            answers = how.answer(
                                put, respondent, identity, store, shown, **conditions
                            )
                            parts.append(answers)
                table.drop(names)
            except Exception as error:
                if isinstance(error, PsychometricsError) and not isinstance(error, RespondentError):
                    raise
                failed[name] = told(name, error)
                table.add(name, failed[name], identity, put)
                let_go(error)
    if failed and not parts:
        raise next(iter(failed.values()))
    answers = pd.concat(parts, ignore_index=True)
    unanswered = 0
    if "status" in answers:
        unanswered = (~answers["status"].isin(["ok", "unasked"])).sum()
    summary = {
        "asked": bar.asked,
        "from_store": bar.kept,
        "unanswered": int(unanswered),
        "failed": {name: " ".join(str(error).split()) for name, error in failed.items()},
        "kinds": {name: error.kind for name, error in failed.items()},
        "seconds": round(time.perf_counter() - began, 2),
    }
    if bar.unasked:
        summary["unasked"] = bar.unasked
    if bar.spent.replies:
        summary |= bar.spent.summary()
    answers.attrs = {"summary": summary}
    for name, reason in summary["failed"].items():
        warnings.warn(f"{name} was not asked to the end: {reason}", stacklevel=2)
    if progress:
        print(_line(summary), file=sys.stderr)
    return answers


def _loaded(questionnaires) -> list[Questionnaire]:
    if isinstance(questionnaires, str | Path | Questionnaire):
        questionnaires = [questionnaires]
    loaded = [
        given if isinstance(given, Questionnaire) else load_questionnaire(given)
        for given in questionnaires
    ]
    if not loaded:
        raise ParameterError("There is no questionnaire to ask: name at least one.")
    if repeated := {q.id for i, q in enumerate(loaded) if q.id in [p.id for p in loaded[:i]]}:
        raise ParameterError(f"The questionnaire {min(repeated)} is given twice: keep one.")
    return loaded


def _identified(
    respondents: object,
    mode: str,
    module: Mode,
    dtype: str | None,
    conditions: dict,
    failed: dict[str, RespondentError],
) -> list[tuple[dict, object, Mode]]:
    """Each respondent with its identity and mode; those who cannot be asked go to ``failed``."""
    listed = isinstance(respondents, Path) and respondents.suffix in (".yaml", ".yml")
    if isinstance(respondents, str) or listed:
        respondents = population(respondents)
    else:
        one = isinstance(respondents, pd.DataFrame | Path | bytes) or hasattr(respondents, "answer")
        if one or not isinstance(respondents, Iterable):
            respondents = [respondents]
    found = []
    for given in respondents:
        try:
            how = module
            if mode == "nli" and hasattr(given, "answer"):
                how = mode_named(given.identity["mode"])
            known = conditions if how is module else conditions_of(given.identity["mode"], {})
            found.append((how.identify(given, dtype, **known), given, how))
        except RespondentError as error:
            failed[str(given)] = error
    if not found and not failed:
        raise RespondentError("There is no respondent to ask: name at least one.")
    names = [identity["respondent_id"] for identity, *_ in found]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise RespondentError(
            f"Two respondents are called '{min(repeated)}': keep one, or rename a folder."
        )
    return found


def _line(summary: dict) -> str:
    kinds = ", ".join(f"{n} {kind}" for kind, n in Counter(summary["kinds"].values()).items())
    parts = [
        f"{summary['asked']} asked",
        f"{summary['from_store']} from the store",
        f"{summary['unanswered']} refused or unreadable",
        f"{len(summary['failed'])} failed" + (f" ({kinds})" if kinds else ""),
    ]
    if "unasked" in summary:
        parts.append(f"{summary['unasked']} left unasked")
    if tokens := summary.get("tokens"):
        about = "about " if tokens["estimated"] else ""
        sent = f"{about}{tokens['prompt']:,} tokens sent"
        if "requests" in summary:
            sent = f"{summary['requests']} requests to be sent, of {sent.removesuffix(' sent')}"
        parts += [sent, f"{about}{tokens['completion']:,} received"]
    if "cost" in summary:
        parts.append(f"for {summary['cost']:.4g}")
    return ", ".join(parts) + f", in {summary['seconds']:.1f} s."
