"""Better prompts for a questionnaire: chosen on one half of the respondents, shown on the other.

The flow of :func:`improve`: the respondents are split before anything is measured. On
the first half alone it chooses the intensifiers, then for each template its wording, then its
terms. The second half answers what was chosen, the present prompts, and prompts drawn by chance
from the same candidates. :func:`held_out` summarises them.

One file: wordings, their null respondents and the choice among them share the cubes of one run.
"""

from __future__ import annotations

import datetime
import itertools
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from ..asking.ask import ask
from ..asking.nulls import null_answers
from ..asking.population import population, population_table
from ..checks import check_columns, check_numbers
from ..exceptions import ParameterError, RespondentError, writing
from ..measures.intervals import mean_interval
from ..measures.scoring import pss, two_way
from ..measures.validity import silhouettes, term_silhouettes
from ..models.loading import load_sentence_encoder
from ..models.sources import base_path
from ..modes import identify, load_respondent
from ..questionnaires import Questionnaire, load_questionnaire
from ..questionnaires.prompts import prompts
from .content import content_validity

# How far a candidate may fall behind what it replaces, stated before anything was measured.
_TOLERANCE = 0.05
# Hypotheses that go with any premise in the first person.
_HYPOTHESES = ("This is {intensifier} true of me.",)
# Terms of a kind with which wordings are compared, which saves a third of the asking.
_FEW = 2
# Greatest number of draws and of null respondents.
_MOST = 10_000
_BASES = {"MiniLM": "embedded", "SmolLM2": "smollm2"}
_OF_TERMS = ("similarity", "acceptability", "opposition")
_ASKED = ["item_id", "polarity", "term", "intensifier"]


_HEAD = """\
# Prompts of {of}, improved by `psychometrics improve` on {date}, seed {seed}.
# Chosen on the answers of {chose};
# held out were {out}.
# Split: by chance within families, with that seed. Rule: of the candidates that fall behind by
# at most {limit} in similarity, acceptability, neutrality and opposition, the one whose silhouette
# lies farthest above that of random heads: intensifiers, then wordings, then terms.
"""


@dataclass(frozen=True)
class _Improved:
    """The result of :func:`improve`.

    Attributes
    ----------
    questionnaire : Questionnaire
        The improved one, named ``<id>_improved``.
    silhouettes : DataFrame
        Per respondent and item, the ``silhouette`` of the ``present`` prompts, of the ``improved``
        and of those by ``chance`` (column ``prompts``), with the respondent's ``half``: ``chosen
        on``, ``held out``, or ``null`` for null respondents.
    candidates : DataFrame
        One row per candidate: its ``stage`` (intensifiers, wording, terms), its words, its
        measures on the first half, whether it was ``allowed`` and ``chosen``.
    split : DataFrame
        Who is in which half.
    seed : int
        Seed of the halves and of the prompts by chance.
    """

    questionnaire: Questionnaire
    silhouettes: pd.DataFrame
    candidates: pd.DataFrame
    split: pd.DataFrame
    seed: int = 1

    def write(
        self, path: str | Path, report: str | Path | None = None, date: str | None = None
    ) -> Path:
        """Write the questionnaire to a file of its own, with where it comes from.

        Parameters
        ----------
        path : str or Path
            A new file; its name without ``.yaml`` becomes the questionnaire's id.
        report : str or Path, optional
            A new file for the table of candidates (CSV).
        date : str, optional
            For the comment on top; by default today's.

        Returns
        -------
        Path

        Raises
        ------
        ParameterError
            A file is there already, which is never overwritten, or cannot be written.
        """
        check_new(path, report)
        path = Path(path).expanduser()
        content = self.questionnaire.model_dump(mode="json", exclude_defaults=True)
        content |= {"id": path.stem}
        own = self.split.groupby("half")["respondent_id"].agg(", ".join)
        date = date or datetime.date.today().isoformat()
        of = self.silhouettes["questionnaire"]
        said = {"of": of.iloc[0], "chose": own["chosen on"], "out": own["held out"]}
        head = _HEAD.format(**said, date=date, seed=self.seed, limit=_TOLERANCE)
        body = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100)

        with writing(path):
            path.write_text(head + body, encoding="utf-8")
            if report is not None:
                self.candidates.to_csv(Path(report).expanduser(), index=False, float_format="%.4f")

        return path


