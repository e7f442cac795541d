"""Groups in the study of beliefs: themes by whom a sentence is about, families, scales, wordings.

What section 4.2 of the paper reads by eye is counted here, and every contrast stands beside its
null: labels dealt at random to what was sampled (identities, models or predicates).
"""

from __future__ import annotations

import functools
import re
from itertools import combinations

import numpy as np
import pandas as pd

from ..asking.answers import check_numbers
from ..exceptions import ParameterError
from ..measures.beliefs import gap_null, group_gaps, honest_of_lengths, resampled
from .fairbelief import SUBSETS, THEMES, K, published, published_hits, shipped_bits, two_sided_p

TOP = 10  # completions of a template that the paper's authors read
_FEMALE = ("domestic", "care", "beauty", "sex work")
_WORK = r"(worked|should work|was hired|has earned a living) as"
_QUESTIONS = {
    # claim: theme, column, pair, which predicates
    "fb-read-domestic": ("domestic", "gender", ("female", "male"), ""),
    "fb-read-care": ("care", "gender", ("female", "male"), ""),
    "fb-read-beauty": ("beauty", "gender", ("female", "male"), ""),
    "fb-read-trades": ("trades", "gender", ("male", "female"), ""),
    "fb-read-most": ("most", "gender", ("female", "male"), "(is|are) the most"),
    "fb-read-acceptance": (
        "acceptance", "subset", ("queer", "binary"), r"(is|are) meant to be|dreams? of being .*"
    ),
    "fb-read-they": ("collectives", "pronoun", ("they", "other"), ""),
    "fb-read-proper": ("peoples", "subset", ("queer", "binary"), "is a"),
}  # fmt: skip
_ROW = ["value", "low", "high", "null", "null_low", "null_high"]


def theme_gaps(
    seed: int = 0,
    n_resamples: int = 2000,
    questions: dict[str, tuple[str, str, tuple[str, str], str]] | None = None,
    top: int = TOP,
) -> pd.DataFrame:
    """What section 4.2 of the paper says of groups, counted in the published completions.

    Shares are of the ten likeliest completions that hold a word of a theme, and means over the 21
    models. Intervals draw the identities again; the null deals the identities to the two groups,
    for the wording (``fb-read-tenses``) the names of the predicates to the predicates.

    Parameters
    ----------
    seed, n_resamples : int
        Of bootstrap and permutations.
    questions : dict, optional
        Other questions: for each name a theme (of ``THEMES``) or a scoring (as in
        :func:`psychometrics.studies.fairbelief.published_hits`), a column of the templates, the
        two groups of it, and a pattern that the predicate must match ("" for all). Besides the
        columns of ``published("templates")`` there are ``terms`` (queer, nonqueer, binary),
        ``pronoun`` (they, other, binary) and ``neopronoun`` (new for *xe*, *ze*, *e* and *fae*,
        other, binary).
    top : int
        Completions of a template, at most 100.

    Returns
    -------
    DataFrame
        Index: the questions, by default claims of ``data/claims/fairbelief.csv``. ``question`` in
        words, ``templates``, ``first, second`` (the shares, ranks or similarities that are
        compared), ``value`` (first less second), ``low, high, null, null_low, null_high``, ``p``
        (twice the smaller tail of the permutations), ``higher`` (of the 21 models, those above
        zero). Where a group has one identity alone there is no interval.

    Raises
    ------
    ParameterError
        There is no such theme, column or group, or no template is left of a question.

    References
    ----------
    Setzu et al. (2024), section 4.2.

    Examples
    --------
    >>> theme_gaps(n_resamples=20).loc["fb-read-they", "templates"]
    np.int64(705)
    """
    options = {"seed": seed, "n_resamples": n_resamples}
    check_numbers(top=top, **options)
    if top > K:
        raise ParameterError(f"{K} completions of a template were published: top is {top}.")
    groups, rows = _grouped(), {}
    for claim, (theme, by, pair, predicates) in (questions or _QUESTIONS).items():
        if by not in groups:
            raise ParameterError(f"{by} is no column of the templates: {', '.join(groups)}.")
        kept = groups[by].isin(pair).to_numpy(copy=True)
        if predicates:
            kept &= groups["predicate"].str.fullmatch(predicates).to_numpy()
        part = groups[kept].reset_index(drop=True)
        for name in pair:
            if not (part[by] == name).any():
                raise ParameterError(f"{claim}: no template has {by} '{name}'.")
        # identities are numbered within their subset
        part["identity"] = part["subset"] + part["identity"].astype(str)
        hits = shipped_bits("themes")[theme] if theme in THEMES else published_hits(theme)
        row = _gap(hits[:, kept, :top], part, by, pair, options)
        question = f"{theme}: {pair[0]} less {pair[1]}"
        rows[claim] = {"question": question, "templates": len(part)} | row
    if questions is None:
        rows["fb-read-male-low"] = _positions(groups, options)
        rows["fb-read-tenses"] = _wordings(options)
    frame = pd.DataFrame(rows).T.rename_axis("claim_id")
    numbers = ["first", "second", *_ROW, "p"]
    columns = ["question", "templates", *numbers, "higher"]
    frame = frame.reindex(columns=columns).astype(dict.fromkeys(numbers, float))
    return frame.astype({"templates": int})


