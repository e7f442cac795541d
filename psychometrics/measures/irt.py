"""Item response theory by maximum likelihood: fits, curves, abilities, fit statistics.

The probability that a respondent of ability theta solves item i is

    P = c + (1 - c) / (1 + exp(-a (theta - b))),

with discrimination a, difficulty b and guessing c; abilities are standard normal in the population.
The library mirt keeps a between 0.1 and 5 and b between -6 and 6 without reporting which items
reach a limit; items of language models often do (many have a negative slope). So the binary models
are fitted here, with wide limits that are reported, and the tests compare the estimates with mirt's
where no limit is reached.

Answers and parameters are matched by item label, in any order. Missing answers are left out; an
undefined statistic is missing, as are its p value and its standard error.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import chi2
from threadpoolctl import threadpool_limits

from ..checks import (
    as_numbers,
    check_choice,
    check_columns,
    check_flags,
    check_names,
    check_numbers,
)
from ..exceptions import ParameterError
from .items import _binary_answers, adjust
from .marginal_likelihood import _ability_grid, _fill_gaps, _marginal_fit, _normalise

_MODELS = ("rasch", "1pl", "2pl", "3pl")


def fit(answers: pd.DataFrame, model: str = "rasch", errors: bool = True) -> pd.DataFrame:
    r"""Estimate item parameters by marginal maximum likelihood.

    .. math:: \max_{a, b, c} \sum_r \log \int \prod_i P_i(\theta)^{x_{ri}}
       (1 - P_i(\theta))^{1 - x_{ri}} \phi(\theta) \, d\theta

    Parameters
    ----------
    answers : DataFrame, shape (R, I)
        0/1 answers; the likelihood leaves out missing answers.
    model : {"rasch", "1pl", "2pl", "3pl"}
        ``rasch`` fixes every discrimination at 1, ``1pl`` estimates one discrimination for all
        items, ``2pl`` one for each item (possibly negative), and ``3pl`` guessing as well.
    errors : bool
        Whether to compute standard errors, which is slow for hundreds of items.

    Returns
    -------
    DataFrame
        Indexed by item: ``discrimination, difficulty, intercept`` (minus their product),
        ``guessing, at_limit, se, se_discrimination``. Difficulty is missing if the discrimination
        is zero. An item that everyone solved has difficulty minus infinity, an item that no one
        solved plus infinity; neither has a discrimination unless the model fixes it, since the
        likelihood keeps growing as the item moves out. ``at_limit`` marks items whose slope is held
        at 8 or -8, or whose guessing is held at 0.001 or 0.6. ``se`` is the standard error of the
        difficulty, from the observed information of all parameters inside their limits; it is
        missing without ``errors``, and if the difficulty is not finite or the information is not
        positive definite. ``se_discrimination`` is the standard error of an estimated slope inside
        its limits.

    Raises
    ------
    ParameterError
        The model is unknown, an answer is neither 0 nor 1, no one answered an item, or fewer than
        two items have variance.

    Notes
    -----
    Abilities are integrated out in equal steps of 0.12 (less for more than 156 items) from -7.2 to
    7.2, which gives at least four correct decimals of every parameter. If abilities are *not*
    normal, difficulties are biased.

    References
    ----------
    Bock and Aitkin (1981); Laverghetta et al. (2021), section 5.2 and equation 1.

    Examples
    --------
    >>> x = pd.DataFrame({"easy": [1, 1, 1, 0], "hard": [1, 0, 0, 0], "all": [1, 1, 1, 1]})
    >>> fit(x)["difficulty"].round(2).tolist()
    [-1.32, 1.32, -inf]
    """
    check_choice(_MODELS, model=model)
    check_flags(errors=errors)
    answers = _binary_answers(answers)

    # Threads with many small products wait longer than they compute. The limit holds for the whole
    # process: parallel fits may leave it set, which only costs time.
    with threadpool_limits(limits=1, user_api="blas"):
        return _marginal_fit(answers, model, errors)


def probability(theta: np.ndarray, parameters: pd.DataFrame) -> np.ndarray:
    r"""Return the probability of solving each item at given abilities (characteristic curves).

    .. math:: P_i(\theta) = c_i + \frac{1 - c_i}{1 + e^{-a_i (\theta - b_i)}}

    Parameters
    ----------
    theta : ndarray, shape (n,)
        Abilities, in standard deviations of the population.
    parameters : DataFrame
        Item parameters of I items, as :func:`fit` returns them.

    Returns
    -------
    ndarray, shape (n, I)

    References
    ----------
    Baker and Kim (2004), chapter 1; Laverghetta et al. (2021), equation 1.

    Examples
    --------
    >>> one = pd.DataFrame({"discrimination": [2.0], "difficulty": [0.5], "guessing": [0.2]})
    >>> probability(np.array([0.5]), one).round(2)
    array([[0.6]])
    """
    slope, intercept, guess = _parameter_columns(parameters)
    solved = expit(slope * as_numbers("theta", theta, axes=1)[:, None] + intercept)
    return guess + (1 - guess) * solved


def information(theta: np.ndarray, parameters: pd.DataFrame) -> np.ndarray:
    r"""Return each item's Fisher information about ability; the sum is 1 / squared standard error.

    .. math:: I_i(\theta) = a_i^2 \, \frac{1 - P_i}{P_i}
       \left(\frac{P_i - c_i}{1 - c_i}\right)^2

    Parameters
    ----------
    theta : ndarray, shape (n,)
        Abilities.
    parameters : DataFrame
        Item parameters of I items, as :func:`fit` returns them.

    Returns
    -------
    ndarray, shape (n, I)

    References
    ----------
    Baker and Kim (2004), chapter 3.

    Examples
    --------
    >>> one = pd.DataFrame({"discrimination": [2.0], "difficulty": [0.0], "guessing": [0.0]})
    >>> information(np.array([0.0]), one)
    array([[1.]])
    """
    slope, _, guess = _parameter_columns(parameters)
    p = probability(theta, parameters)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = slope**2 * (1 - p) / p * ((p - guess) / (1 - guess)) ** 2
    return np.nan_to_num(value)  # 0 for a probability of 0, the limit


def abilities(answers: pd.DataFrame, parameters: pd.DataFrame) -> pd.DataFrame:
    r"""Return expected abilities given the answers (EAP), with posterior standard deviations.

    .. math:: \hat\theta_r = \int \theta \, p(\theta \mid x_r) \, d\theta

    Parameters
    ----------
    answers : DataFrame, shape (R, I)
        0/1 answers; gaps are left out, and a respondent without answers gets theta 0 with se 1.
    parameters : DataFrame
        Parameters of the same items, as :func:`fit` returns them, matched by label.

    Returns
    -------
    DataFrame
        Indexed like ``answers``: ``theta, se``.

    Raises
    ------
    ParameterError
        An item has answers but no parameters, or the reverse.

    References
    ----------
    Bock and Mislevy (1982).

    Examples
    --------
    >>> two = pd.DataFrame({"discrimination": 1.0, "difficulty": [-1.0, 1.0], "guessing": 0.0})
    >>> abilities(pd.DataFrame([[0, 0], [1, 1]]), two)["theta"].round(2).tolist()
    [-0.74, 0.74]
    """
    posterior, theta, _ = _posterior(_match_answers(answers, parameters), parameters)
    return _moments(posterior, theta, answers.index)


def compare(answers: pd.DataFrame, models: tuple[str, ...] = _MODELS) -> pd.DataFrame:
    """Compare the fits of nested models.

    Parameters
    ----------
    answers : DataFrame, shape (R, I)
        0/1 answers.
    models : sequence of str
        Names of the models, from the least to the most flexible.

    Returns
    -------
    DataFrame
        Indexed by model: ``parameters, log_likelihood, aic, bic``; ``p`` of the likelihood-ratio
        test against the model in the row above (missing if that model has as many parameters;
        approximate if a parameter is at a limit, as guessing in 3pl easily is); and ``at_limit``,
        the number of items at a limit.

    References
    ----------
    Akaike (1974); Schwarz (1978).

    Examples
    --------
    >>> x = pd.DataFrame({"a": [1, 1, 1, 0], "b": [1, 0, 0, 0], "c": [0, 1, 0, 1]})
    >>> compare(x, ("rasch", "1pl"))["parameters"].tolist()
    [3, 4]
    """
    check_names(models=models)
    if not len(models):
        raise ParameterError(f"models: name at least one of {', '.join(_MODELS)}.")

    answers = _binary_answers(answers)
    n = int(((answers.mean() > 0) & (answers.mean() < 1)).sum())
    count = {"rasch": n, "1pl": n + 1, "2pl": 2 * n, "3pl": 3 * n}
    rows = []
    for model in models:
        check_choice(_MODELS, model=model)
        parameters = fit(answers, model, errors=False)
        value = float(_posterior(answers, parameters)[2].sum())
        free = count[model]
        row = {"parameters": free, "log_likelihood": value}
        row |= {"aic": 2 * free - 2 * value, "bic": np.log(len(answers)) * free - 2 * value}
        rows.append(row | {"at_limit": int(parameters["at_limit"].sum())})

    table = pd.DataFrame(rows, index=list(models))
    steps = table[["log_likelihood", "parameters"]].diff()
    gains = 2 * steps["log_likelihood"].clip(lower=0)
    degrees = steps["parameters"].where(steps["parameters"] > 0)
    table.insert(4, "p", chi2.sf(gains, degrees))
    return table


def item_fit(
    answers: pd.DataFrame, parameters: pd.DataFrame, simulations: int = 1000, seed: int = 0
) -> pd.DataFrame:
    r"""Return each item's infit and outfit mean squares, with their ranges under the model.

    .. math::
       \mathrm{outfit}_i = \frac{1}{R} \sum_r \frac{(x_{ri} - P_{ri})^2}{P_{ri} (1 - P_{ri})},
       \qquad
       \mathrm{infit}_i = \frac{\sum_r (x_{ri} - P_{ri})^2}{\sum_r P_{ri} (1 - P_{ri})}

    Residuals use the expected abilities, which are shrunk towards the mean. So the mean squares are
    not compared with 1, but with mean squares of data simulated from the fitted model and analysed
    in the same way. The simulated data have the same gaps, and both sums leave gaps out.

    Parameters
    ----------
    answers : DataFrame, shape (R, I)
        0/1 answers.
    parameters : DataFrame
        Parameters of the same items, as :func:`fit` returns them, matched by label.
    simulations : int
        Number of data sets drawn from the model; with fewer than about 40 data sets per item, no
        item can stay significant after correction for multiple tests.
    seed : int
        Seed of the simulations.

    Returns
    -------
    DataFrame
        Indexed by item: ``infit, outfit``, ``infit_low, infit_high, outfit_low, outfit_high`` (2.5
        and 97.5 percentiles of the simulations), ``p`` (two-sided, of infit), ``p_fdr``. All are
        missing for items that everyone or no one solved.

    References
    ----------
    Wright and Masters (1982), chapter 5.

    Examples
    --------
    >>> x = pd.DataFrame({"a": [1, 1, 1, 0, 1], "b": [1, 0, 0, 0, 1], "c": [0, 1, 0, 1, 0]})
    >>> item_fit(x, fit(x), simulations=20)["infit"].idxmax()  # goes against the others
    'c'
    """
    check_numbers(simulations=simulations, seed=seed)
    rng = np.random.default_rng(seed)
    answers = _match_answers(answers, parameters)
    observed = _mean_squares(answers, parameters)
    squares = np.empty((simulations, *np.shape(observed)))
    for number in range(simulations):
        p = probability(rng.standard_normal(len(answers)), parameters)
        simulated = pd.DataFrame(rng.random(p.shape) < p, columns=parameters.index, dtype=float)
        squares[number] = _mean_squares(simulated.mask(answers.isna().to_numpy()), parameters)

    frame = pd.DataFrame({"infit": observed[0], "outfit": observed[1]}, index=parameters.index)
    fitted = np.isfinite(observed[0])

    for place, name in enumerate(("infit", "outfit")):
        frame[[f"{name}_low", f"{name}_high"]] = np.nan
        ends = np.quantile(squares[:, place, fitted], [0.025, 0.975], axis=0)
        frame.loc[fitted, [f"{name}_low", f"{name}_high"]] = ends.T

    infit = squares[:, 0]
    slack = 1e-9  # treat mean squares that the model fixes as equal
    above = (1 + (infit >= observed[0] - slack).sum(axis=0)) / (1 + simulations)
    below = (1 + (infit <= observed[0] + slack).sum(axis=0)) / (1 + simulations)
    frame["p"] = np.where(fitted, np.minimum(1, 2 * np.minimum(above, below)), np.nan)
    frame["p_fdr"] = adjust(frame["p"], "fdr_bh")

    return frame


def _match_answers(answers: pd.DataFrame, parameters: pd.DataFrame) -> pd.DataFrame:
    """Return 0/1 answers, their columns matched by label to the rows of the parameters."""
    answers = _binary_answers(answers)
    _parameter_columns(parameters)
    return _align_answers(answers, parameters)


def _align_answers(answers: pd.DataFrame, parameters: pd.DataFrame) -> pd.DataFrame:
    """Return answers in the order of the parameters; refuse tables of different items."""
    if not parameters.index.is_unique:
        raise ParameterError("An item has two rows of parameters; give each item one row.")
    odd = parameters.index.symmetric_difference(answers.columns, sort=False)
    if len(odd):
        raise ParameterError(f"'{odd[0]}' lacks answers or parameters: fit or drop the item.")
    return answers[parameters.index]


def _parameter_columns(parameters: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return slopes, intercepts and guessing; derive a missing intercept from the difficulty."""
    place = "intercept" if "intercept" in getattr(parameters, "columns", ()) else "difficulty"
    names = ["discrimination", place, "guessing"]
    check_columns(parameters, (), gaps=names)
    if not len(parameters):
        raise ParameterError("the table of parameters is empty; pass the result of irt.fit().")

    estimate, intercept, guess = as_numbers("parameters", parameters[names], axes=2).T
    slope = np.where(np.isnan(estimate), 1.0, estimate)
    if place == "difficulty":
        intercept = -slope * intercept

    incomplete = np.isnan(intercept) | ~((guess >= 0) & (guess < 1)) | ~np.isfinite(slope)
    incomplete |= np.isnan(estimate) & np.isfinite(intercept)
    if incomplete.any():
        name = parameters.index[incomplete][0]
        raise ParameterError(f"the parameters of '{name}' are unknown; leave the item out.")

    return slope, intercept, guess