@dataclass(frozen=True)
class _Wording:
    """A template that may stand at a place of an item, with terms."""

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
        """The sentence that holds the term, or both sentences, without an intensifier."""
        sides = (self.premise, self.hypothesis)
        text = " ".join(sides) if both else next(side for side in sides if "{term}" in side)
        return re.sub(r" ?{intensifier}", "", text.replace("{term}", term)).strip()


def _halves(
    respondents: Sequence[str], families: Sequence[str] | None = None, seed: int = 1
) -> pd.DataFrame:
    """Split respondents by chance in two halves with nearly as many of each family.

    Parameters
    ----------
    respondents : sequence of str
        Names, whose order does not matter.
    families : sequence of str, optional
        The family of each respondent; by default its name up to the first hyphen.
    seed : int
        Seed of the draw.

    Returns
    -------
    DataFrame
        ``respondent_id, family, half``, in the order given: shuffled within families, which
        follow each other, the first, third, ... are ``chosen on``, the others ``held out``.

    Raises
    ------
    ParameterError
        There are fewer than four respondents, so that a half could not have two.

    Examples
    --------
    >>> _halves(["a-1", "b-1", "a-2", "b-2"]).groupby("half")["family"].agg(sorted).to_dict()
    {'chosen on': ['a', 'b'], 'held out': ['a', 'b']}
    """
    names = list(respondents)

    if len(names) < 4:
        raise ParameterError(f"{len(names)} respondent(s) cannot be halved: name at least four.")
    of = [name.split("-")[0] for name in names] if families is None else list(families)
    table = pd.DataFrame({"respondent_id": names, "family": of})
    rng = np.random.default_rng(seed)
    parts = table.groupby("family")["respondent_id"]
    order = [name for _, part in parts for name in rng.permutation(sorted(part))]
    table["half"] = np.where(table["respondent_id"].isin(order[0::2]), "chosen on", "held out")

    return table


def wordings(questionnaire: Questionnaire, rules: bool = True) -> pd.DataFrame:
    """Candidate templates for each template of a questionnaire: listed ones, and some by rules.

    The rules leave the item's own words alone: hypotheses that fit any premise
    (:data:`_HYPOTHESES`), and the intensifier at the end of the hypothesis.

    Parameters
    ----------
    questionnaire : Questionnaire
        ``candidates`` of its items list wordings.
    rules : bool
        Whether candidates by the rules are added.

    Returns
    -------
    DataFrame
        ``item_id, template`` (whose place it would take)``, rule`` (present, listed, hypothesis,
        end)``, premise, hypothesis``; the present template first, no wording twice.

    Examples
    --------
    >>> table = wordings(load_questionnaire("challenges"))
    >>> table.loc[table["rule"] == "end", "hypothesis"].iloc[0]
    'It happened to me {intensifier}.'
    """
    rows = []
    for item in questionnaire.items:
        for place, template in enumerate(item.templates, start=1):
            premise = template.premise
            hypothesis = template.hypothesis
            own = [c for c in item.candidates if c.template == place]
            found = [("present", premise, hypothesis)]

            for candidate in own:
                found += [("listed", other, hypothesis) for other in candidate.premises]
                found += [("listed", premise, other) for other in candidate.hypotheses]

            if rules and "{intensifier}" in hypothesis and "{term}" in premise:
                found += [("hypothesis", premise, other) for other in _HYPOTHESES]
                found.append(("end", premise, _at_end(hypothesis)))

            said = set()
            for rule, first, second in found:
                if (first, second) not in said:
                    rows.append((item.id, place, rule, first, second))
                    said.add((first, second))

    return pd.DataFrame(rows, columns=["item_id", "template", "rule", "premise", "hypothesis"])


