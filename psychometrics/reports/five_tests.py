"""The five tests as a page shows them: what was done, the result, what it means, how to do it.

The names are those of the book: impostor, weather, ten runs, turn it round, twin. A test that was
not done says which command does it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import pandas as pd

from ..formats import fill, number
from ..measures.norms import compare_means
from .assessments import Assessment
from .controls import _EMPTY_ID, _EMPTY_ITEM
from .report import NamedTest, _load_texts
from .sentences import join_words, read_questionnaire, show_p

_TEXTS = _load_texts("five_tests")
QUESTIONS: dict[str, str] = _TEXTS["questions"]
"""What each test asks, by its name."""
_SEVERITY = ("failed", "open", "not done", "passed", "not needed")
_PLACEBO = "placebo_weather"
_NEW_PLACEBO = "psychometrics new-questionnaire my-weather.csv"
_COMPARED_TERMS = {
    "✓": "Impostors tell opposite words apart less well",
    "!": "At some sizes impostors tell opposite words apart as well",
    "✗": "Impostors tell opposite words apart as well",
    "–": "Opposite words cannot be compared",
}
_MOST_LISTED = 6  # of more models, each test shows how many pass and fail


def examine_model(assessment: Assessment) -> list[NamedTest]:
    """Return the five tests of one model.

    Examples
    --------
    >>> from psychometrics.measures.styles import empty_answers
    >>> from psychometrics.reports.profiles import judge_respondents
    >>> answers = empty_answers("gad7", "agree")
    >>> name = answers["respondent_id"].iloc[0]
    >>> tests = examine_model(judge_respondents(answers, "gad7", [name])[name])
    >>> [(test.name, test.status) for test in tests][:2]
    [('impostor', 'failed'), ('weather', 'not done')]
    """
    if assessment.base is not None:
        impostor = _impostors_by_heads(assessment)
        turned = _test("opposite words", *_read_check(assessment, "agreeing"))
    else:
        status, results = _read_check(assessment, "content")
        if status == "not done" and (_of_check(assessment, "content")["mark"] == "✓").any():
            status = "open"

        command = "psychometrics questionnaires" if status in ("not done", "open") else ""
        impostor = _test("dealt answers", status, results, command)
        turned = _turned_options(assessment)

    twin = None
    if assessment.agreement is not None and "with_others" in assessment.agreement:
        twin = _test_twins("twins", assessment.agreement, "with_others", assessment.short_title)

    twin = twin or _test("no twin", "not done", (), assessment.command(against="TWIN"))

    return [impostor, _weather(assessment), _ten_runs(assessment), turned, twin]


def examine_models(
    assessments: Mapping[str, Assessment], agreement: pd.DataFrame | None = None
) -> list[NamedTest]:
    """Return the five tests of several models, with a result for each model.

    Parameters
    ----------
    assessments : mapping of str to Assessment
        Assessments by the names of the models.
    agreement : DataFrame, optional
        The models' agreement with one another, on which the twin test then rests; by default, it
        rests on each model's own.
    """
    by_model = {name: examine_model(each) for name, each in assessments.items()}
    merged = []
    for tests in zip(*by_model.values(), strict=True):
        worst = min(tests, key=lambda test: _SEVERITY.index(test.status))
        lines = worst.results
        if len(tests) > _MOST_LISTED:
            lines = []
            for status in _SEVERITY:
                of_models = zip(by_model, tests, strict=True)
                names = [name for name, test in of_models if test.status == status]
                if names:
                    lines.append(f"{status}: {len(names)} of {len(tests)} ({join_words(names)})")

        elif any(test.results != lines for test in tests):
            of_models = zip(by_model, tests, strict=True)
            lines = [f"{name}, {line}" for name, test in of_models for line in test.results]

        merged.append(worst.model_copy(update={"results": lines}))

    if agreement is not None:
        (first, *_) = assessments.values()
        merged[-1] = _test_respondents(agreement, first.short_title)
    return merged


def _test(
    case: str, status: str, results: Sequence[str] = (), command: str = "", **values: object
) -> NamedTest:
    """Return a test in the words of its case, in whose place ``values`` are filled in."""
    texts = _TEXTS["cases"][case]
    return NamedTest(
        name=texts["test"],
        question=QUESTIONS[texts["test"]],
        status=status,
        done=texts["done"].format(**values),
        results=list(results) or [texts["nothing"]],
        meaning=(texts.get(status) or texts["meaning"]).format(**values),
        command=command,
    )


def _of_check(assessment: Assessment, check: str) -> pd.DataFrame:
    return assessment.flags[assessment.flags["check"] == check]


def _worst(marks: Iterable[str]) -> str:
    """Return the status of a test from the marks of its checks."""
    status = {"✗": "failed", "!": "failed", "–": "not done", "✓": "passed"}
    return min((status[mark] for mark in marks), key=_SEVERITY.index, default="not done")


def _read_check(assessment: Assessment, check: str) -> tuple[str, list[str]]:
    """Return the status of a test by one check, and the check's words by questionnaire."""
    flags = _of_check(assessment, check)
    lines = [
        f"{assessment.short_title(row.questionnaire)}: {row.words}" for row in flags.itertuples()
    ]
    return _worst(flags["mark"]), lines


