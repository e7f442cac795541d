"""Simulate the power of ``data/plans/twins.yml``: ``python -m recipes.twins_power``.

Item profiles of respondents are drawn within a base and analysed as the plan says. Agreement is
tested by Student's t over bases, and by the random-effects mean with jackknife errors, so that one
sees why the plan prefers the former; silhouettes are tested by the random-effects mean. Profiles
have eight independent items, since agreement without learning varies in the kept rows as it would
with six to ten of them (intervals of shuffled labels).
"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
from scipy import stats

from psychometrics.measures.intervals import jackknife_half_width

from .base_tests import combined

BLOCKS = (12, 8, 6, 6, 4)
"""Blocks of MiniLM, MPNet, SmolLM2, Gemma and Qwen; four bases are the first four."""
ITEMS = 8
AGREEMENT = (0.92, 0.80, 0.83, 0.93, 0.85)
"""Agreement of members trained on true labels; the last base has not been trained."""
GAPS = (0.0, 0.2, 0.3, 0.5)
BETWEEN = (0.05, 0.10, 0.15)
"""Standard deviations of the bases' effects."""
DEVIATIONS = {
    "S": (0.12, 0.12, 0.16, 0.16, 0.16),
    "S real less placebo": (0.13, 0.13, 0.18, 0.18, 0.18),
}
"""Standard deviations of paired differences, as in the kept rows of six bases."""
EFFECTS = (0.0, 0.10, 0.15, 0.25)
SHARES = (0.5, 0.63, 0.8, 0.9)
FAMILY = 7
"""Number of tests that Holm's correction has in the plan."""
DRAWS = 1000


def profiles(
    agreement: np.ndarray, blocks: int, rng: np.random.Generator, polar: bool = False
) -> np.ndarray:
    """Return profiles, (draws, blocks, items), that agree as given by draw.

    Members share a common profile in part; if `polar`, they have it clearly (.9) but some of them
    with the opposite sign, which makes agreement vary most.
    """
    common = rng.normal(size=(len(agreement), 1, ITEMS))
    common -= common.mean(axis=2, keepdims=True)
    common *= np.sqrt(ITEMS / (common**2).sum(axis=2, keepdims=True))
    own = rng.normal(size=(len(agreement), blocks, ITEMS))
    strength = np.full_like(agreement, 0.9) if polar else agreement
    same_sign = (1 + np.sqrt(np.minimum(agreement / np.maximum(strength, 1e-9), 1))) / 2
    is_turned = rng.random((len(agreement), blocks)) > same_sign[:, None]
    sign = np.where(is_turned, -1, 1)[..., None]
    strength = strength[:, None, None]
    return np.sqrt(strength) * sign * common + np.sqrt(1 - strength) * own


