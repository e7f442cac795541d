"""Rebuild ``data/beliefs``: ``python -m recipes.beliefs``.

The files are ``templates.csv``, ``hits.parquet`` and ``themes.parquet`` (hits packed to bits),
``categories.parquet``, ``lengths.csv`` and ``limits.csv`` (counts), ``agreement.csv``,
``contrasts.csv`` and ``pairs.csv`` (agreement in meaning, and in words over all templates). The
text is fetched; only figures computed from it are written. Embedding all completions would take a
processor days, so a seeded sample of 240 templates of each half is embedded at eleven ranks, which
takes about ten minutes; all templates at these ranks are 272,649 different sentences, which would
take 23 minutes at 200 a second and core. Table 1 was typed in from the paper.
"""

from __future__ import annotations

import functools
import json
import re
import string
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from psychometrics.data import fetch
from psychometrics.exceptions import DataError
from psychometrics.measures.beliefs import contrast, hurtful
from psychometrics.models.loading import quietly
from psychometrics.models.sources import base_path
from psychometrics.modes.completions import MASK, lexicon
from psychometrics.paths import data_dir

SUBSETS = ("binary", "queer")
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
    "motherhood": "mother mothers mom moms mum mums motherhood parent parents child children baby "
    "babies wife wives",
    "looks": "beautiful pretty attractive sexy sexiest gorgeous handsome cute lovely stunning "
    "glamorous beauty desirable hot",
    "model or nurse": "model models nurse nurses",
}
"""Themes of the paper's section 4.2 as words: those that it prints, and others like them, chosen
before they were counted. The last three are named in ``data/plans/scorecard.yml``."""
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
_WORK = r"(worked|should work|was hired|has earned a living) as"
_SIMILARITY_RANKS = (1, 2, 3, 5, 10, 15, 20, 30, 50, 75, 100)
# Every character that Unidecode 1.3.6, the transliteration of the paper's time, writes as nothing:
# how many characters after U+0080 are written, how many after these are not, and so on, in
# hexadecimal. The table is needed because a later version (1.4) writes some of them, which changes
# 24 of the 147 cells of the paper's Table 1.
_UNWRITTEN_RUNS = """\
0.20 d.1 193.2 a2.7 3.74 d.4 2.8 1.7 5.1 1.1 14.1 2c.1 8.2 1a.c 83.5 2.2 39.2 2.2 2.3 26.2
2.37 26.2 7.1 27.1 2.26 b.2 1.1 1.2 1.2 2.8 1b.4 6.17 1.e 1.3 1.2 3.1 1.1 13.6 11.2 2.a e.3
3.1 5b.2 4.7 2.a 1.6 f.1 e.2 1.1 1b.3 10.1 2.2 6.35 30.151 3.1 35.2 11.3 5.3 19.10 3.1 8.2 2.2
16.1 7.1 1.3 4.2 1.1 7.2 2.2 2.a 1.4 2.1 5.2 14.8 1.2 6.4 2.2 16.1 7.1 2.1 2.1 2.2 1.1 5.4 2.2
2.c 4.1 1.7 c.2 1.c 3.1 7.1 1.1 3.1 16.1 7.1 2.1 5.2 a.1 3.1 2.3 1.f 1.5 a.11 3.1 8.2 2.2 16.1
7.1 2.2 4.2 8.3 2.2 2.9 2.4 2.1 3.4 a.12 2.1 6.3 3.1 4.3 2.1 1.1 2.3 2.3 3.3 8.1 3.4 5.3 3.1
3.a 1.e d.e 3.1 8.1 3.1 17.1 a.1 5.4 7.1 3.1 3.8 2.9 2.4 a.12 2.1 8.1 3.1 17.1 a.1 5.4 7.1 3.1
3.8 2.7 1.1 2.4 a.12 2.1 8.1 3.1 17.1 10.4 6.2 3.1 3.a 1.8 2.4 a.12 2.1 12.3 18.1 9.1 1.2 7.8
6.1 1.1 8.12 3.c 3a.4 8.6 1.1 d.25 2.1 1.2 2.1 1.2 1.6 4.1 7.1 3.1 1.1 1.2 2.1 1.1 2.1 8.1 3.2
5.1 1.6 1.2 a.2 2.22 1.7 2.1 a.b 18.1 1.1 3.2 8.1 22.6 11.e 8.1 24.1 6.3c 22.1 5.1 2.1 7.3 3.7
1a.46 26.a 27.4 1.4 b.1 14.1 1b.4 7.1 6.4 2.2 4.7 42.5 46.1 b.6 7.1 3f.1 1.1 4.2 7.1 1.1 4.2
27.1 1.1 4.2 12.1 c.1 1.1 4.2 7.1 1.1 4.2 7.1 7.1 17.1 1f.1 1.1 4.2 7.1 27.1 13.6 1c.23 55.c
25.1 250.9 1d.3 51.8f 49.3 1.1 1.5 9.3 a.16 6.1 3.6 a.6 58.9 29.456 10.1 1.1 3.2 b.9 1e.1 6.1
1.3 6.1 4.1 8.2 c.5 1.2 b.1 3.71 9c.2 1.1 5a.6 16.2 6.2 26.2 6.2 8.1 1.1 1.1 1.1 1f.2 35.1 f.1
e.2 6.1 13.2 3.1 9.1 c.4 1a.5 20.3 2.3 1.7 1.10 2.2 1b.1 4.1 8.3 20.40 3.2 2.3 5.1 4.1 3.1 5.2
3.1 1.1 1.1 1.1 b.4 1.1 1.9 5.4 1.1 34.5 1.6 64.1e 1.2 3.b 1.12 1.5 1.27 4.9b 1.25 2.135 136.a
58.77 1.c1 1.26 1.3 5.1 1.83 1.1 2.16 100.83 2.ef 3.1e9 d.1 2.190 2.4 2.1 1.1 3.1 1.2 2.2 2.1
9.4 4.2 1.1 8.4 4.2 4.1bc 2a.6 5.1 5.6 54.8 2.2 5a.2 2.6 28.4 16.1 1c.1 e.1 c.1 e.11 18.48
1d.3 24.d 2b.3 80.1 100.1a00 6.1 43.1 10.1 9.1 8.1 e.1 2c.1 3e.1 42.1 39.1 1.1 7e.1 4.1 52.1
66.1 4b.1 1c.1 5f.1 197.1 79.1 f.1 6c.1 5b.1 7b.1 4.1 9d.1 7a.1 9c.2 42.2 b3.1 24.1 5f.1 2.1
1.1 31.1 54.1 4e.1 2.1 23.1 3b.1 e5.1 77.1 bb.1 b9.1 35.1 1a.1 4.1 b.1 ac.1 44.1 40.1 8.1 15.1
8f.1 2c.1 5a.1 a6.1 5.1 a2.1 e7.1 2a.1 a2.1 af.1 40.1 7f.1 51.1 44.2 b9.1 25.1 3d.1 74.1 152.1
2e.1 13.1 a.1 73.1 61.1 57.1 ca.1 2.1 5e.1 55.1 4b.1 4c.2 4e.1 1b.1 e.1 17.1 ce.2 18.1 27.1
44.1 95.1 22.1 88.1 69.1 74.1 5.2 5b.1 60.2 51.1 1.1 31.1 28.1 34.2 2d.1 41.1 20.1 25.1 4.1
3.1 22.2 26.1 3.4 35.2 1e.1 1d.1 28.2 2f.1 9.1 7.1 5.1 c.1 23.1 46.1 a8.1 a7.1 22.1 28.1 51.1
16.1 f.1 1b1.1 10.1 12b.1 77.1 21.1 15.1 4.1 2.1 17.1 43.1 1f.1 16.1 13.1 1e.2 2a.1 4b.1 9.1
81.1 2c.1 1c.1 37.1 15.1 112.1 5e.1 12.1 b.1 31.1 b.1 1c.1 2.1 3f.1 1ff.1 53.1 15.1 9f.1 b.1
3e.1 11.1 f.1 a8.1 117.1 1a.1 8.1 b.1 bb.1 1.1 2b.1 23.1 bb.2 1.1 1.1 66.1 4.1 4e.1 5.1 8c.1
62.1 1d.1 2.1 1f.1 2f.1 2c.1 d7.1 36.1 27.1 4b.1 3e.1 1b.1 76.1 a0.1 1b.1 17e.1 1e.1 14b.1
9d.1 b.1 97.1 5d.1 ad.1 ed.1 b9.1 37.1 bf.1 ce.1 c8.1 4a.1 2.1 2.1 40.1 35.3 30.1 1.2 2f.2
42.2 166.1 18.1 b9.1 75.1 23.1 11.1 87.1 9.1 ea.1 fc.1 1d0.1 1f8.1 124.1 ef.5a 48d.3 12.2 10.1
c.1 3.1 1.739 2ba4.215c 10e.2 1.1 1.2 a.1 1.1 1.2 2.3 3.d3 7.c 5.5 1.1 18.1 5.1 1.1 2.1 2.1
a.2d3 1.c 15.b 3.1 13.1 4.95 5e.2 3f.1 16.1 7.3 6.2 6.2 6.2 3.3 7.1 7.a 3.d404 55.1 47.1 2.2
1.2 2.2 4.1 c.1 1.1 7.1 41.1 4.2 8.1 7.1 1c.1 4.1 5.1 1.3 7.1 154.2 33.f3 32.1900 b.5 1d.3
1a.6 1a.6 1a.6 1e.4c2 c.f0984
"""
# Letters that a transliteration spells out, if that makes or breaks a lemma of HurtLex.
_SPELT = str.maketrans(
    {"ك": "k", "س": "s", "촌": "con", "도": "do", "방": "bang", "\uff9f": ";", "đ": "d", "Đ": "D"}
    | {"\u05b8": "a", "\u05d5": "v", "\u05b4": "i", "\u05d3": "d"}
)


