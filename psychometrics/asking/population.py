"""Who answers: names of respondents, those a file lists, and the table of the embedded NLI models.

A population's file is YAML: :func:`psychometrics.asking.population_drafts.new_population` writes
one
from a query of the hub, and it is read and edited by hand. ``data/population.csv`` holds each
member's recipe and its accuracy on the held-out MNLI pairs that no member was trained on;
:mod:`data.make.population` trains them. Encoders are adapters and a head on MiniLM,
decoders adapters on SmolLM2 that answer by a word.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import pandas as pd
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..exceptions import KINDS, ParameterError, RespondentError
from ..models.sources import embedded_path
from ..paths import data_dir

RECIPE = ["data", "share", "genre", "layers", "tuning", "epochs", "lr", "seed"]
"""What makes a member, besides its family; a decoder's adapter has a rank and a wording, too."""
FAMILIES = {"encoders": "MiniLM", "decoders": "SmolLM2"}
"""Names of populations, and the family that each is of."""
LEFT_OUT = {"licence": "its licence is none of those asked for", **KINDS}
"""Why a population's file leaves models out."""


def population(name: str | Path = "embedded") -> list[str]:
    """Names of the respondents of a population.

    Parameters
    ----------
    name : str or Path
        ``"embedded"``, the population that comes with the project; ``"encoders"`` or
        ``"decoders"``, all embedded members of one family; or a comma-separated list of respondents
        (embedded members, local folders, hub ids) and of populations' files, which end in
        ``.yaml``. The default one has all decoders and, of the encoders, the most accurate of each
        kind of data, depth and genre and the frozen ones.

    Returns
    -------
    list of str
        Of a file's hub ids with the revision that it names: ``owner/model@revision``.

    Raises
    ------
    RespondentError
        The name is empty, or no member of the embedded population is there.
    ParameterError
        A population's file cannot be read, or is malformed: every mistake is listed, with its line.

    Examples
    --------
    >>> population("bert-large-mnli, my-model")
    ['bert-large-mnli', 'my-model']
    >>> len(population("encoders"))
    24
    """
    if name == "embedded" or name in FAMILIES:
        table = population_table()
        chosen = table["default"] if name == "embedded" else table["family"] == FAMILIES[name]
        names = [member for member in table.loc[chosen, "respondent_id"] if embedded_path(member)]
        if not names:
            raise RespondentError("data/population holds no adapters: run `make population`.")
        return names
    parts = [part.strip() for part in str(name).split(",") if part.strip()]
    names = [name for part in parts for name in (_listed(part) if _is_file(part) else [part])]
    if not names:
        raise RespondentError("The population has no respondents: name at least one.")
    return names


def readable_names(names: Iterable[str]) -> dict[str, str]:
    """What respondents are called in figures: family, pairs of what data, what is special.

    Parameters
    ----------
    names : iterable of str
        Names of respondents; those that do not come with the project keep their name, folders
        their last part.

    Returns
    -------
    dict
        From each name to the one to show. No two are equal: a seed is added where it decides.

    Examples
    --------
    >>> readable_names(["minilm-both-l6-s1", "smol-mnli6k-d22-r10-s4"])
    {'minilm-both-l6-s1': 'MiniLM, 36k MNLI+SNLI', 'smol-mnli6k-d22-r10-s4': 'SmolLM2, 6k MNLI, ...
    """
    table = population_table().set_index("respondent_id")
    full = table.groupby("family")["layers"].max()
    shown = {}
    for name in dict.fromkeys(names):
        if name not in table.index:
            short = name.rstrip("/").rpartition("/")[2] or name
            shown[name] = "SmolLM2" if name == "smollm2" else short
            continue
        row = table.loc[name]
        pairs = f"{row['pairs'] / 1000:.0f}k" if row["pairs"] >= 3000 else f"{row['pairs']:.0f}"
        parts = [row["family"], f"{pairs} {row['data'].upper()}"]
        parts += [row["genre"]] if isinstance(row["genre"], str) else []
        parts += ["frozen"] if row["tuning"] == "frozen" else []
        parts += [f"{row['layers']:.0f} layers"] if row["layers"] < full[row["family"]] else []
        shown[name] = ", ".join(parts)
    twice = {label for label in shown.values() if list(shown.values()).count(label) > 1}
    return {
        name: f"{label} ({name.rpartition('-')[2] if name in table.index else name})"
        if label in twice
        else label
        for name, label in shown.items()
    }


