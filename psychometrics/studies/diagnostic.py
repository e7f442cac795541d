"""The diagnostic of language inference: who solved what, and the tables of people beside models.

Answers are 0 or 1 and shipped; the sentences are fetched when someone is asked now. The tables
have a row for each of the seven categories in which people were asked.
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

from ..asking.population import population
from ..asking.store import key_of, open_answers
from ..data import NLI_LABELS, fetch
from ..exceptions import ParameterError, RespondentError
from ..measures import irt, items
from ..modes import identify, load_respondent
from ..paths import data_dir
from ..questionnaires import Questionnaire

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
# Where glm() of R stops on 19, 20 or 35 answers that are all 1: log odds, in place of infinity.
R_GLM_LIMIT = 25.566
_CHUNK = 256  # sentences asked between two saves
_BOOTSTRAP = 2000  # draws of pairs of items behind an interval
_GROUPS = ("people", *POPULATIONS)
_DIF = {"mantel_haenszel": items.mantel_haenszel, "logistic": items.logistic_dif}


def models(live: bool | str | Path = False) -> pd.DataFrame:
    """The language models: what they are and how they were trained.

    Parameters
    ----------
    live : bool or path
        The models that answered for this book, in place of the 240 published ones; or those of
        another file than ``data/diagnostic/live.csv.gz``.

    Returns
    -------
    DataFrame
        Indexed by ``respondent_id``: ``population`` (transformers or lstms), ``family``,
        ``pretrained``, ``finetuned`` (bool), ``data`` they were fine-tuned on, and ``regime``, the
        paper's name for the two. The published ones also have ``builds_on`` (the respondent whose
        weights they started from); those of this book ``seed``, number of training ``pairs``,
        ``accuracy`` on held-out MNLI with its Wilson 95 % interval ``low, high``, ``seconds`` of
        training, and the ``fingerprint`` of embedded ones.

        Not all of them do something: one published LSTM solves 0 of the 812 items, which no
        guessing would bring about (its labels are probably coded otherwise); it is kept, as the
        authors' tables keep it.

    References
    ----------
    Laverghetta et al. (2021), section 3.

    Examples
    --------
    >>> models()["population"].value_counts().to_dict()
    {'transformers': 183, 'lstms': 57}
    """
    table = _models(live).drop(columns="answers")
    pairs = zip(table["pretrained"], table["finetuned"], strict=True)
    return table.assign(regime=[REGIMES[bool(a), bool(b)] for a, b in pairs])


def item_table() -> pd.DataFrame:
    """The items of the diagnostic, without their sentences.

    Returns
    -------
    DataFrame
        Indexed by ``item_id``: ``subcategory``, ``domain``, ``label`` (the right answer),
        ``asked`` (short name of the category in which people were asked it, else empty) and
        ``pair``. Items come in pairs: the same two sentences in both directions, one after the
        other, so that the items 2k and 2k + 1 are twins.

    References
    ----------
    Wang et al. (2019), section 4.

    Examples
    --------
    >>> len(item_table())
    812
    """
    return _items().copy()


def right_answers() -> pd.Series:
    """Return the right answer of each item, as a category of :data:`psychometrics.data.NLI_LABELS`.

    Examples
    --------
    >>> right_answers().cat.categories.tolist()
    ['entailment', 'neutral', 'contradiction']
    """
    return _items()["label"].astype(pd.CategoricalDtype(NLI_LABELS)).copy()


def answers(
    who: str | None = None,
    category: str | None = None,
    sample: str = "phase",
    live: bool = False,
) -> pd.DataFrame:
    """0/1 answers of models or of people.

    Parameters
    ----------
    who : {"people", "transformers", "lstms"}, optional
        All models by default.
    category : str, optional
        Key of ``CATEGORIES``: only the items that people were asked; all items by default.
    sample : {"phase", "completers"}
        Of people: everyone accepted in the category's phase, or the 19 who answered all phases,
        who alone can be put side by side without a category.
    live : bool
        Of models: those of this book in place of the published ones.

    Returns
    -------
    DataFrame, shape (R, I)
        Indexed by ``respondent_id``, or the participant's number within sample and category;
        ``item_id`` as columns.

    Examples
    --------
    >>> answers("lstms", "MN").shape, answers("people", "MN").shape
    ((57, 15), (45, 15))
    """
    if who != "people":
        found = _matrix(_models(live), _items().index) if live else _published_answers()
        if who is not None:
            _one_of("who", who, _GROUPS)
            found = found[_models(live)["population"] == who]
        return found.copy() if category is None else found[_asked(category)]
    _one_of("sample", sample, ("phase", "completers"))
    if category is None:
        if sample == "phase":
            raise ParameterError("people differ between phases: name a category, or 'completers'.")
        return pd.concat([answers("people", c, sample) for c in CATEGORIES], axis=1)
    columns = _asked(category)
    table = _people()
    table = table[(table["sample"] == sample) & (table["category"] == category)]
    return _matrix(table.set_index("participant").rename_axis(None), columns)


def by_category(statistic: Callable[[pd.DataFrame], float]) -> pd.DataFrame:
    """One number of each category's answers, for people, transformers and LSTMs.

    Parameters
    ----------
    statistic : callable
        Takes 0/1 answers, shape (R, I), and gives a number. People are those of the phase.

    Returns
    -------
    DataFrame
        Categories by ``people, transformers, lstms``.

    Examples
    --------
    >>> by_category(len)["people"].tolist()
    [45, 35, 35, 20, 20, 19, 19]
    """
    return pd.DataFrame(
        {c: {who: statistic(answers(who, c)) for who in _GROUPS} for c in CATEGORIES}
    ).T


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

    Examples
    --------
    >>> published("table1").loc["MN", "transformers"]
    np.float64(-0.28)
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

    Examples
    --------
    >>> beside(rasch_table(), "table3").loc["MN", "lstms"].round(2).tolist()
    [0.29, 0.29, 0.0]
    """
    paper = published(table)
    parts = {}
    for name in POPULATIONS:
        here = ours[name].astype(float)
        gap = here.round(2) - paper[name]
        parts[name] = pd.DataFrame({"paper": paper[name], "here": here, "difference": gap})
    return pd.concat(parts, axis=1)


