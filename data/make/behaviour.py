"""Asks what smollm2 does in its roles: ``python -m data.make.behaviour``.

Makes ``data/behaviour.csv``, in a few minutes.
"""

from __future__ import annotations

import pandas as pd

from psychometrics.models.packed import SMOLLM2
from psychometrics.paths import data_dir
from psychometrics.studies.behaving import SHIPPED, declined, known


def _main() -> None:
    found = pd.concat([known(SMOLLM2, dtype="bfloat16"), declined(SMOLLM2)], ignore_index=True)
    found["run"] = found["run"].astype(int)
    found["value"] = found["value"].astype(int)
    found.to_csv(data_dir() / SHIPPED, index=False)


if __name__ == "__main__":
    _main()
