"""Choose among candidates by the answers of respondents and of null respondents."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from psychometrics.asking.ask import ask
from psychometrics.exceptions import RespondentError
from psychometrics.measures.normalisation import two_way
from psychometrics.measures.validity import silhouettes
from psychometrics.models.sources import base_path
from psychometrics.modes import load_respondent
from psychometrics.nulls.respondents import null_answers
from psychometrics.questionnaires import Questionnaire
from psychometrics.questionnaires.prompts import prompts

from .candidates import _build_pool, _intensifier_lists, _present_wordings, _with_levels, _Wording
from .content import content_validity
from .sentence_encoders import load_sentence_encoder

# How far a candidate may fall below the prompt it replaces; set before any measurement.
TOLERANCE = 0.05
# Number of null respondents on each family's base.
_NULLS = 24
# Terms of each kind for comparing wordings; using so few saves a third of the requests.
_FEW = 2
_OF_TERMS = ("similarity", "acceptability", "opposition")
_ASKED = ["item_id", "polarity", "term", "intensifier"]


@dataclass
class _Choice:
    """Measure candidates on the first half of the respondents and on null respondents."""

    questionnaire: Questionnaire
    respondents: Sequence
    bases: Sequence[str]
    seed: int
    asking: dict

    def cubes(self, entries: list[_Wording], levels) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return P(entailment) of each entry, shape (R, T, L), for respondents and for nulls."""
        pool = _build_pool(self.questionnaire, entries, levels)
        real = ask(pool, self.respondents, **self.asking)
        if real["respondent_id"].nunique() < len(self.respondents):
            name, why = next(iter(real.attrs["summary"]["failed"].items()))
            raise RespondentError(f"{name} did not answer ({why}): leave this respondent out.")

        null_tables = [
            null_answers(pool, respondents=_NULLS, base=base, seed=self.seed) for base in self.bases
        ]
        table = prompts(pool)
        by_kind = []
        self.names = []
        for answers in (real, pd.concat(null_tables, ignore_index=True)):
            wide = answers.pivot(index="respondent_id", columns=_ASKED, values="entailment")
            self.names.append(wide.index)
            values = wide[pd.MultiIndex.from_frame(table[_ASKED])].to_numpy(dtype=float)
            parts = table.groupby("item_id", sort=False).indices.values()
            by_kind.append(
                [
                    values[:, rows].reshape(len(values), len(entry.terms), -1)
                    for rows, entry in zip(parts, entries, strict=True)
                ]
            )

        return list(zip(*by_kind, strict=True))

    def silhouettes(self, entries: list[_Wording], levels) -> pd.DataFrame:
        """Return silhouettes by respondent and item, for the first half and the nulls."""
        cubes = self.cubes(entries, levels)
        frames = []
        items = [entry.item for entry in entries]
        for null, names in enumerate(self.names):
            pairs = zip(cubes, entries, strict=True)
            rows = [silhouettes(two_way(cube[null]), entry.signs) for cube, entry in pairs]
            wide = pd.DataFrame(rows, columns=names).groupby(items, sort=False).mean()
            frames.append(wide.rename_axis("item_id").stack().rename("silhouette").reset_index())
        return pd.concat(frames)

    def intensifiers(self) -> tuple[tuple | None, list[dict]]:
        """Return the levels of intensifiers whose silhouettes lie farthest above the null."""
        firsts = [entry for entry in _present_wordings(self.questionnaire) if entry.place == 1]
        options = _intensifier_lists(self.questionnaire)
        rows = []
        for number, levels in enumerate(options):
            entries = [_with_levels(entry, levels) for entry in firsts]
            pairs = zip(self.cubes(entries, levels), entries, strict=True)
            means = np.mean([_silhouettes(cube, entry) for cube, entry in pairs], axis=0)
            words = levels or self.questionnaire.intensifiers or ()
            rows.append({
                "stage": "intensifiers", "item_id": "", "template": 0,
                "rule": "listed" if number else "present",
                "intensifiers": ", ".join(word for level in words for word in level.terms),
                **_separation(*means), "allowed": True,
            })  # fmt: skip

        best = _choose(rows)
        return options[best], rows

    def wording(self, table: pd.DataFrame, levels) -> tuple[list, dict, list[dict]]:
        """Return the chosen wording of each template, and all allowed wordings."""
        places = {(one.item, one.place): one for one in _present_wordings(self.questionnaire)}
        rules: dict[_Wording, str] = {}  # moving the gap can make two candidates equal
        for row in table.itertuples():
            present = places[row.item_id, row.template]
            few = {"source": present.source[:_FEW], "inverse": present.inverse[:_FEW]}
            entry = replace(present, premise=row.premise, hypothesis=row.hypothesis, **few)
            rules.setdefault(_with_levels(entry, levels), row.rule)

        entries = list(rules)
        cubes = self.cubes(entries, levels)
        content = self.content(entries, levels).groupby("entry").mean(numeric_only=True)
        content["neutrality"] = self.neutrality(entries)
        rows = []
        chosen = []
        allowed = {}
        for place, present in places.items():
            numbers = [n for n, e in enumerate(entries) if (e.item, e.place) == place]
            behind = content.loc[numbers] - content.loc[numbers[0]]
            candidates = [{
                "stage": "wording", "item_id": place[0], "template": place[1],
                "rule": rules[entries[n]], "premise": entries[n].premise,
                "hypothesis": entries[n].hypothesis, **content.loc[n].to_dict(),
                **_separation(*_silhouettes(cubes[n], entries[n])),
                "allowed": bool((behind.loc[n] >= -TOLERANCE).all()),
            } for n in numbers]  # fmt: skip
            best = _choose(candidates)
            full = [
                replace(entries[n], source=present.source, inverse=present.inverse) for n in numbers
            ]
            chosen.append(full[best])
            allowed[place] = [
                entry for entry, row in zip(full, candidates, strict=True) if row["allowed"]
            ]
            rows += candidates

        return chosen, allowed, rows

    def terms(self, chosen: list[_Wording], levels) -> tuple[list, dict, list[dict]]:
        """Return each template's chosen terms, and the pool from which they were chosen."""
        pools = self.pools(chosen)
        content = self.content(pools, levels)
        content["opposition"] = self.opposition(pools)
        rows = []
        finals = []
        cubes = self.cubes(pools, levels)
        for number, (entry, pool, cube) in enumerate(zip(chosen, pools, cubes, strict=True)):
            measures = content.loc[content["entry"] == number, list(_OF_TERMS)].to_numpy()
            first_inverse = len(pool.source)
            sources = itertools.combinations(range(first_inverse), len(entry.source))
            inverses = itertools.combinations(
                range(first_inverse, len(pool.terms)), len(entry.inverse)
            )
            picks = [[*s, *i] for s, i in itertools.product(sources, inverses)]
            candidates = [_term_candidate(entry, pool, places, measures, cube) for places in picks]
            of_entry = [row for _, row in candidates]
            best = _choose(of_entry)
            final, _ = candidates[best]
            finals.append(final)

            for k in dict.fromkeys([0, best]):  # keep two of up to hundreds of choices
                rule = "listed" if k else "present"
                rows.append(of_entry[k] | {"rule": rule, "of": len(of_entry)})

        return finals, {(pool.item, pool.place): pool for pool in pools}, rows

    def pools(self, chosen: list[_Wording]) -> list[_Wording]:
        """Return each template's pool: its own terms and its candidates' terms."""
        listed = {item.id: item.candidates for item in self.questionnaire.items}
        pools = []
        for entry in chosen:
            candidates = [c for c in listed[entry.item] if c.template == entry.place]
            source = (*entry.source, *(term for c in candidates for term in c.source))
            inverse = (*entry.inverse, *(term for c in candidates for term in c.inverse))
            pools.append(replace(entry, source=source, inverse=inverse))

        return pools

    def content(self, entries: list[_Wording], levels) -> pd.DataFrame:
        """Return similarity and acceptability by entry and term, with extreme intensifiers."""
        questionnaire = self.questionnaire
        words = levels or questionnaire.intensifiers or questionnaire.levels(questionnaire.items[0])
        ends = ((words[0], words[0].terms[0]), (words[-1], words[-1].terms[-1]))
        ends = [{"weight": level.weight, "terms": [word]} for level, word in ends]
        table = content_validity(_build_pool(questionnaire, entries, ends))
        place = {name: n for n, name in enumerate(table["item_id"].unique())}
        table["entry"] = table["item_id"].map(place)
        columns = ["similarity", "acceptability"]
        return table.groupby(["entry", "term"], sort=False)[columns].mean().reset_index()

    def neutrality(self, entries: list[_Wording]) -> np.ndarray:
        r""":math:`1 - |\cos(e, \bar e_{S^+}) - \cos(e, \bar e_{S^-})|` of the gapped sentence."""
        model = load_sentence_encoder(base_path())
        texts = [[e.sentence(t, both=True) for t in ("...", *e.terms)] for e in entries]
        unique = sorted(set(itertools.chain(*texts)))
        vectors = model.encode(unique, normalize_embeddings=True, show_progress_bar=False)
        vector_of = dict(zip(unique, vectors, strict=True))
        values = []
        for entry, (gap, *sentences) in zip(entries, texts, strict=True):
            similarities = np.array([vector_of[gap] @ vector_of[text] for text in sentences])
            source, inverse = (similarities[entry.signs == sign].mean() for sign in (1, -1))
            values.append(1 - abs(source - inverse))

        return np.array(values)

    def opposition(self, pools: list[_Wording]) -> list[float]:
        """Return how much more a term contradicts the other kind's first term than its own kind's.

        A term's contradiction of a different term is the probability of contradiction between the
        sentences with the two terms, averaged over the first half of the respondents.
        """
        pairs = [
            (pool.sentence(other[0]), pool.sentence(own[0]), pool.sentence(term))
            for pool in pools
            for own, other in ((pool.source, pool.inverse), (pool.inverse, pool.source))
            for term in own
        ]
        unique = sorted({(first, term) for *both, term in pairs for first in both})
        values = np.zeros(len(unique))

        for name in self.respondents:
            dtype = {"dtype": self.asking["dtype"]}
            respondent = name if hasattr(name, "answer") else load_respondent(name, **dtype)
            values += respondent.answer(unique)[:, 2] / len(self.respondents)

        contradiction = dict(zip(unique, values, strict=True))
        return [
            contradiction[other, term] - (contradiction[own, term] if own != term else 0.0)
            for other, own, term in pairs
        ]


