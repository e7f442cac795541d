"""Write answers in the form that a prompt or a JSON schema asks for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..exceptions import ParameterError
from .prompts import Choice, Question

NO_QUESTION = "No item with options was found in this prompt; a null respondent has no answer."
"""The reply to a prompt without options."""
_NO_REASON = "None: a null respondent does not read the item."
_PLACEHOLDER = (
    r"\$?(?:LETTERS?|NUMBERS?|OPTION|CHOICE|SCORE|RATING|X)\b|\((?:X|[Ll]etter)\)"
    r"|\[(?:the_answer_letter|letter|number|answer|score|rating|choice|option|X)\]"
)
# A form in quotation marks, such as 'ANSWER: $LETTER' or "the answer is (X)".
_TEMPLATE = re.compile(rf"['\"“`]([^'\"”`\n]{{0,60}}?)({_PLACEHOLDER})(\.?)['\"”`]")
_TAG = re.compile(r"<(answer|score|rating|choice)>", re.IGNORECASE)
_OBJECT = re.compile(r"\{[^{}]*\}")
_KEYS = re.compile(r"\"([^\"\n]+)\"\s*:")
_ANSWER_NAMES = re.compile(
    r"answer|choice|score|rating|response|option|value|label|selected|decision", re.IGNORECASE
)
_KEY_NAMES = re.compile(r"\b(?:id|index|number|key|item|question|statement)\b", re.IGNORECASE)
# Schemas may refer to themselves.
_DEEPEST = 12
_MOST_VALUES = 10_000


class Answer(NamedTuple):
    """A drawn option, with the probabilities of all options."""

    question: Question
    place: int
    shares: NDArray[np.float64]

    @property
    def label(self) -> str:
        """The label of the drawn option."""
        return self.question.choices[self.place].label

    def as_object(self, keys: Sequence[str]) -> dict[str, Any]:
        """Return the answer under the keys of an example; other keys get a reason."""
        answer_keys = [key for key in keys if _ANSWER_NAMES.search(key)] or [keys[-1]]
        values: dict[str, Any] = {}
        for key in keys:
            if key == answer_keys[0]:
                values[key] = as_value(self.label)
            elif _KEY_NAMES.search(key):
                values[key] = as_value(self.question.key or "1")
            else:
                values[key] = _NO_REASON
        return values


_Answering = Callable[[Question], Answer]


def write_reply(questions: Sequence[Question], answer: _Answering, prompt: str) -> str:
    """Answer the questions of a prompt in the form that its text asks for.

    Parameters
    ----------
    questions : sequence of Question
    answer : callable
        A function that draws the answer to a question.
    prompt : str
        All messages, among which the form is described.

    Examples
    --------
    >>> question = Question("I am calm.", (Choice("A", "no"), Choice("B", "yes")))
    >>> def last(question):
    ...     return Answer(question, len(question.choices) - 1, np.array([0.0, 1.0]))
    >>> write_reply([question], last, "Respond in the form 'ANSWER: $LETTER'.")
    'ANSWER: B'
    >>> write_reply([question], last, 'Respond in JSON: {"reason": "...", "answer": "A"}')
    '{"reason": "None: a null respondent does not read the item.", "answer": "B"}'
    """
    answers = [answer(question) for question in questions]
    if not answers:
        return NO_QUESTION

    if re.search(r"\bjson\b|\bdictionary\b", prompt, re.IGNORECASE):
        return json.dumps(_in_json(answers, prompt), ensure_ascii=False)

    bare = re.search(r"\{\s*(\w+)\s*:[^{}\n]*\}", prompt)
    if bare and len(answers) == 1:  # {answer: "answer option"}
        return f'{{{bare[1]}: "{answers[0].label}"}}'
    wants_number = re.search(r"\b(?:its number|index|line for each)\b", prompt, re.IGNORECASE)
    if len(answers) > 1 or (answers[0].question.key and wants_number):
        return "\n".join(f"{each.question.key}: {each.label}" for each in answers)

    template = _TEMPLATE.search(prompt)
    if template:
        label = answers[0].label
        if template[2].startswith("("):
            label = f"({label})"
        return f"{template[1]}{label}{template[3]}"

    tag = _TAG.search(prompt)
    return f"<{tag[1]}>{answers[0].label}</{tag[1]}>" if tag else answers[0].label


def _in_json(answers: Sequence[Answer], prompt: str) -> Any:
    """Return the answers as the example of a prompt shows them, or by number."""
    if '"probabilities" array' in prompt:
        return {"probabilities": answers[0].shares.round(6).tolist()}

    objects = [match for match in _OBJECT.findall(prompt) if _KEYS.search(match)]
    example = objects[-1] if objects else ""
    keys = _KEYS.findall(example)
    if len(answers) == 1 and answers[0].question.has_options(keys):
        return dict(zip(keys, answers[0].shares.round(6).tolist(), strict=True))

    by_name = {key for key in keys if not key.isdigit()}
    if f"[{example}" in re.sub(r"\[\s*", "[", prompt) and by_name:
        return [each.as_object(keys) for each in answers]
    if len(answers) == 1 and by_name:
        return answers[0].as_object(keys)
    if len(answers) == 1 and not keys and not answers[0].question.key:
        return {"answer": as_value(answers[0].label)}
    return {each.question.key or "1": as_value(each.label) for each in answers}


def as_value(label: str) -> int | str:
    """Return a label as JSON would hold it.

    Examples
    --------
    >>> as_value("4"), as_value("A")
    (4, 'A')
    """
    return int(label) if re.fullmatch(r"-?\d+", label) else label


def fill_schema(
    schema: Any, questions: Sequence[Question], answer: _Answering, replies: int = 1
) -> Any:
    """Return a value that a JSON schema permits, with the answers in its place.

    A property with an ``enum``, or an integer with limits, is an item; its text is that of the
    prompt's item of this number, or else the property's description or name.

    Parameters
    ----------
    schema : mapping
    questions : sequence of Question
        The items that the prompt has.
    answer : callable
        A function that draws the answer to a question.
    replies : int
        Number of replies to the request, all of which have at most 10,000 values.

    Raises
    ------
    ParameterError
        The schema asks for more values.

    Examples
    --------
    >>> schema = {"type": "object", "properties": {"mood": {"enum": ["low", "high"]}}}
    >>> fill_schema(schema, [], lambda question: Answer(question, 1, np.array([0.5, 0.5])))
    {'mood': 'high'}
    """
    return _Form(schema, answer, _MOST_VALUES // replies).fill(schema, questions, "", 0)


class _Form:
    """A JSON schema that is being filled in."""

    def __init__(self, schema: Any, answer: _Answering, most: int) -> None:
        self.root = schema
        self.answer = answer
        self.remaining = most

    def fill(self, schema: Any, questions: Sequence[Question], name: str, depth: int) -> Any:
        self.remaining -= 1
        if self.remaining < 0:
            raise ParameterError(
                f"response_format, tools: the schema asks for more than {_MOST_VALUES:,} values in "
                "all replies; ask for fewer."
            )

        schema = self._resolved(schema)
        if depth > _DEEPEST:
            return None
        if "const" in schema:
            return schema["const"]

        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next((each for each in kind if each != "null"), "null")
        values = schema["enum"] if isinstance(schema.get("enum"), list) else None
        low = schema.get("minimum")
        high = schema.get("maximum")
        if kind == "integer" and values is None and isinstance(low, int) and isinstance(high, int):
            values = range(low, high + 1) if 0 < high - low <= 100 else None
        if kind == "boolean":
            values = [False, True]

        if values:
            return self._choose(list(values), schema, questions, name)
        if kind == "object" or "properties" in schema:
            return self._object(schema.get("properties", {}), questions, depth)
        if kind == "array":  # with an entry for each item, or as few as the schema permits
            fewest = schema.get("minItems", 1)
            count = min(max(fewest, 1), 100) if isinstance(fewest, int) else 1
            parts = [[question] for question in questions] or [[]] * count
            entry = schema.get("items", {})
            return [self.fill(entry, part, name, depth + 1) for part in parts]
        return self._free(kind, questions, name)

    def _resolved(self, schema: Any) -> dict[str, Any]:
        """Follow references within the schema, and take the first of several alternatives."""
        for _ in range(_DEEPEST):
            if not isinstance(schema, dict):
                return {}
            reference = schema.get("$ref")
            alternatives = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
            if isinstance(reference, str):
                schema = self.root
                for step in reference.split("/")[1:]:
                    schema = schema.get(step, {}) if isinstance(schema, dict) else {}
            elif isinstance(alternatives, list) and alternatives:
                schema = next((each for each in alternatives if each != {"type": "null"}), {})
            else:
                return schema
        return {}

    def _object(self, properties: Any, questions: Sequence[Question], depth: int) -> dict[str, Any]:
        if not isinstance(properties, dict):
            return {}
        if len(questions) == 1 and questions[0].has_options([*properties]):
            shares = self.answer(questions[0]).shares.round(6).tolist()
            return dict(zip(properties, shares, strict=True))
        return {
            name: self.fill(schema, questions, name, depth + 1)
            for name, schema in properties.items()
        }

    def _choose(
        self, values: list[Any], schema: dict[str, Any], questions: Sequence[Question], name: str
    ) -> Any:
        """Return one of several values, as the answer to a question."""
        question = _question_named(questions, name)
        words_of_labels = {} if question is None else {c.label: c.text for c in question.choices}
        choices = []
        for value in values:
            label = value if isinstance(value, str) else json.dumps(value)
            words = re.sub(r"^\w{1,3}\s*[:.)]\s+", "", label)
            choices.append(Choice(label, words_of_labels.get(label, words)))

        text = schema.get("description") or schema.get("title") or name
        if question is not None:
            text = question.text
        return values[self.answer(Question(str(text), tuple(choices), name)).place]

    def _free(self, kind: Any, questions: Sequence[Question], name: str) -> Any:
        """Return the answer under a name for answers, the key of an item, or a reason."""
        question = _question_named(questions, name)
        is_named = question is not None and (question.key == name or _ANSWER_NAMES.search(name))
        value: Any = _NO_REASON
        if question is not None and is_named:
            value = as_value(self.answer(question).label)
        elif question is not None and question.key and _KEY_NAMES.search(name):
            value = as_value(question.key)

        if kind in ("integer", "number"):
            return value if isinstance(value, int) else 0
        return None if kind == "null" else str(value)


def _question_named(questions: Sequence[Question], name: str) -> Question | None:
    """Return the prompt's only question, or the one whose number a property has in its name."""
    if len(questions) == 1:
        return questions[0]
    number = re.search(r"(\d+)\D*$", name)
    keys = {question.key: question for question in questions}
    return keys.get(name) or (keys.get(number[1]) if number else None)
