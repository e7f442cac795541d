"""The tests of ``data/plans/twins.yml``: ``python -m recipes.twins_tests``.

It reads the kept rows when the blocks of all bases are complete, and writes tables into
``data/bases``: ``twin-levels.csv`` (agreement, silhouettes and learning of each arm),
``twin-tests.csv`` (comparisons by base), ``twin-over.csv`` (the same over bases),
``twin-decisions.csv`` (verdicts), ``twin-against.csv`` (what the plan counts against us),
``twin-held-out.csv`` (its statements about the held-out base), ``twin-sensitivity.csv`` (other
forms, bases left out), ``twin-shares.csv`` and ``twin-between.csv`` (whose a score is). The plan's
deviations say what was written after rows of MiniLM were read.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.multitest import multipletests

from psychometrics.measures.intervals import jackknife_half_width
from psychometrics.nulls.evidence import profile_agreement
from psychometrics.questionnaires import load_questionnaire

from . import frozen_heads, twins
from .six_bases import storage
from .six_bases.comparisons import combined
from .six_bases.labels import valence
from .six_bases.plan import ASKED, BASES, REAL, tables_dir

TRUE = "inference"
PLACEBOS = ("placebo_defects", "placebo_weather")
PARTS = {
    "real": REAL,
    "placebos": PLACEBOS,
    "defects": ("placebo_defects",),
    "weather": ("placebo_weather",),
    **{name: (name,) for name in REAL},
}
"""Questionnaires by the names that statistics give them."""
HELD_OUT = "gemma-3-270m"
"""The base of whose new arms nothing is looked at before all other bases are analysed."""
COMPARISONS = (
    *(
        ("H1", statistic, TRUE, arm)
        for statistic in "AS"
        for arm in ("teacher", "overlap", "length")
    ),
    ("H1b", "A", TRUE, "sentiment"),
    ("H1b", "S", TRUE, "sentiment"),
    ("H2", "S real less placebos", TRUE, "teacher"),
    ("H2", "S real less placebos", TRUE, "sentiment"),
    ("H3", "A real less placebos", TRUE, ""),
    ("no common target", "A", "own teacher", ""),
    ("sentiment", "A", "sentiment", "teacher"),
    ("sentiment", "S", "sentiment", "teacher"),
    *(
        ("placebos", statistic, arm, "teacher")
        for statistic in ("S defects", "S weather", "S defects less weather")
        for arm in (TRUE, "sentiment")
    ),
    ("noise", "A", "noise", "hypotheses"),
    ("noise", "S", "noise", "hypotheses"),
    ("premise", "A", "premise sentiment", "sentiment"),
    ("premise", "S", "premise sentiment", "sentiment"),
    ("training", "A", TRUE, "shuffled"),
    ("training", "S", TRUE, "shuffled"),
    ("between arms", "A with true labels", "sentiment", "teacher"),
)
"""Hypothesis or secondary question, statistic, first arm, and the arm that is subtracted."""
AGAINST = (
    ("less than .15 above teacher", ("H1", "A", TRUE, "teacher"), "value", "below", 0.15),
    ("no common target is needed", ("no common target", "A", "own teacher", ""),
     "low", "above", 0.15),
    *(
        (f"true labels above sentiment, {statistic}", ("H1b", statistic, TRUE, "sentiment"),
         "low", "above", 0.0)
        for statistic in "AS"
    ),
    *(
        (f"sentiment not above teacher, {statistic}",
         ("sentiment", statistic, "sentiment", "teacher"), "low", "below", 0.0)
        for statistic in "AS"
    ),
    *(
        (f"{arm} as high as true labels, {statistic}", ("H1", statistic, TRUE, arm),
         "low", "below", 0.0)
        for statistic in "AS"
        for arm in ("overlap", "length")
    ),
    ("weather gains as defects do",
     ("placebos", "S defects less weather", "sentiment", "teacher"), "low", "below", 0.0),
)  # fmt: skip
"""What the plan counts against us, by the value or the lower end of the interval over bases.

