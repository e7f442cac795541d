"""Asks larger conversational models for chapter 11: ``python -m recipes.larger [MODEL ...]``.

Into ``data/answers``, as ``recipes/talk.py`` does: IPIP-50 by the probabilities of options, with
every wording, order and role crossed, and IPIP-20 in conversation. Answers that are there already
are not asked again. The models come by ``psychometrics fetch-model``.
"""

from __future__ import annotations

import itertools
import sys

from psychometrics.asking.ask import ask_ways
from psychometrics.models.sources import SMOLLM2
from psychometrics.questionnaires import load_questionnaire

from .talk import ship_new

MODELS = (SMOLLM2, "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b")
CROSSING = {
    "role": ["default", "hero", "psychopath"],
    "wording": ["v1", "v2"],
    "permutations": ["given", "reversed"],
}
"""Conditions that are crossed, which must be the same in chapter 11."""
CHAT_WAYS = {"one at a time": {"max_tokens": 16}, "all at once": {"batch_size": 100}}
"""Conditions of the ways of conversation, which must be the same in chapter 11."""


def crossed() -> dict[str, dict[str, str]]:
    """Return the conditions of each cell of the crossing, by name.

    Examples
    --------
    >>> len(crossed())
    12
    """
    cells = itertools.product(*CROSSING.values())
    return {" ".join(cell): dict(zip(CROSSING, cell, strict=True)) for cell in cells}


def ask_larger(model: str) -> None:
    """Ask a model in all ways, and ship its answers."""
    fifty = load_questionnaire("ipip50")
    for name, way in crossed().items():  # shipped one by one, as the largest takes long
        ask_ways(fifty, model, {name: way}, "options")
        ship_new("options", fifty, model)

    mini = load_questionnaire("ipip20")
    ask_ways(mini, model, CHAT_WAYS, "chat")
    ship_new("chat", mini, model)


if __name__ == "__main__":
    for name in sys.argv[1:] or MODELS:
        ask_larger(name)