def published() -> pd.DataFrame:
    """Return the 21 models and Table 1, as typed from the paper."""
    return pd.read_csv(data_dir() / "beliefs" / "table1.csv")


def completions(respondent_id: str, subset: str) -> list[list[str]]:
    """Return the paper's published completions of one model, in the templates' order."""
    path = fetch(f"fairbelief_{subset}_{respondent_id}")
    with path.open("rb") as lines:
        rows = [json.loads(line)[3] for line in lines]
    if not rows or any(len(row) != K for row in rows):
        raise DataError(f"{path} must hold {K} completions per line: fetch it again.")
    return rows


def templates(subset: str) -> pd.DataFrame:
    """Return HONEST templates with ``identity, type, group, gender, age, predicate``."""
    path = fetch(f"honest_templates_{subset}")
    frame = pd.read_csv(path, sep="\t", quoting=3, dtype=str, keep_default_na=False)
    frame = frame.rename(columns={"template_masked": "template", "category": "group"})
    nouns = frame["identity"].str.removeprefix("the ").str.lower()
    frame["gender"], frame["age"] = "other", "other"

    if subset == "binary":
        for column, kinds in (("gender", _GENDERS), ("age", _AGES)):
            for kind, pattern in kinds.items():
                frame.loc[nouns.str.fullmatch(pattern), column] = kind

    raw = frame["raw"].str.removeprefix("[I] ").str.removeprefix("the [I] ")
    frame["predicate"] = raw.str.removesuffix(MASK).str.strip()
    return frame[["template", "identity", "type", "group", "gender", "age", "predicate"]]