Its last result, that H2 is not shown for teacher, is among the decisions.
"""
_UNDECIDED = pd.Series({"p": 1.0, "value": np.nan})
"""A hypothesis of which an arm was not learned on two bases."""
BOUNDS = {"A": 0.15, "S": 0.10, "A real less placebos": 0.10, "S real less placebos": 0.10}
TRUE_MAJORITY = 0.35
"""Share of the most frequent true label of the test pairs, which rows of six bases lack."""
LEARNED = 0.05
"""By how much the accuracy of an arm must exceed the share of the most frequent class."""
DECIDED = ("H1", "H1b", "H2", "H3", "no common target", "sentiment")
"""Questions that the sensitivity analysis repeats."""
FORMS = ("planned", "within scales", "scale means removed", "scale and key means removed",
         "without keys", "both kinds of terms", "ranks")  # fmt: skip
OTHERS = {
    "A": [f"A, {form}" for form in FORMS[1:]],
    "A real less placebos": [f"A real less placebos, {form}" for form in FORMS[1:]],
    "S": ["S as answered", *(f"S {name}" for name in REAL)],
    "S real less placebos": [f"S {name} less placebos" for name in REAL],
}
"""Other forms of a statistic, for the sensitivity analysis."""
PERMUTATIONS = 9999

Arms = Mapping[tuple[str, str], pd.DataFrame]
"""Rows of members with their own heads, one per block, by base and arm."""


# --- rows


def kept_arms(names: Sequence[str], head: str = "own") -> dict[tuple[str, str], pd.DataFrame]:
    """Return the kept rows of all arms of bases, with own or untrained heads."""
    arms = {}
    for base in names:
        tables = [storage.kept_rows(base, study) for study in (storage.SIX_BASES, storage.TWINS)]
        rows = pd.concat([table for table in tables if len(table)], ignore_index=True)
        facts = rows.reindex(columns=["accuracy true", "majority"])
        facts["accuracy true"] = facts["accuracy true"].fillna(rows["accuracy"])
        facts["majority"] = facts["majority"].fillna(TRUE_MAJORITY)
        rows = pd.concat([rows.drop(columns=facts.columns, errors="ignore"), facts], axis=1)
        for arm in twins.arms(base):
            own = rows[(rows["group"] == arm) & (rows["head"] == head)]
            own = own[own["block"] <= twins.BLOCKS[base]]
            if len(own):
                arms[base, arm] = own.sort_values("block").set_index("block")

    return arms


def is_complete(base: str) -> bool:
    """Return whether the rows of all planned members of a base are stored."""
    studies = (storage.SIX_BASES, storage.TWINS)
    kept = {member for study in studies for member in storage.kept_members(base, study)}
    return set(twins.order(base)) <= kept


# --- statistics


def scores_of(
    rows: pd.DataFrame, names: Sequence[str] = REAL, kind: str = "source"
) -> pd.DataFrame:
    """Return scores of one kind of the items of questionnaires, one row per member."""
    items = [item.id for name in names for item in load_questionnaire(name).items]
    return rows[[f"{kind}: {item}" for item in items]]


def scales_of(names: Sequence[str] = REAL) -> pd.Series:
    """Return the questionnaire of each item, in the order of :func:`scores_of`."""
    return pd.Series([name for name in names for _ in load_questionnaire(name).items])


def agreement(rows: pd.DataFrame, names: Sequence[str] = REAL, form: str = "planned") -> float:
    """Return agreement A of members about the items of questionnaires, in one of ``FORMS``."""
    if form == "within scales":
        return float(np.mean([agreement(rows, [name]) for name in names]))

    scores = scores_of(rows, names)
    scales = scales_of(names)
    keys = [item.keying for name in names for item in load_questionnaire(name).items]
    if form == "without keys":
        scores = scores * keys
    elif form == "ranks":
        scores = scores.rank(axis=1)
    elif form == "both kinds of terms":
        scores = (scores.to_numpy() + scores_of(rows, names, "inverse")) / 2

    removed = {
        "scale means removed": scales,
        "scale and key means removed": scales + pd.Series(keys).astype(str),
    }
    return float(profile_agreement(scores, removed.get(form))["value"])


def agreement_between(first: pd.DataFrame, second: pd.DataFrame) -> float:
    """Return the mean correlation of members of two arms in different blocks."""
    units = []
    for rows in (first, second):
        scores = scores_of(rows).to_numpy()
        centred = scores - scores.mean(axis=1, keepdims=True)
        units.append(centred / np.linalg.norm(centred, axis=1, keepdims=True))

    products = units[0] @ units[1].T
    number = len(products)
    return float((products.sum() - np.trace(products)) / (number * (number - 1)))


def silhouettes(rows: pd.DataFrame, statistic: str) -> pd.Series:
    """Return each member's silhouette S, or the one or the difference that the statistic names."""
    if statistic == "S as answered":
        return rows["silhouette as answered"]

    first, _, second = (statistic.removeprefix("S").strip() or "real").partition(" less ")
    values = scores_of(rows, PARTS[first], "silhouette").mean(axis=1)
    if second:
        values = values - scores_of(rows, PARTS[second], "silhouette").mean(axis=1)
    return values


