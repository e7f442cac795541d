"""The diagnostic's items: who answered what, and the tables that compare people with models."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import numpy as np
import pandas as pd

from .. import irt
from .. import items as classical
from ..data import fetch
from ..exceptions import DataError, ParameterError
from ..paths import data_dir

CATEGORIES = {
    "MN": "morphological negation",
    "PP": "prepositional phrases",
    "LE": "lexical entailment",
    "Q": "quantifiers",
    "PS": "propositional structure",
    "RLS": "richer logical structure",
    "WK": "world knowledge",
}
POPULATIONS = ("transformers", "lstms")
REGIMES = {
    (False, False): "untrained",
    (True, False): "pre-trained only",
    (False, True): "fine-tuned from scratch",
    (True, True): "both",
}
DIF_METHODS = ("mantel_haenszel", "logistic")
SAMPLES = ("completers", "phase")
# Where glm() of R stops on 19, 20 or 35 answers that are all 1: log odds, in place of infinity.
R_GLM_LIMIT = 25.566
_SPELLINGS = {"snlli": "snli", "sni+": "snli+", "fintune": "finetune", "conv-bert": "convbert"}


def models() -> pd.DataFrame:
    """The 240 language models: what they are and how they were trained.

    Returns
    -------
    DataFrame
        Indexed by ``respondent_id``: ``population`` (transformers or lstms), ``family``,
        ``pretrained``, ``finetuned`` (bool), ``data`` they were fine-tuned on, ``builds_on`` (the
        respondent whose weights they started from).

    References
    ----------
    Laverghetta et al. (2021), section 3.
    """
    return _models().drop(columns="answers").copy()


def items() -> pd.DataFrame:
    """The items of the diagnostic, without their sentences.

    Returns
    -------
    DataFrame
        Indexed by ``item_id``: ``subcategory``, ``domain``, ``label`` (the right answer) and
        ``asked`` (short name of the category in which people were asked it, else empty).
    """
    return _items().copy()


def model_answers(population: str | None = None, category: str | None = None) -> pd.DataFrame:
    """0/1 answers of the language models.

    Parameters
    ----------
    population : {"transformers", "lstms"}, optional
        Which models; all by default.
    category : str, optional
        Key of ``CATEGORIES``: only the items that people were asked; all items by default.

    Returns
    -------
    DataFrame, shape (R, I)
        Indexed by ``respondent_id``, ``item_id`` as columns.

    Examples
    --------
    >>> model_answers("lstms", "MN").shape
    (57, 15)
    """
    return _part(_models(), _answers_of_models(), population, category)


def live_models(path: str | Path | None = None) -> pd.DataFrame:
    """Models that answered the diagnostic for this book: who they are, and what they solved.

    Parameters
    ----------
    path : path, optional
        Another file than ``data/diagnostic/live.csv.gz``.

    Returns
    -------
    DataFrame
        Indexed by ``respondent_id``: ``population, family, pretrained, finetuned, data`` as in
        :func:`models`; ``seed``, ``answers`` (0/1 text in the order of :func:`items`), number of
        training ``pairs``, ``accuracy`` on held-out MNLI with its Wilson 95 % interval ``low,
        high``, ``seconds`` of training, and the ``fingerprint`` of embedded ones.
    """
    path = path or data_dir() / "diagnostic" / "live.csv.gz"
    frame = pd.read_csv(path, dtype={"answers": str, "fingerprint": str}, keep_default_na=False)
    return frame.set_index("respondent_id")


def live_answers(population: str | None = None, category: str | None = None) -> pd.DataFrame:
    """0/1 answers of the models of :func:`live_models`; parameters as in :func:`model_answers`."""
    table = live_models()
    return _part(table, _matrix(table), population, category)


def people_answers(category: str, sample: str = "phase") -> pd.DataFrame:
    """0/1 answers of people to the items of one category.

    Parameters
    ----------
    category : str
        Key of ``CATEGORIES``.
    sample : {"phase", "completers"}
        Everyone accepted in the category's phase, or the 19 who answered all phases.

    Returns
    -------
    DataFrame, shape (R, I)
        Indexed by participant (a number within sample and category), ``item_id`` as columns.

    Examples
    --------
    >>> people_answers("MN").shape, people_answers("LE", "completers").shape
    ((45, 15), (19, 14))
    """
    _one_of("sample", sample, SAMPLES)
    columns = _asked(category)
    table = _people()
    table = table[(table["sample"] == sample) & (table["category"] == category)]
    matrix = np.array([list(row) for row in table["answers"]], dtype=np.int8)
    return pd.DataFrame(matrix, index=table["participant"].to_list(), columns=columns)


def published(table: str) -> pd.DataFrame:
    """The paper's own figures, to stand beside ours.

    Parameters
    ----------
    table : {"table1", "table2", "table3", "figure1"}
        Which of them.

    Returns
    -------
    DataFrame
        Categories as index; columns ``transformers, lstms, random`` or the architectures.

    References
    ----------
    Laverghetta et al. (2021), tables 1 to 3; figure 1 as in its authors' analysis script.
    """
    frame = pd.read_csv(data_dir() / "diagnostic" / "published.csv")
    _one_of("table", table, tuple(frame["table"].unique()))
    chosen = frame[frame["table"] == table].pivot(
        index="category", columns="column", values="value"
    )
    columns = frame.loc[frame["table"] == table, "column"].unique()
    return chosen.loc[list(CATEGORIES), columns].rename_axis(columns=None)


def beside(ours: pd.DataFrame, table: str) -> pd.DataFrame:
    """The paper's figures for transformers and LSTMs beside ours, with the difference.

    Parameters
    ----------
    ours : DataFrame
        Categories by ``transformers, lstms`` (other columns are left out).
    table : str
        As in :func:`published`.

    Returns
    -------
    DataFrame
        Two levels of columns: population, then ``paper, here, difference`` (of the rounded
        values, as far as the paper's two decimals go).
    """
    paper = published(table)
    parts = {}
    for name in POPULATIONS:
        here = ours[name].astype(float)
        gap = here.round(2) - paper[name]
        parts[name] = pd.DataFrame({"paper": paper[name], "here": here, "difference": gap})
    return pd.concat(parts, axis=1)


def build_diagnostic(people: str | Path, folder: str | Path | None = None) -> None:
    """Write the committed matrices from the authors' file and a table of people's answers.

    Parameters
    ----------
    people : path
        CSV with ``sample, category, item_id, participant, correct``.
    folder : path, optional
        Where to; ``data/diagnostic`` by default.

    Raises
    ------
    DataError
        An answer is neither 0 nor 1, or people answered an item that the file lacks.
    """
    folder = Path(folder or data_dir() / "diagnostic")
    folder.mkdir(parents=True, exist_ok=True)
    raw = pd.read_csv(
        fetch("glue_diagnostic"), sep="\t", dtype=str, keep_default_na=False, header=None, quoting=3
    )
    names, origin, body = raw.iloc[0, 6:], raw.iloc[1, 6:], raw.iloc[2:-1]  # last row: sums
    answers = body.iloc[:, 6:]
    if not answers.isin(["0", "1"]).all(axis=None):
        raise DataError("Diagnostic Results.tsv holds an answer that is neither 0 nor 1.")
    humans = pd.read_csv(people)
    short = {name: key for key, name in CATEGORIES.items()}
    humans["category"] = humans["category"].map(short)
    asked = humans.drop_duplicates("item_id").set_index("item_id")["category"]
    table = body.iloc[:, [0, 1, 2, 5]].set_axis(
        ["item_id", "subcategory", "domain", "label"], axis=1
    )
    table = table.assign(item_id=table["item_id"].astype(int)).set_index("item_id")
    if missing := sorted(set(asked.index) - set(table.index)):
        raise DataError(f"people answered items that Diagnostic Results.tsv lacks: {missing}.")
    table["subcategory"] = table["subcategory"].str.lower()
    table["asked"] = asked.reindex(table.index).fillna("")
    table.to_csv(folder / "items.csv")

    tidy = [_tidy(name) for name in names]
    rows = pd.DataFrame([_describe(name) for name in tidy])
    rows.insert(0, "respondent_id", _unique(tidy))
    rows["builds_on"] = [_tidy(name) for name in origin]
    rows["answers"] = ["".join(answers[column]) for column in answers]
    _write_gzip(rows, folder / "models.csv.gz")

    order = table.index[table["asked"] != ""]
    matrix = humans.pivot(
        index=["sample", "category", "participant"], columns="item_id", values="correct"
    )
    people_rows = [
        (*key, "".join(str(int(v)) for v in row[[i for i in order if asked[i] == key[1]]]))
        for key, row in matrix.iterrows()
    ]
    columns = ["sample", "category", "participant", "answers"]
    _write_gzip(pd.DataFrame(people_rows, columns=columns), folder / "people.csv.gz")


def difficulty_table(draws: int = 10_000, seed: int = 0) -> pd.DataFrame:
    """Table 1: do the items that are hard for people get solved by fewer models?

    Parameters
    ----------
    draws : int
        Guessing populations (of 20, as in the paper) behind the null distribution.
    seed : int
        Their seed.

    Returns
    -------
    DataFrame
        Per category: Spearman correlation of the shares correct of the 19 people who completed
        all phases with ``transformers`` and ``lstms``, ``p_transformers`` and ``p_lstms`` from
        the null distribution, and its 2.5 and 97.5 percentiles ``null_low``, ``null_high``.

    References
    ----------
    Laverghetta et al. (2021), table 1.
    """
    from scipy.stats import spearmanr

    rows = {}
    for category in CATEGORIES:
        people = classical.difficulty(people_answers(category, "completers"))
        null = classical.null_spearman(people.to_numpy(), draws=draws, seed=seed)
        row = {}
        for population in POPULATIONS:
            shares = classical.difficulty(model_answers(population, category))
            row[population] = float(spearmanr(people, shares).statistic)
            row[f"p_{population}"] = classical.null_p_value(row[population], null)
        row["null_low"], row["null_high"] = np.quantile(null, [0.025, 0.975])
        rows[category] = row
    return pd.DataFrame(rows).T


def cluster_table(
    restarts: int = 500,
    seed: int = 0,
    constant: str = "uncorrelated",
    method: str = "fasterpam",
    choose: str = "cost",
) -> pd.DataFrame:
    """Table 2: do the items that go together for people go together for models?

    Parameters
    ----------
    restarts : int
        Random starts for each number of clusters k.
    seed : int
        Seed of the starts and of the permutations behind the p values.
    constant, method : str
        As in :func:`psychometrics.items.cluster_items`.
    choose : {"cost", "silhouette"}
        For each k the partition of least cost, and then k by silhouette; or straight away the
        partition of highest silhouette among all local optima, as the paper's script does.

    Returns
    -------
    DataFrame
        Per category: correlation of co-membership with people for ``transformers, lstms``, their
        ``p_...``, the number of clusters ``k_people, k_transformers, k_lstms``, the silhouette
        ``s_people`` and how many partitions come within 0.01 of it, ``near``.

    References
    ----------
    Laverghetta et al. (2021), table 2. The sample is everyone accepted in a phase.
    """
    rows = {}
    for category in CATEGORIES:
        answers = {"people": people_answers(category)}
        answers |= {name: model_answers(name, category) for name in POPULATIONS}
        tables = {
            name: classical.cluster_items(x, restarts, seed, constant, method)
            for name, x in answers.items()
        }
        best = {name: chosen_partition(table, choose) for name, table in tables.items()}
        row = {}
        for name in POPULATIONS:
            first, second = _shared(best["people"], best[name])
            row[name], row[f"p_{name}"] = classical.agreement(first, second, seed=seed)
        row |= {f"k_{name}": int(partition["k"]) for name, partition in best.items()}
        row["s_people"] = best["people"]["silhouette"]
        row["near"] = int((tables["people"]["silhouette"] > row["s_people"] - 0.01).sum())
        rows[category] = row
    frame = pd.DataFrame(rows).T
    whole = [name for name in frame if name.startswith("k_")] + ["near"]
    return frame.astype(dict.fromkeys(whole, int))


def partition_range(
    margin: float = 0.02,
    restarts: int = 100,
    seed: int = 0,
    constant: str = "self",
    method: str = "alternating",
) -> pd.DataFrame:
    """How far table 2 moves among partitions whose silhouettes are nearly as good as the best.

    Parameters
    ----------
    margin : float
        How much less than the best silhouette is still nearly as good.
    restarts, seed, constant, method
        As in :func:`cluster_table`; by default the paper's own procedure.

    Returns
    -------
    DataFrame
        Indexed by category and population: ``partitions`` of people's and the models' items that
        come so near, multiplied; ``best`` agreement of the two best, ``low`` and ``high`` over
        all pairs, and ``nearest`` to the paper's value.
    """
    paper, rows = published("table2"), {}
    for category in CATEGORIES:
        answers = {"people": people_answers(category)}
        answers |= {name: model_answers(name, category) for name in POPULATIONS}
        near = {}
        for name, x in answers.items():
            table = classical.cluster_items(x, restarts, seed, constant, method)
            near[name] = table[table["silhouette"] >= table["silhouette"].iloc[0] - margin]
        for name in POPULATIONS:
            values = np.array([
                classical.agreement(*_shared(one, two), draws=1)[0]
                for _, one in near["people"].iterrows()
                for _, two in near[name].iterrows()
            ])  # fmt: skip
            gap = np.abs(values - paper.loc[category, name])
            rows[category, name] = {
                "partitions": len(values), "best": values[0], "low": np.nanmin(values),
                "high": np.nanmax(values), "nearest": values[np.nanargmin(gap)],
            }  # fmt: skip
    return pd.DataFrame(rows).T.astype({"partitions": int})


def chosen_partition(table: pd.DataFrame, choose: str = "cost") -> pd.Series:
    """The partition to report out of those that :func:`classical.cluster_items` found."""
    _one_of("choose", choose, ("cost", "silhouette"))
    if choose == "silhouette":
        return table.iloc[0]
    cheapest = table.loc[table.groupby("k")["cost"].idxmin()]
    return cheapest.loc[cheapest["silhouette"].idxmax()]


def rasch_difficulties(category: str) -> pd.DataFrame:
    """Rasch difficulties of a category's items for people, transformers and LSTMs.

    Returns
    -------
    DataFrame
        Indexed by ``item_id``: ``people`` (everyone accepted in the phase), ``transformers,
        lstms``; infinite where everyone, or no one, solved the item.
    """
    answers = {"people": people_answers(category)}
    answers |= {name: model_answers(name, category) for name in POPULATIONS}
    return pd.DataFrame({name: irt.fit(x)["difficulty"] for name, x in answers.items()})


def rasch_table(extreme: float | None = R_GLM_LIMIT) -> pd.DataFrame:
    """Table 3: Pearson correlations between Rasch difficulties of people and models.

    Parameters
    ----------
    extreme : float or None
        Where to put the items without a finite difficulty, on both sides; None leaves them out.
        The default is where R's logistic regression stops on answers that are all alike, and
        with it the paper's table comes out.

    Returns
    -------
    DataFrame
        Per category: ``transformers, lstms``, and how many items are ``infinite`` for people.

    References
    ----------
    Laverghetta et al. (2021), table 3.
    """
    rows = {}
    for category in CATEGORIES:
        table = rasch_difficulties(category)
        row = {}
        for population in POPULATIONS:
            pair = table[["people", population]]
            pair = (
                pair[np.isfinite(pair).all(axis=1)]
                if extreme is None
                else pair.clip(-extreme, extreme)
            )
            row[population] = float(pair.corr().iloc[0, 1])
        row["infinite"] = int(np.isinf(table["people"]).sum())
        rows[category] = row
    return pd.DataFrame(rows).T.astype({"infinite": int})


def extreme_curve(places: np.ndarray) -> pd.DataFrame:
    """Table 3 as a function of where the items without a finite difficulty are put.

    Parameters
    ----------
    places : ndarray, shape (n,)
        Values of ``extreme`` in :func:`rasch_table`.

    Returns
    -------
    DataFrame
        ``extreme, category, population, correlation``, n times 14 rows.
    """
    tables = {category: rasch_difficulties(category) for category in CATEGORIES}
    rows = [
        (float(place), category, name, float(clipped["people"].corr(clipped[name])))
        for place in places
        for category, table in tables.items()
        for clipped in [table.clip(-place, place)]
        for name in POPULATIONS
    ]
    return pd.DataFrame(rows, columns=["extreme", "category", "population", "correlation"])


def pairs_of_items(draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """Do items that go together for people go together for models? All pairs, with a Mantel test.

    Parameters
    ----------
    draws, seed : int, int
        Permutations of the items, and their seed.

    Returns
    -------
    DataFrame
        Indexed by population: ``r`` over all pairs of the items that people answered, ``p``,
        ``items`` with variance, and ``same_label, other_label``: r over the pairs whose right
        answers are the same, and over the others. People are the 19 completers.
    """
    people = classical.inter_item(_completers())
    labels, rows = _items()["label"], {}
    for name in POPULATIONS:
        models_ = classical.inter_item(model_answers(name)[people.columns])
        r, p, count = classical.matrix_agreement(people, models_, draws, seed)
        upper = np.triu_indices_from(people, 1)
        pairs = pd.DataFrame({"a": people.to_numpy()[upper], "b": models_.to_numpy()[upper]})
        right = labels[people.columns].to_numpy()
        same = right[upper[0]] == right[upper[1]]
        rows[name] = {
            "r": r,
            "p": p,
            "items": count,
            "same_label": pairs[same].corr().iloc[0, 1],
            "other_label": pairs[~same].corr().iloc[0, 1],
        }
    return pd.DataFrame(rows).T.astype({"items": int})


def item_rest_table(draws: int = 1000, seed: int = 0) -> pd.DataFrame:
    """A negative result: people's corrected item-total correlations against the models'.

    Parameters
    ----------
    draws : int
        Populations of 20 that guess, behind the null distribution.
    seed : int
        Their seed.

    Returns
    -------
    DataFrame
        Per category: Pearson correlation over the items for ``transformers, lstms``, the 2.5 and
        97.5 percentiles ``null_low, null_high`` for guessing, and ``items`` with variance.

    References
    ----------
    Laverghetta et al. (2021), section 6.
    """
    rng, rows = np.random.default_rng(seed), {}
    for category in CATEGORIES:
        people = classical.item_rest(people_answers(category)).dropna()
        row = {
            name: float(people.corr(classical.item_rest(model_answers(name, category))))
            for name in POPULATIONS
        }
        null = []
        for _ in range(draws):
            guesses = pd.DataFrame(rng.integers(0, 2, (20, len(people))), columns=people.index)
            null.append(people.corr(classical.item_rest(guesses)))
        row["null_low"], row["null_high"] = np.nanquantile(null, [0.025, 0.975])
        rows[category] = row | {"items": len(people)}
    return pd.DataFrame(rows).T.astype({"items": int})


def inter_item_table() -> pd.DataFrame:
    """Mean inter-item correlation of every category for people, transformers and LSTMs."""
    rows = {}
    for category in CATEGORIES:
        row = {"people": classical.mean_inter_item(people_answers(category))}
        row |= {n: classical.mean_inter_item(model_answers(n, category)) for n in POPULATIONS}
        rows[category] = row
    return pd.DataFrame(rows).T


def subset_inter_item(
    size: int = 5, draws: int = 1000, seed: int = 0, turned: bool = False
) -> pd.DataFrame:
    """Mean inter-item correlations of random subsets of all items that people answered.

    Parameters
    ----------
    size : int
        Items in a subset.
    draws : int
        How many subsets.
    seed : int
        Seed of the subsets.
    turned : bool
        Lay people's matrix on its side, so that correlations are between people over items: what
        the authors' script computes at this place.

    Returns
    -------
    DataFrame, shape (draws, 3)
        ``people`` (the 19 completers, whose order is the same in all categories), ``transformers,
        lstms``.

    References
    ----------
    Laverghetta et al. (2021), section 6.
    """
    people = _completers()
    answers = {name: model_answers(name)[people.columns] for name in POPULATIONS}
    whole = {
        n: classical.inter_item(x).to_numpy() for n, x in {"people": people, **answers}.items()
    }
    rng, rows = np.random.default_rng(seed), []
    upper = np.triu_indices(size, 1)
    for _ in range(draws):
        chosen = rng.choice(people.shape[1], size, replace=False)
        row = {name: _mean(matrix[np.ix_(chosen, chosen)][upper]) for name, matrix in whole.items()}
        if turned:
            row["people"] = classical.mean_inter_item(people.iloc[:, chosen].T)
        rows.append(row)
    return pd.DataFrame(rows)


def subset_curve(
    sizes: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 80, 120),
    draws: int = 200,
    seed: int = 0,
    population: str = "transformers",
) -> pd.DataFrame:
    """How few models will do? Agreement of a subset's item properties with everyone's.

    Chosen subsets grow greedily, one model at a time, to match the whole population's shares
    correct on the items that people were *not* asked; all agreement is then measured on the items
    that they were asked, which took no part in the choice.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of models.
    draws : int
        Random subsets of each size, for comparison.
    seed : int
        Their seed.
    population : {"transformers", "lstms"}
        Which models.

    Returns
    -------
    DataFrame
        ``size``, ``way`` (random or chosen), ``whole, low, high`` (mean over the categories of
        the Spearman correlation between the subset's and the whole population's shares correct:
        mean, 5th and 95th percentile over the draws), ``rest`` (the same for item-rest
        correlations, Pearson), ``people`` (for people's shares, the completers').
    """
    rng = np.random.default_rng(seed)
    answers = model_answers(population)
    order = choose_models(population, max(sizes))
    asked = {c: _asked(c) for c in CATEGORIES}
    people = {c: classical.difficulty(people_answers(c, "completers")) for c in CATEGORIES}
    whole = {c: answers[ids].mean() for c, ids in asked.items()}
    rest = {c: classical.item_rest(answers[ids]) for c, ids in asked.items()}

    def measured(chosen: pd.DataFrame) -> tuple[float, float, float]:
        shares = {c: chosen[ids].mean() for c, ids in asked.items()}
        return (
            _mean([_spearman(shares[c], whole[c]) for c in asked]),
            _mean([classical.item_rest(chosen[asked[c]]).corr(rest[c]) for c in asked])
            if len(chosen) > 2
            else float("nan"),
            _mean([_spearman(shares[c], people[c]) for c in asked]),
        )

    rows = []
    for size in (s for s in sizes if s <= len(answers)):
        drawn = np.array(
            [measured(answers.iloc[rng.choice(len(answers), size, replace=False)])
             for _ in range(draws)]
        )  # fmt: skip
        low, high = np.nanquantile(drawn[:, 0], [0.05, 0.95])
        means = [_mean(column) for column in drawn.T]
        rows.append((size, "random", means[0], low, high, means[1], means[2]))
        value = measured(answers.loc[order[:size]])
        rows.append((size, "chosen", value[0], value[0], value[0], value[1], value[2]))
    columns = ["size", "way", "whole", "low", "high", "rest", "people"]
    return pd.DataFrame(rows, columns=columns)


def choose_models(population: str = "transformers", count: int = 20) -> list[str]:
    """Models in the order in which they best complete each other, on items no person was asked.

    Each step adds the model that brings the subset's shares correct closest (least squares) to
    the whole population's.
    """
    answers = model_answers(population)
    table = _items()
    x = answers[table.index[table["asked"] == ""]].to_numpy(float)
    target, total, left, order = x.mean(axis=0), np.zeros(x.shape[1]), list(range(len(x))), []
    for step in range(1, min(count, len(x)) + 1):
        errors = (((total + x[left]) / step - target) ** 2).sum(axis=1)
        best = left.pop(int(errors.argmin()))
        total = total + x[best]
        order.append(answers.index[best])
    return order


def family_dif(
    focal: str, category: str | None = None, method: str = "mantel_haenszel"
) -> pd.DataFrame:
    """Items that favour or burden one model family against the other transformers at equal score.

    Parameters
    ----------
    focal : str
        A family in ``models()["family"]``.
    category : str, optional
        Items of one category; by default each category in turn, matched within it, with the
        corrections for multiple tests over all items.
    method : {"mantel_haenszel", "logistic"}
        Odds ratios in strata of equal score, or logistic regression on the score, which also
        finds items that favour the group at one end of the scale only.

    Returns
    -------
    DataFrame
        As :func:`psychometrics.items.mantel_haenszel` or
        :func:`psychometrics.items.logistic_dif` gives it, with ``category``.
    """
    families = models().query("population == 'transformers'")["family"]
    _one_of("focal", focal, tuple(sorted(families.unique())))
    is_focal = (families == focal).to_numpy()

    def groups(name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
        answers = model_answers("transformers", name)
        return answers[~is_focal], answers[is_focal]

    return _dif_by_category(groups, category, method)


def people_dif(
    population: str = "transformers",
    category: str | None = None,
    method: str = "mantel_haenszel",
) -> pd.DataFrame:
    """Items that favour or burden models (focal) against people (reference) at equal score.

    Parameters and Returns are those of :func:`family_dif`, with a population in place of a family.
    """
    return _dif_by_category(
        lambda name: (people_answers(name), model_answers(population, name)), category, method
    )


def dif_table(families: tuple[str, ...] | None = None) -> pd.DataFrame:
    """Differential item functioning of every comparison in one table, by both methods.

    Parameters
    ----------
    families : sequence of str, optional
        Model families to set against the other transformers; by default all.

    Returns
    -------
    DataFrame
        Indexed by comparison: ``models`` in the focal group, then for either method (``mh_`` and
        ``lr_``) the numbers of items ``tested``, of classes ``B`` and ``C``, and those left after
        Benjamini and Hochberg's (``fdr``) and Holm's correction (``holm``) at 0.05.
    """
    counts = models().query("population == 'transformers'")["family"].value_counts()
    groups = {f"{name} against people": (people_dif, name) for name in POPULATIONS}
    for name in families or tuple(counts.index):
        groups[f"{name} against other transformers"] = (family_dif, name)
    sizes = {name: len(model_answers(name)) for name in POPULATIONS} | counts.to_dict()
    rows = {}
    for title, (dif, name) in groups.items():
        row = {"models": sizes[name]}
        for short, method, label in (("mh", "mantel_haenszel", "ets"), ("lr", "logistic", "size")):
            table = dif(name, method=method)
            row |= {
                f"{short}_tested": int(table["p"].notna().sum()),
                f"{short}_B": int((table[label] == "B").sum()),
                f"{short}_C": int((table[label] == "C").sum()),
                f"{short}_fdr": int((table["p_fdr"] < 0.05).sum()),
                f"{short}_holm": int((table["p_holm"] < 0.05).sum()),
            }
        rows[title] = row
    return pd.DataFrame.from_dict(rows, orient="index")


def trait_table() -> pd.DataFrame:
    """Do the items of a category measure one thing? Alpha and a freely estimated common slope.

    Returns
    -------
    DataFrame
        Per category, for ``people`` (everyone accepted in the phase), ``transformers, lstms``:
        ``alpha_...`` of the items that have variance, and ``slope_...``, the discrimination that
        all items share (the Rasch fits of table 3 hold it at 1; 0 means that ability tells
        nothing of the answers).
    """
    from ..reliability import alpha

    rows = {}
    for category in CATEGORIES:
        answers = {"people": people_answers(category)}
        answers |= {name: model_answers(name, category) for name in POPULATIONS}
        rows[category] = {
            f"alpha_{name}": float(alpha(x.loc[:, x.nunique() > 1])["alpha"])
            for name, x in answers.items()
        } | {
            f"slope_{name}": float(irt.fit(x, "1pl")["discrimination"].iloc[0])
            for name, x in answers.items()
        }
    return pd.DataFrame(rows).T


def category_levels(population: str = "transformers", levels: int = 3) -> pd.DataFrame:
    """Categories as graded items: number of items solved, cut into levels of about equal size.

    Parameters
    ----------
    population : {"transformers", "lstms"}
        Which models.
    levels : int
        How many levels, from 0; models with equal numbers share a level.

    Returns
    -------
    DataFrame, shape (R, 7)
    """
    result = {}
    for category in CATEGORIES:
        score = model_answers(population, category).sum(axis=1)
        below = score.value_counts(normalize=True).sort_index().cumsum().iloc[:-1]
        cuts = {(below - step / levels).abs().idxmin() for step in range(1, levels)}
        result[category] = np.digitize(score, sorted(cuts), right=True)
    return pd.DataFrame(result, index=score.index)


def regimes(table: pd.DataFrame) -> pd.Series:
    """The paper's training regime of each row of :func:`models` or :func:`live_models`."""
    pairs = zip(table["pretrained"], table["finetuned"], strict=True)
    return pd.Series([REGIMES[bool(a), bool(b)] for a, b in pairs], index=table.index)


def live_table(asked: pd.DataFrame | None = None) -> pd.DataFrame:
    """Where models of today fall among the published ones.

    Parameters
    ----------
    asked : DataFrame, shape (R, I), optional
        0/1 answers of further transformers, fine-tuned from pre-trained weights, as
        :func:`psychometrics.make.diagnostic.ask_diagnostic` gives them; in place of rows of the
        same name.

    Returns
    -------
    DataFrame
        Indexed by respondent: ``population, regime, data, accuracy`` (held-out MNLI; missing for
        further ones), ``share`` of all items solved, ``rank`` (share of the published models of
        the same population with fewer or as many), ``theta`` on the Rasch scale of all published
        models, with ``se``, and ``people``: mean over the categories of the Spearman correlation
        between what it solved and the shares of people who did (missing categories left out).
    """
    table, answers = live_models(), live_answers()
    table["regime"] = regimes(table)
    if asked is not None:
        new = asked.index.difference(table.index, sort=False)
        more = pd.DataFrame(index=new, data={"population": "transformers", "regime": "both"})
        table = pd.concat([table, more])
        answers = pd.concat([answers.drop(index=asked.index, errors="ignore"), asked])
    frame = table[["population", "regime", "data", "accuracy"]].copy()
    frame["data"] = frame["data"].fillna("")
    answers = answers.loc[frame.index]
    frame["share"] = answers.mean(axis=1)
    for name in POPULATIONS:
        known = np.sort(model_answers(name).mean(axis=1))
        chosen = frame["population"] == name
        below = np.searchsorted(known, frame.loc[chosen, "share"] + 1e-12)
        frame.loc[chosen, "rank"] = below / len(known)
    scale = irt.fit(model_answers())
    frame[["theta", "se"]] = irt.abilities(answers, scale)
    people = {c: classical.difficulty(people_answers(c, "completers")) for c in CATEGORIES}
    frame["people"] = [
        _mean([row[x.index].corr(x, method="spearman") for x in people.values()
               if row[x.index].nunique() > 1])
        for _, row in answers.iterrows()
    ]  # fmt: skip
    return frame


def regime_table() -> pd.DataFrame:
    """Share of all items solved by training regime: published models beside those of this book.

    Returns
    -------
    DataFrame
        Indexed by population and regime: ``models, share, live_models, live_share``.
    """
    parts = {}
    for prefix, who, answers in (
        ("", models(), model_answers()),
        ("live_", live_models(), live_answers()),
    ):
        share = answers.mean(axis=1).groupby([who["population"], regimes(who)])
        parts[f"{prefix}models"], parts[f"{prefix}share"] = share.size(), share.mean()
    frame = pd.DataFrame(parts).rename_axis(["population", "regime"])
    order = [(p, r) for p in POPULATIONS for r in REGIMES.values() if (p, r) in frame.index]
    frame = frame.loc[order]
    counts = [name for name in frame if name.endswith("models")]
    return frame.fillna(dict.fromkeys(counts, 0)).astype(dict.fromkeys(counts, int))


def joined_table() -> pd.DataFrame:
    """Table 1 with the models of this book joined to the published ones.

    Returns
    -------
    DataFrame
        Per category and for each population: Spearman correlation with people of the shares of
        the published models (its name), of this book's (``live_...``) and of all
        (``joined_...``).
    """
    rows = {}
    for category in CATEGORIES:
        people, row = classical.difficulty(people_answers(category, "completers")), {}
        for name in POPULATIONS:
            old, new = model_answers(name, category), live_answers(name, category)
            for prefix, x in (("", old), ("live_", new), ("joined_", pd.concat([old, new]))):
                shares = x.mean()
                row[f"{prefix}{name}"] = (
                    _spearman(people, shares) if shares.nunique() > 1 else float("nan")
                )
        rows[category] = row
    return pd.DataFrame(rows).T


def check_item_parameters(**given: object) -> None:
    """Check the parameters of the chapter on items, before anything is computed.

    Parameters
    ----------
    **given
        ``category, respondents, draws, restarts, subset_draws, simulations, seed``.

    Raises
    ------
    ParameterError
        A value is impossible.
    RespondentError
        A respondent that would be asked is not there.

    Examples
    --------
    >>> check_item_parameters(category="negation")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: category='negation' is unknown; it is one of MN, ...
    """
    from ..book import refuse_unknown
    from ..respondents import identify

    refuse_unknown(given)
    least = {"draws": 100, "restarts": 1, "subset_draws": 1, "simulations": 20, "seed": 0}
    for name in least.keys() & given.keys():
        value = given[name]
        if not isinstance(value, int) or isinstance(value, bool) or value < least[name]:
            raise ParameterError(
                f"{name} must be a whole number from {least[name]}, got {value!r}."
            )
    if "category" in given:
        _one_of("category", given["category"], tuple(CATEGORIES))
    respondents = given.get("respondents", "committed")
    if not isinstance(respondents, str) or not respondents.strip():
        raise ParameterError(f"respondents must be text, got {respondents!r}.")
    if respondents != "committed":
        from ..population import population

        for name in population(respondents):
            identify(name)


def check_people(
    table: pd.DataFrame,
    reject_below: float = 0.4,
    accept_above: float = 0.6,
    attention_below: float = 0.75,
    min_words: int = 3,
    copied_words: int = 5,
) -> pd.DataFrame:
    """The paper's three-stage check of survey answers: who is dropped, and why.

    Parameters
    ----------
    table : DataFrame
        One row per answer, in the order of submission: ``submission``, ``worker``, ``correct``
        (0 or 1), ``attention`` (whether the question is an attention check); optionally ``ip``,
        ``justification`` and ``question`` (its text).
    reject_below, accept_above : float
        Shares correct of all answers, attention checks among them.
    attention_below : float
        Share of attention checks below which a submission between the two is rejected.
    min_words : int
        A justification shorter than this says nothing ("good", "nice").
    copied_words : int
        So many words in a row that also stand in the question count as pasted from it.

    Returns
    -------
    DataFrame
        Indexed by submission: ``worker, accepted, stage`` (of the rejection, else 0), ``reason``,
        ``score, attention`` (shares correct), ``weak`` (share of justifications that break a
        rule). Whether a justification is *relevant* is left to a reader.

    Raises
    ------
    ParameterError
        A column is missing, or an answer is neither 0 nor 1.

    References
    ----------
    Laverghetta et al. (2021), section 4.
    """
    if missing := {"submission", "worker", "correct", "attention"} - set(table.columns):
        raise ParameterError(f"the table of answers lacks the columns {sorted(missing)}.")
    if not table["correct"].isin([0, 1]).all():
        raise ParameterError("column 'correct' must hold 0 and 1 only.")
    seen: set[tuple[str, object]] = set()
    rows = {}
    for submission, part in table.groupby("submission", sort=False):
        marks = {("worker", value) for value in part["worker"].unique()}
        if "ip" in part:
            marks |= {("ip", value) for value in part["ip"].dropna().unique()}
        repeated = sorted({name for name, value in marks & seen})
        seen |= marks
        score = part["correct"].mean()
        checks = part.loc[part["attention"].astype(bool), "correct"]
        attention = checks.mean() if len(checks) else np.nan
        weak, rule = _weak_justifications(part, min_words, copied_words)
        stage, reason = 0, ""
        if repeated:
            stage, reason = 1, f"submitted before (same {' and '.join(repeated)})"
        elif score < reject_below:
            stage, reason = 2, f"score {score:.0%}, below {reject_below:.0%}"
        elif score <= accept_above and not attention >= attention_below:
            stage = 2
            reason = (
                f"score {score:.0%}, not above {accept_above:.0%}, and attention checks "
                + ("absent" if np.isnan(attention) else f"{attention:.0%}")
                + f", below {attention_below:.0%}"
            )
        elif rule:
            stage, reason = 3, rule
        rows[submission] = [
            part["worker"].iloc[0],
            stage == 0,
            stage,
            reason,
            score,
            attention,
            weak,
        ]
    columns = ["worker", "accepted", "stage", "reason", "score", "attention", "weak"]
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    return frame.rename_axis("submission").astype({"accepted": bool, "stage": int})


def architecture_table() -> pd.DataFrame:
    """Figure 1: each architecture's correlation with people, less that of all transformers.

    Returns
    -------
    DataFrame
        Categories by family, with at least three models in each; changes of Spearman's
        correlation. An architecture that solves all items alike has none.

    References
    ----------
    Laverghetta et al. (2021), figure 1.
    """
    from scipy.stats import spearmanr

    families = models().query("population == 'transformers'")["family"]
    rows = {}
    for category in CATEGORIES:
        people = classical.difficulty(people_answers(category, "completers"))
        answers = model_answers("transformers", category)
        overall = spearmanr(people, classical.difficulty(answers)).statistic
        shares = answers.groupby(families).mean()
        rows[category] = {
            family: spearmanr(people, row).statistic - overall if row.nunique() > 1 else np.nan
            for family, row in shares.iterrows()
        }
    return pd.DataFrame(rows).T


def _matrix(table: pd.DataFrame) -> pd.DataFrame:
    """Answers kept as text, one character an item, as numbers."""
    matrix = np.array([list(row) for row in table["answers"]], dtype=np.int8)
    return pd.DataFrame(matrix, index=table.index, columns=_items().index)


def _part(
    table: pd.DataFrame, answers: pd.DataFrame, population: str | None, category: str | None
) -> pd.DataFrame:
    if population is not None:
        _one_of("population", population, POPULATIONS)
        answers = answers[table["population"] == population]
    return answers.copy() if category is None else answers[_asked(category)]


def _completers() -> pd.DataFrame:
    """The 19 people who answered all phases, in the same order in each, by all their items."""
    return pd.concat([people_answers(c, "completers") for c in CATEGORIES], axis=1)


def _dif_by_category(groups, category: str | None, method: str) -> pd.DataFrame:
    _one_of("method", method, DIF_METHODS)
    test = {
        "mantel_haenszel": classical.mantel_haenszel,
        "logistic": classical.logistic_dif,
    }[method]
    parts = []
    for name in [category] if category else CATEGORIES:
        reference, focal = groups(name)
        table = test(reference, focal)
        parts.append(table.assign(category=name))
    frame = pd.concat(parts)
    return frame if category else classical.adjust(frame)


def _shared(first: pd.Series, second: pd.Series) -> tuple[list[int], list[int]]:
    """Two partitions on the items that both hold (items without variance may have been dropped)."""
    one = dict(zip(first["items"], first["labels"], strict=True))
    two = dict(zip(second["items"], second["labels"], strict=True))
    both = [item for item in one if item in two]
    return [one[item] for item in both], [two[item] for item in both]


def _mean(values) -> float:
    values = np.asarray(values, dtype=float)
    values = values[np.isfinite(values)]
    return float(values.mean()) if len(values) else float("nan")


def _spearman(first: pd.Series, second: pd.Series) -> float:
    a, b = first.rank(), second.rank()
    return float(np.corrcoef(a, b)[0, 1]) if a.nunique() > 1 and b.nunique() > 1 else 0.0


def _weak_justifications(
    part: pd.DataFrame, min_words: int, copied_words: int
) -> tuple[float, str]:
    """Share of justifications that break a rule, and the rule that rejects the submission."""
    if "justification" not in part:
        return float("nan"), ""
    texts = [_words(text) for text in part["justification"]]
    short = [len(text) < min_words for text in texts]
    questions = part["question"] if "question" in part else [""] * len(part)
    pasted = [
        _shares_run(text, _words(question), copied_words)
        for text, question in zip(texts, questions, strict=True)
    ]
    weak = float(np.mean([a or b for a, b in zip(short, pasted, strict=True)]))
    if len(texts) > 1 and len(set(map(tuple, texts))) == 1:
        return 1.0, "the same justification for every question"
    if np.mean(short) > 0.5:
        return weak, f"most justifications have fewer than {min_words} words"
    if np.mean(pasted) > 0.5:
        return weak, "most justifications are pasted from the question"
    return weak, ""


def _words(text: object) -> list[str]:
    return re.findall(r"\w+", text.lower()) if isinstance(text, str) else []


def _shares_run(text: list[str], question: list[str], length: int) -> bool:
    runs = {tuple(question[i : i + length]) for i in range(len(question) - length + 1)}
    return any(tuple(text[i : i + length]) in runs for i in range(len(text) - length + 1))


def _asked(category: str) -> list[int]:
    _one_of("category", category, tuple(CATEGORIES))
    table = _items()
    return table.index[table["asked"] == category].to_list()


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ParameterError(f"{name}='{value}' is unknown; it is one of {', '.join(known)}.")


@functools.cache
def _models() -> pd.DataFrame:
    path = data_dir() / "diagnostic" / "models.csv.gz"
    frame = pd.read_csv(path, dtype={"answers": str}, keep_default_na=False)
    return frame.set_index("respondent_id")


@functools.cache
def _answers_of_models() -> pd.DataFrame:
    return _matrix(_models())


@functools.cache
def _items() -> pd.DataFrame:
    path = data_dir() / "diagnostic" / "items.csv"
    return pd.read_csv(path, keep_default_na=False).set_index("item_id")


@functools.cache
def _people() -> pd.DataFrame:
    path = data_dir() / "diagnostic" / "people.csv.gz"
    return pd.read_csv(path, dtype={"answers": str})


def _tidy(name: str) -> str:
    """A model's name with its misspellings mended, so that equal things are called equal."""
    name = name.strip()
    for wrong, right in _SPELLINGS.items():
        name = name.replace(wrong, right)
    return re.sub(r"(dp_ratio|n_hidden_layers?|hid\w+_size)[-=]", r"\1=", name)


def _describe(name: str) -> dict[str, object]:
    family = name.split("-")[0]
    data = re.search(r"-finetune-([a-z+]+)", name)
    return {
        "population": "lstms" if family == "lstm" else "transformers",
        "family": family,
        "pretrained": "nopretrain" not in name,
        "finetuned": "nofinetune" not in name,
        "data": data.group(1) if data else "",
    }


def _unique(names: list[str]) -> list[str]:
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return result


def _write_gzip(frame: pd.DataFrame, path: Path) -> None:
    # Without a time stamp the same figures give the same bytes.
    frame.to_csv(path, index=False, compression={"method": "gzip", "mtime": 0})