def improve(
    questionnaire: str | Path | Questionnaire,
    respondents: str | Sequence = "embedded",
    rules: bool = True,
    draws: int = 3,
    nulls: int = 24,
    seed: int = 1,
    **asking: object,
) -> _Improved:
    r"""Choose better prompts on half of the respondents and measure them on the other half.

    A candidate is *allowed* if it falls behind what it replaces by no more than 0.05 in similarity
    to the item, acceptability and neutrality (templates) or opposition (terms). Of those allowed
    the one is chosen whose silhouette lies farthest above that of null respondents,

    .. math:: \bar s_{\text{first half}} - \bar s_{\text{random heads}} ,

    the present one if none does better: first the intensifiers of the questionnaire, then the
    wording of each template, then as many source and inverse terms as it has.

    Parameters
    ----------
    questionnaire : Questionnaire, name or path
        With ``candidates``, or to be tried by the rules alone.
    respondents : str or sequence
        As :func:`psychometrics.asking.ask` takes them; at least four.
    rules : bool
        Whether rules make candidates, too (see :func:`wordings`).
    draws : int
        How many questionnaires are drawn by chance from the candidates, for the held-out half; the
        lists of intensifiers take turns.
    nulls : int
        How many null respondents of each family's base.
    seed : int
        Seed of the halves and of the prompts by chance.
    **asking
        ``store``, ``dtype``, ``device`` and ``progress`` of :func:`psychometrics.asking.ask`.

    Returns
    -------
    _Improved

    Raises
    ------
    ParameterError
        There are too few respondents, no candidates, no draw, or a template without two terms of a
        kind.
    QuestionnaireError
        The questionnaire has no templates.
    RespondentError
        A respondent is not there or did not answer.

    References
    ----------
    Reuben et al. (2024), sections 3.1 and 3.3, for the rules of templates and terms and the
    measures; that no choice is judged by the answers it was made on is the rule of every held-out
    sample (Hastie, Tibshirani and Friedman, 2009, section 7.10.2).
    """
    check_numbers(seed=seed, draws=draws, nulls=nulls)

    if nulls < 2 or max(draws, nulls) > _MOST:
        raise ParameterError(f"nulls must be 2 or more, draws and nulls at most {_MOST}.")
    names = population(respondents) if isinstance(respondents, str) else list(respondents)
    _halves([str(name) for name in names])  # too few are refused before any is opened
    questionnaire = load_questionnaire(questionnaire)
    prompts(questionnaire)  # a questionnaire without any is refused
    table = wordings(questionnaire, rules)
    _check(questionnaire, table)
    asking = asking | {"dtype": None if asking.get("dtype") == "auto" else asking.get("dtype")}
    labels = [_label(name, asking["dtype"]) for name in names]
    families = _families(labels)
    split = _halves(labels, families, seed)
    first, second = (
        [name for name, own in zip(names, split["half"], strict=True) if own == half]
        for half in ("chosen on", "held out")
    )

    bases = list(dict.fromkeys(_BASES.get(family, "embedded") for family in families))
    run = _Run(questionnaire, first, nulls, bases, seed, asking)
    levels, of_intensifiers = run.intensifiers()
    chosen, allowed, of_wordings = run.wording(table, levels)
    finals, pools, of_terms = run.terms(chosen, levels)

    better = _built(questionnaire, finals, levels, f"{questionnaire.id}_improved")
    by_chance = _by_chance(questionnaire, allowed, pools, draws, seed)
    frames = [
        _held_out_silhouettes(questionnaire, better, second, asking),
        _silhouettes_by_chance(by_chance, second, asking),
        run.silhouettes(_present(questionnaire), None).assign(prompts="present"),
        run.silhouettes(finals, levels).assign(prompts="improved"),
    ]
    widths = pd.concat(frames, ignore_index=True).assign(questionnaire=questionnaire.id)
    widths["half"] = widths["respondent_id"].map(split.set_index("respondent_id")["half"])
    widths["half"] = widths["half"].fillna("null")
    if widths.groupby("half")["respondent_id"].nunique().reindex(split["half"]).min() < 2:
        raise RespondentError("Fewer than two respondents of a half answered: name others.")

    columns = ["questionnaire", "item_id", "half", "respondent_id", "prompts", "silhouette"]
    candidates = pd.DataFrame([*of_intensifiers, *of_wordings, *of_terms])
    candidates.insert(0, "questionnaire", questionnaire.id)

    return _Improved(better, widths[columns], candidates, split, seed)