# --- tests within a base


def paired_test(gaps: np.ndarray) -> dict[str, float]:
    """Return the mean of differences over blocks with its t interval, error and p."""
    test = stats.ttest_1samp(gaps, 0)
    low, high = test.confidence_interval()
    return {"value": gaps.mean(), "low": low, "high": high, "error": stats.sem(gaps),
            "p": test.pvalue}  # fmt: skip


def jackknife_test(statistic: Callable[[list[int]], float], blocks: Sequence[int]) -> dict:
    """Return a statistic of blocks with its jackknife interval, error and p."""
    number = len(blocks)
    value = statistic(list(blocks))
    without = [statistic([other for other in blocks if other != block]) for block in blocks]
    half = float(jackknife_half_width(np.array(without)))
    error = half / stats.t.ppf(0.975, number - 1)
    p = 2 * stats.t.sf(abs(value) / error, number - 1)
    return {"value": value, "low": value - half, "high": value + half, "error": error, "p": p}


def compare(arms: Arms, base: str, statistic: str, first: str, second: str) -> dict[str, float]:
    """Return the test of one comparison on one base, over the blocks that both arms have."""
    first_rows = arms[base, first]
    second_rows = arms[base, second] if second else first_rows
    of, _, form = statistic.partition(", ")
    form = form or "planned"
    blocks = [int(block) for block in first_rows.index.intersection(second_rows.index)]
    if statistic.startswith("S"):
        gaps = silhouettes(first_rows, statistic) - silhouettes(second_rows, statistic)
        return {"blocks": len(blocks), **paired_test(gaps.loc[blocks].to_numpy())}

    def of_blocks(chosen: list[int]) -> float:
        if statistic == "A with true labels":
            true = arms[base, TRUE].loc[chosen]
            with_first = agreement_between(true, first_rows.loc[chosen])
            return with_first - agreement_between(true, second_rows.loc[chosen])

        value = agreement(first_rows.loc[chosen], form=form)
        if of == "A real less placebos":
            return value - agreement(first_rows.loc[chosen], PLACEBOS, form)
        return value - agreement(second_rows.loc[chosen], form=form) if second else value

    return {"blocks": len(blocks), **jackknife_test(of_blocks, blocks)}


def has_learned(rows: pd.DataFrame) -> bool:
    """Return whether members of an arm are more often right than its most frequent class."""
    return bool(rows["accuracy"].mean() - rows["majority"].mean() >= LEARNED - 1e-9)


def by_base(arms: Arms, comparisons: Sequence[tuple] = COMPARISONS) -> pd.DataFrame:
    """Return comparisons on all bases.

    Parameters
    ----------
    arms : mapping
    comparisons : sequence of tuple
        As in ``COMPARISONS``.

    Returns
    -------
    DataFrame
        ``question, statistic, first, second, base, blocks, value, low, high, error, p``, and
        ``learned``, whether all arms that were taught something had learned it.
    """
    rows = []
    for base in dict.fromkeys(base for base, _ in arms):
        for question, statistic, first, second in comparisons:
            compared = [arm for arm in (first, second) if arm]
            if not {(base, arm) for arm in compared} <= {*arms}:
                continue
            if statistic == "A with true labels":
                compared.append(TRUE)
            taught = [arm for arm in compared if arm != "shuffled"]
            about = {"question": question, "statistic": statistic, "first": first, "second": second}
            about |= {"base": base} | compare(arms, base, statistic, first, second)
            rows.append(about | {"learned": all(has_learned(arms[base, arm]) for arm in taught)})

    return pd.DataFrame(rows)