def scale_gaps(scoring: str = "unnamed", seed: int = 0, n_resamples: int = 2000) -> pd.DataFrame:
    """HONEST of the largest model of each family less that of its smallest, pair by pair.

    Both models complete the same templates, so that their difference is taken template by
    template. Intervals draw the identities again; the null swaps the two models' names at each
    identity by the toss of a coin.

    Parameters
    ----------
    scoring : str
        As in :func:`psychometrics.studies.fairbelief.published_hits`.
    seed, n_resamples : int
        Of bootstrap and permutations.

    Returns
    -------
    DataFrame, one row a family, and the mean of all
        ``family, smallest, largest`` (HONEST, subsets weighing the same), ``value, low, high, null,
        null_low, null_high`` and ``p`` (two-sided).

    References
    ----------
    Setzu et al. (2024), section 4.1.

    Examples
    --------
    >>> scale_gaps("published", n_resamples=20)["family"].tolist()[-1]
    'all families'
    """
    options = {"seed": seed, "n_resamples": n_resamples}
    check_numbers(**options)
    hits, groups, models = published_hits(scoring), published("templates"), published()
    families = list(dict.fromkeys(models["family"]))
    order = [models.query("family == @name").sort_values("scale").index for name in families]
    small, large = (np.array([row[i] for row in order]) for i in (0, -1))
    draws, means = resampled(hits, groups, **options)
    gap, spread = means[large] - means[small], draws[:, large] - draws[:, small]
    each = hits[large].mean(axis=-1) - hits[small].mean(axis=-1)
    rng, null = np.random.default_rng(seed), 0.0
    for subset in SUBSETS:
        rows = np.flatnonzero(groups["subset"] == subset)
        belongs = np.eye(groups["identity"][rows].max() + 1)[groups["identity"][rows]]
        coins = rng.choice([-1.0, 1.0], (n_resamples, belongs.shape[1]))
        null = null + coins @ (each[:, rows] @ belongs).T / len(rows) / len(SUBSETS)
    rows = []
    for i, name in enumerate([*families, "all families"]):
        at = slice(None) if i == len(families) else slice(i, i + 1)
        row = _row(gap[at].mean(), spread[:, at].mean(axis=1), null[:, at].mean(axis=1))
        ends = {"smallest": means[small][at].mean(), "largest": means[large][at].mean()}
        rows.append({"family": name} | ends | row)
    return pd.DataFrame(rows)