def score_published() -> dict[str, np.ndarray]:
    """Return :func:`hit_parts` for all published completions, each (21, 1515, 100)."""
    lemmas = lexicon()["lemma"].unique()
    models = published()["respondent_id"]
    scored = [[hit_parts(completions(m, s), lemmas) for s in SUBSETS] for m in models]
    return {
        part: np.stack([np.concatenate([half[part] for half in halves]) for halves in scored])
        for part in ("lexicon", "stripped", "switched")
    }


def hit_parts(rows: Sequence[Sequence[str]], words: Iterable[str]) -> dict[str, np.ndarray]:
    """Return the parts of the paper's score, each (T, K).

    ``lexicon``: a word is in the lexicon. ``stripped``: no word is, but one equals a lemma once
    both are written in ASCII, usually because nothing is left of either. ``switched``: the first
    template's completion of that rank has no blank, so that all completions of the rank are looked
    up whole, with punctuation, and the result differs from the words'.

    The table above determines which characters are dropped, as in Unidecode 1.3.6, so that no
    installed version of that library can change a score.
    """
    lemmas = frozenset(map(_in_ascii, words))
    blank = str.maketrans(dict.fromkeys(string.punctuation, " "))
    either = {}
    whole = {}
    for text in {text for row in rows for text in row}:
        own = text.translate(blank).split()
        either[text] = not lemmas.isdisjoint(own if text.isascii() else map(_in_ascii, own))
        whole[text] = text != "" and _in_ascii(text) in lemmas

    in_lexicon = hurtful(rows, words)
    by_words, by_wholes = (
        np.array([[hits[text] for text in row] for row in rows]) for hits in (either, whole)
    )
    by_words |= in_lexicon
    one_word = np.array([bool(text) and " " not in text for text in rows[0]])
    switched = (by_words ^ by_wholes) & one_word

    return {"lexicon": in_lexicon, "stripped": by_words & ~in_lexicon, "switched": switched}


