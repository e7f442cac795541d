"""Write ``data/published/items.csv.gz``, ``ladder.csv`` and ``same_size.csv``.

``python -m recipes.invariance`` tests the measurement invariance of the IPIP-50 between people and
groups of models, as planned in ``data/plans/invariance.yml``: one factor per trait, then people's
loadings, then people's intercepts. It takes two minutes on one core and needs the files of the
survey.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.stats import spearmanr

from psychometrics.measures.groups import congruence
from psychometrics.paths import data_dir
from psychometrics.questionnaires import load_questionnaire
from recipes.published import answers

SEED = 1
DRAWS = 200
STEPS = ["one factor", "loadings", "intercepts"]
RUNS = ("llama3.1-8b", "llama3.3-70b", "qwen2.5-7b", "qwen2.5-72b")
Blocks = list[tuple[pd.Series, pd.DataFrame]]


def misfit(
    S: np.ndarray,
    m: np.ndarray,
    loadings: np.ndarray | None = None,
    intercepts: np.ndarray | None = None,
) -> tuple[float, np.ndarray]:
    """Return the smallest maximum-likelihood misfit of one factor, and its loadings.

    Loadings that are given are fixed up to a common factor; intercepts, up to a latent difference.
    The misfit times the number of rows is chi-squared. With few rows, free loadings have several
    minima, so the search also starts from each item as the factor.
    """
    p = len(S)
    log_theta = np.log(np.diag(S) / 2)
    unit = np.ones(p) if loadings is None else loadings
    tau = m if intercepts is None else intercepts

    def discrepancy(x: np.ndarray) -> tuple[float, np.ndarray]:
        lam = x[p + 1 :] * unit
        d = m - tau - x[p] * unit
        inverse = np.linalg.inv(np.outer(lam, lam) + np.diag(np.exp(x[:p])))
        C = S + np.outer(d, d)
        W = inverse - inverse @ C @ inverse
        slope = 2 * W @ lam * unit
        slope = slope if loadings is None else np.array([slope.sum()])
        slope = [np.diag(W) * np.exp(x[:p]), [-2 * d @ inverse @ unit], slope]
        logs = np.linalg.slogdet(inverse)[1] + np.linalg.slogdet(S)[1]

        return (C * inverse).sum() - logs - p, np.concatenate(slope)

    starts = [np.ones(1)]
    if loadings is None:
        starts = [np.exp(log_theta / 2), *(S / np.sqrt(np.diag(S)))]

    ends = [(low, None) for low in log_theta - np.log(50)]  # a hundredth of the variance
    ends += [(0, 0) if intercepts is None else (None, None), *[(None, None)] * len(starts[0])]
    look = {"jac": True, "bounds": ends, "options": {"maxiter": 500}}
    fits = [minimize(discrepancy, np.r_[log_theta, 0, one], **look) for one in starts]
    found = min(fits, key=lambda fit: fit.fun)

    return found.fun, found.x[p + 1 :] * unit


def compare(n: int, blocks: Blocks, people: pd.DataFrame) -> tuple[pd.Series, pd.DataFrame]:
    """Return chi-squared per degree of freedom for each step, and the items of a group.

    ``blocks`` has means and covariances of each trait's items, ``people`` the reference's ``mean,
    loading, SD`` by item. Items that do not vary in the group are left out.
    """
    chi = np.zeros(3)
    df = np.zeros(3)
    items = []
    for mean, S in blocks:
        i = S.index[np.diag(S) > 1e-9]
        m = mean[i].to_numpy()
        C = S.loc[i, i].to_numpy()
        k = len(i)
        t, a = people.loc[i, ["mean", "loading"]].to_numpy().T
        one, own = misfit(C, m)
        two = misfit(C, m, a)[0]
        three = misfit(C, m, a, t)[0]
        chi += n * np.array([one, two - one, three - two])
        df += [k * (k - 3) / 2, k - 1, k - 1]
        one = {"mean": m, "loading": own * np.sign(own @ a), "SD": np.sqrt(np.diag(C))}
        items.append(pd.DataFrame(one, pd.Index(i, name="item_id")))

    return pd.Series(chi / df, STEPS), pd.concat(items)


def eighteen() -> pd.DataFrame:
    """Return the keyed answers of the eighteen published models, one row each."""
    folder = data_dir() / "published"
    options = list("12345")
    six = pd.read_csv(folder / "counts.csv.gz").query("condition == 'baseline'")
    six["value"] = six[options] @ [1, 2, 3, 4, 5] / six[options].sum(axis=1)
    twelve = pd.read_csv(folder / "answers.csv.gz").query("source == 'llmpersonality'")
    table = pd.concat([six, twelve])
    return _keyed(table.pivot(index="respondent_id", columns="item_id", values="value"))


def _keyed(table: pd.DataFrame) -> pd.DataFrame:
    turned = [item for scale in load_questionnaire("ipip50").scales for item in scale.reverse]
    return table.assign(**{item: 6 - table[item] for item in turned})


def _nearest(people: pd.DataFrame, models: pd.DataFrame, traits: list[list[str]]) -> np.ndarray:
    """Return the 40 people with the trait means nearest to each model's, as positions."""
    of_people, of_models = (
        np.column_stack([table[items].mean(axis=1) for items in traits])
        for table in (people, models)
    )
    away = (of_models[:, None] - of_people) ** 2 / of_people.var(axis=0)
    return np.argsort(away.sum(axis=2), axis=1, kind="stable")[:, :40]


