"""Stored rows of the respondents of six bases: a table per base and study in ``data/bases/``.

``members-*.csv`` has the respondents of ``data/plans/six-bases.yml``, ``twins-*.csv`` the arms of
``data/plans/twins.yml``.

Training is long and a user's cache may be lost, so a member's statistics and item scores go into
the repository's own tables as soon as it has answered. Each row is for a member with one of its
heads. The analysis reads only these rows; members with stored rows are not made again. Rows name
the digests of the plan and of the prompts, and rows with other digests are refused.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import yaml
from safetensors.torch import load_file

from psychometrics.models.vectors import is_decoder
from psychometrics.nulls.respondents import head_logits
from psychometrics.paths import data_dir
from psychometrics.questionnaires import load_questionnaire
from psychometrics.store import key_of

from .. import frozen_heads
from . import plan
from .criterion import criterion, criterion_prompts
from .labels import ARMS
from .plan import Member, tables_dir
from .training import OWN_HEAD, REFITTED, prompts_digest


class Study(NamedTuple):
    """A study: its plan, the fields that its digest leaves out, and the name of its tables."""

    plan: str
    notes: tuple[str, ...]
    table: str


SIX_BASES = Study("plans/six-bases.yml", ("deviations",), "members")
TWINS = Study("plans/twins.yml", ("committed", "deviations"), "twins")
COMMON = 1.0
"""Root mean square of the log probabilities to which every respondent is scaled."""
OWN_HEADS = 20
KINDS = ("source", "inverse", "silhouette")
FACTS = ("steps", "rate", "last loss", "training", "reading", "seconds")
LEARNING = ("accuracy true", "majority", "device")
"""Further facts of members of the second study."""
ABOUT = ("base", "group", "block", "head", "plan", "prompts", *FACTS, *LEARNING)
"""Columns that identify a row's respondent; the others are its statistics and its items."""


# --- the table of a base


def study_of(group: str) -> Study:
    """Return the study to which a group's members belong."""
    return TWINS if group in ARMS else SIX_BASES


def rows_path(base: str, study: Study = SIX_BASES) -> Path:
    """Return the path of the rows of a base's members in a study."""
    return tables_dir() / f"{study.table}-{Path(base).name}.csv"


@functools.cache
def plan_digest(study: Study = SIX_BASES) -> str:
    """Return a key of everything that a plan decides, without its notes.

    Examples
    --------
    >>> len(plan_digest())
    32
    """
    fields = yaml.safe_load((data_dir() / study.plan).read_text(encoding="utf-8"))
    decided = {name: field for name, field in fields.items() if name not in study.notes}
    return key_of(json.dumps(decided, sort_keys=True))


def digests(study: Study = SIX_BASES) -> dict[str, str]:
    """Return the keys of a study's plan and of the prompts."""
    return {"plan": plan_digest(study), "prompts": prompts_digest(plan.asked_of_members())}


def kept_rows(base: str, study: Study = SIX_BASES) -> pd.DataFrame:
    """Return the stored rows of a base's members in a study.

    Raises
    ------
    ValueError
        The rows come from another plan or from other prompts.
    """
    path = rows_path(base, study)
    if not path.is_file():
        return pd.DataFrame(columns=["group", "block", "head"])
    table = pd.read_csv(path)

    for name, digest in digests(study).items():
        if (table[name] != digest).any():
            raise ValueError(f"{path}: rows of another {name}; move the file away and run again.")

    return table


def kept_members(base: str, study: Study = SIX_BASES) -> set[Member]:
    """Return the members with a row for each head."""
    heads = kept_rows(base, study).groupby(["group", "block"])["head"].agg(set)
    return {
        Member(base, group, block)
        for (group, block), heads_of_member in heads.items()
        if heads_of_member >= set(heads_of(group))
    }


def keep(member: Member, folder: Path) -> None:
    """Add the rows of a member that has answered to the table of its base and study."""
    rows = pd.DataFrame([respondent_row(member, head, folder) for head in heads_of(member.group)])
    study = study_of(member.group)
    table = kept_rows(member.base, study)
    is_own = (table["group"] == member.group) & (table["block"] == member.block)
    table = pd.concat([part for part in (table[~is_own], rows) if len(part)])
    path = rows_path(member.base, study)
    path.parent.mkdir(exist_ok=True)
    # Nine digits are as many as answers in float32 have.
    table.to_csv(path.with_suffix(".part"), index=False, float_format="%.9g", lineterminator="\n")
    path.with_suffix(".part").replace(path)


def heads_of(group: str) -> list[str]:
    """Return the heads that the members of a group have."""
    own = ["own"] if group in OWN_HEAD else []
    refitted = ["refitted"] if group in REFITTED else []
    return ["untrained", *own, *refitted]