def difficulty_table(
    groups: dict[str, pd.DataFrame] | None = None, draws: int = 10_000, seed: int = 0
) -> pd.DataFrame:
    """Table 1 and figure 1: do the items that are hard for people get solved by fewer models?

    Parameters
    ----------
    groups : dict of DataFrames, optional
        0/1 answers of models to all items, by name; by default transformers and LSTMs.
    draws : int
        Guessing populations (of 20, as in the paper) behind the null distribution.
    seed : int
        Their seed.

    Returns
    -------
    DataFrame
        Per category and group: Spearman correlation of its shares correct with those of the 19
        people who completed all phases (under the group's name; missing where the group solves
        all items alike), its 95 % interval ``low_, high_`` over the pairs of items (others of the
        category might have been asked; the respondents are taken as they are; Fisher's scale,
        with the standard error of a bootstrap of pairs unless that of as many single items is
        greater), and its ``p_`` from the null distribution, whose median is ``null`` and whose
        2.5 and 97.5 percentiles are ``null_low``, ``null_high``. ``label, label_low,
        label_high`` are those of populations that only prefer some labels to others, and
        ``p_label_`` the p value among them; ``p_pairs_`` is that of whole pairs permuted.
        ``items``, ``pairs`` (items without a twin count as one) and ``ceiling``: the correlation
        that a perfect predictor would have, given how well 19 people's order is known (the square
        root of the split-half reliability, stepped up).

    References
    ----------
    Laverghetta et al. (2021), table 1; figure 1 by architecture, less the column of all
    transformers.

    Examples
    --------
    >>> difficulty_table(draws=100).loc["MN", "transformers"].round(2)
    np.float64(-0.28)
    """
    groups = {name: answers(name) for name in POPULATIONS} if groups is None else groups
    rows = {}
    for category in CATEGORIES:
        people = _people_shares(category)
        labels = _labels(people.index)
        null = items.null_spearman(people.to_numpy(), draws=draws, seed=seed)
        named = items.null_spearman(people.to_numpy(), draws=draws, seed=seed, labels=labels)
        row = {}
        for name, x in groups.items():
            ranks = people.rank(), x[people.index].mean().rank()
            found = _over_items(*ranks, _BOOTSTRAP, seed, ranks=True)
            row[name] = found[""]
            row |= {f"{key}_{name}": found[key] for key in ("low", "high")}
            row[f"p_pairs_{name}"] = found["p"]
            row[f"p_{name}"] = items.null_p_value(row[name], null)
            row[f"p_label_{name}"] = items.null_p_value(row[name], named)
        row |= _central("null", null) | _central("label", named)
        row |= {"items": len(people), "pairs": _pairs(people.index).nunique()}
        rows[category] = row | {"ceiling": _ceiling(category)}
    return pd.DataFrame(rows).T.astype(float).astype({"items": int, "pairs": int})


