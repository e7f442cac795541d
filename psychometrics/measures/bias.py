"""Split the differences between respondents into trait, bias and error.

A scale with plain-keyed and reverse-keyed items separates trait and bias. A trait pushes the raw
answers to the two kinds of items apart; a bias towards one end of the options pushes them the same
way. All statistics here follow from the covariances of raw, unreversed answers over respondents.

They are in one file because they share the nulls and the jackknife intervals.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd
from scipy import special

from ..checks import as_numbers, check_columns, check_names, check_numbers
from ..exceptions import ParameterError
from ..questionnaires import AnyQuestionnaires, Questionnaire, Scale, load_questionnaires
from .intervals import _leave_out, jackknife_half_width
from .reliability import _coefficient_interval, alphas
from .scoring import keyed_items

# Nulls: respondents without a trait, with a habit alone, or with chance differences alone.
_NULLS = ("random", "habit", "agreeing", "middle", "ends", "permuted")
_STATISTICS = ["bias", "bias_disattenuated", "trait_part", "bias_part", "error_part", "alpha",
               "alpha_raw"]  # fmt: skip
# Share of the items' variance below which their sum or mean counts as constant.
_ROUNDING = 1e-12


def bias_shares(
    items: pd.DataFrame, questionnaires: AnyQuestionnaires, draws: int = 200, seed: int = 0
) -> pd.DataFrame:
    r"""Return the shares of trait and bias in respondents' differences, with intervals and nulls.

    Let :math:`P` and :math:`R` be a respondent's mean raw answers to plain-keyed and to
    reverse-keyed items, and let a trait with variance :math:`\sigma_t^2` and a bias with variance
    :math:`\sigma_b^2` act on them as

    .. math:: P = t + b + e_P, \qquad R = -t + b + e_R.

    Without errors, the correlation of :math:`P` and :math:`R` over respondents gives the share of
    the bias,

    .. math:: \pi_b = \frac{1 + r_{PR}}{2} = \frac{\sigma_b^2}{\sigma_t^2 + \sigma_b^2},

    and the trait has the share :math:`1 - \pi_b`. If the errors have the variance
    :math:`\sigma_e^2`, and :math:`P` and :math:`R` vary equally, half of the error variance counts
    as bias:

    .. math::

        \pi_b = \frac{\sigma_b^2 + \sigma_e^2 / 2}{\sigma_t^2 + \sigma_b^2 + \sigma_e^2}.

    Respondents that answer at random therefore have a share of 1/2 (:func:`random_share`). Items of
    one kind identify the error: their mean covariance :math:`\bar c_{PP}` is :math:`\sigma_t^2 +
    \sigma_b^2`, and the mean covariance of items of different kinds, :math:`\bar c_{PR}`, is
    :math:`\sigma_b^2 - \sigma_t^2`. So the disattenuated share is

    .. math:: \pi_b^* = \frac12 \left(1 + \frac{r_{PR}}{\sqrt{\alpha_P \alpha_R}}\right)
              = \frac12 \left(1 + \frac{\bar c_{PR}}{\sqrt{\bar c_{PP}\, \bar c_{RR}}}\right).

    Rows of one respondent, such as the runs of a model, are averaged first, since they are not
    independent respondents; see :func:`runs_and_units` before interpreting the shares.

    Parameters
    ----------
    items : DataFrame
        Raw item scores, as :func:`psychometrics.measures.scoring.item_scores` returns them. For
        each scale, only rows with answers to all of its items are used.
    questionnaires : str, Path or Questionnaire, or several
    draws : int
        Number of samples of each null, each with as many respondents and rows as the answers.
    seed : int
        Seed of the nulls.

    Returns
    -------
    DataFrame
        ``questionnaire, scale, title, statistic, value, low, high, n, rows``, then for each null
        its mean and the central 95 % of its draws (``random, random_low, random_high``, …). The
        statistics are those of :func:`bias_statistics`.

        The 95 % intervals are jackknife intervals over the ``n`` respondents, on Fisher's scale for
        the share and as in :func:`psychometrics.measures.reliability.omega` for the alphas. With
        12, 18 and 56 respondents the interval of the share covers the true share in 93 to 97 % of
        samples; the intervals of the disattenuated share and of the parts are too short in small
        samples (coverage of 86 to 92, 91 to 94 and 94 to 97 %). Values are missing for the shares
        of a scale with items of one kind, for the disattenuated share if the items of a kind do not
        covary positively, for all statistics with fewer than three respondents, and for the
        intervals with three.

        The nulls are ``random`` answers; respondents with a ``habit``, each with its own preference
        for options, as in :func:`psychometrics.measures.styles.empty_answers`; ``agreeing``,
        ``middle`` and ``ends``, where each respondent has its own probability of choosing the
        highest option, the middle one or one of the two ends, and otherwise answers at random; and
        ``permuted``, where every item's answers are shuffled over the respondents. Answers to
        prompts have no options and therefore only the last null; for untrained heads, compute the
        shares from :func:`psychometrics.nulls.respondents.null_answers`.

    Raises
    ------
    ParameterError
        A column or an item is missing, a number is out of range, or no questionnaire has a scale.

    References
    ----------
    Meyer, Garcia and Wulff (2026) for the share; Spearman (1904) for the correction; Efron and
    Tibshirani (1993), chapter 11, for the jackknife. The nulls and the parts are this book's own.

    Examples
    --------
    >>> from psychometrics import item_scores, load_questionnaire
    >>> from psychometrics.measures.styles import empty_answers
    >>> blind = item_scores(empty_answers("ipip20", respondents=24, runs=1, seed=3))
    >>> shares = bias_shares(blind, "ipip20", draws=50).query("statistic == 'bias'")
    >>> bool((shares["low"] < 0.5).all() and (shares["high"] > 0.5).all())
    True
    """
    check_numbers(draws=draws, seed=seed)
    rng = np.random.default_rng(seed)
    tables = []
    places = []
    for questionnaire, scale, keys, rows in _answered_scales(items, questionnaires):
        respondents = rows.groupby(level=0, sort=False)
        values = respondents.mean().to_numpy()
        counts = respondents.size().to_numpy()

        table = _add_intervals(values, keys).assign(n=len(values), rows=len(rows))
        options = [_scaled_options(questionnaire, item) for item in questionnaire.keys(scale)]

        for null in _NULLS:
            samples = (_null_sample(null, values, counts, options, rng) for _ in range(draws))
            chance = bias_statistics(np.stack([_covariances(sample) for sample in samples]), keys)
            table[null] = chance.mean()
            table[f"{null}_low"] = chance.quantile(0.025)
            table[f"{null}_high"] = chance.quantile(0.975)

        tables.append(table)
        places.append((questionnaire.id, scale.id, scale.title))

    names = ["questionnaire", "scale", "title", "statistic"]
    return pd.concat(tables, keys=places, names=names).reset_index()


def bias_statistics(covariances: np.ndarray, keys: Iterable[int]) -> pd.DataFrame:
    r"""Return the trait, bias and alpha that covariances of raw answers imply.

    With the variances :math:`v_P, v_R` of the two means, their mean :math:`v`, and the mean
    :math:`\bar c` of :math:`\bar c_{PP}` and :math:`\bar c_{RR}` (see :func:`bias_shares`), the
    variance of a mean over items of one kind has the parts

    .. math:: \text{trait} = \frac{\bar c - \bar c_{PR}}{2v}, \qquad
              \text{bias} = \frac{\bar c + \bar c_{PR}}{2v}, \qquad
              \text{error} = 1 - \frac{\bar c}{v}.

    They add up to 1. By chance a part can fall below 0 or exceed 1.

    Parameters
    ----------
    covariances : ndarray, shape (..., I, I)
        Covariances of the raw answers, before any reversal.
    keys : iterable of int
        The key of each item, 1 or -1.

    Returns
    -------
    DataFrame
        One row per covariance matrix: ``bias``, the share :math:`\pi_b`; ``bias_disattenuated``,
        the disattenuated share, limited to the range from 0 to 1; ``trait_part, bias_part,
        error_part``; ``alpha`` of the keyed answers, and ``alpha_raw`` of the raw answers.

    Raises
    ------
    ParameterError
        The number of keys differs from the number of items, or a key is neither 1 nor -1.

    References
    ----------
    Meyer, Garcia and Wulff (2026) for the share and the comparison of the two alphas; Cronbach
    (1951).

    Examples
    --------
    There are two plain and two reverse-keyed items, a trait with variance 3, a bias with variance
    1, and no error.

    >>> keys = np.array([1, 1, -1, -1])
    >>> covariances = 3 * np.outer(keys, keys) + np.ones((4, 4))
    >>> bias_statistics(covariances, keys)[["bias", "trait_part", "error_part"]].iloc[0].tolist()
    [0.25, 0.75, 0.0]
    """
    covariances = as_numbers("covariances", covariances)
    check_names(keys=keys)
    keys = as_numbers("keys", list(keys), axes=1)
    if covariances.shape[-2:] != (len(keys),) * 2 or not (np.abs(keys) == 1).all():
        raise ParameterError("keys: give 1 or -1 for each item of the covariances.")

    table = _statistics(covariances.reshape(-1, len(keys), len(keys)), keys)
    table["bias_disattenuated"] = table["bias_disattenuated"].clip(0, 1)
    return table


def random_share(respondents: int) -> pd.Series:
    r"""Return the share of bias that is expected without any trait or bias.

    If no trait distinguishes respondents, any respondent could have given any other respondent's
    answers to the reverse-keyed items. Over all :math:`n!` permutations of these answers, their
    correlation with the answers to the other items has mean 0 and variance :math:`1/(n-1)`,
    whatever the distribution of the answers, the number of items and the questionnaire. So

    .. math:: \mathrm E(\pi_b) = \frac12, \qquad
              \mathrm{sd}(\pi_b) = \frac{1}{2\sqrt{n-1}}

    exactly. For normal means :math:`t = r \sqrt{(n-2)/(1-r^2)}` has Student's distribution with
    :math:`n-2` degrees of freedom, whose quantiles give the central 95 %.

    Parameters
    ----------
    respondents : int
        Number of respondents, at least three.

    Returns
    -------
    Series
        ``share, low, high, sd``.

    Raises
    ------
    ParameterError
        There are fewer than three respondents.

    References
    ----------
    Pitman (1937) for the moments over permutations; Fisher (1915) for the distribution. Their use
    for this share is this book's own.

    Examples
    --------
    >>> random_share(56).round(2).tolist()
    [0.5, 0.37, 0.63, 0.07]
    """
    check_numbers(respondents=respondents)
    if respondents < 3:
        raise ParameterError("respondents: there are fewer than three; give at least three.")
    tail = special.stdtrit(respondents - 2, 0.975)
    largest = tail / np.sqrt(respondents - 2 + tail**2)
    row = {"share": 0.5, "low": (1 - largest) / 2, "high": (1 + largest) / 2}
    return pd.Series(row | {"sd": 1 / (2 * np.sqrt(respondents - 1))})


def orthogonality(questionnaires: AnyQuestionnaires) -> pd.DataFrame:
    r"""Return every scale's response orthogonality, and the bias due to habits alone.

    Response orthogonality is the share of items for which trait and bias point in opposite
    directions: the reverse-keyed or the plain-keyed items, whichever group is smaller.

    Let each respondent choose among K options with probabilities of its own, the same for all items
    and drawn from a uniform Dirichlet distribution. Then the share :math:`\rho = 1/(K+1)` of an
    answer's variance lies between respondents, and the mean of k answers has the reliability
    :math:`k/(k+K)`. With k plain-keyed and l reverse-keyed items,

    .. math:: r_{PR} = \sqrt{\frac{k}{k+K} \cdot \frac{l}{l+K}}

    for arbitrarily many respondents; :func:`psychometrics.measures.printed.alpha_of_habit` gives
    their alpha. Random answers have :math:`\pi_b = 1/2`.

    Parameters
    ----------
    questionnaires : str, Path or Questionnaire, or several

    Returns
    -------
    DataFrame
        ``questionnaire, scale, title, items, reversed, orthogonality`` (0 to 0.5), and
        ``bias_habit``, the share :math:`\pi_b` for a habit alone, which is missing if items have no
        options or different numbers of options, or if all items are of one kind.

    Raises
    ------
    ParameterError
        No questionnaire has a scale.

    References
    ----------
    Meyer, Garcia and Wulff (2026) for response orthogonality; the formulas are this book's.

    Examples
    --------
    >>> orthogonality("ipip20")["orthogonality"].tolist()  # two of four, but one in the last
    [0.5, 0.5, 0.5, 0.5, 0.25]
    """
    rows = []
    for questionnaire, scale in _load_scales(questionnaires):
        keys = questionnaire.keys(scale)
        size = len(keys)
        reversed_items = sum(key < 0 for key in keys.values())
        plain = size - reversed_items
        counts = {len(questionnaire.choices(item)) for item in keys}
        options = counts.pop()
        r = np.nan
        if options > 1 and not counts and plain and reversed_items:
            r = np.sqrt(plain / (plain + options) * reversed_items / (reversed_items + options))

        row: dict[str, str | float] = {"questionnaire": questionnaire.id, "scale": scale.id}
        row |= {"title": scale.title, "items": size, "reversed": reversed_items}
        row |= {"orthogonality": min(reversed_items, plain) / size, "bias_habit": (1 + r) / 2}
        rows.append(row)

    return pd.DataFrame(rows)


def runs_and_units(items: pd.DataFrame, questionnaires: AnyQuestionnaires) -> pd.DataFrame:
    r"""Return the variance of scale scores between units and within units.

    Runs of one model are not respondents. With the mean squares between and within units and
    :math:`n_0` rows per unit (with unequal numbers
    :math:`n_0 = (N - \sum_u n_u^2 / N) / (U - 1)` for N rows of U units),

    .. math::

        \sigma^2_\text{between} = \frac{MS_b - MS_w}{n_0}, \qquad
        \rho = \frac{\sigma^2_\text{between}}{\sigma^2_\text{between} + MS_w}, \qquad
        n_\text{eff} = \frac{N}{1 + (n_0 - 1)\,\rho},

    where :math:`n_\text{eff}` is the number of independent rows that would give the mean over all
    rows the same standard error.

    Parameters
    ----------
    items, questionnaires
        As in :func:`bias_shares`. The units are the respondents.

    Returns
    -------
    DataFrame
        ``questionnaire, scale, title, units, rows, between, within`` (variances of the mean keyed
        answer, scaled to run from −1 to 1 where items have options), ``share, low, high``, the
        intraclass correlation :math:`\rho` with its 95 % interval, and ``effective``, the number
        :math:`n_\text{eff}`, which is at most the number of rows. The estimated variance between
        units falls below 0 if units differ less than the variation of their rows predicts; the
        correlation is never below −1, not even with fewer than two rows per unit. Values are
        missing if no unit has two rows; a single unit has only ``within``.

    Raises
    ------
    ParameterError
        A column or an item is missing, or no questionnaire has a scale.

    References
    ----------
    Shrout and Fleiss (1979), ICC(1,1), for the estimate and its interval, which is approximate for
    unequal numbers of rows; Kish (1965), chapter 5, for the effective number.

    Examples
    --------
    Three models have two runs each, and the runs of a model agree.

    >>> from psychometrics import item_scores, load_questionnaire
    >>> from psychometrics.measures.styles import empty_answers
    >>> kinds = ("random", "middle", "agree")
    >>> answers = pd.concat(empty_answers("gse", kind, runs=2) for kind in kinds)
    >>> row = runs_and_units(item_scores(answers), "gse").iloc[0]
    >>> int(row["rows"]), bool(row["effective"] < 4)
    (6, True)
    """
    variances = []
    for questionnaire, scale, keys, rows in _answered_scales(items, questionnaires):
        scores = pd.Series(rows.to_numpy() @ keys / len(keys), rows.index)
        row = {"questionnaire": questionnaire.id, "scale": scale.id, "title": scale.title}
        variances.append(row | _variance_components(scores))
    return pd.DataFrame(variances)


def _variance_components(scores: pd.Series) -> dict[str, float]:
    """Return the variance components of scores by unit, with the intraclass correlation."""
    groups = scores.groupby(level=0)
    counts = groups.size()
    means = groups.mean()
    units = len(counts)
    rows = len(scores)
    names = ("between", "within", "share", "low", "high", "effective")
    row = {"units": units, "rows": rows} | dict.fromkeys(names, np.nan)

    if rows == units:
        return row

    ms_within = (groups.var(ddof=0) * counts).sum() / (rows - units)
    if units == 1:
        return row | {"within": ms_within}

    per_unit = (rows - (counts**2).sum() / rows) / (units - 1)
    ms_between = (counts * (means - scores.mean()) ** 2).sum() / (units - 1)
    between = (ms_between - ms_within) / per_unit

    if ms_between + ms_within <= _ROUNDING * (scores**2).mean():
        return row

    share = max(between / (between + ms_within), -1.0)
    low = high = np.nan

    if ms_within > _ROUNDING * ms_between:
        degrees = (units - 1, rows - units)
        ratio = ms_between / ms_within
        ends = ratio / special.fdtri(*degrees, [0.975, 0.025])
        low, high = ((ends - 1) / (ends + per_unit - 1)).clip(min=-1)

    row |= {"between": between, "within": ms_within, "share": share, "low": low, "high": high}
    return row | {"effective": rows / (1 + (per_unit - 1) * max(share, 0))}


def _load_scales(questionnaires: AnyQuestionnaires) -> list[tuple[Questionnaire, Scale]]:
    """Return all scales, each with its questionnaire."""
    loaded = load_questionnaires(questionnaires, texts=False)
    pairs = [(questionnaire, scale) for questionnaire in loaded for scale in questionnaire.scales]
    if not pairs:
        raise ParameterError("The questionnaires have no scale; use one with keyed items.")
    return pairs


def _answered_scales(
    items: pd.DataFrame, questionnaires: AnyQuestionnaires
) -> Iterator[tuple[Questionnaire, Scale, np.ndarray, pd.DataFrame]]:
    """Yield all scales with their questionnaires, their keys and the raw answers by respondent.

    There is one row per complete administration. Answers to items are rescaled to run from -1 to 1.
    """
    check_columns(items, ["respondent_id", "questionnaire", "item_id"], ["score"])
    for questionnaire, scale in _load_scales(questionnaires):
        keyed = keyed_items(items, questionnaire, scale).dropna()
        respondents = keyed.index.get_level_values("respondent_id")
        if keyed.index.nlevels > 1:
            ends = np.array([questionnaire.ends(item) for item in keyed])
            keyed = 2 * (keyed - ends[:, 0]) / (ends[:, 1] - ends[:, 0]) - 1

        keys = np.array(list(questionnaire.keys(scale).values()))
        yield questionnaire, scale, keys, (keyed * keys).astype(float).set_axis(respondents)


def _scaled_options(questionnaire: Questionnaire, item: str) -> tuple[float, ...]:
    """Return an item's option values rescaled to -1 to 1; items with only prompts have none."""
    values = np.array(sorted(option.value for option in questionnaire.choices(item)))
    if not len(values):
        return ()
    return tuple(2 * (values - values[0]) / (values[-1] - values[0]) - 1)


