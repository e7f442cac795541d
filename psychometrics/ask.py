"""Put instruments to respondents, resumably, and keep the answers."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from tqdm import tqdm

from .exceptions import ParameterError, RespondentError
from .paths import store_dir
from .population import population
from .prompts import prompts
from .questionnaires import Questionnaire, load_questionnaire
from .respondents import identify, load_respondent
from .store import (
    answer_keys,
    answers_path,
    probabilities_of,
    prompts_digest,
    read_answers,
    read_manifest,
    write_answers,
)

if TYPE_CHECKING:
    from .respondents.nli import NLIRespondent

MODES = ("chat", "option_logits", "nli", "human", "simulated", "custom")
CHUNK = 512
"""Prompts asked between two saves: what a killed run has to ask again at most."""


def ask(
    questionnaires: str | Path | Questionnaire | Iterable[str | Path | Questionnaire],
    respondents: str | NLIRespondent | Iterable[str | Path | NLIRespondent],
    store: str | Path | None = None,
    mode: str = "nli",
    dtype: str | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Put questionnaires to respondents; answers that are in the store are not asked again.

    Parameters
    ----------
    questionnaires : str, Path or Questionnaire, or several
        Names of shipped instruments, paths of YAML files, or loaded ones.
    respondents : str or respondent, or several
        A string names a population (see :func:`psychometrics.population`): ``"embedded"``, or
        names, folders and hub ids separated by commas. Loaded respondents are taken as they are.
    store : str or Path, optional
        Folder of the response store; by default ``PSYCHOMETRICS_STORE``, else the user's cache.
    mode : str
        How respondents answer, as in :func:`psychometrics.load_respondent`.
    dtype : {"float32", "bfloat16"}, optional
        Precision of respondents that are loaded here; by default what suits the machine.
    progress : bool
        Show a progress bar over all prompts.

    Returns
    -------
    DataFrame
        One row per respondent and prompt, respondents in the order given, then prompts in their
        table's order: ``respondent_id, mode``, the prompt table's columns, and float32
        ``entailment, neutral, contradiction``, or ``probability`` in the modes that give one.

    Raises
    ------
    QuestionnaireError, RespondentError
        An instrument or a respondent is not usable; the models are looked at before the first
        question is asked.
    StoreError
        The store cannot be read or written; what was stored before is still there.

    Examples
    --------
    >>> answers = ask("gad7", "minilm-mnli-l6-s2", progress=False)  # doctest: +SKIP
    """
    store = Path(store).expanduser() if store is not None else store_dir()
    tables = [prompts(questionnaire) for questionnaire in _loaded(questionnaires)]
    who = identified(respondents, mode, dtype)
    total = len(who) * sum(map(len, tables))
    parts = []
    with tqdm(total=total, desc="asking", unit="prompt", disable=not progress) as bar:
        for identity, respondent in who:
            for table in tables:
                answers, respondent = answered(table, identity, respondent, store, bar)
                parts.append(answers)
    return pd.concat(parts, ignore_index=True)


def answered(table, identity, respondent, store, bar):
    """The prompt table with one respondent's answers, from the store or asked now."""
    mode, name = identity["mode"], identity["respondent_id"]
    path = answers_path(store, name, table["questionnaire"].iloc[0], mode)
    known = read_answers(path, mode)
    columns = probabilities_of(mode)
    keys = answer_keys(identity["fingerprint"], table)
    asked = ["premise", "hypothesis"] if mode == "nli" else ["premise", "hypothesis", "intensifier"]
    rows = zip(keys, table[asked].itertuples(index=False, name=None), strict=True)
    new = {key: prompt for key, prompt in rows if key not in known.index}
    missing = list(new)
    bar.update(len(table) - len(missing))
    for start in range(0, len(missing), CHUNK):
        if isinstance(respondent, str | Path):
            respondent = load_respondent(respondent, mode=mode, dtype=identity["dtype"])
        chunk = missing[start : start + CHUNK]
        began = time.perf_counter()
        values = respondent.answer([new[key] for key in chunk])
        rows = pd.DataFrame(values, columns=columns, index=pd.Index(chunk, name="key"))
        rows.insert(0, "premise", [new[key][0] for key in chunk])
        rows.insert(1, "hypothesis", [new[key][1] for key in chunk])
        known = pd.concat([known, rows]) if len(known) else rows
        seconds = time.perf_counter() - began
        write_answers(path, known, _manifest(path, table, respondent.identity, known, seconds))
        bar.update(len(chunk))
    answers = table.copy()
    answers.insert(0, "respondent_id", name)
    answers.insert(1, "mode", mode)
    answers[columns] = known.loc[keys, columns].to_numpy(dtype="float32")
    return answers, respondent


def _manifest(path, table, identity, known, seconds) -> dict:
    from . import __version__

    before = read_manifest(path).get("seconds", 0.0)
    return {
        "questionnaire": table["questionnaire"].iloc[0],
        "prompts": len(table),
        "prompts_sha256": prompts_digest(table),
        **identity,
        "answers": len(known),
        "package_version": __version__,
        "seconds": round(before + seconds, 2),
    }


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


def identified(respondents, mode: str, dtype: str | None) -> list[tuple[dict, object]]:
    """Each respondent with its identity; weights are not loaded yet."""
    if isinstance(respondents, str):
        respondents = population(respondents)
    elif isinstance(respondents, Path) or hasattr(respondents, "answer"):
        respondents = [respondents]
    known = [
        (given.identity, given)
        if hasattr(given, "answer")
        else (identify(given, mode=mode, dtype=dtype), given)
        for given in respondents
    ]
    if not known:
        raise RespondentError("There is no respondent to ask: name at least one.")
    names = [identity["respondent_id"] for identity, _ in known]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise RespondentError(
            f"Two respondents are called '{min(repeated)}': keep one, or rename a folder."
        )
    return known


def answer(questionnaire: Questionnaire, mode: str, **options) -> pd.DataFrame:
    """Put a questionnaire to someone or something: one call for every way of asking.

    Parameters
    ----------
    questionnaire : Questionnaire
    mode : {"chat", "option_logits", "nli", "human", "simulated", "custom"}
        How it is asked.
    **options
        Of :func:`psychometrics.respondents.chat.ask_chat`, :func:`psychometrics.respondents.options.ask_logits`,
        :func:`psychometrics.respondents.options.likert_by_nli`, :func:`psychometrics.respondents.persons.ask_person`,
        :func:`psychometrics.respondents.persons.simulate_graded` or
        :func:`psychometrics.respondents.persons.ask_custom`.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, mode, run, item_id, value, status``; a value is missing
        where the status is not ``ok``.

    Raises
    ------
    ParameterError
        The mode is unknown.

    Examples
    --------
    >>> answer(load_questionnaire("ipip20"), "simulated", respondents=2, seed=1).shape
    (40, 7)
    """
    if mode == "chat":
        from .respondents.chat import ask_chat as ask
    elif mode == "option_logits":
        from .respondents.options import ask_logits as ask
    elif mode == "nli":
        from .respondents.options import likert_by_nli as ask
    elif mode == "human":
        from .respondents.persons import ask_person as ask
    elif mode == "simulated":
        from .respondents.persons import simulate_graded as ask
    elif mode == "custom":
        from .respondents.persons import ask_custom as ask
    else:
        raise ParameterError(f"mode must be one of {', '.join(MODES)}, got '{mode}'.")
    return ask(questionnaire, **options)