def cluster_table(
    restarts: int = 500,
    seed: int = 0,
    constant: str = "uncorrelated",
    method: str = "exact",
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
        As in :func:`psychometrics.measures.items.cluster_items`.
    choose : {"cost", "silhouette"}
        For each k the partition of least cost (of several equal ones that of highest silhouette),
        and then k by silhouette; or straight away the partition of highest silhouette among all
        local optima, as the paper's script does.

    Returns
    -------
    DataFrame
        Per category: correlation of co-membership with people for ``transformers, lstms``, their
        ``p_...``, the number of clusters ``k_people, k_transformers, k_lstms``, the silhouette
        ``s_people`` and how many partitions come within 0.01 of it, ``near``. The choice is one of
        ``ties_people, ties_transformers, ties_lstms`` partitions that might as well have been
        chosen, since they cost the same (500 are counted for each k); ``low_..., high_...`` are
        the least and the greatest correlation over all pairs of such partitions. ``null_...,
        null_low_..., null_high_...`` are median and central 95 % for whole pairs of items
        permuted at random, of which the p values are, too; ``p_items_...`` are those of single
        items permuted, by which twins are torn apart, and ``p_labels_...`` those of pairs that
        only change places with pairs of the same right answers. ``labels_people,
        labels_transformers, labels_lstms`` are the agreements with the partition by right answer.

    References
    ----------
    Laverghetta et al. (2021), table 2. The sample is everyone accepted in a phase.

    Examples
    --------
    >>> found = cluster_table(5, constant="self", method="alternating", choose="silhouette")
    >>> found["k_people"].min() >= 2
    np.True_
    """
    _one_of("choose", choose, ("cost", "silhouette"))
    rows = {}
    for category in CATEGORIES:
        tables = {
            who: _partitions(who, category, restarts, seed, constant, method) for who in _GROUPS
        }
        tied = {name: _tied_partitions(table, choose) for name, table in tables.items()}
        best = {name: table.iloc[0] for name, table in tied.items()}
        row = {}
        for name in POPULATIONS:
            first, second = _shared(best["people"], best[name])
            pairs, right = _pairs(first.index), _labels(first.index)
            for key, kept in (
                ("p_items", {}), ("p", {"blocks": pairs}),
                ("p_labels", {"blocks": pairs, "labels": right}),
            ):  # fmt: skip
                row[name], p = items.partition_agreement(first, second, seed=seed, **kept)
                row[f"{key}_{name}"] = p
            orders = items.block_orders(pairs, 2000, seed)
            drawn = _memberships(first.to_numpy()[None]) @ _memberships(second.to_numpy()[orders]).T
            row |= {f"{key}_{name}": value for key, value in _central("null", drawn[0]).items()}
            values = _agreements(tied["people"], tied[name])
            row[f"low_{name}"], row[f"high_{name}"] = np.nanmin(values), np.nanmax(values)
        for name, partition in best.items():
            own = pd.Series(partition["labels"], partition["items"])
            row[f"labels_{name}"] = items.partition_agreement(own, _labels(own.index), draws=1)[0]
        row |= {f"ties_{name}": len(table) for name, table in tied.items()}
        row |= {f"k_{name}": int(partition["k"]) for name, partition in best.items()}
        row["s_people"] = best["people"]["silhouette"]
        row["near"] = int((tables["people"]["silhouette"] > row["s_people"] - 0.01).sum())
        rows[category] = row
    frame = pd.DataFrame(rows).T
    whole = [name for name in frame if name.startswith(("k_", "ties_"))] + ["near"]
    return frame.astype(dict.fromkeys(whole, int))


def partition_range(margin: float = 0.02, restarts: int = 100, seed: int = 0) -> pd.DataFrame:
    """How far table 2 moves among partitions whose silhouettes are nearly as good as the best.

    Partitions are found by the paper's own procedure.

    Parameters
    ----------
    margin : float
        How much less than the best silhouette is still nearly as good.
    restarts, seed
        As in :func:`cluster_table`.

    Returns
    -------
    DataFrame
        Indexed by category and population: ``partitions`` of people's and the models' items that
        come so near, multiplied; ``best`` agreement of the two best, ``low`` and ``high`` over
        all pairs, and ``nearest`` to the paper's value.

    Examples
    --------
    >>> partition_range(margin=0, restarts=5).loc[("LE", "transformers"), "partitions"]
    np.int64(1)
    """
    paper, rows = published("table2"), {}
    for category in CATEGORIES:
        near = {}
        for name in _GROUPS:
            table = _partitions(name, category, restarts, seed, "self", "alternating")
            near[name] = table[table["silhouette"] >= table["silhouette"].iloc[0] - margin]
        for name in POPULATIONS:
            values = _agreements(near["people"], near[name]).ravel()
            gap = np.abs(values - paper.loc[category, name])
            rows[category, name] = {
                "partitions": len(values), "best": values[0], "low": np.nanmin(values),
                "high": np.nanmax(values), "nearest": values[np.nanargmin(gap)],
            }  # fmt: skip
    return pd.DataFrame(rows).T.astype({"partitions": int})


def rasch_difficulties(category: str) -> pd.DataFrame:
    """Rasch difficulties of a category's items for people, transformers and LSTMs.

    Returns
    -------
    DataFrame
        Indexed by ``item_id``: ``people`` (everyone accepted in the phase), ``transformers,
        lstms``; infinite where everyone, or no one, solved the item.

    Examples
    --------
    >>> rasch_difficulties("WK").shape
    (15, 3)
    """
    return _rasch(category).copy()


def rasch_table(
    extreme: float | None = R_GLM_LIMIT, draws: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """Table 3: Pearson correlations between Rasch difficulties of people and models.

    Parameters
    ----------
    extreme : float or None
        Where to put the items without a finite difficulty, on both sides (the others stay where
        they are); None leaves them out.
        The default is where R's logistic regression stops on answers that are all alike, and
        with it the paper's table comes out.
    draws : int
        Bootstrap samples of pairs of items, and random orders of them.
    seed : int
        Seed of both.

    Returns
    -------
    DataFrame
        Per category: ``transformers, lstms``, and how many items are ``infinite`` for people. For
        each population the 95 % interval ``low_, high_`` over the pairs of items (Fisher's scale,
        with the standard error of a bootstrap of pairs unless Fisher's is greater: in simulations
        of 15 items it held the true value in 95 to 97 % of cases without extreme items and in 85
        to 99 % with them), ``null_, null_low_, null_high_``, median and central 95 % for people's
        items put to the wrong ones of the models, pairs as wholes and extreme items included,
        ``p_`` among these, and ``n_`` items. ``label, label_low,
        label_high`` are those of 20 respondents who only prefer some labels to others (with log
        odds in place of Rasch difficulties, which follow them closely).

    References
    ----------
    Laverghetta et al. (2021), table 3.

    Examples
    --------
    >>> rasch_table()["infinite"].tolist()
    [2, 3, 0, 4, 4, 7, 1]
    """
    rows, ends = {}, {} if extreme is None else {np.inf: extreme, -np.inf: -extreme}
    for category in CATEGORIES:
        table = _rasch(category)
        row = {}
        for name in POPULATIONS:
            pair = table[["people", name]]
            pair = pair[np.isfinite(pair).all(axis=1)] if extreme is None else pair.replace(ends)
            found = _over_items(pair["people"], pair[name], draws, seed)
            row |= {f"{key}_{name}" if key else name: value for key, value in found.items()}
        people = table["people"]
        people = people[np.isfinite(people)] if extreme is None else people.replace(ends)
        row |= _central("label", _by_labels_alone(people, draws, seed))
        row["infinite"] = int(np.isinf(table["people"]).sum())
        rows[category] = row
    whole = ["infinite", *(f"n_{name}" for name in POPULATIONS)]
    return pd.DataFrame(rows).T.astype(dict.fromkeys(whole, int))


def pairs_of_items(draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """Do items that go together for people go together for models? All pairs, with a Mantel test.

    Parameters
    ----------
    draws, seed : int, int
        Permutations of the items, and their seed.

    Returns
    -------
    DataFrame
        Indexed by population: ``r`` over all pairs of the items that people answered, ``p`` by
        permuting twins together, its 95 % interval ``low, high`` from drawing pairs of twins again
        (an item with itself left out), ``items`` with variance, and r over parts: ``apart``, the
        pairs that are no twins, and of these ``same_label, other_label``, those whose right
        answers are the same and the others. People are the 19 completers.

    References
    ----------
    Mantel (1967).

    Examples
    --------
    >>> pairs_of_items(draws=10)["items"].max() < 104  # the others everyone, or no one, solved
    np.True_
    """
    people = answers("people", sample="completers").corr()
    labels, rows = _items()["label"], {}
    for name in POPULATIONS:
        models_ = answers(name)[people.columns].corr()
        pair = _pairs(people.columns).to_numpy()
        r, p, count = items.mantel_test(people, models_, draws, seed, blocks=pair)
        upper = np.triu_indices_from(people, 1)
        pairs = pd.DataFrame({"a": people.to_numpy()[upper], "b": models_.to_numpy()[upper]})
        right = labels[people.columns].to_numpy()
        same = right[upper[0]] == right[upper[1]]
        apart = pair[upper[0]] != pair[upper[1]]
        rows[name] = {
            "r": r,
            "p": p,
            **dict(
                zip(("low", "high"), _matrix_interval(people, models_, draws, seed), strict=True)
            ),
            "items": count,
            "apart": pairs[apart].corr().iloc[0, 1],
            "same_label": pairs[apart & same].corr().iloc[0, 1],
            "other_label": pairs[apart & ~same].corr().iloc[0, 1],
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
        Per category: Pearson correlation over the items for ``transformers, lstms``, its 95 %
        interval ``low_, high_`` over pairs of items, the correlation ``within_`` right answers
        (what is left when their means are taken away), the 2.5 and 97.5 percentiles ``null_low,
        null_high`` for guessing, and ``items`` with variance for people.

    References
    ----------
    Laverghetta et al. (2021), section 6.

    Examples
    --------
    >>> item_rest_table(draws=10).filter(regex="^[nti]").columns.tolist()
    ['transformers', 'null_low', 'null_high', 'items']
    """
    rng, rows = np.random.default_rng(seed), {}
    for category in CATEGORIES:
        people = items.item_rest(answers("people", category))["r"].dropna()
        row = {}
        for name in POPULATIONS:
            both = pd.concat([people, items.item_rest(answers(name, category))["r"]], axis=1)
            both = both.loc[people.index].dropna()
            found = _over_items(both.iloc[:, 0], both.iloc[:, 1], _BOOTSTRAP, seed)
            row[name], row[f"low_{name}"], row[f"high_{name}"] = (
                found[key] for key in ("", "low", "high")
            )
            right = _items()["label"].reindex(both.index)
            rest = both - both.groupby(right).transform("mean")
            row[f"within_{name}"] = float(rest.corr().iloc[0, 1])
        null = []
        for _ in range(draws):
            guesses = pd.DataFrame(rng.integers(0, 2, (20, len(people))), columns=people.index)
            null.append(people.corr(items.item_rest(guesses)["r"]))
        row["null_low"], row["null_high"] = np.nanquantile(null, [0.025, 0.975])
        rows[category] = row | {"items": len(people)}
    return pd.DataFrame(rows).T.astype({"items": int})


def subset_inter_item(size: int = 5, draws: int = 1000, seed: int = 0) -> pd.DataFrame:
    """Mean inter-item correlations of random subsets of all items that people answered.

    Parameters
    ----------
    size : int
        Items in a subset.
    draws : int
        How many subsets.
    seed : int
        Seed of the subsets.

    Returns
    -------
    DataFrame, shape (draws, 3)
        ``people`` (the 19 completers, whose order is the same in all categories), ``transformers,
        lstms``.

    References
    ----------
    Laverghetta et al. (2021), section 6. Its authors' script lays people's matrix on its side at
    this place, so that correlations are between people over items.

    Examples
    --------
    >>> subset_inter_item(draws=3).shape
    (3, 3)
    """
    people = answers("people", sample="completers")
    groups = {"people": people} | {name: answers(name)[people.columns] for name in POPULATIONS}
    whole = {name: x.corr().to_numpy() for name, x in groups.items()}
    rng, rows = np.random.default_rng(seed), []
    upper = np.triu_indices(size, 1)
    for _ in range(draws):
        chosen = rng.choice(people.shape[1], size, replace=False)
        rows.append(
            {name: _mean(matrix[np.ix_(chosen, chosen)][upper]) for name, matrix in whole.items()}
        )
    return pd.DataFrame(rows)


def subset_curve(
    sizes: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 80, 120),
    draws: int = 200,
    seed: int = 0,
) -> pd.DataFrame:
    """How few transformers will do? Agreement of a subset's item properties with everyone's.

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

    Returns
    -------
    DataFrame
        ``size``, ``way`` (random or chosen), ``whole, low, high`` (mean over the categories of
        the Spearman correlation between the subset's and the whole population's shares correct:
        mean, 5th and 95th percentile over the draws), ``rest`` (the same for item-rest
        correlations, Pearson), ``people`` (for people's shares, the completers').

    Examples
    --------
    >>> subset_curve((5, 10), draws=3)["way"].tolist()
    ['random', 'chosen', 'random', 'chosen']
    """
    rng = np.random.default_rng(seed)
    x = answers("transformers")
    order = _choose_models(max(sizes))
    asked = {c: _asked(c) for c in CATEGORIES}
    people = {c: _people_shares(c) for c in CATEGORIES}
    whole = {c: x[ids].mean() for c, ids in asked.items()}
    rest = {c: items.item_rest(x[ids])["r"] for c, ids in asked.items()}

    def measured(chosen: pd.DataFrame) -> tuple[float, float, float]:
        shares = {c: chosen[ids].mean() for c, ids in asked.items()}
        return (
            # A subset that solves all items alike tells nothing of their order.
            _mean(np.nan_to_num([_spearman(shares[c], whole[c]) for c in asked])),
            _mean([items.item_rest(chosen[asked[c]])["r"].corr(rest[c]) for c in asked])
            if len(chosen) > 2
            else float("nan"),
            _mean(np.nan_to_num([_spearman(shares[c], people[c]) for c in asked])),
        )

    rows = []
    for size in (s for s in sizes if s <= len(x)):
        drawn = np.array(
            [measured(x.iloc[rng.choice(len(x), size, replace=False)])
             for _ in range(draws)]
        )  # fmt: skip
        low, high = np.nanquantile(drawn[:, 0], [0.05, 0.95])
        means = [_mean(column) for column in drawn.T]
        rows.append((size, "random", means[0], low, high, means[1], means[2]))
        value = measured(x.loc[order[:size]])
        rows.append((size, "chosen", value[0], value[0], value[0], value[1], value[2]))
    columns = ["size", "way", "whole", "low", "high", "rest", "people"]
    return pd.DataFrame(rows, columns=columns)


