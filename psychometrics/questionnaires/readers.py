"""Read questionnaires' files in four layouts, and convert them into the project's layout.

YAML is the project's own layout (``questionnaires/README.md`` lists its keys). JSON files follow
PsychoBench or the question_llm library, and ``.osd`` files follow OpenScales; all are checked by
the same strict rules.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NoReturn

import numpy as np
import pandas as pd
import yaml
from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from ..data import fetch
from ..exceptions import QuestionnaireError
from ..paths import data_dir
from .checking import parse_part
from .model import Part, Questionnaire, repeated
from .openscales import _OpenScale

_Whole = Annotated[int, Field(strict=True)]
_Truth = BeforeValidator(
    lambda value: {"true": "True", "false": "False"}.get(str(value).strip().lower(), value)
)


def read(path: Path, place: str) -> Any:
    """Read a file into the project's layout; YAML is unchanged, and other layouts are converted.

    Parameters
    ----------
    path : Path
    place : str
        Name of the file in error messages.

    Raises
    ------
    QuestionnaireError
        The file is malformed.
    """
    suffix = path.suffix.lower()
    if suffix == ".osd":
        # The prefix separates its answers from those of a shipped questionnaire of the same name.
        named = {"id": f"osd-{_slug(path.stem)}", "source": path.name}
        return parse_part(_json(path, place), place, _OpenScale).ours() | named

    if suffix != ".json":
        return _yaml(path, place)

    content = _json(path, place)
    entry = content[0] if isinstance(content, list) and len(content) == 1 else content
    if isinstance(entry, list):
        raise QuestionnaireError(f"{place}: holds {len(entry)} questionnaires; split the file.")
    keys = set(entry) if isinstance(entry, dict) else set()
    if len(keys & set(_PsychoBench.model_fields)) > len(keys & set(_QuestionLlm.model_fields)):
        return parse_part(entry, place, _PsychoBench).ours(path)
    return parse_part(entry, place, _QuestionLlm).ours(path)


@functools.cache
def psychobench_keys() -> dict[str, dict[str, Any]]:
    """Return keys, ranges, norms and sources of PsychoBench's scales, from ``data/norms``.

    Returns
    -------
    dict
        Keys, ranges, norms and sources by the questionnaire's id, in the order of Table 5 of Huang
        et al. (2024).
    """
    text = (data_dir() / "norms" / "psychobench.yml").read_text(encoding="utf-8")
    keys: dict[str, dict[str, Any]] = yaml.load(
        text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    )
    return keys


def psychobench(name: str, texts: bool) -> Questionnaire:
    """Build one of PsychoBench's scales, from the project's keys and the downloaded wording.

    Parameters
    ----------
    name : str
    texts : bool
        Whether the items have their wording; without the wording nothing is downloaded.
    """
    keys = psychobench_keys()[name]
    upstream = _upstream_entry(name) if texts else {}
    low, high = keys["range"]
    labels = keys["labels"]
    if isinstance(labels, list):
        labels = dict(zip(range(low, high + 1), labels, strict=True))

    norms = [
        {"scale": scale["id"], "citation": keys["norm_citation"], **norm}
        for scale in keys["scales"]
        for norm in scale["norms"]
    ]
    questions = upstream.get("questions", {})
    items = [
        {"id": f"{name}_{i}", "text": questions.get(str(i), f"({keys['upstream']}, item {i})")}
        for i in range(1, keys["n_items"] + 1)
    ]
    content = {key: keys.get(key) for key in ("title", "measures", "citation", "stem")} | {
        "id": name,
        "short_title": keys["upstream"],
        "source": f"PsychoBench's questionnaires.json, {keys['upstream']}",
        "licence": "wording: see the questionnaire's owner, read at run time and not shipped",
        "wording": "upstream",
        "instructions": upstream.get("prompt", f"Instructions of the {keys['upstream']}."),
        "system": upstream.get("inner_setting"),
    }
    content |= {"options": _options(low, high, labels), "items": items}
    content |= {"scales": _scales(name, keys), "norms": norms}

    return parse_part(content, f"data/norms/psychobench.yml, {name}", Questionnaire)


def _scales(name: str, keys: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a questionnaire's scales, and the dimensions that combine several scales."""
    by_title = {scale["title"]: scale["items"] for scale in keys["scales"]}
    wholes = [(scale["id"], scale["title"], scale["items"]) for scale in keys["scales"]]

    for model, dimensions in keys.get("dimensions", {}).items():
        for title, members in dimensions.items():
            numbers = [number for member in members for number in by_title[member]]
            identity = f"{model}_{title.lower().replace(' ', '_')}"
            wholes.append((identity, f"{title} ({model.upper()})", numbers))

    scales = []
    for identity, title, numbers in wholes:
        scale = {"id": identity, "title": title, "mode": keys["mode"]}
        scale["items"] = [f"{name}_{number}" for number in numbers]
        scale["reverse"] = [f"{name}_{number}" for number in numbers if number in keys["reverse"]]
        scales.append(scale)

    return scales