def _add_intervals(values: np.ndarray, keys: np.ndarray) -> pd.DataFrame:
    """Return statistics of respondents by items, with jackknife intervals over respondents."""
    statistics = _statistics(_covariances(values)[None], keys).iloc[0]
    ends = [(np.nan, np.nan)] * len(statistics)

    if len(values) > 3:
        without = _statistics(
            np.stack([_covariances(sample) for sample in _leave_out(values)]), keys
        )
        ends = [
            _jackknife_interval(name, value, without[name].to_numpy())
            for name, value in statistics.items()
        ]

    table = pd.DataFrame(ends, statistics.index, ["low", "high"])
    table.insert(0, "value", statistics)
    table.loc["bias_disattenuated"] = table.loc["bias_disattenuated"].clip(0, 1)
    return table


def _jackknife_interval(name: str, value: float, without: np.ndarray) -> tuple[float, float]:
    """Return a statistic's 95 % interval, computed on a scale on which it is symmetric."""
    if name in ("alpha", "alpha_raw"):
        return _coefficient_interval(value, without)

    if name == "bias":
        correlations = 2 * np.append(without, value) - 1
        if not (np.abs(correlations) < 1 - _ROUNDING).all():  # also false for missing values
            return np.nan, np.nan
        middle = np.arctanh(2 * value - 1)
        half = float(jackknife_half_width(np.arctanh(2 * without - 1)))
        return (1 + np.tanh(middle - half)) / 2, (1 + np.tanh(middle + half)) / 2

    half = float(jackknife_half_width(without))
    return value - half, value + half