def held_out(found: pd.DataFrame, by: Sequence[str] = ("questionnaire",)) -> pd.DataFrame:
    """Summarise silhouettes before and after in the held-out half.

    Parameters
    ----------
    found : DataFrame
        ``silhouettes`` of :class:`_Improved`.
    by : sequence of str
        One row for each of these; add ``"item_id"`` for items.

    Returns
    -------
    DataFrame
        The columns of `by`; held-out means ``present, chance, improved``; with 95 % intervals over
        respondents, the paired ``gain`` of the improved over the present prompts and
        ``over_chance`` over those by chance (``_low, _high``); ``gain_chosen_on``, the gain on the
        half that chose; ``n``, the held-out respondents.

    Raises
    ------
    ParameterError
        A column or one of the kinds of prompts is missing, or a respondent stands twice.

    Examples
    --------
    >>> rows = [("q", "i", half, f"{half}{n}", kind, value + n / 100)
    ...         for half in ("chosen on", "held out") for n in (1, 2)
    ...         for kind, value in (("present", 0.2), ("chance", 0.3), ("improved", 0.6))]
    >>> columns = ["questionnaire", "item_id", "half", "respondent_id", "prompts", "silhouette"]
    >>> held_out(pd.DataFrame(rows, columns=columns))[["gain", "gain_low"]].round(2).values.tolist()
    [[0.4, 0.4]]
    """
    keys = ["questionnaire", "item_id", "half", "respondent_id", "prompts"]
    check_columns(found, [*keys, *by], ["silhouette"], once=keys)
    missing = {"present", "improved", "chance"} - set(found["prompts"])

    if missing:
        raise ParameterError(f"There are no silhouettes of prompts '{min(missing)}'.")
    wide = found.pivot_table("silhouette", ["half", *by, "respondent_id"], "prompts", sort=False)
    wide["gain"] = wide["improved"] - wide["present"]
    wide["over_chance"] = wide["improved"] - wide["chance"]
    chose = wide.loc["chosen on", "gain"].groupby(list(by)).mean()
    parts = wide.loc["held out"].groupby(list(by), sort=False)
    table = parts[["present", "chance", "improved"]].mean()

    for name in ("gain", "over_chance"):
        ends = [mean_interval(part[name].to_numpy()) for _, part in parts]
        table[name] = parts[name].mean()
        table[[f"{name}_low", f"{name}_high"]] = np.array(ends, dtype=float)

    return table.assign(gain_chosen_on=chose, n=parts.size()).reset_index()


