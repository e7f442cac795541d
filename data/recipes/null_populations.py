"""Make ``data/null_populations.parquet``: ``python -m recipes.null_populations [START STOP]``.

The plan is ``data/plans/within-base.yml``. Each of 2,000 populations replaces every embedded member
with a null respondent that has the member's base and number of layers and reads the same text. No
two populations share a head. For every population the file has each kind of evidence within each
base, for heads of four sizes and, on the decoder, for random words. ``data/within_base.csv``
compares the members with them under the plan's other choices, and ``data/within_depth.csv`` within
each depth of a base.

Populations are made fifty at a time and stored in the user's cache, so that a stopped run resumes
and two processes may share the work: each makes the populations from START to STOP. Without these
numbers, missing populations are made and the three files are written. This takes an hour on one
processor core.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd

from psychometrics.asking.ask import ask
from psychometrics.asking.population import population, population_table, untouched_bases
from psychometrics.measures.reliability import alphas
from psychometrics.models.sources import SMOLLM2
from psychometrics.models.vectors import layer_vectors
from psychometrics.modes.nli import PROBABILITIES
from psychometrics.nulls.evidence import (
    evidence_of_draws,
    jackknife,
    profiles,
    rank_correlations,
    reached,
)
from psychometrics.nulls.respondents import drawn_words, head_logits
from psychometrics.paths import cache_dir, data_dir
from psychometrics.questionnaires import load_questionnaire
from psychometrics.store import key_of
from psychometrics_book.studies.untrained import EXPECTED, PLACEBOS, REAL, SIZES, with_beyond

from . import frozen_heads

NAMES = (*REAL, *PLACEBOS)
PRIMARY = ("alpha", "correlations", "silhouette")
POPULATIONS = 2000
OTHER_SEEDS = 200
CHUNK = 50
SINGLE = 200
"""Number of populations whose single heads' silhouettes are shipped."""
KEPT = "means over prompts kept"
OTHER = "other seeds"
"""Two of the plan's choices, which need their own heads."""
WORDS = "words"
"""Name of the null of random words, which replaces a size."""
ENDS = (7, 16, 29)
"""Ends of the items of the three questionnaires among a profile's columns."""
KINDS = ("source", "inverse", "silhouette")


class Members:
    """The embedded members: their bases, depths, answers and sizes."""

    def __init__(self) -> None:
        self.loaded = [load_questionnaire(name) for name in NAMES]
        self.names = population("encoders") + population("decoders")
        self.table = population_table().set_index("respondent_id").loc[self.names]
        self.bases = self.table["family"].to_numpy()
        self.layers = self.table["layers"].astype(int).to_numpy()
        stands = untouched_bases(self.names)
        self.stands = list(zip(*stands.values(), strict=True))

        table, self.places = frozen_heads.templates(NAMES)
        parts = tuple(
            tuple(part[["premise", "hypothesis"]].itertuples(index=False, name=None))
            for _, part in table.groupby("questionnaire", sort=False)
        )
        self.vectors = {
            stand: layer_vectors(stand[0], {stand[1]}, parts, stand[2])[stand[1]]
            for stand in dict.fromkeys(self.stands)
        }

        answers = ask(self.loaded, self.names, progress=False)
        self.profiles = profiles(answers, self.loaded).loc[self.names]
        values = answers.pivot_table(
            index="respondent_id", columns=answers.groupby("respondent_id").cumcount(),
            values=list(PROBABILITIES), sort=False,
        )  # fmt: skip
        values = np.stack([values[name].loc[self.names].to_numpy() for name in PROBABILITIES], 2)
        logs = np.log(np.maximum(values.astype(float), 1e-12))
        self.sizes = _size(frozen_heads.centred_logs(logs))
        self.kept_sizes = _size(_of_classes(logs))
        self.digest = key_of(*map(str, self.sizes.round(4)), "populations-2")


def _size(logs: np.ndarray) -> np.ndarray:
    """Return the root mean square of log probabilities, shape (R,)."""
    return np.sqrt((logs**2).mean(axis=(1, 2)))


def _of_classes(logits: np.ndarray) -> np.ndarray:
    """Return log probabilities minus their means over classes, but not over prompts."""
    logs = logits - np.logaddexp.reduce(logits, axis=2, keepdims=True)
    return logs - logs.mean(axis=2, keepdims=True)


# --- populations


