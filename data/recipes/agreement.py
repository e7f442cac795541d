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
from psychometrics.measures.intervals import jackknife_half_width
from psychometrics.nulls.evidence import profile_agreement
from psychometrics.paths import data_dir
from psychometrics.questionnaires import Questionnaire, load_questionnaire
from recipes.published import answers

OPTIONS = list("12345")
DRAWS = 9999
GROUPS = 200
SEED = 1


def scale_by_key(questionnaire: Questionnaire) -> pd.Series:
    """Return each item's scale and key as a text."""
    return pd.Series(
        {
            item: f"{scale.id} {key:+d}"
            for scale in questionnaire.scales
            for item, key in questionnaire.keys(scale).items()
        }
    )


def unit_profiles(scores: pd.DataFrame, cells: pd.Series) -> np.ndarray:
    """Return each respondent's scores without the means of the cells, scaled to length 1."""
    rest = (scores - scores.T.groupby(cells).transform("mean").T).to_numpy()
    return rest / np.linalg.norm(rest, axis=1, keepdims=True)


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

    one_cell = pd.Series("all", cells.index)
    for statistic, groups in {"agreement": one_cell, "within": cells}.items():
        pairs = unit_profiles(nli, groups) @ unit_profiles(chat, groups).T
        without = [np.delete(pairs, place, axis=0).mean() for place in range(len(nli))]
        without += [np.delete(pairs, place, axis=1).mean() for place in range(len(chat))]
        half = float(jackknife_half_width(np.array(without)))
        row = {"who": "NLI and chat models", "n": len(nli) + len(chat), "statistic": statistic}
        value = pairs.mean()
        rows.append(row | {"value": value, "low": value - half, "high": value + half})

    return rows


def agreement_of_people() -> list[dict[str, object]]:
    """Return medians and central 95 % of groups of eighteen people."""
    cells = scale_by_key(load_questionnaire("ipip50"))
    table = answers("survey").pivot(index="respondent_id", columns="item_id", values="value")
    table = table[cells.index]
    profile = unit_profiles(table.mean().to_frame().T, cells)[0]

    # A person who answers alike within every cell has no profile there.
    complete = table.dropna()
    spread = complete.T.groupby(cells).agg(np.ptp).max()
    complete = complete[spread > 0]

    rng = np.random.default_rng(SEED)
    groups = []
    for _ in range(GROUPS):
        people = complete.iloc[rng.choice(len(complete), 18, replace=False)]
        whole = profile_agreement(people, cells=cells)
        within = profile_agreement(people, scales=cells)["value"]
        with_people = (unit_profiles(people, cells) @ profile).mean()
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
