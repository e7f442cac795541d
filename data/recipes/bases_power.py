"""Simulate the power of ``data/plans/six-bases.yml``: ``python -m recipes.bases_power``.

Respondents are drawn within a base, with the standard deviations of the two older bases; effects of
bases are drawn around a mean. Members of one block share pairs and initial weights, so their values
may correlate. The test within a base is the paired t test over blocks; the test over bases is the
random-effects mean with Hartung and Knapp's interval, as in the analysis.
"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
from scipy import stats

from .base_tests import combined

DEVIATIONS = {
    "silhouette": {"encoder": 0.10, "decoder": 0.24},
    "criterion": {"encoder": 0.16, "decoder": 0.17},
}
EFFECTS = {"silhouette": (0.10, 0.16, 0.25), "criterion": (0.15, 0.30)}
CORRELATIONS = (0.0, 0.3)
BLOCKS = (4, 6, 8, 12)
DESIGN = {"encoder": (12, 8), "decoder": (6, 6)}
"""Numbers of blocks: for MiniLM and MPNet, and for SmolLM2 and Gemma."""
BETWEEN = (0.0, 0.05, 0.10)
"""Standard deviations of the bases' effects."""
DRAWS = 2000


def differences(
    effects: np.ndarray, blocks: int, deviation: float, r: float, rng: np.random.Generator
) -> np.ndarray:
    """Return differences of paired members, (draws, blocks), for one effect per draw."""
    size = deviation * np.sqrt(2 * (1 - r))
    return effects[:, None] + size * rng.normal(size=(len(effects), blocks))


def within_base() -> pd.DataFrame:
    """Return the power of the paired t test within one base."""
    rows = []
    for statistic, by_family in DEVIATIONS.items():
        grid = itertools.product(by_family.items(), EFFECTS[statistic], CORRELATIONS, BLOCKS)
        for (family, deviation), effect, r, blocks in grid:
            rng = np.random.default_rng(0)
            drawn = differences(np.full(DRAWS, effect), blocks, deviation, r, rng)
            p = stats.ttest_1samp(drawn, 0, axis=1).pvalue
            rows.append((statistic, family, effect, r, blocks, (p < 0.05).mean()))

    names = ["statistic", "family", "effect", "correlation", "blocks", "power"]
    return pd.DataFrame(rows, columns=names)


def over_bases(draws: int = 1000) -> pd.DataFrame:
    """Return the power of the mean over the four bases of the primary test."""
    rows = []
    for statistic, by_family in DEVIATIONS.items():
        grid = itertools.product(EFFECTS[statistic], CORRELATIONS, BETWEEN)
        for effect, r, between in grid:
            rng = np.random.default_rng(0)
            parts = []
            for family, numbers in DESIGN.items():
                for blocks in numbers:
                    effects = rng.normal(effect, between, draws)
                    parts.append(differences(effects, blocks, by_family[family], r, rng))

            means = np.stack([part.mean(axis=1) for part in parts], axis=1)
            squares = [part.var(axis=1, ddof=1) / part.shape[1] for part in parts]
            variances = np.stack(squares, axis=1)
            pairs = zip(means, variances, strict=True)
            clear = [combined(value, variance)["low"] > 0 for value, variance in pairs]
            rows.append((statistic, effect, r, between, np.mean(clear)))

    names = ["statistic", "effect", "correlation", "sd between bases", "power"]
    return pd.DataFrame(rows, columns=names)


def _main() -> None:
    for table in (within_base(), over_bases()):
        print(table.to_string(index=False, float_format="%.2f"))


if __name__ == "__main__":
    _main()
