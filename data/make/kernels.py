"""Write ``data/kernels.csv``, what no training gives: ``python -m data.make.kernels``.

For six bases or depths and six questionnaires, alpha, omega and the correlations of scales that
untrained heads have in closed form, with the interval for samples of 24 heads.
"""

import pandas as pd

from psychometrics.measures.nulls import kernel, kernel_statistics
from psychometrics.paths import data_dir

BASES = {
    "MiniLM, 3 layers": ("embedded", 3),
    "MiniLM, 4 layers": ("embedded", 4),
    "MiniLM, 5 layers": ("embedded", 5),
    "MiniLM, 6 layers": ("embedded", 6),
    "SmolLM2-135M, 18 layers": ("smollm2", 18),
    "SmolLM2-135M, 30 layers": ("smollm2", None),
}
QUESTIONNAIRES = ("gad7", "phq9", "soc13", "ipip20", "placebo_defects", "placebo_weather")

if __name__ == "__main__":
    parts = [
        kernel_statistics(kernel(QUESTIONNAIRES, *base), respondents=24).assign(base=name)
        for name, base in BASES.items()
    ]
    table = pd.concat(parts)[["base", "statistic", "scale", "other", "value", "low", "high"]]
    table.to_csv(data_dir() / "kernels.csv", index=False, float_format="%.4f", lineterminator="\n")
