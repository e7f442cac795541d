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
from typing import Any, ClassVar, NoReturn

import yaml

from ..exceptions import QuestionnaireError
from .checking import parse_part
from .layout import _make_identifier
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
        The file is malformed.
    """
    suffix = path.suffix.lower()
    if suffix == ".osd":
        # The prefix separates its answers from those of a shipped questionnaire of the same name.
        named = {"id": f"osd-{_make_identifier(path.stem)}", "source": path.name}
        return parse_part(_parse_json(path, place), place, _OpenScale).ours() | named

    if suffix != ".json":
        return _parse_yaml(path, place)

    content = _parse_json(path, place)
    entry = content[0] if isinstance(content, list) and len(content) == 1 else content
    if isinstance(entry, list):
        raise QuestionnaireError(f"{place}: holds {len(entry)} questionnaires; split the file.")
    keys = set(entry) if isinstance(entry, dict) else set()
    if len(keys & set(_PsychoBench.model_fields)) > len(keys & set(_QuestionLlm.model_fields)):
        return parse_part(entry, place, _PsychoBench).ours(path)
    return parse_part(entry, place, _QuestionLlm).ours(path)


class _StrictLoader(yaml.SafeLoader):
    """YAML's safe loader, except that 1:30 and dates stay text and repeated keys are an error."""

    yaml_implicit_resolvers: ClassVar = {
        first: [pair for pair in resolvers if pair[0].rpartition(":")[2] in ("null", "bool")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
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


def _read_text(path: Path, place: str) -> str:
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


def _parse_yaml(path: Path, place: str) -> object:
    text = _read_text(path, place)
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
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError):
        # for example `!!bool maybe`
        raise QuestionnaireError(
            f"{place}: nested too deeply, or a tag (!!...) does not fit its value; simplify it."
        ) from None


def _parse_json(path: Path, place: str) -> object:
    def once(pairs: list[tuple[str, object]]) -> dict[str, Any]:
        twice = repeated([key.strip() for key, _ in pairs], fold=False)
        if twice:
            raise QuestionnaireError(f"{place}: {twice[0]!r} occurs twice; keep one.")
        return dict(pairs)

    def refused(name: str) -> NoReturn:
        raise QuestionnaireError(f"{place}: {name} is not a number; write a finite number.")

    try:
        return json.loads(_read_text(path, place), object_pairs_hook=once, parse_constant=refused)
    except QuestionnaireError:
        raise
    except json.JSONDecodeError as error:
        raise QuestionnaireError(
            f"{place}, line {error.lineno}, column {error.colno}: not valid JSON ({error.msg})."
        ) from None
    except (RecursionError, ValueError):
        problem = f"{place}: nested too deeply, or a number is too long; simplify it."
        raise QuestionnaireError(problem) from None