def _choose_models(count: int = 20) -> list[str]:
    """Transformers in the order in which they best complete each other.

    Each step adds the model that brings the subset's shares correct closest (least squares) to
    the whole population's, on the items that no person was asked.

    Examples
    --------
    >>> len(_choose_models(count=3))
    3
    """
    frame, table = answers("transformers"), _items()
    x = frame[table.index[table["asked"] == ""]].to_numpy(float)
    target, total, left, order = x.mean(axis=0), np.zeros(x.shape[1]), list(range(len(x))), []
    for step in range(1, min(count, len(x)) + 1):
        errors = (((total + x[left]) / step - target) ** 2).sum(axis=1)
        best = left.pop(int(errors.argmin()))
        total = total + x[best]
        order.append(frame.index[best])
    return order


def dif(
    focal: str = "transformers",
    category: str | None = None,
    method: str = "mantel_haenszel",
    shuffle: int | None = None,
) -> pd.DataFrame:
    """Items that favour or burden some models at equal score: differential item functioning.

    Parameters
    ----------
    focal : str
        A population, set against people; or a family in ``models()["family"]``, set against the
        other transformers.
    category : str, optional
        Items of one category; by default each category in turn, matched within it, with the
        corrections for multiple tests over all items.
    method : {"mantel_haenszel", "logistic"}
        Odds ratios in strata of equal score, or logistic regression on the score, which also
        finds items that favour the group at one end of the scale only.
    shuffle : int, optional
        Seed with which to deal out group membership anew among the respondents of equal score, so
        that there is nothing to find: the null for this table.

    Returns
    -------
    DataFrame
        As :func:`psychometrics.measures.items.mantel_haenszel` or
        :func:`psychometrics.measures.items.logistic_dif` gives it, with ``category``.

    Examples
    --------
    >>> dif("bert", "MN").shape[0]
    15
    """
    families = _models().query("population == 'transformers'")["family"]
    _one_of("focal", focal, (*POPULATIONS, *sorted(families.unique())))
    _one_of("method", method, tuple(_DIF))
    parts = []
    for name in [category] if category else CATEGORIES:
        if focal in POPULATIONS:
            groups = answers("people", name), answers(focal, name)
        else:
            x, inside = answers("transformers", name), (families == focal).to_numpy()
            groups = x[~inside], x[inside]
        if shuffle is not None:
            groups = _dealt(*groups, np.random.default_rng([shuffle, len(parts)]))
        parts.append(_DIF[method](*groups).assign(category=name))
    frame = pd.concat(parts)
    return frame if category else items.adjust(frame)


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

    Examples
    --------
    >>> dif_table(families=["t5"])["models"].tolist()
    [183, 57, 5]
    """
    counts = _models().query("population == 'transformers'")["family"].value_counts()
    sizes = _models()["population"].value_counts().to_dict() | counts.to_dict()
    groups = {f"{name} against people": name for name in POPULATIONS}
    groups |= {f"{name} against other transformers": name for name in families or counts.index}
    rows = {}
    for title, name in groups.items():
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


def category_levels(levels: int = 3) -> pd.DataFrame:
    """Categories as graded items: number of items solved, cut into levels of about equal size.

    Parameters
    ----------
    levels : int
        How many levels, from 0; models with equal numbers share a level.

    Returns
    -------
    DataFrame, shape (R, 7)
        Of the transformers.

    Examples
    --------
    >>> category_levels().max().unique().tolist()
    [2]
    """
    result = {}
    for category in CATEGORIES:
        score = answers("transformers", category).sum(axis=1)
        below = score.value_counts(normalize=True).sort_index().cumsum().iloc[:-1]
        cuts = {(below - step / levels).abs().idxmin() for step in range(1, levels)}
        result[category] = np.digitize(score, sorted(cuts), right=True)
    return pd.DataFrame(result, index=score.index)


def live_table(asked: pd.DataFrame | None = None) -> pd.DataFrame:
    """Where models of today fall among the published ones.

    Parameters
    ----------
    asked : DataFrame, shape (R, I), optional
        0/1 answers of further transformers, fine-tuned from pre-trained weights, as
        :func:`ask_diagnostic` gives them; in place of rows of the same name.

    Returns
    -------
    DataFrame
        Indexed by respondent: ``population, regime, data, accuracy`` (held-out MNLI; missing for
        further ones), ``share`` of all items solved, ``rank`` (share of the published models of
        the same population with fewer or as many), ``theta`` on the Rasch scale of all published
        models, with ``se``, and ``people``: mean over the categories of the Spearman correlation
        between what it solved and the shares of people who did (missing categories left out).

    References
    ----------
    Bock and Aitkin (1981) for the scale; Laverghetta et al. (2021), section 5.1.

    Examples
    --------
    >>> live_table()["rank"].between(0, 1).all()
    np.True_
    """
    table, x = models(live=True), answers(live=True)
    if asked is not None:
        new = asked.index.difference(table.index, sort=False)
        more = pd.DataFrame(index=new, data={"population": "transformers", "regime": "both"})
        table = pd.concat([table, more])
        x = pd.concat([x.drop(index=asked.index, errors="ignore"), asked])
    frame = table[["population", "regime", "data", "accuracy"]].copy()
    frame["data"] = frame["data"].fillna("")
    x = x.loc[frame.index]
    frame["share"] = x.mean(axis=1)
    for name in POPULATIONS:
        known = np.sort(answers(name).mean(axis=1))
        chosen = frame["population"] == name
        below = np.searchsorted(known, frame.loc[chosen, "share"] + 1e-12)
        frame.loc[chosen, "rank"] = below / len(known)
    frame[["theta", "se"]] = irt.abilities(x, irt.fit(answers(), errors=False))
    frame["people"] = [_mean([_likeness(x.loc[[n]], c) for c in CATEGORIES]) for n in frame.index]
    return frame


def _regime_table() -> pd.DataFrame:
    """Share of all items solved by training regime: published models beside those of this book.

    Returns
    -------
    DataFrame
        Indexed by population and regime: ``models, share, live_models, live_share``.

    Examples
    --------
    >>> _regime_table()["models"].sum()
    np.int64(240)
    """
    parts = {}
    for prefix, live in (("", False), ("live_", True)):
        who = models(live)
        share = answers(live=live).mean(axis=1).groupby([who["population"], who["regime"]])
        parts[f"{prefix}models"], parts[f"{prefix}share"] = share.size(), share.mean()
    frame = pd.DataFrame(parts).rename_axis(["population", "regime"])
    order = [(p, r) for p in POPULATIONS for r in REGIMES.values() if (p, r) in frame.index]
    frame = frame.loc[order]
    counts = [name for name in frame if name.endswith("models")]
    return frame.fillna(dict.fromkeys(counts, 0)).astype(dict.fromkeys(counts, int))


def sentences() -> pd.DataFrame:
    """Premise and hypothesis of each item, fetched from the authors' file.

    Returns
    -------
    DataFrame
        Indexed by ``item_id`` as :func:`item_table`: ``premise, hypothesis``.

    Raises
    ------
    DataError
        The file cannot be had.
    """
    raw = pd.read_csv(
        fetch("glue_diagnostic"), sep="\t", dtype=str, keep_default_na=False, header=None, quoting=3
    )
    body = raw.iloc[2:-1, [0, 3, 4]].set_axis(["item_id", "premise", "hypothesis"], axis=1)
    body = body.assign(item_id=body["item_id"].astype(int)).set_index("item_id")
    return body.loc[_items().index]


FOLLOWS = {
    "entailment": "it must be true, too",
    "neutral": "it may be true or not",
    "contradiction": "it cannot be true",
}
"""What a person chooses from, in place of the names of the three classes."""


def questionnaire(category: str | None = None) -> Questionnaire:
    """The items that people were asked, as a questionnaire for people, scored right or wrong.

    The sentences are fetched from the authors' file; the question and the options are the
    project's. Every right answer adds 1 to its category, so a score is a number of right answers
    and can be set against :func:`answers` of people and of models.

    Parameters
    ----------
    category : str, optional
        Key of ``CATEGORIES``; by default all seven, each with a score of its own.

    Returns
    -------
    Questionnaire
        Item ids are those of :func:`item_table`, as text.

    Raises
    ------
    ParameterError
        There is no such category.
    DataError
        The sentences cannot be had.

    References
    ----------
    Laverghetta et al. (2021), section 3: the subset that people were asked.
    """
    if category is not None:
        _one_of("category", category, tuple(CATEGORIES))
    chosen = [category] if category else list(CATEGORIES)
    table = _items()
    table = table[table["asked"].isin(chosen)].join(sentences())
    entries = [
        {
            "id": str(row.Index),
            "text": f"{row.premise}\n{row.hypothesis}",
            "weights": [
                [float(row.asked == name and row.label == label) for name in chosen]
                for label in FOLLOWS
            ],
        }
        for row in table.itertuples()
    ]
    title = f"Diagnostic of inference, {CATEGORIES[category]}" if category else "Diagnostic"
    return Questionnaire.model_validate(
        {
            "id": "diagnostic" + (f"-{category.lower()}" if category else ""),
            "title": title,
            "short_title": title,
            "measures": ", ".join(CATEGORIES[name] for name in chosen),
            "citation": "laverghetta2021",
            "source": "the authors' table of answers to the GLUE diagnostic",
            "licence": "sentences of the GLUE diagnostic, read at run time and not shipped",
            "wording": "upstream",
            "instructions": "Suppose that the first of two sentences is true. What of the second?",
            "options": [
                {"value": value, "label": label}
                for value, label in enumerate(FOLLOWS.values(), start=1)
            ],
            "categories": [CATEGORIES[name] for name in chosen],
            "items": entries,
        }
    )


def ask_diagnostic(
    respondents: str | Path | object | Iterable[str | Path | object],
    store: str | Path | None = None,
    dtype: str | None = "float32",
    progress: bool = True,
) -> pd.DataFrame:
    """Put the whole diagnostic to NLI respondents, through the response store.

    Parameters
    ----------
    respondents : str or respondent, or several
        As in :func:`psychometrics.asking.ask`.
    store : str or Path, optional
        Folder of the response store.
    dtype : {"float32", "bfloat16"}, optional
        Precision; an item that hangs in the balance may fall differently in another.
    progress : bool
        Show a progress bar.

    Returns
    -------
    DataFrame of 0 and 1, shape (R, I)
        Indexed by ``respondent_id``: whether the most probable class is the right one.

    Raises
    ------
    RespondentError, DataError, StoreError
        A respondent, the sentences or the store cannot be used.
    """
    if isinstance(respondents, str):
        respondents = population(respondents)
    elif isinstance(respondents, Path) or hasattr(respondents, "answer"):
        respondents = [respondents]
    # All are looked at before the first is asked.
    who = [
        (given.identity if hasattr(given, "answer") else identify(given, dtype=dtype), given)
        for given in respondents
    ]
    names = [identity["respondent_id"] for identity, _ in who]
    if not names or len(set(names)) < len(names):
        raise RespondentError(
            "Name at least one respondent, and each only once; got " + (", ".join(names) or "none.")
        )
    table = sentences()
    right = _items()["label"].map(NLI_LABELS.index).to_numpy()
    rows = {}
    with tqdm(total=len(who) * len(table), unit="item", disable=not progress) as bar:
        for identity, respondent in who:
            chosen = _asked_now(table, identity, respondent, store, bar).argmax(axis=1)
            rows[identity["respondent_id"]] = chosen == right
    return pd.DataFrame.from_dict(rows, orient="index", columns=table.index).astype(np.int8)


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

    Examples
    --------
    >>> table = pd.DataFrame({"submission": ["a", "a", "b"], "worker": ["x", "x", "x"],
    ...                       "correct": [1, 1, 1], "attention": [False, True, True]})
    >>> check_people(table)["reason"].to_dict()
    {'a': '', 'b': 'submitted before (same worker)'}
    """
    if missing := {"submission", "worker", "correct", "attention"} - set(table.columns):
        raise ParameterError(f"the table of answers lacks the columns {sorted(missing)}.")
    for name in ("correct", "attention"):
        if not table[name].isin([0, 1]).all():
            raise ParameterError(f"column '{name}' must hold 0 and 1 only (or False and True).")
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