def check_new(path: str | Path, report: str | Path | None = None) -> None:
    """Refuse a place where an improved questionnaire cannot be written, before anything is asked.

    Parameters
    ----------
    path, report
        As in :meth:`_Improved.write`.

    Raises
    ------
    ParameterError
        With the file's name.
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*\.yaml", Path(path).name):
        raise ParameterError(f"{path}: name the file in small letters, digits, - and _, .yaml.")

    for file in filter(None, (path, report)):
        place = Path(file).expanduser()
        if place.exists():
            raise ParameterError(f"{file} is there already and is not overwritten: name another.")
        if not place.absolute().parent.is_dir():
            raise ParameterError(f"{file}: there is no folder {place.parent}; make it first.")

        if not os.access(place.absolute().parent, os.W_OK):
            raise ParameterError(f"{file} cannot be written: name a file in another folder.")


class _Run:
    """Measures candidates on the half that chooses and on null respondents."""

    def __init__(self, questionnaire, respondents, nulls, bases, seed, asking) -> None:
        self.questionnaire = questionnaire
        self.respondents = respondents
        self.asking = asking
        self.nulls = nulls
        self.bases = bases
        self.seed = seed

    def cubes(self, entries: list[_Wording], levels) -> list[tuple[np.ndarray, np.ndarray]]:
        """P(entailment) of each entry, (R, T, L), of the respondents and of null respondents."""
        pool = _pool(self.questionnaire, entries, levels)
        real = ask(pool, self.respondents, **self.asking)
        if real["respondent_id"].nunique() < len(self.respondents):
            name, why = next(iter(real.attrs["summary"]["failed"].items()))
            raise RespondentError(f"{name} cannot choose prompts (leave it out, or mend it): {why}")

        null = {"respondents": self.nulls, "seed": self.seed}
        drawn = [null_answers(pool, base=base, **null) for base in self.bases]
        table = prompts(pool)
        found = []
        self.names = []
        for answers in (real, pd.concat(drawn, ignore_index=True)):
            wide = answers.pivot(index="respondent_id", columns=_ASKED, values="entailment")
            self.names.append(wide.index)
            values = wide[pd.MultiIndex.from_frame(table[_ASKED])].to_numpy(dtype=float)
            parts = table.groupby("item_id", sort=False).indices.values()
            found.append([
                values[:, rows].reshape(len(values), len(entry.terms), -1)
                for rows, entry in zip(parts, entries, strict=True)
            ])  # fmt: skip

        return list(zip(*found, strict=True))

    def silhouettes(self, entries: list[_Wording], levels) -> pd.DataFrame:
        """Of each respondent and item, the first half's and null respondents'."""
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
        """The levels of intensifiers whose silhouettes lie farthest above the null."""
        first = [entry for entry in _present(self.questionnaire) if entry.place == 1]
        options = _options(self.questionnaire)
        rows = []
        for number, levels in enumerate(options):
            entries = [_moved(entry, levels) for entry in first]
            pairs = zip(self.cubes(entries, levels), entries, strict=True)
            found = np.mean([_silhouettes(cube, entry) for cube, entry in pairs], axis=0)
            words = levels or self.questionnaire.intensifiers or ()
            rows.append({
                "stage": "intensifiers", "item_id": "", "template": 0,
                "rule": "listed" if number else "present",
                "intensifiers": ", ".join(word for level in words for word in level.terms),
                **_separation(*found), "allowed": True,
            })  # fmt: skip

        best = _choose(rows)
        return options[best], rows

    def wording(self, table: pd.DataFrame, levels) -> tuple[list, dict, list[dict]]:
        """For each template the wording that is chosen, and those that were allowed."""
        places = {(entry.item, entry.place): entry for entry in _present(self.questionnaire)}
        rules: dict[_Wording, str] = {}  # with the gap at the end two candidates can be one
        for row in table.itertuples():
            own = places[row.item_id, row.template]
            entry = replace(own, premise=row.premise, hypothesis=row.hypothesis,
                            source=own.source[:_FEW], inverse=own.inverse[:_FEW])  # fmt: skip
            rules.setdefault(_moved(entry, levels), row.rule)

        entries = list(rules)
        cubes = self.cubes(entries, levels)
        content = self.content(entries, levels).groupby("entry").mean(numeric_only=True)
        content["neutrality"] = self.neutrality(entries)
        rows = []
        chosen = []
        allowed = {}
        for place, present in places.items():
            own = [n for n, e in enumerate(entries) if (e.item, e.place) == place]
            behind = content.loc[own] - content.loc[own[0]]
            found = [{
                "stage": "wording", "item_id": place[0], "template": place[1],
                "rule": rules[entries[n]], "premise": entries[n].premise,
                "hypothesis": entries[n].hypothesis, **content.loc[n].to_dict(),
                **_separation(*_silhouettes(cubes[n], entries[n])),
                "allowed": bool((behind.loc[n] >= -_TOLERANCE).all()),
            } for n in own]  # fmt: skip
            best = _choose(found)
            whole = [replace(entries[n], source=present.source, inverse=present.inverse)
                     for n in own]  # fmt: skip
            chosen.append(whole[best])
            allowed[place] = [entry for entry, row in zip(whole, found, strict=True)
                              if row["allowed"]]  # fmt: skip
            rows += found

        return chosen, allowed, rows

    def terms(self, chosen: list[_Wording], levels) -> tuple[list, dict, list[dict]]:
        """For each template the terms that are chosen, and the pool they come from."""
        pools = self.pools(chosen)
        content = self.content(pools, levels)
        content["opposition"] = self.opposition(pools)
        rows = []
        finals = []
        cubes = self.cubes(pools, levels)
        for number, (entry, pool, cube) in enumerate(zip(chosen, pools, cubes, strict=True)):
            measures = content.loc[content["entry"] == number, list(_OF_TERMS)].to_numpy()
            candidates = [
                _term_candidate(entry, pool, places, measures, cube)
                for places in _picks(entry, pool)
            ]
            of_entry = [row for _, row in candidates]
            best = _choose(of_entry)
            final, _ = candidates[best]
            finals.append(final)

            for k in dict.fromkeys([0, best]):  # of up to hundreds of choices these two are kept
                rule = "listed" if k else "present"
                rows.append(of_entry[k] | {"rule": rule, "of": len(of_entry)})

        return finals, {(pool.item, pool.place): pool for pool in pools}, rows

    def pools(self, chosen: list[_Wording]) -> list[_Wording]:
        """Return each template with its own terms and those of its candidates."""
        listed = {item.id: item.candidates for item in self.questionnaire.items}
        pools = []
        for entry in chosen:
            candidates = [c for c in listed[entry.item] if c.template == entry.place]
            source = (*entry.source, *(term for c in candidates for term in c.source))
            inverse = (*entry.inverse, *(term for c in candidates for term in c.inverse))
            pools.append(replace(entry, source=source, inverse=inverse))

        return pools

    def content(self, entries: list[_Wording], levels) -> pd.DataFrame:
        """Similarity and acceptability of each entry and term, with the extreme intensifiers."""
        own = self.questionnaire
        words = levels or own.intensifiers or own.levels(own.items[0])
        ends = ((words[0], words[0].terms[0]), (words[-1], words[-1].terms[-1]))
        ends = [{"weight": level.weight, "terms": [word]} for level, word in ends]
        table = content_validity(_pool(own, entries, ends))
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
        known = dict(zip(unique, vectors, strict=True))
        values = []
        for entry, (gap, *own) in zip(entries, texts, strict=True):
            near = np.array([known[gap] @ known[text] for text in own])
            source, inverse = (near[entry.signs == sign].mean() for sign in (1, -1))
            values.append(1 - abs(source - inverse))

        return np.array(values)

    def opposition(self, pools: list[_Wording]) -> list[float]:
        """How much more a term contradicts the first term of the other kind than that of its own.

        The probability is of the sentences with the terms, its mean over the first half.
        """
        pairs = [
            (pool.sentence(other[0]), pool.sentence(own[0]), pool.sentence(term))
            for pool in pools
            for own, other in ((pool.source, pool.inverse), (pool.inverse, pool.source))
            for term in own
        ]
        unique = sorted({(first, term) for *both, term in pairs for first in both})
        values = np.zeros(len(unique))

        for given in self.respondents:
            dtype = {"dtype": self.asking["dtype"]}
            asked = given if hasattr(given, "answer") else load_respondent(given, **dtype)
            values += asked.answer(unique)[:, 2] / len(self.respondents)

        known = dict(zip(unique, values, strict=True))
        return [
            known[other, term] - (known[own, term] if own != term else 0.0)
            for other, own, term in pairs
        ]


def _families(labels: Sequence[str]) -> list[str]:
    """Return the family of each respondent; of one unknown, the first part of its name."""
    known = population_table().set_index("respondent_id")["family"].to_dict()
    return [known.get(label, label.split("-")[0]) for label in labels]


def _held_out_silhouettes(
    questionnaire: Questionnaire, better: Questionnaire, respondents: Sequence, asking: dict
) -> pd.DataFrame:
    """Return the silhouettes of the present and the improved prompts."""
    pool = better.model_copy(update={"id": f"{questionnaire.id}-candidates"})
    widths = term_silhouettes(pss(ask([questionnaire, pool], respondents, **asking)))
    prompts_of = {questionnaire.id: "present", pool.id: "improved"}

    return widths.assign(prompts=widths["questionnaire"].map(prompts_of))


def _silhouettes_by_chance(
    questionnaires: Sequence[Questionnaire], respondents: Sequence, asking: dict
) -> pd.DataFrame:
    """Return the mean silhouettes of questionnaires whose prompts were drawn by chance."""
    widths = pd.concat(
        term_silhouettes(pss(ask(questionnaire, respondents, **asking)))
        for questionnaire in questionnaires
    )
    means = widths.groupby(["respondent_id", "item_id"], sort=False)["silhouette"].mean()

    return means.reset_index().assign(prompts="chance")


def _label(respondent: object, dtype: str | None) -> str:
    """The name of a respondent in answers: a folder's name, not its path."""
    own = hasattr(respondent, "answer")
    identity = respondent.identity if own else identify(respondent, dtype=dtype)
    return identity["respondent_id"]


