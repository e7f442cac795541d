"""The study of beliefs: published completions beside the paper, models asked now, annotation.

Text that others own is fetched (:func:`completions`, :func:`lexicon`, :func:`templates`); figures
made of it are shipped in ``data/beliefs`` (:func:`published`, :func:`published_hits`) and made by
:mod:`data.make.beliefs`.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from ..data import available, fetch, registry
from ..exceptions import DataError, ParameterError
from ..measures.beliefs import (
    SCORINGS,
    combine_parts,
    gap_counts,
    gap_null,
    group_gaps,
    hit_parts,
    honest_intervals,
    honest_of_lengths,
    honest_summary,
    hurtful,
    missed,
    resampled,
)
from ..modes.completions import MASK, completion_rows, mine
from ..paths import data_dir

SUBSETS = ("binary", "queer")
TEXT = ("auto", "fetch", "none")
K = 100
EVERYDAY = (
    *("base", "bed", "craft", "do", "grind", "know", "love", "low"),
    *("officer", "operator", "people", "problem", "score", "story", "storyteller"),
)
"""Lemmas of HurtLex, conservative level, that are ordinary words in most sentences; our choice."""
IDENTITIES = ("gay", "homosexual", "queer")
"""Lemmas of HurtLex that HONEST's own templates use as names of identities."""
THEMES = {
    "domestic": "maid maids cleaner cleaners cook cooks cooking clean cleaning housewife "
    "housewives housekeeper housekeepers homemaker homemakers housework laundry kitchen chores "
    "dishes ironing sew sewing bake baking",
    "care": "nurse nurses nursing nanny nannies caregiver caregivers carer carers caretaker "
    "caretakers babysitter babysitters midwife midwives mother mothers mom moms mum "
    "motherhood secretary secretaries",
    "beauty": "model models beautiful pretty attractive sexy sexiest gorgeous handsome cute "
    "lovely stunning glamorous beauty desirable hot",
    "sex work": "prostitute prostitutes prostitution stripper strippers escort escorts whore "
    "whores hooker hookers",
    "trades": "farmer farmers servant servants soldier soldiers carpenter carpenters mechanic "
    "mechanics labourer labourers laborer laborers butcher butchers blacksmith miner "
    "miners builder builders",
    "most": "beautiful pretty attractive sexy gorgeous handsome popular famous vulnerable "
    "fragile weak helpless aggressive violent dangerous hostile",
    "acceptance": "accepted acceptance accept recognised recognized recognition fulfilled "
    "fulfilment fulfillment loved respected included welcome parent parents",
    "collectives": "team teams couple couples family families group groups pair band crew unit",
    "peoples": "religion religions tribe tribes race races nation nations country ethnicity clan "
    "language deity",
}
"""Themes of the paper's section 4.2 as words: those that it prints, and others like them, chosen
before they were counted."""
SCORING_NAMES = {
    "published": "as published",
    "words": "words, in ASCII",
    "lexicon": "words in the lexicon",
    "sifted": "less everyday words",
    "unnamed": "less everyday words and names",
}
"""What figures call the scorings of :func:`published_hits`."""
CATEGORIES = {
    "ps": "ethnic slurs",
    "rci": "locations and demonyms",
    "pa": "professions and occupations",
    "ddf": "physical disabilities",
    "ddp": "cognitive disabilities",
    "dmc": "moral and behavioural defects",
    "is": "social and economic disadvantage",
    "or": "plants",
    "an": "animals",
    "asm": "male genitalia",
    "asf": "female genitalia",
    "pr": "prostitution",
    "om": "homosexuality",
    "qas": "potentially negative words",
    "cds": "derogatory words",
    "re": "felonies and crime",
    "svp": "the seven deadly sins",
}
_TABLES = {
    "models": "table1.csv",
    "templates": "templates.csv",
    "categories": "categories.parquet",
    "similarity": "similarity.parquet",
    "limits": "limits.csv",
    "lengths": "lengths.csv",
    "agreement": "agreement.csv",
    "contrasts": "contrasts.csv",
    "words": "words.parquet",
    "predicates": "predicates.parquet",
    "mined": "mined.parquet",
}
_HIGH = ("VICUNA", "GPT2", "BLOOM")  # families that the paper calls the more hurtful
_UNSTEADY = ("BLOOM", "VICUNA")  # and those whose scores, it says, hang on scale
_CONTRASTS = {
    "similarity-grows-binary": ("within families, rank 20 less rank 1", "binary"),
    "similarity-grows-queer": ("within families, rank 20 less rank 1", "queer"),
    "similarity-settles-binary": ("change to rank 20 less change after", "binary"),
    "similarity-settles-queer": ("change to rank 20 less change after", "queer"),
    "similarity-bloom": ("BLOOM less others, rank 20 less rank 1", "binary"),
    "similarity-positive": ("within families", "binary"),
    "similarity-male": ("male less others", "binary"),
    "similarity-old": ("old less others", "binary"),
}
_SIFTED = {"sifted": "everyday", "unnamed": "named"}
_GENDERS = {
    "female": r"woman|women|she|mothers?|daughters?|girls?|females?|sisters?|aunts?|wife|wives|"
    r"lady|ladies|brides?|girlfriends?",
    "male": r"man|men|he|fathers?|son|boys?|males?|brothers?|uncles?|husbands?|gentleman|lords|"
    r"groom|boyfriends?",
}
_SHEET = ("annotator", "instance", "respondent_id", "rank", "label")
_STATISTICS = ("mean", "sd", "q1", "q50", "q75", "q90", "q95", "rank")
_AGES = {
    "young": r"child|children|youngs?|girls?|boys?|daughters?|son",
    "old": r"woman|women|man|men|mothers?|fathers?|aunts?|uncles?|wife|wives|husbands?|lady|ladies|"
    r"gentleman|lords",
}


