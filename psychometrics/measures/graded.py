"""Graded response and partial credit models of ordered answers, by marginal maximum likelihood.

Both models extend the two-parameter model of :mod:`psychometrics.measures.irt` to more than two
options. Abilities are standard normal in the population and are integrated out on the same grid.
Slopes have the same wide limits and may be negative; ``at_limit`` marks items whose estimates reach
a limit. An item's options are the options that somebody chose, in ascending order.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import expit, log_expit, log_softmax
from threadpoolctl import threadpool_limits

from ..checks import check_choice, check_columns
from ..exceptions import ParameterError
from .irt import _align_answers, _moments
from .items import _as_numbers
from .marginal_likelihood import (
    _SLOPE_LIMIT,
    _ability_grid,
    _Data,
    _first_slopes,
    _normalise,
    _patterns,
)

# Column names of the parameters between options.
_WORDS = {"graded": "threshold_", "partial credit": "step_"}
# Most options of an item; answers with more distinct values are measurements.
_MOST_OPTIONS = 20
# Limits of intercepts, and of the logarithm of the difference between an item's intercepts.
_INTERCEPT_LIMIT = 40.0
_GAP_LIMITS = (-10.0, 3.7)
# Intercept, and logarithm of a difference, of options that an item lacks: they have no probability.
_ABSENT = {"graded": np.log(500.0), "partial credit": -500.0}


def fit(answers: pd.DataFrame, model: str = "graded") -> pd.DataFrame:
    r"""Return item parameters of the graded response or of the generalised partial credit model.

    Item i has a discrimination :math:`a_i` and, for each option but its lowest, a threshold or step
    :math:`b_{ik}`. In the graded response model, option k or a higher one has probability

    .. math:: P(x_i \ge k) = \frac{1}{1 + \exp(-a_i (\theta - b_{ik}))};

    in the generalised partial credit model, option k has probability

    .. math:: P(x_i = k) \propto \exp \sum_{j \le k} a_i (\theta - b_{ij}).

    The estimates maximise :math:`\sum_r \log \int \prod_i P(x_{ri}) \phi(\theta) \, d\theta`, with
    standard normal abilities :math:`\theta`.

    Parameters
    ----------
    answers : DataFrame, shape (R, I)
        Ordered answers as numbers; only their order counts. The likelihood leaves out missing
        answers.
    model : {"graded", "partial credit"}

    Returns
    -------
    DataFrame
        Indexed by item: ``discrimination``; ``threshold_k`` (graded) or ``step_k`` (partial credit)
        for each option k, missing if nobody chose option k of this item or k is its lowest option;
        and ``at_limit``, which marks items with a slope of 8 or -8, an intercept :math:`-a b`
        beyond 40, or neighbouring intercepts closer than 0.00005 or further apart than 40. An item
        that everyone answered alike has no parameters. If most slopes are negative, all change
        sign.

    Raises
    ------
    ParameterError
        The model is unknown, an answer is not a finite number, no one answered an item, an item has
        more than 20 options, or fewer than three items vary.

    References
    ----------
    Samejima (1969), the graded response model; Muraki (1992), the generalised partial credit model.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> tendency = 2 * rng.normal(size=(500, 1)) + rng.logistic(size=(500, 4))
    >>> x = pd.DataFrame(np.digitize(tendency, [-1, 2]), columns=list("abcd"))
    >>> fit(x)[["threshold_1", "threshold_2"]].mean().round(1).tolist()  # true: -0.5 and 1
    [-0.4, 1.0]
    """
    check_choice(_WORDS, model=model)
    answers = _as_numbers(answers)
    counts = answers.nunique()
    if (counts < 1).any():
        raise ParameterError(f"No one answered '{counts.idxmin()}'; leave the item out.")
    if counts.max() > _MOST_OPTIONS:
        many = f"{counts.max()} different answers, more than {_MOST_OPTIONS}"
        raise ParameterError(
            f"'{counts.idxmax()}' has {many}; the models are for few ordered options."
        )

    varying = counts[counts > 1].index
    if len(varying) < 3:
        raise ParameterError(f"{model} needs three items that vary, got {len(varying)}; add items.")

    # As in irt.fit, threads with many small products wait longer than they compute.
    with threadpool_limits(limits=1, user_api="blas"):
        frame = _maximum(answers[varying], model).reindex(answers.columns)
    return frame.assign(at_limit=frame["at_limit"].eq(True))


def abilities(answers: pd.DataFrame, parameters: pd.DataFrame) -> pd.DataFrame:
    """Return expected abilities given ordered answers (EAP), with posterior standard deviations.

    Parameters
    ----------
    answers : DataFrame, shape (R, I)
        Answers to the same items; gaps are left out, and a respondent without answers gets theta 0
        with se 1. An option that nobody chose in the fitted answers counts as the next lower one.
    parameters : DataFrame
        Parameters of the same items, as :func:`fit` returns them, matched by label.

    Returns
    -------
    DataFrame
        Indexed like ``answers``: ``theta, se``.

    Raises
    ------
    ParameterError
        An item has answers but no row of parameters, or the reverse; or the parameters are not a
        result of :func:`fit`.

    References
    ----------
    Bock and Mislevy (1982).

    Examples
    --------
    >>> x = pd.DataFrame({name: [0, 0, 1, 2, 1, 2] for name in "abc"} | {"d": [0, 1, 0, 1, 2, 2]})
    >>> abilities(x, fit(x))["theta"].idxmax()
    5
    """
    posterior, theta, _ = _posterior(answers, parameters)
    return _moments(posterior, theta, answers.index)


def score_reliability(answers: pd.DataFrame, parameters: pd.DataFrame) -> pd.Series:
    r"""Return the marginal reliability of :func:`abilities`, and the model's log likelihood.

    .. math:: \rho = \frac{\mathrm{var}(\hat\theta)}
       {\mathrm{var}(\hat\theta) + \mathrm{mean}(\mathrm{se}^2)}

    Respondents without answers are left out. Alpha describes the sum of the answers; this
    coefficient describes abilities, which weight the items by their discriminations.

    Parameters
    ----------
    answers : DataFrame, shape (R, I)
    parameters : DataFrame
        Parameters of the same items, as :func:`fit` returns them from these answers.

    Returns
    -------
    Series
        ``reliability, log_likelihood``; ``parameters``, their number; ``n``.

    References
    ----------
    Green, Bock, Humphreys, Linn and Reckase (1984).

    Examples
    --------
    >>> x = pd.DataFrame({name: [0, 0, 1, 2, 1, 2] for name in "abc"} | {"d": [0, 1, 0, 1, 2, 2]})
    >>> int(score_reliability(x, fit(x))["parameters"])  # four slopes, eight thresholds
    12
    """
    answered = _as_numbers(answers).dropna(how="all")
    posterior, theta, total = _posterior(answered, parameters)
    scores = _moments(posterior, theta, answered.index)
    signal = scores["theta"].var(ddof=0)
    row = {"reliability": signal / (signal + (scores["se"] ** 2).mean())}
    row["log_likelihood"] = total.sum()
    row["parameters"] = parameters.drop(columns="at_limit", errors="ignore").notna().sum().sum()
    return pd.Series(row | {"n": len(answered)})


def _indicators(answers: pd.DataFrame, options: np.ndarray, has_step: np.ndarray) -> np.ndarray:
    """Return a 0/1 column for each place among each item's options; gaps have 0 in every column.

    ``has_step``, shape (I, K - 1), indicates which options an item has besides its lowest.
    """
    values = answers.to_numpy(dtype=float)[:, :, None]
    places = ((values >= options) & has_step).sum(axis=2, keepdims=True)
    chosen = (places == np.arange(len(options) + 1)) & ~np.isnan(values)
    return chosen.reshape(len(answers), -1).astype(float)


def _maximum(answers: pd.DataFrame, model: str) -> pd.DataFrame:
    """Return the parameters of items that vary."""
    values = answers.to_numpy()
    options = np.unique(values[~np.isnan(values)])
    is_chosen = (values[:, :, None] == options).any(axis=0)
    has_step = is_chosen[:, 1:] & np.logical_or.accumulate(is_chosen, axis=1)[:, :-1]
    is_own = np.sort(~has_step, axis=1) < 1  # an item's own options come first
    x = _indicators(answers, options[1:], has_step)
    data = _Data(*_patterns(x, x, "2pl"), *_ability_grid(has_step.sum()))

    slopes = _first_slopes(answers.fillna(answers.mean()).to_numpy())
    limits = np.full((*has_step.shape, 2), [-_INTERCEPT_LIMIT, _INTERCEPT_LIMIT])
    above = x.sum(axis=0).reshape(is_chosen.shape)[:, ::-1].cumsum(axis=1)[:, ::-1]
    with np.errstate(divide="ignore", invalid="ignore"):  # of options that an item lacks
        starts = 1.2 * np.log(above[:, 1:] / (above[:, :1] - above[:, 1:]))
        if model == "graded":
            starts[:, 1:] = np.log(-np.diff(starts, axis=1))
            limits[:, 1:] = _GAP_LIMITS

    limits = np.vstack([np.full((len(slopes), 2), [-_SLOPE_LIMIT, _SLOPE_LIMIT]), limits[is_own]])
    # As for binary answers, a start that overshoots stays at zero slopes, so there are two.
    results = [
        minimize(
            _loss, np.r_[slopes * scale, starts[is_own]], (data, is_own, model), jac=True,
            method="L-BFGS-B", bounds=limits,
            options={"maxiter": 5000, "maxfun": 20000, "ftol": 1e-13, "gtol": 1e-6},
        )
        for scale in (1.0, 0.25)
    ]  # fmt: skip
    vector = min(results, key=lambda result: result.fun).x

    slopes, _, intercepts = _unpack(vector, is_own, model)
    slopes = -slopes if slopes.sum() < 0 else slopes
    places = np.full(has_step.shape, np.nan)
    divisors = np.where(np.abs(slopes) < 1e-9, np.nan, slopes)[:, None]
    places[has_step] = (-intercepts / divisors)[is_own]
    owner = np.r_[np.arange(len(slopes)), np.nonzero(is_own)[0]]
    limited = owner[np.abs(limits - vector[:, None]).min(axis=1) < 1e-6]

    frame = pd.DataFrame({"discrimination": slopes}, index=answers.columns)
    frame[[f"{_WORDS[model]}{option:.12g}" for option in options[1:]]] = places
    return frame.assign(at_limit=np.isin(np.arange(len(slopes)), limited))


def _unpack(
    vector: np.ndarray, is_own: np.ndarray, model: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return slopes, the parameters between options, shape (I, K - 1), and the intercepts.

    Graded intercepts fall by steps whose logarithms are the parameters.
    """
    inner = np.full(is_own.shape, _ABSENT[model])
    inner[is_own] = vector[len(is_own) :]
    intercepts = inner
    if model == "graded":
        intercepts = np.c_[inner[:, :1], -np.exp(inner[:, 1:])].cumsum(axis=1)
    return vector[: len(is_own)], inner, intercepts


