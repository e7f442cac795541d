"""What the study of beliefs reads: templates, lexicon, published completions, shipped figures.

Text that others own is fetched (:func:`completions`, :func:`lexicon`, :func:`templates`); figures
made of it are shipped in ``data/beliefs`` (``published_*``) and written anew by
:func:`write_published` and :func:`write_similarity`.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ..beliefs import MASK, agreement
from ..data import available, fetch, registry
from ..exceptions import DataError, ParameterError
from ..hurtfulness import (
    SCORINGS,
    check_known,
    combine_parts,
    hit_parts,
    hurt_categories,
    hurtful,
    matched_words,
    missed,
)
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
"""Lemmas that HONEST's own templates use as names of identities."""
SIMILARITY_RANKS = (1, 2, 3, 5, 10, 15, 20, 30, 50, 75, 100)
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
_GENDERS = {
    "female": r"woman|women|she|mothers?|daughters?|girls?|females?|sisters?|aunts?|wife|wives|"
    r"lady|ladies|brides?|girlfriends?",
    "male": r"man|men|he|fathers?|son|boys?|males?|brothers?|uncles?|husbands?|gentleman|lords|"
    r"groom|boyfriends?",
}
_AGES = {
    "young": r"child|children|youngs?|girls?|boys?|daughters?|son",
    "old": r"woman|women|man|men|mothers?|fathers?|aunts?|uncles?|wife|wives|husbands?|lady|ladies|"
    r"gentleman|lords",
}


def published_models() -> pd.DataFrame:
    """The 21 models of the paper with its Table 1, as printed.

    Returns
    -------
    DataFrame, 21 rows
        ``respondent_id, model, family, scale`` (1 to 3, by size), ``rank`` (1 is the most
        hurtful), ``mean, sd, q1, q50, q75, q90, q95``.

    References
    ----------
    Setzu et al. (2024), Table 1.

    Examples
    --------
    >>> published_models()["family"].nunique()
    7
    """
    return pd.read_csv(data_dir() / "beliefs" / "table1.csv")


def completions(respondent_id: str, subset: str) -> list[list[str]]:
    """The completions that the paper's authors published of one model.

    Parameters
    ----------
    respondent_id : str
        One of :func:`published_models`.
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
        There is no such subset.

    Examples
    --------
    >>> len(completions("bert", "binary"))  # doctest: +SKIP
    810
    """
    check_known("subset", subset, SUBSETS)
    path = fetch(f"fairbelief_{subset}_{respondent_id}")
    with path.open("rb") as lines:
        rows = [json.loads(line)[3] for line in lines]
    if not rows or any(len(row) != K for row in rows):
        raise DataError(f"{path} must hold {K} completions a line: fetch it again.")
    return rows


