"""Evidence that a scale measures what it says: consistency, correlations, methods, multiverse."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from .answers import check_columns
from .exceptions import ParameterError
from .questionnaires import Questionnaire
from .scoring import pss


def term_silhouettes(shares: pd.DataFrame) -> pd.DataFrame:
    r"""Silhouette of source against inverse terms on their PSS rows, per respondent and item.

    With the mean distance :math:`a_i` of a term to those of its own kind and :math:`b_i` to those
    of the other,

    .. math:: s = \frac1T \sum_i \frac{b_i - a_i}{\max(a_i, b_i)}

    Parameters
    ----------
    shares : DataFrame
        As :func:`psychometrics.scoring.pss` gives it.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, item_id, silhouette``, from -1 (each term is closer to
        the other kind) to 1 (two tight groups); correlation distance, mean over the item's
        templates. Rows without variance are as far from each other as uncorrelated ones.

    References
    ----------
    Reuben et al. (2024), section 3.3 (intra-question consistency); Rousseeuw (1987). Computed by
    scikit-learn from our distances, since its own are undefined for rows without variance.

    Examples
    --------
    >>> from psychometrics import load_questionnaire, prompts
    >>> from psychometrics.scoring import pss
    >>> table = prompts(load_questionnaire("challenges"))
    >>> answers = table.assign(respondent_id="a",
    ...                        entailment=0.5 + 0.1 * table["polarity"] * table["weight"])
    >>> term_silhouettes(pss(answers))["silhouette"].round(2).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    keys = ["questionnaire", "item_id", "template"]
    check_columns(
        shares, [*keys, "respondent_id", "polarity", "term", "intensifier"], ["level", "pss"]
    )
    rows = []
    for (questionnaire, item, _), part in shares.groupby(keys, sort=False):
        columns = part.groupby(["level", "intensifier"], sort=True).ngroup()
        table = part.assign(column=columns).pivot(
            index=["respondent_id", "polarity", "term"], columns="column", values="pss"
        )
        for name, own in table.groupby(level="respondent_id", sort=False):
            labels = own.index.get_level_values("polarity").to_numpy()
            rows.append((name, questionnaire, item, _silhouette(own.to_numpy(), labels)))
    columns = ["respondent_id", "questionnaire", "item_id", "silhouette"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.groupby(columns[:3], sort=False)["silhouette"].mean().reset_index()


def correlations(
    scores: pd.DataFrame,
    pairs: Sequence[tuple[str, str]],
    reliabilities: pd.Series | None = None,
    n_resamples: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    r"""Correlations between scales over respondents, with what is needed to judge them.

    Corrected for attenuation by the reliabilities :math:`\alpha` of the two scales,

    .. math:: r^* = \frac{r_{xy}}{\sqrt{\alpha_x \alpha_y}}

    Parameters
    ----------
    scores : DataFrame, shape (R, scales)
        Scale scores, respondents as index.
    pairs : sequence of (str, str)
        Which columns to correlate.
    reliabilities : Series, optional
        Reliability by scale, for the correction for attenuation.
    n_resamples : int
        Bootstrap samples, and permutations.
    seed : int
        Seed of both.

    Returns
    -------
    DataFrame
        Per pair: ``n``; ``spearman`` with its percentile interval ``spearman_low, spearman_high``;
        ``pearson`` of the normal scores with ``pearson_low, pearson_high``; ``p``, two-sided, by
        permutation of Spearman's rho; ``p_holm`` over the pairs; ``corrected``, Pearson's r over
        the root of the product of the reliabilities (it may exceed 1).

    Raises
    ------
    ParameterError
        There are fewer than four respondents, or no such scale.

    References
    ----------
    Reuben et al. (2024), section 4 (construct validity); Spearman (1904) for attenuation;
    Phipson and Smyth (2010) for p values that are never zero; Holm (1979), by statsmodels.

    Examples
    --------
    >>> scores = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0, 5.0], "y": [2.0, 1.0, 4.0, 3.0, 5.0]})
    >>> correlations(scores, [("x", "y")], n_resamples=100)["spearman"].round(2).tolist()
    [0.8]
    """
    from pingouin import multicomp  # slow to load

    _check_pairs(scores, pairs, reliabilities)
    if len(scores) < 4:
        raise ParameterError(f"At least 4 respondents are needed, got {len(scores)}.")
    rows = []
    for first, second in pairs:
        x, y = scores[first].to_numpy(), scores[second].to_numpy()
        rank = _bootstrap_correlation(
            stats.rankdata(x), stats.rankdata(y), n_resamples, seed, again=stats.rankdata
        )
        normal = [_normal_scores(pd.Series(v)).to_numpy() for v in (x, y)]
        pearson = _bootstrap_correlation(*normal, n_resamples, seed)
        row = {"first": first, "second": second, "n": len(scores)}
        row |= dict(zip(("spearman", "spearman_low", "spearman_high"), rank, strict=True))
        row |= dict(zip(("pearson", "pearson_low", "pearson_high"), pearson, strict=True))
        row["p"] = _permutation_p(stats.rankdata(x), stats.rankdata(y), n_resamples, seed)
        if reliabilities is not None:
            product = max(reliabilities[first], 0) * max(reliabilities[second], 0)
            row["corrected"] = pearson[0] / np.sqrt(product) if product else np.nan
        rows.append(row)
    frame = pd.DataFrame(rows)
    adjusted = multicomp(frame["p"].to_numpy(), method="holm")[1]
    frame.insert(frame.columns.get_loc("p") + 1, "p_holm", adjusted)
    return frame


def partial_correlations(
    scores: pd.DataFrame, pairs: Sequence[tuple[str, str]], control: pd.Series
) -> pd.DataFrame:
    """Spearman correlations between scales with a third variable held constant.

    Parameters
    ----------
    scores : DataFrame, shape (R, scales)
    pairs : sequence of (str, str)
    control : Series, shape (R,)
        What to hold constant, on the same index.

    Returns
    -------
    DataFrame
        ``first, second, n, partial, low, high, p``; 95 % interval by Fisher's z, from pingouin.

    Raises
    ------
    ParameterError
        There is no such scale, or what is held constant does not vary.

    Examples
    --------
    >>> scores = pd.DataFrame({"x": [1, 2, 3, 4, 5, 6.0], "y": [2, 1, 4, 3, 6, 5.0]})
    >>> control = pd.Series([1, 3, 2, 5, 4, 6.0])
    >>> partial_correlations(scores, [("x", "y")], control)["partial"].round(2).tolist()
    [0.98]
    """
    # An import here for cost; pingouin is slow to load.
    import pingouin

    _check_pairs(scores, pairs)
    if control.nunique() < 2:
        raise ParameterError("What is held constant is so already; leave the control out.")
    table = scores.assign(control=control)
    rows = []
    for first, second in pairs:
        result = pingouin.partial_corr(table, first, second, "control", method="spearman").iloc[0]
        low, high = result["CI95"]
        rows.append([first, second, int(result["n"]), result["r"], low, high, result["p_val"]])
    return pd.DataFrame(rows, columns=["first", "second", "n", "partial", "low", "high", "p"])


def multiverse(
    responses: pd.DataFrame,
    questionnaires: Sequence[Questionnaire],
    pairs: Sequence[tuple[str, str]],
    temperatures: Sequence[float] = (0.5, 1.0, 2.0),
) -> pd.DataFrame:
    """Correlations between whole scales under every defensible choice.

    Parameters
    ----------
    responses : DataFrame
        Answers to all the questionnaires, as :func:`psychometrics.ask` gives them.
    questionnaires : sequence of Questionnaire
    pairs : sequence of (str, str)
        Ids of the questionnaires to correlate.
    temperatures : sequence of float
        Of the two-way normalisation.

    Returns
    -------
    DataFrame
        One row per pair and specification: ``first, second, score`` (entailment or contrast),
        ``temperature, terms`` (source, inverse or both), ``templates`` (all, first or last of
        each item), ``transform`` (raw or normal scores), ``r`` (Pearson's).

    Raises
    ------
    ParameterError
        There is no questionnaire of a pair among the answers.

    References
    ----------
    Steegen et al. (2016); Simonsohn, Simmons and Nelson (2020) for specification curves.

    Examples
    --------
    >>> from psychometrics import load_questionnaire, prompts
    >>> both = [load_questionnaire(name) for name in ("challenges", "gad7")]
    >>> table = pd.concat([prompts(q) for q in both])
    >>> answers = pd.concat([
    ...     table.assign(respondent_id=r, entailment=0.5 + s * table["polarity"] * table["weight"],
    ...                  contradiction=0.2) for r, s in (("a", 0.1), ("b", 0.05), ("c", -0.1))])
    >>> worlds = multiverse(answers, both, [("challenges", "gad7")], temperatures=[1.0])
    >>> len(worlds), worlds["r"].round(1).unique().tolist()
    (36, [1.0])
    """
    asked = set(responses["questionnaire"])
    if lacking := {name for pair in pairs for name in pair} - asked:
        raise ParameterError(f"There are no answers to '{min(lacking)}'; ask that too.")
    keys = {item.id: item.keying for q in questionnaires for item in q.items}
    rows = []
    for score, temperature in itertools.product(("entailment", "contrast"), temperatures):
        shares = pss(responses, score, temperature)
        weighted = shares["pss"] * shares["weight"] * shares["polarity"]
        table = shares[
            ["respondent_id", "questionnaire", "item_id", "template", "polarity"]
        ].assign(value=weighted * shares["item_id"].map(keys))
        number = table["template"]
        last = table.groupby("item_id")["template"].transform("max")
        kept = {"all": number > 0, "first": number == 1, "last": number == last}
        sides = {"source": [1], "inverse": [-1], "both": [1, -1]}
        for (templates, rows_kept), (terms, polarities) in itertools.product(
            kept.items(), sides.items()
        ):
            part = table[rows_kept & table["polarity"].isin(polarities)]
            per_item = part.groupby(["respondent_id", "questionnaire", "item_id"])["value"].mean()
            scales = per_item.groupby(level=[0, 1]).mean().unstack()
            for transform, values in (("raw", scales), ("normal", _normal_scores(scales))):
                matrix = values.corr()
                rows += [
                    (a, b, score, temperature, terms, templates, transform, matrix.loc[a, b])
                    for a, b in pairs
                ]
    columns = ["first", "second", "score", "temperature", "terms", "templates", "transform", "r"]
    return pd.DataFrame(rows, columns=columns)


def multitrait_multimethod(scores: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Spearman correlations between traits measured by several methods.

    Parameters
    ----------
    scores : dict of DataFrame
        Scale scores (respondents by scales) by method, such as the response mode; respondents
        that some method lacks are left out.

    Returns
    -------
    DataFrame
        Square, rows and columns indexed by ``method, trait``. The same trait by two methods
        should correlate more than different traits do.

    Raises
    ------
    ParameterError
        Fewer than four respondents are common to all methods.

    References
    ----------
    Campbell and Fiske (1959).

    Examples
    --------
    >>> one = pd.DataFrame({"trait": [1.0, 2.0, 3.0, 4.0]})
    >>> two = pd.DataFrame({"trait": [1.0, 3.0, 2.0, 4.0]})
    >>> multitrait_multimethod({"nli": one, "mlm": two}).round(2).to_numpy().tolist()
    [[1.0, 0.8], [0.8, 1.0]]
    """
    table = pd.concat(scores, axis=1, names=["method", "trait"]).dropna()
    if len(table) < 4:
        raise ParameterError(f"At least 4 respondents are needed in all methods, got {len(table)}.")
    return table.corr("spearman")


def _check_pairs(scores: pd.DataFrame, pairs, reliabilities: pd.Series | None = None) -> None:
    named = {name for pair in pairs for name in pair}
    check_columns(scores, (), sorted(named))
    if reliabilities is not None and (lacking := named - set(reliabilities.index)):
        raise ParameterError(f"There is no reliability of '{min(lacking)}'; give it too.")


def _normal_scores(values: pd.DataFrame | pd.Series) -> pd.DataFrame | pd.Series:
    """Each value replaced by the normal quantile of its rank (van der Waerden); ties share one."""
    shares = values.rank() / (len(values) + 1)
    return shares.copy().mask(shares.notna(), stats.norm.ppf(shares))


def _silhouette(rows: np.ndarray, labels: np.ndarray) -> float:
    from sklearn.metrics import silhouette_score

    centred = rows - rows.mean(axis=1, keepdims=True)
    length = np.linalg.norm(centred, axis=1)
    units = np.divide(
        centred, length[:, None], out=np.zeros_like(rows), where=length[:, None] > 1e-12
    )
    distance = np.clip(1 - units @ units.T, 0, 2)
    np.fill_diagonal(distance, 0)
    return float(silhouette_score(distance, labels, metric="precomputed"))


def _bootstrap_correlation(x, y, n_resamples: int, seed: int, again=None) -> tuple:
    """Correlation and its percentile interval; samples are transformed anew where asked.

    :func:`scipy.stats.bootstrap` draws other samples from the same seed.
    """
    draws = np.random.default_rng(seed).integers(0, len(x), size=(n_resamples, len(x)))
    xs, ys = x[draws], y[draws]
    if again is not None:
        xs, ys = again(xs, axis=-1), again(ys, axis=-1)
    values = _row_correlations(xs, ys)
    low, high = np.nanquantile(values, [0.025, 0.975])
    return float(np.corrcoef(x, y)[0, 1]), float(low), float(high)


def _permutation_p(x, y, n_resamples: int, seed: int) -> float:
    """Two-sided p by chance pairings; scipy's permutation test draws others from the same seed."""
    shuffled = np.random.default_rng(seed).permuted(np.tile(y, (n_resamples, 1)), axis=1)
    observed = abs(np.corrcoef(x, y)[0, 1])
    drawn = np.abs(_row_correlations(np.tile(x, (n_resamples, 1)), shuffled))
    return float((1 + (drawn >= observed - 1e-12).sum()) / (n_resamples + 1))


def _row_correlations(xs: np.ndarray, ys: np.ndarray) -> np.ndarray:
    xs = xs - xs.mean(axis=1, keepdims=True)
    ys = ys - ys.mean(axis=1, keepdims=True)
    norms = np.sqrt((xs**2).sum(axis=1) * (ys**2).sum(axis=1))
    return np.divide((xs * ys).sum(axis=1), norms, out=np.full(len(xs), np.nan), where=norms > 0)
