"""Assess existing answers: scales, comparisons with know-nothing respondents, runs, styles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from ..checks import check_columns
from ..exceptions import ParameterError
from ..measures import graded
from ..measures.bias import bias_shares, orthogonality, random_share, runs_and_units
from ..measures.intervals import mean_table
from ..measures.omega import omega_hierarchical
from ..measures.ordinal import polychoric
from ..measures.reliability import alpha, alphas
from ..measures.scoring import item_scores, keyed_items, scale_scores
from ..measures.styles import empty_answers, response_styles
from ..questionnaires import AnyQuestionnaires, Questionnaire
from ..questionnaires.answers import IDENTITY
from .agreement import agreement_table
from .assessments import load_with_scales
from .rules import ENOUGH_RESPONDENTS, _item_means, flags, verdict

# Probability that know-nothing respondents exceed a limit on any scale.
_ERROR = 0.05
# Number of simulated respondents for the alpha of a habit.
_HABITUAL = 1000
_SAMPLES = 999
# Most respondents that get a verdict; from more, a sample is drawn.
_JUDGED = 40
# Fewest respondents for alpha.
_LEAST = 3
# Most runs of a habit to draw; with more, its alpha hardly rises.
_MOST_RUNS = 30
_ORDINAL = ("alpha_ordinal", "omega_total", "omega_hierarchical")
# Fewest respondents for graded scores. In simulations of five items with four options their
# reliability is 0.03 too high with 100 respondents, 0.01 with 200, and then no slope is at a limit.
_FEWEST_FOR_GRADED = 200
# Fewest items for three factors with two items each.
_FEWEST_FOR_OMEGA = 6
# Number of distinct answers to an item above which they count as continuous.
_MOST_OPTIONS = 11


def assess_answers(
    answers: pd.DataFrame, questionnaires: AnyQuestionnaires
) -> dict[str, pd.DataFrame]:
    r"""Compare the answers of any respondents with the answers of know-nothing respondents.

    If R respondents answer I items independently, as with random answers or answers shuffled over
    respondents, alpha stays below this limit in a share q of samples:

    .. math:: 1 - \frac{1}{F_q(R - 1, (R - 1)(I - 1))}

    The 5 % of samples above the limit are divided among all scales, so q is .95 for one scale and
    .99 for five. The upper limit of alpha for respondents with nothing but a habit is simulated.

    Parameters
    ----------
    answers : DataFrame
        Answers to items, as :func:`psychometrics.answers.files.read_answers` or
        :func:`psychometrics.asking.ask` returns them.
    questionnaires : str, Path or Questionnaire, or several
        All questionnaires that were answered; each has scales.

    Returns
    -------
    dict of DataFrame
        ``scales``: ``questionnaire, scale, title, items, reversed, respondents``; ``score``, the
        mean over respondents, with its interval ``low, high`` within the scale's range, and ``sd``;
        ``alpha, alpha_low, alpha_high`` of the respondents' means over runs; ``alpha_ordinal`` and,
        for six items or more, ``omega_total, omega_hierarchical``, from polychoric correlations,
        with 30 respondents or more who were asked once; ``reliability_graded``, of the abilities in
        the graded response model (:mod:`psychometrics.measures.graded`), with 200 respondents or
        more who were asked once, and ``at_limit``, the items whose estimates are held at a limit,
        so that this reliability must not be interpreted; ``independent`` and ``habit``, the upper
        limits of alpha of respondents that answer independently or by habit, above which an alpha
        lies on any scale in 5 % of samples;
        ``reading``. ``styles``: means of :func:`psychometrics.measures.styles.response_styles`, by
        ``who``: the respondents, random respondents, or respondents with a habit. ``verdicts``:
        for each scale, how many of the ``judged`` respondents get ✗, ! and ✓ by
        :mod:`psychometrics.reports.rules`. ``bias``, for scales with items of both kinds: the share
        of ``bias`` in the differences between ``n`` respondents with its interval; the central 95 %
        of this share in random answers (``random_low, random_high``) and its value for respondents
        with a ``habit``; the ``error_part``; alpha with and without reversing answers
        (:func:`psychometrics.measures.bias.bias_shares`). ``runs``, empty if each respondent was
        asked once: :func:`psychometrics.measures.bias.runs_and_units`. ``agreement``:
        :func:`psychometrics.reports.agreement.agreement_table`.

    Raises
    ------
    ParameterError
        The answers are to prompts, to other questionnaires, or to a questionnaire without scales.

    References
    ----------
    Feldt, Woodruff and Salih (1987) for the distribution of alpha.

    Examples
    --------
    >>> answers = empty_answers("gad7", "habit", respondents=30, runs=1)
    >>> assess_answers(answers, "gad7")["scales"]["reading"].tolist()
    ['no more consistent than a habit']
    """
    check_columns(answers, IDENTITY, ["value"])
    answers = answers.copy(deep=False)
    answers.attrs = {}  # pandas copies them at every step
    loaded = load_with_scales(questionnaires, texts=False)
    level = _ERROR / max(1, sum(len(questionnaire.scales) for questionnaire in loaded))
    parts: dict[str, list[pd.DataFrame]] = {}
    for questionnaire in loaded:
        answered = answers[answers["questionnaire"] == questionnaire.id]
        if answered.empty:
            raise ParameterError(f"There are no answers to {questionnaire.id}; leave it out.")

        items = item_scores(answered)
        runs = runs_and_units(items, questionnaire).drop(columns="questionnaire")
        tables = {
            "scales": _scales(answered, _item_means(items), questionnaire, level),
            "styles": _styles(answered, questionnaire),
            "verdicts": _verdicts(answered, questionnaire),
            "bias": _bias(items, questionnaire),
            "runs": runs[runs["within"].notna()],  # none if nobody was asked repeatedly
            "agreement": agreement_table(items, questionnaire).drop(columns="questionnaire"),
        }
        for name, table in tables.items():
            table.insert(0, "questionnaire", questionnaire.id)
            parts.setdefault(name, []).append(table)

    return {name: pd.concat(tables, ignore_index=True) for name, tables in parts.items()}


def _scales(
    answers: pd.DataFrame, items: pd.DataFrame, questionnaire: Questionnaire, level: float
) -> pd.DataFrame:
    runs = answers.groupby("respondent_id")["run"].nunique().max()
    # a mean over runs has less error than one run, so habits alone give it a higher alpha
    repeats = min(int(runs), _MOST_RUNS)
    habits = empty_answers(questionnaire, "habit", respondents=_HABITUAL, runs=repeats)
    habitual = _item_means(item_scores(habits))
    scores = scale_scores(answers, questionnaire)
    means = mean_table(scores, "score", ["scale"], "respondent_id").set_index("scale")
    of_respondents = scores.groupby(["scale", "respondent_id"])["score"].mean()
    means["sd"] = of_respondents.groupby(level="scale").std()

    rows = []
    for scale in questionnaire.scales:
        keys = questionnaire.keys(scale)
        row: dict[str, Any] = {"scale": scale.id, "title": scale.title, "items": len(keys)}
        row["reversed"] = sum(key < 0 for key in keys.values())
        row["respondents"] = int(means.loc[scale.id, "n"])
        row["score"] = means.loc[scale.id, "mean"]
        row |= means.loc[scale.id, ["low", "high"]].clip(*questionnaire.span(scale)).to_dict()
        row["sd"] = means.loc[scale.id, "sd"]
        keyed = keyed_items(items, questionnaire, scale)
        asked_once = keyed if runs == 1 else keyed.head(0)
        complete = keyed.dropna()
        row |= dict.fromkeys(("alpha", "alpha_low", "alpha_high"), np.nan)
        if len(complete) >= _LEAST and complete.shape[1] > 1:
            value = alpha(complete)
            row |= {"alpha": value["alpha"], "alpha_low": value["low"], "alpha_high": value["high"]}

        row |= _ordinal(asked_once)
        row |= _graded(asked_once)
        row |= _bounds(row, keyed_items(habitual, questionnaire, scale), level)
        row["reading"] = "more consistent than independent answers and habits, which is not a proof"
        if np.isnan(row["alpha"]):
            row["reading"] = "no alpha: it needs three respondents that differ, and two items"
        elif row["alpha"] <= row["independent"]:
            row["reading"] = "no more consistent than independent answers"
        elif row["alpha"] <= row["habit"]:
            row["reading"] = "no more consistent than a habit"

        rows.append(row)

    return pd.DataFrame(rows)


def _ordinal(keyed: pd.DataFrame) -> dict[str, float]:
    """Return coefficients of the tendencies behind answers, if there are enough respondents."""
    complete = keyed.dropna()
    coefficients = dict.fromkeys(_ORDINAL, np.nan)
    enough = len(complete) >= ENOUGH_RESPONDENTS and complete.shape[1] > 1
    if not enough or complete.nunique().max() > _MOST_OPTIONS:
        return coefficients

    coefficients["alpha_ordinal"] = float(alphas(polychoric(complete).to_numpy()))
    if complete.shape[1] >= _FEWEST_FOR_OMEGA:
        omegas = omega_hierarchical(complete)
        coefficients |= omegas[["omega_total", "omega_hierarchical"]].to_dict()

    return coefficients


def _graded(keyed: pd.DataFrame) -> dict[str, float | str]:
    """Return the reliability of graded scores, and the items whose estimates are at a limit."""
    answered = keyed.dropna(how="all")
    options = answered.nunique()
    enough = len(answered) >= _FEWEST_FOR_GRADED and (options > 1).sum() > 2
    if not enough or options.min() < 1 or options.max() > _MOST_OPTIONS:
        return {"reliability_graded": np.nan, "at_limit": ""}

    parameters = graded.fit(answered)
    value = graded.score_reliability(answered, parameters)["reliability"]
    at_limit = parameters.index[parameters["at_limit"]]
    return {"reliability_graded": float(value), "at_limit": ", ".join(at_limit)}


def _bounds(row: dict[str, Any], habitual: pd.DataFrame, level: float) -> dict[str, float]:
    """Return limits of alpha that a share ``level`` of samples of know-nothing ones exceeds."""
    if np.isnan(row["alpha"]):
        return {"independent": np.nan, "habit": np.nan}

    freedom = row["respondents"] - 1
    quantile = stats.f.ppf(1 - level, freedom, freedom * (row["items"] - 1))

    # alphas of habits vary somewhat more than Feldt's distribution implies, so they are simulated
    pool = habitual.to_numpy(dtype=float)
    rng = np.random.default_rng(1)
    size = min(row["respondents"], _HABITUAL // 2)
    samples = (pool[rng.integers(0, len(pool), size)] for _ in range(_SAMPLES))
    alphas_of_habits = alphas(np.stack([np.cov(sample.T) for sample in samples]))

    limit = float(np.nanquantile(alphas_of_habits, 1 - level))
    return {"independent": 1 - 1 / quantile, "habit": limit}


def _styles(answers: pd.DataFrame, questionnaire: Questionnaire) -> pd.DataFrame:
    """Return the mean response styles of the respondents and of know-nothing respondents."""
    respondents = max(200, min(answers["respondent_id"].nunique(), 1000))
    tables = {"these respondents": answers}
    for label, habit in {"random answers": "random", "nothing but a habit": "habit"}.items():
        tables[label] = empty_answers(questionnaire, habit, respondents=respondents, runs=1)

    rows = []
    for label, table in tables.items():
        styles = response_styles(table, questionnaire)
        styles = styles.drop(columns=["questionnaire", "mode", "run"])
        means = styles.groupby("respondent_id").mean().mean()
        rows.append({"who": label, **means.to_dict()})

    return pd.DataFrame(rows)


def _verdicts(answers: pd.DataFrame, questionnaire: Questionnaire) -> pd.DataFrame:
    """Count the marks that respondents get, each judged by its own answers."""
    names = answers["respondent_id"].unique()
    if len(names) > _JUDGED:
        names = np.random.default_rng(1).choice(names, _JUDGED, replace=False)

    marks: dict[str, list[str]] = {scale.id: [] for scale in questionnaire.scales}
    for name in names:
        answered = answers[answers["respondent_id"] == name]
        checks = flags(answered, questionnaire)
        readable = set(answered.loc[answered["status"] == "ok", "item_id"])
        for scale in questionnaire.scales:
            is_complete = readable >= set(scale.items)  # a missing item leaves no score
            marks[scale.id].append(verdict(checks, scale)[0] if is_complete else "✗")

    rows = [
        {"scale": scale, "judged": len(names), **{mark: counted.count(mark) for mark in "✗!✓"}}
        for scale, counted in marks.items()
    ]
    return pd.DataFrame(rows)


def _bias(items: pd.DataFrame, questionnaire: Questionnaire) -> pd.DataFrame:
    """Return bias shares of scales with both kinds of items, and the shares from chance and habit.

    The values for random answers and for respondents with a habit follow from closed forms.
    """
    shares = bias_shares(items, questionnaire, draws=1)
    wide = shares.pivot(index="scale", columns="statistic", values="value")
    table = shares[shares["statistic"] == "bias"].set_index("scale")
    table = table[["title", "n", "value", "low", "high"]].rename(columns={"value": "bias"})
    table = table.join(wide[["error_part", "alpha", "alpha_raw"]]).dropna(subset="bias")

    chance = [random_share(n) for n in table["n"]]
    table["random_low"] = [row["low"] for row in chance]
    table["random_high"] = [row["high"] for row in chance]
    by_habit = orthogonality(questionnaire).set_index("scale")["bias_habit"]
    table["habit"] = by_habit[table.index]

    return table.reset_index()
