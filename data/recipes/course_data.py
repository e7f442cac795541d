"""Write two data sets for students: ``PYTHONPATH=data python -m recipes.course_data``.

Both come from the project's shipped data, so they need no model. The book's page for teachers has
the codebook.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

import psychometrics as pm

FOLDER = pm.paths.data_dir() / "course"
SCALES = ("gad7", "phq9", "soc13", "placebo_weather")
OPTIONS = [f"option {place}" for place in range(1, 5)]


def main() -> None:
    """Write both files."""
    FOLDER.mkdir(exist_ok=True)
    scales().round(5).to_csv(FOLDER / "scales.csv")
    items().round(4).to_csv(FOLDER / "items.csv", index=False)


def scales() -> pd.DataFrame:
    """Return item scores of 24 trained encoders and of 24 untrained heads, one row each."""
    questionnaires = [pm.load_questionnaire(name) for name in SCALES]
    trained = pm.ask(questionnaires, "encoders")
    answers = {"trained": trained}
    untrained = [
        pm.null_answers(one, "random-heads", respondents=24, seed=1) for one in questionnaires
    ]
    answers["untrained"] = pd.concat(untrained)

    parts = {}
    for kind, part in answers.items():
        scores = pm.item_scores(part)
        parts[kind] = scores.pivot_table(index="respondent_id", columns="item_id", values="score")

    table = pd.concat(parts, names=["kind", "respondent"])
    order = [item.id for one in questionnaires for item in one.items]

    return table[order]


def items() -> pd.DataFrame:
    """Return the items of NAEP with students' and models' shares of each option."""
    known = pd.read_csv(pm.paths.data_dir() / "items" / "items.csv")
    logs = pd.read_parquet(pm.paths.data_dir() / "items" / "models.parquet")
    shares = np.exp(logs[OPTIONS].astype(float))
    shares = shares.div(shares.sum(axis=1), axis=0)
    means = shares.groupby(logs["item_id"]).mean().add_prefix("models, ")

    kept = ["item_id", "grade", "subject", "block", *OPTIONS, "key", "stem length"]
    table = known[kept].rename(columns={name: f"students, {name}" for name in OPTIONS})

    return table.merge(means.reset_index(), on="item_id")


if __name__ == "__main__":
    main()
