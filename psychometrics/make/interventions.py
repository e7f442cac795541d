"""The intervention study that comes with the project."""

from __future__ import annotations

import pandas as pd

from ..interventions import SHIPPED, trajectories
from ..paths import data_dir
from ..population import population_table
from ..questionnaires import load_questionnaire

MEASURED = (2, 5, 10, 20)
"""Epochs after which the study is measured, besides 0."""


def build_study(models: int = 7, progress: bool = True) -> pd.DataFrame:
    """Measure the study that comes with the project and keep it in ``data/interventions.csv``.

    Parameters
    ----------
    models : int
        How many embedded respondents, the most accurate first; the paper has seven.
    progress : bool
        Show progress bars.

    Returns
    -------
    DataFrame
        What was kept: ``run`` (digest of all that determines it), then as
        :func:`psychometrics.interventions.trajectories`; epoch 0 belongs to no arm.
    """
    table = population_table().sort_values("accuracy", ascending=False)
    names = table["respondent_id"].head(models).tolist()
    scores = trajectories(
        names,
        [load_questionnaire(name) for name in ("gad7", "phq9", "soc13")],
        measure_at=MEASURED,
        seed=1,
        shipped=False,
        progress=progress,
    )
    scores["arm"] = scores["arm"].where(scores["epoch"] > 0)
    frame = scores.drop_duplicates(["run", "epoch", "scale"])
    columns = ["run", "respondent_id", "arm", "epoch", "questionnaire", "scale", "score"]
    frame = frame[columns].reset_index(drop=True)
    frame.to_csv(data_dir() / SHIPPED, index=False, float_format="%.6f")
    return frame