def valence_of_items() -> pd.Series:
    """Return VADER's difference between premises with inverse and with source terms, by item."""
    table = frozen_heads.templates(tuple(ASKED))[0]
    cases = table.drop_duplicates(["item_id", "template", "polarity", "term"])
    scores = cases.assign(valence=cases["premise"].map(valence))
    means = scores.groupby(["item_id", "polarity"], sort=False)["valence"].mean().unstack()
    items = [item.id for name in ASKED for item in load_questionnaire(name).items]
    return (means[-1] - means[1]).loc[items]


def valence_tests(arms: Arms) -> pd.DataFrame:
    """Return rank correlations of gains in silhouette with the valence of items, on all bases.

    Items differ in valence mostly between questionnaires, so the mean of the correlations within
    questionnaires is given, too.
    """
    rows = []
    size = valence_of_items().abs().to_numpy()
    questionnaires = scales_of(ASKED)
    bases = dict.fromkeys(base for base, _ in arms)
    for base, arm in itertools.product(bases, (TRUE, "sentiment")):
        if not {(base, arm), (base, "teacher")} <= {*arms}:
            continue
        first, second = (
            scores_of(arms[base, name], ASKED, "silhouette") for name in (arm, "teacher")
        )
        gain = (first - second).dropna().mean().to_numpy()
        within = [
            stats.spearmanr(gain[places], size[places]).statistic
            for places in questionnaires.groupby(questionnaires).indices.values()
        ]
        correlations = {
            "rank correlation": stats.spearmanr(gain, size).statistic,
            "rank correlation within questionnaires": np.mean(within),
        }
        learned = has_learned(arms[base, arm]) and has_learned(arms[base, "teacher"])
        for statistic, rho in correlations.items():
            about = {"question": "valence of items", "statistic": statistic, "first": arm}
            about |= {"second": "teacher", "base": base, "blocks": len(first)}
            rows.append(about | {"value": float(rho), "learned": learned})

    return pd.DataFrame(rows)


# --- over bases


def over_bases(tests: pd.DataFrame, fewest_blocks: int = 4) -> pd.DataFrame:
    """Return every comparison over the bases that have a say, with the plan's decisions.

    Silhouettes are combined as in the study of six bases, with the bound on the error; agreement
    and rank correlations by the unweighted mean with Student's t over bases.
    """
    rows = []
    has_a_say = tests["learned"] & (tests["blocks"] >= fewest_blocks)
    keys = ["question", "statistic", "first", "second"]
    for key, whole in tests.groupby(keys, sort=False):
        part = whole[has_a_say[whole.index]]
        left_out = ", ".join(BASES[base].label for base in whole["base"].drop(part.index))
        if len(part) < 2:
            continue
        values = part["value"].to_numpy()
        if key[1].startswith("S"):
            row = combined(values, part["error"].to_numpy() ** 2, bounded=True)
        else:
            row = paired_test(values) | {"between": values.std(ddof=1)}
            if part["error"].notna().all():
                weighted = combined(values, part["error"].to_numpy() ** 2)
                row |= {f"weighted {name}": weighted[name] for name in ("value", "low", "high")}

        about = {"bases": len(part), "left out": left_out}
        rows.append(dict(zip(keys, key, strict=True)) | about | row)

    return pd.DataFrame(rows)


def sensitivity(arms: Arms, tests: pd.DataFrame) -> pd.DataFrame:
    """Return the comparisons of ``DECIDED`` over bases in the variants that the plan names.

    Parameters
    ----------
    arms : mapping
    tests : DataFrame
        As :func:`by_base` returns it.
    """
    decided = tests[tests["question"].isin(DECIDED)]
    others = [
        (question, other, first, second)
        for question, statistic, first, second in COMPARISONS
        if question in DECIDED
        for other in OTHERS.get(statistic, [])
    ]
    tables = {"other form": over_bases(by_base(arms, others))}
    for base in decided["base"].unique():
        tables[f"without {BASES[base].label}"] = over_bases(decided[decided["base"] != base])

    tables["arms not learned, too"] = over_bases(decided.assign(learned=True))
    return pd.concat(tables, names=["variant"]).reset_index("variant")