def published(table: str = "models") -> pd.DataFrame:
    """The paper's table of models, and figures made of the completions that it published.

    Parameters
    ----------
    table : {"models", "templates", "categories", "similarity", "limits", "lengths", "agreement", \
"contrasts", "words", "predicates", "mined"}
        Which of them.

    Returns
    -------
    DataFrame
        "models": the 21 models with Table 1, as printed: ``respondent_id, model, family, scale`` (1
        to 3, by size), ``rank`` (1 is the most hurtful), ``mean, sd, q1, q50, q75, q90, q95``.

        "templates": groups of the 1,515 HONEST templates, without their text: ``subset, type,
        group, gender, age, identity`` (a number within the subset), ``whom`` and ``predicate`` in
        words.

        "categories": hurtful completions by kind of hurt: ``respondent_id, subset, group, gender,
        age, category, k`` and ``n``, the number of templates whose k-th completion is of that
        category; where there is none there is no row.

        "similarity": agreement of two models' completions, averaged over a seeded sample of
        templates: ``first, second`` (models), ``subset, gender, age, k, templates, similarity``.

        "limits": what the lexicon calls hurtful and is not, and the reverse: ``respondent_id, kind,
        word, categories, completions``, of 151,500. For the kinds "everyday" and "identity", how
        many hold the word, and which HurtLex categories it has; for "capital", "plural" and
        "phrase", how many are not counted though they come close to a lemma
        (:func:`psychometrics.measures.beliefs.missed`).

        "lengths": ``respondent_id, subset, words, completions``, the number of completions with so
        many words, and for each of ``lexicon, sifted, unnamed`` how many of these words are hurtful
        (:func:`psychometrics.measures.beliefs.word_counts`).

        "agreement": the same similarity by family, and by gender and age of the template, with
        intervals: ``subset, by, group, k, templates, similarity, low, high`` (2,000 draws of the
        identities); families are of pairs of models within, "between families" of all others.

        "contrasts": differences of these: ``subset, contrast, value, low, high``, and for the
        contrasts of groups ``null, null_low, null_high``, identities dealt to them at random.

        "words": agreement of two models in the words of their first twenty completions (cosine of
        tf-idf), over all templates: ``subset, first, second, identity, drawn`` (whether among the
        templates of "similarity"), ``templates, similarity`` and ``chance``, that of two different
        templates.

        "predicates": the same measure, mean over models, between predicates of an identity:
        ``subset, identity, first, second, similarity``; where ``first`` is ``second``, ``person``
        is that between this identity and others.

        "mined": what the conversational model completed the templates of "similarity" with:
        ``respondent_id, digest`` (SHA-256 of its weights), ``template`` (row of "templates"),
        ``lexicon, unnamed`` (twenty bits: whether hurtful under that scoring), ``logprob`` and
        ``words`` (how many) of the twenty completions.

    Raises
    ------
    ParameterError
        There is no such table.

    References
    ----------
    Setzu et al. (2024), Table 1.

    Examples
    --------
    >>> published()["family"].nunique(), len(published("templates"))
    (7, 1515)
    """
    _check_known("table", table, tuple(_TABLES))
    path = data_dir() / "beliefs" / _TABLES[table]
    return (
        pd.read_parquet(path)
        if path.suffix == ".parquet"
        else pd.read_csv(path, keep_default_na=table in ("agreement", "contrasts"))
    )


def completions(respondent_id: str, subset: str) -> list[list[str]]:
    """The completions that the paper's authors published of one model.

    Parameters
    ----------
    respondent_id : str
        One of :func:`published`.
    subset : {"binary", "queer"}
        Which half of the HONEST templates.

    Returns
    -------
    list of T lists of K strings
        In the order of :func:`templates`, most likely first. Offensive.

    Raises
    ------
    DataError
        The file cannot be had, or its lines are not what is expected.
    ParameterError
        There is no such subset or model.
    """
    _check_known("subset", subset, SUBSETS)
    _check_known("respondent_id", respondent_id, tuple(published()["respondent_id"]))
    path = fetch(f"fairbelief_{subset}_{respondent_id}")
    with path.open("rb") as lines:
        rows = [json.loads(line)[3] for line in lines]
    if not rows or any(len(row) != K for row in rows):
        raise DataError(f"{path} must hold {K} completions a line: fetch it again.")
    return rows


def lexicon(path: str | Path | None = None) -> pd.DataFrame:
    """A lexicon of hurtful words: HurtLex, or one of your own.

    Parameters
    ----------
    path : str or Path, optional
        A CSV, or TSV, with the columns ``lemma`` and ``category`` and, if it has levels,
        ``level``, of which *conservative* is kept, in any language; "own" for the project's short
        list; by default English HurtLex 1.2.

    Returns
    -------
    DataFrame
        ``lemma, category``; a lemma has a row for each of its categories. Offensive.

    Raises
    ------
    DataError
        The file cannot be had.
    ParameterError
        It lacks a column, or nothing is left of it.

    References
    ----------
    Bassignana, Basile and Patti (2018).

    Examples
    --------
    >>> lexicon("own")["category"].nunique()
    9
    """
    if str(path) == "own":
        path = data_dir() / "beliefs" / "own_lexicon.csv"
    path = Path(path) if path is not None else fetch("hurtlex_en")
    frame = _read_table(path, ("lemma", "category"))
    if "level" in frame:
        frame = frame[frame["level"] == "conservative"]
    if frame.empty:
        raise ParameterError(f"{path} has no lemma of the level 'conservative': add one.")
    return frame[["lemma", "category"]].drop_duplicates().reset_index(drop=True)


def templates(source: str | Path = "binary") -> pd.DataFrame:
    """Templates whose mask, ``[M]``, is to be completed.

    Parameters
    ----------
    source : {"own", "binary", "queer"} or path
        The project's templates, half of the HONEST ones, or a CSV or TSV of yours with the column
        ``template``; its other columns are groups, whatever they are called.

    Returns
    -------
    DataFrame
        ``template`` (text with one ``[M]``) and the groups; for HONEST ``identity, type, group``
        (the authors' category), ``gender`` (female, male, other), ``age`` (young, old, other) and
        ``predicate`` (what stands between the identity and the mask).

    Raises
    ------
    DataError
        The file cannot be had.
    ParameterError
        It lacks the column, or a template does not have exactly one ``[M]``.

    Examples
    --------
    >>> len(templates("own"))
    50
    """
    if str(source) == "own":
        source = data_dir() / "beliefs" / "own_templates.csv"
    if str(source) not in SUBSETS:
        frame = _read_table(Path(source), ("template",))
    else:
        frame = _read_table(fetch(f"honest_templates_{source}"), ("template_masked", "identity"))
        frame = frame.rename(columns={"template_masked": "template", "category": "group"})
        nouns = frame["identity"].str.removeprefix("the ").str.lower()
        frame["gender"], frame["age"] = "other", "other"
        if source == "binary":
            for column, kinds in (("gender", _GENDERS), ("age", _AGES)):
                for kind, pattern in kinds.items():
                    frame.loc[nouns.str.fullmatch(pattern), column] = kind
        raw = frame["raw"].str.removeprefix("[I] ").str.removeprefix("the [I] ")
        frame["predicate"] = raw.str.removesuffix(MASK).str.strip()
        frame = frame[["template", "identity", "type", "group", "gender", "age", "predicate"]]
    wrong = frame.index[frame["template"].str.count(re.escape(MASK)) != 1]
    if len(wrong):
        raise ParameterError(
            f"{source}, template {wrong[0] + 1}: write {MASK} exactly once, where the completion "
            f"belongs; it reads '{frame['template'][wrong[0]]}'."
        )
    return frame


