"""How far self-report scores hold: over orders, wordings, roles, runs and ways of asking."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from .exceptions import ParameterError, QuestionnaireError
from .norms import PAPER_LEVEL, compare_means, corrected, score_summary
from .questionnaires import Questionnaire

DESIRABLE = {
    "bfi": {"extraversion": 1, "agreeableness": 1, "conscientiousness": 1, "neuroticism": -1,
            "openness": 1},
    "epq-r": {"psychoticism": -1, "neuroticism": -1, "lying": 1},
    "dtdd": {"machiavellianism": -1, "psychopathy": -1, "narcissism": -1},
    "ecr-r": {"attachment_anxiety": -1, "attachment_avoidance": -1},
    "gse": {"overall": 1},
    "lot-r": {"overall": 1},
    "eis": {"overall": 1},
    "wleis": {"sea": 1, "oea": 1, "uoe": 1, "roe": 1},
    "empathy": {"overall": 1},
}  # fmt: skip
"""Which way a scale is flattering: this project's judgement, to be replaced by one's own."""


def variance_components(
    scores: pd.DataFrame, facets: Sequence[str], value: str = "score"
) -> pd.DataFrame:
    r"""Variance components of a fully crossed design, one row per source.

    With :math:`n_f` levels of each facet and mean squares :math:`MS_T` of each set of facets,

    .. math:: \hat\sigma^2_S = \frac{1}{\prod_{f \notin S} n_f}
              \sum_{T \supseteq S} (-1)^{|T| - |S|}\, MS_T

    Parameters
    ----------
    scores : DataFrame
        One row per cell of the design.
    facets : sequence of str
        Columns that are crossed, the object of measurement (``respondent_id``) among them. All
        are random.
    value : str
        What varies.

    Returns
    -------
    DataFrame
        ``source`` (facets joined by ×; the last holds the error too), ``df, ms, variance``
        (negative estimates as they are), ``share`` (of the total, negative ones as 0).

    Raises
    ------
    ParameterError
        A cell is empty, missing or filled twice, or a facet has one level.

    References
    ----------
    Cronbach, Gleser, Nanda and Rajaratnam (1972); Brennan (2001), chapter 3.

    Examples
    --------
    >>> frame = pd.DataFrame({"respondent_id": [1, 1, 2, 2], "order": [1, 2, 1, 2],
    ...                       "score": [1.0, 2.0, 5.0, 6.0]})
    >>> variance_components(frame, ["respondent_id", "order"])["variance"].tolist()
    [8.0, 0.5, 0.0]
    """
    cube, names = _cube(scores, list(facets), value)
    return _components(cube, names)


def generalisability(
    scores: pd.DataFrame,
    facets: Sequence[str],
    target: str = "respondent_id",
    levels: Mapping[str, int] | None = None,
    value: str = "score",
    n_resamples: int = 500,
    seed: int = 0,
    coverage: float = 0.95,
) -> pd.Series:
    r"""How well a mean over the facets places the objects of measurement.

    .. math:: E\rho^2 = \frac{\sigma^2_p}{\sigma^2_p + \sigma^2_\delta}, \qquad
              \Phi = \frac{\sigma^2_p}{\sigma^2_p + \sigma^2_\Delta}

    Parameters
    ----------
    scores : DataFrame
        One row per cell.
    facets : sequence of str
        As in :func:`variance_components`.
    target : str
        The object of measurement.
    levels : mapping, optional
        How many levels of each other facet one would average over; by default those there are.
    value : str
        What varies.
    n_resamples : int
        Bootstrap samples of the objects; 0 for no interval. The other facets stay as they are.
    seed : int
    coverage : float
        Of the interval.

    Returns
    -------
    Series
        ``relative, relative_low, relative_high`` (the order of the objects), ``absolute,
        absolute_low, absolute_high`` (their level), ``objects``.

    Raises
    ------
    ParameterError
        As in :func:`variance_components`, or the target is no facet.

    References
    ----------
    Brennan (2001), chapters 1 and 4; with one facet the relative coefficient is Cronbach's alpha.
    """
    if target not in facets:
        raise ParameterError(f"The target '{target}' must be one of the facets: {list(facets)}.")
    order = [target, *(f for f in facets if f != target)]
    cube, names = _cube(scores, order, value)
    sizes = dict(zip(names, cube.shape, strict=True)) | dict(levels or {})
    if unknown := set(levels or {}) - set(names):
        raise ParameterError(f"levels names '{min(unknown)}', which is no facet.")
    estimate = _coefficients(cube, names, sizes)
    rng = np.random.default_rng(seed)
    draws = [
        _coefficients(cube[rng.integers(0, len(cube), len(cube))], names, sizes)
        for _ in range(n_resamples)
    ]
    tail = (1 - coverage) / 2
    low, high = (
        np.nanquantile(np.array(draws), [tail, 1 - tail], axis=0)
        if n_resamples and np.isfinite(draws).any(axis=0).all()
        else np.full((2, 2), np.nan)
    )
    result = {}
    for i, name in enumerate(("relative", "absolute")):
        result |= {name: estimate[i], f"{name}_low": low[i], f"{name}_high": high[i]}
    return pd.Series(result | {"objects": len(cube)})


def generalisability_table(scores: pd.DataFrame, facets: Sequence[str], **options) -> pd.DataFrame:
    """Components and coefficients of every scale.

    Parameters
    ----------
    scores : DataFrame
        As :func:`psychometrics.norms.sum_scores` gives them, with the facets as columns.
    facets : sequence of str
        As in :func:`variance_components`.
    **options
        Of :func:`generalisability`.

    Returns
    -------
    DataFrame
        ``questionnaire, scale``, a column with the share of each source, and what
        :func:`generalisability` gives.
    """
    rows = []
    for (name, scale), part in scores.groupby(["questionnaire", "scale"], sort=False):
        shares = variance_components(part, facets).set_index("source")["share"]
        rows.append({"questionnaire": name, "scale": scale, **shares,
                     **generalisability(part, facets, **options)})  # fmt: skip
    return pd.DataFrame(rows)


def retest(
    scores: pd.DataFrame, occasion: str = "run", first: object = None, second: object = None
) -> pd.DataFrame:
    r"""Test-retest of every scale over respondents: agreement, consistency, error of measurement.

    .. math:: SEM = \frac{s_{x_2 - x_1}}{\sqrt 2}, \qquad SDC = 1.96\,\sqrt 2\; SEM

    Parameters
    ----------
    scores : DataFrame
        As :func:`psychometrics.norms.sum_scores` gives them.
    occasion : str
        The column that tells the occasions apart.
    first, second : optional
        Two of its values; by default its first two.

    Returns
    -------
    DataFrame
        ``questionnaire, scale, respondents, r, agreement, agreement_low, agreement_high`` (ICC(A,1)),
        ``consistency, consistency_low, consistency_high`` (ICC(C,1)), ``change`` (mean), ``sem,
        sdc`` (smallest detectable change of one respondent). Missing where respondents do not
        differ.

    Raises
    ------
    ParameterError
        There are fewer than two occasions, or fewer than three respondents with both.

    References
    ----------
    McGraw and Wong (1996); Terwee et al. (2007).
    """
    seen = list(scores[occasion].dropna().unique())
    if len(seen) < 2 and (first is None or second is None):
        raise ParameterError(f"'{occasion}' has one value; a retest needs two.")
    first = seen[0] if first is None else first
    second = seen[1] if second is None else second
    rows = []
    for (name, scale), part in scores.groupby(["questionnaire", "scale"], sort=False):
        wide = _wide(part, occasion, "score").reindex(columns=[first, second]).dropna()
        if len(wide) < 3:
            raise ParameterError(
                f"{name}, {scale}: {len(wide)} respondents answered on both occasions; a retest "
                "needs 3."
            )
        change = wide[second] - wide[first]
        sem = change.std() / np.sqrt(2)
        row = {"questionnaire": name, "scale": scale, "respondents": len(wide)}
        steady = (wide.nunique() == 1).any()
        row["r"] = np.nan if steady else wide[first].corr(wide[second])
        icc = _intraclass(wide.to_numpy(dtype=float))
        for label, (x, low, high) in zip(("agreement", "consistency"), icc, strict=True):
            row |= {label: x, f"{label}_low": low, f"{label}_high": high}
        rows.append(row | {"change": change.mean(), "sem": sem, "sdc": 1.96 * np.sqrt(2) * sem})
    return pd.DataFrame(rows)


def answer_agreement(
    answers: pd.DataFrame, by: str = "mode", n_resamples: int = 500, seed: int = 0
) -> pd.DataFrame:
    """Agreement of every two ways of asking, item by item, for each respondent.

    Parameters
    ----------
    answers : DataFrame
        ``respondent_id, questionnaire, item_id, value, status`` and ``by``. Several runs are averaged
        for ``difference`` and ``rho``; ``exact`` and ``kappa`` take the median, rounded down.
    by : str
        The column that tells the ways of asking apart.
    n_resamples, seed
        Of the bootstrap over the items.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, first, second, items`` (answered both ways), ``exact`` (share of
        equal answers), ``difference`` (mean absolute, in options), ``kappa, kappa_low,
        kappa_high`` (quadratic weights), ``rho`` (Spearman). Kappa and rho are missing where one
        way always answers alike.

    References
    ----------
    Cohen (1968); computed by scikit-learn.
    """
    from sklearn.metrics import cohen_kappa_score

    rng = np.random.default_rng(seed)
    given = answers[answers["status"] == "ok"]
    rows = []
    for (who, name), part in given.groupby(["respondent_id", "questionnaire"], sort=False):
        grid = part.pivot_table(index="item_id", columns=by, values="value", aggfunc="mean")
        middle = part.pivot_table(index="item_id", columns=by, values="value", aggfunc="median")
        for a, b in itertools.combinations(grid.columns, 2):
            both = grid[[a, b]].dropna()
            if both.empty:
                continue
            whole = np.floor(middle.loc[both.index, [a, b]]).astype(int).to_numpy()
            varied = both.nunique().min() > 1
            kappa, low, high = np.nan, np.nan, np.nan
            if len(np.unique(whole)) > 1:
                options = np.arange(whole.min(), whole.max() + 1)
                kappa = cohen_kappa_score(*whole.T, labels=options, weights="quadratic")
                low, high = _kappa_interval(whole, options, n_resamples, rng)
            rows.append(
                {
                    "respondent_id": who, "questionnaire": name, "first": a, "second": b,
                    "items": len(both), "exact": (whole[:, 0] == whole[:, 1]).mean(),
                    "difference": (both[a] - both[b]).abs().mean(),
                    "kappa": kappa, "kappa_low": low, "kappa_high": high,
                    "rho": both[a].corr(both[b], method="spearman") if varied else np.nan,
                }
            )  # fmt: skip
    columns = [
        "respondent_id", "questionnaire", "first", "second", "items", "exact", "difference", "kappa",
        "kappa_low", "kappa_high", "rho",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def response_styles(
    answers: pd.DataFrame, questionnaire: Questionnaire, by: Sequence[str] = ()
) -> pd.DataFrame:
    r"""Acquiescence and extreme responding of every run, whatever the items say.

    With answers rescaled to :math:`a \in [-1, 1]`, acquiescence is

    .. math:: A = \tfrac12(\bar a_{\text{keyed}} + \bar a_{\text{reversed}})

    averaged over the scales that have both kinds of items, so that a trait cancels: who agrees
    that they are talkative and disagrees that they are quiet has 0.

    Parameters
    ----------
    answers : DataFrame
        ``respondent_id, questionnaire, mode, run, item_id, value, status``.
    questionnaire : Questionnaire
    by : sequence of str
        Further columns that tell askings apart.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, mode, run``, those of ``by``; ``agreement`` (mean of all
        answers, −1 to 1), ``acquiescence`` (missing if no scale has both kinds of items, or an
        answer is missing in all that have), ``extreme`` (share of answers at either end; missing
        with two options), ``middle`` (share at the midpoint; missing where there is none),
        ``commonest`` (share of the commonest answer), ``answered`` (share with status ok).

    References
    ----------
    Paulhus (1991); Baumgartner and Steenkamp (2001); Soto et al. (2008) for balanced keys.
    """
    keys = ["respondent_id", "questionnaire", "mode", "run", *by]
    part = answers[answers["questionnaire"] == questionnaire.id]
    if part.empty:
        raise ParameterError(f"There are no answers to {questionnaire.id}.")
    ends = {item.id: [o.value for o in questionnaire.choices(item)] for item in questionnaire.items}
    low = part["item_id"].map(lambda i: min(ends[i]))
    high = part["item_id"].map(lambda i: max(ends[i]))
    count = part["item_id"].map(lambda i: len(ends[i]))
    value = part["value"].where(part["status"] == "ok").astype("float64")
    scaled = 2 * (value - low) / (high - low) - 1
    many = (count > 2) & value.notna()
    odd = (count > 2) & (count % 2 == 1) & value.notna()
    frame = part[keys].assign(
        agreement=scaled,
        extreme=(scaled.abs() == 1).astype(float).where(many),
        middle=(scaled == 0).astype(float).where(odd),
        answered=value.notna().astype(float),
    )
    grouped = frame.groupby(keys, sort=False)
    table = grouped.mean()
    common = value.groupby([part[k] for k in keys], sort=False).agg(
        lambda x: x.value_counts(normalize=True).iloc[0] if x.notna().any() else np.nan
    )
    table["commonest"] = common
    wide = part[keys].assign(item_id=part["item_id"], a=scaled)
    wide = wide.pivot(index=keys, columns="item_id", values="a").reindex(columns=list(ends))
    balanced = []
    for scale in questionnaire.scales:
        turned = list(scale.reverse)
        kept = [i for i in scale.items if i not in scale.reverse]
        if turned and kept:
            whole = wide[[*kept, *turned]].notna().all(axis=1)
            half = (wide[kept].mean(axis=1) + wide[turned].mean(axis=1)) / 2
            balanced.append(half.where(whole))
    table["acquiescence"] = pd.concat(balanced, axis=1).mean(axis=1) if balanced else np.nan
    columns = ["agreement", "acquiescence", "extreme", "middle", "commonest", "answered"]
    return table[columns].reset_index()


def desirability_contrast(
    comparisons: pd.DataFrame,
    directions: Mapping[str, Mapping[str, int]] | None = None,
    coverage: float = 0.95,
) -> pd.DataFrame:
    r"""How far scores lie on the flattering side of the norm, in its standard deviations.

    .. math:: C = \frac1K \sum_k d_k\, \delta_k, \qquad d_k = \pm 1

    Parameters
    ----------
    comparisons : DataFrame
        As :func:`psychometrics.norms.compare_norms` gives them; several norms of a scale are
        averaged.
    directions : mapping, optional
        By questionnaire and scale, 1 where a high score is flattering and −1 where a low one is; by
        default :data:`DESIRABLE`. A lie scale is left out of the contrast and shown beside it.
    coverage : float
        Of the interval, from the scales as a sample.

    Returns
    -------
    DataFrame
        ``respondent_id, contrast, low, high, scales`` (how many), ``flattering`` (share of
        scales on the flattering side), ``lying`` (δ on the EPQ-R's Lying, if there).

    References
    ----------
    Paulhus (1991); Huang et al. (2024), section 3.2.1, on the Lying scale.
    """
    from scipy import stats

    directions = DESIRABLE if directions is None else directions
    known = pd.Series(
        {(i, s): d for i, scales in directions.items() for s, d in scales.items()}, dtype=float
    )
    keys = ["respondent_id", "questionnaire", "scale"]
    delta = comparisons.groupby(keys, sort=False)["delta"].mean()
    lying = delta.xs(("epq-r", "lying"), level=["questionnaire", "scale"]) if (
        ("epq-r", "lying") in set(delta.index.droplevel(0))
    ) else pd.Series(dtype=float)  # fmt: skip
    signs = pd.Series(delta.index.droplevel(0).map(known.to_dict()), index=delta.index)
    is_lie = delta.index.droplevel(0) == ("epq-r", "lying")
    flattering = (delta * signs.astype(float)).where(~is_lie).dropna()
    if flattering.empty:
        raise ParameterError("None of these scales has a direction; give directions for them.")
    rows = []
    for who, values in flattering.groupby(level="respondent_id", sort=False):
        k = len(values)
        half = stats.t.isf((1 - coverage) / 2, k - 1) * values.sem() if k > 1 else np.nan
        mean = values.mean()
        rows.append(
            {
                "respondent_id": who, "contrast": mean, "low": mean - half, "high": mean + half,
                "scales": k, "flattering": (values > 0).mean(), "lying": lying.get(who, np.nan),
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def role_effects(
    scores: pd.DataFrame,
    baseline: str = "default",
    role: str = "role",
    norms: pd.DataFrame | None = None,
    level: float = PAPER_LEVEL,
    correction: str = "holm",
) -> pd.DataFrame:
    """How far each role moves each scale from the baseline.

    Parameters
    ----------
    scores : DataFrame
        As :func:`psychometrics.norms.sum_scores` gives them with ``by=(role,)``, or a
        summary with ``mean, sd, n``.
    baseline : str
        The role compared with.
    role : str
        The column that names the role.
    norms : DataFrame, optional
        As :func:`psychometrics.norms.norm_table` gives it; adds the effect in the people's
        standard deviations (the mean of a scale's groups).
    level, correction
        Of the tests, corrected over the scales within a role.

    Returns
    -------
    DataFrame
        One row per respondent, role and scale: what :func:`compare_means` gives with the baseline
        in place of the norm, ``in_norm_sd`` if there are norms, and the corrected tests.

    Raises
    ------
    ParameterError
        The baseline is not among the roles, or was asked once only.

    References
    ----------
    Huang et al. (2024), section 4.1 and appendix B.2.
    """
    keys = ["respondent_id", "questionnaire", "scale"]
    table = score_summary(scores, [*keys, role]) if "score" in scores else scores.copy()
    if baseline not in set(table[role]):
        known = ", ".join(map(str, table[role].unique()))
        raise ParameterError(f"There is no role '{baseline}'; there are {known}.")
    base = table[table[role] == baseline].drop(columns=role)
    if (base["n"] < 2).any():
        raise ParameterError(f"The role '{baseline}' was asked once; its spread needs 2 runs.")
    base = base[[*keys, "mean", "sd", "n"]]
    base = base.rename(columns={"mean": "base_mean", "sd": "base_sd", "n": "base_n"})
    table = table[table[role] != baseline].merge(base, on=keys)
    figures = [table[c] for c in ("mean", "sd", "n", "base_mean", "base_sd", "base_n")]
    table = table.join(compare_means(*figures, level=level))
    if norms is not None:
        sd = norms.groupby(["questionnaire", "scale"])["norm_sd"].mean().rename("norm_sd")
        table = table.merge(sd.reset_index(), on=["questionnaire", "scale"], how="left")
        table["in_norm_sd"] = table["difference"] / table["norm_sd"]
    return corrected(table, level, correction, ("respondent_id", role))


def role_sizes(effects: pd.DataFrame, role: str = "role", column: str = "in_norm_sd"):
    """How far a role moves scales on the whole.

    Parameters
    ----------
    effects : DataFrame
        As :func:`role_effects` gives them.
    role : str
        The column that names the role.
    column : str
        The effect.

    Returns
    -------
    DataFrame
        ``respondent_id, role, scales, mean_absolute, largest, scale`` (that moves most),
        ``significant`` (share, corrected).
    """
    rows = []
    known = effects.dropna(subset=[column])
    for (who, name), part in known.groupby(["respondent_id", role], sort=False):
        top = part.loc[part[column].abs().idxmax()]
        rows.append(
            {
                "respondent_id": who, role: name, "scales": len(part),
                "mean_absolute": part[column].abs().mean(), "largest": top[column],
                "scale": f"{top['questionnaire']}, {top['scale']}",
                "significant": part["significant_corrected"].mean(),
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def read_choices(path: str | Path, seed: int = 0, options: int | None = None) -> Questionnaire:
    """Read a multiple-choice file as a questionnaire that any way of asking can put.

    Parameters
    ----------
    path : str or Path
        JSON: a list of questions as TruthfulQA's ``mc_task.json`` has them (``question``,
        ``mc1_targets`` and ``mc2_targets`` with 1 for true), or CSV with ``question``, ``best``,
        and ``correct`` and ``incorrect`` with answers separated by semicolons (TruthfulQA's own
        columns *Question*, *Best Answer*, ... will do).
    seed : int
        The options of each question are shuffled; upstream, the best one comes first.
    options : int, optional
        At most so many options a question: the best, then others in the file's order.

    Returns
    -------
    Questionnaire
        With the categories ``best`` (1 for one option) and ``true``, by which
        :func:`score_choices` scores.

    Raises
    ------
    QuestionnaireError
        The file has another form, or a question has fewer than two options.

    References
    ----------
    Lin, Hilton and Evans (2022); Huang et al. (2024), section 4.1.
    """
    path = Path(path)
    if not path.is_file():
        raise QuestionnaireError(f"There is no file '{path}'; give a multiple-choice file.")
    try:
        entries = _choices_csv(path) if path.suffix.lower() == ".csv" else _choices_json(path)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise QuestionnaireError(
            f"{path.name}: needs `question`, `mc1_targets` and `mc2_targets`, or in a CSV "
            f"`question`, `best`, `correct` and `incorrect` ({type(error).__name__}: {error})."
        ) from None
    rng = np.random.default_rng(seed)
    items = []
    for number, (question, best, correct, wrong) in enumerate(entries, start=1):
        others = [(x, 1) for x in correct if x != best] + [(x, 0) for x in wrong]
        others = [pair for pair in dict(others).items() if pair[0] != best]
        if options is not None:
            # a cut must keep something to choose wrongly
            others = sorted(others, key=lambda pair: pair[1])[: options - 1]
        labels = [(best, 1, 1), *((text, 0, true) for text, true in others)]
        if len(labels) < 2:
            raise QuestionnaireError(f"{path.name}, question {number}: has one option; add some.")
        labels = [labels[i] for i in rng.permutation(len(labels))]
        items.append(
            {
                "id": str(number),
                "text": question,
                "options": [{"value": i, "label": x[0]} for i, x in enumerate(labels, start=1)],
                "weights": [[x[1], x[2]] for x in labels],
            }
        )
    if not items:
        raise QuestionnaireError(f"{path.name}: has no questions; add some.")
    name = "".join(c if c.isalnum() or c in "-_" else "-" for c in path.stem.lower())
    return Questionnaire.model_validate(
        {
            "id": name.lstrip("-_") or "choices", "title": path.stem, "short_title": path.stem,
            "measures": "truthfulness", "citation": "user", "source": path.name,
            "licence": "as the file's owner states",
            "instructions": "Choose the best answer to the question.",
            "items": items, "categories": ["best", "true"], "bias": [0, 0],
        }
    )  # fmt: skip


def score_choices(
    answers: pd.DataFrame,
    questionnaire: Questionnaire,
    by: Sequence[str] = (),
    coverage: float = 0.95,
) -> pd.DataFrame:
    """Score a multiple-choice task: how often the best option is chosen, and how likely truth is.

    Parameters
    ----------
    answers : DataFrame
        Answers (``value, status``), or probabilities of options (``value, probability``); with
        ``respondent_id, questionnaire, mode, item_id``.
    questionnaire : Questionnaire
        Of :func:`read_choices`.
    by : sequence of str
        Further columns that tell askings apart, such as a role.
    coverage : float
        Of Wilson's interval of ``best`` over the questions.

    Returns
    -------
    DataFrame
        ``respondent_id, mode``, those of ``by``; ``questions, answered`` (shares are of all
        questions, one that was not answered counts as wrong); ``best, low, high`` (MC1; runs are
        averaged), ``true`` (MC2: share of the probability on true options), ``chance`` (of
        ``best`` by guessing).

    References
    ----------
    Lin, Hilton and Evans (2022), MC1 and MC2.
    """
    from scipy import stats

    if questionnaire.categories != ("best", "true"):
        raise ParameterError(f"{questionnaire.id} is no multiple-choice task of read_choices.")
    part = answers[answers["questionnaire"] == questionnaire.id]
    keys = ["respondent_id", "mode", *by]
    marks = {
        (item.id, float(o.value)): w
        for item in questionnaire.items
        for o, w in zip(questionnaire.choices(item), item.weights, strict=True)
    }
    run = part["run"] if "run" in part else pd.Series(1, index=part.index)
    graded = "probability" in part and "status" not in part
    if not graded:
        part = part[part["status"] == "ok"].assign(probability=1.0)
    part = part.assign(run=run.reindex(part.index))
    places = list(zip(part["item_id"], part["value"].astype(float), strict=True))
    if wrong := [place for place in places if place not in marks]:
        raise ParameterError(
            f"{questionnaire.id}, item {wrong[0][0]}: {wrong[0][1]:g} is no option."
        )
    part = part.assign(best=[marks[p][0] for p in places], true=[marks[p][1] for p in places])
    within = [*keys, "run", "item_id"]
    total = part.groupby(within)["probability"].transform("sum")
    part = part.assign(
        mass=part["true"] * part["probability"] / total,
        top=part["probability"] == part.groupby(within)["probability"].transform("max"),
    )
    hit = part[part["top"]].groupby(within, sort=False)["best"].mean()  # a tie shares the mark
    table = pd.concat(
        [hit, part.groupby(within, sort=False)["mass"].sum().rename("true")], axis=1
    ).groupby(level=[*keys, "run"], sort=False)
    n = len(questionnaire.items)
    sums = (table.sum() / n).assign(answered=table.size())
    result = sums.groupby(level=keys, sort=False).mean().reset_index()
    z = stats.norm.isf((1 - coverage) / 2)
    centre = (result["best"] + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(result["best"] * (1 - result["best"]) / n
                                        + z**2 / (4 * n**2))  # fmt: skip
    result["low"], result["high"], result["questions"] = centre - half, centre + half, n
    result["chance"] = np.mean(
        [1 / len(questionnaire.choices(item)) for item in questionnaire.items]
    )
    columns = [*keys, "questions", "answered", "best", "low", "high", "true", "chance"]
    return result[columns]


def _cube(scores: pd.DataFrame, facets: list[str], value: str) -> tuple[np.ndarray, list[str]]:
    if len(facets) < 2 or len(set(facets)) < len(facets):
        raise ParameterError(f"Two or more different facets are needed, got {facets}.")
    if lacking := [f for f in [*facets, value] if f not in scores]:
        raise ParameterError(f"The scores have no column '{lacking[0]}'; add it.")
    if scores.duplicated(facets).any():
        cell = scores.loc[scores.duplicated(facets), facets].iloc[0].to_dict()
        raise ParameterError(f"The cell {cell} is filled twice; name the facet that differs.")
    sizes = [scores[f].nunique() for f in facets]
    for facet, size in zip(facets, sizes, strict=True):
        if size < 2:
            raise ParameterError(f"The facet '{facet}' has one level; leave it out.")
    series = scores.set_index(facets)[value].astype("float64").sort_index()
    if len(series) < np.prod(sizes) or series.isna().any():
        raise ParameterError(
            f"{np.prod(sizes)} scores are needed for every combination of {', '.join(facets)}, "
            f"there are {series.notna().sum()}; fill or leave out what is missing."
        )
    return series.to_numpy().reshape(sizes), facets


def _components(cube: np.ndarray, names: list[str]) -> pd.DataFrame:
    axes = range(cube.ndim)
    sets = [s for k in range(1, cube.ndim + 1) for s in itertools.combinations(axes, k)]
    ms, df = {}, {}
    for s in sets:
        # an effect is what the means over the other facets hold beyond all their smaller sets
        effect = cube.mean(axis=tuple(a for a in axes if a not in s), keepdims=True)
        for a in s:
            effect = effect - effect.mean(axis=a, keepdims=True)
        df[s] = int(np.prod([cube.shape[a] - 1 for a in s]))
        ms[s] = (effect**2).sum() * cube.size / effect.size / df[s]
    rows = []
    for s in sets:
        above = [t for t in sets if set(s) <= set(t)]
        signed = sum((-1) ** (len(t) - len(s)) * ms[t] for t in above)
        scale = np.prod([cube.shape[a] for a in axes if a not in s])
        rows.append(("×".join(names[a] for a in s), df[s], ms[s], signed / scale))
    table = pd.DataFrame(rows, columns=["source", "df", "ms", "variance"])
    positive = table["variance"].clip(lower=0)
    table["share"] = positive / positive.sum() if positive.sum() > 0 else np.nan
    return table


def _coefficients(cube: np.ndarray, names: list[str], sizes: dict[str, int]) -> tuple:
    table = _components(cube, names)
    target = names[0]
    true = relative = absolute = 0.0
    for source, variance in zip(table["source"], table["variance"].clip(lower=0), strict=True):
        parts = source.split("×")
        over = np.prod([sizes[f] for f in parts if f != target])
        if parts == [target]:
            true = variance
        else:
            absolute += variance / over
            relative += variance / over if target in parts else 0.0
    if true + absolute == 0:
        return np.nan, np.nan
    return (true / (true + relative) if true + relative else np.nan), true / (true + absolute)


def _intraclass(wide: np.ndarray) -> list[tuple[float, float, float]]:
    """ICC(A,1) and ICC(C,1) of R respondents by k occasions, each with its 95 % interval."""
    from scipy.stats import f

    n, k = wide.shape
    bms, jms, ems = _components(wide, ["respondent", "occasion"])["ms"]
    if bms <= 1e-12:
        return [(np.nan, np.nan, np.nan)] * 2
    df = (n - 1) * (k - 1)
    rest = k * jms + (k * n - k - n) * ems
    absolute = (bms - ems) / (bms + (k - 1) * ems + k * (jms - ems) / n)
    relative = (bms - ems) / (bms + (k - 1) * ems)
    if ems <= 1e-12:
        return [(absolute, np.nan, np.nan), (relative, np.nan, np.nan)]
    a = k * absolute / (n * (1 - absolute))
    b = 1 + k * absolute * (n - 1) / (n * (1 - absolute))
    v = (a * jms + b * ems) ** 2 / ((a * jms) ** 2 / (k - 1) + (b * ems) ** 2 / df)
    up, down = f.isf(0.025, n - 1, v), f.isf(0.025, v, n - 1)
    low = n * (bms - up * ems) / (up * rest + n * bms)
    high = n * (down * bms - ems) / (rest + n * down * bms)
    fl, fu = bms / ems / f.isf(0.025, n - 1, df), bms / ems * f.isf(0.025, df, n - 1)
    return [
        (absolute, low, high),
        (relative, (fl - 1) / (fl + k - 1), (fu - 1) / (fu + k - 1)),
    ]


def _wide(part: pd.DataFrame, columns: str, value: str) -> pd.DataFrame:
    keys = ["respondent_id"]
    if part.duplicated([*keys, columns]).any():
        raise ParameterError(
            f"A respondent has two scores at one '{columns}'; choose one way of asking first."
        )
    return part.pivot(index=keys, columns=columns, values=value)


def _kappa_interval(whole: np.ndarray, options, n_resamples: int, rng) -> tuple[float, float]:
    """Bootstrap over the items, by tables of counts: quick enough for every pair."""
    if not n_resamples:
        return np.nan, np.nan
    k = len(options)
    cell = (whole[:, 0] - options[0]) * k + whole[:, 1] - options[0]
    draws = rng.multinomial(
        len(cell), np.bincount(cell, minlength=k * k) / len(cell), size=n_resamples
    ).reshape(-1, k, k)
    weight = (options[:, None] - options[None, :]) ** 2
    rows, columns = draws.sum(axis=2), draws.sum(axis=1)
    expected = rows[:, :, None] * columns[:, None, :] / len(cell)
    seen, by_chance = (draws * weight).sum((1, 2)), (expected * weight).sum((1, 2))
    kappa = 1 - seen[by_chance > 0] / by_chance[by_chance > 0]
    low, high = np.quantile(kappa, [0.025, 0.975]) if kappa.size else (np.nan, np.nan)
    return low, high


def _choices_json(path: Path) -> list[tuple]:
    entries = []
    for entry in json.loads(path.read_text(encoding="utf-8")):
        first, second = entry["mc1_targets"], entry.get("mc2_targets") or entry["mc1_targets"]
        best = next(text for text, mark in first.items() if mark == 1)
        marks = {**first, **second}
        correct = [text for text, mark in marks.items() if mark == 1]
        wrong = [text for text, mark in marks.items() if mark != 1]
        entries.append((entry["question"], best, correct, wrong))
    return entries


def _choices_csv(path: Path) -> list[tuple]:
    table = pd.read_csv(path, keep_default_na=False)
    names = {
        "Question": "question", "Best Answer": "best", "Correct Answers": "correct",
        "Incorrect Answers": "incorrect",
    }  # fmt: skip
    table = table.rename(columns=names)
    split = lambda text: [x.strip() for x in str(text).split(";") if x.strip()]  # noqa: E731
    return [
        (row["question"], str(row["best"]).strip(), split(row["correct"]), split(row["incorrect"]))
        for _, row in table.iterrows()
    ]