def _covariances(values: np.ndarray) -> np.ndarray:
    """Return the covariances of the columns, missing for fewer than three rows."""
    size = values.shape[1]
    if len(values) < 3:
        return np.full((size, size), np.nan)
    return np.atleast_2d(np.cov(values, rowvar=False))


def _null_sample(
    null: str,
    values: np.ndarray,
    counts: np.ndarray,
    options: list[tuple[float, ...]],
    rng: np.random.Generator,
) -> np.ndarray:
    """Return null respondents' answers to items, averaged over the observed numbers of runs.

    Items without options have permuted answers alone; other nulls are missing.
    """
    if null == "permuted":
        return rng.permuted(values, axis=0)
    if not all(options):
        return np.full_like(values, np.nan)

    strength = rng.random(len(counts))
    sample = np.empty((len(counts), len(options)))
    for scale in sorted(set(options)):
        columns = [number for number, of_item in enumerate(options) if of_item == scale]
        chances = _chances(null, len(scale), strength, rng)[:, None, :]
        times = np.broadcast_to(counts[:, None], (len(counts), len(columns)))
        sample[:, columns] = rng.multinomial(times, chances) @ np.array(scale) / times
    return sample


def _chances(null: str, options: int, strength: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return each null respondent's probabilities of the options, from the lowest option up."""
    even = np.full(options, 1 / options)
    if null == "habit":
        return rng.dirichlet(np.ones(options), len(strength))
    if null == "random":
        return np.tile(even, (len(strength), 1))

    places = {"agreeing": [-1], "middle": [(options - 1) // 2, options // 2], "ends": [0, -1]}
    preferred = np.zeros(options)
    preferred[places[null]] = 1
    preferred /= preferred.sum()
    return strength[:, None] * preferred + (1 - strength[:, None]) * even


def _statistics(matrices: np.ndarray, keys: np.ndarray) -> pd.DataFrame:
    """Return the statistics of :func:`bias_statistics`, without limits on disattenuated shares."""
    table = pd.DataFrame(np.nan, range(len(matrices)), _STATISTICS)
    if len(keys) > 1:
        table["alpha"] = alphas(matrices * np.outer(keys, keys))
        table["alpha_raw"] = alphas(matrices)

    plain = keys > 0
    sizes = np.array([plain.sum(), (~plain).sum()])
    if not sizes.all():
        return table

    weights = np.stack([plain / sizes[0], ~plain / sizes[1]])
    means = weights @ matrices @ weights.T
    variances = np.diagonal(means, axis1=1, axis2=2)
    between = means[:, 0, 1]

    # the mean covariance of two items of a kind: the variance of their mean without item variances
    items = np.diagonal(matrices, axis1=1, axis2=2)
    item_means = np.stack([items[:, plain].mean(axis=1), items[:, ~plain].mean(axis=1)], axis=1)

    with np.errstate(divide="ignore", invalid="ignore"):
        within = (sizes * variances - item_means) / (sizes - 1)
        varies = (variances > _ROUNDING * item_means).all(axis=1)
        r = np.where(varies, between / np.sqrt(variances.prod(axis=1)), np.nan)
        sound = varies & (within > _ROUNDING * item_means).all(axis=1)
        r_true = np.where(sound, between / np.sqrt(within.prod(axis=1)), np.nan)

    table["bias"] = (1 + np.clip(r, -1, 1)) / 2
    table["bias_disattenuated"] = (1 + r_true) / 2
    if (sizes > 1).all():  # a kind with a single item carries no information about its error
        variance = np.where(varies, variances.mean(axis=1), np.nan)
        shared = within.mean(axis=1) / variance
        table["trait_part"] = (shared - between / variance) / 2
        table["bias_part"] = (shared + between / variance) / 2
        table["error_part"] = 1 - shared

    return table
