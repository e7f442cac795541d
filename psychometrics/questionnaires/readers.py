"""Read questionnaires' files in four layouts, and convert them into the project's layout.

YAML is the project's own layout (``questionnaires/README.md`` lists its keys). JSON files follow
PsychoBench or the question_llm library, and ``.osd`` files follow OpenScales; all are checked by
the same strict rules.
"""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any, ClassVar

import yaml

from ..exceptions import QuestionnaireError
from .checking import _join_lines, parse_part
from .layout import _Layout
from .model import repeated
from .openscales import _OpenScale
from .psychobench import _PsychoBench
from .question_llm import _QuestionLlm


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
        The file is malformed, or holds what the project's layout cannot.
    """
    suffix = path.suffix.lower()
    if suffix not in (".json", ".osd"):
        return _parse_yaml(path, place)

    content = _parse_json(path, place)
    if isinstance(content, list) and len(content) == 1:
        content = content[0]
    if isinstance(content, list):
        raise QuestionnaireError(f"{place}: holds {len(content)} questionnaires; split the file.")

    keys = set(content) if isinstance(content, dict) else set()
    layout: type[_Layout] = _QuestionLlm
    if suffix == ".osd":
        layout = _OpenScale
    elif len(keys & set(_PsychoBench.model_fields)) > len(keys & set(_QuestionLlm.model_fields)):
        layout = _PsychoBench

    try:
        return parse_part(content, place, layout).convert(path)
    except QuestionnaireError:
        raise
    except ValueError as error:
        raise QuestionnaireError(_join_lines([f"{place}, {error}."])) from None


class _StrictLoader(yaml.SafeLoader):
    """YAML's safe loader, except that 1:30 and dates stay text and repeated keys are an error."""

    yaml_implicit_resolvers: ClassVar = {
        sign: [pair for pair in resolvers if pair[0].rpartition(":")[2] in ("null", "bool")]
        for sign, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def get_single_node(self) -> yaml.Node | None:
        node = super().get_single_node()
        if node is not None and _count_values(node, {}) > _MOST_VALUES:
            problem = "it repeats itself too often through aliases (*name)"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[str, Any]:
        keys = set()
        problem = None
        for key_node, _value_node in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                problem = f"the key {key!r} is not text: put it in quotes"
            elif key in keys:
                problem = f"{key!r} occurs twice: keep one"
            if problem:
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
            keys.add(key)

        mapping: dict[str, Any] = super().construct_mapping(node, deep)
        return mapping


# Limits of a file: values after expanding aliases, bytes, depth of brackets.
_MOST_VALUES = 200_000
_MOST_BYTES = 8 << 20
_DEEPEST = 60


def _count_values(node: yaml.Node, counts: dict[int, int]) -> int:
    """Return the number of values below a node, counting an alias each time that it is used."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) not in counts:
        nodes = itertools.chain(*node.value) if isinstance(node, yaml.MappingNode) else node.value
        counts[id(node)] = 1 + sum(_count_values(inner, counts) for inner in nodes)
    return counts[id(node)]


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


def _read_text(path: Path, place: str) -> str:
    try:
        if path.exists() and not path.is_file():  # reading a pipe may never end
            raise QuestionnaireError(f"{place}: is not a file; name a file.")
        if path.stat().st_size > _MOST_BYTES:
            raise QuestionnaireError(
                f"{place}: has more than {_MOST_BYTES >> 20} MB; split the file."
            )
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise QuestionnaireError(f"{place}: is not text; save the file as UTF-8.") from None
    except OSError as error:
        raise QuestionnaireError(
            f"{place}: cannot be read ({error.strerror}); name a readable file."
        ) from None


def _parse_yaml(path: Path, place: str) -> object:
    text = _read_text(path, place)
    try:
        if re.search(rf"(?:[\[{{]\s*){{{_DEEPEST}}}", text):  # the parser slows down with each
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
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError):
        # for example `!!bool maybe`
        raise QuestionnaireError(
            f"{place}: nested too deeply, or a tag (!!...) does not fit its value; simplify it."
        ) from None


def _parse_json(path: Path, place: str) -> object:
    def check_once(pairs: list[tuple[str, object]]) -> dict[str, Any]:
        names = repeated([key.strip() for key, _value in pairs], fold=False)
        if names:
            raise QuestionnaireError(f"{place}: {names[0]!r} occurs twice; keep one.")
        return dict(pairs)

    def refuse_constant(name: str) -> None:
        raise QuestionnaireError(f"{place}: {name} is not a number; write a finite number.")

    text = _read_text(path, place)
    try:
        return json.loads(text, object_pairs_hook=check_once, parse_constant=refuse_constant)
    except QuestionnaireError:
        raise
    except json.JSONDecodeError as error:
        raise QuestionnaireError(
            f"{place}, line {error.lineno}, column {error.colno}: not valid JSON ({error.msg})."
        ) from None
    except (RecursionError, ValueError):
        problem = f"{place}: nested too deeply, or a number is too long; simplify it."
        raise QuestionnaireError(problem) from None
