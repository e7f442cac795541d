"""Write ``data/published/agreement.csv``: ``python -m recipes.agreement``.

It holds what the plan ``data/plans/large-models.yml`` asks of answers that are not shipped: how
well six NLI models agree about the items of the BFI (Pellert et al. 2024), among themselves and
with the eight models of 2026, and how well eighteen single people agree about the items of the
IPIP-50. This takes half a minute on one core and needs the published files.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from psychometrics.data import fetch
from psychometrics.nulls.evidence import profile_agreement
from psychometrics.paths import data_dir
from psychometrics.questionnaires import load_questionnaire
from psychometrics_book.studies.sheets import mean_of_pairs, profiles_within, scale_by_key
from recipes.published import answers

OPTIONS = list("12345")
DRAWS = 9999
GROUPS = 200
SEED = 1


def nli_models() -> pd.DataFrame:
    """Return the expected answers of the six NLI models, with a model in a row."""
    table = pd.read_csv(fetch("pellert_bfi44"), sep="\t")
    items = [item.id for item in load_questionnaire("bfi", texts=False).items]
    table["item_id"] = [items[number - 1] for number in table["item_index"]]
    table["score"] = table[OPTIONS] @ [1, 2, 3, 4, 5] / table[OPTIONS].sum(axis=1)
    return table.pivot(index="model", columns="item_id", values="score")


def agreement_of_models() -> list[dict[str, object]]:
    """Return the agreement of the NLI models, and that with the eight models of 2026."""
    cells = scale_by_key(load_questionnaire("bfi", texts=False))
    nli = nli_models()[cells.index]
    chat = answers("ai_like_humans").pivot(
        index="respondent_id", columns="item_id", values="value"
    )[cells.index]

    whole = profile_agreement(nli, cells=cells)
    within = profile_agreement(nli, scales=cells, cells=cells, draws=DRAWS)
    who = {"who": "six NLI models", "n": len(nli)}
    rows = [
        who | {"statistic": "agreement"} | dict(whole[["value", "low", "high"]]),
        who | {"statistic": "between", "value": whole["between"]},
        who | {"statistic": "within"} | dict(within[["value", "low", "high"]])
        | {"p": within["p_within"]},
    ]  # fmt: skip

    both = pd.concat([nli, chat])
    models = pd.Series(both.index)
    is_nli = models.isin(nli.index).to_numpy()
    whole_profiles = profiles_within(both, pd.Series("all", cells.index))
    profiles = {"agreement": whole_profiles, "within": profiles_within(both, cells)}
    for statistic, profile in profiles.items():
        ends = mean_of_pairs(profile @ profile.T, is_nli != is_nli[:, None], models)
        row = {"who": "NLI and chat models", "n": len(both), "statistic": statistic}
        rows.append(row | dict(ends))

    return rows


def agreement_of_people() -> list[dict[str, object]]:
    """Return medians and central 95 % of groups of eighteen people."""
    cells = scale_by_key(load_questionnaire("ipip50"))
    table = answers("survey").pivot(index="respondent_id", columns="item_id", values="value")
    table = table[cells.index]
    profile = profiles_within(table.mean().to_frame().T, cells).iloc[0]

    # A person who answers alike within every cell has no profile there.
    complete = table.dropna()
    complete = complete[profiles_within(complete, cells).notna().all(axis=1)]

    rng = np.random.default_rng(SEED)
    groups = []
    for _ in range(GROUPS):
        people = complete.iloc[rng.choice(len(complete), 18, replace=False)]
        whole = profile_agreement(people, cells=cells)
        within = profile_agreement(people, scales=cells)["value"]
        with_people = (profiles_within(people, cells) @ profile).mean()
        groups.append([whole["value"], whole["between"], within, with_people])

    names = ["agreement", "between", "within", "with people"]
    ends = pd.DataFrame(groups, columns=names).quantile([0.5, 0.025, 0.975]).T
    ends = ends.set_axis(["value", "low", "high"], axis=1).rename_axis("statistic")
    return ends.reset_index().assign(who="eighteen people", n=18).to_dict("records")


if __name__ == "__main__":
    rows = pd.DataFrame(agreement_of_models() + agreement_of_people())
    columns = ["who", "n", "statistic", "value", "low", "high", "p"]
    target = data_dir() / "published" / "agreement.csv"
    rows[columns].round(4).to_csv(target, index=False, lineterminator="\n")