def untouched_bases(names: list[str]) -> dict[str, list]:
    """What a population's null respondents stand on: its members' bases, before any training.

    Parameters
    ----------
    names : list of str
        Of respondents; those that are no embedded members stand on the whole encoder.

    Returns
    -------
    dict
        ``base`` and ``layers``, one each a respondent, as
        :func:`psychometrics.measures.nulls.null_answers`
        takes them.

    Examples
    --------
    >>> untouched_bases(["minilm-snli-l3-s17", "smol-mnli6k-r8-s1"])
    {'base': ['embedded', 'smollm2'], 'layers': [3, None]}
    """
    table = population_table().set_index("respondent_id").reindex(names)
    decoders = table["family"] == FAMILIES["decoders"]
    deep = table["layers"].where(~decoders)
    return {
        "base": ["smollm2" if decoder else "embedded" for decoder in decoders],
        "layers": [None if depth != depth else int(depth) for depth in deep],
    }


def population_table(name: str | Path = "embedded") -> pd.DataFrame:
    """Recipe, seed and held-out accuracy of each embedded member, one row each.

    Parameters
    ----------
    name : str or Path
        A population's file, whose table is returned instead.

    Returns
    -------
    DataFrame
        Of a file ``respondent_id, revision, downloads, parameters, bytes, licence, labels``, and
        ``kind`` and ``reason`` of those that were left out. Of the embedded ones
        ``respondent_id``; ``family``; ``default``, whether ``population("embedded")`` has it; the
        recipe ``data, share`` (of the data), ``genre`` (the encoder was first adapted to),
        ``layers, tuning, epochs, lr, seed``, of decoders ``rank, adapt_from`` (the first layer
        adapted) and ``wording`` too; the result ``pairs`` trained on, ``accuracy`` on held-out
        MNLI with its Wilson 95 % interval ``low, high``, ``accuracy_snli`` (only where SNLI was
        not trained on) and ``seconds`` of training.

    Raises
    ------
    ParameterError
        As in :func:`population`.

    Examples
    --------
    >>> population_table().groupby("family")["default"].sum().to_dict()
    {'MiniLM': 13, 'SmolLM2': 8}
    """
    if _is_file(str(name)):
        listed = _read(Path(name))
        return pd.DataFrame(
            {
                "respondent_id": entry.model,
                "revision": entry.revision,
                "downloads": entry.downloads,
                "parameters": entry.parameters,
                "bytes": entry.bytes,
                "licence": entry.licence,
                "labels": ", ".join(entry.labels),
                "kind": getattr(entry, "kind", ""),
                "reason": getattr(entry, "reason", ""),
            }
            for entry in (*listed.respondents, *listed.left_out)
        ).astype({"downloads": "Int64", "parameters": "Int64", "bytes": "Int64"})
    texts = {"genre": str, "data": str, "wording": str}
    return pd.read_csv(data_dir() / "population.csv", dtype=texts)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


class _Entry(_Part):
    """A model: a hub id (with the commit it is to be asked at), a folder, or an embedded member."""

    model: Annotated[str, Field(min_length=1, pattern=r"^[^,@<\n]+$")]
    revision: Annotated[str, Field(pattern=r"^[\w.-]+$")] | None = None
    downloads: Annotated[int, Field(ge=0)] | None = None
    parameters: Annotated[int, Field(ge=0)] | None = None
    bytes: Annotated[int, Field(ge=0)] | None = None
    licence: str | None = None
    labels: tuple[str, ...] = ()


class _LeftOut(_Entry):
    kind: str
    reason: str


class _Listed(_Part):
    """What a population's file holds."""

    title: str
    written: str | None = None
    query: dict[str, object] = {}
    respondents: tuple[_Entry, ...]
    left_out: tuple[_LeftOut, ...] = ()


def _is_file(name: str) -> bool:
    return name.endswith((".yaml", ".yml"))