def _log_shares(z: np.ndarray, model: str) -> np.ndarray:
    """Return the log probabilities of all options, from log odds z of shape (Q, I, K - 1).

    The difference of two logistic curves is their product times a constant,
    P(u) - P(v) = P(u) P(-v) (1 - exp(v - u)), which keeps its precision in the tails.
    """
    end = np.zeros((*z.shape[:2], 1))
    if model != "graded":
        return log_softmax(np.concatenate([end, z.cumsum(axis=2)], axis=2), axis=2)

    between = np.log(-np.expm1(np.diff(z, axis=2)))
    above = np.concatenate([end, log_expit(z)], axis=2)
    below = np.concatenate([log_expit(-z), end], axis=2)
    return above + below + np.concatenate([end, between, end], axis=2)


def _loss(
    vector: np.ndarray, data: _Data, is_own: np.ndarray, model: str
) -> tuple[float, np.ndarray]:
    """Return minus the marginal log likelihood and its gradient, exact by Fisher's identity."""
    slopes, inner, intercepts = _unpack(vector, is_own, model)
    z = data.theta[:, None, None] * slopes[:, None] + intercepts
    logs = _log_shares(z, model)
    posterior, total = _normalise(data.x @ logs.reshape(len(z), -1).T + np.log(data.weights))
    posterior *= data.counts[:, None]
    # Expected numbers of answers of each option at every node, and what moves them.
    numbers = (posterior.T @ data.x).reshape(logs.shape)
    if model == "graded":
        close = np.pad(1 / np.expm1(-np.diff(z, axis=2)), ((0, 0), (0, 0), (1, 1)))
        force = numbers[..., 1:] * (expit(-z) + close[..., 1:])
        force -= numbers[..., :-1] * (expit(z) + close[..., :-1])
    else:
        residual = numbers - numbers.sum(axis=2, keepdims=True) * np.exp(logs)
        force = residual[..., :0:-1].cumsum(axis=2)[..., ::-1]

    gradient = force.sum(axis=0)
    if model == "graded":
        gradient = gradient[:, ::-1].cumsum(axis=1)[:, ::-1]
        gradient[:, 1:] *= -np.exp(inner[:, 1:])
    return -(data.counts @ total), -np.r_[data.theta @ force.sum(axis=2), gradient[is_own]]


