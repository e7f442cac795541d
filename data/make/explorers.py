"""Null populations and the multiverse, as the explorers in the page show them: two small tables.

``python -m data.make.explorers`` takes a few minutes of one processor core. Population,
questionnaires, score and seed are those of the chapter on validity.
"""

from __future__ import annotations

import pandas as pd

from psychometrics.asking.ask import ask
from psychometrics.asking.population import population, untouched_bases
from psychometrics.measures import evidence
from psychometrics.measures.correlations import multiverse, multiverses
from psychometrics.measures.nulls import null_answers
from psychometrics.paths import data_dir
from psychometrics.questionnaires import load_questionnaire

EXPECTED = {("gad7", "phq9"): 1, ("gad7", "soc13"): -1, ("phq9", "soc13"): -1}
"""Sign that the correlation of two scales has in people."""
RESPONDENTS, DRAWS, SEED = 96, 200, 1
"""Null respondents of a kind, populations drawn from them, and the seed of the draws."""


def _null_respondents(loaded: list, members: list[str]) -> dict[str, pd.DataFrame]:
    """Answers of those whose populations are drawn, by kind, in the words of the page."""
    how = {
        "random heads, our bases": ("random-heads", untouched_bases(members)),
        "random heads, 4 layers": ("random-heads", {"layers": 4}),
        "random heads, decoder": ("random-heads", {"base": "smollm2"}),
        "noise": ("noise", {}),
    }
    return {
        name: null_answers(loaded, kind, RESPONDENTS, **given)
        for name, (kind, given) in how.items()
    }


def _null_and_multiverse(draws: int = DRAWS) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The two tables; `draws` is the number of populations, a tenth of it in the multiverse."""
    loaded = [load_questionnaire(name) for name in ("gad7", "phq9", "soc13")]
    members = population()
    answers = ask(loaded, members, progress=False)
    nulls = _null_respondents(loaded, members)
    real = evidence.evidence(evidence.profiles(answers, loaded), loaded, EXPECTED)
    rows = [real.to_frame().T.assign(kind="our population")]
    for kind, given in nulls.items():
        table = evidence.profiles(given, loaded)
        drawn = evidence.sets_of(
            table, loaded, EXPECTED, size=len(members), sets=draws, seed=SEED
        )  # fmt: skip
        rows.append(drawn.assign(kind=kind))
    null = pd.concat(rows).assign(size=len(members)).drop(columns="two methods")
    worlds = multiverse(answers, loaded, list(EXPECTED))
    for kind, given in nulls.items():
        if kind != "noise":
            drawn = multiverses(
                given, loaded, list(EXPECTED), len(members), max(1, draws // 10), SEED
            )
            worlds[kind] = drawn.median(axis=1)
    return null[["kind", "size", *null.columns.drop(["kind", "size"])]], worlds


if __name__ == "__main__":
    for name, table in zip(("null", "multiverse"), _null_and_multiverse(), strict=True):
        path = data_dir() / "explorers" / f"{name}.csv"
        table.to_csv(path, index=False, float_format="%.6g")
        print(f"{path}: {len(table)} rows")
