"""Write ``data/contamination.csv``: do local models know the IPIP by heart?

``python -m recipes.contamination`` asks two conversational models for log-probabilities; names
after the command select other models (``psychometrics fetch-model`` fetches the second). This takes
two minutes on one core. :mod:`psychometrics.reports.contamination` describes the signs.
"""

from __future__ import annotations

import sys

import pandas as pd

from psychometrics.paths import data_dir
from psychometrics.reports.contamination import contamination

MODELS = ("smollm2", "qwen2.5-coder-0.5b")

if __name__ == "__main__":
    path = data_dir() / "contamination.csv"
    for model in sys.argv[1:] or MODELS:
        table = contamination(model).round(4)
        if path.exists():
            kept = pd.read_csv(path)
            table = pd.concat([kept[kept["model"] != model], table])
        table.to_csv(path, index=False)
