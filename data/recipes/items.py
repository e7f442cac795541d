"""Write ``data/items``, the answers of students and language models to 549 test items.

``python -m recipes.items`` reads the published files and writes the two tables;
``python -m recipes.items power`` simulates the power that ``data/plans/items.yml`` states, from
the numbers and blocks of the items alone. No item's text is kept, only lengths.
"""

from __future__ import annotations

import json
import re
import sys

import numpy as np
import pandas as pd
from scipy.special import log_softmax
from scipy.stats import norm, rankdata

from psychometrics.data import fetch, registry
from psychometrics.exceptions import DataError
from psychometrics.paths import data_dir

SUBJECTS = ("reading", "history", "economics")
_ORDERS = 4
_OPTIONS = [f"option {k}" for k in range(1, 5)]
_NEGATION = re.compile(r"\b(?:not|except)\b", re.IGNORECASE)


def model_names() -> list[str]:
    """Return the 18 models with published answers, smallest first within a family."""
    keys = [key.removeprefix("naep_reading_model_") for key in registry() if "reading_model" in key]
    return sorted(keys, key=lambda name: (name.split("-")[0][:4], size(name), name))


def size(model: str) -> float:
    """Return a model's number of parameters in billions, as given at the end of its name.

    Examples
    --------
    >>> size("Qwen2.5-0.5B")
    0.5
    """
    return float(model.rsplit("-", 1)[1].removesuffix("B"))


def item_table() -> pd.DataFrame:
    """Bring the items of all subjects into one table.

    Returns
    -------
    DataFrame
        One row per ``item_id`` and ``grade`` that answered it (some items were given to two
        grades): ``subject``, ``block`` (a booklet section in a year, whose items belong together;
        in reading they share a passage), the share of students who chose ``option 1`` to ``option
        4``, ``key`` (position of the right option, from 1), ``stem length`` and ``length 1`` to
        ``length 4`` in characters, whether the stem is ``negated`` or describes a ``picture``, and
        ``a, b, c`` of the three-parameter model, where published, from the calibration nearest to
        the item's year.

    Raises
    ------
    DataError
        The files disagree about the items.
    """
    tables = []
    for subject in SUBJECTS:
        items = _lines(f"naep_{subject}_items").set_index("item_id")
        about = _lines(f"naep_{subject}_metadata")
        about["item_id"] = "NAEP-" + about["naep_id"]
        about = about[about["item_id"].isin(items.index)].set_index(["item_id", "grade"])
        people = _lines(f"naep_{subject}_people").set_index(["item_id", "grade"])
        people = people.reindex(about.index)["response_distribution"]

        if people.isna().any() or set(about.index.levels[0]) != set(items.index):
            raise DataError(f"The files of {subject} do not list the same items: fetch them again.")
        table = pd.DataFrame({"subject": subject}, index=about.index)
        table["block"] = about["block"] + " " + about["year"].astype(str)
        table[_OPTIONS] = people.tolist()
        table["year"] = about["year"]
        text = pd.DataFrame({"key": items["correct_option_index"] + 1}, items.index)
        text["stem length"] = items["stem"].str.len()
        text[[f"length {k}" for k in range(1, 5)]] = [
            [len(option) for option in options] for options in items["options"]
        ]
        text["negated"] = items["stem"].str.contains(_NEGATION).astype(int)
        text["picture"] = items["stem"].str.contains("IMAGE").astype(int)
        tables.append(table.join(text, on="item_id"))

    table = pd.concat(tables)
    return table.join(_parameters(table["year"])).drop(columns="year")


def first_grade(items: pd.DataFrame) -> pd.DataFrame:
    """Keep each item once, in the lowest grade that answered it."""
    return items.sort_index().groupby("item_id", sort=False).head(1)


def model_table(items: pd.Index) -> pd.DataFrame:
    """Bring the models' answers into one table.

    Parameters
    ----------
    items : Index
        The items to keep; some models answered ten more, which have no other published data.

    Returns
    -------
    DataFrame
        One row per ``model``, ``item_id`` and ``order`` (number of places by which the options were
        rotated): the logarithm of the probability of ``option 1`` to ``option 4``, always in the
        item's own order, as float16.

    Raises
    ------
    DataError
        A model lacks an item.
    """
    rows = []
    for subject in SUBJECTS:
        for model in model_names():
            answers = _lines(f"naep_{subject}_model_{model}").set_index("item_id")["logits"]
            answers = answers[answers.index.isin(items)]
            logits = np.array(answers.tolist())
            index = pd.MultiIndex.from_product(
                [[model], answers.index, range(_ORDERS)], names=["model", "item_id", "order"]
            )
            values = log_softmax(logits, axis=2).reshape(len(index), 4)
            rows.append(pd.DataFrame(values.astype(np.float16), index, _OPTIONS))

    table = pd.concat(rows)
    if len(table) != len(items) * len(model_names()) * _ORDERS:
        raise DataError("A model did not answer every item: fetch the files again.")

    return table.sort_index().reset_index()


def _lines(key: str) -> pd.DataFrame:
    text = fetch(key).read_text(encoding="utf-8")
    return pd.DataFrame([json.loads(line) for line in text.splitlines()])