def _name_scales(assessment: Assessment, rows: pd.DataFrame) -> list[str]:
    """Return the titles of the scales that rows are about."""
    keys = zip(rows["questionnaire"], rows["scale"], strict=True)
    return [assessment.scale_names[key] for key in keys]


def _impostors_by_heads(assessment: Assessment) -> NamedTest:
    """Compare answers to prompts with random heads on the model's base."""
    base = assessment.base
    heads = assessment.null_items["respondent_id"].nunique() if len(assessment.null_items) else 0
    if base is None or not base.is_own:
        command = assessment.command(base="FOLDER")
        return _test("impostors on another base", "not done", (), command, heads=heads)

    names = _name_scales(assessment, assessment.scores)
    questionnaires = assessment.scores["questionnaire"].unique()
    readings = [each for name in questionnaires for each in read_questionnaire(assessment, name)]
    results = [
        f"{name}: {reading.impostors} of {reading.drawn} are as far from zero."
        for name, reading in zip(names, readings, strict=True)
    ]

    flags = _of_check(assessment, "terms")
    for mark, sentence in _COMPARED_TERMS.items():
        scales = flags[flags["mark"] == mark]
        if len(scales):
            listed = f": {', '.join(_name_scales(assessment, scales))}"
            results.append(f"{sentence}{listed if len(scales) < len(flags) else ''}.")

    is_judged = assessment.flags["check"].isin(["terms", "score"])
    status = _worst(assessment.flags.loc[is_judged, "mark"])
    return _test("impostors", status, results, heads=heads, base=base.description)


def _weather(assessment: Assessment) -> NamedTest:
    """Compare scores with those of placebo questionnaires, if any was asked."""
    scores = assessment.scores.dropna(subset="score")
    is_placebo = scores["questionnaire"].str.contains("placebo")
    to_prompts = assessment.base is not None
    controls = assessment.controls
    if not is_placebo.any() and controls is not None and len(_of_check(assessment, "weather")):
        return _weather_by_controls(assessment, controls)

    if not is_placebo.any() or is_placebo.all():
        command = _NEW_PLACEBO
        if assessment.mode == "chat" and not assessment.settings.get("controls"):
            command = assessment.command(controls=True)
        elif assessment.settings:
            questionnaires = assessment.settings["questionnaires"]
            command = assessment.command(questionnaires=[*questionnaires, _PLACEBO])
        reason = _why_without_controls(assessment)
        case = "weather without controls" if reason else "no weather"
        return _test(case, "not done", (), command, reason=reason)

    sizes = scores["score"].abs()
    placebo = scores.loc[[sizes[is_placebo].idxmax()]]
    (name,) = _name_scales(assessment, placebo)
    results = [f"{name}: {number(placebo['score'].iloc[0], '.3f')}."]
    is_nearer = ~is_placebo & (sizes <= sizes[is_placebo].max())
    if not to_prompts:
        return _test("weather of items", "open", results)

    status = "open"
    ends = scores[["low", "high"]].abs()
    nearest = ends.min(axis=1).where(scores["low"] * scores["high"] > 0, 0.0)
    if is_nearer.any():
        status = "failed"
        names = _name_scales(assessment, scores[is_nearer])
        results.append(f"No farther from zero: {'; '.join(names)}.")
    elif nearest[~is_placebo].min() > ends[is_placebo].max(axis=None):
        status = "passed"

    return _test("weather of prompts", status, results)


