"""Make the table for the multiverse explorer: encoders and untrained heads.

``python -m recipes.explorers`` takes a minute on one processor core. Questionnaires, scores and the
sizes of the heads are the same as in the chapter on validity.
"""

from __future__ import annotations

import itertools

import pandas as pd
from scipy import stats

from psychometrics.asking.ask import ask
from psychometrics.asking.population import population, untouched_bases
from psychometrics.measures.normalisation import pss
from psychometrics.nulls.evidence import resized
from psychometrics.nulls.respondents import null_answers
from psychometrics.paths import data_dir
from psychometrics.questionnaires import load_questionnaire

PAIRS = [("gad7", "phq9"), ("gad7", "soc13"), ("phq9", "soc13")]
DRAWS = 10
"""Number of populations of untrained heads; they share no head."""


def multiverse(answers: pd.DataFrame, loaded: list, pairs: list[tuple[str, str]]) -> pd.DataFrame:
    """Return Pearson's r of whole scales under every choice, as chapter 5 computes it."""
    keys = {item.id: item.keying for q in loaded for item in q.items}
    template = answers.groupby("item_id")["template"]
    which = {"all": template.transform("size") > 0}
    which["first"] = answers["template"] == template.transform("min")
    which["last"] = answers["template"] == template.transform("max")
    kinds = {"source": [1], "inverse": [-1], "both": [1, -1]}
    rows = []
    by = ["respondent_id", "questionnaire", "item_id"]

    for score, temperature in itertools.product(("entailment", "contrast"), (0.5, 1.0, 2.0)):
        shares = pss(answers, score, temperature)
        signs = shares["polarity"] * shares["item_id"].map(keys)
        shares["value"] = shares["pss"] * shares["weight"] * signs

        for terms, templates in itertools.product(kinds, which):
            part = shares[shares["polarity"].isin(kinds[terms]) & which[templates]]
            scales = part.groupby(by)["value"].mean().groupby(level=by[:2]).mean().unstack()
            normal = scales.apply(lambda x: stats.norm.ppf(x.rank() / (len(x) + 1)))
            for (a, b), (name, table) in itertools.product(
                pairs, {"raw": scales, "normal": normal}.items()
            ):
                r = table[a].corr(table[b])
                rows.append((a, b, score, temperature, terms, templates, name, r, len(table)))

    columns = ["first", "second", "score", "temperature", "terms", "templates", "transform"]
    return pd.DataFrame(rows, columns=[*columns, "r", "n"])


def multiverse_table(draws: int = DRAWS) -> pd.DataFrame:
    """Return the encoders' correlations, and the medians over populations of untrained heads."""
    loaded = [load_questionnaire(name) for name in ("gad7", "phq9", "soc13")]
    members = population("encoders")
    answers = ask(loaded, members, progress=False)
    worlds = multiverse(answers, loaded, PAIRS)
    drawn = {"start": [], "matched": []}

    for draw in range(draws):
        heads = null_answers(
            loaded, "random-heads", len(members), seed=draw * len(members),
            **untouched_bases(members),
        )  # fmt: skip
        drawn["start"].append(multiverse(heads, loaded, PAIRS)["r"])
        drawn["matched"].append(multiverse(resized(heads, answers), loaded, PAIRS)["r"])

    medians = {f"heads, {size}": pd.concat(found, axis=1).median(axis=1)
               for size, found in drawn.items()}  # fmt: skip
    return worlds.assign(**medians)


if __name__ == "__main__":
    multiverse_table().to_csv(
        data_dir() / "explorers" / "multiverse.csv", index=False, float_format="%.6g"
    )
