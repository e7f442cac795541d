"""Marginal maximum likelihood of item parameters, with abilities integrated out on a grid.

The limits of slopes and guessing are wide; ``at_limit`` marks parameters that reach a limit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit

from ..exceptions import ParameterError

_SLOPE_LIMIT = 8.0
_GUESSING_LIMITS = (0.001, 0.6)


def _marginal_fit(answers: pd.DataFrame, model: str, errors: bool = True) -> pd.DataFrame:
    """Estimate item parameters by marginal maximum likelihood.

    Parameters
    ----------
    answers : DataFrame, shape (R, I)
        0/1 answers, possibly missing.
    model : {"rasch", "1pl", "2pl", "3pl"}
    errors : bool
        Whether to compute standard errors.

    Returns
    -------
    DataFrame
        As :func:`psychometrics.measures.irt.fit` returns it.

    Raises
    ------
    ParameterError
        No one answered an item, or fewer than two items have variance.

    Examples
    --------
    >>> x = pd.DataFrame({"easy": [1, 1, 1, 0], "hard": [1, 0, 0, 0]})
    >>> _marginal_fit(x, "rasch")["difficulty"].round(2).tolist()
    [-1.32, 1.32]
    """
    share = answers.mean()
    if share.isna().any():
        raise ParameterError(f"No one answered '{share.index[share.isna()][0]}'; drop the item.")

    finite = answers.columns[(share > 0) & (share < 1)]
    if len(finite) < 2:
        raise ParameterError(f"{model} needs two items that vary, got {len(finite)}; add items.")

    x, observed = _fill_gaps(answers[finite])
    starts, bounds = _starts(x, share[finite].to_numpy(), model)
    data = _Data(*_patterns(x, observed, model), *_ability_grid(len(finite)))
    # At zero slopes the likelihood is flat, and a start that overshoots stays there, so several
    # starts are tried.
    results = []
    for scale in (1.0,) if model == "rasch" else (1.0, 0.25):
        started = [starts[0], *(block * scale for block in starts[1:2]), *starts[2:]]
        results.append(minimize(
            _loss, np.concatenate(started), (data, model), jac=True, method="L-BFGS-B",
            bounds=bounds, options={"maxiter": 5000, "maxfun": 20000, "ftol": 1e-13, "gtol": 1e-6},
        ))  # fmt: skip

    vector = min(results, key=lambda result: result.fun).x
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


def _fill_gaps(answers: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return 0/1 answers with 0 in the gaps, and an indicator of answers (1) and gaps (0).

    Examples
    --------
    >>> x, observed = _fill_gaps(pd.DataFrame({"a": [1, None]}))
    >>> x.tolist(), observed.tolist()
    ([[1.0], [0.0]], [[1.0], [0.0]])
    """
    values = answers.to_numpy(dtype=float)
    observed = ~np.isnan(values)
    return np.where(observed, values, 0.0), observed.astype(float)


def _ability_grid(items: int) -> tuple[np.ndarray, np.ndarray]:
    """Return abilities in equal steps and their weights in a standard normal population.

    Posteriors that are far narrower than the prior fall between the nodes of Gauss-Hermite
    quadrature. More items give narrower posteriors and therefore need smaller steps.

    Examples
    --------
    >>> theta, weights = _ability_grid(4)
    >>> len(theta), round(float(weights @ theta**2), 6)
    (123, 1.0)
    """
    theta = np.linspace(-7.2, 7.2, 2 * int(np.ceil(7.2 / min(0.12, 1.5 / np.sqrt(items)))) + 1)
    weights = np.exp(-(theta**2) / 2)
    return theta, weights / weights.sum()


