"""Item response theory by marginal maximum likelihood: fits, curves, abilities, fit statistics.

The probability that a respondent of ability theta solves item i is

    P = c + (1 - c) / (1 + exp(-a (theta - b))),

with discrimination a, difficulty b and guessing c; abilities are standard normal in the
population. The library mirt keeps a between 0.1 and 5 and b between -6 and 6, without a word on
which items sit at such a limit; items of language models often do (many have a negative slope).
So the binary models are fitted here, with limits that are wide and reported, and the tests hold
them to mirt's where no limit is reached; girth's conditional fit stops within 5 logits of zero and
at a tolerance of 1e-3.

Answers and parameters are matched by the items' labels, whatever the order. Missing answers are
left out everywhere but in the conditional fit, which refuses them; what is
undefined is missing, and so are its p value and its standard error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.sparse.csgraph import connected_components
from scipy.special import expit, log_expit, logit
from scipy.stats import chi2
from threadpoolctl import threadpool_limits

from ..checks import check_choice, check_numbers
from ..exceptions import ParameterError
from .items import adjust, as_numbers

MODELS = ("rasch", "1pl", "2pl", "3pl")
_SLOPE_LIMIT = 8.0
_GUESSING_LIMITS = (0.001, 0.6)


# Threads of many small products wait for each other longer than they take. The limit is that of
# the process: fitting in several threads at once leaves the limit set; that costs time only.
@threadpool_limits.wrap(limits=1, user_api="blas")
def fit(answers: pd.DataFrame, model: str = "rasch", errors: bool = True) -> pd.DataFrame:
    r"""Item parameters by marginal or by conditional maximum likelihood.

    .. math:: \max_{a, b, c} \sum_r \log \int \prod_i P_i(\theta)^{x_{ri}}
       (1 - P_i(\theta))^{1 - x_{ri}} \phi(\theta) \, d\theta

    Conditional: given the sum s of a respondent's answers, which items were solved no longer
    depends on ability. With the elementary symmetric function :math:`\gamma_s` of order s,

    .. math:: P(x \mid s) = \frac{\exp(-\sum_i x_i b_i)}{\gamma_s(e^{-b})}

    Parameters
    ----------
    answers : DataFrame, shape (R, I)
        0/1 answers; missing ones are left out of the likelihood.
    model : {"rasch", "1pl", "2pl", "3pl", "conditional"}
        ``rasch`` fixes every discrimination at 1, ``1pl`` estimates one for all items, ``2pl`` one
        each (which may be negative), ``3pl`` guessing as well. ``conditional`` is the Rasch model
        by conditional maximum likelihood: answers without gaps, difficulties centred on zero over
        the finite ones, with the standard errors of that centring.
    errors : bool
        Whether to compute standard errors, which takes long for hundreds of items.

    Returns
    -------
    DataFrame
        Indexed by item: ``discrimination, difficulty, intercept`` (minus their product),
        ``guessing, at_limit, se, se_discrimination``. Difficulty is
        missing where the discrimination is zero. An item
        that everyone solved has difficulty minus infinity, one that no one solved plus infinity,
        and no discrimination beyond what the model fixes: the likelihood grows without end as it
        moves out. ``at_limit`` marks parameters held at a slope of 8 or
        -8, or a guessing of 0.001 or 0.6.
        ``se`` is the standard error of the difficulty, from the observed information of all
        parameters that are at no limit; missing where the difficulty is not finite or the
        information is not positive definite, and without ``errors``. ``se_discrimination`` is that
        of a slope which is estimated and at no limit.

    Raises
    ------
    ParameterError
        The model is unknown, an answer is neither 0 nor 1, no one answered an item, or fewer than
        two items have variance. The conditional likelihood has a maximum if, and only if, from
        every item a chain leads to every other in which somebody solved one item and missed the
        next. Perfect Guttman patterns have no chain from a hard item back to an easier one.

    Notes
    -----
    Abilities are averaged out in equal steps of 0.12 (less for more than 156 items) from -7.2 to
    7.2, to at least four decimals of every parameter. Where abilities are *not* normal,
    difficulties are off all the same: use ``conditional``.

    References
    ----------
    Bock and Aitkin (1981); Andersen (1970) and, for the condition, Fischer (1981); Laverghetta et
    al. (2021), section 5.2 and equation 1.

    Examples
    --------
    >>> x = pd.DataFrame({"easy": [1, 1, 1, 0], "hard": [1, 0, 0, 0], "all": [1, 1, 1, 1]})
    >>> fit(x)["difficulty"].round(2).tolist()
    [-1.32, 1.32, -inf]
    >>> x = pd.DataFrame({"easy": [1, 1, 1, 0], "hard": [0, 0, 0, 1]})
    >>> fit(x, "conditional")["difficulty"].round(3).tolist()  # half the log of 3 to 1, either side
    [-0.549, 0.549]
    """
    check_choice((*MODELS, "conditional"), model=model)

    if model == "conditional":
        return _fit_conditional(answers)
    answers = _binary(answers)
    share = answers.mean()
    if share.isna().any():
        raise ParameterError(f"no one answered '{share.index[share.isna()][0]}'; leave it out.")

    finite = answers.columns[(share > 0) & (share < 1)]
    if len(finite) < 2:
        raise ParameterError(f"{model} needs two items with variance or more, here {len(finite)}.")

    x, observed = _filled(answers[finite])
    starts, bounds = _starts(x, share[finite].to_numpy(), model)
    data = _Data(*_patterns(x, observed, model), *_grid(len(finite)))
    # Without slopes the likelihood does not change with them at first: a start that overshoots
    # stays there, so that several are tried.
    results = []
    for scale in (1.0,) if model == "rasch" else (1.0, 0.25):
        started = [starts[0], *(block * scale for block in starts[1:2]), *starts[2:]]
        results.append(minimize(
            _loss, np.concatenate(started), (data, model), jac=True, method="L-BFGS-B",
            bounds=bounds, options={"maxiter": 5000, "maxfun": 20000, "ftol": 1e-13, "gtol": 1e-6},
        ))  # fmt: skip

    vector = min(results, key=lambda found: found.fun).x
    frame = _estimates(vector, model, finite)
    if errors:
        ends = np.array(bounds).T + np.array([[1e-5], [-1e-5]])
        free = (ends[0] < vector) & (vector < ends[1])
        frame["se"], frame["se_discrimination"] = _standard_errors(vector, free, data, model)

    frame.loc[~np.isfinite(frame["difficulty"]), "se"] = np.nan
    frame = frame.reindex(answers.columns)
    frame["at_limit"] = frame["at_limit"].eq(True)

    for end, sign in ((1, -1), (0, 1)):
        frame.loc[share == end, "difficulty"] = sign * np.inf
        frame.loc[share == end, "intercept"] = -sign * np.inf

    if model in ("rasch", "1pl"):
        slopes = frame[["discrimination", "se_discrimination"]]
        frame[slopes.columns] = slopes.fillna(slopes.max())

    return frame.fillna({"guessing": 0.0})


class _Data(NamedTuple):
    """Patterns of answers, which of them were given and how often, and the grid of abilities."""

    x: np.ndarray
    observed: np.ndarray
    counts: np.ndarray
    theta: np.ndarray
    weights: np.ndarray


def _patterns(
    x: np.ndarray, observed: np.ndarray, model: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows that stand for all respondents with the same likelihood, and how many those are.

    Where all items have one slope it depends on a respondent's sum alone, and is linear in the
    answers otherwise: the mean answers of those with one sum stand for all of them, exactly.
    """
    alike = np.packbits(observed > 0, axis=1)
    one_slope = model in ("rasch", "1pl")
    alike = np.c_[alike, x.sum(axis=1) if one_slope else np.packbits(x > 0, axis=1)]
    _, group, counts = np.unique(alike, axis=0, return_inverse=True, return_counts=True)
    sums = pd.DataFrame(x).groupby(group).sum() / counts[:, None]
    return sums.to_numpy(), pd.DataFrame(observed).groupby(group).first().to_numpy(), counts


