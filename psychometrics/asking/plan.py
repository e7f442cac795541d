"""The plan of a call: questionnaires, respondents, conditions, and known failures."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from filelock import FileLock

from ..data import with_formulas, write_csv
from ..endpoints.secrets import mask_conditions
from ..exceptions import ParameterError, RespondentError
from ..modes import mode_named
from ..modes.mode import Identity, Mode
from ..modes.personas import fill_personas
from ..questionnaires import load_questionnaires
from ..questionnaires.model import repeated
from .population import population

# Kinds of failure that the same model would meet again, after a download.
_LASTING = ("no safetensors", "remote code", "architecture", "labels", "memory")
_COLUMNS = ["respondent", "kind", "reason", "mode", "dtype", "conditions", "questionnaire",
            "fingerprint", "at"]  # fmt: skip


class _Participant(NamedTuple):
    """A respondent that takes part in a call.

    Parameters
    ----------
    identity : Identity
    respondent
        The loaded respondent, or its name.
    mode : Mode
    conditions : dict
        The conditions with which a loaded respondent was loaded.
    """

    identity: Identity
    respondent: Any
    mode: Mode
    conditions: dict[str, Any]


class _Plan:
    """The questionnaires, respondents and known failures of a call, made before anyone is asked.

    Attributes
    ----------
    questionnaires : list of Questionnaire
    respondents : list of Participant
    conditions : dict
        The conditions; if there are several personas, those of the first.
    ways : list of (dict, dict)
        The conditions and the row of each persona in a table; without personas, the conditions and
        an empty row.
    failures : object
        The respondents that failed, in this or an earlier call.
    """

    def __init__(
        self,
        questionnaires: Any,
        respondents: Any,
        mode: str,
        dtype: str | None,
        conditions: dict[str, Any],
        failures: str | Path | None,
    ) -> None:
        self.questionnaires = load_questionnaires(questionnaires)
        twice = repeated([questionnaire.id for questionnaire in self.questionnaires], fold=False)
        if twice:
            raise ParameterError(f"The questionnaire {twice[0]} occurs twice: keep one.")

        way_of_asking = mode_named(mode)
        personas = fill_personas(way_of_asking, conditions)
        self.ways = [(way_of_asking.complete(filled), row) for filled, row in personas]
        self.conditions = self.ways[0][0]
        self.failures = _Failures(failures, mode, dtype, self.conditions)
        self.respondents: list[_Participant] = []

        is_file = isinstance(respondents, Path) and respondents.suffix in (".yaml", ".yml")
        is_one = isinstance(respondents, pd.DataFrame | Path | bytes)
        if isinstance(respondents, str) or is_file:
            respondents = population(respondents)
        elif is_one or hasattr(respondents, "answer") or not isinstance(respondents, Iterable):
            respondents = [respondents]

        for respondent in respondents:
            try:
                self.respondents.append(self._make_participant(respondent, mode, dtype))
            except RespondentError as error:
                self.failures.add(str(respondent), error)

        if not self.respondents:
            missing = RespondentError("There is no respondent to ask: name at least one.")
            raise next(iter(self.failures.errors.values()), missing)

        names = [participant.identity.respondent_id for participant in self.respondents]
        twice = repeated(names, fold=False)
        if twice:
            raise RespondentError(f"Two respondents are called '{twice[0]}': rename a folder.")

    def _make_participant(self, respondent: Any, mode: str, dtype: str | None) -> _Participant:
        """Return the respondent and its mode, after checking that all questionnaires suit it."""
        own_mode = mode_named(mode)
        conditions = self.conditions
        loaded_with = {}
        if hasattr(respondent, "answer"):
            loaded_with = dict(getattr(respondent, "conditions", {}))
            if mode == "nli":
                own_mode = mode_named(respondent.identity["mode"])

        if own_mode.name != mode:
            conditions = own_mode.complete(loaded_with)

        identity = Identity.of(own_mode.identify(respondent, dtype, **conditions))
        for questionnaire in self.questionnaires:
            own_mode.check(questionnaire, identity, conditions)

        return _Participant(identity, respondent, own_mode, loaded_with)


class _Failures:
    """The failed respondents by name, also stored in a CSV file if one is given.

    The file also lists failures in other modes and conditions; their lines stay. The file is read
    again before each change, because another process may write to it.
    """

    def __init__(
        self, path: str | Path | None, mode: str, dtype: str | None, conditions: dict[str, Any]
    ) -> None:
        self.errors: dict[str, RespondentError] = {}
        self._path = None if path is None else Path(path).expanduser()
        if self._path is not None and self._path.suffix != ".csv":
            raise ParameterError(f"failures: {path} is not a .csv file; end its name in .csv.")

        masked = mask_conditions(conditions)
        listed = ", ".join(f"{name}={value}" for name, value in masked.items())
        self._way = {"mode": mode, "dtype": dtype or "", "conditions": listed}
        # write it now, to report at once, not at the first failure, that it cannot be written
        rows = self._change(set())
        lasting = rows[rows["kind"].isin(_LASTING) & (rows["fingerprint"] != "")]
        self._lasting = {row["fingerprint"]: row for row in lasting.to_dict("records")}

    def find_error(self, identity: Identity, questionnaire: str) -> RespondentError | None:
        """Return a respondent's error from an earlier call if it would occur again."""
        row = self._lasting.get(identity.fingerprint)
        # Whether a model fits into memory depends on the length of the questions.
        if row is None or (row["kind"] == "memory" and row["questionnaire"] != questionnaire):
            return None
        return RespondentError(row["reason"], kind=row["kind"])

    def add(
        self, name: str, error: Exception, identity: Identity | None = None, questionnaire: str = ""
    ) -> None:
        """Record a respondent's failure in place of an earlier one."""
        error = self.errors[name] = RespondentError.of(name, error)
        failure = {
            **self._way,
            "respondent": name,
            "kind": error.kind,
            "reason": " ".join(str(error).split()),
            "questionnaire": questionnaire,
            "fingerprint": identity.fingerprint if identity else "",
            "at": time.strftime("%Y-%m-%dT%H:%M:%S"),
        }
        self._change({name}, failure)

    def remove(self, names: set[str]) -> None:
        """Remove from the file the respondents that have now answered."""
        self._change(names)

    def _change(self, names: set[str], failure: dict[str, str] | None = None) -> pd.DataFrame:
        """Replace respondents' lines by a failure, if there is one, and return all lines.

        The file is locked against other processes.
        """
        path = self._path
        if path is None:
            return pd.DataFrame(columns=_COLUMNS, dtype=str)
        if not path.parent.is_dir():  # the lock would create it
            raise ParameterError(f"{path} cannot be written: there is no folder {path.parent}.")

        try:
            lock = FileLock(path.with_name(f".{path.name}.lock"), timeout=60)
            hold = lock.acquire()
        except (OSError, ValueError) as error:  # a time-out, or an invalid name
            raise ParameterError(f"{path} cannot be written: {error}.") from None

        with hold:
            rows = self._read_rows(path)
            same_way = (rows[list(self._way)] == list(self._way.values())).all(axis=1)
            earlier = rows["respondent"].isin(names) & same_way
            if failure is None and names and not earlier.any():
                return rows

            lines = rows[~earlier].to_dict("records")
            if failure is not None:
                repeats = rows.loc[earlier & (rows["reason"] == failure["reason"]), "at"]
                lines.append(failure | {"at": next(iter(repeats), failure["at"])})  # when it began

            changed = pd.DataFrame(lines, columns=_COLUMNS, dtype=str)
            write_csv(changed, path)
            return changed

    @staticmethod
    def _read_rows(path: Path) -> pd.DataFrame:
        if not path.exists():
            return pd.DataFrame(columns=_COLUMNS, dtype=str)
        if not path.is_file():
            raise ParameterError(f"{path} is not a file: name a .csv file.")

        try:
            rows = with_formulas(pd.read_csv(path, dtype=str, keep_default_na=False))
        except (OSError, ValueError) as error:  # pandas' own errors are ValueErrors
            raise ParameterError(f"{path}: unreadable ({error}); delete the file.") from None

        if set(_COLUMNS) - set(rows):
            raise ParameterError(f"{path} is not a table of failures: name another file.")
        return rows[_COLUMNS]
