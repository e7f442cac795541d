"""Put questionnaires to respondents in any mode, resumably, and keep the answers."""

from __future__ import annotations

import os
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import ModuleType

import pandas as pd

from .exceptions import ParameterError, PsychometricsError, RespondentError
from .population import population
from .questionnaires import Questionnaire, load_questionnaire
from .respondents import conditions_of, mode_named
from .respondents.loading import out_of_memory
from .respondents.progress import Progress

LASTING = ("no safetensors", "remote code", "architecture", "labels", "memory")
"""Kinds of failure that the same model would meet again, after a download."""


def ask(
    questionnaires: str | Path | Questionnaire | Iterable[str | Path | Questionnaire],
    respondents: object,
    store: str | Path | None = None,
    mode: str = "nli",
    dtype: str | None = None,
    progress: bool = True,
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
        A string names a population (see :func:`psychometrics.population`): ``"embedded"``, or
        names, folders, hub ids and populations' files separated by commas. What else there is
        depends on the mode: respondents that were loaded, a number of simulated ones, a function.
        A loaded one is asked in the mode it was loaded for, unless another than ``"nli"`` is given.
    store : str or Path, optional
        Folder or URL of the response store; by default ``PSYCHOMETRICS_STORE``, else the user's
        cache.
    mode : str
        How respondents answer: a file of :mod:`psychometrics.respondents`, such as ``"nli"``,
        ``"mlm"``, ``"options"``, ``"chat"`` or ``"human"``.
    dtype : {"auto", "float32", "bfloat16"}, optional
        Precision of respondents that are loaded here; by default, and for "auto", what suits the
        machine.
    progress : bool
        Show a progress bar, and a summary at the end.
    failures : str or Path, optional
        A CSV file of those who failed, by kind, which is kept as they fail. Who is in it for a
        reason that would be met again (:data:`LASTING`) is not tried again as long as neither the
        model nor the way of asking has changed; a line that is taken out is.
    keep_downloads : bool
        Whether weights that are downloaded from the hub stay in its local cache; else each model's
        are removed when it has answered, so that a disk holds any number of models.
    **conditions
        Of the mode, as its ``CONDITIONS`` lists them.

    Returns
    -------
    DataFrame
        Respondents in the order given, each with its questionnaires. In the modes that answer
        prompts one row per prompt: ``respondent_id, mode``, the prompt table's columns, and
        float32 ``entailment, neutral, contradiction`` or ``probability``. In the others one row
        per item and run: ``respondent_id, questionnaire, mode, run, item_id, value, status``.
        Then the mode's conditions. ``attrs["summary"]`` says how many answers were ``asked``, came
        ``from_store`` and are ``unanswered`` (their status is not ``ok``), who ``failed`` and why,
        their ``kinds`` (of :data:`psychometrics.exceptions.KINDS`), and the ``seconds`` it took.

    Raises
    ------
    ParameterError, QuestionnaireError
        A mode, a condition, a questionnaire or a file is not usable; nobody is asked.
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
    >>> answers = ask("challenges", "minilm-mnli-l3-s16", store="memory://doctest", progress=False)
    >>> answers.attrs["summary"]["asked"] == len(answers) == 192
    True
    """
    began = time.perf_counter()
    dtype = None if dtype == "auto" else dtype
    given = _loaded(questionnaires)
    module, conditions = mode_named(mode), conditions_of(mode, conditions)
    failed: dict[str, Exception] = {}
    table = _Failures(failures, mode, dtype, conditions)
    who = _identified(respondents, mode, module, dtype, conditions, failed)
    for name, error in failed.items():
        table.add(name, error)
    if not who:
        raise next(iter(failed.values()))
    parts = []
    bar = Progress(
        desc="asking", unit="answer", disable=not progress, puts=len(who) * len(given), total=0
    )
    with bar:
        for identity, respondent, how in who:
            name, put = identity["respondent_id"], None
            names = {name, str(respondent)}
            try:
                with nullcontext() if keep_downloads else _discarding(identity):
                    if hasattr(how, "opened"):
                        respondent = how.opened(respondent, identity, **conditions)
                    for put in given:
                        table.check(identity, put.id)
                        answers = how.put(put, respondent, identity, store, bar, **conditions)
                        parts.append(answers)
                table.drop(names)
            except Exception as error:
                if isinstance(error, PsychometricsError) and not isinstance(error, RespondentError):
                    raise
                failed[name] = _told(name, error)
                table.add(name, failed[name], identity, put)
                _let_go(error)
    if failed and not parts:
        raise next(iter(failed.values()))
    answers = pd.concat(parts, ignore_index=True)
    unanswered = (answers["status"] != "ok").sum() if "status" in answers else 0
    summary = {
        "asked": bar.asked,
        "from_store": bar.kept,
        "unanswered": int(unanswered),
        "failed": {name: _reason(error) for name, error in failed.items()},
        "kinds": {name: _kind(error) for name, error in failed.items()},
        "seconds": round(time.perf_counter() - began, 2),
    }
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
    module: ModuleType,
    dtype: str | None,
    conditions: dict,
    failed: dict[str, Exception],
) -> list[tuple[dict, object, ModuleType]]:
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


def _told(name: str, error: Exception) -> Exception:
    """What went wrong with a respondent, in a sentence where it has none of its own."""
    if not out_of_memory(error) or isinstance(error, RespondentError):
        return error
    told = RespondentError(
        f"{name} does not fit into memory: use a smaller model, or dtype='bfloat16'.", kind="memory"
    )
    told.__cause__ = error
    return told


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, RespondentError) else f"{type(error).__name__}: {text}"


def _kind(error: Exception) -> str:
    return getattr(error, "kind", "other")


def _let_go(error: BaseException | None) -> None:
    """Empty the frames that an error holds on to, and with them the model that failed."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


@contextmanager
def _discarding(identity: dict) -> Iterator[None]:
    """Remove at the end what weights came into the hub's local cache meanwhile.

    The small files stay, by which a model is identified without a question to the hub.
    """
    if identity.get("source") != "hub":
        yield
        return
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    folder = repo_folder_name(repo_id=identity["model"], repo_type="model")
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


class _Failures:
    """Who failed, by kind, in a CSV file if one is named; the lines of other ways of asking stay.

    It is read anew before each change, as another process may keep the same file.
    """

    columns = ("respondent", "kind", "reason", "mode", "dtype", "conditions", "questionnaire",
               "fingerprint", "at")  # fmt: skip

    def __init__(
        self, path: str | Path | None, mode: str, dtype: str | None, conditions: dict
    ) -> None:
        self.path = None if path is None else Path(path).expanduser()
        said = ", ".join(f"{name}={value}" for name, value in conditions.items())
        self.way = {"mode": mode, "dtype": dtype or "", "conditions": said}
        rows = self._rows()
        lasting = rows[rows["kind"].isin(LASTING)]
        self.known = {row.pop("fingerprint"): row for row in lasting.to_dict("records")}
        if self.path is not None:
            self._write(rows)  # now rather than after the first failure, if it cannot be written

    def check(self, identity: dict, questionnaire: str) -> None:
        """Refuse what was tried before and would fail again."""
        row = self.known.get(identity["fingerprint"])
        # What fits into memory depends on how long the questions are.
        if row and (row["kind"] != "memory" or row["questionnaire"] == questionnaire):
            raise RespondentError(row["reason"], kind=row["kind"])

    def add(self, name: str, error: Exception, identity: dict | None = None, put=None) -> None:
        """Enter a failure in place of an earlier one."""
        row = {
            **dict.fromkeys(self.columns, ""),
            **self.way,
            "respondent": name,
            "kind": _kind(error),
            "reason": _reason(error),
            "questionnaire": put.id if put is not None else "",
            "fingerprint": identity["fingerprint"] if identity else "",
            "at": time.strftime("%Y-%m-%dT%H:%M:%S"),
        }
        if self.path is not None:
            rows = self._rows()
            same = self._of(rows, {name}) & (rows["reason"] == row["reason"])
            if same.any():  # as it was found first
                row["at"] = rows.loc[same, "at"].iloc[0]
            rows = rows[~self._of(rows, {name})]
            self._write(pd.concat([rows, pd.DataFrame([row])]))

    def drop(self, names: set[str]) -> None:
        """Take out who has answered after all."""
        if self.path is not None:
            rows = self._rows()
            if (gone := self._of(rows, names)).any():
                self._write(rows[~gone])

    def _of(self, rows: pd.DataFrame, names: set[str]) -> pd.Series:
        here = rows["respondent"].isin(names)
        for name, value in self.way.items():
            here &= rows[name] == value
        return here

    def _rows(self) -> pd.DataFrame:
        if self.path is None or not self.path.exists():
            return pd.DataFrame(columns=list(self.columns), dtype=str)
        try:
            rows = pd.read_csv(self.path, dtype=str, keep_default_na=False)
        except (OSError, ValueError) as error:  # pandas' own errors are ValueErrors
            raise ParameterError(f"{self.path} cannot be read as a table: {error}.") from None
        if missing := set(self.columns) - set(rows):
            raise ParameterError(
                f"{self.path} is no table of failures, as it has no column {min(missing)}: name "
                "another file."
            )
        return rows[list(self.columns)]

    def _write(self, rows: pd.DataFrame) -> None:
        part = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            rows.to_csv(part, index=False)
            part.replace(self.path)
        except OSError as error:
            raise ParameterError(
                f"{self.path} cannot be written ({error.strerror or error}): name another file."
            ) from None


def _line(summary: dict) -> str:
    kinds = ", ".join(f"{n} {kind}" for kind, n in Counter(summary["kinds"].values()).items())
    parts = [
        f"{summary['asked']} asked",
        f"{summary['from_store']} from the store",
        f"{summary['unanswered']} refused or unreadable",
        f"{len(summary['failed'])} failed" + (f" ({kinds})" if kinds else ""),
    ]
    return ", ".join(parts) + f", in {summary['seconds']:.1f} s."