def score_published() -> dict[str, np.ndarray]:
    """Score all published completions anew, from their text.

    Returns
    -------
    dict of ndarray of bool, shape (21, 1515, 100)
        The parts of :func:`psychometrics.measures.beliefs.hit_parts`; models and templates as in
        :func:`published`.

    Raises
    ------
    DataError
        The text cannot be had.
    """
    lemmas = lexicon()["lemma"].unique()
    models = published()["respondent_id"]
    scored = [[hit_parts(completions(m, s), lemmas) for s in SUBSETS] for m in models]
    return {
        part: np.stack([np.concatenate([half[part] for half in halves]) for halves in scored])
        for part in ("lexicon", "stripped", "switched")
    }


def published_hits(scoring: str = "published") -> np.ndarray:
    """Hits of the 21 published models, from the figures that the project ships.

    Parameters
    ----------
    scoring : {"published", "words", "lexicon", "sifted", "unnamed"}
        As in :func:`psychometrics.measures.beliefs.hurtful`; "sifted" is "lexicon" without the
        words of
        ``EVERYDAY``, "unnamed" is "sifted" without those of ``IDENTITIES``.

    Returns
    -------
    ndarray of bool, shape (21, 1515, 100)

    Raises
    ------
    ParameterError
        There is no such scoring.

    Examples
    --------
    >>> published_hits().shape
    (21, 1515, 100)
    """
    _check_known("scoring", scoring, (*SCORINGS, *_SIFTED))
    parts = shipped_bits("hits")
    if scoring in _SIFTED:
        return parts["lexicon"] & ~parts[_SIFTED[scoring]]
    return combine_parts(parts, scoring)


def text_at_hand(text: str = "auto") -> bool:
    """Whether the text that others own can be read: templates, lexicon, published completions.

    Parameters
    ----------
    text : {"auto", "fetch", "none"}
        Use it where it needs no download; download what is missing (97 MB); do without.

    Raises
    ------
    DataError
        A download failed.
    """
    _check_known("text", text, TEXT)
    keys = [key for key in registry() if key.startswith(("fairbelief_", "honest_", "hurtlex_"))]
    if text == "fetch":
        return all(fetch(key) for key in keys)
    return text == "auto" and available(*keys)


def length_null(scoring: str = "unnamed", seed: int = 0, n_resamples: int = 2000) -> np.ndarray:
    """HONEST of null respondents: each as talkative as a published model, with words of no-one.

    A null respondent's completions have as many words as the model's, drawn at random, by
    frequency, from all that the 21 models said in the subset.

    Parameters
    ----------
    scoring : {"lexicon", "sifted", "unnamed"}
        As in :func:`published_hits`.
    seed, n_resamples : int
        Of the draws.

    Returns
    -------
    ndarray, shape (n_resamples, 21)
        Subsets weigh the same, as in Table 1; models are in the order of :func:`published`.

    Raises
    ------
    ParameterError
        There is no such scoring.

    Examples
    --------
    >>> length_null(n_resamples=10).shape
    (10, 21)
    """
    _check_known("scoring", scoring, ("lexicon", *_SIFTED))
    table = published("lengths")
    total = table["words"] * table["completions"]
    shares = table.groupby("subset")[scoring].sum() / total.groupby(table["subset"]).sum()
    halves = [
        [
            honest_of_lengths(part, shares[subset], seed + place, n_resamples)
            for place, (_, part) in enumerate(half.groupby("respondent_id", sort=False))
        ]
        for subset, half in table.groupby("subset", sort=False)
    ]
    return np.mean(halves, axis=0).T


def beside(ours: pd.DataFrame) -> pd.DataFrame:
    """Table 1 beside the paper's, one row for each cell.

    Parameters
    ----------
    ours : DataFrame
        As :func:`psychometrics.measures.beliefs.honest_summary` gives it, of the published models.

    Returns
    -------
    DataFrame
        ``respondent_id, statistic, paper, here, difference`` and ``same``: equal to the paper's
        once cut, not rounded, to three decimals, as the paper's are.

    Examples
    --------
    >>> beside(published())["difference"].abs().max()
    np.float64(0.0)
    """
    theirs = published().melt("respondent_id", _STATISTICS, "statistic", "paper")
    here = ours.melt("respondent_id", _STATISTICS, "statistic", "here")
    frame = theirs.merge(here, on=["respondent_id", "statistic"], how="left", validate="1:1")
    frame["difference"] = frame["here"] - frame["paper"]
    cut = np.floor(frame["here"] * 1000 + 1e-9) / 1000
    frame["same"] = np.isclose(cut, frame["paper"], atol=1e-6)
    return frame


def breakdown(curve: pd.DataFrame) -> pd.DataFrame:
    """Mean HONEST by family, scale, band of ranks and subset, one below the other.

    Parameters
    ----------
    curve : DataFrame
        As :func:`psychometrics.measures.beliefs.honest_by_group` gives it, by ``subset``.

    Returns
    -------
    DataFrame
        Index: what it is split by, and the group; column ``HONEST``.

    Examples
    --------
    >>> one = {"respondent_id": "gpt2", "subset": "queer", "k": [1, 2], "honest": [0.0, 0.5]}
    >>> breakdown(pd.DataFrame(one)).loc[("family", "GPT2"), "HONEST"]
    np.float64(0.25)
    """
    frame = curve.merge(published()[["respondent_id", "family", "scale"]], on="respondent_id")
    frame["scale"] = frame["scale"].map({1: "smallest", 2: "middle", 3: "largest"})
    bands = [0, 1, 5, 20, 50, 100]
    names = ["1", "2 to 5", "6 to 20", "21 to 50", "51 to 100"]
    frame["rank"] = pd.cut(frame["k"], bands, labels=names).astype(str)
    parts = {
        name: frame.groupby(name, sort=False)["honest"].mean()
        for name in ("family", "scale", "rank", "subset")
    }
    return pd.concat(parts).rename("HONEST").to_frame()


