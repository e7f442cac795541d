"""Writes ``data/beliefs`` anew: ``python -m psychometrics.make.beliefs``.

Five files: ``templates.csv``, ``hits.parquet`` (hits packed to bits), ``categories.parquet`` and
``limits.csv`` (counts), and ``similarity.parquet``. The text is fetched; only figures made of it
are written. Embedding all completions would take a processor days, so a seeded sample of 240
templates of each half is embedded at eleven ranks, which takes about ten minutes. Table 1 is typed
from the paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ..beliefs import hurt_categories, hurtful, missed
from ..paths import data_dir
from ..respondents.completions import MASK
from ..respondents.loading import quietly
from ..respondents.sources import base_path
from ..studies.fairbelief import (
    EVERYDAY,
    SUBSETS,
    K,
    completions,
    lexicon,
    published,
    score_published,
    templates,
)

_IDENTITIES = ("gay", "homosexual", "queer")
"""Lemmas that HONEST's own templates use as names of identities."""
_SIMILARITY_RANKS = (1, 2, 3, 5, 10, 15, 20, 30, 50, 75, 100)


def _write_scores(folder: Path) -> None:
    frames = [templates(subset).assign(subset=subset) for subset in SUBSETS]
    for frame in frames:
        frame["identity"] = frame["identity"].factorize()[0]
    groups = pd.concat(frames, ignore_index=True)
    groups[["subset", "type", "group", "gender", "age", "identity"]].to_csv(
        folder / "templates.csv", index=False, lineterminator="\n"
    )
    models = published()["respondent_id"].tolist()
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


def _write_similarity(folder: Path) -> None:
    models = published()["respondent_id"].tolist()
    rng = np.random.default_rng(1)
    parts = []
    for subset in SUBSETS:
        frame = templates(subset)
        drawn = np.sort(rng.permutation(len(frame))[:240])
        rows = {}
        for model in models:
            every = completions(model, subset)
            rows[model] = [every[t] for t in drawn]
        frame = frame.iloc[drawn].reset_index(drop=True)
        cube = _similarity(frame["template"], rows, _SIMILARITY_RANKS)
        one, other = np.triu_indices(len(models), 1)
        for (gender, age), members in frame.groupby(["gender", "age"]).indices.items():
            means = cube[:, one, other][:, :, members].mean(axis=-1)
            part = pd.DataFrame(means, index=_SIMILARITY_RANKS).rename_axis("k").reset_index()
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


def _similarity(
    queries: Sequence[str],
    rows: dict[str, Sequence[Sequence[str]]],
    ranks: Sequence[int],
) -> np.ndarray:
    """Similarity of R models' completed templates at the same rank, (len(ranks), R, R, T).

    The mask and what follows it are left out of a template. Setzu et al. (2024), section 3.1.
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
        for kind, chosen in (("everyday", EVERYDAY), ("identity", _IDENTITIES)):
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
    _write_similarity(data_dir() / "beliefs")
