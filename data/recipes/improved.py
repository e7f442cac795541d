"""Rebuild the improved prompts: ``python -m recipes.improved [questionnaires]``.

This writes ``questionnaires/{gad7,phq9,soc13}_improved.yaml`` and the rows of these questionnaires
in ``data/improved.csv`` (silhouettes of each respondent and item), ``data/improved_candidates.csv``
and ``data/improved_words.csv`` (lists of intensifiers). The encoders with an accuracy above
:data:`ABOVE` on held-out pairs are split into a choosing and a held-out half; the :data:`OTHERS`
most accurate decoders, a family with no part in the choice, answer the chosen prompts. Earlier
answers come from the store.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd

from psychometrics.asking.ask import ask
from psychometrics.asking.population import population_table, untouched_bases
from psychometrics.measures.normalisation import pss
from psychometrics.measures.trends import monotony
from psychometrics.measures.validity import term_silhouettes
from psychometrics.modes import load_respondent
from psychometrics.nulls.respondents import null_answers
from psychometrics.paths import data_dir, questionnaires_dir
from psychometrics.questionnaires import Questionnaire, load_questionnaire
from psychometrics_book.studies.candidates import wordings
from psychometrics_book.studies.improving import held_out, improve
from psychometrics_book.studies.untrained import REAL

SHIPPED = ("improved", "improved_candidates", "improved_words")
ABOVE = 0.65
OTHERS = 5
NULLS = 24


def choosing() -> list[str]:
    """Return the population's encoders with an accuracy above :data:`ABOVE`."""
    table = population_table()
    good = table[(table["family"] == "MiniLM") & (table["accuracy"] > ABOVE)]
    return good["respondent_id"].tolist()


def others() -> list[str]:
    """Return the most accurate decoders, which have no part in the choice."""
    table = population_table()
    own = table[table["family"] == "SmolLM2"].nlargest(OTHERS, "accuracy")
    return own["respondent_id"].tolist()


def _build_improved(names: list[str]) -> None:
    """Improve these questionnaires, and ship the choices with their reasons."""
    encoders = [load_respondent(name) for name in choosing()]
    for name in names:
        found = improve(name, encoders, nulls=NULLS)
        path = questionnaires_dir() / f"{name}_improved.yaml"
        path.unlink(missing_ok=True)  # the earlier file; only this function rebuilds it
        found.write(path)
        _ship(SHIPPED[0], found.silhouettes)
        _ship(SHIPPED[1], found.candidates)
        print(held_out(found.silhouettes).T.to_string(header=False), flush=True)

    for name in names:
        _ship(SHIPPED[2], intensifier_sets(name, encoders))

    decoders = [load_respondent(name) for name in others()]
    for name in names:
        _ship(SHIPPED[0], _of_another_family(name, decoders))


def intensifier_sets(name: str, respondents: list) -> pd.DataFrame:
    """Return silhouettes and trends of a questionnaire's intensifier lists by respondent.

    The first template of each item is asked. The other lists are placed at the end of the
    hypothesis; the present list is asked there, too, to separate the effect of the place from the
    effect of the words.
    """
    present = load_questionnaire(name)
    sets = [(present.intensifiers, "as it is"), (present.intensifiers, "end")]
    sets += [(levels, "end") for levels in present.candidates]
    parts = []
    for levels, place in sets:
        asked = _first_templates(present, levels, place)
        tables = {
            False: ask(asked, respondents),
            True: null_answers(asked, respondents=NULLS, base="embedded", seed=1),
        }
        for null, answers in tables.items():
            shares = pss(answers)
            own = term_silhouettes(shares).groupby("respondent_id")[["silhouette"]].mean()
            own["trend"] = monotony(shares)["source"]

            for half, part in (("rare", shares["weight"] < 0), ("frequent", shares["weight"] > 0)):
                order = monotony(shares[part])["source"]
                own[f"order_{half}"] = order * np.sign(own["trend"])

            words = ", ".join(word for level in levels for word in level.terms)
            own = own.assign(questionnaire=name, intensifiers=words, place=place, null=null)
            parts.append(own.reset_index())

    columns = ["questionnaire", "intensifiers", "place", "respondent_id", "null", "silhouette",
               "trend", "order_rare", "order_frequent"]  # fmt: skip
    return pd.concat(parts, ignore_index=True)[columns]


def _first_templates(questionnaire: Questionnaire, levels: tuple, place: str) -> Questionnaire:
    """Return the first template of each item, with these intensifiers at this place."""
    table = wordings(questionnaire).query("template == 1")
    at_end = table[table["rule"] == "end"].set_index("item_id")["hypothesis"].to_dict()
    items = []
    for item in questionnaire.items:
        template = item.templates[0]
        if place == "end" and item.id in at_end:
            template = template.model_copy(update={"hypothesis": at_end[item.id]})

        items.append(item.model_copy(update={"templates": (template,), "candidates": ()}))

    changed = {"id": f"{questionnaire.id}-candidates", "items": tuple(items)}
    changed |= {"intensifiers": levels, "candidates": ()}
    return questionnaire.model_copy(update=changed)


def _of_another_family(name: str, respondents: list) -> pd.DataFrame:
    """Return silhouettes of respondents with no part in the choice, and of random heads."""
    asked = [load_questionnaire(name), load_questionnaire(f"{name}_improved")]
    kinds = {asked[0].id: "present", asked[1].id: "improved"}
    tables = {
        "another family": ask(asked, respondents),
        "its null": null_answers(asked, respondents=NULLS, **untouched_bases(others())),
    }
    parts = []
    for half, answers in tables.items():
        part = term_silhouettes(pss(answers)).assign(half=half)
        part["prompts"] = part["questionnaire"].map(kinds)
        parts.append(part.assign(questionnaire=name))

    columns = ["questionnaire", "item_id", "half", "respondent_id", "prompts", "silhouette"]
    return pd.concat(parts, ignore_index=True)[columns]


def _ship(file: str, rows: pd.DataFrame) -> None:
    """Replace the rows of the same questionnaire (and halves) in the file."""
    path = data_dir() / f"{file}.csv"
    keys = [column for column in ("questionnaire", "half") if column in rows]
    if path.is_file():
        there = pd.read_csv(path, keep_default_na=False, na_values=[""])
        told = pd.MultiIndex.from_frame(there[keys]).isin(pd.MultiIndex.from_frame(rows[keys]))
        rows = pd.concat([there[~told], rows], ignore_index=True)
    order = rows["questionnaire"].map({name: n for n, name in enumerate(REAL)})
    rows = rows.loc[order.argsort(kind="stable")]
    rows.to_csv(path, index=False, float_format="%.4f")


if __name__ == "__main__":
    _build_improved(sys.argv[1:] or list(REAL))
