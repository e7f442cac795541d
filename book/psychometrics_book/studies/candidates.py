"""Candidates for better prompts: wordings of a template, and questionnaires built from them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from psychometrics.exceptions import ParameterError
from psychometrics.questionnaires import Questionnaire, load_questionnaire

# A hypothesis that fits any premise in the first person.
_HYPOTHESIS = "This is {intensifier} true of me."
# Number of questionnaires that are drawn at random from the candidates, for the held-out half.
_DRAWS = 3


@dataclass(frozen=True)
class _Wording:
    """A candidate to replace one template, with its terms."""

    item: str
    place: int
    premise: str
    hypothesis: str
    source: tuple[str, ...]
    inverse: tuple[str, ...]

    @property
    def terms(self) -> tuple[str, ...]:
        return (*self.source, *self.inverse)

    @property
    def signs(self) -> np.ndarray:
        return np.repeat([1, -1], [len(self.source), len(self.inverse)])

    def template(self) -> dict:
        terms = {"source": self.source, "inverse": self.inverse}
        return {"premise": self.premise, "hypothesis": self.hypothesis, "terms": terms}

    def sentence(self, term: str, both: bool = False) -> str:
        """Return the sentence (or both sentences) with the term and without an intensifier."""
        sides = (self.premise, self.hypothesis)
        text = " ".join(sides) if both else next(side for side in sides if "{term}" in side)
        return re.sub(r" ?{intensifier}", "", text.replace("{term}", term)).strip()


def wordings(questionnaire: Questionnaire) -> pd.DataFrame:
    """List each template's candidates: the questionnaire's own and those made by rules.

    The rules do not change the item's own words. They add a hypothesis that fits any premise, and
    move the intensifier to the end of the hypothesis.

    Parameters
    ----------
    questionnaire : Questionnaire, name or path
        The questionnaire; its items list wordings under ``candidates``.

    Returns
    -------
    DataFrame
        ``item_id, template`` (the template to replace)``, rule`` (present, listed, hypothesis,
        end)``, premise, hypothesis``; the present template comes first, and no wording occurs
        twice.

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> table = wordings(load_questionnaire("challenges"))
    >>> table.loc[table["rule"] == "end", "hypothesis"].iloc[0]
    'It happened to me {intensifier}.'
    """
    questionnaire = load_questionnaire(questionnaire, texts=False)
    rows = []
    for item in questionnaire.items:
        for place, template in enumerate(item.templates, start=1):
            premise = template.premise
            hypothesis = template.hypothesis
            listed = [c for c in item.candidates if c.template == place]
            options = [("present", premise, hypothesis)]

            for candidate in listed:
                options += [("listed", other, hypothesis) for other in candidate.premises]
                options += [("listed", premise, other) for other in candidate.hypotheses]

            if "{intensifier}" in hypothesis and "{term}" in premise:
                options.append(("hypothesis", premise, _HYPOTHESIS))
                options.append(("end", premise, _at_end(hypothesis)))

            seen = set()
            for rule, first, second in options:
                if (first, second) not in seen:
                    rows.append((item.id, place, rule, first, second))
                    seen.add((first, second))

    return pd.DataFrame(rows, columns=["item_id", "template", "rule", "premise", "hypothesis"])


def _check_candidates(questionnaire: Questionnaire, table: pd.DataFrame) -> None:
    """Refuse a missing list of candidates, or a template with at most one term of each kind."""
    for entry in _present_wordings(questionnaire):
        if max(len(entry.source), len(entry.inverse)) < 2:
            place = f"{questionnaire.id}, item {entry.item}, template {entry.place}"
            raise ParameterError(f"{place}: has no more than one term of each kind; add terms.")
    terms = any(c.source or c.inverse for item in questionnaire.items for c in item.candidates)
    if (table["rule"] == "present").all() and not terms and not questionnaire.candidates:
        raise ParameterError(f"{questionnaire.id} has no candidates: list them under its items.")


def _present_wordings(questionnaire: Questionnaire) -> list[_Wording]:
    """Return the present templates of a questionnaire."""
    entries = []
    for item in questionnaire.items:
        for place, template in enumerate(item.templates, start=1):
            terms = template.terms or item.terms
            entry = _Wording(
                item.id, place, template.premise, template.hypothesis, terms.source, terms.inverse
            )
            entries.append(entry)

    return entries


def _at_end(hypothesis: str) -> str:
    """Turn *I {intensifier} feel this way.* into *I feel this way {intensifier}.*"""
    bare = re.sub(r"{intensifier} ?", "", hypothesis).strip()
    stop = bare[-1] if bare[-1] in ".!?" else ""
    bare = bare.removesuffix(stop).strip()
    return f"{bare[:1].upper()}{bare[1:]} {{intensifier}}{stop}"


def _with_levels(entry: _Wording, levels) -> _Wording:
    """Return a wording with the given levels; put new levels at the end of the hypothesis."""
    if levels is None or "{intensifier}" not in entry.hypothesis:
        return entry
    return replace(entry, hypothesis=_at_end(entry.hypothesis))


def _build(questionnaire: Questionnaire, entries: list[_Wording], levels, name: str):
    """Return the questionnaire with the given templates and levels, and without candidates."""
    content = questionnaire.model_dump(exclude={"candidates"}) | {"id": name}
    for item in content["items"]:
        item |= {"candidates": (), "terms": None}
        item["templates"] = [e.template() for e in entries if e.item == item["id"]]
        if levels is not None:
            content["intensifiers"], item["intensifiers"] = levels, None

    if name.endswith("_improved"):
        content["short_title"] = f"{questionnaire.short_title} (improved)"
        content["title"] = f"{questionnaire.title}, improved prompts"

    return Questionnaire.model_validate(content)


def _build_pool(questionnaire: Questionnaire, entries: list[_Wording], levels) -> Questionnaire:
    """Return a questionnaire that has an item for each candidate."""
    content = questionnaire.model_dump(exclude={"candidates"})
    items = {item["id"]: item for item in content["items"]}
    bare = {"terms": None, "candidates": (), "weights": None}

    if levels is not None:
        content["intensifiers"], bare["intensifiers"] = levels, None

    content["items"] = [
        items[entry.item] | bare | {"id": f"{entry.item}_{n}", "templates": [entry.template()]}
        for n, entry in enumerate(entries)
    ]
    content["scales"] = [{"id": "all", "title": "all", "items": "all"}]
    content |= {"norms": (), "categories": (), "bias": ()}
    # compare with the text in the file, so that results do not depend on the machine
    content |= {"id": f"{questionnaire.id}-candidates", "wording": "verbatim"}

    return Questionnaire.model_validate(content)


def _intensifier_lists(questionnaire: Questionnaire) -> list[tuple | None]:
    """List the sets of intensifiers to try: None for the present set, then the other sets."""
    has_levels_by_item = any(item.intensifiers for item in questionnaire.items)
    return [None] if has_levels_by_item else [None, *questionnaire.candidates]


def _draw_questionnaires(questionnaire, allowed: dict, pools: dict, seed: int) -> list:
    """Return questionnaires whose prompts are drawn at random from the allowed candidates.

    They use the lists of intensifiers in turn.
    """
    rng = np.random.default_rng(seed)
    results = []
    options = _intensifier_lists(questionnaire)
    start = rng.integers(len(options))

    for number in range(_DRAWS):
        levels = options[(start + number) % len(options)]
        entries = []
        for place, candidates in allowed.items():
            entry = candidates[rng.integers(len(candidates))]
            pool = pools[place]
            source = rng.choice(pool.source, len(entry.source), replace=False)
            inverse = rng.choice(pool.inverse, len(entry.inverse), replace=False)
            entry = replace(entry, source=tuple(source.tolist()), inverse=tuple(inverse.tolist()))
            entries.append(_with_levels(entry, levels))

        results.append(_build(questionnaire, entries, levels, f"{questionnaire.id}-candidates"))

    return results
