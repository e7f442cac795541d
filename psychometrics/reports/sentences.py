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
from .rules import ENOUGH_RESPONDENTS

VERDICTS = {
    "no score": "No score",
    "fails": "Do not interpret",
    "not compared": "Not compared",
    "as impostors": "As far as impostors",
    "depends on size": "Depends on the impostors",
    "reservations": "With reservations",
    "passes": "May be reported",
    "placebo": "A placebo",
}
"""The verdicts in words, by case, from the worst case to the best."""
_SENTENCES = {
    "no score": "Nothing can be written about {whose}: {reason}.",
    "fails": "Do not write about {whose}: {reason}.",
    "not compared": "Do not write about {whose} yet ({scores} on the {title}): {reason}.",
    "depends on size": "Do not write about {whose} ({scores} on the {title}): {reason}.",
    "as impostors": "Do not write about {whose}. {its_scores} ({scores}) {zero} {reason}.",
    "placebo": "Nothing may be written about {whose}: this questionnaire is a placebo. "
    "{its_scores} ({scores}) shows what the method gives without a trait.",
    "reservations": "Write about {whose} ({scores}) only with {these}: {reason}.",
    "passes": "You may report {whose} ({scores}): {reason}. That the {title} measures {them} in a "
    "model is not shown by this.",
}
_RESERVATIONS = {
    "trend": "its answers follow the words for *how often* no more regularly than impostors' do",
    "agreeing": "it agrees with opposite statements more than it tells them apart",
    "accuracy": "it is often wrong at inference, on which the questions rest",
    "commonest": "one option makes up most of its answers",
    "acquiescence": "it leans to one end of the options, whatever the item says",
    "answered": "some items were refused or could not be read",
    "alone": "taken alone, a scale's answers cannot be told from answers dealt out at random",
    "turned": "its answers did not clearly stay when the options were turned round",
    "weather": "its answers do not differ clearly from those to statements about the weather",
}
_NOT_COMPARED = {
    True: "it was not compared with models that know nothing on the same base; name it with --base "
    "FOLDER",
    False: "all items are keyed alike, so agreeing with everything looks the same; ask a "
    "questionnaire with reversed items, too",
}
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

    if np.isnan(row["score"]):
        case = "no score"
        reason = row["verdict"].partition(": ")[2]
    elif "✗" in marks.values() or (marks.get("content"), marks.get("weather")) == ("–", "!"):
        case = "fails"
        reason = _reason_of_failure(checks, marks)
    elif not marks or (
        marks.get("terms" if to_prompts else "content") == "–"
        and not marks.get("weather") == marks.get("turned") == "✓"
    ):
        case = "not compared"
        reason = _NOT_COMPARED[to_prompts]
    elif marks.get("terms") == "!":
        case = "depends on size"
        reason = (
            "it tells opposite words apart better than models that know nothing if their answers "
            "are of some sizes, not if they are of others"
        )
    elif marks.get("score") == "!":
        case = "as impostors"
        reason = (
            f"{impostors} of {len(distance)} models that know nothing score as far once they are "
            "as decided"
        )
    else:
        reserved = [_RESERVATIONS[check] for check, mark in marks.items() if mark == "!"]
        if to_prompts and row["low"] <= 0 <= row["high"]:
            reserved.append("its interval over items includes zero")
        if marks.get("content") == "–":
            reserved.append("all its items are keyed alike, so only the controls speak for it")
        if marks.get("alone") == "–":
            reserved.append("it could not be tested by itself")

        case = "reservations" if reserved else "passes"
        reason = "; ".join(reserved) or _reason_to_report(to_prompts, impostors, len(distance))

    ends = row[["score", "low", "high"]].astype(float).to_dict()
    return Reading(row["title"], case, reason, **ends, impostors=impostors, drawn=len(distance))


def _reason_of_failure(checks: pd.DataFrame, marks: dict[str, str]) -> str:
    """Return why a score must not be interpreted."""
    if marks.get("guessing") == "✗":
        share = float(checks.loc["guessing", "value"])
        right = f"it is right on {number(share, '.0%')} of pairs at inference, which is"
        if share <= _FAR_BELOW_GUESSING:
            return f"{right} far less than guessing gives; check the order of its labels"
        return f"{right} no better than guessing"
    if "terms" in marks:
        return "it tells opposite words apart no better than models that know nothing"
    if marks.get("turned") == "✗":
        return "it reports places in the list, as its answers turn round with the options"
    if marks["content"] == "–":
        return _RESERVATIONS["weather"]
    if checks.loc["content", "value"] == 0:
        return "it gave the same answer to every item"
    return "its answers agree within a scale no better than the same answers dealt out at random"


