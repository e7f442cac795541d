"""Ask the conversational model for chapters 10 and 11: ``python -m recipes.talk``.

The answers go to ``data/answers``, without texts other than the model's own replies. Existing
answers are not asked again. The thirteen scales' items come from the mirror or are downloaded; the
scores of chapter 10 go to ``data/norms/smollm2_scores.csv``, so that the chapter has them without
the items.
"""

from __future__ import annotations

import itertools
import re

import pandas as pd

from psychometrics.asking.ask import ask, ask_ways
from psychometrics.measures.scoring import scale_scores
from psychometrics.models.sources import SMOLLM2
from psychometrics.modes import identify
from psychometrics.modes.messages import PERSONAS
from psychometrics.paths import data_dir
from psychometrics.questionnaires import (
    Option,
    Questionnaire,
    load_questionnaire,
    psychobench_keys,
)
from psychometrics.store import StoredAnswers
from psychometrics_book.studies.meaningless import shuffle_words

from .answers import ship

KEPT = {"options": ["log_probability"], "chat": ["reply", "finish_reason"]}
"""Shipped columns of an answer, by mode; its key does not need the rest."""

FORMATS = {
    "digits": {"permutations": "given"},
    "letters": {"permutations": "given", "labels": "alphabetical"},
    "option texts": {"permutations": "given", "score": "text_mean"},
    "yes or no": {"permutations": "given"},
    "own voice": {"wording": "voice"},
}
"""Ways of asking a language model for options."""
EMPTY = "I am a person."
CHAT_WAYS = {
    "one at a time": {},
    "letters": {"labels": "alphabetical"},
    "JSON": {"reply": "json"},
    "all at once": {"batch_size": 100},
    "temperature 1": {"temperature": 1.0},
    "thinking first": {"think": True, "max_tokens": 96},
    "cipher": {"cipher": 3},
    "constrained": {"constrained": True},
    "constrained, options reversed": {"constrained": True, "order": "reversed"},
    "constrained, psychopath": {"constrained": True, "role": "psychopath"},
}
"""Conditions of the ways of asking in chapter 11, which must be the same there."""

CROSSING = {
    "wording": ["v1", "v2", "v4"],
    "permutations": ["given", "reversed"],
    "role": ["default", "hero", "psychopath"],
}
"""Conditions crossed in chapter 11, which must be the same there."""


def _yes_or_no(questionnaire: Questionnaire) -> Questionnaire:
    """Return a questionnaire with the options *no* and *yes*, at the ends of its own scale."""
    values = [option.value for option in questionnaire.choices(questionnaire.items[0])]
    ends = Option(value=min(values), label="no"), Option(value=max(values), label="yes")
    instructions = (
        "Describe yourself as you generally are now. Does each statement describe you? Answer yes "
        "or no."
    )
    changes = {"id": f"{questionnaire.id}_yes_no", "options": ends, "instructions": instructions}
    return questionnaire.model_copy(update=changes)


def without_items(reply: str, questionnaire: Questionnaire) -> str:
    """Replace any four or more words that a reply repeats from a statement with an ellipsis.

    Examples
    --------
    >>> mini = load_questionnaire("ipip20")
    >>> without_items("1. I am the life of the party: 4", mini)
    '1. …: 4'
    """
    statements = [questionnaire.statement(item).lower() for item in questionnaire.items]
    texts = [re.findall(r"\w+", statement) for statement in statements]
    runs = {tuple(text[i : i + 4]) for text in texts for i in range(len(text) - 3)}
    words = [*re.finditer(r"\w+", reply.lower())]
    marked = [*reply]

    for i in range(len(words) - 3):
        run = words[i : i + 4]
        if tuple(word[0] for word in run) in runs:
            start, end = run[0].start(), run[-1].end()
            marked[start:end] = ["\0"] * (end - start)

    return re.sub("\0+", "…", "".join(marked))


def ship_new(mode: str, questionnaire: Questionnaire, model: str = SMOLLM2) -> None:
    """Ship a model's answers, together with those shipped before, if the store has new ones.

    Replies are shipped without the items' wording if that belongs to others.
    """
    identity = identify(model, mode)
    where = mode, questionnaire.id, identity["respondent_id"]
    with (
        StoredAnswers(None, *where) as kept,
        StoredAnswers(data_dir() / "answers", *where) as shipped,
    ):
        rows = kept.rows[KEPT[mode]]
        before = shipped.rows.reindex(columns=KEPT[mode])
        new = sum(key not in shipped for key in rows.index)
        rows = pd.concat([before[~before.index.isin(rows.index)], rows])

    if mode == "chat" and questionnaire.wording == "upstream":
        rows["reply"] = [without_items(reply, questionnaire) for reply in rows["reply"]]

    if new:
        ship(rows, *where, identity)

    print(mode, questionnaire.id, len(rows), flush=True)


def _main() -> None:
    fifty = load_questionnaire("ipip50")
    mini = load_questionnaire("ipip20")
    voice = {"mode": "options", "wording": "voice", "progress": False}
    cells = itertools.product(*CROSSING.values())
    crossed = {" ".join(cell): dict(zip(CROSSING, cell, strict=True)) for cell in cells}
    ask_ways(mini, SMOLLM2, crossed, "options")
    ask(mini, SMOLLM2, mode="options", labels="alphabetical", progress=False)
    ship_new("options", mini)
    mixed = shuffle_words(fifty)
    for written in (fifty, mixed):
        for name, way in FORMATS.items():
            asked = _yes_or_no(written) if name == "yes or no" else written
            how = {"mode": "options", "progress": False, "baseline": EMPTY}
            ask(asked, SMOLLM2, choose="expected", **how, **way)

    for persona in PERSONAS.values():
        ask(fifty, SMOLLM2, persona=persona, baseline=EMPTY, **voice)

    for asked in (fifty, mixed, _yes_or_no(fifty), _yes_or_no(mixed)):
        ship_new("options", asked)

    for name in psychobench_keys():
        scale = load_questionnaire(name)
        ask(scale, SMOLLM2, baseline=EMPTY, **voice)
        ship_new("options", scale)

    thirteen = [load_questionnaire(name) for name in psychobench_keys()]
    drawn = {"choose": "draw", "runs": 10, "seed": 1, "baseline": EMPTY, **voice}
    scores = scale_scores(pd.concat(ask(q, SMOLLM2, **drawn) for q in thirteen), thirteen)
    scores = scores[["respondent_id", "questionnaire", "mode", "scale", "run", "score"]]
    scores.to_csv(data_dir() / "norms" / "smollm2_scores.csv", index=False)
    ask_ways(mini, SMOLLM2, CHAT_WAYS, "chat")
    ship_new("chat", mini)


if __name__ == "__main__":
    _main()
