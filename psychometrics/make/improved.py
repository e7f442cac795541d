"""Makes the improved prompts anew: ``python -m psychometrics.make.improved [respondents]``.

Writes ``questionnaires/{gad7,phq9,soc13}_improved.yaml``, ``data/improved.csv`` (silhouettes of
each respondent and item) and ``data/improved_candidates.csv``. By default the encoders that are
right more often than :data:`ABOVE` on held-out pairs choose and are held out; the :data:`OTHERS`
most accurate decoders, a family that had no part in the choice, answer what was chosen. What was
asked before comes from the store.
"""

from __future__ import annotations

import sys

import pandas as pd

from ..ask import ask
from ..nulls import null_answers
from ..paths import data_dir, questionnaires_dir
from ..population import population, population_table
from ..questionnaires import load_questionnaire
from ..respondents import load_respondent
from ..scoring import pss
from ..studies.improving import SHIPPED, held_out, improve, write_improved
from ..validity import term_silhouettes

QUESTIONNAIRES = ("gad7", "phq9", "soc13")
DTYPE = "bfloat16"
ABOVE = 0.65
OTHERS = 4
NULLS = 24


def choosing() -> list[str]:
    """Encoders of the population that are right more often than :data:`ABOVE`."""
    table = population_table()
    good = table[(table["family"] == "MiniLM") & (table["accuracy"] > ABOVE)]
    return good["respondent_id"].tolist()


def others() -> list[str]:
    """The most accurate decoders, which do not choose."""
    table = population_table()
    own = table[table["family"] == "SmolLM2"].nlargest(OTHERS, "accuracy")
    return own["respondent_id"].tolist()


def of_another_family(name: str, respondents: list) -> pd.DataFrame:
    """Silhouettes of present and improved prompts in respondents who neither chose nor were held
    out, and in random heads on their base, as rows of ``data/improved.csv``.
    """  # fmt: skip
    asked = [load_questionnaire(name), load_questionnaire(f"{name}_improved")]
    kinds = {asked[0].id: "present", asked[1].id: "improved"}
    tables = {
        "another family": ask(asked, respondents, dtype=DTYPE),
        "its null": null_answers(asked, respondents=NULLS, base="smollm2"),
    }
    parts = []
    for half, answers in tables.items():
        part = term_silhouettes(pss(answers)).assign(half=half)
        part["prompts"] = part["questionnaire"].map(kinds)
        parts.append(part.assign(questionnaire=name))
    columns = ["questionnaire", "item_id", "half", "respondent_id", "prompts", "silhouette"]
    return pd.concat(parts, ignore_index=True)[columns]


def _main(respondents: str | None = None) -> None:
    names = population(respondents) if respondents else choosing()
    loaded = [load_respondent(name, dtype=DTYPE) for name in names]
    silhouettes, candidates = [], []
    for name in QUESTIONNAIRES:
        found = improve(name, loaded, nulls=NULLS, dtype=DTYPE)
        path = questionnaires_dir() / f"{name}_improved.yaml"
        path.unlink(missing_ok=True)  # of the last time; this is the one place that writes it anew
        write_improved(found, path)
        silhouettes.append(found.silhouettes)
        candidates.append(found.candidates)
        print(held_out(found.silhouettes).T.to_string(header=False), flush=True)
        _write(SHIPPED[1], candidates)
        _write(SHIPPED[0], silhouettes)
    loaded = [load_respondent(name, dtype=DTYPE) for name in others()]
    for name in QUESTIONNAIRES:
        silhouettes.append(of_another_family(name, loaded))
        _write(SHIPPED[0], silhouettes)


def _write(name: str, parts: list[pd.DataFrame]) -> None:
    whole = pd.concat(parts, ignore_index=True)
    whole.to_csv(data_dir() / f"{name}.csv", index=False, float_format="%.4f")


if __name__ == "__main__":
    _main(*sys.argv[1:])
