"""Say in plain English what may be written about a score, and why.

One function decides for every case (:func:`read_scale`), so the page, the terminal and the JSON
file say the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ..formats import number
from .assessments import Assessment
from .report import _load_texts
from .rules import ENOUGH_RESPONDENTS, find_failure

_TEXTS = _load_texts("sentences")
VERDICTS: dict[str, str] = _TEXTS["verdicts"]
"""The verdicts in words, by case, from the worst case to the best."""
_MOST_NAMES = 6
_FAR_BELOW_GUESSING = 1 / 6  # half of what guessing gives
_FEWEST_FOR_ALPHA = 3


@dataclass(frozen=True)
class Reading:
    """What may be written about one scale.

    Parameters
    ----------
    title : str
        Title of the scale.
    case : str
        A key of ``VERDICTS``.
    reason : str
        Why, as a clause that begins in lower case, or a sentence of a group of scales.
    score, low, high : float
        The score with its interval over items.
    impostors, drawn : int
        How many of the ``drawn`` null respondents score as far from zero.
    """

    title: str
    case: str
    reason: str
    score: float = np.nan
    low: float = np.nan
    high: float = np.nan
    impostors: int = 0
    drawn: int = 0

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        return VERDICTS[self.case]


def read_scale(row: pd.Series, flags: pd.DataFrame, nulls: pd.DataFrame) -> Reading:
    """Return what may be written about one scale.

    Parameters
    ----------
    row : Series
        A row of ``Assessment.scores``.
    flags, nulls : DataFrame
        The flags of the row's questionnaire and the null respondents' scores on the row's scale.

    Examples
    --------
    >>> row = pd.Series({"scale": "fear", "title": "Fear", "score": 0.3, "low": 0.1, "high": 0.5,
    ...                  "mark": "!", "verdict": "with reservations: score"})
    >>> flags = pd.DataFrame({"scale": ["fear", "fear"], "check": ["terms", "score"],
    ...                       "mark": ["✓", "!"], "value": [0.4, 0.3]})
    >>> nulls = pd.DataFrame({"score": [0.1, -0.4, 0.0]})
    >>> reading = read_scale(row, flags, nulls)
    >>> reading.case, reading.reason
    ('as impostors', '1 of 3 models that know nothing score as far once they are as decided')
    """
    checks = flags[flags["scale"].isin(["", row["scale"]])].set_index("check")
    marks = checks["mark"].to_dict()
    to_prompts = "terms" in marks
    distance = nulls["score"].abs() if len(nulls) else pd.Series(dtype=float)
    impostors = int((distance >= abs(row["score"]) - 1e-12).sum()) if to_prompts else 0

    counts = {"impostors": impostors, "drawn": len(distance)}
    compared = marks.get("terms" if to_prompts else "content")
    failure = find_failure(checks)
    if np.isnan(row["score"]):
        case = "no score"
        reason = row["verdict"].partition(": ")[2]
    elif failure:
        case = "fails"
        share = np.nan
        if marks.get("guessing") == "✗":
            share = float(checks.loc["guessing", "value"])
            failure = "guessing" if share > _FAR_BELOW_GUESSING else "wrong labels"

        reason = _TEXTS["failures"][failure].format(share=number(share, ".0%"))
    elif not marks or (compared == "–" and not marks.get("weather") == marks.get("turned") == "✓"):
        case = "not compared"
        reason = _TEXTS["reasons"][f"{'prompts' if to_prompts else 'items'} not compared"]
    elif compared == "!" or marks.get("score") == "!":
        case = "depends on size" if compared == "!" else "as impostors"
        reason = _TEXTS["reasons"][case].format(**counts)
    else:
        case = "passes"
        reason = _TEXTS["reasons"][f"{'prompts' if to_prompts else 'items'} pass"].format(**counts)
        reserved = _list_reservations(row, marks)
        if reserved:
            case = "reservations"
            reason = "; ".join(reserved)

    ends = row[["score", "low", "high"]].astype(float).to_dict()
    return Reading(row["title"], case, reason, **ends, **counts)


def _list_reservations(row: pd.Series, marks: dict[str, str]) -> list[str]:
    """Return the reservations with which a score may be reported."""
    names = [check for check, mark in marks.items() if mark == "!"]
    if "terms" in marks and row["low"] <= 0 <= row["high"]:
        names.append("zero")
    if marks.get("content") == "–":
        names.append("keyed alike")
    if marks.get("alone") == "–":
        names.append("not alone")
    return [_TEXTS["reservations"][name] for name in names]


def read_questionnaire(assessment: Assessment, questionnaire: str) -> list[Reading]:
    """Return what may be written about each scale of a questionnaire, in the scales' order."""
    scores = assessment.scores[assessment.scores["questionnaire"] == questionnaire]
    flags = assessment.flags[assessment.flags["questionnaire"] == questionnaire]
    nulls = assessment.nulls
    placebos = assessment.scores[assessment.scores["questionnaire"].str.contains("placebo")]
    farthest = placebos["score"].abs().max() if assessment.base is not None else np.nan
    readings = []
    for _, row in scores.iterrows():
        of_scale = nulls
        if len(nulls):
            of_scale = nulls[
                (nulls["questionnaire"] == questionnaire) & (nulls["scale"] == row["scale"])
            ]

        reading = read_scale(row, flags, of_scale)
        if "placebo" in questionnaire and reading.case != "no score":
            reading = replace(reading, case="placebo", reason=_TEXTS["reasons"]["placebo"])
        elif reading.case in ("passes", "reservations") and abs(reading.score) <= farthest:
            earlier = f"{reading.reason}; " if reading.case == "reservations" else ""
            reason = f"{earlier}{_TEXTS['reasons']['as placebo']}"
            reading = replace(reading, case="reservations", reason=reason)

        readings.append(reading)

    return readings