def _why_without_controls(assessment: Assessment) -> str:
    """Say why a chat model's control questions have no answers, if asking them failed."""
    asked = assessment.asked
    if asked is None or "left out: controls" not in asked.index:
        return ""
    return f"The control questions could not be asked: {asked.loc['left out: controls', 'how']}"


def _weather_by_controls(assessment: Assessment, controls: pd.DataFrame) -> NamedTest:
    """Compare a chat model's scales with the weather, and its items with an empty item."""
    flags = _of_check(assessment, "weather")
    names = _name_scales(assessment, flags)
    results = [f"{name}: {words}" for name, words in zip(names, flags["words"], strict=True)]

    for questionnaire in assessment.questionnaires:
        is_asked = controls["questionnaire"] == f"{questionnaire.id}_controls"
        asked = controls[is_asked].set_index("item_id")
        empty = asked.loc[asked["status"] == "ok", "value"].get(_EMPTY_ID)
        if empty is None:
            continue

        options = questionnaire.choices(questionnaire.items[0])
        label = next(option.label for option in options if option.value == empty)
        names = [item.id for item in questionnaire.items]
        items = asked.loc[asked.index.isin(names), "value"]
        results.append(
            f"{questionnaire.short_title}: the empty item (“{_EMPTY_ITEM}”) gets “{label}”, as do "
            f"{(items == empty).sum()} of {len(items)} items asked with it."
        )

    status = {"✓": "passed", "!": "failed"}.get("".join(set(flags["mark"])), "open")
    return _test("weather of controls", status, results)


def _ten_runs(assessment: Assessment) -> NamedTest:
    """Count a model as one respondent, and say what counting its runs as people would give."""
    runs = assessment.runs
    if runs is None or runs["runs"].max() < 2:
        if assessment.mode == "chat":
            return _test("chat asked once", "not done", (), assessment.command(runs=10))
        return _test("asked once", "not needed")

    number_of_runs = int(runs["runs"].max())
    norms = pd.DataFrame({"questionnaire": [], "scale": []})
    if assessment.norms is not None:
        norms = assessment.norms

    results = []
    overcounted = False
    for _, row in runs.iterrows():
        text = f"{row['title']}: SD over runs {number(row['sd'], '.2f')}"
        of_scale = norms[norms["questionnaire"] == row["questionnaire"]]
        of_scale = of_scale[of_scale["scale"] == row["scale"]]
        if len(of_scale):
            mean, sd, n = of_scale[["norm_mean", "norm_sd", "norm_n"]].iloc[0]
            spreads = [row["sd"], 0.0]
            tested = compare_means(row["mean"], spreads, [number_of_runs, 1], mean, sd, n)
            as_people, as_one = tested["p"]
            overcounted |= as_people < 0.05 <= as_one
            text += (
                f"; against people, as {number_of_runs} people {show_p(as_people)}, as one "
                f"respondent {show_p(as_one)}"
            )
        results.append(text)

    case = "runs that differ as people" if overcounted else "runs"
    return _test(case, "passed", results, runs=number_of_runs)


def _turned_options(assessment: Assessment) -> NamedTest:
    """Say whether the options were turned round, and whether answers lean to one end."""
    status, results = _read_check(assessment, "acquiescence")
    conditions = assessment.settings.get("conditions", {})
    if assessment.mode == "options" and conditions.get("permutations", "cyclic") == "cyclic":
        if (_of_check(assessment, "content")["value"] == 0).any():
            status = "failed"  # one answer to every item follows no content
        elif not results:
            status = "open"

        return _test("rotated options", status, results)

    if len(_of_check(assessment, "turned")):
        return _turned_by_controls(assessment)

    setting = "permutations" if assessment.mode == "options" else "order"
    is_without = assessment.mode == "chat" and not assessment.settings.get("controls")
    command = assessment.command(**({"controls": True} if is_without else {setting: "reversed"}))
    reason = _why_without_controls(assessment)
    case = "options without controls" if reason else "options in one order"
    return _test(case, "not done", results, command, reason=reason)