def _mean_similarity(pairs: pd.DataFrame, by: str | list[str]) -> pd.DataFrame:
    """Agreement by rank, averaged over pairs of models and over templates.

    Parameters
    ----------
    pairs : DataFrame
        ``first, second, k, templates, similarity`` and groups, as ``published("similarity")``.
    by : str or list of str
        Columns of `pairs`, or ``family``: that of both models, or "between families".

    Returns
    -------
    DataFrame
        The columns of `by`, ``k, similarity``; templates weigh the same.

    References
    ----------
    Setzu et al. (2024), Figures 4 and 5.

    Examples
    --------
    >>> _mean_similarity(published("similarity"), "gender").columns.tolist()
    ['gender', 'k', 'similarity']
    """
    by = [by] if isinstance(by, str) else list(by)
    models = published()
    family = models.set_index("respondent_id")["family"]
    first, second = (pairs[name].astype(str).map(family) for name in ("first", "second"))
    order = [*dict.fromkeys(models["family"]), "between families"]
    inside = first.where(first == second, "between families")
    frame = pairs.assign(family=pd.Categorical(inside, order, ordered=True))
    frame["total"] = frame["similarity"] * frame["templates"]
    sums = frame.groupby([*by, "k"], observed=True)[["total", "templates"]].sum()
    means = (sums["total"] / sums["templates"]).rename("similarity")
    return means.reset_index()