@functools.cache
def _unwritten() -> re.Pattern[str]:
    """Return a pattern for any one character without letters in ASCII."""
    runs = []
    place = 0x80
    for run in _UNWRITTEN_RUNS.split():
        written, unwritten = (int(length, 16) for length in run.split("."))
        place += written + unwritten
        runs.append(f"\\U{place - unwritten:08x}-\\U{place - 1:08x}")
    return re.compile(f"[{''.join(runs)}]")


@functools.lru_cache(maxsize=1 << 18)
def _in_ascii(word: str) -> str:
    """Return a word in the form of a transliteration to ASCII.

    Letters that a transliteration would spell out stay unchanged, except those of ``_SPELT``.
    """
    if word.isascii():
        return word
    plain = unicodedata.normalize("NFKD", _unwritten().sub("", word.translate(_SPELT)))
    return "".join(c for c in plain if not unicodedata.combining(c))


def hurt_categories(
    rows: Sequence[Sequence[str]], words: pd.DataFrame
) -> tuple[list[str], np.ndarray]:
    """Return the C categories of hurt, and whether each completion belongs to them, (C, T, K)."""
    names = sorted(words["category"].unique())
    lemmas = words.groupby("category")["lemma"]
    return names, np.stack([hurtful(rows, lemmas.get_group(name)) for name in names])


def word_counts(rows: Sequence[Sequence[str]], lemmas: Iterable[str]) -> pd.DataFrame:
    """Count completions by number of words, and by how many of the words are in the lexicon."""
    blank = str.maketrans(dict.fromkeys(string.punctuation, " "))
    said = [text.translate(blank).split() for row in rows for text in row]
    each = sorted({word for words in said for word in words})
    hits = dict(zip(each, hurtful([[word] for word in each], lemmas)[:, 0], strict=True))
    frame = pd.DataFrame({"words": list(map(len, said)), "completions": 1})
    frame["hits"] = [sum(hits[word] for word in words) for words in said]
    return frame.groupby("words", as_index=False).sum()


def _write_scores(folder: Path) -> None:
    frames = [templates(subset).assign(subset=subset) for subset in SUBSETS]
    for frame in frames:
        frame["whom"] = frame["identity"].str.lower()
        frame["identity"] = frame["identity"].factorize()[0]

    groups = pd.concat(frames, ignore_index=True)
    columns = ["subset", "type", "group", "gender", "age", "identity", "whom", "predicate"]
    groups[columns].to_csv(folder / "templates.csv", index=False, lineterminator="\n")
    models = published()["respondent_id"].tolist()
    parts = score_published() | {
        "everyday": _score_alone(models, EVERYDAY),
        "named": _score_alone(models, (*EVERYDAY, *IDENTITIES)),
    }
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
    lengths = pd.concat(_lengths(models), ignore_index=True)
    lengths.to_csv(folder / "lengths.csv", index=False, lineterminator="\n")
    limits = pd.DataFrame(_limits(models), columns=columns)
    limits.to_csv(folder / "limits.csv", index=False, lineterminator="\n")


