"""Makes ``data/answers``, the answers that lie below every store: ``make data``.

Decoders take minutes where encoders take seconds. Their answers are asked once, here, and shipped
under the keys that asking gives them, so that nobody asks them again, and whoever changes a prompt
or a model does. So are those of the encoders that only the chapters on validity ask, and those of
all encoders to the placebos. Texts are left out, whoever owns them: a key is found without.
"""

from __future__ import annotations

import shutil
import sys

import pandas as pd

from psychometrics.asking.ask import ask
from psychometrics.asking.population import population
from psychometrics.modes import identify
from psychometrics.modes.nli import PROBABILITIES
from psychometrics.paths import data_dir
from psychometrics.questionnaires import load_questionnaire
from psychometrics.store import StoredAnswers

from .nulls import QUESTIONNAIRES

ANSWERED = {"nli": list(PROBABILITIES), "causal": ["probability"], "mlm": ["probability"]}
"""Columns that are shipped, by mode."""
ASKED = ("challenges", *QUESTIONNAIRES)
"""Questionnaires in prompts that the chapters put to decoders."""
SECOND = ("gad7", "phq9", "soc13")
"""Questionnaires that members answer as language models, too."""


def _build_answers(members: list[str] | None = None) -> None:
    """Ask members the questionnaires that come with NLI prompts, and ship their answers.

    Parameters
    ----------
    members : list of str, optional
        Those to be asked; by default all. Encoders answer the placebos, and those that the default
        population leaves out the other questionnaires of the chapters on validity, too. Shipped
        answers are made again.
    """
    asked = [load_questionnaire(name, texts=False) for name in ASKED]
    decoders = population("decoders")
    usual = population()
    for member in members or [*decoders, *population("encoders")]:
        for mode, columns in ANSWERED.items():
            if mode == ("mlm" if member in decoders else "causal"):
                continue

            for questionnaire in asked:
                real = questionnaire.id in SECOND
                placebo = questionnaire.id.startswith("placebo")
                if mode != "nli" and not real:
                    continue
                if member not in decoders and not (placebo or (real and member not in usual)):
                    continue

                ask(questionnaire, member, mode=mode, progress=False)
                with StoredAnswers(None, mode, questionnaire.id, member) as kept:
                    rows = kept.rows[columns]

                ship(rows, mode, questionnaire.id, member, identify(member, mode=mode))

        print(member, flush=True)


def ship(
    rows: pd.DataFrame, mode: str, questionnaire_id: str, respondent_id: str, manifest: dict
) -> None:
    """Put answers, as a store keeps them, below every store in the place of those there."""
    where = data_dir() / "answers", mode, questionnaire_id, respondent_id
    shutil.rmtree(StoredAnswers(*where).path, ignore_errors=True)
    with StoredAnswers(*where, manifest) as kept:
        kept.add(rows)


if __name__ == "__main__":
    _build_answers(sys.argv[1:] or None)
