"""Questionnaires in the JSON layout of the question_llm library."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, ConfigDict, Field

from .layout import _count_options, _describe_file, _Layout
from .model import Part

_Truth = BeforeValidator(
    lambda value: {"true": "True", "false": "False"}.get(str(value).strip().lower(), value)
)


class _Question(Part):
    question: str
    choices: tuple[str, ...] | None = None
    scores: tuple[tuple[float, ...], ...] | None = None
    answer: Annotated[str | None, _Truth] = None


# Names of labels in question_llm, and in this project.
_INDICES = {"numerical": "numeric", "alphabetical": "alphabetical", "alphabetical_u":
            "alphabetical", "alphabetical_l": "lowercase"}  # fmt: skip


class _QuestionLlm(_Layout):
    """A file of question_llm, with Likert items (``choice_descs``), choices or true/false."""

    model_config = ConfigDict(str_strip_whitespace=False)

    prompt_template: str | None = None
    choice_delim: str | None = None
    index_type: Literal[*_INDICES] | None = None  # type: ignore[valid-type]
    seed: Annotated[int, Field(strict=True, ge=0, lt=1 << 32)] | None = None
    instruction: str | None = None
    categories: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    categories_bias: tuple[float, ...] | None = None
    choice_descs: tuple[str, ...] | None = None
    data: dict[str, _Question]

    def _prompt(self) -> dict[str, Any]:
        """Return the prompt that the library makes, with the library's defaults."""
        stated = (self.prompt_template, self.choice_delim, self.index_type)
        index = self.index_type or ("numerical" if self.choice_descs else "alphabetical")
        return {
            "template": self.prompt_template or "{question}\n{choices}",
            "delimiter": ". " if self.choice_delim is None else self.choice_delim,
            "labels": _INDICES[index],
            "usual": any(setting is not None for setting in stated),
        }

    def convert(self, path: Path) -> dict[str, Any]:
        """Return the file in the project's layout; true/false items count correct and incorrect."""
        if self.seed is not None and (self.choice_descs or not self.categories):
            raise ValueError("seed: shuffles the `choices` of questions with scores; remove it")

        items = []
        generator = np.random.RandomState(self.seed)
        for key, question in self.data.items():
            labels: Sequence[str] = question.choices or self.choice_descs or ("True", "False")
            weights: Sequence[Sequence[float]] | None = question.scores
            is_known = question.answer is not None
            if is_known == bool(self.categories) or (is_known and weights):
                raise ValueError(f"data, {key}: needs either an `answer` or scores by `categories`")

            if is_known:
                if question.answer not in labels:
                    raise ValueError(f"data, {key}, answer: must be one of {', '.join(labels)}")
                weights = [(1, 0) if label == question.answer else (0, 1) for label in labels]

            if self.seed is not None:  # the library's own draw
                order = generator.choice(len(labels), len(labels), replace=False)
                labels = [labels[i] for i in order]
                weights = [weights[i] for i in order if weights and i < len(weights)]

            item: dict[str, Any] = {"id": key, "text": question.question, "weights": weights}
            item["options"] = _count_options(1, len(labels), dict(enumerate(labels, start=1)))
            items.append(item)

        categories = self.categories or ("Correct", "Incorrect")
        return _describe_file(path, path.stem) | {
            "measures": ", ".join(categories),
            "instructions": self.instruction or "Choose the option that fits best.",
            "prompt": self._prompt(),
            "items": items,
            "categories": categories,
            "bias": self.categories_bias or [0.0] * len(categories),
        }