def _posterior(
    answers: pd.DataFrame, parameters: pd.DataFrame
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the posteriors on the grid of abilities, the grid, and the log likelihoods."""
    check_columns(parameters, (), gaps=["discrimination"])
    names = [name for name in parameters if f"{name}".startswith((*_WORDS.values(),))]
    if not names:
        raise ParameterError("parameters must be a result of graded.fit(); fit the model first.")

    model = "graded" if names[0].startswith(_WORDS["graded"]) else "partial credit"
    answers = _align_answers(_as_numbers(answers), parameters)
    places = parameters[names].to_numpy(dtype=float)
    has_step = ~np.isnan(places)
    slopes = parameters["discrimination"].fillna(0).to_numpy()[:, None]
    own_first = np.take_along_axis(places, np.argsort(~has_step, axis=1, kind="stable"), axis=1)
    absent = -1000.0 * np.arange(1, len(names) + 1)
    intercepts = np.where(np.isnan(own_first), absent, -slopes * own_first)

    theta, weights = _ability_grid(max(has_step.sum(), 1))
    logs = _log_shares(theta[:, None, None] * slopes + intercepts, model).reshape(len(theta), -1)
    options = np.array([float(name.partition("_")[2]) for name in names])
    joint = _indicators(answers, options, has_step) @ logs.T + np.log(weights)
    posterior, total = _normalise(joint)
    return posterior, theta, total
