"""Simulate false findings of studies: ``python -m recipes.study_units``.

The plan is ``data/plans/study-units.yml``. The table that is printed is on the page *My study*. It
takes a few minutes on one core.
"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import yaml

from psychometrics.measures.intervals import crossed_interval
from psychometrics.paths import data_dir

STUDIES = 1000
_SHOWN = ["items", "ways", "sd_of_respondents", "respondents"]


def simulate_differences(
    rng: np.random.Generator,
    shape: tuple[int, int, int],
    sd_of_respondents: float,
    sd_of_ways: float,
    share_of_items: float,
) -> np.ndarray:
    """Return one study's differences without an effect, shape (respondents, ways, items)."""
    respondents, ways, items = shape
    return (
        rng.normal(0, sd_of_respondents, (respondents, 1, 1))
        + rng.normal(0, sd_of_ways, (1, ways, 1))
        + rng.normal(0, share_of_items**0.5, (1, 1, items))
        + rng.normal(0, (1 - share_of_items) ** 0.5, shape)
    )


def share_of_false_findings(cell: dict[str, float], studies: int = STUDIES) -> float:
    """Return the share of simulated studies whose interval excludes zero."""
    rng = np.random.default_rng(0)
    shape = tuple(int(cell[name]) for name in ("respondents", "ways", "items"))
    spreads = [cell[name] for name in ("sd_of_respondents", "sd_of_ways", "share_of_items")]
    findings = 0

    for _ in range(studies):
        low, high, _ = crossed_interval(simulate_differences(rng, shape, *spreads))
        findings += low > 0 or high < 0

    return findings / studies


def main() -> None:
    """Simulate all cells of the plan and print the largest shares as a table."""
    plan = (data_dir() / "plans" / "study-units.yml").read_text(encoding="utf-8")
    levels = yaml.safe_load(plan)["cells"]
    rows = []
    for values in itertools.product(*levels.values()):
        cell = dict(zip(levels, values, strict=True))
        if cell["ways"] > 1 or cell["sd_of_ways"] == 0:
            rows.append(cell | {"share": share_of_false_findings(cell)})

    table = pd.DataFrame(rows)
    print(table.sort_values("share").tail(8).to_string())
    largest = table.groupby(_SHOWN)["share"].max().unstack("respondents")
    print((100 * largest).round(1).to_string())


if __name__ == "__main__":
    main()
