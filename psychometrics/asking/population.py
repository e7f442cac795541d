"""Populations of respondents: their names, their files, and the embedded NLI models.

A population's file is YAML: :func:`psychometrics.authoring.population_drafts.new_population` writes
one from a query of the hub, and it can be edited by hand. ``data/population.csv`` contains each
member's recipe and its accuracy on MNLI pairs held out from all members;
``data/recipes/population.py`` trains the members. Encoders consist of adapters and a head on
MiniLM; decoders consist of adapters on SmolLM2, and answer with a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
from pydantic import AfterValidator, Field, model_validator

from ..checks import check_choice, check_names
from ..exceptions import KINDS, ParameterError, QuestionnaireError, RespondentError
from ..models.sources import find
from ..paths import data_dir
from ..questionnaires.checking import parse_part
from ..questionnaires.model import Part, repeated
from ..questionnaires.readers import read

FAMILIES = {"encoders": "MiniLM", "decoders": "SmolLM2"}
"""The names of populations that consist of one family, each with the name of its family."""
_ENDINGS = (".yaml", ".yml")  # of a population's file


def population(name: str | Path = "embedded") -> list[str]:
    """List the names of a population's respondents.

    Parameters
    ----------
    name : str or Path
        ``"embedded"``, the default: all decoders and, among the encoders, the frozen encoders and
        the most accurate encoder for each kind of data, depth and genre; ``"all"``, all embedded
        members; ``"encoders"`` or ``"decoders"``, the members of one family; or a comma-separated
        list of respondents (embedded members, local folders, hub ids) and of populations' files,
        which end in ``.yaml``.

    Returns
    -------
    list of str
        The names. A hub id from a file is followed by its revision in the file:
        ``owner/model@revision``.

    Raises
    ------
    RespondentError
        The name is empty, or no member of the embedded population is installed.
    ParameterError
        A population's file cannot be read, or is malformed; the message lists every mistake with
        its line.

    Examples
    --------
    >>> population("bert-large-mnli, my-model")
    ['bert-large-mnli', 'my-model']
    >>> len(population("encoders"))
    24
    """
    if not isinstance(name, str | Path):
        raise ParameterError(f"A population must be a name or a file, got {name!r}.")

    if name in ("embedded", "all") or name in FAMILIES:
        table = population_table()
        families = [FAMILIES[name]] if name in FAMILIES else FAMILIES.values()
        chosen = table["default"] if name == "embedded" else table["family"].isin(families)
        folder = data_dir() / "population"
        names = [name for name in table.loc[chosen, "respondent_id"] if (folder / name).is_dir()]

        if not names:
            raise RespondentError("data/population contains no adapters: run `make population`.")
        return names

    texts = [text.strip() for text in str(name).split(",") if text.strip()]
    names = []
    for text in texts:
        names += list(_read_bases(text)) if text.endswith(_ENDINGS) else [text]

    if not names:
        raise RespondentError("The population has no respondents: name at least one.")

    return names


def readable_names(names: Iterable[str]) -> dict[str, str]:
    """Name respondents for figures: by family, training pairs, and special features.

    Parameters
    ----------
    names : iterable of str
        Names of respondents. Names from outside the project stay unchanged; a folder's path is
        shortened to its last part.

    Returns
    -------
    dict
        A readable name for each name. If two names would be equal, the seed is added.

    Examples
    --------
    >>> readable_names(["minilm-both-l6-s1", "smol-mnli6k-d22-r10-s4"])
    {'minilm-both-l6-s1': 'MiniLM, 36k MNLI+SNLI', 'smol-mnli6k-d22-r10-s4': 'SmolLM2, 6k MNLI, ...
    """
    check_names(names=names)
    table = population_table().set_index("respondent_id")
    full = table.groupby("family")["layers"].max()
    labels = {}
    for name in dict.fromkeys(map(str, names)):
        if name not in table.index:
            short = name.rstrip("/").rpartition("/")[2] or name
            labels[name] = "SmolLM2" if name == "smollm2" else short
            continue

        row = table.loc[name]
        pairs = f"{row['pairs'] / 1000:.0f}k" if row["pairs"] >= 3000 else f"{row['pairs']:.0f}"
        parts = [row["family"], f"{pairs} {row['data'].upper()}"]
        parts += [row["genre"]] if isinstance(row["genre"], str) else []
        parts += ["frozen"] if row["tuning"] == "frozen" else []
        parts += [f"{row['layers']:.0f} layers"] if row["layers"] < full[row["family"]] else []
        labels[name] = ", ".join(parts)

    twice = {label for label in labels.values() if list(labels.values()).count(label) > 1}
    return {
        name: f"{label} ({name.rpartition('-')[2] if name in table.index else name})"
        if label in twice
        else label
        for name, label in labels.items()
    }


def untouched_bases(names: list[str]) -> dict[str, list[Any]]:
    """Return the untouched bases of a population's members, for its null respondents.

    Parameters
    ----------
    names : list of str
        Names of respondents. A respondent that is not an embedded member gets the whole encoder as
        its base.

    Returns
    -------
    dict
        ``base``, ``layers`` and ``wording`` (a decoder's text, None for an encoder), each with one
        entry per respondent, as :func:`psychometrics.nulls.respondents.null_answers` accepts them.

    Examples
    --------
    >>> stands = untouched_bases(["minilm-snli-l3-s17", "smol-snli4k-d18-r12-s7"])
    >>> stands["base"], stands["layers"]
    (['embedded', 'smollm2'], [3, 18])
    >>> stands["wording"]
    [None, 'Premise: {premise} Hypothesis: {hypothesis} Answer:']
    """
    table = population_table().set_index("respondent_id").reindex(names)
    decoders = table["family"] == FAMILIES["decoders"]
    return {
        "base": ["smollm2" if decoder else "embedded" for decoder in decoders],
        "layers": [None if depth != depth else int(depth) for depth in table["layers"]],
        "wording": [
            find(name).recipe["wording"] if decoder else None for name, decoder in decoders.items()
        ],
    }


def named_bases(name: str) -> dict[str, str]:
    """Return the untouched bases that a population's files name, by respondent.

    Parameters
    ----------
    name : str
        As in :func:`population`.

    Returns
    -------
    dict of str
        The base of each respondent whose entry has the key ``base``: a folder or a hub id.

    Examples
    --------
    >>> named_bases("embedded")
    {}
    """
    files = [text.strip() for text in name.split(",") if text.strip().endswith(_ENDINGS)]
    return {
        respondent: base
        for file in files
        for respondent, base in _read_bases(file).items()
        if base is not None
    }


def population_table(name: str | Path = "embedded") -> pd.DataFrame:
    """Return a table with each embedded member's recipe, seed and held-out accuracy.

    Parameters
    ----------
    name : str or Path
        A population's file, whose table is returned instead.

    Returns
    -------
    DataFrame
        For a file: ``respondent_id, revision, base, downloads, parameters, bytes, licence,
        labels``, and ``kind`` and ``reason`` of the models left out. For the embedded members:
        ``respondent_id``; ``family``; ``default``, whether ``population("embedded")`` includes the
        member; the recipe ``data, share`` (of the data), ``genre`` (to which the encoder was first
        adapted), ``layers, tuning, epochs, lr, seed``, for decoders also ``rank, adapt_from`` (the
        first adapted layer) and ``wording``; the result: number of training ``pairs``, ``accuracy``
        on held-out MNLI with its Wilson 95 % interval ``low, high``, ``accuracy_snli`` (only for
        members not trained on SNLI) and ``seconds`` of training.

    Raises
    ------
    ParameterError
        As in :func:`population`.

    Examples
    --------
    >>> population_table().groupby("family")["default"].sum().to_dict()
    {'MiniLM': 13, 'SmolLM2': 8}
    """
    if str(name).endswith(_ENDINGS):
        listed = _read_population(Path(name))
        models = (*listed.respondents, *listed.left_out)
        entries = [{"kind": "", "reason": ""} | entry.model_dump() for entry in models]
        columns = ["model", *list(_Entry.model_fields)[1:], "kind", "reason"]
        table = pd.DataFrame(entries, columns=columns).rename(columns={"model": "respondent_id"})
        table["labels"] = table["labels"].map(", ".join)
        counts = dict.fromkeys(("downloads", "parameters", "bytes"), "Int64")

        return table.astype(counts)

    check_choice(("embedded", "all", *FAMILIES, "a .yaml file"), population=str(name))
    texts = {"genre": str, "data": str, "wording": str}
    return pd.read_csv(data_dir() / "population.csv", dtype=texts)


def _check_name(text: str) -> str:
    if re.search(r"[,@<\n]", text) or not text:
        raise ValueError("must be a name without a comma, @ or <")
    return text


def _check_revision(text: str) -> str:
    if not re.fullmatch(r"[\w.-]+", text):
        raise ValueError("must be a commit, a branch or a tag")
    return text


class _Entry(Part):
    """A respondent in a file: a hub id (optionally with a commit), a folder, or a member."""

    model: Annotated[str, AfterValidator(_check_name)]
    revision: Annotated[str, AfterValidator(_check_revision)] | None = None
    base: Annotated[str, AfterValidator(_check_name)] | None = None
    downloads: Annotated[int, Field(ge=0)] | None = None
    parameters: Annotated[int, Field(ge=0)] | None = None
    bytes: Annotated[int, Field(ge=0)] | None = None
    licence: str | None = None
    labels: tuple[str, ...] = ()


class _LeftOut(_Entry):
    kind: Literal["licence", *KINDS]  # type: ignore[valid-type]  # the kinds are listed once
    reason: str


class _PopulationFile(Part):
    """The content of a population's file."""

    title: str
    written: str | None = None
    query: dict[str, object] | None = None
    respondents: tuple[_Entry, ...]
    left_out: tuple[_LeftOut, ...] = ()

    @model_validator(mode="after")
    def _each_once(self) -> _PopulationFile:
        twice = repeated([entry.model for entry in self.respondents], fold=False)
        if twice:
            raise ValueError(f"the respondent {twice[0]} is listed twice; keep one")
        return self


def _read_bases(file: str) -> dict[str, str | None]:
    """Return the names of a file's respondents, with their bases; folders are relative to it."""
    path = Path(file).expanduser()

    def locate(model: str) -> str:
        folder = path.parent / model
        return str(folder) if folder.is_dir() else model

    bases = {}
    for entry in _read_population(path).respondents:
        name = f"{entry.model}@{entry.revision}" if entry.revision else locate(entry.model)
        bases[name] = locate(entry.base) if entry.base else None

    return bases


def _read_population(path: Path) -> _PopulationFile:
    """Read and check a population's file; the error lists every mistake with its place."""
    try:
        content = read(path, str(path))
        if isinstance(content, dict) and "respondents" in content:
            return parse_part(content, str(path), _PopulationFile)
    except QuestionnaireError as error:
        raise ParameterError(str(error)) from None
    raise ParameterError(f"{path} lists no population: give it a title and respondents.")