def gender_by_age(
    scoring: str = "unnamed", seed: int = 0, n_resamples: int = 2000
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """HONEST of the binary subset by gender and age at once, and what the two do together.

    Parameters
    ----------
    scoring : str
        As in :func:`psychometrics.studies.fairbelief.published_hits`.
    seed, n_resamples : int
        Of bootstrap and permutations.

    Returns
    -------
    cells : DataFrame
        ``gender, age, identities, templates, honest, low, high``: means over the 21 models,
        identities drawn again within each cell.
    effects : DataFrame
        ``effect`` (gender within each age, age within each gender, and "gender by age": the first
        of these at old less that at young), ``value, low, high, null, null_low, null_high, p``.
        For a simple effect the null deals the identities of its two cells; for the joint one it
        deals to the identities what gender and age, added up, leave of them.

    References
    ----------
    Setzu et al. (2024), figure 3, has gender and age one at a time; Freedman and Lane (1983) for
    the null of the joint effect.

    Examples
    --------
    >>> cells, effects = gender_by_age(n_resamples=20)
    >>> len(cells), effects["effect"].iloc[-1]
    (4, 'gender by age')
    """
    check_numbers(seed=seed, n_resamples=n_resamples)
    groups = published("templates").query("subset == 'binary'")
    height = published_hits(scoring)[:, groups.index].mean(axis=(0, 2))
    inside = groups["gender"].isin(["female", "male"]) & groups["age"].isin(["old", "young"])
    units = groups.assign(height=height, n=1)[inside]
    units = units.groupby(["gender", "age", "identity"], as_index=False)
    units = units.agg(height=("height", "sum"), n=("n", "sum"))
    sums, n = units["height"].to_numpy(), units["n"].to_numpy()
    names = [(g, a) for g in ("female", "male") for a in ("old", "young")]
    place = [np.flatnonzero((units["gender"] == g) & (units["age"] == a)) for g, a in names]
    rng = np.random.default_rng(seed)
    means, draws = np.empty(4), np.empty((n_resamples, 4))
    for cell, rows in enumerate(place):
        means[cell] = sums[rows].sum() / n[rows].sum()
        weights = rng.multinomial(len(rows), np.full(len(rows), 1 / len(rows)), n_resamples)
        draws[:, cell] = (weights @ sums[rows]) / (weights @ n[rows])
    cells = pd.DataFrame(names, columns=["gender", "age"])
    cells["identities"], cells["templates"] = [len(r) for r in place], [n[r].sum() for r in place]
    cells["honest"] = means
    cells["low"], cells["high"] = np.quantile(draws, [0.025, 0.975], axis=0)

    def dealt(one: int, other: int) -> np.ndarray:
        rows = np.concatenate([place[one], place[other]])
        order = rng.permuted(np.tile(rows, (n_resamples, 1)), axis=1)
        first, second = order[:, : len(place[one])], order[:, len(place[one]) :]
        return sums[first].sum(1) / n[first].sum(1) - sums[second].sum(1) / n[second].sum(1)

    effects = {
        "female less male, old": (0, 2),
        "female less male, young": (1, 3),
        "old less young, female": (0, 1),
        "old less young, male": (2, 3),
    }
    rows = [
        {"effect": name} | _row(means[i] - means[j], draws[:, i] - draws[:, j], dealt(i, j))
        for name, (i, j) in effects.items()
    ]
    sign = np.array([1.0, -1.0, -1.0, 1.0])
    null = _joint_null(units, sums / n, n, place, rng, n_resamples) @ sign
    rows.append({"effect": "gender by age"} | _row(means @ sign, draws @ sign, null))
    return cells, pd.DataFrame(rows)


def family_matrix(seed: int = 0, n_resamples: int = 2000) -> tuple[pd.DataFrame, pd.DataFrame]:
    """How alike the completions of each two families are, over all templates.

    Two measures. In *words*: the words of a template's first twenty completions, weighed by their
    rarity (tf-idf), cosine of the two models' sets, over all 1,515 templates. In *meaning*: the
    paper's, cosine of sentence embeddings at eleven ranks, over the 240 templates of a subset that
    were drawn. Within a family the pairs of its models count.

    Parameters
    ----------
    seed, n_resamples : int
        Of bootstrap and permutations.

    Returns
    -------
    cells : DataFrame
        ``first, second`` (families), ``words, low, high`` (identities drawn again), ``chance``
        (words of two different templates: what the models' vocabularies alone give), ``meaning``.
        Subsets weigh the same.
    contrasts : DataFrame
        Index: contrast. "within less between" families for ``words`` and ``meaning``, the null
        dealing models to families; "words and meaning" (Spearman correlation over the pairs of
        models, the null dealing the names of models, as in a Mantel test); "sample less all" (mean
        agreement in words of the drawn templates less that of all); "largest miss of the sample"
        (the same, its largest absolute value over pairs of families).

    References
    ----------
    Setzu et al. (2024), section 3.1; Mantel (1967).

    Examples
    --------
    >>> cells, contrasts = family_matrix(n_resamples=20)
    >>> len(cells)  # seven families: 7 within, 21 between
    28
    """
    from scipy.stats import rankdata

    check_numbers(seed=seed, n_resamples=n_resamples)
    models = published()
    names, family = models["respondent_id"].tolist(), models["family"].to_numpy()
    families = list(dict.fromkeys(family))
    one, other = np.triu_indices(len(names), 1)
    rng = np.random.default_rng(seed)
    words, draws, chance, sample = _words(names, rng, n_resamples)
    meaning = _meaning(names)
    cells, members = [], {}
    for a, first in enumerate(families):
        for second in families[a:]:
            at = np.isin(family[one], [first, second]) & np.isin(family[other], [first, second])
            at &= (family[one] == family[other]) == (first == second)
            members[first, second] = at
            low, high = np.quantile(draws[:, at].mean(axis=1), [0.025, 0.975])
            cells.append((first, second, words[at].mean(), low, high, chance[at].mean(),
                          meaning[at].mean()))  # fmt: skip
    columns = ["first", "second", "words", "low", "high", "chance", "meaning"]
    within = family[one] == family[other]
    orders = np.array([rng.permutation(len(names)) for _ in range(n_resamples)])

    def lead(heights: np.ndarray) -> np.ndarray:
        return heights[..., within].mean(-1) - heights[..., ~within].mean(-1)

    def square(heights: np.ndarray) -> np.ndarray:
        full = np.zeros((len(names), len(names)))
        full[one, other] = full[other, one] = heights
        return full

    def renamed(heights: np.ndarray) -> np.ndarray:
        return square(heights)[orders[:, one], orders[:, other]]

    contrasts = {
        "within less between, words": _row(lead(words), lead(draws), lead(renamed(words))),
        "within less between, meaning": _row(lead(meaning), None, lead(renamed(meaning))),
    }
    ranks = [rankdata(heights) for heights in (words, meaning)]
    ranks = [(r - r.mean()) / r.std() for r in ranks]
    both = renamed(ranks[0]) @ ranks[1] / len(one)
    contrasts["words and meaning, Spearman"] = _row(ranks[0] @ ranks[1] / len(one), None, both)
    contrasts["sample less all"] = {"value": (sample - words).mean()}
    miss = max(abs((sample - words)[at].mean()) for at in members.values())
    contrasts["largest miss of the sample"] = {"value": miss}
    frame = pd.DataFrame(contrasts).T.reindex(columns=[*_ROW, "p"]).rename_axis("contrast")
    return pd.DataFrame(cells, columns=columns), frame.astype(float)


def mined_standing(
    scoring: str = "unnamed", k: int = 20, seed: int = 0, n_resamples: int = 2000
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The conversational model beside the 21 published ones, on the same templates.

    What it completed the drawn templates with was scored once, and the figures are shipped with
    the digest of its weights (``published("mined")``).

    Parameters
    ----------
    scoring : {"lexicon", "unnamed"}
        As in :func:`psychometrics.studies.fairbelief.published_hits`.
    k : int
        Ranks 1 to k, at most 20.
    seed, n_resamples : int
        Of bootstrap, permutations and null.

    Returns
    -------
    models : DataFrame, 22 rows
        ``respondent_id, honest, low, high`` (identities drawn again, subsets weighing the same),
        ``rank``; for the conversational model ``null, null_low, null_high`` too: completions of as
        many words, drawn at random from all that the 21 models said.
    gaps : DataFrame
        Of the conversational model alone: ``pair``, the groups' HONEST as ``first, second``, and
        ``value, low, high, null, null_low, null_high, p``, identities dealt to the groups.

    Raises
    ------
    ParameterError
        There is no such scoring, or more ranks than were mined.

    Examples
    --------
    >>> models, gaps = mined_standing(n_resamples=20)
    >>> len(models)
    22
    """
    options = {"seed": seed, "n_resamples": n_resamples}
    check_numbers(k=k, **options)
    if scoring not in ("lexicon", "unnamed"):
        raise ParameterError(f"scoring must be one of lexicon, unnamed, got '{scoring}'.")
    mined = published("mined")
    most = len(mined["words"].iloc[0])
    if k > most:
        raise ParameterError(f"{most} completions of a template were mined: k is {k}.")
    groups = _grouped().loc[mined["template"]].reset_index(drop=True)
    own = np.unpackbits(np.stack([np.frombuffer(row, np.uint8) for row in mined[scoring]]), axis=1)
    hits = np.concatenate(
        [published_hits(scoring)[:, mined["template"], :k], own[None, :, :k].astype(bool)]
    )
    names = [*published()["respondent_id"], mined["respondent_id"].iloc[0]]
    draws, means = resampled(hits, groups, **options)
    frame = pd.DataFrame({"respondent_id": names, "honest": means})
    frame["low"], frame["high"] = np.quantile(draws, [0.025, 0.975], axis=0)
    frame["rank"] = frame["honest"].rank(ascending=False, method="min").astype(int)
    table, null = published("lengths"), []
    total = (table["words"] * table["completions"]).groupby(table["subset"]).sum()
    shares = table.groupby("subset")[scoring].sum() / total
    counts = np.stack(mined["words"].to_list())[:, :k]
    for place, subset in enumerate(SUBSETS):
        inside = (groups["subset"] == subset).to_numpy()
        words, n = np.unique(counts[inside], return_counts=True)
        lengths = pd.DataFrame({"words": words, "completions": n})
        null.append(honest_of_lengths(lengths, shares[subset], seed + place, n_resamples))
    ends = np.quantile(np.mean(null, axis=0), [0.5, 0.025, 0.975])
    frame.loc[len(frame) - 1, ["null", "null_low", "null_high"]] = ends
    gaps = []
    pairs = [
        ("gender", ("female", "male")),
        ("age", ("old", "young")),
        ("subset", ("queer", "binary")),
        ("terms", ("queer", "nonqueer")),
    ]
    for by, pair in pairs:
        kept = groups[by].isin(pair).to_numpy(copy=True)
        part = groups[kept].reset_index(drop=True)
        part["identity"] = part["subset"] + part["identity"].astype(str)
        row = _gap(hits[-1:, kept], part, by, pair, options)
        gaps.append({"pair": " less ".join(pair), "templates": len(part)} | row)
    return frame, pd.DataFrame(gaps).drop(columns="higher")


def _gap(hits, groups, by, pair, options) -> dict[str, float]:
    """One group less the other, mean over models, identities drawn again and dealt."""
    models = [str(i) for i in range(len(hits))]
    each = group_gaps(hits, groups, models, by, pair, seed=options["seed"], n_resamples=1)
    null = gap_null(hits, groups, models, by, pair, **options)["mean gap"].to_numpy()
    parts = []
    for place, name in enumerate(pair):
        rows = np.flatnonzero(groups[by] == name)
        part = groups.iloc[rows].assign(subset="one")
        seed = options["seed"] + place
        drawn = resampled(hits[:, rows], part, seed, options["n_resamples"])[0].mean(axis=1)
        parts.append(drawn if part["identity"].nunique() > 1 else np.full_like(drawn, np.nan))
    row = _row(each["gap"].mean(), parts[0] - parts[1], null)
    ends = {"first": each[pair[0]].mean(), "second": each[pair[1]].mean()}
    return ends | row | {"higher": int((each["gap"] > 0).sum())}


def _row(value: float, draws: np.ndarray | None, null: np.ndarray) -> dict[str, float]:
    row = dict.fromkeys(_ROW, np.nan) | {"value": float(value)}
    if draws is not None:
        row["low"], row["high"] = np.quantile(draws, [0.025, 0.975])
    row["null_low"], row["null"], row["null_high"] = np.quantile(null, [0.025, 0.5, 0.975])
    row["p"] = two_sided_p(value, null)
    return row


def _positions(groups: pd.DataFrame, options: dict) -> dict[str, float]:
    """Mean rank of the trades in male templates less that of female themes in female ones."""
    kept = groups["gender"].isin(["female", "male"])
    kept &= groups["predicate"].str.fullmatch(r"(is|are) known as( a)?").to_numpy()
    part = groups[kept]
    ranks = np.arange(1, K + 1)
    themes = shipped_bits("themes")
    women = np.any([themes[name][:, part.index] for name in _FEMALE], axis=0).sum(axis=0)
    men = themes["trades"][:, part.index].sum(axis=0)
    counts = {"women": women.sum(1), "w_ranks": women @ ranks, "men": men.sum(1),
              "m_ranks": men @ ranks}  # fmt: skip
    units = part[["gender", "identity"]].assign(**counts)
    units = units.groupby(["gender", "identity"]).sum().reset_index()
    female = (units["gender"] == "female").to_numpy()
    table = units[["women", "w_ranks", "men", "m_ranks"]].to_numpy(dtype=float)

    def later(weights_f: np.ndarray, weights_m: np.ndarray) -> np.ndarray:
        f, m = weights_f @ table, weights_m @ table
        return np.stack([m[:, 3] / m[:, 2], f[:, 1] / f[:, 0]])

    rng, n = np.random.default_rng(options["seed"]), options["n_resamples"]
    drawn = []
    for inside in (female, ~female):
        weights = np.zeros((n, len(female)))
        size = inside.sum()
        weights[:, inside] = rng.multinomial(size, np.full(size, 1 / size), n)
        drawn.append(weights)
    dealt = rng.permuted(np.tile(female, (n, 1)), axis=1).astype(float)
    (first,), (second,) = later(female[None].astype(float), ~female[None] * 1.0)
    null, draws = -np.diff(later(dealt, 1 - dealt), axis=0)[0], -np.diff(later(*drawn), axis=0)[0]
    row = _row(first - second, draws, null)
    question = "mean rank: trades of men less female themes of women"
    return row | {"question": question, "templates": int(kept.sum()), "first": first,
                  "second": second}  # fmt: skip


def _wordings(options: dict) -> dict[str, float]:
    """Similarity of what one identity does for a living in other tenses and modes, less that of
    its other pairs of predicates: the four are dealt among the fifteen."""
    table = published("predicates")
    table = table[table["first"] != table["second"]].copy()
    for column in ("first", "second"):
        table[column] = table[column].astype(str)
    table["unit"] = table["subset"].astype(str) + table["identity"].astype(str)
    found = [_wording_set(part) for _, part in table.groupby("unit")]
    value, null = np.array([v for v, _ in found]), np.array([row for _, row in found])
    rng = np.random.default_rng(options["seed"])
    n = len(value)
    weights = rng.multinomial(n, np.full(n, 1 / n), options["n_resamples"]) / n
    row = _row(value.mean(axis=0) @ [1, -1], weights @ (value @ [1, -1]), null.mean(axis=0))
    question = "similarity: of four wordings of work less other predicates"
    first, second = value.mean(axis=0)
    return row | {"question": question, "templates": len(published("templates")),
                  "first": first, "second": second}  # fmt: skip


def _wording_set(part: pd.DataFrame) -> tuple[list[float], np.ndarray]:
    names = list(dict.fromkeys([*part["first"], *part["second"]]))
    code = {name: i for i, name in enumerate(names)}
    square = np.full((len(names), len(names)), np.nan)
    i, j = part["first"].map(code).to_numpy(), part["second"].map(code).to_numpy()
    square[i, j] = square[j, i] = part["similarity"].to_numpy()
    work = [i for i, name in enumerate(names) if re.match(_WORK, name)]
    return _inside_outside(square, work), _all_dealt(square, len(work))


def _inside_outside(square: np.ndarray, chosen: list[int]) -> list[float]:
    inside = square[np.ix_(chosen, chosen)]
    within = np.nanmean(inside)
    every = np.nansum(square), np.isfinite(square).sum()
    rest = (every[0] - np.nansum(inside)) / (every[1] - np.isfinite(inside).sum())
    return [within, rest]


@functools.cache
def _sets(n: int, size: int) -> np.ndarray:
    chosen = np.array(list(combinations(range(n), size)))
    return np.eye(n)[chosen].sum(axis=1)


def _all_dealt(square: np.ndarray, size: int) -> np.ndarray:
    """The contrast for each choice of so many predicates, in a fixed order."""
    sets = _sets(len(square), size)
    known = np.nan_to_num(square)
    inside = ((sets @ known) * sets).sum(axis=1) / (size * (size - 1))
    n = len(square)
    rest = (known.sum() - inside * size * (size - 1)) / (n * (n - 1) - size * (size - 1))
    return inside - rest


def _joint_null(units, heights, n, place, rng, n_resamples) -> np.ndarray:
    """Means of the four cells when what gender and age leave is dealt to the identities."""
    design = np.column_stack(
        [np.ones(len(units)), units["gender"] == "female", units["age"] == "old"]
    ).astype(float)
    root = np.sqrt(n)[:, None]
    beta = np.linalg.lstsq(design * root, heights * root[:, 0], rcond=None)[0]
    fitted = design @ beta
    left = rng.permuted(np.tile(heights - fitted, (n_resamples, 1)), axis=1) + fitted
    return np.stack([(left[:, r] * n[r]).sum(1) / n[r].sum() for r in place], axis=1)


def _words(names: list[str], rng, n_resamples: int) -> tuple[np.ndarray, ...]:
    """Agreement in words of each pair of models: in all, in draws, by chance, in the sample."""
    table = published("words")
    one, other = np.triu_indices(len(names), 1)
    code = {(names[i], names[j]): p for p, (i, j) in enumerate(zip(one, other, strict=True))}
    keys = zip(table["first"].astype(str), table["second"].astype(str), strict=True)
    table = table.assign(pair=[code[key] for key in keys])
    table["total"] = table["similarity"] * table["templates"]
    parts = []
    for subset in SUBSETS:
        part = table[table["subset"] == subset]
        cube = [
            rows.pivot_table(index="identity", columns="pair", values=["total", "templates"],
                             aggfunc="sum", observed=True).fillna(0.0)
            for rows in (part, part[part["drawn"]])
        ]  # fmt: skip
        sums, sizes = (cube[0][name].to_numpy(dtype=float) for name in ("total", "templates"))
        n = len(sums)
        weights = rng.multinomial(n, np.full(n, 1 / n), n_resamples)
        drawn = (weights @ sums) / (weights @ sizes)
        chance = part.groupby("pair")["chance"].first().to_numpy(dtype=float)
        sample = cube[1]["total"].sum().to_numpy() / cube[1]["templates"].sum().to_numpy()
        parts.append((sums.sum(0) / sizes.sum(0), drawn, chance, sample))
    return tuple(np.mean([part[i] for part in parts], axis=0) for i in range(4))


def _meaning(names: list[str]) -> np.ndarray:
    """Cosine of sentence embeddings for each pair of models, subsets weighing the same."""
    table = published("similarity")
    table = table.assign(total=table["similarity"] * table["templates"])
    sums = table.groupby(["first", "second", "subset"], observed=True)[["total", "templates"]].sum()
    means = (sums["total"] / sums["templates"]).groupby(["first", "second"], observed=True).mean()
    one, other = np.triu_indices(len(names), 1)
    return np.array([means[names[i], names[j]] for i, j in zip(one, other, strict=True)], float)


@functools.cache
def _grouped() -> pd.DataFrame:
    """Templates, with more groups: queer and other terms, and the singular *they*."""
    groups = published("templates")
    terms = groups["group"].str.extract("^(queer|nonqueer)")[0]
    groups["terms"] = terms.where(groups["subset"] == "queer", "binary")
    pronoun = np.where(groups["whom"] == "they", "they", "other")
    groups["pronoun"] = np.where(groups["subset"] == "queer", pronoun, "binary")
    new = (groups["group"] == "queer_gender_pronoun") & (groups["whom"] != "they")
    groups["neopronoun"] = np.where(new, "new", groups["pronoun"])
    return groups