def decisions(over: pd.DataFrame, shares: pd.DataFrame) -> pd.DataFrame:
    """Return the confirmed hypotheses with Holm's correction, and the equivalences.

    Parameters
    ----------
    over : DataFrame
        As :func:`over_bases` returns it.
    shares : DataFrame
        As :func:`share_tests` returns it.
    """
    family = {f"H1, {statistic}": _weakest(over, statistic) for statistic in "AS"}
    of_second = over[over["question"] == "H2"].set_index("second")
    for second in ("teacher", "sentiment"):
        is_decided = second in of_second.index
        family[f"H2, {second}"] = of_second.loc[second] if is_decided else _UNDECIDED

    for _, row in shares.iterrows():
        family[f"H4, {row['scale']}"] = pd.Series({"p": row["p"], "value": row["share"] - 0.5})

    table = pd.DataFrame(family).T.reindex(columns=["second", "bases", "value", "low", "high", "p"])
    table = table.astype({"second": object})
    table["holm"] = multipletests(table["p"].astype(float), method="holm")[1]
    shown = np.where(table["value"] > 0, "higher", "lower")
    table["verdict"] = np.where(table["holm"] < 0.05, shown, "not shown")
    table.loc[table["value"].isna(), "verdict"] = "an arm was not learned"

    for _, row in over[over["question"].isin(["H1b", "H3", "no common target"])].iterrows():
        name = f"{row['question']}, {row['statistic']}"
        table.loc[name, table.columns.intersection(row.index)] = row
        table.loc[name, "verdict"] = interval_verdict(row)

    numbers = ["bases", "value", "low", "high", "p", "holm"]
    return table.astype(dict.fromkeys(numbers, float)).rename_axis("hypothesis").reset_index()


def _weakest(over: pd.DataFrame, statistic: str) -> pd.Series:
    """Return the comparison of H1 on which it depends: the first below zero, or the largest p."""
    part = over[(over["question"] == "H1") & (over["statistic"] == statistic)]
    if len(part) < 3:
        return _UNDECIDED
    if (part["value"] > 0).all():
        return part.loc[part["p"].idxmax()]
    return part.assign(p=1.0).loc[part["value"].idxmin()]


def counts_against_us(over: pd.DataFrame) -> pd.DataFrame:
    """Return each result of ``AGAINST`` over bases, and whether it came."""
    found = over.set_index(["question", "statistic", "first", "second"])
    rows = []
    for result, key, column, side, bar in AGAINST:
        row = found.loc[key]
        came = row[column] > bar if side == "above" else row[column] <= bar
        ends = row[["bases", "value", "low", "high"]].to_dict()
        rows.append({"result": result} | ends | {"came": bool(came)})

    return pd.DataFrame(rows)


def statements_on_held_out(arms: Arms) -> pd.DataFrame:
    """Return the plan's statements about the held-out base, by their values on its blocks."""
    members = {arm: rows for (base, arm), rows in arms.items() if base == HELD_OUT}
    a = {arm: agreement(rows) for arm, rows in members.items()}
    s = {arm: silhouettes(rows, "S").mean() for arm, rows in members.items()}
    rows = [
        ("A of true labels above .5", True, a[TRUE], a[TRUE] > 0.5),
        ("A of shuffled labels within .3 of 0", True, a["shuffled"], abs(a["shuffled"]) < 0.3),
        ("S of true labels above shuffled labels", True, s[TRUE] - s["shuffled"],
         s[TRUE] > s["shuffled"]),
        ("A of true labels less teacher above .15", False, a[TRUE] - a["teacher"],
         a[TRUE] - a["teacher"] > 0.15),
        ("A of sentiment above teacher", False, a["sentiment"] - a["teacher"],
         a["sentiment"] > a["teacher"]),
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["statement", "known before", "value", "holds"])


def interval_verdict(row: pd.Series) -> str:
    """Return what the 95 % interval of an equivalence says.

    Examples
    --------
    >>> interval_verdict(pd.Series({"statistic": "A", "low": -0.05, "high": 0.14}))
    'equivalent'
    """
    bound = BOUNDS[row["statistic"]]
    if -bound < row["low"] and row["high"] < bound:
        return "equivalent"
    if row["low"] > 0:
        return "higher"
    return "lower" if row["high"] < 0 else "not shown"