def _check(questionnaire: Questionnaire, table: pd.DataFrame) -> None:
    for entry in _present(questionnaire):
        if max(len(entry.source), len(entry.inverse)) < 2:
            place = f"{questionnaire.id}, item {entry.item}, template {entry.place}"
            raise ParameterError(f"{place}: has one source and one inverse term; add a second.")
    terms = any(c.source or c.inverse for item in questionnaire.items for c in item.candidates)
    if (table["rule"] == "present").all() and not terms and not questionnaire.candidates:
        raise ParameterError(f"{questionnaire.id} has no candidates: list some under its items.")


def _present(questionnaire: Questionnaire) -> list[_Wording]:
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
    """*I {intensifier} feel this way.* as *I feel this way {intensifier}.*"""
    bare = re.sub(r"{intensifier} ?", "", hypothesis).strip()
    stop = bare[-1] if bare[-1] in ".!?" else ""
    bare = bare.removesuffix(stop).strip()
    return f"{bare[:1].upper()}{bare[1:]} {{intensifier}}{stop}"


def _moved(entry: _Wording, levels) -> _Wording:
    """With other levels than the present ones, which are phrases of time, the gap is at the end."""
    if levels is None or "{intensifier}" not in entry.hypothesis:
        return entry
    return replace(entry, hypothesis=_at_end(entry.hypothesis))