def _normalise(joint: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Normalise rows of log weights to sum to one, and return the logs of their sums.

    Examples
    --------
    >>> _normalise(np.log([[1.0, 3.0]]))[0].round(2).tolist()
    [[0.25, 0.75]]
    """
    top = joint.max(axis=1)
    shares = np.exp(joint - top[:, None])
    mass = shares.sum(axis=1)
    shares /= mass[:, None]
    return shares, top + np.log(mass)


class _Data(NamedTuple):
    """Patterns of answers, their gaps and frequencies, and the grid of abilities."""

    x: np.ndarray
    observed: np.ndarray
    counts: np.ndarray
    theta: np.ndarray
    weights: np.ndarray


def _patterns(
    x: np.ndarray, observed: np.ndarray, model: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Merge respondents who have the same likelihood into one row, with their number.

    If all items have the same slope, the log likelihood is a function of a respondent's sum plus a
    term that is linear in the answers, so the mean answers of respondents with the same sum replace
    their answers exactly.
    """
    alike = np.packbits(observed > 0, axis=1)
    one_slope = model in ("rasch", "1pl")
    alike = np.c_[alike, x.sum(axis=1) if one_slope else np.packbits(x > 0, axis=1)]
    _, group, counts = np.unique(alike, axis=0, return_inverse=True, return_counts=True)
    sums = pd.DataFrame(x).groupby(group).sum() / counts[:, None]
    return sums.to_numpy(), pd.DataFrame(observed).groupby(group).first().to_numpy(), counts


def _starts(
    x: np.ndarray, share: np.ndarray, model: str
) -> tuple[list[np.ndarray], list[tuple[float, float]]]:
    """Return the starting values and bounds of intercepts, slopes and guessing."""
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
        low, high = _GUESSING_LIMITS
        bounds += [(logit(low), logit(high))] * n

    return starts, bounds


def _estimates(vector: np.ndarray, model: str, items: pd.Index) -> pd.DataFrame:
    """Return the parameters as a table, with ability's direction set by the majority of items."""
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


def _first_slopes(x: np.ndarray) -> np.ndarray:
    """Return starting slopes, within ±1.5, from the loadings on the first principal component."""
    centred = x - x.mean(axis=0)
    component = np.linalg.svd(centred / centred.std(axis=0), full_matrices=False)[2][0]
    return np.clip(3 * component * np.sign(component.sum() or 1), -1.5, 1.5)


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
    """Return minus the marginal log likelihood and its gradient, exact by Fisher's identity."""
    x, observed, counts, theta, weights = data
    intercept, slope, guess = _unpack(vector, x.shape[1], model)
    steps = theta[:, None] * slope + intercept
    solved = expit(steps)
    wrong = log_expit(-steps) + np.log1p(-guess)
    complete = bool(observed.all())  # then the sum over wrong answers is the same for everyone
    joint = np.log(weights) + (wrong.sum(axis=1) if complete else observed @ wrong.T)

    if model == "3pl":
        p = guess + (1 - guess) * solved
        joint = joint + x @ (np.log(p) - wrong).T
    else:  # log odds are linear in ability, so two sums suffice for a respondent
        joint = joint + np.outer(x @ slope, theta) + (x @ intercept)[:, None]

    posterior, total = _normalise(joint)
    posterior *= counts[:, None]
    # Expected numbers of answers, and of right answers, at every node.
    numbers = posterior.sum(axis=0)[:, None] if complete else posterior.T @ observed

    if model == "3pl":
        residual = posterior.T @ x - numbers * p
        through = residual * solved / p
        gradient = [through.sum(axis=0), theta @ through, (residual / p).sum(axis=0) * guess]
    else:
        expected = numbers * solved
        gradient = [counts @ x - expected.sum(axis=0), (posterior @ theta) @ x - theta @ expected]
        if model == "rasch":  # its slope is fixed
            del gradient[1]
        elif model == "1pl":  # all items have one slope
            gradient[1] = gradient[1].sum(keepdims=True)

    return -(counts @ total), -np.concatenate(gradient)


def _standard_errors(
    vector: np.ndarray, free: np.ndarray, data: _Data, model: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return standard errors of difficulties (delta method) and of slopes."""
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
    items = np.arange(n)
    of_slope = np.full(n, np.nan)
    safe = np.where(np.abs(slope) < 1e-9, np.nan, slope)
    variances = covariance[items, items] / safe**2  # variance of -intercept / slope

    if model != "rasch":
        other = np.full(n, n) if model == "1pl" else n + items
        of_slope = np.where(free[other], np.sqrt(covariance[other, other].clip(0)), np.nan)
        variances += covariance[other, other] * intercept**2 / safe**4
        variances -= 2 * covariance[items, other] * intercept / safe**3

    return np.where(free[:n], np.sqrt(variances.clip(0)), np.nan), of_slope