@functools.cache
def _upstream_file() -> dict[str, dict[str, Any]]:
    entries = json.loads(fetch("psychobench").read_text(encoding="utf-8"))
    return {entry["name"]: entry for entry in entries}


def _upstream_entry(name: str) -> dict[str, Any]:
    """Return PsychoBench's entry for a scale, with the project's corrections of the wording."""
    entry = _upstream_file()[psychobench_keys()[name]["upstream"]]
    entry = {**entry, "questions": dict(entry["questions"])}
    known = pd.read_csv(data_dir() / "norms" / "corrections.csv", keep_default_na=False)
    for row in known[(known["questionnaire"] == name) & (known["kind"] == "wording")].itertuples():
        part = entry["questions"]
        place = row.place.removeprefix("item ")
        if row.place == "prompt":
            part = entry

        if row.upstream not in part[place]:
            raise QuestionnaireError(
                f"data/norms/corrections.csv, {name}, {row.place}: upstream lacks '{row.upstream}'."
            )

        part[place] = part[place].replace(row.upstream, row.ours)

    return entry


class _Crowd(Part):
    crowd_name: str
    mean: float
    std: float
    n: _Whole


class _Category(Part):
    cat_name: str
    cat_questions: tuple[_Whole, ...]
    crowd: tuple[_Crowd, ...] = ()


class _PsychoBench(Part):
    """One entry of PsychoBench's ``questionnaires.json``."""

    name: str
    questions: dict[str, str]
    inner_setting: str | None = None
    prompt: str
    scale: _Whole
    compute_mode: Literal["AVG", "SUM"]
    reverse: tuple[_Whole, ...] = ()
    categories: tuple[_Category, ...]

    @property
    def range(self) -> tuple[int, int]:
        """The lowest and highest answers; the file has their sum, and the prompt often both."""
        spoken = re.search(r"from (-?\d{1,4}) to (-?\d{1,4})(?!\d)", self.prompt)
        low = int(spoken[1]) if spoken and int(spoken[1]) + int(spoken[2]) == self.scale else 1
        return low, self.scale - low

    @model_validator(mode="after")
    def _adds_up(self) -> _PsychoBench:
        low, high = self.range
        found = [
            f"reverse: there is no question {number}; correct it"
            for number in self.reverse
            if str(number) not in self.questions
        ]

        if not self.categories:
            found.append(
                "categories: names no scale, so nothing can be scored (16P is scored by its "
                "owner's site alone); add your own, each with cat_name and cat_questions"
            )

        if not low < high <= low + 100:
            found.append(f"scale: must be the lowest plus the highest answer, got {self.scale}")

        if found:
            raise ValueError("\n".join(found))
        return self

    def ours(self, path: Path) -> dict[str, Any]:
        """Return the entry in the project's layout."""
        stem = _slug(path.stem)
        names = _scale_ids([category.cat_name for category in self.categories])
        scales = []
        norms = []
        for number, category in enumerate(self.categories, start=1):
            items = category.cat_questions
            scale: dict[str, Any] = {"id": names[number - 1], "title": category.cat_name}
            scale["items"] = [f"{stem}_{i}" for i in items]
            scale["reverse"] = [f"{stem}_{i}" for i in items if i in self.reverse]
            scales.append(scale | {"mode": "mean" if self.compute_mode == "AVG" else "sum"})

            for crowd in category.crowd:
                norm = {"scale": scale["id"], "group": crowd.crowd_name, "citation": "user"}
                norms.append(norm | {"n": crowd.n, "mean": crowd.mean, "sd": crowd.std})

        words = dict(re.findall(r"(-?\d+) denotes ['\"]?([^'\",;.\n]+)", self.prompt))
        return _unstated(path, self.name) | {
            "measures": ", ".join(category.cat_name for category in self.categories),
            "instructions": self.prompt,
            "system": self.inner_setting,
            "options": _options(*self.range, {int(value): word for value, word in words.items()}),
            "items": [{"id": f"{stem}_{i}", "text": text} for i, text in self.questions.items()],
            "scales": scales,
            "norms": norms,
        }


class _Question(Part):
    question: str
    choices: tuple[str, ...] | None = None
    scores: tuple[tuple[float, ...], ...] | None = None
    answer: Annotated[str | None, _Truth] = None


