"""Asks larger conversational models for chapter 11: ``python -m recipes.larger [MODEL ...]``.

Into ``data/answers``, as ``recipes/talk.py`` does: IPIP-50 by the probabilities of options, with
every wording, order and role crossed, and IPIP-20 in conversation. Answers that are there already
are not asked again. The models come by ``psychometrics fetch-model``. ``data/larger.csv`` has the
scores of all models and conditions of which every answer is there.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from psychometrics.asking.ask import ask_ways
from psychometrics.measures.scoring import scale_scores
from psychometrics.models.sources import SMOLLM2
from psychometrics.paths import data_dir
from psychometrics.questionnaires import load_questionnaire

from .talk import ship_new

MODELS = (SMOLLM2, "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b")
CROSSING = {
    "role": ["default", "hero", "psychopath"],
    "wording": ["v1", "v2"],
    "permutations": ["given", "reversed"],
}
"""Conditions that are crossed, which must be the same in chapter 11."""
CHAT_WAYS = {"one at a time": {"max_tokens": 16}}
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


def scores(models: Sequence[str]) -> pd.DataFrame:
    """Return the scores of IPIP-50: ``model``, conditions, ``scale, score, same``.

    An answer is the mean of the options' values, weighted by their probabilities; ``same`` is the
    share of items whose likeliest option is the same when the options are shown in reverse.
    """
    fifty = load_questionnaire("ipip50")
    parts = []
    for model in models:
        answers = ask_ways(fifty, model, crossed(), "options", choose="expected")
        likeliest = ask_ways(fifty, model, crossed(), "options")
        chosen = likeliest.pivot(index="way", columns="item_id", values="value")
        for name, cell in crossed().items():
            table = scale_scores(answers[answers["way"] == name], fifty)[["scale", "score"]]
            other = name.replace("given", "x").replace("reversed", "given").replace("x", "reversed")
            same = (chosen.loc[name] == chosen.loc[other]).mean()
            parts.append(table.assign(model=Path(model).name, **cell, same=same))

    return pd.concat(parts)[["model", *CROSSING, "scale", "score", "same"]]


if __name__ == "__main__":
    names = sys.argv[1:] or MODELS
    for name in names:
        ask_larger(name)

    path = data_dir() / "larger.csv"
    scores(names).to_csv(path, index=False, float_format="%.4f", lineterminator="\n")
