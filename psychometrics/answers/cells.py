"""Read the cells of a table of answers: numbers, labels, or models' replies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..checks import UNANSWERED
from ..exceptions import ParameterError
from ..modes.replies import parse_reply
from ..questionnaires import Questionnaire
from .item_names import _Cell, _ItemNames
from .layout import _Layout
from .tables import _Notes, _Replies, listed, several, shown

_CODINGS = ("values", "from 0", "from 1")
_EXAMPLES = 5


@dataclass
class _CellReader:
    """A reader of the cells of a table of answers.

    Parameters
    ----------
    questionnaire : Questionnaire
    numbers, already_reversed
        Settings, as in :func:`psychometrics.answers.files.read_answers`.
    may_be_replies : bool
        Whether cells may be whole replies of models.

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> from psychometrics.answers.layout import _LayoutReader
    >>> from psychometrics.answers.tables import read_table
    >>> gad, notes = load_questionnaire("gad7"), _Notes("a.csv")
    >>> table = read_table(pd.DataFrame({"id": ["a", "b"], "gad1": ["Several days", "often"]}))
    >>> settings = dict.fromkeys(["respondent", "run", "item", "value", "conditions"])
    >>> layout = _LayoutReader(table, gad, settings, None, notes).read()
    >>> _CellReader(gad, "auto", None, False).read(layout, notes)[["value", "status"]].to_numpy()
    array([[1.0, 'ok'],
           [nan, 'unreadable']], dtype=object)
    """

    questionnaire: Questionnaire
    numbers: str
    already_reversed: bool | None
    may_be_replies: bool

    def __post_init__(self) -> None:
        self.names = _ItemNames(self.questionnaire)
        self.options = self.names.options

    def read(self, layout: _Layout, notes: _Notes) -> pd.DataFrame:
        """Return the answers with the ``value`` and the ``status`` that each cell represents.

        Parameters
        ----------
        layout : Layout
            Cells, as ``_LayoutReader`` returns them.
        notes : _Notes
            Notes to which decisions and omissions are added.

        Raises
        ------
        ParameterError
            Numbers, or columns that are marked as reversed, have two possible meanings.
        """
        answers = layout.answers.reset_index(drop=True)
        kinds = np.empty(len(answers), dtype=object)
        values = np.full(len(answers), np.nan)
        for item, group in answers.groupby("item_id"):
            # read each distinct cell once
            code, distinct = pd.factorize(group["cell"], use_na_sentinel=False)
            cells = [self._read_cell(item, cell) for cell in distinct]
            kinds[group.index] = np.array([cell.kind for cell in cells], dtype=object)[code]
            values[group.index] = np.array([cell.value for cell in cells], dtype=float)[code]

        lowest = {item: min(options.values) for item, options in self.options.items()}
        highest = {item: max(options.values) for item, options in self.options.items()}
        low = answers["item_id"].map(lowest)
        high = answers["item_id"].map(highest)
        answers = answers.assign(value=values, lowest_option=low, highest_option=high)
        is_number = self._translate(answers, kinds, notes)
        outside = is_number & ~answers["value"].between(low, high)
        is_status = [outside, is_number, *(kinds == k for k in ("value", "missing", "refused"))]
        statuses = ["out_of_range", "ok", "ok", "missing", "refused"]
        answers["status"] = np.select(is_status, statuses, "unreadable")
        if "given_status" in answers:  # the status in a table that this package wrote
            lost = (answers["status"] == "missing") & answers["given_status"].isin(UNANSWERED)
            answers.loc[lost, "status"] = answers.loc[lost, "given_status"]

        self._note_statuses(answers, is_number, notes)
        answers["value"] = answers["value"].where(answers["status"] == "ok")
        return self._undo_reversal(answers, layout, notes)

    def _read_cell(self, item: str, cell: object) -> _Cell:
        if isinstance(cell, _Replies):
            replies = [self._read_cell(item, reply) for reply in cell]
            return next((r for r in replies if r.kind not in ("unreadable", "missing")), replies[0])

        answer = self.options[item].read(cell)
        if answer.kind == "unreadable" and self.may_be_replies:
            questions = [self.questionnaire.item(item)]
            ((status, value),) = parse_reply(str(cell), self.questionnaire, questions)
            kinds = {"ok": "value", "refused": "refused"}
            return _Cell(kinds.get(status, "unreadable"), value)

        return answer

    def _translate(
        self, answers: pd.DataFrame, kinds: NDArray[np.object_], notes: _Notes
    ) -> NDArray[np.bool_]:
        """Translate numbers, codes and letters into options; return which cells were translated."""
        translated: NDArray[np.bool_] = kinds == "letter"
        translated &= self._letters_are_places(answers[translated], notes)
        answers.loc[translated, "value"] = self._decode(answers[translated], "from 0")

        usual = {"number": "values"}
        codes = {kind for kind in kinds if kind.startswith("code ")}
        if len(codes) == 1:
            usual[codes.pop()] = "from 1"  # codes such as A1 and A2 count the options

        is_decided = self.numbers not in ("auto", "letters")
        for kind, default in usual.items():
            is_kind = kinds == kind
            if not is_decided and is_kind.any():
                if kind != "number" and answers.loc[is_kind, "value"].nunique() == 1:
                    continue  # a single code may be a remark
                self._check_coding(answers[is_kind], default, notes)

            coding = self.numbers if is_decided else default
            answers.loc[is_kind, "value"] = self._decode(answers[is_kind], coding)
            translated |= is_kind

        return translated

    def _decode(self, numbers: pd.DataFrame, coding: str) -> pd.Series:
        """Translate numbers into options' values; a number that fits no option gets no value."""
        decoded = numbers["value"].copy()
        if coding == "values":
            return decoded

        for item, group in numbers.groupby("item_id")["value"]:
            options = self.options[item]
            if coding == "labels":
                labelled = [options.label(f"{number:g}") for number in group]
                decoded[group.index] = np.array(labelled, dtype=float)
            else:
                places = np.arange(len(options.values)) + (coding == "from 1")
                values = np.interp(group, places, options.values, left=np.nan, right=np.nan)
                decoded[group.index] = values

        return decoded

    def _letters_are_places(self, letters: pd.DataFrame, notes: _Notes) -> bool:
        """Determine whether letters name the options by their places: A is the first option.

        A letter that begins a label may also abbreviate it, such as A for *agree*. A single letter
        may be a remark.
        """
        if letters.empty or self.numbers != "auto":
            return self.numbers == "letters"

        choices = [self.options[item].options for item in letters["item_id"].unique()]
        places = {chr(ord("A") + place) for place in range(max(map(len, choices)))}
        initials = {option.label[:1].upper() for options in choices for option in options}
        used = {chr(ord("A") + int(place)) for place in letters["value"].unique()}
        is_clear = len(used & places) > 1 and not places & initials

        label = choices[0][0].label
        text = f"letters are taken as the options' places: A is '{label}' (else set numbers=values)"
        if not is_clear:
            text = f"letters are left out: if A is '{label}' and so on, set numbers=letters"
        if used & places:
            notes.add("letters", text, 0 if is_clear else len(letters))
        return is_clear

    def _check_coding(self, numbers: pd.DataFrame, usual: str, notes: _Notes) -> None:
        """Refuse numbers that do not have their usual meaning but may have another one.

        A number that fits no coding, such as 99, is a code for no answer and decides nothing.
        """
        used = numbers[["item_id", "value"]].drop_duplicates()
        self._refuse_renumbered(used["item_id"].unique(), notes)
        decoded = {coding: self._decode(used, coding) for coding in _CODINGS}
        strays = pd.DataFrame({c: self._find_strays(used, decoded[c]) for c in _CODINGS})
        fitting = [c for c in _CODINGS if strays[c].equals(strays.all(axis=1))]
        # 0 is a usual code for no answer, but 4 among answers from 1 is not
        is_label = (used["value"] != 0) & (used["value"] % 1 == 0)
        explained = (~strays).mul(strays[usual] & is_label.array, axis=0).any()
        rivals = fitting or [coding for coding in _CODINGS if explained[coding]]
        values = next(iter(self.options.values())).values
        low, high = used["value"].agg(["min", "max"])
        text = f"numbers are {low:g} to {high:g}, the options {min(values):g} to {max(values):g}"
        if rivals and usual not in fitting:
            raise ParameterError(
                f"{notes.place}: {text}, which has two meanings; set numbers={rivals[0]!r}, or "
                f"numbers={usual!r} if a number outside the options means no answer."
            )

        meaning = "values" if usual == "values" else f"places, {usual}"
        alternatives = [coding for coding in fitting if not decoded[coding].equals(decoded[usual])]
        mend = f"; if this is wrong, set numbers={alternatives[0]!r}" if alternatives else ""
        notes.add("numbers", f"{text}: taken as the options' {meaning}{mend}")

    def _refuse_renumbered(self, items: NDArray[np.object_], notes: _Notes) -> None:
        """Refuse numbers if an option is labelled by a number that is not its value."""
        for item in items:
            for option in self.options[item].options:
                label = self.options[item].read(option.label)
                if label.kind == "number" and label.value != option.value:
                    raise ParameterError(
                        f"{notes.place}: {item} has an option labelled {option.label} whose value "
                        f"is {option.value:g}; set numbers=labels or numbers=values."
                    )

    def _find_strays(self, numbers: pd.DataFrame, decoded: pd.Series) -> list[bool]:
        """Find the numbers that are neither an option nor a mean between two options."""
        strays = []
        for item, number, value in zip(numbers["item_id"], numbers["value"], decoded, strict=True):
            values = self.options[item].values
            is_mean = number % 1 != 0 and min(values) < value < max(values)
            strays.append(value not in values and not is_mean)

        return strays

    def _note_statuses(
        self, answers: pd.DataFrame, is_number: NDArray[np.bool_], notes: _Notes
    ) -> None:
        """Report cells without an answer, with examples, and numbers between two options."""
        missing = int((answers["status"] == "missing").sum())
        if missing:
            notes.add("missing", f"{several(missing, 'cell')} empty", missing)

        for status in ("out_of_range", "unreadable", "refused"):
            rows = answers[answers["status"] == status]
            groups = list(rows.groupby(rows["cell"].map(shown), sort=False))
            for text, group in groups[:_EXAMPLES]:
                row = group.iloc[0]
                reason = "is not from {lowest_option:g} to {highest_option:g}".format(**row)
                if status == "refused":
                    reason = "refuses"
                elif status == "unreadable":
                    nearest = self.options[row["item_id"]].nearest(text)
                    reason = "is not an option" + (f"; is it '{nearest}'?" if nearest else "")

                more = f" (also in {several(len(group) - 1, 'cell')})" if len(group) > 1 else ""
                note = f"{row['place']}, column {row['column']}: '{text}'{more} {reason}"
                notes.add(status, note, len(group))

            further = sum(len(group) for _, group in groups[_EXAMPLES:])
            if further:
                note = f"{several(further, 'cell')} more: {status.replace('_', ' ')}"
                notes.add(status, note, further)

        numbers = answers[is_number & (answers["status"] == "ok")].groupby("item_id")["value"]
        means = sum(int((~v.isin(self.options[item].values)).sum()) for item, v in numbers)
        if means:
            note = f"{several(means, 'number')} between two options, such as means of answers; kept"
            notes.add("means", note, means)

    def _undo_reversal(self, answers: pd.DataFrame, layout: _Layout, notes: _Notes) -> pd.DataFrame:
        """Restore the original answers to items that the table has already reversed."""
        reversed_items = self.names.reverse_keyed
        turned = answers["item_id"].isin(reversed_items)
        if layout.marked:
            turned = answers["column"].isin(layout.marked)
            if self.already_reversed is None:
                raise ParameterError(
                    f"{notes.place}: the headers {listed(list(layout.marked))} are marked as "
                    "reversed; set already_reversed=true if their answers have been reversed, or "
                    "already_reversed=false if the mark stands for the item and its answers are "
                    "as they were given."
                )

        if self.already_reversed and turned.any():
            original = answers["lowest_option"] + answers["highest_option"] - answers["value"]
            answers.loc[turned, "value"] = original[turned]
            items = list(answers.loc[turned, "item_id"].unique())
            text = f"{len(items)} items are reversed back, as already_reversed requests"
            notes.add("reversed", f"{text}: {listed(items)}", len(items))
        elif reversed_items:
            some = f"{len(reversed_items)} reversed items"
            text = "are taken as they were answered (else set already_reversed)"
            notes.add("reversed", f"{some} {text}", len(reversed_items))

        return answers