# Names of labels in question_llm, and in this project.
_INDICES = {"numerical": "numeric", "alphabetical": "alphabetical", "alphabetical_u":
            "alphabetical", "alphabetical_l": "lowercase"}  # fmt: skip


class _QuestionLlm(Part):
    """A file of question_llm, with Likert items (``choice_descs``), choices or true/false."""

    model_config = ConfigDict(str_strip_whitespace=False)

    prompt_template: str | None = None
    choice_delim: str | None = None
    index_type: Literal["numerical", "alphabetical", "alphabetical_u", "alphabetical_l"] | None = (
        None
    )
    seed: Annotated[_Whole, Field(ge=0, lt=1 << 32)] | None = None
    instruction: str | None = None
    categories: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    categories_bias: tuple[float, ...] | None = None
    choice_descs: tuple[str, ...] | None = None
    data: dict[str, _Question]

    def labels(self, question: _Question) -> tuple[str, ...]:
        """Return the options of a question: its own options, the file's, or true and false."""
        return question.choices or self.choice_descs or ("True", "False")

    @model_validator(mode="after")
    def _scored(self) -> _QuestionLlm:
        if self.seed is not None and (self.choice_descs or not self.categories):
            raise ValueError("seed: shuffles the `choices` of questions with scores; remove it")

        for key, question in self.data.items():
            if (question.answer is None) == (self.categories is None) or (
                question.answer and question.scores
            ):
                raise ValueError(f"data, {key}: needs either an `answer` or scores by `categories`")

            labels = self.labels(question)
            if question.answer and question.answer not in labels:
                raise ValueError(f"data, {key}, answer: must be one of {', '.join(labels)}")

        return self

    def prompt(self) -> dict[str, Any]:
        """Return the prompt that the library makes, with the library's defaults."""
        stated = (self.prompt_template, self.choice_delim, self.index_type)
        index = self.index_type or ("numerical" if self.choice_descs else "alphabetical")
        return {
            "template": self.prompt_template or "{question}\n{choices}",
            "delimiter": ". " if self.choice_delim is None else self.choice_delim,
            "labels": _INDICES[index],
            "usual": any(part is not None for part in stated),
        }

    def ours(self, path: Path) -> dict[str, Any]:
        """Return the file in the project's layout; true/false items count correct and incorrect."""
        items = []
        luck = np.random.RandomState(self.seed)

        for key, question in self.data.items():
            labels: Sequence[str] = self.labels(question)
            weights: Sequence[Sequence[float]] | None = question.scores
            if question.answer:
                weights = [(1, 0) if label == question.answer else (0, 1) for label in labels]

            if self.seed is not None:  # the library's own draw
                order = luck.choice(len(labels), len(labels), replace=False)
                labels = [labels[i] for i in order]
                weights = [weights[i] for i in order if weights and i < len(weights)]

            item: dict[str, Any] = {"id": key, "text": question.question, "weights": weights}
            item["options"] = _options(1, len(labels), dict(enumerate(labels, start=1)))
            items.append(item)

        categories = self.categories or ("Correct", "Incorrect")
        return _unstated(path, path.stem) | {
            "measures": ", ".join(categories),
            "instructions": self.instruction or "Choose the option that fits best.",
            "prompt": self.prompt(),
            "items": items,
            "categories": categories,
            "bias": self.categories_bias or [0.0] * len(categories),
        }


def _options(low: int, high: int, labels: dict[int, str]) -> list[dict[str, Any]]:
    """Return whole numbers as options; a number without a label is its own label."""
    return [{"value": n, "label": labels.get(n, str(n))} for n in range(low, high + 1)]


def _unstated(path: Path, title: str) -> dict[str, Any]:
    """Return values for the keys that a JSON file does not have."""
    named = {"id": _slug(path.stem), "title": title, "short_title": title, "citation": "user"}
    return named | {"source": path.name, "licence": "as the file's owner states"}


def _slug(stem: str) -> str:
    """Return an identifier for a file's name, with a digest if it has letters other than a to z.

    Examples
    --------
    >>> _slug("My scale (2)"), _slug("Té")
    ('my-scale-2', 't-5a4fdea7')
    """
    slug = re.sub(r"[^a-z0-9_-]+", "-", stem.lower()).strip("-_")
    if slug and stem.isascii():
        return slug
    name = unicodedata.normalize("NFC", stem)  # as some file systems do not
    digest = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return f"{slug or 'own'}-{digest}"