def _listed(name: str) -> list[str]:
    """Names of a file's respondents; folders are looked for beside it."""
    path = Path(name).expanduser()
    names = []
    for entry in _read(path).respondents:
        beside = path.parent / entry.model
        if entry.revision:
            names.append(f"{entry.model}@{entry.revision}")
        else:
            names.append(str(beside) if beside.is_dir() else entry.model)
    return names


def _read(path: Path) -> _Listed:
    """A population's file, checked; every mistake is told with its line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        content = yaml.safe_load(text)
    except OSError as error:
        raise ParameterError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ParameterError(f"{path}: not a text file; save it as UTF-8.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "a sign that no text file has"
        raise ParameterError(f"{path}{where}: not valid YAML ({problem}).") from None
    if not isinstance(content, dict) or "respondents" not in content:
        raise ParameterError(
            f"{path} lists no population: give it a title, and respondents, each with its model."
        )
    if "written" in content:
        content["written"] = str(content["written"])  # YAML reads a date
    try:
        listed = _Listed.model_validate(content)
    except ValidationError as error:
        lines = [_told(mistake, node) for mistake in error.errors()]
        raise ParameterError("\n".join(f"{path}, {line}" for line in lines)) from None
    lines = [f"line {line}: {key} is there twice; keep one." for key, line in _twice(node)]
    seen: dict[str, int] = {}
    for number, entry in enumerate(listed.respondents):
        line = _line(node, ("respondents", number, "model"))
        if entry.model in seen:
            first = seen[entry.model]
            lines.append(f"line {line}: {entry.model} is in line {first} already; keep one.")
        seen.setdefault(entry.model, line)
    for number, entry in enumerate(listed.left_out):
        if entry.kind not in LEFT_OUT:
            line = _line(node, ("left_out", number, "kind"))
            near = difflib.get_close_matches(entry.kind, LEFT_OUT, n=1)
            hint = f" (did you mean '{near[0]}'?)" if near else ""
            kinds = ", ".join(LEFT_OUT)
            lines.append(f"line {line}: there is no kind '{entry.kind}'{hint}: write {kinds}.")
    if lines:
        raise ParameterError("\n".join(f"{path}, {line}" for line in lines))
    return listed


def _twice(node: yaml.Node) -> Iterator[tuple[str, int]]:
    """Keys that stand twice in one place, of which YAML would take the last, with their lines."""
    if isinstance(node, yaml.MappingNode):
        keys = [key.value for key, _ in node.value]
        for number, (key, value) in enumerate(node.value):
            if key.value in keys[:number]:
                yield key.value, key.start_mark.line + 1
            yield from _twice(value)
    elif isinstance(node, yaml.SequenceNode):
        for part in node.value:
            yield from _twice(part)


def _told(mistake: dict, node: yaml.Node) -> str:
    """A mistake that pydantic found, as a line of the file and a sentence."""
    place, kind = mistake["loc"], mistake["type"]
    called = str(place[-1])
    if kind == "missing":
        return f"line {_line(node, place[:-1])}: {called} is missing; add it."
    line, got = _line(node, place), repr(mistake["input"])[:60]
    if kind == "extra_forbidden":
        return f"line {line}: {called} is not a known key; remove or rename it."
    said = {
        "string_pattern_mismatch": "holds a sign that no name has, such as a comma, @ or a blank"
        if called == "revision"
        else "holds a sign that no name has, such as a comma, @ or <",
        "string_type": "must be text; put it in quotes",
        "string_too_short": "is empty; write something",
        "tuple_type": "must be a list",
        "model_type": "must have keys, such as model",
        "int_parsing": "must be a whole number",
        "greater_than_equal": "must be 0 or more",
    }.get(kind, mistake["msg"][0].lower() + mistake["msg"][1:])
    return f"line {line}: {'an entry' if called.isdigit() else called} {said}, got {got}."


def _line(node: yaml.Node, place: tuple) -> int:
    """The line of a part of the file, or of the part around it that is there."""
    line = node.start_mark.line + 1
    for key in place:
        if isinstance(node, yaml.MappingNode):
            found = [pair for pair in node.value if pair[0].value == key]
            if not found:
                return line
            line, node = found[0][0].start_mark.line + 1, found[0][1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
            node = node.value[key]
            line = node.start_mark.line + 1
    return line
