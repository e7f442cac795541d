"""Asks what chapter 8 shows of the conversational model: ``python -m psychometrics.make.talk``.

Into ``data/answers``, or the folder that is named. All items are in the public domain. What is
there already is not asked again.
"""

from __future__ import annotations

import sys

from ..paths import data_dir
from ..questionnaires import load_questionnaire
from ..respondents.packed import SMOLLM2
from ..studies.asking import FORMATS, formats
from ..studies.conditions import CHAT_WAYS, by_way

DTYPE = "bfloat16"
"""Named, so that the answers are the same ones on a machine that would choose another."""


def _main(folder: str) -> None:
    for name, how in FORMATS.items():
        formats(load_questionnaire("ipip50"), SMOLLM2, folder, {name: how}, dtype=DTYPE)
        print(name, flush=True)
    for name, how in CHAT_WAYS.items():
        by_way(load_questionnaire("ipip20"), SMOLLM2, {name: how}, store=folder, dtype=DTYPE)
        print(name, flush=True)


if __name__ == "__main__":
    _main(sys.argv[1] if len(sys.argv) > 1 else str(data_dir() / "answers"))