def _scale_ids(titles: Sequence[str]) -> list[str]:
    """Return an identifier for each scale, with its number where titles share their letters."""
    names = [re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_") for title in titles]
    return [
        name if name and names.count(name) == 1 else f"{name or 's'}{number}"
        for number, name in enumerate(names, start=1)
    ]


class _StrictLoader(yaml.SafeLoader):
    """YAML's safe loader, except that 1:30 and dates stay text and repeated keys are an error."""

    yaml_implicit_resolvers: ClassVar = {
        first: [pair for pair in resolvers if pair[0].rpartition(":")[2] in ("null", "bool")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    yaml_constructors: ClassVar = {
        tag: make
        for tag, make in yaml.SafeLoader.yaml_constructors.items()
        if tag is None or tag.rpartition(":")[2] in ("null", "bool", "float", "str", "seq", "map")
    }

    def get_single_node(self) -> yaml.Node | None:
        node = super().get_single_node()
        if node is not None and _size(node, {}) > _MOST_NODES:
            problem = "it repeats itself too often through aliases (*name)"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[str, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                problem = f"the key {key!r} is not text: put it in quotes"
            elif key in seen:
                problem = f"'{key}' occurs twice: keep one"
            else:
                seen.add(key)
                continue

            raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)

        mapping: dict[str, Any] = super().construct_mapping(node, deep)
        return mapping


_MOST_NODES = 200_000
_LARGEST = 8 << 20
# Limits of a file: values after expanding aliases, bytes, depth of brackets.
_DEEPEST = 60


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    """Return the number of values below a node, counting an alias each time that it is used."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) not in known:
        parts = itertools.chain(*node.value) if isinstance(node, yaml.MappingNode) else node.value
        known[id(node)] = 1 + sum(_size(part, known) for part in parts)
    return known[id(node)]


_NUMBERS = {  # YAML 1.2's numbers, with a limited length
    "int": r"[-+]?\d{1,30}$",
    "float": r"[-+]?(\d{1,30}\.\d{0,30}|\.\d{1,30}|\d{1,30}(?=[eE]))([eE][-+]?\d{1,3})?$"
    r"|[-+]?\.(inf|Inf|INF)$|\.(nan|NaN|NAN)$",
}


for _kind, _pattern in _NUMBERS.items():
    _StrictLoader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_kind}", re.compile(_pattern, re.ASCII), list("-+0123456789.")
    )
_StrictLoader.add_constructor(
    "tag:yaml.org,2002:int", lambda loader, node: int(loader.construct_scalar(node))
)


def _text(path: Path, place: str) -> str:
    try:
        if path.exists() and not path.is_file():
            raise QuestionnaireError(f"{place}: is not a file; name a file.")
        if path.stat().st_size > _LARGEST:
            raise QuestionnaireError(f"{place}: has more than {_LARGEST >> 20} MB; split the file.")
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise QuestionnaireError(f"{place}: is not text; save the file as UTF-8.") from None
    except OSError as error:
        raise QuestionnaireError(
            f"{place}: cannot be read ({error.strerror}); name a readable file."
        ) from None


def _yaml(path: Path, place: str) -> object:
    text = _text(path, place)
    try:
        if re.search(rf"(?:[\[{{]\s*){{{_DEEPEST}}}", text):  # the parser would need minutes
            raise RecursionError
        return yaml.load(text, Loader=_StrictLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise QuestionnaireError(f"{place}{where}: not valid YAML ({error.problem!r}).") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise QuestionnaireError(
            f"{place}, line {line}: has the invisible character U+{error.character:04X}; remove it."
        ) from None
    except (KeyError, ValueError, RecursionError):  # for example `!!bool maybe`
        raise QuestionnaireError(
            f"{place}: nested too deeply, or a tag (!!...) does not fit its value; simplify it."
        ) from None


def _json(path: Path, place: str) -> object:
    def once(pairs: list[tuple[str, object]]) -> dict[str, Any]:
        twice = repeated([key.strip() for key, _ in pairs], fold=False)
        if twice:
            raise QuestionnaireError(f"{place}: {twice[0]!r} occurs twice; keep one.")
        return dict(pairs)

    def refused(name: str) -> NoReturn:
        raise QuestionnaireError(f"{place}: {name} is not a number; write a finite number.")

    try:
        return json.loads(_text(path, place), object_pairs_hook=once, parse_constant=refused)
    except QuestionnaireError:
        raise
    except json.JSONDecodeError as error:
        raise QuestionnaireError(
            f"{place}, line {error.lineno}, column {error.colno}: not valid JSON ({error.msg})."
        ) from None
    except (RecursionError, ValueError):
        problem = f"{place}: nested too deeply, or a number is too long; simplify it."
        raise QuestionnaireError(problem) from None