def state_questionnaire(title: str, readings: Sequence[Reading]) -> str:
    """Return the sentences that say what may be written about a questionnaire's scales.

    Scales of one case share their sentences; the worst case comes first.

    Examples
    --------
    >>> reading = Reading("Anxiety", "fails", "it gave the same answer to every item", 3.0)
    >>> state_questionnaire("GAD-7", [reading])
    "Do not write about this model's anxiety: it gave the same answer to every item."
    """
    groups: dict[tuple[str, str], list[Reading]] = {}
    order = list(VERDICTS)
    for reading in sorted(readings, key=lambda each: order.index(each.case)):
        # impostors reach each score in another number, so their reasons are put together below
        key = "" if reading.case in ("as impostors", "passes") else reading.reason
        groups.setdefault((reading.case, key), []).append(reading)

    sentences: list[str] = []
    for group in groups.values():
        case = group[0].case
        reason = group[0].reason
        is_single = len(group) == 1
        intervals = [each for each in group if not np.isnan(each.low)]
        differs = bool(intervals) and not any(each.low <= 0 <= each.high for each in intervals)
        zero = "differ from zero, but"
        if not differs:
            zero = "cannot be told from zero, and"
        elif is_single:
            zero = "differs from zero, but"

        if not is_single and case in ("passes", "as impostors"):
            fewest = min(group, key=lambda each: each.impostors)
            text = _TEXTS["reasons"]["all pass" if case == "passes" else "all as impostors"]
            reason = text.format(impostors=fewest.impostors, drawn=fewest.drawn)

        whose = f"this model's {join_words([lower_first(each.title) for each in group])}"
        if [each.title for each in group] == [title]:  # a scale without a name of its own
            whose = f"this model's score on {title}"

        sentence = _TEXTS["cases"][case].format(
            whose=whose,
            scores=join_words([number(each.score, ".3f") for each in group]),
            title=title,
            reason=reason,
            zero=zero,
            its_scores="Its score" if is_single else "Its scores",
            these="these reservations" if "; " in reason else "this reservation",
            them="it" if is_single else "them",
        )
        sentences.append(sentence)

    return " ".join(sentences)


