"""Write two tables of ``data/published``: ``python -m recipes.published_models``.

``behaviour.csv`` has the means of twelve models that described themselves and did five tasks (Han
et al. 2026, MIT licence), without a role and in two roles. ``nli_shares.csv`` has the shares of
trait and bias between the six NLI models to which Pellert et al. (2024) gave the BFI. The items and
the models' single answers are not copied. This takes ten seconds.
"""

from __future__ import annotations

import pandas as pd

from psychometrics.data import fetch
from psychometrics.measures.bias import bias_shares
from psychometrics.paths import data_dir
from psychometrics.questionnaires import load_questionnaire

TRAITS = {
    "openeness": "openness",
    "consciencienes": "conscientiousness",
    "extraversion": "extraversion",
    "agreeableness": "agreeableness",
    "neuroticism": "neuroticism",
    "self_regulation": "self-regulation",
}
"""Columns of the self-reports, as their authors spell them, with names of the traits."""
TASKS = {
    "CCT_cold_avg": "risk taken",
    "IAT_Overall": "implicit bias",
    "sycophancy_rate": "sycophancy",
    "Calibaration": "miscalibration",
    "Consistency": "inconsistency",
}
"""Columns of the behaviours."""
ROLES = ("agreeableness", "self_regulation")
STRATEGIES = 3
"""The authors' ways of wording a role, one file each."""


def behaviour() -> pd.DataFrame:
    """Return means of self-reports and behaviour over runs and temperatures.

    Returns
    -------
    DataFrame
        ``model, role`` (``none`` or a role's trait), ``strategy`` (0 without a role), and the means
        of traits and tasks; tasks that were not given in a role are missing.
    """
    runs = ["Model", "temp", "run", "persona_index"]
    told = pd.read_csv(fetch("personality_illusion_selfreport"))
    done = pd.read_csv(fetch("personality_illusion_behaviour"))
    plain = told.merge(done[[*runs, *TASKS]], on=runs, validate="one_to_one")
    parts = [plain.assign(role="none", strategy=0)]
    for role in ROLES:
        for strategy in range(1, STRATEGIES + 1):
            part = pd.read_csv(fetch(f"personality_illusion_{role}_{strategy}"))
            parts.append(part.assign(role=TRAITS.get(role, role), strategy=strategy))

    answers = pd.concat(parts).rename(columns=TRAITS | TASKS)
    groups = ["model", "role", "strategy"]
    answers = answers.rename(columns={"Model": "model"})
    answers["model"] = answers["model"].str.rpartition("/")[2]
    values = [*TRAITS.values(), *TASKS.values()]

    return answers.groupby(groups)[values].mean().round(4).reset_index()


def nli_answers() -> pd.DataFrame:
    """Return the expected answers of six NLI models to the BFI, as raw item scores.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, item_id, score``.
    """
    table = pd.read_csv(fetch("pellert_bfi44"), sep="\t")
    items = [item.id for item in load_questionnaire("bfi", texts=False).items]
    shares = table[list("12345")]
    scores = {
        "respondent_id": table["model"].str.rpartition("/")[2],
        "questionnaire": "bfi",
        "item_id": [items[number - 1] for number in table["item_index"]],
        "score": shares @ [1, 2, 3, 4, 5] / shares.sum(axis="columns"),
    }
    return pd.DataFrame(scores)


def nli_shares() -> pd.DataFrame:
    """Return trait, bias and alpha between the six NLI models, with intervals and nulls."""
    table = bias_shares(nli_answers(), load_questionnaire("bfi", texts=False), draws=1000, seed=1)
    nulls = ("random", "permuted")
    names = ["scale", "statistic", "value", "low", "high", "n"]
    names += [f"{null}{end}" for null in nulls for end in ("", "_low", "_high")]
    return table[names].round(4)


if __name__ == "__main__":
    folder = data_dir() / "published"
    behaviour().to_csv(folder / "behaviour.csv", index=False)
    nli_shares().to_csv(folder / "nli_shares.csv", index=False)