def _built(questionnaire: Questionnaire, entries: list[_Wording], levels, name: str):
    """The questionnaire with these templates and levels and no candidates."""
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


def _pool(questionnaire: Questionnaire, entries: list[_Wording], levels) -> Questionnaire:
    """A questionnaire of candidates, each an item of its own."""
    content = questionnaire.model_dump(exclude={"candidates"})
    known = {item["id"]: item for item in content["items"]}
    bare = {"terms": None, "candidates": (), "weights": None}

    if levels is not None:
        content["intensifiers"], bare["intensifiers"] = levels, None

    content["items"] = [
        known[entry.item] | bare | {"id": f"{entry.item}_{n}", "templates": [entry.template()]}
        for n, entry in enumerate(entries)
    ]
    content["scales"] = [{"id": "all", "title": "all", "items": "all"}]
    content |= {"norms": (), "categories": (), "bias": ()}
    # measured against the text in the file, on any machine
    content |= {"id": f"{questionnaire.id}-candidates", "wording": "verbatim"}

    return Questionnaire.model_validate(content)


def _picks(entry: _Wording, pool: _Wording) -> list[list[int]]:
    """Return the places in the pool of each choice of as many terms as the template has."""
    first_inverse = len(pool.source)
    sources = itertools.combinations(range(first_inverse), len(entry.source))
    inverses = itertools.combinations(range(first_inverse, len(pool.terms)), len(entry.inverse))

    return [[*source, *inverse] for source, inverse in itertools.product(sources, inverses)]