def _matrix(table: pd.DataFrame, columns: Sequence[int]) -> pd.DataFrame:
    """Answers kept as text, one character an item, as numbers."""
    matrix = np.array([list(row) for row in table["answers"]], dtype=np.int8)
    return pd.DataFrame(matrix, index=table.index, columns=columns)


def _people_shares(category: str) -> pd.Series:
    return answers("people", category, "completers").mean()


def _likeness(x: pd.DataFrame, category: str) -> float:
    """Spearman correlation of models' shares correct with those of the people of table 1."""
    people = _people_shares(category)
    return _spearman(people, x[people.index].mean())


@functools.cache
def _partitions(who: str, category: str, *options: object) -> pd.DataFrame:
    """The partitions of a group's items, which two tables judge."""
    return items.cluster_items(answers(who, category), *options)


def _tied_partitions(table: pd.DataFrame, choose: str) -> pd.DataFrame:
    """The partition that is chosen, and below it those that might as well have been."""
    if choose == "silhouette":
        return table[table["silhouette"] > table["silhouette"].iloc[0] - 1e-9]
    cheapest = table[table["cost"] < table.groupby("k")["cost"].transform("min") + 1e-9]
    # A partition is chosen if it beats those of the other k, of which the worst may be taken.
    least = cheapest.groupby("k")["silhouette"].min()
    bar = {k: least.drop(k).max() if len(least) > 1 else -np.inf for k in least.index}
    return cheapest[cheapest["silhouette"] > cheapest["k"].map(bar) - 1e-9]