def _eigenvalues(table: np.ndarray) -> np.ndarray:
    """Return the ten largest eigenvalues of the columns' correlations."""
    return np.linalg.eigvalsh(np.corrcoef(table.T))[:-11:-1]


def same_size(half: pd.DataFrame, groups: dict[str, list[pd.DataFrame]]) -> pd.DataFrame:
    """Return the congruence of groups of people with one half of the people, one row each.

    ``ranks`` is the rank correlation of the sizes of item correlations. Groups of eighteen also
    have the ten largest eigenvalues, and the number that parallel analysis keeps (``components``).
    """
    rng = np.random.default_rng(SEED)
    rows = []
    upper = np.triu_indices(half.shape[1], 1)
    sizes = half.corr().abs().to_numpy()[upper]

    for name, tables in groups.items():
        for table in tables:
            one = {"group": name, "n": len(table)}
            one["congruence"] = congruence(half, table, draws=2)["congruence"]
            own = table.corr().abs().to_numpy()[upper]
            one["ranks"] = spearmanr(own, sizes, nan_policy="omit").statistic
            values = table.loc[:, table.std() > 0].to_numpy()

            if len(table) == 18:
                own = _eigenvalues(values)
                dealt = [_eigenvalues(rng.permuted(values, axis=0)) for _ in range(DRAWS)]
                kept = own > np.quantile(dealt, 0.95, axis=0)
                one["components"] = int(np.logical_and.accumulate(kept).sum())
                one |= {str(place): value for place, value in enumerate(own, start=1)}

            rows.append(one)

    return pd.DataFrame(rows).astype({"components": "Int64"})


def _main() -> None:
    folder = data_dir() / "published"
    traits = [list(scale.items) for scale in load_questionnaire("ipip50").scales]
    moments = pd.read_parquet(folder / "moments.parquet")
    moments = moments.set_index(["respondent_id", "condition", "item_id"]).sort_index()

    def published(*name: str) -> tuple[int, Blocks]:
        part = moments.loc[name]
        return part["n"].iloc[0], [(part.loc[i, "mean"], part.loc[i, i]) for i in traits]

    def drawn(table: pd.DataFrame) -> tuple[int, Blocks]:
        return len(table), [(table[i].mean(), table[i].cov(ddof=0)) for i in traits]

    reference = []
    for mean, S in published("people_a", "people")[1]:
        own = np.abs(misfit(S.to_numpy(), mean.to_numpy())[1])
        one = {"mean": mean, "loading": own, "SD": np.sqrt(np.diag(S))}
        reference.append(pd.DataFrame(one))

    people = pd.concat(reference)
    groups = {"eighteen models": drawn(eighteen())}
    groups |= {f"runs of {who}, with a history": published(who, "history") for who in RUNS}
    groups["answers at random"] = published("random", "people")
    groups["people's other half"] = published("people_b", "people")
    survey = answers("survey").pivot(index="respondent_id", columns="item_id", values="value")
    first, half = (_keyed(survey[k::2].dropna()) for k in (0, 1))
    some = half.sample(18 * DRAWS, random_state=SEED)
    rng = np.random.default_rng(SEED)
    alike = _nearest(half, eighteen(), traits)
    eighteens = [some[18 * k : 18 * (k + 1)] for k in range(DRAWS)]
    likes = [half.iloc[[rng.choice(row) for row in alike]] for _ in range(DRAWS)]
    for name, tables in {"eighteen people": eighteens, "people like the models": likes}.items():
        groups |= {f"{name}, {k}": drawn(one) for k, one in enumerate(tables, start=1)}

    found = {name: compare(*group, people) for name, group in groups.items()}
    items = {"people": people.rename_axis("item_id")}
    items = pd.concat(items | {name: one for name, (_, one) in found.items()}, names=["group"])
    text = {"float_format": "%.4f", "lineterminator": "\n"}
    items.to_csv(folder / "items.csv.gz", compression={"method": "gzip", "mtime": 1}, **text)
    ladder = pd.DataFrame({name: chi for name, (chi, _) in found.items()}).T
    ladder.insert(0, "n", [int(n) for n, _ in groups.values()])
    ladder.rename_axis("group").to_csv(folder / "ladder.csv", **text)
    runs = moments.drop("inverted", level="condition")["n"]
    sizes = sorted({12} | set(runs) & set(range(1001)))  # as many people as a model has runs
    random = [half.sample(n, random_state=k) for n in sizes for k in range(DRAWS)]
    of_people = {"people": eighteens + random, "people like the models": likes}
    same_size(first, of_people).to_csv(folder / "same_size.csv", index=False, **text)


if __name__ == "__main__":
    _main()