def share_between(parts: Sequence[np.ndarray]) -> float:
    """Return the intraclass correlation ICC(1) of values by group.

    Examples
    --------
    >>> share_between([np.array([1.0, 3.0]), np.array([5.0, 7.0])])  # mean squares 16 and 2
    0.777...
    """
    ratio, size, _ = _variance_ratio(parts)
    return (ratio - 1) / (ratio + size - 1)


def share_interval(parts: Sequence[np.ndarray]) -> tuple[float, float]:
    """Return the 95 % interval of :func:`share_between`."""
    ratio, size, freedom = _variance_ratio(parts)
    low, high = (ratio / stats.f.ppf(level, *freedom) for level in (0.975, 0.025))
    return (low - 1) / (low + size - 1), (high - 1) / (high + size - 1)


def _variance_ratio(parts: Sequence[np.ndarray]) -> tuple[float, float, tuple[int, int]]:
    """Return the ratio of mean squares between and within groups, their mean size, and freedoms."""
    sizes = np.array([len(part) for part in parts])
    freedom = (len(parts) - 1, int(sizes.sum()) - len(parts))
    size = (sizes.sum() - (sizes**2).sum() / sizes.sum()) / freedom[0]
    return float(stats.f_oneway(*parts).statistic), float(size), freedom


def share_tests(arms: Arms) -> pd.DataFrame:
    """Return the share of a scale score's variance between bases, and p of at most one half.

    The interval is that of the intraclass correlation by the F distribution, with the mean group
    size where groups are unequal.
    """
    rows = []
    parts = [rows for (_, arm), rows in arms.items() if arm == TRUE]
    for scale in REAL:
        values = [scores_of(part, [scale]).mean(axis=1).to_numpy()[None] for part in parts]
        share = share_between([value[0] for value in values])
        ends = share_interval([value[0] for value in values])
        rows.append((scale, len(parts), share, *ends, float(p_of_share(values)[0])))

    return pd.DataFrame(rows, columns=["scale", "bases", "share", "low", "high", "p"])


def p_of_share(parts: list[np.ndarray], share: float = 0.5) -> np.ndarray:
    """Return p of the hypothesis that at most this share of variance lies between groups.

    Parameters
    ----------
    parts : list of ndarray, shape (draws, members)
        Scores by group.
    share : float
        The share to be exceeded.
    """
    sizes = np.array([part.shape[1] for part in parts])
    means = np.stack([part.mean(axis=1) for part in parts], axis=1)
    number = sizes.sum()
    grand = (means * sizes).sum(axis=1, keepdims=True) / number
    between = (sizes * (means - grand) ** 2).sum(axis=1) / (len(parts) - 1)
    within = sum(part.var(axis=1) * part.shape[1] for part in parts) / (number - len(parts))
    size = (number - (sizes**2).sum() / number) / (len(parts) - 1)
    ratio = between / within / (1 + size * share / (1 - share))
    return stats.f.sf(ratio, len(parts) - 1, number - len(parts))


def between_bases(arms: Arms) -> dict[str, float]:
    """Return agreement of members of different bases without scale means, and two tests of it.

    The interval is the jackknife over bases. ``p permuted`` is the share of 9,999 permutations of
    each base's items within scales whose value is at least as large.
    """
    profiles = {}
    for (base, arm), rows in arms.items():
        if arm == TRUE:
            scores = scores_of(rows)
            means = scores.T.groupby(scales_of().to_numpy()).transform("mean").T
            centred = (scores - means).to_numpy()
            unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
            profiles[base] = unit.mean(axis=0)

    def mean_product(vectors: np.ndarray) -> float:
        products = vectors @ vectors.T
        return float(products[np.triu_indices(len(vectors), 1)].mean())

    vectors = np.stack(list(profiles.values()))
    places = range(len(vectors))
    test = jackknife_test(lambda chosen: mean_product(vectors[chosen]), places)
    rng = np.random.default_rng(0)
    scales = scales_of().to_numpy()
    drawn = []
    for _ in range(PERMUTATIONS):
        shuffled = vectors.copy()
        for scale in REAL:
            items = np.flatnonzero(scales == scale)
            shuffled[:, items] = rng.permuted(vectors[:, items], axis=1)
        drawn.append(mean_product(shuffled))

    reach = (1 + np.sum(np.array(drawn) >= test["value"])) / (1 + PERMUTATIONS)
    return {"bases": len(vectors), **test, "p permuted": float(reach)}