def _agreements(first: pd.DataFrame, second: pd.DataFrame) -> np.ndarray:
    """Correlations of co-membership of every partition of one table with every one of another."""
    shared = [item for item in first["items"].iloc[0] if item in second["items"].iloc[0]]
    sides = []
    for table in (first, second):
        places = [table["items"].iloc[0].index(item) for item in shared]
        sides.append(_memberships(np.array(table["labels"].tolist())[:, places]))
    return sides[0] @ sides[1].T


def _memberships(labels: np.ndarray) -> np.ndarray:
    """Standardised 0/1 of each pair of items being together, a row for each partition."""
    one, two = np.triu_indices(labels.shape[1], 1)
    together = (labels[:, one] == labels[:, two]).astype(float)
    together -= together.mean(axis=1, keepdims=True)
    length = np.linalg.norm(together, axis=1, keepdims=True)
    return together / np.where(length > 1e-12, length, np.nan)


def _central(name: str, drawn: np.ndarray) -> dict[str, float]:
    """Median and central 95 % of a null distribution."""
    keys = (name, f"{name}_low", f"{name}_high")
    return dict(zip(keys, np.nanquantile(drawn, [0.5, 0.025, 0.975]), strict=True))


def _pairs(index: pd.Index) -> pd.Series:
    """Which pair each item is of."""
    return _items()["pair"].reindex(index)