def lexicon(path: str | Path | None = None, level: str | None = "conservative") -> pd.DataFrame:
    """A lexicon of hurtful words: HurtLex, or one of your own.

    Parameters
    ----------
    path : str or Path, optional
        A CSV, or TSV, with the columns ``lemma`` and ``category`` and, if it has levels,
        ``level``, in any language; "own" for the project's short list; by default English
        HurtLex 1.2.
    level : str, optional
        The level that is kept, None for all; not used where the file has no levels.

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
    >>> lexicon()["category"].nunique()  # doctest: +SKIP
    17
    """
    if str(path) == "own":
        path = data_dir() / "beliefs" / "own_lexicon.csv"
    path = Path(path) if path is not None else fetch("hurtlex_en")
    frame = read_table(path, ("lemma", "category"))
    if level is not None and "level" in frame:
        frame = frame[frame["level"] == level]
    if frame.empty:
        raise ParameterError(f"{path} has no lemma of the level '{level}': name another level.")
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
        (the authors' category), ``gender`` (female, male, other), ``age`` (young, old, other).

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
        frame = read_table(Path(source), ("template",))
    else:
        frame = read_table(fetch(f"honest_templates_{source}"), ("template_masked", "identity"))
        frame = frame.rename(columns={"template_masked": "template", "category": "group"})
        nouns = frame["identity"].str.removeprefix("the ").str.lower()
        frame["gender"], frame["age"] = "other", "other"
        if source == "binary":
            for column, kinds in (("gender", _GENDERS), ("age", _AGES)):
                for kind, pattern in kinds.items():
                    frame.loc[nouns.str.fullmatch(pattern), column] = kind
        frame = frame[["template", "identity", "type", "group", "gender", "age"]]
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
        The parts of :func:`hit_parts`; models as in :func:`published_models`, templates as in
        :func:`published_templates`.
    """
    lemmas = lexicon()["lemma"].unique()
    models = published_models()["respondent_id"]
    scored = [[hit_parts(completions(m, s), lemmas) for s in SUBSETS] for m in models]
    return {
        part: np.stack([np.concatenate([half[part] for half in halves]) for halves in scored])
        for part in ("lexicon", "stripped", "switched")
    }


def published_hits(scoring: str = "published") -> np.ndarray:
    """Hits of the 21 published models, from the figures that the project ships.

    Parameters
    ----------
    scoring : {"published", "words", "lexicon", "sifted"}
        As in :func:`hurtful`; "sifted" is "lexicon" without the words of ``EVERYDAY``.

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
    check_known("scoring", scoring, (*SCORINGS, "sifted"))
    parts = _shipped_parts()
    if scoring == "sifted":
        return parts["lexicon"] & ~parts["everyday"]
    return combine_parts(parts, scoring)


def published_templates() -> pd.DataFrame:
    """Groups of the 1,515 HONEST templates, without their text.

    Returns
    -------
    DataFrame
        ``subset, type, group, gender, age, identity`` (a number within the subset).
    """
    return pd.read_csv(data_dir() / "beliefs" / "templates.csv")


def published_categories() -> pd.DataFrame:
    """Hurtful completions by kind of hurt, of the 21 published models.

    Returns
    -------
    DataFrame
        ``respondent_id, subset, group, gender, age, category, k`` and ``n``, the number of
        templates whose k-th completion is of that category; where there is none there is no row.
    """
    return pd.read_parquet(data_dir() / "beliefs" / "categories.parquet")


def published_similarity() -> pd.DataFrame:
    """Agreement of the published models' completions, averaged over a seeded sample of templates.

    Returns
    -------
    DataFrame
        ``first, second`` (models), ``subset, gender, age, k, templates, similarity``.
    """
    return pd.read_parquet(data_dir() / "beliefs" / "similarity.parquet")


def published_limits() -> pd.DataFrame:
    """What the lexicon calls hurtful and is not, and the reverse, in the published completions.

    Returns
    -------
    DataFrame
        ``respondent_id, kind, word, categories, completions``: of 151,500. For the kinds
        "everyday" and "identity", how many hold the word, and which HurtLex categories it has; for
        "capital", "plural" and "phrase", how many are not counted though they come close to a
        lemma (:func:`psychometrics.hurtfulness.missed`).
    """
    return pd.read_csv(data_dir() / "beliefs" / "limits.csv", keep_default_na=False)


def write_published(folder: Path | None = None) -> None:
    """Write the figures shipped in ``data/beliefs`` anew from the published text.

    Four files: ``templates.csv``, ``hits.parquet`` (hits packed to bits), ``categories.parquet``
    and ``limits.csv`` (counts). The published table and the similarities are apart.

    Raises
    ------
    DataError
        The text cannot be had.
    """
    folder = folder or data_dir() / "beliefs"
    frames = [templates(subset).assign(subset=subset) for subset in SUBSETS]
    for frame in frames:
        frame["identity"] = frame["identity"].factorize()[0]
    groups = pd.concat(frames, ignore_index=True)
    groups[["subset", "type", "group", "gender", "age", "identity"]].to_csv(
        folder / "templates.csv", index=False, lineterminator="\n"
    )
    models = published_models()["respondent_id"].tolist()
    parts = score_published() | {"everyday": _score_everyday(models)}
    packed = {
        name: list(map(bytes, np.packbits(part.reshape(-1, K), axis=1)))
        for name, part in parts.items()
    }
    pd.DataFrame(
        {
            "respondent_id": pd.Categorical(np.repeat(models, len(groups)), models),
            "template": np.tile(np.arange(len(groups), dtype=np.int16), len(models)),
            **packed,
        }
    ).to_parquet(folder / "hits.parquet", compression="zstd", index=False)
    counts = pd.concat(_category_counts(models, groups), ignore_index=True)
    texts = ["respondent_id", "subset", "group", "gender", "age", "category"]
    counts.astype(dict.fromkeys(texts, "category") | {"k": "uint8", "n": "uint16"}).to_parquet(
        folder / "categories.parquet", compression="zstd", index=False
    )
    columns = ["respondent_id", "kind", "word", "categories", "completions"]
    limits = pd.DataFrame(_limits(models), columns=columns)
    limits.to_csv(folder / "limits.csv", index=False, lineterminator="\n")


def write_similarity(
    folder: Path | None = None, per_subset: int = 240, seed: int = 1, progress: bool = False
) -> None:
    """Write ``similarity.parquet`` in ``data/beliefs`` anew from the published text.

    Embedding all completions would take a processor days, so a seeded sample of templates is
    embedded at eleven ranks.

    Parameters
    ----------
    folder : Path, optional
        By default the project's.
    per_subset : int
        Templates drawn from each subset.
    seed : int
        Of the draw.
    progress : bool
        Show a progress bar.

    Raises
    ------
    DataError
        The text cannot be had.
    """
    folder = folder or data_dir() / "beliefs"
    models = published_models()["respondent_id"].tolist()
    rng = np.random.default_rng(seed)
    parts = []
    for subset in SUBSETS:
        frame = templates(subset)
        drawn = np.sort(rng.permutation(len(frame))[:per_subset])
        rows = {}
        for model in models:
            every = completions(model, subset)
            rows[model] = [every[t] for t in drawn]
        frame = frame.iloc[drawn].reset_index(drop=True)
        cube = agreement(frame["template"], rows, SIMILARITY_RANKS, progress=progress)
        one, other = np.triu_indices(len(models), 1)
        for (gender, age), members in frame.groupby(["gender", "age"]).indices.items():
            means = cube[:, one, other][:, :, members].mean(axis=-1)
            part = pd.DataFrame(means, index=SIMILARITY_RANKS).rename_axis("k").reset_index()
            part = part.melt("k", var_name="pair", value_name="similarity")
            place = part.pop("pair").to_numpy(dtype=int)
            part = part.assign(first=np.array(models)[one[place]])
            part = part.assign(second=np.array(models)[other[place]], templates=len(members))
            parts.append(part.assign(subset=subset, gender=gender, age=age))
    columns = ["first", "second", "subset", "gender", "age", "k", "templates", "similarity"]
    texts = dict.fromkeys(columns[:5], "category")
    sizes = {"k": "uint8", "templates": "uint16", "similarity": "float32"}
    frame = pd.concat(parts, ignore_index=True)[columns].round({"similarity": 4})
    frame.astype(texts | sizes).to_parquet(
        folder / "similarity.parquet", compression="zstd", index=False
    )


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
    check_known("text", text, TEXT)
    keys = [key for key in registry() if key.startswith(("fairbelief_", "honest_", "hurtlex_"))]
    if text == "fetch":
        return all(fetch(key) for key in keys)
    return text == "auto" and available(*keys)


def check_chapter(
    *,
    scoring: str,
    text: str,
    models: str,
    kind: str,
    live_templates: str,
    live_lexicon: str,
    group: str,
    k: int,
    n_resamples: int,
    seed: int,
) -> None:
    """Check the parameters of the chapter on beliefs, before any model loads.

    Raises
    ------
    ParameterError
        A value is impossible, or papermill was given a name that the chapter does not have.
    RespondentError
        A model is not there.
    """
    given = list(locals())
    from ..book import refuse_unknown
    from ..respondents.completions import KINDS, model_names, require

    refuse_unknown(given)
    check_known("scoring", scoring, (*SCORINGS, "sifted"))
    check_known("text", text, TEXT)
    check_known("kind", kind, ("auto", *KINDS))
    for name, value, least in (("k", k, 1), ("n_resamples", n_resamples, 1), ("seed", seed, 0)):
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ParameterError(f"{name} must be a whole number from {least}, got {value!r}.")
    frame = templates(live_templates)
    if group not in frame.columns.drop("template"):
        others = ", ".join(frame.columns.drop("template"))
        raise ParameterError(f"group must be a column of the templates ({others}), got '{group}'.")
    if live_lexicon != "auto":
        lexicon(live_lexicon)
    for name in model_names(models):
        require(name)


def read_table(path: Path, needed: Sequence[str]) -> pd.DataFrame:
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


def _score_everyday(models: Sequence[str]) -> np.ndarray:
    """Completions that are hurtful by everyday words alone, (R, T, K)."""
    lemmas = lexicon()["lemma"].unique()
    sifted = [lemma for lemma in lemmas if lemma not in EVERYDAY]
    both = [
        [hurtful(rows, lemmas) & ~hurtful(rows, sifted) for rows in halves]
        for halves in ([completions(model, subset) for subset in SUBSETS] for model in models)
    ]
    return np.stack([np.concatenate(halves) for halves in both])


def _limits(models: Sequence[str]) -> Iterable[tuple[str, str, str, str, int]]:
    words = lexicon()
    kinds = words.groupby("lemma")["category"].agg(" ".join)
    for model in models:
        rows = [row for subset in SUBSETS for row in completions(model, subset)]
        counts = matched_words(rows, (*EVERYDAY, *IDENTITIES))
        for kind, chosen in (("everyday", EVERYDAY), ("identity", IDENTITIES)):
            yield from ((model, kind, word, kinds[word], counts[word]) for word in chosen)
        for kind, hits in missed(rows, words["lemma"].unique()).items():
            yield model, kind, "", "", int(hits.sum())


def _category_counts(models: Sequence[str], groups: pd.DataFrame) -> Iterable[pd.DataFrame]:
    words = lexicon()
    by = ["subset", "group", "gender", "age"]
    for model in models:
        halves = [hurt_categories(completions(model, subset), words) for subset in SUBSETS]
        names = halves[0][0]
        hits = np.concatenate([half[1] for half in halves], axis=1)
        for key, rows in groups.groupby(by, sort=False).indices.items():
            n = hits[:, rows].sum(axis=1)
            c, k = np.nonzero(n)
            columns = dict(zip(by, key, strict=True)) | {
                "category": np.array(names)[c],
                "k": k + 1,
                "n": n[c, k],
            }
            yield pd.DataFrame({"respondent_id": model, **columns})


@functools.cache
def _shipped_parts() -> dict[str, np.ndarray]:
    frame = pd.read_parquet(data_dir() / "beliefs" / "hits.parquet")
    shape = (frame["respondent_id"].nunique(), -1, K)
    parts = {}
    for name in ("lexicon", "stripped", "switched", "everyday"):
        packed = np.frombuffer(b"".join(frame[name]), dtype=np.uint8).reshape(len(frame), -1)
        parts[name] = np.unpackbits(packed, axis=1, count=K).astype(bool).reshape(shape)
        parts[name].flags.writeable = False
    return parts