def _posterior(
    answers: pd.DataFrame, parameters: pd.DataFrame
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the posteriors on the grid of abilities, the grid, and the log likelihoods."""
    # items that everyone or no one solved carry no information on ability
    varies = np.isfinite(_parameter_columns(parameters)[1])
    x, observed = _fill_gaps(answers.loc[:, varies])
    theta, weights = _ability_grid(len(parameters))
    p = np.clip(probability(theta, parameters)[:, varies], 1e-12, 1 - 1e-12)
    joint = x @ np.log(p).T + (observed - x) @ np.log1p(-p).T + np.log(weights)
    posterior, total = _normalise(joint)

    return posterior, theta, total


def _moments(posterior: np.ndarray, theta: np.ndarray, index: pd.Index) -> pd.DataFrame:
    """Return the means and standard deviations of posteriors on the grid of abilities."""
    mean = posterior @ theta
    spread = np.sqrt(np.maximum(posterior @ theta**2 - mean**2, 0))
    return pd.DataFrame({"theta": mean, "se": spread}, index=index)


def _mean_squares(answers: pd.DataFrame, parameters: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return infit and outfit of each item; gaps are left out."""
    posterior, theta, _ = _posterior(answers, parameters)
    p = probability(posterior @ theta, parameters)
    x = answers.to_numpy()
    variances = p * (1 - p)
    varies = np.isfinite(_parameter_columns(parameters)[1])
    is_used = ~np.isnan(x) & varies & (variances > 1e-12)

    squares = np.where(is_used, (x - p) ** 2, 0.0)
    ratios = np.divide(squares, variances, out=np.zeros_like(squares), where=is_used)
    total = np.where(is_used, variances, 0.0).sum(axis=0)
    count = np.where(is_used.any(axis=0), is_used.sum(axis=0), np.nan)
    with np.errstate(invalid="ignore"):  # 0 / 0 of items without a used answer
        return squares.sum(axis=0) / total, ratios.sum(axis=0) / count
