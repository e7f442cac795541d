"""Asks the conversational model for chapters 9 to 11: ``python -m data.make.talk``.

Into ``data/answers``, without texts other than the model's own replies. What is there already is
not asked again. The thirteen scales' items come from the mirror or are downloaded.
"""

from __future__ import annotations

from psychometrics.asking.ask import ask
from psychometrics.asking.store import open_answers
from psychometrics.models.packed import SMOLLM2
from psychometrics.modes import identify
from psychometrics.modes.messages import PERSONAS
from psychometrics.paths import data_dir
from psychometrics.questionnaires import Questionnaire, load_questionnaire, psychobench_keys
from psychometrics.studies.asking import EMPTY, FORMATS, formats, shuffled_words, yes_or_no
from psychometrics.studies.conditions import CHAT_WAYS, CROSSING, by_way, crossed

from .answers import ship

DTYPE = "bfloat16"
"""Named, so that the answers are the same ones on a machine that would choose another."""
KEPT = {"options": ["log_probability"], "chat": ["reply", "finish_reason"]}
"""What is shipped of an answer, by mode; its key is found without the rest."""


def _ship(mode: str, questionnaire: Questionnaire) -> None:
    identity = identify(SMOLLM2, mode, DTYPE)
    where = mode, questionnaire.id, identity["respondent_id"]
    with (
        open_answers(None, *where) as kept,
        open_answers(data_dir() / "answers", *where) as shipped,
    ):
        rows = kept.rows[KEPT[mode]]
        new = sum(key not in shipped for key in rows.index)
    if new:
        ship(rows, *where, identity)
    print(mode, questionnaire.id, len(rows), flush=True)


def _main() -> None:
    fifty, mini = load_questionnaire("ipip50"), load_questionnaire("ipip20")
    voice = {"mode": "options", "wording": "voice", "dtype": DTYPE, "progress": False}
    crossed(mini, SMOLLM2, CROSSING, "options", dtype=DTYPE)
    ask(mini, SMOLLM2, mode="options", labels="alphabetical", dtype=DTYPE, progress=False)
    _ship("options", mini)
    formats(fifty, SMOLLM2, ways=FORMATS, dtype=DTYPE)
    for persona in PERSONAS.values():
        ask(fifty, SMOLLM2, persona=persona, baseline=EMPTY, **voice)
    mixed = shuffled_words(fifty)
    for asked in (fifty, mixed, yes_or_no(fifty), yes_or_no(mixed)):
        _ship("options", asked)
    for name in psychobench_keys():
        scale = load_questionnaire(name)
        ask(scale, SMOLLM2, baseline=EMPTY, **voice)
        _ship("options", scale)
    by_way(mini, SMOLLM2, CHAT_WAYS, dtype=DTYPE)
    _ship("chat", mini)


if __name__ == "__main__":
    _main()