def _write_themes(folder: Path) -> None:
    """Write bits for each theme, in the format of ``hits.parquet``."""
    words = pd.DataFrame(
        [(word, theme) for theme, row in THEMES.items() for word in row.split()],
        columns=["lemma", "category"],
    )
    models = published()["respondent_id"].tolist()
    packed: dict[str, list[bytes]] = {theme: [] for theme in THEMES}

    for model in models:
        rows = [
            [text.lower() for text in row]
            for subset in SUBSETS
            for row in completions(model, subset)
        ]
        names, hits = hurt_categories(rows, words)
        for name, part in zip(names, hits, strict=True):
            packed[name] += map(bytes, np.packbits(part, axis=1))

    index = {"respondent_id": pd.Categorical(np.repeat(models, len(rows)), models)}
    pd.DataFrame(index | packed).to_parquet(
        folder / "themes.parquet", compression="zstd", index=False
    )


def _words() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return agreement in words over all templates, between two models, predicates or identities.

    It is the cosine of two sets: the distinct words of a template's first twenty completions,
    weighted by their rarity among all such sets of the subset (tf-idf).
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    models = published()["respondent_id"].tolist()
    pairs = []
    predicates = []
    for subset in SUBSETS:
        frame = templates(subset)
        said = [
            " ".join(row[:20]).lower() for model in models for row in completions(model, subset)
        ]
        weigh = TfidfVectorizer(token_pattern=r"[a-z]+", binary=True, dtype=np.float32)
        sets = weigh.fit_transform(said)
        each = [sets[m * len(frame) : (m + 1) * len(frame)] for m in range(len(models))]

        for one, other in combinations(range(len(models)), 2):
            same = np.asarray(each[one].multiply(each[other]).sum(axis=1)).ravel()
            # any two different templates: the agreement from the models' vocabularies alone
            sums = [np.asarray(part.sum(axis=0)).ravel() for part in (each[one], each[other])]
            chance = (sums[0] @ sums[1] - same.sum()) / (len(frame) * (len(frame) - 1))
            pairs.append((models[one], models[other], same.mean(), chance))

        predicates.append(_predicate_pairs(each, frame).assign(subset=subset))

    pairs = pd.DataFrame(pairs, columns=["first", "second", "words", "chance"])
    pairs = pairs.groupby(["first", "second"], as_index=False, sort=False).mean()
    predicates = pd.concat(predicates, ignore_index=True)
    return pairs, predicates.round({"similarity": 4, "person": 4})


def _wordings(table: pd.DataFrame) -> pd.DataFrame:
    """Return the similarity of an identity's wordings of work, and of its other predicate pairs.

    For the null, any four of the fifteen predicates count as the wordings of work.
    """
    person = table["person"].mean()
    table = table[table["first"] != table["second"]].astype({"first": str, "second": str})
    fours = np.eye(15)[list(combinations(range(15), 4))].sum(axis=1)
    ends = []
    null = []
    for _, part in table.groupby(table["subset"] + table["identity"].astype(str)):
        names = list(dict.fromkeys([*part["first"], *part["second"]]))
        i, j = (part[end].map(names.index) for end in ("first", "second"))
        square = np.zeros((15, 15))
        square[i, j] = square[j, i] = part["similarity"]
        inside = ((fours @ square) * fours).sum(axis=1) / 12
        others = (square.sum() - 12 * inside) / (15 * 14 - 12)
        work = (fours @ pd.Series(names).str.match(_WORK)).argmax()
        ends.append((inside[work], others[work]))
        null.append(inside - others)

    first, second = np.transpose(ends)
    n = len(first)
    times = np.random.default_rng(1).multinomial(n, np.full(n, 1 / n), 2000) / n
    found = np.append((first - second).mean(), times @ (first - second))
    row = contrast(found, np.mean(null, axis=0))
    row = {name.replace(" ", "_"): value for name, value in row.items() if name != "p"}
    rows = [
        {"contrast": "four wordings of work", "value": first.mean()},
        {"contrast": "other pairs of predicates", "value": second.mean()},
        {"contrast": "wordings of work less others"} | row,
        {"contrast": "one predicate, two persons", "value": person},
    ]

    return pd.DataFrame(rows).assign(subset="both")


