"""What printed statistics allow, without the answers: possible means, SDs, alphas, correlations.

Numbers are given as they are printed, as text, since "2.50" says more than 2.5. All tests of
possibility are one-sided: what fails was printed wrongly, or made otherwise than assumed; what
passes may still be wrong.
"""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, InvalidOperation
from fractions import Fraction

import numpy as np
import pandas as pd
from scipy import optimize, stats

from ..checks import check_numbers
from ..exceptions import ParameterError


def possible_totals(mean: str, n: int, parts: int = 1) -> range:
    r"""Return the totals of integer answers whose mean is printed so: the GRIM test.

    A mean of n respondents' integers is :math:`T/n` for an integer T. If no T rounds to the printed
    mean, up or down in case of a tie, no n such answers have this mean.

    Parameters
    ----------
    mean : str
        The mean as printed, with all its decimals.
    n : int
        Number of respondents.
    parts : int
        Number of items that are averaged for each respondent; 1 for sums and for single items.

    Returns
    -------
    range
        Possible totals over respondents and items; empty if there is none.

    Raises
    ------
    ParameterError
        The mean is not a number in text, or a size is below 1.

    References
    ----------
    Brown and Heathers (2017), *The GRIM test*.

    Examples
    --------
    The example of its authors: 28 integers cannot have a mean of 5.19, but 5.18.

    >>> len(possible_totals("5.19", 28)), possible_totals("5.18", 28)[0]
    (0, 145)
    """
    check_numbers(n=n, parts=parts)
    low, high = _rounding_interval(mean)
    return range(math.ceil(low * n * parts), math.floor(high * n * parts) + 1)


def possible_squares(
    mean: str, sd: str, n: int, lowest: int, highest: int, parts: int = 1
) -> dict[int, list[range]]:
    r"""Return, by total, the sums of squares that a printed mean and SD allow: the GRIMMER test.

    With :math:`T = \sum x` and :math:`Q = \sum x^2` of integers, :math:`s^2 = (Q - T^2/n)/(n-1)`.
    Q is an integer, odd where T is odd, at least that of n equal answers and at most that of
    answers at both ends of the scale.

    Parameters
    ----------
    mean, sd : str
        As printed. The SD may have n or n - 1 in its denominator.
    n : int
        Number of respondents, at least two.
    lowest, highest : int
        Range of an answer.
    parts : int
        Number of items that are averaged for each respondent. Their sum is the integer x.

    Returns
    -------
    dict
        Ranges of sums of squares by total, for each total that allows one; empty if none does.

    Raises
    ------
    ParameterError
        A number is not one, the SD is negative, or the range is empty.

    References
    ----------
    Anaya (2016), *The GRIMMER test*; Allard (2018) for the rule of odd and even.

    Examples
    --------
    >>> possible_squares("2.5", "0.71", 2, 1, 5)
    {5: [range(13, 14, 2)]}
    >>> possible_squares("2.5", "0.60", 2, 1, 5)
    {}
    """
    check_numbers(n=n, parts=parts)
    if n < 2 or lowest >= highest or Decimal(sd) < 0:
        raise ParameterError(
            "sd: give an SD of at least 0, two respondents and a range of answers."
        )

    small, large = _rounding_interval(sd)
    squares = {}
    for total in possible_totals(mean, n, parts):
        least, most = _square_bounds(total, n, lowest * parts, highest * parts)
        of_mean = Fraction(total**2, n)
        ranges = []
        for denominator in (n - 1, n):
            low = max(small, Fraction(0)) ** 2 * parts**2 * denominator + of_mean
            high = large**2 * parts**2 * denominator + of_mean
            start = max(least, math.ceil(low))
            ranges.append(range(start + (start - total) % 2, min(most, math.floor(high)) + 1, 2))

        if any(ranges):
            squares[total] = [allowed for allowed in ranges if allowed]

    return squares