def state_differences(
    rows: pd.DataFrame, first: str, second: str, unread: Sequence[str] = ()
) -> str:
    """Return the sentence about the differences between two models on scales of one verdict.

    Parameters
    ----------
    rows : DataFrame
        ``title, difference, null, verdict``, one row per scale; the verdict is the same in all.
    first, second : str
        Names of the models.
    unread : sequence of str
        Those of the two whose scores must not be interpreted.

    Examples
    --------
    >>> rows = pd.DataFrame({"title": ["Anxiety"], "difference": [0.1], "null": [0.4],
    ...                      "verdict": ["no difference shown"]})
    >>> state_differences(rows, "a", "b")
    'Do not write that a and b differ in anxiety: the interval of their difference includes zero.'
    """
    verdict = rows["verdict"].iloc[0]
    scales = join_words([lower_first(title) for title in rows["title"]])
    share = number(rows["null"].min(), ".0%")
    case = "unread" if unread and verdict.startswith("differ") else verdict
    sentence: str = _TEXTS["differences"][case].format(
        pair=f"{first} and {second} differ in {scales}",
        share=share if len(rows) == 1 else f"at least {share}",
        unread=join_words(unread or [""]),
        values=join_words([number(gap, "+.3f") for gap in rows["difference"]]),
    )
    return sentence


def state_scales_of_answers(rows: pd.DataFrame) -> str:
    """Return the sentence about scales of a table of answers that have one case.

    Parameters
    ----------
    rows : DataFrame
        Rows of the table ``scales`` of
        :func:`psychometrics.reports.answer_profiles.assess_answers`, where known with ``bias,
        random_low`` and ``alpha_raw`` of its table ``bias``.

    Examples
    --------
    >>> rows = pd.DataFrame({"title": ["Anxiety"], "respondents": [2], "alpha": [float("nan")]})
    >>> state_scales_of_answers(rows)
    'No alpha of anxiety can be reported: it needs three respondents that answered all items.'
    """
    row = rows.iloc[0]
    if row["respondents"] == 0:
        case = "nobody"
    elif np.isnan(row["alpha"]):
        case = "few" if row["respondents"] < _FEWEST_FOR_ALPHA else "alike"
    elif row["alpha"] <= row["independent"]:
        case = "independent"
    elif row["alpha"] <= row["habit"]:
        case = "habit"
    elif row.get("alpha_raw", np.nan) >= row["alpha"]:
        case = "unreversed"
    else:
        case = "passes"

    texts = _TEXTS["answers"]
    least = rows["respondents"].min()
    doubts = ""
    if row.get("bias", np.nan) >= row.get("random_low", np.nan):
        doubts += texts["bias"]
    if least < ENOUGH_RESPONDENTS:
        doubts += texts["short"].format(least=least)

    alphas = join_words([show_alpha(value) for value in rows["alpha"]])
    sentence: str = texts[case].format(
        names=join_words([lower_first(title) for title in rows["title"]]),
        alphas=f"its alpha of {alphas} is" if len(rows) == 1 else f"the alphas of {alphas} are",
        reached=number(rows[case].max(), ".2f") if case in rows else "",
        doubts=doubts,
    )
    return sentence


def show_alpha(value: float) -> str:
    """Return an alpha in words; what lies below −1 says no more than that.

    Examples
    --------
    >>> show_alpha(0.712), show_alpha(-35.24)
    ('0.71', 'below −1')
    """
    return "below −1" if value < -1 else number(value, ".2f")


def show_p(value: float) -> str:
    """Return a p value with its sign.

    Examples
    --------
    >>> show_p(0.0002), show_p(0.04)
    ('p < .001', 'p = .040')
    """
    text = number(float(value), "p")
    return f"p {text}" if text[0] in "<>" else f"p = {text}"


def lower_first(title: str) -> str:
    """Return a title as it stands within a sentence.

    Examples
    --------
    >>> lower_first("Sense of coherence"), lower_first("SEA")
    ('sense of coherence', 'SEA')
    """
    return title if title[:2].isupper() else title[:1].lower() + title[1:]


def join_words(words: Sequence[str]) -> str:
    """Join words with commas and *and*; of more than six, name three and count the others.

    Examples
    --------
    >>> join_words(["a"]), join_words(["a", "b", "c"]), join_words(list("abcdefg"))
    ('a', 'a, b and c', 'a, b, c and 4 more')
    """
    if len(words) > _MOST_NAMES:
        words = [*words[:3], f"{len(words) - 3} more"]
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