def _parameters(years: pd.Series) -> pd.DataFrame:
    """Return each item's calibration in a grade nearest to its year; of two, the later one."""
    table = _lines("naep_parameters").query("irt_model == '3pl'")
    table = table.join(years.rename("asked"), on=["item_id", "grade"], how="inner")
    away = (table["year"] - table["asked"]).abs()
    table = table.assign(away=away).sort_values(["away", "year"], ascending=[True, False])
    return table.groupby(["item_id", "grade"])[["a", "b", "c"]].first()


def _standard_error(statistic, blocks: np.ndarray, draws: int, rng: np.random.Generator) -> float:
    """Return the larger of the bootstrap standard errors over blocks and over items."""
    errors = []
    for units in (blocks, np.arange(len(blocks))):
        n = units.max() + 1
        weights = rng.multinomial(n, np.full(n, 1 / n), draws)[:, units].astype(float)
        errors.append(np.std(statistic(weights), ddof=1))
    return max(errors)


def _weighted_correlations(a: np.ndarray, b: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Correlate a column with each of several columns, shape (draws, columns)."""
    n = weights.sum(axis=1, keepdims=True)
    mean_a = weights @ a[:, None] / n
    mean_b = weights @ b / n
    product = weights @ (a[:, None] * b) / n - mean_a * mean_b
    spread_a = weights @ (a**2)[:, None] / n - mean_a**2
    return product / np.sqrt(spread_a * (weights @ b**2 / n - mean_b**2))


def power(
    items: pd.DataFrame, simulations: int = 400, draws: int = 200, shared: float = 0.1
) -> pd.DataFrame:
    """Simulate the power of the plan's tests for effects of several sizes.

    Parameters
    ----------
    items : DataFrame
        Items, as :func:`item_table` returns them; only subjects, blocks and gaps are used.
    simulations, draws : int
        Number of simulated studies, and of bootstrap samples in each.
    shared : float
        Share of both variables' variance that is common to the items of a block.

    Returns
    -------
    DataFrame
        Per subject, statistic and true effect: ``power`` at 5 %, ``power, Holm`` at the first of
        15 steps, and ``coverage`` of the 95 % interval (for the correlation).
    """
    rng = np.random.default_rng(0)
    rows = []
    sizes = np.log10([size(model) for model in model_names()])
    sizes -= sizes.mean()
    limits = norm.isf([0.025, 0.025 / 15])

    for subject, part in items.groupby("subject", sort=False):
        for items_used, kept in {"all items": part, "items with a, b, c": part.dropna()}.items():
            blocks = pd.factorize(kept["block"])[0]
            for effect in (0.0, 0.1, 0.2, 0.3, 0.5):
                z = []
                true = np.arctanh(6 / np.pi * np.arcsin(effect / 2))
                for _ in range(simulations):
                    x, y = _correlated(blocks, np.array([effect]), shared, rng)
                    r, error = _rank_test(x, y, blocks, draws, rng)
                    z.append((np.arctanh(r[0]), error))

                found, error = np.array(z).T
                rows.append((subject, f"correlation, {items_used}", effect,
                             *[(np.abs(found / error) > limit).mean() for limit in limits],
                             (np.abs(found - true) < limits[0] * error).mean()))  # fmt: skip

        blocks = pd.factorize(part["block"])[0]
        for effect in (0.05, 0.1, 0.2):
            z = []
            for _ in range(simulations // 4):
                x, y = _correlated(blocks, 0.1 + effect * sizes, shared, rng)
                a = rankdata(x)
                b = rankdata(y, axis=0)
                slope = sizes / (sizes**2).sum()

                def statistic(weights, a=a, b=b, slope=slope):
                    return _weighted_correlations(a, b, weights) @ slope

                error = _standard_error(statistic, blocks, draws, rng)
                z.append(statistic(np.ones((1, len(a))))[0] / error)

            above = [(np.abs(z) > limit).mean() for limit in limits]
            rows.append((subject, "slope on size", effect, *above, np.nan))

    names = ["subject", "statistic", "effect", "power", "power, Holm", "coverage"]
    return pd.DataFrame(rows, columns=names)


def _correlated(blocks, effects, shared, rng) -> tuple[np.ndarray, np.ndarray]:
    """Draw a normal target and a column per effect; columns share .6 of the remaining variance."""
    k = blocks.max() + 1
    n = len(blocks)
    m = len(effects)

    def noise(columns):
        common = rng.standard_normal((k, columns))
        own = rng.standard_normal((n, columns))
        return np.sqrt(shared) * common[blocks] + np.sqrt(1 - shared) * own

    x = noise(1)
    common = noise(1)
    own = noise(m)
    rest = np.sqrt(0.6) * common + np.sqrt(0.4) * own if m > 1 else own
    return x[:, 0], effects * x + np.sqrt(1 - effects**2) * rest


def _rank_test(x, y, blocks, draws, rng) -> tuple[np.ndarray, float]:
    a = rankdata(x)
    b = rankdata(y, axis=0)

    def statistic(weights):
        return np.arctanh(_weighted_correlations(a, b, weights)[:, 0])

    return np.tanh(statistic(np.ones((1, len(a))))), _standard_error(statistic, blocks, draws, rng)


def main() -> None:
    """Write the two tables, or print the power."""
    items = item_table()
    if sys.argv[1:] == ["power"]:
        print(power(first_grade(items)).round(2).to_string())
        return

    folder = data_dir() / "items"
    folder.mkdir(exist_ok=True)
    items.to_csv(folder / "items.csv")
    model_table(items.index.levels[0]).to_parquet(
        folder / "models.parquet", compression="zstd", index=False
    )


if __name__ == "__main__":
    main()