def agreements(profile: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean correlations, (draws,), and those without each member, (blocks, draws)."""
    unit = profile - profile.mean(axis=2, keepdims=True)
    unit /= np.linalg.norm(unit, axis=2, keepdims=True)
    number = unit.shape[1]
    total = unit.sum(axis=1)
    rest = total[:, None] - unit
    value = ((total**2).sum(axis=1) - number) / (number * (number - 1))
    without = ((rest**2).sum(axis=2) - (number - 1)) / ((number - 1) * (number - 2))
    return value, without.T


def gaps_of_agreement(
    gap: float, between: float, polar: bool, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return differences of agreement and their squared errors, both (draws, bases)."""
    values, errors = [], []
    for blocks, level in zip(BLOCKS, AGREEMENT, strict=True):
        effects = rng.normal(gap, between, DRAWS)
        lower = np.clip(level - effects, 0, 0.99)
        first = agreements(profiles(np.full(DRAWS, level), blocks, rng))
        second = agreements(profiles(lower, blocks, rng, polar))
        values.append(first[0] - second[0])
        half = jackknife_half_width(first[1] - second[1])
        errors.append(half / stats.t.ppf(0.975, blocks - 1))

    return np.stack(values, axis=1), np.stack(errors, axis=1) ** 2


def differences(
    statistic: str, effect: float, between: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean paired differences and their squared errors, both (draws, bases)."""
    parts = []
    for blocks, deviation in zip(BLOCKS, DEVIATIONS[statistic], strict=True):
        effects = rng.normal(effect, between, DRAWS)[:, None]
        parts.append(effects + deviation * rng.normal(size=(DRAWS, blocks)))

    means = np.stack([part.mean(axis=1) for part in parts], axis=1)
    squares = [part.var(axis=1, ddof=1) / part.shape[1] for part in parts]
    return means, np.stack(squares, axis=1)


def over_bases() -> pd.DataFrame:
    """Return how often effects are shown, equivalent, and covered by their intervals."""
    rows = []
    for polar, between, gap in itertools.product((False, True), BETWEEN, GAPS):
        draws = gaps_of_agreement(gap, between, polar, np.random.default_rng(0))
        name = "A, signs differ" if polar else "A"
        for weighted, number in itertools.product((False, True), (4, 5)):
            about = {"statistic": name, "effect": gap, "sd": between, "bases": number}
            rows.append(about | {"weighted": weighted} | _shown(draws, number, weighted, gap, 0.15))

    for name, between, effect in itertools.product(DEVIATIONS, BETWEEN, EFFECTS):
        draws = differences(name, effect, between, np.random.default_rng(0))
        for number in (4, 5):
            about = {"statistic": name, "effect": effect, "sd": between, "bases": number}
            rows.append(about | {"weighted": True} | _shown(draws, number, True, effect, 0.10))

    return pd.DataFrame(rows)


def _shown(
    draws: tuple[np.ndarray, np.ndarray], number: int, weighted: bool, effect: float, bound: float
) -> dict[str, float]:
    """Return the shares of draws whose first bases show an effect, and that are equivalent."""
    values, squares = (part[:, :number] for part in draws)
    if weighted:
        pairs = zip(values, squares, strict=True)
        table = pd.DataFrame([combined(*pair, bounded=True) for pair in pairs])
    else:
        test = stats.ttest_1samp(values, 0, axis=1)
        interval = test.confidence_interval()
        columns = {"value": values.mean(axis=1), "p": test.pvalue}
        table = pd.DataFrame(columns | {"low": interval.low, "high": interval.high})

    above = table["value"] > 0
    return {
        "p < .05": (above & (table["p"] < 0.05)).mean(),
        "p < .05/7": (above & (table["p"] < 0.05 / FAMILY)).mean(),
        "equivalent": ((table["low"] > -bound) & (table["high"] < bound)).mean(),
        "covered": table["low"].le(effect).mul(table["high"].ge(effect)).mean(),
    }


def share_between_bases() -> pd.DataFrame:
    """Return the power of the F test of a share of variance between bases above one half."""
    rows = []
    for share, number in itertools.product(SHARES, (4, 5)):
        rng = np.random.default_rng(0)
        blocks = np.array(BLOCKS[:number])
        base = rng.normal(0, np.sqrt(share), (10 * DRAWS, number))
        parts = [
            base[:, [place]] + rng.normal(0, np.sqrt(1 - share), (10 * DRAWS, size))
            for place, size in enumerate(blocks)
        ]
        p = p_of_share(parts)
        power = [(p < level).mean() for level in (0.05, 0.05 / FAMILY)]
        rows.append((share, number, *power))

    return pd.DataFrame(rows, columns=["share", "bases", "p < .05", "p < .05/7"])


def p_of_share(parts: list[np.ndarray], share: float = 0.5) -> np.ndarray:
    """Return p of the hypothesis that at most this share of variance lies between groups.

    Parameters
    ----------
    parts : list of ndarray, shape (draws, members)
        Scores by group.
    share : float
        The share to be exceeded.
    """
    sizes = np.array([part.shape[1] for part in parts])
    means = np.stack([part.mean(axis=1) for part in parts], axis=1)
    number = sizes.sum()
    grand = (means * sizes).sum(axis=1, keepdims=True) / number
    between = (sizes * (means - grand) ** 2).sum(axis=1) / (len(parts) - 1)
    within = sum(part.var(axis=1) * part.shape[1] for part in parts) / (number - len(parts))
    size = (number - (sizes**2).sum() / number) / (len(parts) - 1)
    ratio = between / within / (1 + size * share / (1 - share))
    return stats.f.sf(ratio, len(parts) - 1, number - len(parts))


def _main() -> None:
    for table in (over_bases(), share_between_bases()):
        print(table.to_string(index=False, float_format="%.2f"))


if __name__ == "__main__":
    _main()