def _term_candidate(
    entry: _Wording, pool: _Wording, places: list[int], measures: np.ndarray, cube: Sequence
) -> tuple[_Wording, dict]:
    """Return a template with terms of the pool, and how they compare with the present ones."""
    words = [pool.terms[place] for place in places]
    source = tuple(words[: len(entry.source)])
    inverse = tuple(words[len(entry.source) :])
    candidate = replace(entry, source=source, inverse=inverse)

    means = measures[places].mean(axis=0)
    present = [pool.terms.index(term) for term in entry.terms]
    behind = means - measures[present].mean(axis=0)
    widths = _silhouettes([part[:, places] for part in cube], candidate)

    row = {"stage": "terms", "item_id": entry.item, "template": entry.place}
    row |= {"premise": entry.premise, "hypothesis": entry.hypothesis}
    row |= {"source": ", ".join(source), "inverse": ", ".join(inverse)}
    row |= dict(zip(_OF_TERMS, means, strict=True))
    row |= _separation(*widths)
    row["allowed"] = bool((behind >= -_TOLERANCE).all())

    return candidate, row


def _silhouettes(cubes: Sequence[np.ndarray], entry: _Wording) -> list[float]:
    """Mean silhouette of the first half and of null respondents."""
    return [float(silhouettes(two_way(cube), entry.signs).mean()) for cube in cubes]


def _separation(real: float, null: float) -> dict[str, float]:
    return {"silhouette": real, "null": null, "separation": real - null}


def _choose(rows: list[dict]) -> int:
    """Mark the allowed candidate with the largest separation; the first of equals."""
    best = int(np.argmax([r["separation"] if r["allowed"] else -np.inf for r in rows]))
    for number, row in enumerate(rows):
        row["chosen"] = number == best
    return best


def _options(questionnaire: Questionnaire) -> list[tuple | None]:
    """The present levels (None) and others; items with levels of their own keep them."""
    own = any(item.intensifiers for item in questionnaire.items)
    return [None] if own else [None, *questionnaire.candidates]


def _by_chance(questionnaire, allowed: dict, pools: dict, draws: int, seed: int) -> list:
    """Questionnaires drawn from the candidates that were allowed."""
    rng = np.random.default_rng(seed)
    found = []
    options = _options(questionnaire)
    first = rng.integers(len(options))

    for number in range(draws):
        levels = options[(first + number) % len(options)]
        entries = []
        for place, own in allowed.items():
            entry = own[rng.integers(len(own))]
            pool = pools[place]
            source, inverse = (
                tuple(rng.choice(words, size, replace=False).tolist())
                for words, size in ((pool.source, len(entry.source)),
                                    (pool.inverse, len(entry.inverse)))
            )  # fmt: skip
            entry = replace(entry, source=source, inverse=inverse)
            entries.append(_moved(entry, levels))

        found.append(_built(questionnaire, entries, levels, f"{questionnaire.id}-candidates"))

    return found