def _reason_to_report(to_prompts: bool, impostors: int, drawn: int) -> str:
    """Return why a score may be reported."""
    if to_prompts:
        return f"only {impostors} of {drawn} models that know nothing score as far from zero"
    return "its answers agree within a scale better than the same answers dealt out at random"


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
            reading = replace(reading, case="placebo", reason="it is about nothing in a model")
        elif reading.case in ("passes", "reservations") and abs(reading.score) <= farthest:
            earlier = f"{reading.reason}; " if reading.case == "reservations" else ""
            reason = f"{earlier}a questionnaire about nothing scores as far from zero"
            reading = replace(reading, case="reservations", reason=reason)

        readings.append(reading)

    return readings


def state_questionnaire(title: str, readings: Sequence[Reading], subject: str = "model") -> str:
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

    return " ".join(_state_group(title, group, subject) for group in groups.values())


def _state_group(title: str, group: Sequence[Reading], subject: str) -> str:
    """Return the sentences about the scales that share a case and a reason."""
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

    if not is_single and case == "passes":
        reason = "no rule speaks against them"
    elif not is_single and case == "as impostors":
        fewest = min(group, key=lambda each: each.impostors)
        reason = (
            f"at least {fewest.impostors} of {fewest.drawn} models that know nothing score as far "
            "on each once they are as decided"
        )

    whose = f"this {subject}'s {join_words([lower_first(each.title) for each in group])}"
    if [each.title for each in group] == [title]:  # a scale without a name of its own
        whose = f"this {subject}'s score on {title}"

    return _SENTENCES[case].format(
        whose=whose,
        scores=join_words([number(each.score, ".3f") for each in group]),
        title=title,
        reason=reason,
        zero=zero,
        its_scores="Its score" if is_single else "Its scores",
        these="these reservations" if "; " in reason else "this reservation",
        them="it" if is_single else "them",
    )


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
    pair = f"{first} and {second} differ in {join_words([lower_first(t) for t in rows['title']])}"
    least = "" if len(rows) == 1 else "at least "
    reasons = {
        "no difference shown": "the interval of their difference includes zero",
        "no clearer than between random heads": f"{least}{number(rows['null'].min(), '.0%')} of "
        "pairs of models that know nothing differ as clearly",
        "cannot be tested": "too few items were answered by both",
    }
    if verdict in reasons:
        return f"Do not write that {pair}: {reasons[verdict]}."
    if verdict.startswith("cannot be judged"):
        return (
            f"Do not write yet that {pair}: models that know nothing were not asked on the base "
            "of each."
        )
    if unread:
        names = join_words(unread)
        return f"Do not write that {pair}: the score of {names} must not be interpreted."

    value = f"by {join_words([number(gap, '+.3f') for gap in rows['difference']])}"
    if verdict == "differ on these items":
        return f"You may write that {pair} {value}, on these items; other items may differ."
    return f"You may write that scores of {pair} {value}, which is not yet a difference in a trait."


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
    names = join_words([lower_first(title) for title in rows["title"]])
    row = rows.iloc[0]
    if row["respondents"] == 0:
        return f"Nothing can be written about {names}: nobody answered all its items."
    if np.isnan(row["alpha"]):
        reason = "these respondents do not differ, or there is one item"
        if row["respondents"] < _FEWEST_FOR_ALPHA:
            reason = "it needs three respondents that answered all items"
        return f"No alpha of {names} can be reported: {reason}."

    alphas = join_words([show_alpha(value) for value in rows["alpha"]])
    value = f"its alpha of {alphas} is" if len(rows) == 1 else f"the alphas of {alphas} are"
    for limit, whose in (("independent", "random answers"), ("habit", "mere habits")):
        if row["alpha"] <= row[limit]:
            reached = number(rows[limit].max(), ".2f")
            return (
                f"Do not write that these respondents differ in {names}: {value} within reach of "
                f"{whose} (up to {reached})."
            )

    if row.get("alpha_raw", np.nan) >= row["alpha"]:
        return (
            f"Do not write that these respondents differ in {names}: {value} as high without "
            "reversing any answer."
        )

    few = ""
    if row.get("bias", np.nan) >= row.get("random_low", np.nan):
        few = " Answers at random have as small a share of bias, so agreeing may explain it."

    least = rows["respondents"].min()
    if least < ENOUGH_RESPONDENTS:
        few += f" It rests on {least} respondents without gaps, too few for a precise alpha."

    return (
        f"You may write that these respondents differ consistently on {names}: {value} beyond what "
        f"random answers and habits reach.{few} In what they differ is not shown by this."
    )


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