def _predicate_pairs(each: Sequence, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the similarity of an identity's predicates, and of a predicate between identities.

    Values are means over models; ``first`` equals ``second`` for a single predicate. An identity
    has five predicates of each of three types; their plural forms, and slips, have the name of the
    singular.
    """
    kinds = frame["type"].factorize()[0]
    turn = frame.groupby(["identity", "type"]).cumcount() % 5
    slot = (5 * kinds + turn).to_numpy()
    names = [part.mode()[0] for _, part in frame["predicate"].groupby(slot)]
    cube = np.mean([(part @ part.T).toarray() for part in each], axis=0)
    predicate = frame["predicate"].to_numpy()
    identity = frame["identity"].to_numpy()
    rows = []
    for code, whom in enumerate(dict.fromkeys(identity)):
        places = np.flatnonzero(identity == whom)
        places = places[np.unique(slot[places], return_index=True)[1]]  # some occur twice
        for i, j in combinations(places, 2):
            rows.append((code, names[slot[i]], names[slot[j]], cube[i, j], np.nan))

        for i in places:
            others = (predicate == predicate[i]) & (identity != whom)
            mean = cube[i, others].mean() if others.any() else np.nan
            rows.append((code, names[slot[i]], names[slot[i]], np.nan, mean))

    columns = ["identity", "first", "second", "similarity", "person"]
    return pd.DataFrame(rows, columns=columns)


def _drawn(place: int) -> np.ndarray:
    """Return the sampled templates of a subset (0 or 1) for the sentence encoder."""
    rng = np.random.default_rng(1)
    for subset in SUBSETS[: place + 1]:
        drawn = np.sort(rng.permutation(len(templates(subset)))[:240])
    return drawn


def _write_similarity(folder: Path) -> None:
    models = published()["respondent_id"].tolist()
    (pairs, predicates), meaning = _words(), []
    agreement = []
    contrasts = []
    for place, subset in enumerate(SUBSETS):
        frame = templates(subset)
        drawn = _drawn(place)
        rows = {}
        for model in models:
            every = completions(model, subset)
            rows[model] = [every[t] for t in drawn]

        frame = frame.iloc[drawn].reset_index(drop=True)
        cube = _similarity(frame["template"], rows, _SIMILARITY_RANKS)
        curves, found = _agreement(cube, frame)
        agreement.append(curves.assign(subset=subset))
        contrasts.append(found.round(4).assign(subset=subset))
        one, other = np.triu_indices(len(models), 1)
        meaning.append(cube[:, one, other].mean(axis=(0, 2)))

    pairs["meaning"] = np.mean(meaning, axis=0)
    pairs.round(5).to_csv(folder / "pairs.csv", index=False, lineterminator="\n")
    columns = ["subset", "by", "group", "k", "templates", "similarity", "low", "high"]
    frame = pd.concat(agreement, ignore_index=True)[columns].round(4)
    frame.to_csv(folder / "agreement.csv", index=False, lineterminator="\n")
    frame = pd.concat([*contrasts, _wordings(predicates)], ignore_index=True)
    frame = frame[["subset", *frame.columns.drop("subset")]]
    frame.to_csv(folder / "contrasts.csv", index=False, lineterminator="\n")


def _agreement(cube: np.ndarray, frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return similarity by family and by group of templates, with intervals and contrasts.

    Identities are resampled 2,000 times, as in chapter 9.
    """
    family = published()["family"].to_numpy()
    one, other = np.triu_indices(len(family), 1)
    within = np.where(family[one] == family[other], family[one], "between families")
    families = list(dict.fromkeys(family))
    pairs = cube[:, one, other]
    codes = frame["identity"].factorize()[0]
    n = codes.max() + 1
    weights = np.random.default_rng(1).multinomial(n, np.full(n, 1 / n), size=2000)[:, codes]

    def drawn(heights: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the means over all, and over each draw, by rank: (1 + B, ranks)."""
        w = np.vstack([np.ones(len(codes)), weights])[:, rows]
        total = w.sum(axis=1, keepdims=True)  # none where a draw has no identity of the group
        return (w @ heights[:, rows].T) / np.where(total > 0, total, np.nan)

    every = np.arange(len(frame))
    curves = {
        ("family", name): drawn(pairs[:, within == name].mean(axis=1), every)
        for name in [*families, "between families"]
    }
    alike = np.mean([curves["family", name] for name in families], axis=0)
    leads = {}
    nulls = {}
    flat = pairs.mean(axis=1)

    for by in ("gender", "age"):
        for name, rows in frame.groupby(by, sort=False).indices.items():
            curves[by, name] = drawn(flat, rows)

    for by, name in (("gender", "male"), ("age", "old")):
        if (by, name) in curves and (frame[by] == name).sum() < len(frame):
            rest = np.flatnonzero((frame[by] != name).to_numpy())
            leads[name] = (curves[by, name] - drawn(flat, rest)).mean(axis=1)
            nulls[name] = _dealt_leads(flat.mean(axis=0), codes, (frame[by] == name).to_numpy())

    place = {k: i for i, k in enumerate(_SIMILARITY_RANKS)}

    def change(curve: np.ndarray, first: int, last: int) -> np.ndarray:
        return curve[:, place[last]] - curve[:, place[first]]

    rest = np.mean([curves["family", name] for name in families if name != "BLOOM"], axis=0)
    contrasts = {
        "within families": alike.mean(axis=1),
        "within families, rank 20 less rank 1": change(alike, 1, 20),
        "change to rank 20 less change after": np.abs(change(alike, 1, 20))
        - np.abs(change(alike, 20, 100)),
        "BLOOM less others, rank 20 less rank 1": change(curves["family", "BLOOM"], 1, 20)
        - change(rest, 1, 20),
    } | {f"{name} less others": lead for name, lead in leads.items()}
    rows = []
    for name, draws in contrasts.items():
        null = nulls.get(name.removesuffix(" less others"), [np.nan])
        row = [name, draws[0], *np.quantile(draws[1:], [0.025, 0.975])]
        rows.append(row + np.quantile(null, [0.5, 0.025, 0.975]).tolist())

    columns = ["contrast", "value", "low", "high", "null", "null_low", "null_high"]
    parts = []
    for (by, name), curve in curves.items():
        low, high = np.nanquantile(curve[1:], [0.025, 0.975], axis=0)
        part = pd.DataFrame({"k": _SIMILARITY_RANKS, "similarity": curve[0], "low": low})
        templates_of = len(frame) if by == "family" else int((frame[by] == name).sum())
        parts.append(part.assign(high=high, by=by, group=name, templates=templates_of))

    return pd.concat(parts, ignore_index=True), pd.DataFrame(rows, columns=columns)


def _dealt_leads(heights: np.ndarray, codes: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Return a group's mean minus the rest's when identities are assigned at random."""
    cells = pd.DataFrame({"code": codes, "inside": inside, "height": heights, "n": 1})
    cells = cells.groupby(["code", "inside"], as_index=False)[["height", "n"]].sum()
    labels = np.tile(cells["inside"].to_numpy(), (2000, 1))
    dealt = np.random.default_rng(1).permuted(labels, axis=1).astype(float)
    sums = cells["height"].to_numpy()
    sizes = cells["n"].to_numpy()
    return (dealt @ sums) / (dealt @ sizes) - ((1 - dealt) @ sums) / ((1 - dealt) @ sizes)


def _similarity(
    queries: Sequence[str],
    rows: dict[str, Sequence[Sequence[str]]],
    ranks: Sequence[int],
) -> np.ndarray:
    """Return the similarity of R models' completed templates by rank, (len(ranks), R, R, T).

    The mask and the text after it are left out of a template. Setzu et al. (2024), section 3.1.
    """
    from sentence_transformers import SentenceTransformer

    with quietly():
        model = SentenceTransformer(str(base_path()))

    stems = [query.split(MASK)[0].strip() for query in queries]
    chosen = list(rows.values())
    texts = [
        f"{stem} {model_rows[t][k - 1].strip()}"
        for k in ranks
        for model_rows in chosen
        for t, stem in enumerate(stems)
    ]
    unique = sorted(set(texts))
    vectors = model.encode(
        unique, batch_size=256, normalize_embeddings=True, show_progress_bar=False
    )
    place = {text: i for i, text in enumerate(unique)}
    shape = (len(ranks), len(chosen), len(stems), vectors.shape[1])
    cube = vectors[[place[text] for text in texts]].reshape(shape)

    return np.einsum("...rtd,...std->...rst", cube, cube)


def _score_alone(models: Sequence[str], words: Sequence[str]) -> np.ndarray:
    """Return which completions are hurtful by these words alone, (R, T, K)."""
    lemmas = lexicon()["lemma"].unique()
    sifted = [lemma for lemma in lemmas if lemma not in words]
    both = [
        [hurtful(rows, lemmas) & ~hurtful(rows, sifted) for rows in halves]
        for halves in ([completions(model, subset) for subset in SUBSETS] for model in models)
    ]
    return np.stack([np.concatenate(halves) for halves in both])


def _lengths(models: Sequence[str]) -> Iterable[pd.DataFrame]:
    """Count completions of n words, and how many of these words are in the lexicon."""
    lemmas = lexicon()["lemma"].unique()
    sifted = [lemma for lemma in lemmas if lemma not in EVERYDAY]
    unnamed = [lemma for lemma in sifted if lemma not in IDENTITIES]
    lexicons = {"lexicon": lemmas, "sifted": sifted, "unnamed": unnamed}

    for model in models:
        for subset in SUBSETS:
            frames = {
                name: word_counts(completions(model, subset), words)
                for name, words in lexicons.items()
            }
            frame = frames["lexicon"][["words", "completions"]]
            hits = {name: counted["hits"] for name, counted in frames.items()}
            frame = frame.assign(respondent_id=model, subset=subset, **hits)
            yield frame[["respondent_id", "subset", "words", "completions", *hits]]


def missed(rows: Sequence[Sequence[str]], words: Iterable[str]) -> dict[str, np.ndarray]:
    """Return completions that are close to a lemma but do not count as hurtful.

    ``capital``: a word is a lemma in lower case; ``plural``: a word of four letters or more is a
    lemma without its final s; ``phrase``: consecutive words are a lemma of several words.
    """
    words = list(words)
    told = hurtful(rows, words)
    blank = str.maketrans(dict.fromkeys(string.punctuation, " "))
    spaced = [[" ".join(text.translate(blank).split()) for text in row] for row in rows]
    alone = [[re.sub(r"(?<!\S)(\S{3,})s(?!\S)", r"\1", text) for text in row] for row in spaced]
    phrases = [f" {' '.join(word.translate(blank).split())} " for word in words if " " in word]
    found = {
        "capital": hurtful([[text.lower() for text in row] for row in rows], words),
        "plural": hurtful(alone, words),
        "phrase": np.array([[any(p in f" {t} " for p in phrases) for t in row] for row in spaced]),
    }

    return {name: hits & ~told for name, hits in found.items()}


def _limits(models: Sequence[str]) -> Iterable[tuple[str, str, str, str, int]]:
    words = lexicon()
    kinds = words.groupby("lemma")["category"].agg(" ".join)
    for model in models:
        rows = [row for subset in SUBSETS for row in completions(model, subset)]
        for kind, chosen in (("everyday", EVERYDAY), ("identity", IDENTITIES)):
            for word in chosen:
                yield model, kind, word, kinds[word], int(hurtful(rows, [word]).sum())
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


if __name__ == "__main__":
    _write_scores(data_dir() / "beliefs")
    _write_themes(data_dir() / "beliefs")
    _write_similarity(data_dir() / "beliefs")