def _starts(x: np.ndarray, share: np.ndarray, model: str) -> tuple[list, list]:
    """Starting values and bounds of intercepts, slopes and guessing."""
    n = x.shape[1]
    starts = [np.log(share / (1 - share)) * 1.2]
    bounds = [(-40.0, 40.0)] * n

    if model == "1pl":
        starts.append(np.ones(1))
        bounds += [(0.0, _SLOPE_LIMIT)]
    elif model != "rasch":
        starts.append(_first_slopes(x))
        bounds += [(-_SLOPE_LIMIT, _SLOPE_LIMIT)] * n

    if model == "3pl":
        starts.append(np.full(n, logit(0.1)))
        bounds += [tuple(map(logit, _GUESSING_LIMITS))] * n

    return starts, bounds


def _estimates(vector: np.ndarray, model: str, items: pd.Index) -> pd.DataFrame:
    """Parameters as a table, turned so that ability counts what most items measure."""
    intercept, slope, guess = _unpack(vector, len(items), model)
    slope = -slope if slope.sum() < 0 else slope
    flat = np.abs(slope) < 1e-9
    low, high = _GUESSING_LIMITS
    at_limit = np.abs(slope) > _SLOPE_LIMIT - 1e-6

    if model == "3pl":
        at_limit |= (guess > high - 1e-4) | (guess < low + 1e-5)

    difficulty = np.where(flat, np.nan, -intercept / np.where(flat, 1, slope))
    frame = pd.DataFrame({"discrimination": slope, "difficulty": difficulty}, index=items)
    frame = frame.assign(intercept=intercept, guessing=guess, at_limit=at_limit)
    return frame.assign(se=np.nan, se_discrimination=np.nan)