def statistics(table: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of statistics in a table of rows."""
    kept = [name for name in table if name not in ABOUT and ": " not in name]
    return table[kept]


def item_scores(table: pd.DataFrame, kind: str) -> np.ndarray:
    """Return scores of one kind, shape (rows, items), of the items of GAD-7, PHQ-9 and SOC-13."""
    loaded = [load_questionnaire(name) for name in plan.REAL]
    names = [f"{kind}: {item.id}" for questionnaire in loaded for item in questionnaire.items]
    return table[names].to_numpy(float)


# --- the row of a respondent


def respondent_row(member: Member, head: str, folder: Path) -> dict[str, object]:
    """Return a respondent's statistics and item scores; for untrained heads, the means.

    Parameters
    ----------
    member : Member
    head : str
        ``"own"``, ``"refitted"`` or ``"untrained"``.
    folder : Path
        Folder of the member's answers from :func:`recipes.six_bases.training.make`.
    """
    facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
    if facts["prompts"] != prompts_digest(plan.asked_of_members()):
        raise ValueError(f"{folder}: other prompts were asked; remove it and run again.")

    logits = _logits(member, head, folder)
    end = _number_of_prompts(plan.REAL)
    real = logits[:, :end]
    scores = scored(real)
    by_questionnaire = means_by_questionnaire(scores["silhouette"])
    row = {f"silhouette {name}": values.mean() for name, values in by_questionnaire.items()}
    row["silhouette"] = row.pop("silhouette all")
    row["silhouette medians"] = np.median(scores["silhouette"], axis=1).mean()
    row["silhouette as answered"] = scored(real, None)["silhouette"].mean()
    row["silhouette against contradiction"] = scored(real, kind="contrast")["silhouette"].mean()
    row |= criterion_of(logits[:, -len(criterion_prompts()) :]).mean().to_dict()
    row["decisiveness"] = scores["decisiveness"].mean()
    row["accuracy"] = facts.get(f"accuracy, {head}", np.nan)
    row |= _named_items(scores, plan.REAL)
    placebos = plan.ASKED[len(plan.REAL) :]

    if placebos:  # only item scores: the plan has no statistic of them
        asked = logits[:, end : _number_of_prompts(plan.ASKED)]
        row |= _named_items(scored(asked, names=placebos), placebos)

    study = study_of(member.group)
    about = {"base": plan.BASES[member.base].label, "group": member.group, "block": member.block}
    about |= {"head": head} | digests(study) | {name: facts[name] for name in FACTS}
    if study == TWINS:
        about["accuracy true"] = facts.get(f"accuracy true, {head}", np.nan)
        about |= {name: facts[name] for name in ("majority", "device")}

    return about | row


def _logits(member: Member, head: str, folder: Path) -> np.ndarray:
    """Return logits of all prompts, (1, prompts, 3), or of all untrained heads."""
    if head == "untrained":
        vectors = load_file(folder / "vectors.safetensors")["prompts"].numpy()
        first = 30_000 + OWN_HEADS * member.block
        return drawn_heads(vectors, first, OWN_HEADS, is_decoder(member.base))

    answers = pd.read_parquet(folder / "answers.parquet").query("head == @head")
    return np.log(np.maximum(answers[["e", "n", "c"]].to_numpy(dtype=float), 1e-12))[None]


def _number_of_prompts(names: Sequence[str]) -> int:
    return sum(len(plan.prompted(name)) for name in names)


def _named_items(scores: dict[str, np.ndarray], names: Sequence[str]) -> dict[str, float]:
    """Return the mean scores of items over heads, by kind and item."""
    items = list(dict.fromkeys(place.item for place in _places(tuple(names))))
    return {
        f"{kind}: {item}": value
        for kind in KINDS
        for item, value in zip(items, scores[kind].mean(axis=0), strict=True)
    }


@functools.cache
def _places(names: tuple[str, ...]) -> tuple:
    return tuple(frozen_heads.templates(names)[1])


def scored(
    logits: np.ndarray,
    size: float | None = COMMON,
    kind: str = "entailment",
    names: Sequence[str] | None = None,
) -> dict[str, np.ndarray]:
    """Return ``source, inverse, silhouette``, each (R, items), and ``decisiveness``, (R,).

    Parameters
    ----------
    logits : ndarray, shape (R, prompts, 3)
    size : float, optional
        Root mean square to which the centred log probabilities are scaled; None leaves them
        unscaled.
    kind : {"entailment", "contrast"}
        Whether answers are scored by entailment or against contradiction.
    names : sequence of str, optional
        Questionnaires of the prompts; by default GAD-7, PHQ-9 and SOC-13.
    """
    logs = frozen_heads.centred_logs(logits)
    sizes = np.sqrt((logs**2).mean(axis=(1, 2)))
    scaled = logits if size is None else logs * (size / sizes)[:, None, None]
    places = _places(tuple(plan.REAL if names is None else names))
    return frozen_heads.score(frozen_heads.shares(scaled, kind), places) | {"decisiveness": sizes}


def drawn_heads(vectors: np.ndarray, first: int, number: int, linear: bool) -> np.ndarray:
    """Return the logits of untrained heads, (heads, prompts, 3), numbered from `first`."""
    numbers = range(first, first + number)
    return np.stack([head_logits(vectors, np.random.default_rng([0, n]), linear) for n in numbers])


def criterion_of(logits: np.ndarray) -> pd.DataFrame:
    """Return the criterion of respondents from their logits of its prompts, (R, prompts, 3)."""
    return criterion(frozen_heads.shares(logits, "entailment"))


def means_by_questionnaire(values: np.ndarray) -> dict[str, np.ndarray]:
    """Return means of values (R, items) over each questionnaire's items, and over all items."""
    numbers = [len(load_questionnaire(name).items) for name in plan.REAL]
    parts = np.split(values, np.cumsum(numbers)[:-1], axis=1)
    means = {name: part.mean(axis=1) for name, part in zip(plan.REAL, parts, strict=True)}
    return {"all": values.mean(axis=1)} | means
