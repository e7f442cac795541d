"""Make ``data/answers``, the answers that every store includes: ``make data``.

Decoders take minutes to answer, encoders only seconds. The decoders' answers are therefore
collected once and shipped under the usual keys: nobody asks them again unless a prompt or a model
changes. The same holds for encoders that only the chapters on validity ask, and for all encoders'
answers to the placebos and as language models. Texts are left out, whoever owns them, since keys
do not need them.
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
"""Columns to ship, by mode."""
ASKED = ("challenges", *QUESTIONNAIRES)
"""Questionnaires whose prompts the chapters put to decoders."""
SECOND = ("gad7", "phq9", "soc13")
"""Questionnaires that members also answer as language models."""


def _build_answers(members: list[str] | None = None) -> None:
    """Put the questionnaires with NLI prompts to members, and ship their answers.

    Parameters
    ----------
    members : list of str, optional
        Members to ask; by default all. Encoders answer the placebos, and the other questionnaires
        of the chapters on validity as language models; encoders outside the default population
        answer these questionnaires by inference, too. Shipped answers are replaced.
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
                live = mode == "nli" and real and member in usual
                if member not in decoders and (live or not (placebo or real)):
                    continue

                ask(questionnaire, member, mode=mode, progress=False)
                with StoredAnswers(None, mode, questionnaire.id, member) as kept:
                    rows = kept.rows[columns]

                ship(rows, mode, questionnaire.id, member, identify(member, mode=mode))

        print(member, flush=True)


def ship(
    rows: pd.DataFrame, mode: str, questionnaire_id: str, respondent_id: str, manifest: dict
) -> None:
    """Ship answers in the format of a store, replacing the earlier ones."""
    where = data_dir() / "answers", mode, questionnaire_id, respondent_id
    shutil.rmtree(StoredAnswers(*where).path, ignore_errors=True)
    with StoredAnswers(*where, manifest) as kept:
        kept.add(rows)


if __name__ == "__main__":
    _build_answers(sys.argv[1:] or None)
