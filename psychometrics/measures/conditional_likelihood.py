"""Estimate Rasch difficulties by conditional maximum likelihood, with symmetric functions."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.sparse.csgraph import connected_components

from ..exceptions import ParameterError


def _conditional_fit(answers: pd.DataFrame) -> pd.DataFrame:
    """Return Rasch difficulties, conditional on the sum scores to eliminate the abilities.

    Parameters
    ----------
    answers : DataFrame, shape (R, I)
        0/1 answers without gaps.

    Returns
    -------
    DataFrame
        As :func:`psychometrics.measures.irt.fit` returns it.

    Raises
    ------
    ParameterError
        An answer is missing, fewer than two items have variance, or the likelihood has no maximum.

    Examples
    --------
    >>> x = pd.DataFrame({"easy": [1, 1, 1, 0], "hard": [0, 0, 0, 1]})
    >>> _conditional_fit(x)["difficulty"].round(3).tolist()  # half the log of 3 to 1, either side
    [-0.549, 0.549]
    """
    if answers.isna().any(axis=None):
        raise ParameterError("Answers are missing; leave out respondents without all answers.")

    share = answers.mean()
    finite = answers.columns[(share > 0) & (share < 1)]
    _check_connected(answers[finite])

    x = answers[finite].to_numpy(dtype=float)
    n = len(finite)
    counts = np.bincount(x.sum(axis=1).astype(int), minlength=n + 1)[1:n]
    solved = x.sum(axis=0) - (x.sum(axis=1) == n).sum()
    scores = np.arange(1, n)

    def likely(easiness: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return log sums over each score's patterns, and items' expected numbers of solvers."""
        totals = _symmetric_functions(easiness, np.ones((1, n), dtype=bool))[0, scores]
        without = _symmetric_functions(easiness, ~np.eye(n, dtype=bool))
        solved_given_sum = np.exp(easiness[:, None] + without[:, scores - 1] - totals)
        return totals, counts @ solved_given_sum.T

    def loss(easiness: np.ndarray) -> tuple[float, np.ndarray]:
        totals, expected = likely(easiness)
        value = counts @ totals - solved @ easiness
        # The level of the difficulties is not identified: a weak penalty holds it at zero.
        return value + easiness.mean() ** 2, expected - solved + 2 * easiness.mean() / n

    start = np.log(share[finite] / (1 - share[finite])).to_numpy()
    options = {"maxiter": 2000, "ftol": 1e-14, "gtol": 1e-8}
    easiness = minimize(loss, start - start.mean(), jac=True, method="L-BFGS-B", options=options).x

    # Standard errors from differences of the gradient. The level is not identified: adding 1/n
    # everywhere fixes it, and subtracting it again leaves the covariance of the centred
    # difficulties (the pseudo-inverse, without its rounding).
    step = 1e-4
    slopes = [likely(easiness + move)[1] - likely(easiness - move)[1] for move in step * np.eye(n)]
    hessian = np.array(slopes) / (2 * step)
    level = np.full((n, n), 1 / n)
    covariance = np.linalg.inv((hessian + hessian.T) / 2 + level) - level
    errors = np.sqrt(np.diag(covariance).clip(0))

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
        raise ParameterError(f"Rasch needs two items that vary, got {len(items)}; add items.")

    x = answers.to_numpy(dtype=float)
    groups, group = connected_components(x.T @ (1 - x) > 0, connection="strong")
    if groups > 1:
        few = min(items[group == group[0]], items[group != group[0]], key=len)
        raise ParameterError(
            f"The conditional likelihood has no maximum: {', '.join(map(str, few[:5]))} could be "
            "moved away from the other items without end; leave them out, or use model='rasch'."
        )


def _symmetric_functions(logs: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Return log symmetric functions of all orders, for each row's subset of the items."""
    factors = np.where(members, logs, -np.inf).T[:, None]
    result = np.full((len(logs) + 1, len(members)), -np.inf)
    result[0] = 0.0
    for done, factor in enumerate(factors, start=1):
        result[1 : done + 1] = np.logaddexp(result[1 : done + 1], factor + result[:done])
    return result.T