def _term_candidate(
    entry: _Wording, pool: _Wording, places: list[int], measures: np.ndarray, cube: Sequence
) -> tuple[_Wording, dict]:
    """Return a template with chosen terms, and their comparison with the present terms."""
    words = [pool.terms[place] for place in places]
    source = tuple(words[: len(entry.source)])
    inverse = tuple(words[len(entry.source) :])
    candidate = replace(entry, source=source, inverse=inverse)

    means = measures[places].mean(axis=0)
    present = [pool.terms.index(term) for term in entry.terms]
    behind = means - measures[present].mean(axis=0)
    widths = _silhouettes([answers[:, places] for answers in cube], candidate)

    row = {"stage": "terms", "item_id": entry.item, "template": entry.place}
    row |= {"premise": entry.premise, "hypothesis": entry.hypothesis}
    row |= {"source": ", ".join(source), "inverse": ", ".join(inverse)}
    row |= dict(zip(_OF_TERMS, means, strict=True))
    row |= _separation(*widths)
    row["allowed"] = bool((behind >= -TOLERANCE).all())

    return candidate, row


def _silhouettes(cubes: Sequence[np.ndarray], entry: _Wording) -> list[float]:
    """Return the mean silhouettes of the first half and of null respondents."""
    return [float(silhouettes(two_way(cube), entry.signs).mean()) for cube in cubes]


def _separation(real: float, null: float) -> dict[str, float]:
    return {"silhouette": real, "null": null, "separation": real - null}


def _choose(rows: list[dict]) -> int:
    """Mark the allowed candidate with the largest separation; a tie goes to the first."""
    best = int(np.argmax([r["separation"] if r["allowed"] else -np.inf for r in rows]))
    for number, row in enumerate(rows):
        row["chosen"] = number == best
    return best