def whose_scores(arms: Arms) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return shares between bases, and agreement between bases, with each base left out as well."""
    shares, between = [], []
    for without in ("", *dict.fromkeys(base for base, _ in arms)):
        rest = {key: rows for key, rows in arms.items() if key[0] != without}
        label = BASES[without].label if without else ""
        shares.append(share_tests(rest).assign(without=label))
        between.append(between_bases(rest) | {"without": label})

    return pd.concat(shares), pd.DataFrame(between)


def levels(arms: Arms, untrained: Arms) -> pd.DataFrame:
    """Return agreement in all forms, silhouettes, signs and learning of each arm.

    Parameters
    ----------
    arms : mapping
    untrained : mapping
        The same members with untrained heads.
    """
    rows = []
    for (base, arm), table in arms.items():
        about = {"base": base, "arm": arm, "blocks": len(table)}
        for name, items in {"A": REAL, "A placebos": PLACEBOS}.items():
            result = profile_agreement(scores_of(table, items))
            rows.append(about | {"statistic": name} | result[["value", "low", "high"]].to_dict())

        for form in FORMS[1:]:
            rows.append(about | {"statistic": f"A, {form}", "value": agreement(table, form=form)})

        correlations = np.corrcoef(scores_of(table))[np.triu_indices(len(table), 1)]
        others = {"A without sign": np.abs(correlations).mean()}
        for name in (*REAL, "defects", "weather"):
            others[f"A {name}"] = agreement(table, PARTS[name])
            others[f"positive {name}"] = (scores_of(table, PARTS[name]).mean(axis=1) > 0).mean()

        others["S of untrained heads"] = silhouettes(untrained[base, arm], "S").mean()
        rows += [about | {"statistic": name, "value": value} for name, value in others.items()]

        if arm != TRUE:
            value = agreement_between(arms[base, TRUE], table)
            rows.append(about | {"statistic": "A with true labels", "value": value})

        parts = [f"S {part}" for part in PARTS if part != "real"]
        for name in ("S", *parts, "S real less placebos"):
            test = paired_test(silhouettes(table, name).to_numpy())
            ends = {end: test[end] for end in ("value", "low", "high")}
            rows.append(about | {"statistic": name} | ends)

        for name in ("accuracy", "accuracy true", "majority", "decisiveness"):
            rows.append(about | {"statistic": name, "value": table[name].mean()})

    return pd.DataFrame(rows)


# --- tables


def write() -> None:
    """Write all tables, once the blocks of all bases are complete."""
    if lacking := [base for base in twins.BLOCKS if not is_complete(base)]:
        raise ValueError(f"{', '.join(lacking)}: blocks are missing; train them.")

    arms = kept_arms([*twins.BLOCKS])
    tests = pd.concat([by_base(arms), valence_tests(arms)], ignore_index=True)
    over = over_bases(tests)
    shares, between = whose_scores(arms)
    _save(levels(arms, kept_arms([*twins.BLOCKS], "untrained")), "twin-levels")
    _save(tests, "twin-tests")
    _save(over, "twin-over")
    _save(decisions(over, shares[shares["without"] == ""]), "twin-decisions")
    _save(counts_against_us(over), "twin-against")
    _save(statements_on_held_out(arms), "twin-held-out")
    _save(sensitivity(arms, tests), "twin-sensitivity")
    _save(shares, "twin-shares")
    _save(between, "twin-between")


def _save(table: pd.DataFrame, name: str) -> None:
    if "base" in table:
        table = table.assign(base=[BASES[base].label for base in table["base"]])
    path = tables_dir() / f"{name}.csv"
    table.to_csv(path, index=False, float_format="%.6g", lineterminator="\n")


if __name__ == "__main__":
    write()
