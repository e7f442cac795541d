"""Measures ``data/interventions.csv`` anew: ``python -m psychometrics.make.interventions``.

``run`` is the digest of all that determines a run; epoch 0 belongs to no arm.
"""

from __future__ import annotations

from ..interventions import SHIPPED, trajectories
from ..paths import data_dir
from ..population import population_table
from ..questionnaires import load_questionnaire

MEASURED = (2, 5, 10, 20)
"""Epochs after which the study is measured, besides 0."""


def _main() -> None:
    table = population_table().sort_values("accuracy", ascending=False)
    scores = trajectories(
        table["respondent_id"].head(7).tolist(),  # as many as in the paper, the most accurate
        [load_questionnaire(name) for name in ("gad7", "phq9", "soc13")],
        measure_at=MEASURED,
        seed=1,
        shipped=False,
    )
    scores["arm"] = scores["arm"].where(scores["epoch"] > 0)
    frame = scores.drop_duplicates(["run", "epoch", "scale"])
    columns = ["run", "respondent_id", "arm", "epoch", "questionnaire", "scale", "score"]
    frame[columns].to_csv(data_dir() / SHIPPED, index=False, float_format="%.6f")


if __name__ == "__main__":
    _main()