def reconstruct_answers(
    mean: str, sd: str, n: int, lowest: int, highest: int, parts: int = 1
) -> pd.Series | None:
    """Return one sample with a printed mean and SD, where steps at random find one: SPRITE.

    It starts from answers that are as equal as the mean allows, and moves one answer up and another
    down by one until the SD is right.

    Parameters
    ----------
    mean, sd, n, lowest, highest, parts
        As in :func:`possible_squares`.

    Returns
    -------
    Series or None
        Number of respondents by score (the sum of ``parts`` answers). None if there is no such
        sample or none was found.

    References
    ----------
    Heathers, Anaya, van der Zee and Brown (2018), *Recovering data from summary statistics*.

    Examples
    --------
    >>> reconstruct_answers("3.00", "2.11", 10, 1, 5).to_dict()
    {1: 5, 5: 5}
    """
    squares = possible_squares(mean, sd, n, lowest, highest, parts)
    rng = np.random.default_rng(0)
    low = lowest * parts
    high = highest * parts
    for total, allowed in itertools.islice(squares.items(), _MOST_TOTALS):
        scores = np.full(n, total // n)
        scores[: total % n] += 1

        for _ in range(_STEPS):
            square = int((scores**2).sum())
            if any(square in ranges for ranges in allowed):
                return pd.Series(scores).value_counts().sort_index()

            # raising the larger of two widens, raising the smaller narrows
            pair = rng.integers(n, size=2)
            narrow, wide = pair[np.argsort(scores[pair], kind="stable")]
            up, down = (wide, narrow) if square < allowed[0][0] else (narrow, wide)
            if up != down and scores[up] < high and scores[down] > low:
                scores[up] += 1
                scores[down] -= 1

    return None


def alpha_of_chance(items: int, n: int) -> tuple[float, float]:
    r"""Return the central 95 % of alpha where the items have nothing in common.

    .. math:: \hat\alpha = 1 - 1/F, \qquad F \sim F_{n-1,\,(n-1)(I-1)}

    Parameters
    ----------
    items, n : int
        Numbers of items and of respondents, at least two each.

    References
    ----------
    Feldt (1965), with a true alpha of 0.

    Examples
    --------
    >>> [round(value, 2) for value in alpha_of_chance(10, 50)]
    [-0.58, 0.32]
    """
    check_numbers(items=items, n=n)
    if min(items, n) < 2:
        raise ParameterError("items, n: give at least two items and two respondents.")
    low, high = 1 - 1 / stats.f.ppf([0.025, 0.975], n - 1, (n - 1) * (items - 1))
    return float(low), float(high)


def alpha_of_habit(share: float, items: int, reverse_keyed: int) -> float:
    r"""Return alpha where respondents differ in nothing but how much they agree.

    Agreement is a share :math:`\rho` of each raw answer's variance. After keying it has opposite
    signs in the two kinds of items, so that the sum of I standardised items with q reverse-keyed
    ones has the variance :math:`V = I + \rho\,((I - 2q)^2 - I)`, and

    .. math:: \alpha = \frac{I}{I-1}\left(1 - \frac{I}{V}\right).

    With q = 0 this is alpha of any one common cause, the trait or desirability.

    Parameters
    ----------
    share : float
        Share of an item's variance, from 0 to 1.
    items, reverse_keyed : int
        Numbers of items and of reverse-keyed ones among them.

    References
    ----------
    Cronbach (1951), equation 2, with the correlations of one factor that has both signs.

    Examples
    --------
    >>> round(alpha_of_habit(0.3, 10, 0), 2), round(alpha_of_habit(0.3, 10, 3), 2)
    (0.81, 0.17)
    """
    _check_keys(items, reverse_keyed)
    variance = items + share * ((items - 2 * reverse_keyed) ** 2 - items)
    return items / (items - 1) * (1 - items / variance)


def habit_of_alpha(alpha: float, items: int, reverse_keyed: int) -> float:
    """Return the share of variance with which a habit of agreeing alone gives an alpha.

    It is the inverse of :func:`alpha_of_habit`, and missing where no share gives this alpha.

    Examples
    --------
    >>> round(habit_of_alpha(0.81, 10, 0), 2), habit_of_alpha(0.81, 10, 5)
    (0.3, nan)
    """
    _check_keys(items, reverse_keyed)
    if alpha >= 1:
        return np.nan

    variance = items / (1 - alpha * (items - 1) / items)
    common = (items - 2 * reverse_keyed) ** 2 - items
    share = (variance - items) / common if common else np.nan
    return float(share) if 0 <= share <= 1 else np.nan


def _correlation_of_habit(
    share: float, items: tuple[int, int], reverse_keyed: tuple[int, int]
) -> float:
    r"""Return the correlation of two scales between which only agreeing is common.

    .. math:: r = \frac{\rho\,(I_1 - 2q_1)(I_2 - 2q_2)}{\sqrt{V_1 V_2}}

    with V as in :func:`alpha_of_habit`.

    Examples
    --------
    >>> round(_correlation_of_habit(0.3, (10, 10), (0, 5)), 2)
    0.0
    >>> round(_correlation_of_habit(0.3, (10, 10), (2, 9)), 2)
    -0.67
    """
    balances = np.subtract(items, np.multiply(2, reverse_keyed))
    variances = items + share * (balances**2 - items)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(share * balances.prod() / np.sqrt(variances.prod()))


def habit_of_correlation(r: float, items: tuple[int, int], reverse_keyed: tuple[int, int]) -> float:
    """Return the share of variance with which agreeing alone gives a correlation, or missing.

    Examples
    --------
    >>> round(habit_of_correlation(-0.67, (10, 10), (2, 9)), 2)
    0.3
    """

    def missing(share: float) -> float:
        return _correlation_of_habit(share, items, reverse_keyed) - r

    if not np.isfinite(missing(0.999)) or missing(0) * missing(0.999) > 0:
        return np.nan
    return float(optimize.brentq(missing, 0, 0.999))


def repeated_answers_test(f: float, df: int, n: int, units: int) -> tuple[float, float]:
    r"""Return F and p of a test whose n rows are repeated answers of fewer respondents.

    The rows of a respondent are taken as copies of one another, m for each:

    .. math:: F' = F / m, \qquad m = n / \text{units}

    with the residual degrees of freedom of as many rows as respondents.

    Parameters
    ----------
    f, df : float, int
        F as printed (the square of t) and its first degrees of freedom.
    n, units : int
        Number of rows of the test, and of respondents that gave them, equally many each.

    Returns
    -------
    tuple
        F and p; p is missing with too few respondents for a test.

    References
    ----------
    Kish (1965) for the design effect, with an intraclass correlation of 1.

    Examples
    --------
    Twenty runs of two models are two respondents, who allow no test of a difference.

    >>> [round(value, 3) for value in repeated_answers_test(16, 1, 20, 2)]
    [1.6, nan]
    >>> [round(value, 3) for value in repeated_answers_test(16, 1, 200, 20)]
    [1.6, 0.222]
    """
    check_numbers(n=n, units=units, df=df)
    smaller = f * units / n
    residual = units - df - 1
    return smaller, float(stats.f.sf(smaller, df, residual)) if residual > 0 else np.nan


_STEPS = 20_000
# Totals for which a sample is sought, since each may take a second.
_MOST_TOTALS = 5


def _rounding_interval(text: str) -> tuple[Fraction, Fraction]:
    """Return the numbers that are printed so, whichever way ties are rounded."""
    try:
        number = Decimal(text)
        half = Fraction(1, 2) * Fraction(10) ** int(number.as_tuple().exponent)
    except (InvalidOperation, TypeError, ValueError) as error:
        raise ParameterError(
            f"{text!r}: give a number as it is printed, such as '2.50'."
        ) from error
    return Fraction(number) - half, Fraction(number) + half


def _square_bounds(total: int, n: int, low: int, high: int) -> tuple[int, int]:
    """Return the least and largest sum of squares of n integers in a range with a total."""
    equal, remainder = divmod(total, n)
    if equal < low or equal + (remainder > 0) > high:
        return 1, 0

    least = (n - remainder) * equal**2 + remainder * (equal + 1) ** 2
    top, between = divmod(total - n * low, high - low)
    most = top * high**2 + max(n - top, 0) * low**2
    return least, most + (low + between) ** 2 - low**2


def _check_keys(items: int, reverse_keyed: int) -> None:
    check_numbers(items=items)
    if items < 2 or not 0 <= reverse_keyed <= items:
        raise ParameterError(
            "items, reverse_keyed: give at least two items, and how many of them are reversed."
        )