def _turned_by_controls(assessment: Assessment) -> NamedTest:
    """Compare a chat model's answers with those to the options in the reverse order."""
    _, results = _read_check(assessment, "turned")
    _, leaning = _read_check(assessment, "acquiescence")
    turned = _of_check(assessment, "turned")["mark"]
    leans = (_of_check(assessment, "acquiescence")["mark"] == "!").any()
    same = _of_check(assessment, "content").query("value == 0")["questionnaire"]
    weather = _of_check(assessment, "weather").query("mark == '✓'")["questionnaire"]
    has_one_answer = not set(same) <= set(weather)  # other statements got other answers
    status = "failed"
    reason = ""
    if (turned == "✗").any():
        reason = "It reports places in the list: its answers turn round with the options."
    elif has_one_answer:
        reason = "It gives the same answer to every item, so nothing follows the content."
    elif leans:
        reason = "It leans to one end of the options, whatever the item says."
    elif (turned == "!").any():
        reason = "Turned round, the answers are no nearer to the first ones than chance brings."
    elif (turned == "–").any():
        status = "open"
    else:
        status = "passed"

    return _test("options turned round", status, results + leaning, reason=reason)


def examine_answers(
    tables: Mapping[str, pd.DataFrame], titles: Mapping[str, str]
) -> list[NamedTest]:
    """Return the five tests that answers allow without asking a model.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        The result of :func:`psychometrics.reports.answer_profiles.assess_answers`.
    titles : mapping of str to str
        Short titles of the questionnaires, by id.
    """
    impostor = _test("no alpha", "not done")
    scales = tables["scales"].dropna(subset="alpha")
    if len(scales):
        passes = scales["alpha"] > scales[["independent", "habit"]].max(axis=1)
        impostor = _test("alphas", _passed(passes), _lines("alphas", scales))

    weather = _test("no weather in a file", "not done", (), _NEW_PLACEBO)
    if any("placebo" in name for name in titles):
        weather = _test("weather in a file", "open")

    runs = _test("respondents asked once", "not needed")
    repeated = tables["runs"]
    if len(repeated):
        worth = repeated["effective"].map(" are worth {:.1f} rows".format)
        repeated = repeated.assign(worth=worth.where(repeated["effective"].notna(), ""))
        runs = _test("runs in a file", "passed", _lines("runs in a file", repeated))

    twin = _test_respondents(tables["agreement"], titles.__getitem__)
    return [impostor, weather, runs, _turned_answers(tables["bias"]), twin]


def _test_respondents(agreement: pd.DataFrame, title: Callable[[str], str]) -> NamedTest:
    """Test whether respondents agree with one another."""
    test = _test_twins("respondents", agreement, "agreement", title)
    return test or _test("single respondent", "not done", list(agreement["note"]))


def _test_twins(
    case: str, agreement: pd.DataFrame, value: str, title: Callable[[str], str]
) -> NamedTest | None:
    """Test whether an agreement exceeds its null; placebos, if not asked alone, have no say."""
    rows = agreement.dropna(subset=value)
    if rows.empty:
        return None

    others = rows["respondents"].map(lambda n: "1 other" if n == 2 else f"{n - 1} others")
    rows = rows.assign(title=rows["questionnaire"].map(title), others=others)
    is_placebo = rows["questionnaire"].str.contains("placebo")
    judged = rows[~is_placebo | is_placebo.all()]
    repeats = judged[value] > judged["null" if value == "agreement" else f"null_{value}"]
    is_same = judged["low"] > 1 - 1e-9  # all answers alike
    in_doubt = (judged["low"] <= 0) | (judged["p_beyond"] > 0.05) | is_same
    status = "failed"
    if repeats.any():
        status = "open" if (in_doubt | ~repeats).any() else "passed"
    return _test(case, status, _lines(case, rows))


def _passed(results: pd.Series) -> str:
    return "passed" if results.all() else "failed"


def _lines(case: str, rows: pd.DataFrame) -> list[str]:
    """Return the results of a case in its words, one line for each row."""
    return [fill(_TEXTS["cases"][case]["line"], row=row) for row in rows.itertuples()]


def _turned_answers(bias: pd.DataFrame) -> NamedTest:
    """Compare answers to plain-keyed items with answers to reversed items."""
    if not len(bias):
        return _test("no reversed items", "not done", (), "psychometrics questionnaires")

    status = "passed"
    if (bias["alpha_raw"] >= bias["alpha"]).any():
        status = "failed"
    elif (bias["bias"] >= bias["random_low"]).any():
        status = "open"
    return _test("reversed items", status, _lines("reversed items", bias))