def _fit_conditional(answers: pd.DataFrame) -> pd.DataFrame:
    """Return Rasch difficulties conditional on sum scores; the abilities drop out."""
    answers = _binary(answers)
    if answers.isna().any(axis=None):
        raise ParameterError("conditional maximum likelihood needs answers without gaps.")

    share = answers.mean()
    finite = answers.columns[(share > 0) & (share < 1)]
    _check_connected(answers[finite])

    x = answers[finite].to_numpy(dtype=float)
    n = len(finite)
    counts = np.bincount(x.sum(axis=1).astype(int), minlength=n + 1)[1:n]
    solved = x.sum(axis=0) - (x.sum(axis=1) == n).sum()
    scores = np.arange(1, n)

    def likely(easiness: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Log sums over the patterns of each score, and how many solve each item."""
        whole = _symmetric(easiness, np.ones((1, n), dtype=bool))[0, scores]
        return whole, counts @ _solved_given_sum(easiness, whole, scores).T

    def loss(easiness: np.ndarray) -> tuple[float, np.ndarray]:
        whole, expected = likely(easiness)
        value = counts @ whole - solved @ easiness
        # The level of the difficulties is free: a weak pull holds it at zero.
        return value + easiness.mean() ** 2, expected - solved + 2 * easiness.mean() / n

    start = np.log(share[finite] / (1 - share[finite])).to_numpy()
    options = {"maxiter": 2000, "ftol": 1e-14, "gtol": 1e-8}
    easiness = minimize(loss, start - start.mean(), jac=True, method="L-BFGS-B", options=options).x
    errors = _errors_of_centred(lambda at: likely(at)[1], easiness)
    difficulty = easiness.mean() - easiness
    result = pd.DataFrame({"difficulty": difficulty, "se": errors}, index=finite)
    result = result.reindex(answers.columns)
    result.loc[share == 1, "difficulty"] = -np.inf
    result.loc[share == 0, "difficulty"] = np.inf
    result = result.assign(discrimination=1.0, intercept=-result["difficulty"], guessing=0.0)

    return result.assign(at_limit=False, se_discrimination=np.nan)


def _check_connected(answers: pd.DataFrame) -> None:
    """Refuse items whose conditional likelihood has no maximum."""
    items = answers.columns
    if len(items) < 2:
        raise ParameterError(f"Rasch needs two items with variance or more, here {len(items)}.")

    x = answers.to_numpy(dtype=float)
    groups, group = connected_components(x.T @ (1 - x) > 0, connection="strong")
    if groups > 1:
        few = min(items[group == group[0]], items[group != group[0]], key=len)
        raise ParameterError(
            f"the conditional likelihood has no maximum: {', '.join(map(str, few[:5]))} and the "
            "other items could be moved apart without end; leave these out, or use fit()."
        )


def _errors_of_centred(
    gradient: Callable[[np.ndarray], np.ndarray], easiness: np.ndarray
) -> np.ndarray:
    """Return standard errors of the centred difficulties from differences of the gradient."""
    n = len(easiness)
    step = 1e-4
    slopes = [gradient(easiness + move) - gradient(easiness - move) for move in step * np.eye(n)]
    hessian = np.array(slopes) / (2 * step)

    # The level is free: adding 1/n everywhere fixes it, and taking it away again leaves the
    # covariance of the centred difficulties (the pseudo-inverse, without its rounding).
    level = np.full((n, n), 1 / n)
    covariance = np.linalg.inv((hessian + hessian.T) / 2 + level) - level
    return np.sqrt(np.diag(covariance).clip(0))


def probability(theta: np.ndarray, parameters: pd.DataFrame) -> np.ndarray:
    r"""Probability of solving each item at given abilities: the item characteristic curves.

    .. math:: P_i(\theta) = c_i + \frac{1 - c_i}{1 + e^{-a_i (\theta - b_i)}}

    Parameters
    ----------
    theta : ndarray, shape (n,)
        Abilities, in standard deviations of the population.
    parameters : DataFrame
        As :func:`fit` gives them, I items.

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
    slope, intercept, guess = _columns(parameters)
    solved = expit(slope * np.asarray(theta, float)[:, None] + intercept)
    return guess + (1 - guess) * solved


def information(theta: np.ndarray, parameters: pd.DataFrame) -> np.ndarray:
    r"""Fisher information of each item about ability; its sum is one over the squared error.

    .. math:: I_i(\theta) = a_i^2 \, \frac{1 - P_i}{P_i}
       \left(\frac{P_i - c_i}{1 - c_i}\right)^2

    Parameters
    ----------
    theta : ndarray, shape (n,)
        Abilities.
    parameters : DataFrame
        As :func:`fit` gives them, I items.

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
    slope, _, guess = _columns(parameters)
    p = probability(theta, parameters)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = slope**2 * (1 - p) / p * ((p - guess) / (1 - guess)) ** 2
    return np.nan_to_num(value, nan=0.0, posinf=0.0)


def abilities(answers: pd.DataFrame, parameters: pd.DataFrame) -> pd.DataFrame:
    r"""Expected abilities given the answers (EAP), with their posterior standard deviations.

    .. math:: \hat\theta_r = \int \theta \, p(\theta \mid x_r) \, d\theta

    Parameters
    ----------
    answers : DataFrame, shape (R, I)
        0/1 answers, gaps left out; without any answer theta is 0 with a se of 1, as before.
    parameters : DataFrame
        As :func:`fit` gives them for the same items, matched by label.

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
    posterior, theta, _ = _posterior(answers, parameters)
    mean = posterior @ theta
    spread = np.sqrt(np.maximum(posterior @ theta**2 - mean**2, 0))
    return pd.DataFrame({"theta": mean, "se": spread}, index=answers.index)


def compare(answers: pd.DataFrame, models: tuple[str, ...] = MODELS) -> pd.DataFrame:
    """Fits of nested models side by side.

    Parameters
    ----------
    answers : DataFrame, shape (R, I)
        0/1 answers.
    models : sequence of str
        Which models, from the least to the most flexible.

    Returns
    -------
    DataFrame
        Indexed by model: ``parameters, log_likelihood, aic, bic``; ``p`` of the likelihood-ratio
        test against the model above (missing where that has as many parameters; approximate
        where a parameter sits at a limit, as the guessing of 3pl easily does), ``at_limit`` items.

    References
    ----------
    Akaike (1974); Schwarz (1978).

    Examples
    --------
    >>> x = pd.DataFrame({"a": [1, 1, 1, 0], "b": [1, 0, 0, 0], "c": [0, 1, 0, 1]})
    >>> compare(x, ("rasch", "1pl"))["parameters"].tolist()
    [3, 4]
    """
    if not len(models):
        raise ParameterError(f"name at least one model; they are {', '.join(MODELS)}.")

    answers = _binary(answers)
    n = int(((answers.mean() > 0) & (answers.mean() < 1)).sum())
    count = {"rasch": n, "1pl": n + 1, "2pl": 2 * n, "3pl": 3 * n}
    rows = {}
    before = None

    for model in models:
        parameters = fit(answers, model, errors=False)
        value = float(_posterior(answers, parameters)[2].sum())
        free = count[model]
        more = free - before[1] if before else 0
        row = {"parameters": free, "log_likelihood": value, "aic": 2 * free - 2 * value}
        row["bic"] = np.log(len(answers)) * free - 2 * value
        row["p"] = chi2.sf(max(2 * (value - before[0]), 0), more) if more > 0 else np.nan
        row["at_limit"] = int(parameters["at_limit"].sum())
        rows[model], before = row, (value, free)

    return pd.DataFrame(rows).T.astype({"parameters": int, "at_limit": int})


def item_fit(
    answers: pd.DataFrame, parameters: pd.DataFrame, simulations: int = 1000, seed: int = 0
) -> pd.DataFrame:
    r"""Infit and outfit mean squares of the items, with what the model itself would give.

    .. math::
       \mathrm{outfit}_i = \frac{1}{R} \sum_r \frac{(x_{ri} - P_{ri})^2}{P_{ri} (1 - P_{ri})},
       \qquad
       \mathrm{infit}_i = \frac{\sum_r (x_{ri} - P_{ri})^2}{\sum_r P_{ri} (1 - P_{ri})}

    Residuals are taken at the abilities' expectations, which are pulled towards the mean; so the
    mean squares are compared with those of data simulated from the fitted model and treated alike,
    rather than with 1. Where answers are missing, they are in the simulated data too, and neither
    sum counts them.

    Parameters
    ----------
    answers : DataFrame, shape (R, I)
        0/1 answers.
    parameters : DataFrame
        As :func:`fit` gives them for the same items, matched by label.
    simulations : int
        Data sets drawn from the model; with fewer than about 40 I no item can pass the correction
        for multiple tests.
    seed : int
        Their seed.

    Returns
    -------
    DataFrame
        Indexed by item: ``infit, outfit``, ``infit_low, infit_high, outfit_low, outfit_high``
        (2.5 and 97.5 percentiles of the simulations), ``p`` (two-sided, of infit), ``p_fdr``;
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
    answers = _matched(answers, parameters)
    observed = _mean_squares(answers, parameters, axis=0)
    fakes = (_simulate(answers, parameters, rng) for _ in range(simulations))
    drawn = np.array([_mean_squares(fake, parameters, axis=0) for fake in fakes])
    frame = pd.DataFrame({"infit": observed[0], "outfit": observed[1]}, index=parameters.index)
    fitted = np.isfinite(observed[0])

    for place, name in enumerate(("infit", "outfit")):
        frame[[f"{name}_low", f"{name}_high"]] = np.nan
        ends = np.quantile(drawn[:, place, fitted], [0.025, 0.975], axis=0)
        frame.loc[fitted, [f"{name}_low", f"{name}_high"]] = ends.T

    infit = drawn[:, 0]
    slack = 1e-9  # mean squares that the model fixes are equal, not ordered
    above = (1 + (infit >= observed[0] - slack).sum(axis=0)) / (1 + simulations)
    below = (1 + (infit <= observed[0] + slack).sum(axis=0)) / (1 + simulations)
    frame["p"] = np.where(fitted, np.minimum(1, 2 * np.minimum(above, below)), np.nan)
    frame["p_fdr"] = adjust(frame["p"], "fdr_bh")

    return frame


def _simulate(
    answers: pd.DataFrame, parameters: pd.DataFrame, rng: np.random.Generator
) -> pd.DataFrame:
    """0/1 answers of respondents with standard normal abilities, with the gaps of the others."""
    p = probability(rng.standard_normal(len(answers)), parameters)
    drawn = np.where(answers.isna(), np.nan, rng.random(p.shape) < p)
    return pd.DataFrame(drawn, columns=parameters.index)


def _binary(answers: pd.DataFrame) -> pd.DataFrame:
    frame = as_numbers(answers)
    values = frame.to_numpy()
    if not np.isin(values[~np.isnan(values)], (0, 1)).all():
        raise ParameterError("answers must be a table of 0 and 1, or missing.")
    return frame


def _matched(answers: pd.DataFrame, parameters: pd.DataFrame) -> pd.DataFrame:
    """Answers in the order of the parameters, by label."""
    answers = _binary(answers)
    if not parameters.index.is_unique:
        raise ParameterError("an item has two rows of parameters; give each item one.")
    odd = parameters.index.symmetric_difference(answers.columns, sort=False)
    if len(odd):
        raise ParameterError(f"'{odd[0]}' lacks answers or parameters: fit it, or leave it out.")
    return answers[parameters.index]


def _filled(answers: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    values = answers.to_numpy(dtype=float)
    observed = ~np.isnan(values)
    return np.where(observed, values, 0.0), observed.astype(float)


def _grid(items: int) -> tuple[np.ndarray, np.ndarray]:
    """Equal steps: posteriors far narrower than the prior fall between Gauss-Hermite's nodes.

    They are the narrower the more items there are, and the steps with them.
    """
    theta = np.linspace(-7.2, 7.2, 2 * int(np.ceil(7.2 / min(0.12, 1.5 / np.sqrt(items)))) + 1)
    weights = np.exp(-(theta**2) / 2)
    return theta, weights / weights.sum()


def _first_slopes(x: np.ndarray) -> np.ndarray:
    """Signs from the first principal component, to start in the right basin."""
    centred = x - x.mean(axis=0)
    first = np.linalg.svd(centred / centred.std(axis=0), full_matrices=False)[2][0]
    first = first * np.sign(first.sum() or 1)
    return np.clip(3 * first, -1.5, 1.5)


def _unpack(vector: np.ndarray, n: int, model: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    intercept = vector[:n]
    slope = np.ones(n)
    guess = np.zeros(n)

    if model == "1pl":
        slope = np.full(n, vector[n])
    elif model in ("2pl", "3pl"):
        slope = vector[n : 2 * n]

    if model == "3pl":
        guess = expit(vector[2 * n :])

    return intercept, slope, guess


def _loss(vector: np.ndarray, data: _Data, model: str) -> tuple[float, np.ndarray]:
    """Minus the marginal log likelihood and its gradient, exact by Fisher's identity."""
    x, observed, counts, theta, weights = data
    intercept, slope, guess = _unpack(vector, x.shape[1], model)
    steps = theta[:, None] * slope + intercept
    solved = expit(steps)
    wrong = log_expit(-steps) + np.log1p(-guess)
    whole = bool(observed.all())  # then the wrong answers' sum is the same for all respondents
    joint = np.log(weights) + (wrong.sum(axis=1) if whole else observed @ wrong.T)

    if model == "3pl":
        p = guess + (1 - guess) * solved
        joint = joint + x @ (np.log(p) - wrong).T
    else:  # the log odds are a line in ability, so that two sums stand for a respondent's answers
        joint = joint + np.outer(x @ slope, theta) + (x @ intercept)[:, None]

    posterior, total = _normalised(joint)
    posterior *= counts[:, None]
    # Expected numbers of answers, and of right ones, at every node.
    given = posterior.sum(axis=0)[:, None] if whole else posterior.T @ observed

    if model == "3pl":
        residual = posterior.T @ x - given * p
        through = residual * solved / p
        gradient = [through.sum(axis=0), theta @ through, (residual / p).sum(axis=0) * guess]
    else:
        expected = given * solved
        gradient = [counts @ x - expected.sum(axis=0), (posterior @ theta) @ x - theta @ expected]
        gradient[1:] = {"rasch": [], "1pl": [[gradient[1].sum()]]}.get(model, gradient[1:])

    return -(counts @ total), -np.concatenate(gradient)


def _normalised(joint: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of log weights as shares of one, and the logs of their sums."""
    top = joint.max(axis=1)
    shares = np.exp(joint - top[:, None])
    mass = shares.sum(axis=1)
    shares /= mass[:, None]
    return shares, top + np.log(mass)


def _standard_errors(
    vector: np.ndarray, free: np.ndarray, data: _Data, model: str
) -> tuple[np.ndarray, np.ndarray]:
    """Of difficulties (by the delta method) and slopes, from the observed information."""
    places = np.flatnonzero(free)
    step = 1e-4
    n = data.x.shape[1]
    hessian = np.empty((len(places), len(places)))

    for row, place in enumerate(places):
        move = np.zeros_like(vector)
        move[place] = step
        slopes = [_loss(vector + sign * move, data, model)[1] for sign in (1, -1)]
        hessian[row] = ((slopes[0] - slopes[1]) / (2 * step))[places]

    hessian = (hessian + hessian.T) / 2
    if not len(places) or np.linalg.eigvalsh(hessian)[0] < 1e-8:
        return np.full(n, np.nan), np.full(n, np.nan)

    covariance = np.zeros((len(vector), len(vector)))
    covariance[np.ix_(places, places)] = np.linalg.inv(hessian)
    intercept, slope, _ = _unpack(vector, n, model)
    own = np.arange(n)
    of_slope = np.full(n, np.nan)
    safe = np.where(np.abs(slope) < 1e-9, np.nan, slope)
    variances = covariance[own, own] / safe**2  # of -intercept / slope

    if model != "rasch":
        other = np.full(n, n) if model == "1pl" else n + own
        of_slope = np.where(free[other], np.sqrt(covariance[other, other].clip(0)), np.nan)
        variances += covariance[other, other] * intercept**2 / safe**4
        variances -= 2 * covariance[own, other] * intercept / safe**3

    return np.where(free[:n], np.sqrt(variances.clip(0)), np.nan), of_slope


def _symmetric(logs: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Log symmetric functions of all orders of the items that are there, for each row of it."""
    factors = np.where(there, logs, -np.inf).T[:, None]
    result = np.full((len(logs) + 1, len(there)), -np.inf)
    result[0] = 0.0
    for done, factor in enumerate(factors, start=1):
        result[1 : done + 1] = np.logaddexp(result[1 : done + 1], factor + result[:done])
    return result.T


def _solved_given_sum(easiness: np.ndarray, whole: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Probability of having solved each item given how many were, shape (I, scores)."""
    without = _symmetric(easiness, ~np.eye(len(easiness), dtype=bool))
    return np.exp(easiness[:, None] + without[:, scores - 1] - whole)


def _columns(parameters: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Slopes, intercepts and guessing; the intercept may be left to follow from the difficulty."""
    if not isinstance(parameters, pd.DataFrame) or not len(parameters):
        raise ParameterError("a table of parameters is needed, as irt.fit() gives it.")

    place = "intercept" if "intercept" in parameters else "difficulty"
    needed = {"discrimination", "guessing", place}
    try:
        table = parameters[sorted(needed)].astype(float)
    except (KeyError, TypeError, ValueError) as error:
        raise ParameterError(f"the table of parameters must hold numbers: {error}.") from error

    slope = table["discrimination"].fillna(1.0).to_numpy()
    guess = table["guessing"].to_numpy()
    if "intercept" in table:
        intercept = table["intercept"].to_numpy()
    else:
        intercept = -slope * table["difficulty"].to_numpy()

    unknown = np.isnan(intercept) | np.isnan(guess) | ~np.isfinite(slope)
    unknown |= table["discrimination"].isna().to_numpy() & np.isfinite(intercept)
    if unknown.any():
        name = parameters.index[unknown][0]
        raise ParameterError(f"the parameters of '{name}' are not known; leave the item out.")

    return slope, intercept, guess


def _extreme(parameters: pd.DataFrame) -> np.ndarray:
    """Items that everyone or no one solved: they tell nothing of ability."""
    return np.isinf(_columns(parameters)[1])


def _posterior(
    answers: pd.DataFrame, parameters: pd.DataFrame
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x, observed = _filled(_matched(answers, parameters))
    theta, weights = _grid(len(parameters))
    p = np.clip(probability(theta, parameters), 1e-12, 1 - 1e-12)
    extreme = _extreme(parameters)
    x = x[:, ~extreme]
    observed = observed[:, ~extreme]
    p = p[:, ~extreme]
    joint = x @ np.log(p).T + (observed - x) @ np.log1p(-p).T + np.log(weights)
    posterior, total = _normalised(joint)

    return posterior, theta, total


def _mean_squares(
    answers: pd.DataFrame, parameters: pd.DataFrame, axis: int
) -> tuple[np.ndarray, np.ndarray]:
    """Infit and outfit of items (axis 0) or respondents (1), over the answers that there are."""
    answers = _matched(answers, parameters)
    theta = abilities(answers, parameters)["theta"].to_numpy()
    p = probability(theta, parameters)
    x = answers.to_numpy()
    variances = p * (1 - p)
    known = ~np.isnan(x) & ~_extreme(parameters) & (variances > 1e-12)
    squares = np.where(known, (x - p) ** 2, 0.0)
    spread = np.where(known, variances, 0.0)
    ratio = np.divide(squares, variances, out=np.zeros_like(squares), where=known)
    count = known.sum(axis=axis)
    total = spread.sum(axis=axis)
    infit, outfit = (np.full(count.shape, np.nan) for _ in range(2))
    np.divide(squares.sum(axis=axis), total, out=infit, where=count > 0)
    np.divide(ratio.sum(axis=axis), count, out=outfit, where=count > 0)

    return infit, outfit