def _logits(members: Members, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return logits of one population's heads, (R, prompts, 3), and of its random-words decoders.

    The random numbers are those of :func:`psychometrics.null_answers`.
    """
    first = number * len(members.names)
    heads = []
    words = []
    for place, stand in enumerate(members.stands):
        read = members.vectors[stand]
        decodes = stand[0] == SMOLLM2
        rng = np.random.default_rng([0, first + place])
        heads.append(head_logits(read, rng, linear=decodes))

        if decodes:
            rng = np.random.default_rng([4, first + place])
            words.append(read.astype(float) @ drawn_words(SMOLLM2, rng).T)

    return np.stack(heads), np.stack(words)


def _entailments(members: Members, number: int) -> dict[str, np.ndarray]:
    """Return P(entailment) of one population's heads by size, each (R, prompts)."""
    logits, words = _logits(members, number)
    kept = _of_classes(logits)
    unit = kept - kept.mean(axis=1, keepdims=True)
    unit /= _size(unit)[:, None, None]

    entailments = {"start": _entailment(logits)}

    for size, factor in SIZES.items():
        if factor is not None:
            entailments[size] = _entailment(unit * (factor * members.sizes)[:, None, None])

    grown = kept * (members.kept_sizes / _size(kept))[:, None, None]
    entailments[KEPT] = _entailment(grown)

    return entailments | {WORDS: _entailment(words)}


def _entailment(logits: np.ndarray) -> np.ndarray:
    """Return the probability of the first class of logits (..., 3)."""
    rest = logits[..., 1:] - logits[..., :1]
    return 1 / (1 + np.exp(np.minimum(rest, 80)).sum(axis=-1, dtype=float))


def _chunk(members: Members, start: int) -> dict[str, np.ndarray]:
    """Return scores and silhouettes of fifty populations by size, each (3, populations, R, I)."""
    path = cache_dir() / "null-populations" / f"{members.digest[:16]}-{start}.npz"
    if path.is_file():
        with np.load(path) as stored:
            return dict(stored)

    made: dict[str, list] = {}
    for number in range(start, start + CHUNK):
        entailments = _entailments(members, number)
        if number >= POPULATIONS:
            entailments = {OTHER: entailments["matched"]}

        for size, entailment in entailments.items():
            scores = frozen_heads.score(entailment, members.places)
            values = np.stack([scores[kind] for kind in KINDS])
            if size == WORDS:  # encoders have no words
                everyone = np.full((len(KINDS), len(members.names), values.shape[2]), np.nan)
                everyone[:, members.bases == "SmolLM2"] = values
                values = everyone

            made.setdefault(size, []).append(values)

    arrays = {size: np.stack(values, axis=1).astype("float32") for size, values in made.items()}

    path.parent.mkdir(parents=True, exist_ok=True)
    new_file = path.with_suffix(".part.npz")
    np.savez(new_file, **arrays)
    new_file.replace(path)

    return arrays


# --- statistics


def _evidence(members: Members, values: np.ndarray, chosen: np.ndarray) -> pd.DataFrame:
    """Return each kind of evidence of the chosen respondents, a row for each population."""
    cubes = values[:, :, chosen].astype(float)
    return with_beyond(evidence_of_draws(*cubes, members.loaded, EXPECTED))


def centred(values: np.ndarray, depths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return scores centred within each depth and divided by their size there.

    The size is the root of the mean variance of the items of source terms. A respondent without
    others at its depth is left out.

    Parameters
    ----------
    values : ndarray, shape (3, populations, R, I)
        Scores of source and inverse terms, and silhouettes, which stay unchanged.
    depths : ndarray, shape (R,)
        Labels of base and depth.

    Returns
    -------
    ndarray, shape (3, populations, fewer, I), and ndarray
        The values, and the respondents that they belong to.
    """
    names, counts = np.unique(depths, return_counts=True)
    shared = np.flatnonzero(np.isin(depths, names[counts > 1]))
    adjusted = values[:, :, shared].astype(float)
    for name in names[counts > 1]:
        at_depth = depths[shared] == name
        scores = adjusted[:2, :, at_depth]
        size = np.sqrt(scores[0].var(axis=1, ddof=1).mean(axis=1))
        adjusted[:2, :, at_depth] = (scores - scores.mean(axis=2, keepdims=True)) / size[
            :, None, None
        ]
    return adjusted, shared


def _by_depth(members: Members, values: np.ndarray, rows: np.ndarray) -> dict[str, pd.DataFrame]:
    """Return each kind of evidence by depth, and for all depths of a base, centred.

    ``rows`` lists the members that the values belong to.
    """
    depths = depth_labels(members)[rows]
    scores, shared = centred(values, depths)
    labels = depths[shared]
    groups = {name: labels == name for name in dict.fromkeys(labels)}
    for base in ("MiniLM", "SmolLM2"):
        groups[base] = np.array([label.startswith(base) for label in labels])
    return {name: _evidence(members, scores, own) for name, own in groups.items() if own.any()}


def depth_labels(members: Members) -> np.ndarray:
    """Return labels of base and depth, such as ``"MiniLM, 6 layers"``."""
    pairs = zip(members.bases, members.layers, strict=True)
    return np.array([f"{base}, {depth} layers" for base, depth in pairs])


def _primary(values: np.ndarray, bases: np.ndarray, centre=np.mean) -> dict[str, pd.DataFrame]:
    """Return the primary statistics within each base and combined, a row for each population."""
    by_base = {}
    for base in dict.fromkeys(bases):
        on_base = bases == base
        source = values[0, :, on_base].transpose(1, 0, 2).astype(float)[:, :, : ENDS[-1]]
        width = values[2, :, on_base].transpose(1, 0, 2).astype(float)[:, :, : ENDS[-1]]
        parts = np.split(source, ENDS[:-1], axis=2)
        rank = rank_correlations(np.stack([part.mean(axis=2) for part in parts], axis=2))
        turned = np.stack([rank[:, 0, 1], -rank[:, 0, 2], -rank[:, 1, 2]])
        least = turned.min(axis=0) if centre is np.mean else centre(turned, axis=0)
        alpha = centre([alphas(_covariances(part)) for part in parts], axis=0)
        silhouette = centre(width.reshape(len(width), -1), axis=1)
        columns = [alpha, least, silhouette]
        by_base[base] = pd.DataFrame(dict(zip(PRIMARY, columns, strict=True)))

    if len(by_base) > 1:
        counts = pd.Series(bases).value_counts()
        by_base["both"] = sum(by_base[base] * counts[base] for base in by_base) / len(bases)

    return by_base


def _covariances(scores: np.ndarray) -> np.ndarray:
    centred_scores = scores - scores.mean(axis=1, keepdims=True)
    return centred_scores.transpose(0, 2, 1) @ centred_scores / (scores.shape[1] - 1)


def _choices(members: Members, values: np.ndarray) -> dict[tuple[str, str], pd.DataFrame]:
    """Return the primary statistics under each choice of members or means, by choice and base."""
    bases = members.bases
    default = members.table["default"].to_numpy()
    six = members.layers == 6
    choices = {
        "as planned": _primary(values, bases),
        "medians": _primary(values, bases, np.median),
        "default members": _primary(values[:, :, default], bases[default]),
        "six layers": _primary(values[:, :, six], bases[six]),
    }

    for place, name in enumerate(members.names):
        others = (np.arange(len(bases)) != place) & (bases == bases[place])
        choices[f"without {name}"] = _primary(values[:, :, others], bases[others])

    return {
        (choice, base): table
        for choice, bases_of in choices.items()
        for base, table in bases_of.items()
    }


def _summary(members: Members, start: int) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return the evidence of fifty populations: as shipped, by depth, and by the plan's choices.

    It is stored in the user's cache, like the scores.
    """
    folder = cache_dir() / "null-populations"
    names = ("shipped", "depths", "choices")
    paths = [folder / f"{members.digest[:16]}-{start}-{name}.parquet" for name in names]
    if not all(path.is_file() for path in paths):
        parts = _summarised(members, start)
        for path, part in zip(paths, parts, strict=True):
            part.to_parquet(path.with_suffix(".part"), index=False)
            path.with_suffix(".part").replace(path)

    shipped, depths, choices = (pd.read_parquet(path) for path in paths)
    return shipped, depths, choices


def _summarised(members: Members, start: int) -> list[pd.DataFrame]:
    everyone = np.arange(len(members.names))
    decoders = np.flatnonzero(members.bases == "SmolLM2")
    rows = []
    depths = []
    choices = []
    for size, values in _chunk(members, start).items():
        if size in (KEPT, OTHER):
            for base, statistics in _primary(values, members.bases).items():
                choices.append(statistics.assign(choice=size, base=base))
            continue

        rows.append(_shipped_rows(members, values, size, start))
        who = decoders if size == WORDS else everyone
        for name, statistics in _by_depth(members, values[:, :, who], who).items():
            depths.append(statistics.assign(base=name, size=size))

        if size == "matched":
            for (choice, base), statistics in _choices(members, values).items():
                choices.append(statistics.assign(choice=choice, base=base))

    parts = (rows, depths, choices)
    return [pd.concat(part, ignore_index=True) if part else pd.DataFrame() for part in parts]


# --- the shipped files


def _write(members: Members) -> None:
    summaries = []
    for start in range(0, POPULATIONS + OTHER_SEEDS, CHUNK):
        summaries.append(_summary(members, start))

    shipped, depths, choices = (
        pd.concat(parts, ignore_index=True) for parts in zip(*summaries, strict=True)
    )
    trained = np.stack([members.profiles[kind].to_numpy() for kind in KINDS])[:, None]

    table = pd.concat([shipped, _shipped_rows(members, trained, "trained", 0)], ignore_index=True)
    numbers = table.select_dtypes("float").columns
    table[numbers] = table[numbers].round(4).astype("float32")
    table.to_parquet(data_dir() / "null_populations.parquet", index=False, compression="zstd")

    observed = _choices(members, trained)
    observed |= {
        (choice, base): statistics
        for choice in (KEPT, OTHER)
        for (planned, base), statistics in list(observed.items())
        if planned == "as planned"
    }
    drawn = choices.groupby(["choice", "base"], sort=False)
    _write_compared(observed, drawn, ["choice", "base", "evidence"], "within_base.csv")
    _write_depths(members, trained, depths.groupby(["base", "size"], sort=False))


def _shipped_rows(members: Members, values: np.ndarray, size: str, start: int) -> pd.DataFrame:
    """Return a row per population and base: all kinds of evidence, and single silhouettes."""
    parts = []
    for base in dict.fromkeys(members.bases):
        if size == WORDS and base != "SmolLM2":
            continue
        chosen = members.bases == base
        rows = _evidence(members, values, chosen).drop(columns="beyond placebos")
        rows.insert(0, "population", np.arange(start, start + len(rows)))
        rows.insert(0, "size", size)
        rows.insert(0, "base", base)
        means = values[2][:, chosen, : ENDS[-1]].mean(axis=2).astype("float32").round(4)
        few = rows["population"] < SINGLE
        rows["single"] = [row.tolist() if keep else None for row, keep in zip(means, few)]  # noqa: B905
        parts.append(rows)

    return pd.concat(parts)


def _write_compared(observed: dict, drawn, names: list[str], file: str) -> None:
    tables = []
    for key, draws in drawn:
        row = reached(observed[key].iloc[0], draws)
        row = row.rename_axis("evidence").reset_index()
        tables.append(row.assign(**dict(zip(names, key, strict=False))))
    table = pd.concat(tables).set_index(names).reset_index()
    table.to_csv(data_dir() / file, index=False, float_format="%.5g")


def _write_depths(members: Members, values: np.ndarray, drawn) -> None:
    everyone = np.arange(len(members.names))
    observed = _by_depth(members, values, everyone)
    labels = pd.Series(depth_labels(members))
    shared = labels.index[labels.map(labels.value_counts()) > 1].to_numpy()

    def statistics(part: pd.DataFrame) -> pd.Series:
        chosen = part["place"].to_numpy()
        by = _by_depth(members, values[:, :, chosen], chosen)
        return pd.concat({base: by[base].iloc[0] for base in ("MiniLM", "SmolLM2") if base in by})

    places = pd.DataFrame({"place": shared})
    half = jackknife(statistics, places, pd.Series(members.bases[shared]))
    tables = []
    for (base, size), draws in drawn:
        row = reached(observed[base].iloc[0], draws)
        if base in half.index:
            row["low"] = observed[base].iloc[0] - half.loc[base, base]
            row["high"] = observed[base].iloc[0] + half.loc[base, base]

        row["members"] = labels[shared].str.startswith(base).sum()
        tables.append(row.rename_axis("evidence").reset_index().assign(base=base, size=size))

    table = pd.concat(tables).set_index(["base", "size", "evidence"]).reset_index()
    table = table.dropna(subset="p")
    table.to_csv(data_dir() / "within_depth.csv", index=False, float_format="%.5g")


def _main() -> None:
    members = Members()
    if len(sys.argv) > 2:
        for start in range(int(sys.argv[1]), int(sys.argv[2]), CHUNK):
            _summary(members, start)
            print(start, flush=True)
        return
    _write(members)


if __name__ == "__main__":
    _main()