def gap_table(
    scorings: Iterable[str] = tuple(SCORING_NAMES), seed: int = 0, n_resamples: int = 2000
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Gaps between women and men, and old and young, under several scorings, beside their null.

    Parameters
    ----------
    scorings : iterable of str
        As in :func:`published_hits`.
    seed, n_resamples : int
        Of bootstrap and permutations.

    Returns
    -------
    gaps : DataFrame
        As :func:`psychometrics.measures.beliefs.group_gaps` gives it, with ``pair`` and
        ``scoring``.
    counts : DataFrame
        Index: ``pair, scoring``; as :func:`psychometrics.measures.beliefs.gap_counts` gives it,
        with the
        interval of the mean gap (``low, high``), and of the null, identities dealt to the groups at
        random, the central 95 % of the number of models above zero (``null higher low, null higher
        high``), the 97.5 % point of those with p < 0.05 (``null p < 0.05``), the central 95 % of
        the mean gap (``null low, null high``), and ``p`` of the mean gap.

    Examples
    --------
    >>> gaps, counts = gap_table(["published"], n_resamples=50)
    >>> len(gaps), len(counts)
    (42, 2)
    """
    options = {"seed": seed, "n_resamples": n_resamples}
    groups, models = published("templates"), published()["respondent_id"].tolist()
    gaps, nulls = [], {}
    for scoring in scorings:
        hits = published_hits(scoring)
        for by, pair in (("gender", ("female", "male")), ("age", ("old", "young"))):
            asked, name = (hits, groups, models, by, pair), " minus ".join(pair)
            gaps.append(group_gaps(*asked, **options).assign(pair=name, scoring=scoring))
            null, mean = gap_null(*asked, **options), gaps[-1]["gap"].mean()
            row = dict(zip(("low", "high"), _mean_gap(*asked, options), strict=True))
            ends = null.quantile([0.025, 0.975])
            row["null low"], row["null high"] = ends["mean gap"]
            row["null higher low"], row["null higher high"] = ends["higher"]
            row["null p < 0.05"] = ends["p < 0.05"].iloc[1]
            row["p"] = two_sided_p(mean, null["mean gap"].to_numpy())
            nulls[name, scoring] = row
    gaps = pd.concat(gaps, ignore_index=True)
    counts = gap_counts(gaps, ["pair", "scoring"])
    return gaps, counts.join(pd.DataFrame(nulls).T.rename_axis(["pair", "scoring"]))


def two_sided_p(value: float, null: np.ndarray) -> float:
    """Twice the smaller tail of a null distribution.

    Below .05 where the central 95 % of the null leave the value out, also where groups of unequal
    size make the null lopsided.

    Parameters
    ----------
    value : float
        What was found.
    null : ndarray
        What was found in each draw of the null.

    Returns
    -------
    float

    Examples
    --------
    >>> two_sided_p(3.0, np.arange(39) / 10 - 1)
    0.05
    """
    tails = (null >= value - 1e-12).sum(), (null <= value + 1e-12).sum()
    return float(min(1.0, 2 * (1 + min(tails)) / (1 + len(null))))


def _mean_gap(hits, groups, models, by, pair, options) -> np.ndarray:
    """The interval of the gap of all models together."""
    together = []
    for place, name in enumerate(pair):
        rows = np.flatnonzero(groups[by] == name)
        part = groups.iloc[rows].assign(subset="one")
        draws = resampled(hits[:, rows], part, options["seed"] + place, options["n_resamples"])[0]
        together.append(draws.mean(axis=1))
    return np.quantile(together[0] - together[1], [0.025, 0.975])


def order_table(scorings: Sequence[str], seed: int = 0, n_resamples: int = 500) -> pd.DataFrame:
    """Kendall's correlation of the order of the models under each two scorings.

    Parameters
    ----------
    scorings : sequence of str
        As in :func:`published_hits`.
    seed, n_resamples : int
        Of the draws of identities, the same for all scorings.

    Returns
    -------
    DataFrame
        Index: ``first, second``; ``tau, low, high``.

    Examples
    --------
    >>> order_table(["published", "words"], n_resamples=20)["tau"].round(2).tolist()
    [1.0]
    """
    from scipy.stats import kendalltau

    groups = published("templates")
    drawn = {name: resampled(published_hits(name), groups, seed, n_resamples) for name in scorings}
    rows = {}
    for first, second in combinations(drawn, 2):
        (draws, means), (others, other) = drawn[first], drawn[second]
        taus = [kendalltau(a, b).statistic for a, b in zip(draws, others, strict=True)]
        low, high = np.quantile(taus, [0.025, 0.975])
        rows[first, second] = {"tau": kendalltau(means, other).statistic, "low": low, "high": high}
    return pd.DataFrame(rows).T.rename_axis(["first", "second"])


def findings(seed: int = 0, n_resamples: int = 2000) -> pd.DataFrame:
    """What is found here for the study's claims about the published completions.

    Cells of Table 1 are computed under the published scoring. Sentences about hurtfulness are
    tested twice where that makes a difference: as the paper scores, and (``-words``) by words of
    the lexicon alone, without those of ``EVERYDAY`` and ``IDENTITIES``. Nulls are
    :func:`length_null` for levels of models, ranks shuffled for trends over ranks, and identities
    dealt at random for differences of groups.

    Parameters
    ----------
    seed, n_resamples : int
        Of bootstrap and permutations.

    Returns
    -------
    DataFrame
        Index: claims of ``data/claims/fairbelief.csv``; ``value, low, high, null, null_low,
        null_high`` as :func:`psychometrics.claims.record` takes them.

    References
    ----------
    Setzu et al. (2024), section 4.
    """
    options = {"seed": seed, "n_resamples": n_resamples}
    found = _table_findings(options)
    for ending, scoring in (("", "published"), ("-words", "unnamed")):
        hits = published_hits(scoring)
        rows = _level_findings(hits, "unnamed" if ending else "lexicon", options)
        rows |= _rank_findings(hits, options) | _group_findings(hits, options)
        found |= {f"fb-{name}{ending}": row for name, row in rows.items()}
    found["fb-prostitution"] = {"value": _top_ten("female") - _top_ten("male")}
    found["fb-sexwork-queer"] = {"value": _top_ten("queer") - _top_ten("male")}
    table = published("contrasts").set_index(["contrast", "subset"])
    for name, key in _CONTRASTS.items():
        row = table.loc[key].to_dict()
        if name == "similarity-bloom" and row["value"] < 0:  # that it differs, whichever way
            row = {"value": -row["value"], "low": -row["high"], "high": -row["low"]}
        found[f"fb-{name}"] = row
    columns = ["value", "low", "high", "null", "null_low", "null_high"]
    return pd.DataFrame(found).T.reindex(columns=columns).rename_axis("claim_id")


def _top_ten(group: str, category: str = "pr") -> float:
    """Share of the ten likeliest completions with a word of a category."""
    counts, groups = published("categories"), published("templates")
    by = "subset" if group == "queer" else "gender"
    n = counts.loc[(counts[by] == group) & (counts["category"] == category) & (counts["k"] <= 10)]
    return n["n"].sum() / (10 * len(published()) * (groups[by] == group).sum())


def _table_findings(options: dict) -> dict[str, dict[str, float]]:
    models = published()["respondent_id"].tolist()
    groups, hits = published("templates"), published_hits()
    table = honest_intervals(hits, groups, models, **options).set_index("respondent_id")
    found = {f"fb-mean-{name}": table.loc[name, ["mean", "low", "high"]] for name in models}
    found = {name: row.rename({"mean": "value"}).to_dict() for name, row in found.items()}
    same = beside(honest_summary(hits, groups["subset"], models)).groupby("statistic")["same"].sum()
    for name in ("sd", "q1", "q50", "q75", "q90", "q95", "rank"):
        found[f"fb-table-{name}"] = {"value": same[name]}
    plain = honest_intervals(published_hits("unnamed"), groups, models, **options)
    plain = plain.set_index("respondent_id")[["rank", "rank_low", "rank_high"]]
    plain = plain.set_axis(["value", "low", "high"], axis=1)
    found["fb-least-words"] = plain.loc["distilbert"].to_dict()
    found["fb-most-words"] = plain.loc["vicuna-7b"].to_dict()
    return found


def _found(
    means: np.ndarray, draws: np.ndarray, null: np.ndarray | None = None
) -> dict[str, float]:
    low, high = np.quantile(draws, [0.025, 0.975])
    row = {"value": float(means), "low": low, "high": high}
    if null is not None:
        row["null_low"], row["null"], row["null_high"] = np.quantile(null, [0.025, 0.5, 0.975])
    return row


def _level_findings(hits: np.ndarray, lengths: str, options: dict) -> dict[str, dict[str, float]]:
    family = published()["family"].to_numpy()
    high = np.isin(family, _HIGH)
    draws, means = resampled(hits, published("templates"), **options)
    null = length_null(lengths, **options)

    def lead(name):
        return lambda m: m[..., family == name].mean(-1) - m[..., ~high].mean(-1)

    def ranges(names):
        return lambda m: np.stack([np.ptp(m[..., family == name], axis=-1) for name in names])

    def unsteady(m):
        steady = [name for name in dict.fromkeys(family) if name not in _UNSTEADY]
        return ranges(_UNSTEADY)(m).min(axis=0) - ranges(steady)(m).max(axis=0)

    def between(m):
        """Share of the variance of models that lies between families."""
        groups = np.stack([m[..., family == name].mean(-1) for name in dict.fromkeys(family)], -1)
        return groups.var(axis=-1) / m.var(axis=-1)

    statistics = {f"lead-{name.lower()}": lead(name) for name in _HIGH}
    statistics |= {"unsteady": unsteady}
    found = {name: _found(f(means), f(draws), f(null)) for name, f in statistics.items()}
    rng = np.random.default_rng(options["seed"])
    dealt = rng.permuted(np.tile(means, (options["n_resamples"], 1)), axis=1)
    found["families"] = _found(between(means), between(draws), between(dealt))
    smallest, largest = (published()["scale"].to_numpy() == scale for scale in (1, 3))
    low, high = np.quantile(draws[:, largest] - draws[:, smallest], [0.025, 0.975], axis=0)
    found["robust"] = {"value": float(((low < 0) & (high > 0)).sum())}
    return found


def _rank_findings(hits: np.ndarray, options: dict) -> dict[str, dict[str, float]]:
    groups, high = published("templates"), published()["family"].isin(_HIGH).to_numpy()
    rng = np.random.default_rng(options["seed"])

    def bands(chosen, *edges):
        """Means of bands of ranks: in all, in draws, and with the ranks shuffled."""
        curve = np.mean([half.mean(axis=(0, 1)) for half in _halves(hits[chosen], groups)], axis=0)
        shuffled = rng.permuted(np.tile(curve, (options["n_resamples"], 1)), axis=1)
        for first, last in pairwise(edges):
            draws, means = resampled(hits[chosen][..., first:last], groups, **options)
            null = shuffled[:, first:last].mean(axis=1)
            yield np.array([means.mean(), *draws.mean(axis=1)]), null

    (top, top_null), (rest, rest_null) = bands(high, 0, 5, K)
    found = {"early": _found((top - rest)[0], (top - rest)[1:], top_null - rest_null)}
    every = np.ones_like(high)
    (head, head_null), (mid, mid_null), (tail, tail_null) = bands(every, 0, 20, 60, K)
    fall, fall_null = head - (mid + tail) / 2, head_null - (mid_null + tail_null) / 2
    found["decreasing"] = _found(fall[0], fall[1:], fall_null)
    calm = np.abs(fall) - np.abs(mid - tail)
    found["stable"] = _found(calm[0], calm[1:], np.abs(fall_null) - np.abs(mid_null - tail_null))
    return found


def _halves(hits: np.ndarray, groups: pd.DataFrame) -> list[np.ndarray]:
    return [hits[:, (groups["subset"] == name).to_numpy()] for name in SUBSETS]


def _group_findings(hits: np.ndarray, options: dict) -> dict[str, dict[str, float]]:
    groups, models = published("templates"), published()["respondent_id"].tolist()
    found, gaps, nulls = {}, {}, {}
    pairs = {
        "gender": ("female", "male"), "age": ("old", "young"), "subset": ("queer", "binary")
    }  # fmt: skip
    for by, pair in pairs.items():
        parts = []
        for place, name in enumerate(pair):
            rows = np.flatnonzero(groups[by] == name)
            part = groups.iloc[rows].assign(subset="one")
            draws, means = resampled(
                hits[:, rows], part, options["seed"] + place, options["n_resamples"]
            )
            parts.append(np.vstack([means, draws]))
        each = parts[0] - parts[1]
        gaps[by] = each.mean(axis=1)
        null = gap_null(hits, groups, models, by, pair, **options)
        nulls[by] = null["mean gap"].to_numpy()
        found[f"gap-{by}"] = _found(gaps[by][0], gaps[by][1:], nulls[by])
        if by == "gender":
            higher = (each > 0).sum(axis=1)
            found["gap-gender-models"] = _found(higher[0], higher[1:], null["higher"])
    less = np.abs(gaps["gender"]) - np.abs(gaps["age"])
    null = np.abs(nulls["gender"]) - np.abs(nulls["age"])
    found["age-less"] = _found(less[0], less[1:], null)
    curves = [hits[:, (groups["gender"] == name).to_numpy()].mean(axis=(0, 1))
              for name in ("female", "male")]  # fmt: skip
    rng = np.random.default_rng(options["seed"])
    shuffled = rng.permuted(np.tile(curves[1], (options["n_resamples"], 1)), axis=1)
    null = [np.corrcoef(curves[0], curve)[0, 1] for curve in shuffled]
    same = np.corrcoef(*curves)[0, 1]
    found["same-shape"] = _found(same, [same], null) | {"low": np.nan, "high": np.nan}
    sign = np.sign(gaps["subset"][0])
    null = np.abs(nulls["subset"])
    found["subsets-differ"] = _found(sign * gaps["subset"][0], sign * gaps["subset"][1:], null)
    return found


def mine_templates(
    models: Sequence[str | Path], queries: pd.DataFrame, k: int = 20, **options
) -> pd.DataFrame:
    """Completions of several models, each with the groups of its template.

    Parameters
    ----------
    models : sequence of str or Path
        As :func:`psychometrics.modes.completions.mine` takes them.
    queries : DataFrame, T rows
        As :func:`templates` gives it.
    k : int
        Completions for each template.
    **options
        Passed on to :func:`psychometrics.modes.completions.mine`.

    Returns
    -------
    DataFrame, R times T times K rows
        What ``mine`` gives, and the other columns of `queries`.
    """
    groups = queries.drop(columns="template")
    groups = groups.loc[groups.index.repeat(k)].reset_index(drop=True)
    parts = [mine(model, queries["template"], k=k, **options) for model in models]
    return pd.concat([pd.concat([part, groups], axis=1) for part in parts], ignore_index=True)


def typical_completions(mined: pd.DataFrame, group: str, n: int = 10) -> pd.DataFrame:
    """Completions that one group gets in more of its templates than the other groups do.

    Parameters
    ----------
    mined : DataFrame
        As :func:`mine_templates` gives it.
    group : str
        Column that holds the groups; two or more.
    n : int
        Completions for each.

    Returns
    -------
    DataFrame, up to n rows
        A column for each group, the most typical first. Offensive text is possible.

    Raises
    ------
    ParameterError
        There is no such column, or fewer than two groups.

    Examples
    --------
    >>> mined = pd.DataFrame({"template": ["A", "A", "B", "B"], "sex": ["f", "f", "m", "m"],
    ...                       "completion": ["nurse", "kind", "pilot", "kind"]})
    >>> typical_completions(mined, "sex", n=1).to_dict("list")
    {'f': ['nurse'], 'm': ['pilot']}
    """
    _check_group(mined, group)
    counts = mined.groupby([group, "completion"]).size().unstack(0, fill_value=0)
    if counts.shape[1] < 2:
        raise ParameterError(f"{group} has only one group: there is nothing to compare it with.")
    shares = counts / mined.drop_duplicates(["template", group]).groupby(group).size()
    others = shares.rsub(shares.sum(axis=1), axis=0) / (shares.shape[1] - 1)
    lead = shares - others
    return pd.DataFrame({name: lead[name].nlargest(n).index for name in lead})


def group_scores(
    mined: pd.DataFrame, words: Iterable[str], group: str, unit: str | None = None
) -> pd.DataFrame:
    """HONEST over all ranks for each model and group, with its interval.

    Parameters
    ----------
    mined : DataFrame
        As :func:`mine_templates` gives it.
    words : iterable of str
        Lemmas.
    group : str
        Column that holds the groups.
    unit : str, optional
        Column of what was sampled, such as ``identity``: templates on the same identity share its
        words and are no independent evidence. By default every template stands for itself.

    Returns
    -------
    DataFrame
        ``respondent_id``, `group`, ``templates, units``, ``honest`` (mean over templates of their
        share of hurtful completions), ``sd`` over templates, and ``low, high``: its 95 % interval
        by t over the units' means, from 0 to 1; missing where there is one unit alone, or where
        all units are alike, as where nothing was hurtful.

    Raises
    ------
    ParameterError
        There is no such column, or a template is of no group or unit.

    Examples
    --------
    >>> mined = pd.DataFrame({"respondent_id": "m", "rank": [1, 2, 1, 2], "sex": list("ffmm"),
    ...                       "completion": ["rat", "kind", "pilot", "kind"]})
    >>> group_scores(mined, ["rat"], "sex")["honest"].tolist()
    [0.5, 0.0]
    """
    from scipy.stats import t

    for column in (group, *([unit] if unit else [])):
        _check_group(mined, column)
        if mined[column].isna().any():
            raise ParameterError(f"A template has no {column}: every template needs one.")
    words, parts = list(words), []
    for model, part in mined.groupby("respondent_id", sort=False):
        first = part[part["rank"] == 1].reset_index(drop=True)
        frame = pd.DataFrame({group: first[group]})
        frame["unit"] = first[unit] if unit else np.arange(len(first))
        frame["share"] = hurtful(completion_rows(part), words).mean(axis=1)
        found = frame.groupby(group, sort=False)["share"].agg(["size", "mean", "std"])
        means = frame.groupby([group, "unit"], sort=False)["share"].mean()
        spread = means.groupby(group, sort=False).agg(["size", "std"])
        half = t.ppf(0.975, (spread["size"] - 1).clip(lower=1)) * (
            spread["std"].where(spread["std"] > 0) / np.sqrt(spread["size"])
        )
        found["units"] = spread["size"]
        found["low"] = (found["mean"] - half).clip(lower=0)
        found["high"] = (found["mean"] + half).clip(upper=1)
        parts.append(found.rename_axis(group).reset_index().assign(respondent_id=model))
    table = pd.concat(parts, ignore_index=True)
    table = table.rename(columns={"size": "templates", "mean": "honest", "std": "sd"})
    columns = ["respondent_id", group, "templates", "units", "honest", "sd", "low", "high"]
    return table[columns]


def standing(
    models: Sequence[str | Path],
    subsets: dict[str, Sequence[str]],
    words: Iterable[str],
    published_summary: pd.DataFrame,
    k: int = 100,
    identities: dict[str, Sequence] | None = None,
    **options,
) -> pd.DataFrame:
    """Table 1 of models asked live, with their rank among the published ones.

    Parameters
    ----------
    models : sequence of str or Path
    subsets : dict of sequences of str
        Templates of each subset.
    words : iterable of str
        Lemmas.
    published_summary : DataFrame
        As :func:`psychometrics.measures.beliefs.honest_summary` gives it, of the published models.
    k : int
        Completions for each template.
    identities : dict of sequences, optional
        Whom each template is about; with it the mean has an interval, identities drawn again.
    **options
        Passed on to :func:`psychometrics.modes.completions.mine`.

    Returns
    -------
    DataFrame, one row a model
        As ``honest_summary``, with ``low, high`` of the mean (missing without `identities`);
        ``rank`` is among all models, published and live.
    """
    words, hits, names = list(words), [], []
    for model in models:
        parts = [mine(model, list(part), k=k, **options) for part in subsets.values()]
        hits.append(hurtful([row for part in parts for row in completion_rows(part)], words))
        names.append(parts[0]["respondent_id"].iloc[0])
    labels = np.repeat(list(subsets), [len(part) for part in subsets.values()])
    live = honest_summary(np.stack(hits), labels, names)
    low = high = np.nan
    if identities is not None:
        whom = [whom for name in subsets for whom in identities[name]]
        groups = pd.DataFrame({"subset": labels, "identity": whom})
        low, high = np.quantile(resampled(np.stack(hits), groups)[0], [0.025, 0.975], axis=0)
    live.insert(2, "low", low)
    live.insert(3, "high", high)
    means = pd.concat([published_summary["mean"], live["mean"]], ignore_index=True)
    ranks = means.rank(ascending=False, method="min").astype(int)
    return live.assign(rank=ranks[len(published_summary) :].to_numpy())


def lexicon_errors(
    queries: Sequence[str],
    rows: Sequence[Sequence[str]],
    words: Iterable[str],
    everyday: Iterable[str],
    n: int = 5,
    seed: int = 0,
) -> dict[str, list[str]]:
    """Sentences that a lexicon may judge wrongly, either way.

    Parameters
    ----------
    queries : sequence of T str
    rows : sequence of T sequences of K str
        Completions.
    words : iterable of str
        Lemmas.
    everyday : iterable of str
        Those among them that are ordinary words.
    n, seed
        Sentences of each kind, and the seed of the draw.

    Returns
    -------
    dict of lists of str
        Sentences counted for an everyday word alone, and sentences not counted because of a capital
        letter, a final s or a lemma of several words. Offensive.

    Examples
    --------
    >>> found = lexicon_errors(["It is [M]."], [["two rats", "fine"]], ["rat"], [])
    >>> found["Not counted because of a final s"]
    ['It is two rats.']
    """
    words, everyday = set(words), set(everyday)
    found = {
        "Counted for an everyday word alone": hurtful(rows, everyday & words)
        & ~hurtful(rows, words - everyday)
    }
    labels = {
        "capital": "a capital letter",
        "plural": "a final s",
        "phrase": "a lemma of several words",
    }
    for name, hits in missed(rows, words).items():
        found[f"Not counted because of {labels[name]}"] = hits
    return {label: _completed(queries, rows, hits, n, seed) for label, hits in found.items()}


def sheets(
    queries: Sequence[str],
    rows: dict[str, Sequence[Sequence[str]]],
    annotators: Sequence[str],
    instances: int = 60,
    shared: int = 0,
    top: int = 10,
    seed: int = 0,
) -> pd.DataFrame:
    """Sheets for annotators: an even, seeded share of the templates, with the top completions.

    Parameters
    ----------
    queries : sequence of T str
    rows : dict of sequences of T sequences of K str
        Completions by model.
    annotators : sequence of str
        Their names.
    instances : int
        Templates drawn, shared ones included.
    shared : int
        How many of them go to every annotator, so that agreement can be measured; the rest are
        dealt out in turn.
    top : int
        Completions of each model for each template.
    seed : int
        Of the draw.

    Returns
    -------
    DataFrame
        ``annotator, instance, respondent_id, template, rank, completion`` and an empty ``label``.
        Offensive; save one annotator's rows with ``to_csv``.

    Raises
    ------
    ParameterError
        There are fewer templates than asked for, no annotators, or two of the same name.

    References
    ----------
    Setzu et al. (2024), section 4.2: 60 instances, three annotators, top 10.

    Examples
    --------
    >>> sheets(["It is [M]."], {"m": [["a", "b"]]}, ["ada"], 1, top=2)["completion"].tolist()
    ['a', 'b']
    """
    if not 0 <= shared <= instances <= len(queries):
        raise ParameterError(
            f"shared ({shared}) must be at most instances ({instances}), and those at most the "
            f"{len(queries)} templates."
        )
    if not annotators or len(set(annotators)) != len(annotators):
        raise ParameterError("Name at least one annotator, and each only once.")
    drawn = np.random.default_rng(seed).permutation(len(queries))[:instances].tolist()
    hands = [(t, name) for t in drawn[:shared] for name in annotators]
    own = drawn[shared:]
    hands += [(t, annotators[i % len(annotators)]) for i, t in enumerate(own)]
    lines = [
        (name, t, model, queries[t], k + 1, model_rows[t][k], "")
        for t, name in hands
        for model, model_rows in rows.items()
        for k in range(top)
    ]
    columns = ["annotator", "instance", "respondent_id", "template", "rank", "completion", "label"]
    order = ["annotator", "instance", "respondent_id", "rank"]
    return pd.DataFrame(lines, columns=columns).sort_values(order, ignore_index=True)


def annotation_agreement(
    annotations: pd.DataFrame | Iterable[str | Path], labels: Sequence[str] | None = None
) -> pd.DataFrame:
    """Agreement of annotators on what all of them labelled.

    Parameters
    ----------
    annotations : DataFrame or paths
        Filled :func:`sheets`, or the CSV files that they were saved to.
    labels : sequence of str, optional
        Labels that may be given; by default any.

    Returns
    -------
    DataFrame
        ``annotators, n, agreement, kappa``: one row for all (mean pairwise agreement, Fleiss'
        kappa) and one for each pair (Cohen's kappa).

    Raises
    ------
    ParameterError
        A column or a label is missing, a label is unknown, an annotator has labelled something
        twice, or there are fewer than two annotators, or nothing that all of them labelled.
    DataError
        A file cannot be read.

    References
    ----------
    Fleiss (1971); Cohen (1960).

    Examples
    --------
    >>> sheet = pd.DataFrame({"annotator": list("aabb"), "instance": [1, 2, 1, 2], "rank": 1,
    ...                       "respondent_id": "m", "label": ["bad", "fine", "bad", "fine"]})
    >>> annotation_agreement(sheet)["agreement"].tolist()
    [1.0]
    """
    from sklearn.metrics import cohen_kappa_score
    from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

    if isinstance(annotations, pd.DataFrame):
        annotations = _checked_sheet(annotations, "the sheet", labels)
    else:
        parts = [_read_sheet(Path(path), labels) for path in annotations]
        if not parts:
            raise ParameterError("Name at least one filled sheet.")
        annotations = pd.concat(parts, ignore_index=True)
    keys = ["instance", "respondent_id", "rank"]
    twice = annotations.duplicated(["annotator", *keys])
    if twice.any():
        row = annotations[twice].iloc[0]
        raise ParameterError(
            f"{row['annotator']} labelled instance {row['instance']} of {row['respondent_id']}, "
            f"rank {row['rank']}, twice: keep one of the two."
        )
    wide = annotations.pivot(index=keys, columns="annotator", values="label").dropna()
    if wide.empty or wide.shape[1] < 2:
        raise ParameterError(
            "Agreement needs completions that two or more annotators all labelled: draw the "
            "sheets with shared above 0."
        )
    pairs = []
    for one, other in combinations(wide.columns, 2):
        same = float((wide[one] == wide[other]).mean())
        labels = sorted(set(wide[one]) | set(wide[other]))
        kappa = cohen_kappa_score(wide[one], wide[other]) if len(labels) > 1 else np.nan
        pairs.append((f"{one}, {other}", len(wide), same, kappa))
    counts = aggregate_raters(wide.to_numpy())[0]
    together = fleiss_kappa(counts, method="fleiss") if counts.shape[1] > 1 else np.nan
    mean = float(np.mean([pair[2] for pair in pairs]))
    lines = [(", ".join(wide.columns), len(wide), mean, together)]
    lines += pairs if wide.shape[1] > 2 else []
    return pd.DataFrame(lines, columns=["annotators", "n", "agreement", "kappa"])


def _check_known(name: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise ParameterError(f"{name} must be one of {', '.join(allowed)}, got '{value}'.")


def _check_group(mined: pd.DataFrame, group: str) -> None:
    if group not in mined:
        raise ParameterError(f"{group} is no column of what was mined: {', '.join(mined)}.")


def _read_sheet(path: Path, labels: Sequence[str] | None) -> pd.DataFrame:
    frame = _checked_sheet(_read_table(path, _SHEET), str(path), labels)
    for name in ("instance", "rank"):
        wrong = frame.index[~frame[name].str.fullmatch(r"\d+")]
        if len(wrong):
            raise ParameterError(
                f"{path}, row {wrong[0] + 2}: {name} must be a whole number, got "
                f"'{frame[name][wrong[0]]}'."
            )
    return frame.astype({"instance": int, "rank": int})


def _checked_sheet(frame: pd.DataFrame, name: str, labels: Sequence[str] | None) -> pd.DataFrame:
    """A sheet that has its columns, and a label, one of those known, in every row."""
    if missing := [column for column in _SHEET if column not in frame]:
        raise ParameterError(f"{name} has no column '{missing[0]}'.")
    known = frame["label"].isin(labels) if labels else frame["label"].fillna("").astype(str) != ""
    if not known.all():
        place = int(np.argmin(known))
        wanted = f"be one of {', '.join(labels)}" if labels else "not be empty"
        raise ParameterError(
            f"{name}, row {place + 2}: the label must {wanted}, got '{frame['label'].iloc[place]}'."
        )
    return frame


def _completed(
    queries: Sequence[str],
    rows: Sequence[Sequence[str]],
    hits: np.ndarray,
    n: int,
    seed: int,
) -> list[str]:
    """A seeded sample of different hits, the mask replaced by the completion."""
    places = np.random.default_rng(seed).permutation(np.argwhere(hits)).tolist()
    drawn = (queries[t].replace(MASK, rows[t][k].strip()) for t, k in places)
    return list(dict.fromkeys(drawn))[:n]


def _read_table(path: Path, needed: Sequence[str]) -> pd.DataFrame:
    """A CSV or TSV as text, with the columns that are needed."""
    tabs = path.suffix.lower() in (".tsv", ".tab")
    try:
        # Tables with tabs are unquoted: a quotation mark is a lemma's own.
        options = {"sep": "\t", "quoting": 3} if tabs else {}
        frame = pd.read_csv(path, dtype=str, keep_default_na=False, **options)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error
    except ValueError as error:
        raise ParameterError(f"{path} is not a table with columns: {error}.") from error
    for name in needed:
        if name not in frame:
            raise ParameterError(f"{path} has no column '{name}'; it has {', '.join(frame)}.")
    return frame


@functools.cache
def shipped_bits(name: str) -> dict[str, np.ndarray]:
    """Bits of the published completions, as a table of ``data/beliefs`` keeps them.

    Parameters
    ----------
    name : str
        ``"hits"`` (what each word is to the lexicon) or ``"themes"``.

    Returns
    -------
    dict of ndarray of bool, shape (R, T, K)
        One for each packed column; they cannot be written to.

    Examples
    --------
    >>> shipped_bits("hits")["lexicon"].shape
    (21, 1515, 100)
    """
    frame = pd.read_parquet(data_dir() / "beliefs" / f"{name}.parquet")
    shape = (frame["respondent_id"].nunique(), -1, K)
    parts = {}
    for column in frame.columns.drop(["respondent_id", "template"], errors="ignore"):
        packed = np.frombuffer(b"".join(frame[column]), dtype=np.uint8).reshape(len(frame), -1)
        parts[column] = np.unpackbits(packed, axis=1, count=K).astype(bool).reshape(shape)
        parts[column].flags.writeable = False
    return parts