@functools.cache
def _ceiling(category: str, splits: int = 500) -> float:
    """Square root of the reliability of people's order, from random halves of them."""
    from scipy.stats import rankdata

    x, rng = answers("people", category, "completers").to_numpy(), np.random.default_rng(0)
    orders = rng.permuted(np.tile(np.arange(len(x)), (splits, 1)), axis=1)
    halves = np.split(x[orders], [len(x) // 2], axis=1)
    r = _mean(_row_correlations(*(rankdata(half.mean(axis=1), axis=1) for half in halves)))
    return float(np.sqrt(max(2 * r / (1 + r), 0)))


def _labels(index: pd.Index) -> pd.Categorical:
    return pd.Categorical(_items().loc[index, "label"], categories=NLI_LABELS)


def _over_items(
    first: pd.Series, second: pd.Series, draws: int, seed: int, ranks: bool = False
) -> dict[str, float]:
    """Correlation over items, with its interval and its null, in both of which twins stay twins."""
    a, b, pairs = first.to_numpy(float), second.to_numpy(float), _pairs(first.index)
    n, rng = len(a), np.random.default_rng(seed)
    names = ("", "low", "high", "p", "null", "null_low", "null_high")
    found = dict.fromkeys(names, float("nan")) | {"n": n}
    if n < 4 or min(np.ptp(a), np.ptp(b)) < 1e-12:
        return found
    r = found[""] = float(np.corrcoef(a, b)[0, 1])
    # How often each pair was drawn is the weight of its items.
    codes, units = pd.factorize(pairs)
    drawn = rng.multinomial(len(units), np.full(len(units), 1 / len(units)), draws)[:, codes]
    again = _row_correlations(np.tile(a, (draws, 1)), np.tile(b, (draws, 1)), drawn)
    z = np.arctanh(again[np.abs(again) < 1 - 1e-9])  # undefined where one item was drawn alone
    if len(z) > 1 and abs(r) < 1 - 1e-12:
        least = np.sqrt((1 + ranks * r**2 / 2) / (n - 3))
        reach = 1.959964 * max(z.std(ddof=1), least)
        found["low"], found["high"] = np.tanh(np.arctanh(r) + np.array([-reach, reach]))
    null = _row_correlations(np.tile(a, (draws, 1)), b[items.block_orders(pairs, draws, seed)])
    found |= _central("null", null)
    found["p"] = items.null_p_value(r, null)
    return found


def _by_labels_alone(difficulties: pd.Series, draws: int, seed: int, people: int = 20):
    """Correlations of difficulties with those for populations that only prefer some labels."""
    labels, rng = _labels(difficulties.index), np.random.default_rng(seed)
    chance = rng.dirichlet(np.ones(len(labels.categories)), size=draws)[:, labels.codes]
    counts = rng.binomial(people, chance)
    hard = np.log((people - counts + 0.5) / (counts + 0.5))
    return _row_correlations(np.tile(difficulties.to_numpy(), (draws, 1)), hard)


def _row_correlations(
    a: np.ndarray, b: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    w = np.ones_like(a) if weights is None else weights.astype(float)
    w /= w.sum(axis=1, keepdims=True)
    a = a - (w * a).sum(axis=1, keepdims=True)
    b = b - (w * b).sum(axis=1, keepdims=True)
    scale = np.sqrt((w * a**2).sum(axis=1) * (w * b**2).sum(axis=1))
    out = np.full(len(a), np.nan)
    return np.divide((w * a * b).sum(axis=1), scale, out=out, where=scale > 1e-12)


def _matrix_interval(
    first: pd.DataFrame, second: pd.DataFrame, draws: int, seed: int
) -> tuple[float, float]:
    """95 % interval of the correlation of two matrices' entries, drawing pairs of items again."""
    a, b = first.to_numpy(), second.loc[first.index, first.columns].to_numpy()
    known = (np.isfinite(a).sum(axis=0) > 1) & (np.isfinite(b).sum(axis=0) > 1)
    a, b = a[np.ix_(known, known)], b[np.ix_(known, known)]
    units = list(_pairs(first.index[known]).groupby(_pairs(first.index[known])).indices.values())
    rng, values = np.random.default_rng(seed), []
    for _ in range(min(draws, 500)):
        drawn = np.concatenate([units[k] for k in rng.integers(0, len(units), len(units))])
        one, two = drawn[np.array(np.triu_indices(len(drawn), 1))]
        other = one != two
        values.append(np.corrcoef(a[one[other], two[other]], b[one[other], two[other]])[0, 1])
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def _dealt(
    reference: pd.DataFrame, focal: pd.DataFrame, rng: np.random.Generator
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both groups again, with as many members of every score, but others."""
    both = pd.concat([reference, focal], ignore_index=True)
    member = np.arange(len(both)) >= len(reference)
    for places in both.groupby(both.sum(axis=1)).indices.values():
        member[places] = rng.permutation(member[places])
    return both[~member], both[member]


@functools.cache
def _rasch(category: str) -> pd.DataFrame:
    return pd.DataFrame(
        {who: irt.fit(answers(who, category), errors=False)["difficulty"] for who in _GROUPS}
    )


def _shared(first: pd.Series, second: pd.Series) -> tuple[pd.Series, pd.Series]:
    """Two partitions on the items that both hold (items without variance may have been dropped)."""
    one, two = (pd.Series(part["labels"], part["items"]) for part in (first, second))
    both = [item for item in one.index if item in two.index]
    return one[both], two[both]


def _asked_now(
    table: pd.DataFrame, identity: dict, respondent: object, store: str | Path | None, bar: tqdm
) -> np.ndarray:
    """Probabilities of the three labels, (I, 3), from the store where they are there."""
    pairs = list(zip(table["premise"], table["hypothesis"], strict=True))
    keys = [key_of(identity["fingerprint"], *pair) for pair in pairs]
    name = identity["respondent_id"]
    with open_answers(store, "nli", "glue-diagnostic", name, identity, NLI_LABELS) as kept:
        new = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in kept}
        bar.update(len(keys) - len(new))
        missing = list(new)
        for start in range(0, len(missing), _CHUNK):
            if not hasattr(respondent, "answer"):
                respondent = load_respondent(respondent, dtype=identity["dtype"])
            chunk, began = missing[start : start + _CHUNK], time.perf_counter()
            values = respondent.answer([new[key] for key in chunk])
            rows = pd.DataFrame(values, columns=NLI_LABELS, index=pd.Index(chunk, name="key"))
            kept.add(rows, seconds=time.perf_counter() - began)
            bar.update(len(chunk))
        return kept.rows.loc[keys, list(NLI_LABELS)].to_numpy()


def _mean(values) -> float:
    values = np.asarray(values, dtype=float)
    values = values[np.isfinite(values)]
    return float(values.mean()) if len(values) else float("nan")


def _spearman(first: pd.Series, second: pd.Series) -> float:
    """Spearman's correlation, missing where one side has no variance."""
    a, b = first.rank(), second.rank()
    return float(np.corrcoef(a, b)[0, 1]) if a.nunique() > 1 and b.nunique() > 1 else float("nan")


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


def _models(live: bool | str | Path = False) -> pd.DataFrame:
    """Who the models are, with their answers as text."""
    if live is False:
        return _published_models()
    path = data_dir() / "diagnostic" / "live.csv.gz" if live is True else live
    frame = pd.read_csv(path, dtype={"answers": str, "fingerprint": str}, keep_default_na=False)
    return frame.set_index("respondent_id")


@functools.cache
def _published_models() -> pd.DataFrame:
    path = data_dir() / "diagnostic" / "models.csv.gz"
    frame = pd.read_csv(path, dtype={"answers": str}, keep_default_na=False)
    return frame.set_index("respondent_id")


@functools.cache
def _published_answers() -> pd.DataFrame:
    return _matrix(_published_models(), _items().index)


@functools.cache
def _items() -> pd.DataFrame:
    path = data_dir() / "diagnostic" / "items.csv"
    table = pd.read_csv(path, keep_default_na=False).set_index("item_id")
    return table.assign(pair=table.index // 2)


@functools.cache
def _people() -> pd.DataFrame:
    path = data_dir() / "diagnostic" / "people.csv.gz"
    return pd.read_csv(path, dtype={"answers": str})
