"""Better prompts for a questionnaire: candidates by rules, chosen on one half, shown on the other.

The flow of :func:`improve`: :func:`halves` splits the respondents before anything is measured. On
the first half alone it chooses the intensifiers, then for each template its wording, then its
terms. The second half answers what was chosen, the present prompts, and prompts drawn by chance
from the same candidates. :func:`held_out` puts them side by side.
"""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from .asking.answers import check_columns
from .asking.ask import ask
from .asking.population import population, population_table
from .exceptions import ParameterError, RespondentError
from .measures.content import content_validity
from .measures.intervals import correlation_interval, mean_interval
from .measures.nulls import null_answers
from .measures.scoring import pss, two_way
from .measures.validity import silhouettes, term_silhouettes
from .models.loading import load_sentence_encoder
from .models.sources import base_path
from .modes import identify, load_respondent
from .paths import data_dir
from .questionnaires import Questionnaire, load_questionnaire
from .questionnaires.prompts import prompts

TOLERANCE = 0.05
"""How far a candidate may fall behind what it replaces in similarity, acceptability, neutrality and
opposition; stated before anything was measured."""
HYPOTHESES = ("This is {intensifier} true of me.",)
"""Hypotheses that go with any premise in the first person."""
FEW = 2
"""Terms of a kind with which wordings are compared, which saves a third of the asking."""
BASES = {"MiniLM": "embedded", "SmolLM2": "smollm2"}
"""The untouched base of each family."""
SHIPPED = ("improved", "improved_candidates", "improved_words")
NULL_OF = {"held out": "null", "another family": "its null"}
BAR = 0.6
"""The least silhouette of an item by Reuben et al. (2024), section 4."""
_ASKED = ["item_id", "template", "polarity", "term", "intensifier"]
_CONTENT = ("similarity", "acceptability", "neutrality")


@dataclass(frozen=True)
class Improved:
    """What :func:`improve` gives.

    Attributes
    ----------
    questionnaire : Questionnaire
        The improved one, named ``<id>_improved``.
    silhouettes : DataFrame
        Per respondent and item, the ``silhouette`` of the ``present`` prompts, of the ``improved``
        and of those by ``chance`` (column ``prompts``), with the respondent's ``half``: ``chosen
        on``, ``held out``, or ``null`` for null respondents.
    candidates : DataFrame
        One row per candidate: its ``stage`` (intensifiers, wording, terms), what it says, its
        measures on the first half, whether it was ``allowed`` and ``chosen``.
    split : DataFrame
        As :func:`halves` gives it.
    seed : int
        Of the halves and of what was drawn by chance.
    """

    questionnaire: Questionnaire
    silhouettes: pd.DataFrame
    candidates: pd.DataFrame
    split: pd.DataFrame
    seed: int = 1


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
    def said(self) -> tuple[str, str, str]:
        return self.item, self.premise, self.hypothesis

    def entry(self) -> dict:
        terms = {"source": self.source, "inverse": self.inverse}
        return {"premise": self.premise, "hypothesis": self.hypothesis, "terms": terms}

    def text(self, term: str) -> str:
        """Premise and hypothesis with this term and no intensifier."""
        text = f"{self.premise} {self.hypothesis}".replace("{term}", term)
        return re.sub(r" ?{intensifier}", "", text).strip()

    def signs(self) -> np.ndarray:
        return np.repeat([1, -1], [len(self.source), len(self.inverse)])

    def claim(self, term: str) -> str:
        """The sentence that holds the term."""
        sides = (self.premise, self.hypothesis)
        text = next(side for side in sides if "{term}" in side).replace("{term}", term)
        return re.sub(r" ?{intensifier}", "", text).strip()


def halves(
    respondents: Sequence[str], families: Sequence[str] | None = None, seed: int = 1
) -> pd.DataFrame:
    """Split respondents by chance in two halves with nearly as many of each family.

    Parameters
    ----------
    respondents : sequence of str
        Names, whose order does not matter.
    families : sequence of str, optional
        Of each respondent; by default its name up to the first hyphen.
    seed : int
        Of the chance.

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
    >>> halves(["a-1", "b-1", "a-2", "b-2"]).groupby("half")["family"].agg(sorted).to_dict()
    {'chosen on': ['a', 'b'], 'held out': ['a', 'b']}
    """
    names = list(respondents)
    if len(names) < 4:
        raise ParameterError(
            f"{len(names)} respondent(s) cannot be halved into two that choose and two that are "
            "held out: name at least four."
        )
    of = [name.split("-")[0] for name in names] if families is None else list(families)
    table = pd.DataFrame({"respondent_id": names, "family": of})
    rng = np.random.default_rng(seed)
    order = [
        name
        for _, part in table.groupby("family")
        for name in rng.permutation(sorted(part["respondent_id"]))
    ]
    table["half"] = np.where(table["respondent_id"].isin(order[0::2]), "chosen on", "held out")
    return table


def wordings(questionnaire: Questionnaire, rules: bool = True) -> pd.DataFrame:
    """Candidate templates for each template of a questionnaire: listed ones, and some by rules.

    The rules leave the item's own words alone: hypotheses that fit any premise
    (:data:`HYPOTHESES`), and the intensifier at the end of the hypothesis.

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
            premise, hypothesis = template.premise, template.hypothesis
            own = [c for c in item.candidates if c.template == place]
            found = [("present", premise, hypothesis)]
            for candidate in own:
                found += [("listed", other, hypothesis) for other in candidate.premises]
                found += [("listed", premise, other) for other in candidate.hypotheses]
            if rules and "{intensifier}" in hypothesis and "{term}" in premise:
                found += [("hypothesis", premise, other) for other in HYPOTHESES]
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
    families: Sequence[str] | None = None,
    rules: bool = True,
    draws: int = 3,
    nulls: int = 24,
    bases: Sequence[str] | None = None,
    seed: int = 1,
    encoder: str = "embedded",
    acceptability: str = "embedded",
    store: str | Path | None = None,
    dtype: str | None = None,
    progress: bool = True,
) -> Improved:
    r"""Choose better prompts on half of the respondents and measure them on the other half.

    A candidate is *allowed* if it falls behind what it replaces by no more than :data:`TOLERANCE`
    in similarity to the item, acceptability and neutrality (templates) or opposition (terms). Of
    those allowed the one is chosen whose silhouette lies farthest above that of null respondents,

    .. math:: \bar s_{\text{first half}} - \bar s_{\text{random heads}} ,

    the present one if none does better: first the intensifiers of the questionnaire, then the
    wording of each template, then as many source and inverse terms as it has.

    Parameters
    ----------
    questionnaire : Questionnaire, name or path
        With ``candidates``, or to be tried by the rules alone.
    respondents : str or sequence
        As :func:`psychometrics.asking.ask` takes them; at least four.
    families : sequence of str, optional
        Of each respondent; by default the population table's, of others as in :func:`halves`.
    rules : bool
        As in :func:`wordings`.
    draws : int
        How many questionnaires are drawn by chance from the candidates, for the held-out half; the
        lists of intensifiers take turns.
    nulls : int
        How many null respondents of each base.
    bases : sequence of str, optional
        What the random heads stand on, as in :func:`psychometrics.measures.nulls.null_answers`; by
        default
        the bases of the respondents' families.
    seed : int
        Of the halves and of what is drawn by chance.
    encoder, acceptability
        As in :func:`psychometrics.measures.content.content_validity`.
    store, dtype, progress
        As in :func:`psychometrics.asking.ask`.

    Returns
    -------
    Improved

    Raises
    ------
    ParameterError
        There are too few respondents, no candidates, no draw, or a template without two terms of a
        kind.
    QuestionnaireError
        The questionnaire has no templates.
    RespondentError
        A respondent is not there, or fewer than two of a half answered.

    References
    ----------
    Reuben et al. (2024), sections 3.1 and 3.3, for the rules of templates and terms and the
    measures; that no choice is judged by the answers it was made on is the rule of every held-out
    sample (Hastie, Tibshirani and Friedman, 2009, section 7.10.2).
    """
    questionnaire = load_questionnaire(questionnaire)
    if draws < 1 or nulls < 2:
        raise ParameterError("draws must be 1 or more and nulls 2 or more.")
    names = population(respondents) if isinstance(respondents, str) else list(respondents)
    halves([str(name) for name in names])  # or says that there are too few
    prompts(questionnaire)  # or says that it has none
    table = wordings(questionnaire, rules)
    _check(questionnaire, table)
    labels = [_name(given, _exact(dtype)) for given in names]
    families = _families(labels) if families is None else list(families)
    split = halves(labels, families, seed)
    if bases is None:
        bases = list(dict.fromkeys(BASES.get(family, "embedded") for family in families))
    given = dict(zip(labels, names, strict=True))
    first = [given[n] for n in split.loc[split["half"] == "chosen on", "respondent_id"]]
    asking = {"store": store, "dtype": _exact(dtype), "progress": progress}
    run = _Run(questionnaire, first, nulls, bases, seed, encoder, acceptability, asking)

    levels, rows_words = run.intensifiers()
    chosen, allowed, rows_wording = run.wording(table, levels)
    finals, pools, rows_terms = run.terms(chosen, levels)

    better = _built(questionnaire, finals, levels, f"{questionnaire.id}_improved")
    by_chance = _by_chance(questionnaire, allowed, pools, draws, seed)
    second = [given[n] for n in split.loc[split["half"] == "held out", "respondent_id"]]
    # under the candidates' name: prompts that are in several of these are asked once
    pool = better.model_copy(update={"id": f"{questionnaire.id}-candidates"})
    answers = term_silhouettes(pss(ask([questionnaire, pool], second, **asking)))
    is_present = answers["questionnaire"] == questionnaire.id
    frames = [answers.assign(prompts=np.where(is_present, "present", "improved"))]
    drawn = pd.concat(term_silhouettes(pss(ask(one, second, **asking))) for one in by_chance)
    keys = ["respondent_id", "item_id"]
    frames.append(drawn.groupby(keys, sort=False)["silhouette"].mean().reset_index().assign(
        prompts="chance"))  # fmt: skip
    frames += [part.assign(prompts="present") for part in run.silhouettes(run.present, None)]
    frames += [part.assign(prompts="improved") for part in run.silhouettes(finals, levels)]
    found = pd.concat(frames, ignore_index=True)
    found["half"] = found["respondent_id"].map(split.set_index("respondent_id")["half"])
    found["half"] = found["half"].fillna("null")
    found["questionnaire"] = questionnaire.id
    if (sizes := found.groupby("half")["respondent_id"].nunique()).min() < 2 or len(sizes) < 3:
        raise RespondentError("Fewer than two respondents of a half answered: name others.")
    columns = ["questionnaire", "item_id", "half", "respondent_id", "prompts", "silhouette"]
    candidates = pd.DataFrame([*rows_words, *rows_wording, *rows_terms])
    candidates.insert(0, "questionnaire", questionnaire.id)
    return Improved(better, found[columns], candidates, split, seed)


def measured(
    questionnaire: str | Path | Questionnaire,
    respondents: str | Sequence,
    rules: bool = True,
    nulls: int = 24,
    bases: Sequence[str] = ("embedded",),
    seed: int = 1,
    encoder: str = "embedded",
    acceptability: str = "embedded",
    store: str | Path | None = None,
    dtype: str | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Candidate templates with all their measures, as :func:`improve` takes them.

    Parameters
    ----------
    questionnaire, rules, nulls, bases, seed, encoder, acceptability, store, dtype, progress
        As in :func:`improve`.
    respondents : str or sequence
        Those who answer, one or more; nobody is held out.

    Returns
    -------
    DataFrame
        One row per candidate: ``item_id, template, rule, premise, hypothesis``; means over terms
        ``similarity, acceptability, neutrality``; ``silhouette`` of the respondents, ``null`` of
        random heads and ``separation``, the difference; ``allowed`` and ``chosen``.

    Raises
    ------
    ParameterError, QuestionnaireError, RespondentError
        As in :func:`improve`.
    """
    questionnaire = load_questionnaire(questionnaire)
    names = population(respondents) if isinstance(respondents, str) else list(respondents)
    table = wordings(questionnaire, rules)
    _check(questionnaire, table)
    asking = {"store": store, "dtype": _exact(dtype), "progress": progress}
    run = _Run(questionnaire, names, nulls, bases, seed, encoder, acceptability, asking)
    return pd.DataFrame(run.wording(table, None)[2]).drop(columns="stage")


def intensifier_sets(
    questionnaire: str | Path | Questionnaire,
    respondents: str | Sequence = "embedded",
    nulls: int = 24,
    bases: Sequence[str] = ("embedded",),
    seed: int = 1,
    store: str | Path | None = None,
    dtype: str | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """A questionnaire's intensifiers beside its other lists of them, in each respondent.

    The first template of each item is asked. Nothing is chosen, so nobody is held out. The other
    lists stand at the end of the hypothesis; so that a place is not taken for a meaning, the
    present ones are asked there, too.

    Parameters
    ----------
    questionnaire : Questionnaire, name or path
        With ``intensifiers`` and ``candidates`` in their place.
    respondents, nulls, bases, seed, store, dtype, progress
        As in :func:`improve`.

    Returns
    -------
    DataFrame
        ``questionnaire, intensifiers, place`` (``as it is`` or ``end``)``, respondent_id``;
        ``null``, whether the respondent is a random head; the mean ``silhouette`` of items;
        ``trend``, Spearman's correlation of weight and mean PSS of source terms; ``order_rare,
        order_frequent``, the same within either half of the list, of the trend's sign: 1 if the
        list is a scale within its halves too, 0 or less if it acts as two words.

    Raises
    ------
    ParameterError
        The questionnaire has no other intensifiers.
    """
    questionnaire = load_questionnaire(questionnaire)
    names = population(respondents) if isinstance(respondents, str) else list(respondents)
    options = _options(questionnaire)
    if len(options) < 2:
        raise ParameterError(
            f"{questionnaire.id} has no other intensifiers: list some under candidates."
        )
    asking = {"store": store, "dtype": _exact(dtype), "progress": progress}
    run = _Run(questionnaire, names, nulls, bases, seed, None, None, asking)
    first = [entry for entry in _present(questionnaire) if entry.place == 1]
    ends = [replace(entry, hypothesis=_at_end(entry.hypothesis)) for entry in first
            if "{intensifier}" in entry.hypothesis]  # fmt: skip
    sets = [(None, "as it is", first), (None, "end", ends)]
    sets += [(levels, "end", [_moved(entry, levels) for entry in first]) for levels in options[1:]]
    parts = []
    for levels, place, entries in sets:
        words = levels or questionnaire.intensifiers
        cubes = run.cubes(entries, levels)
        for null in (False, True):
            own = [cube[null] for cube in cubes]
            values = [silhouettes(two_way(cube), entry.signs())
                      for cube, entry in zip(own, entries, strict=True)]  # fmt: skip
            part = _steps(own, entries, words).assign(silhouette=np.mean(values, axis=0))
            parts.append(part.assign(
                questionnaire=questionnaire.id, intensifiers=_said(words), place=place, null=null,
                respondent_id=run.names[null]))  # fmt: skip
    columns = ["questionnaire", "intensifiers", "place", "respondent_id", "null", "silhouette",
               "trend", "order_rare", "order_frequent"]  # fmt: skip
    return pd.concat(parts, ignore_index=True)[columns]


def held_out(
    found: pd.DataFrame, by: Sequence[str] = ("questionnaire",), half: str = "held out"
) -> pd.DataFrame:
    """Silhouettes before and after, on the half that chose and on the one that was held out.

    Parameters
    ----------
    found : DataFrame
        ``silhouettes`` of :func:`improve`, of one or several questionnaires.
    by : sequence of str
        One row for each of these; add ``"item_id"`` for items.
    half : {"held out", "another family"}
        Whose answers are reported: of those held out, or of respondents of a family that had no
        part in the choice, who need no answers to prompts by chance.

    Returns
    -------
    DataFrame
        The columns of `by`. Held-out means with 95 % intervals over respondents: ``present``,
        ``improved`` and ``chance`` (with ``_low, _high``), ``gain`` of the improved over the
        present prompts and ``over_chance`` over those by chance, both paired. ``gain_chosen_on``,
        the gain on the half that chose, and ``shrinkage``, how much larger it is: what the choice
        owed to chance. ``null_present, null_improved``, means of null respondents. ``items``,
        ``present_bar, improved_bar``, how many have a held-out mean of at least :data:`BAR`.
        ``n``, the held-out respondents.

    Raises
    ------
    ParameterError
        A column or one of the kinds of prompts is missing, or a respondent stands twice.

    Examples
    --------
    >>> rows = [("q", "i", half, f"{half}{n}", kind, value + n / 100)
    ...         for half in ("chosen on", "held out", "null") for n in (1, 2)
    ...         for kind, value in (("present", 0.2), ("chance", 0.3), ("improved", 0.6))]
    >>> columns = ["questionnaire", "item_id", "half", "respondent_id", "prompts", "silhouette"]
    >>> table = held_out(pd.DataFrame(rows, columns=columns))
    >>> table[["gain", "shrinkage", "improved_bar"]].round(2).to_numpy().tolist()
    [[0.4, 0.0, 1.0]]
    """
    keys = ["questionnaire", "item_id", "half", "respondent_id", "prompts"]
    check_columns(found, [*keys, *by], ["silhouette"])
    if found.duplicated(keys).any():
        raise ParameterError("A respondent's item stands twice; give each silhouette once.")
    kinds = ["present", "improved", "chance"]
    if half not in NULL_OF:
        raise ParameterError(f"half must be one of {', '.join(NULL_OF)}, got {half!r}.")
    if missing := set(kinds) - set(found["prompts"]):
        raise ParameterError(f"There are no silhouettes of prompts '{min(missing)}'.")
    rows = []
    for key, part in found.groupby(list(by), sort=False):
        row = dict(zip(by, key, strict=True))
        grid = part.groupby(["half", "respondent_id", "prompts"])["silhouette"].mean().unstack()
        empty = pd.DataFrame(columns=kinds, dtype=float)
        halves_of = {half: own.droplevel(0) for half, own in grid.groupby(level=0)}
        chose, out, null = (
            halves_of.get(name, empty).reindex(columns=kinds)
            for name in ("chosen on", half, NULL_OF[half])
        )
        values = {kind: out[kind] for kind in kinds}
        values |= {
            "gain": out["improved"] - out["present"],
            "over_chance": out["improved"] - out["chance"],
        }
        for name, value in values.items():
            low, high = mean_interval(value.to_numpy()) if len(value) else (np.nan, np.nan)
            row |= {name: value.mean(), f"{name}_low": float(low), f"{name}_high": float(high)}
        row["gain_chosen_on"] = (chose["improved"] - chose["present"]).mean()
        row["shrinkage"] = row["gain_chosen_on"] - row["gain"]
        row |= {f"null_{kind}": null[kind].mean() for kind in kinds[:2]}
        own = part[part["half"] == half].groupby(["questionnaire", "item_id", "prompts"])
        items = own["silhouette"].mean().unstack()
        row["items"] = len(items)
        row |= {f"{kind}_bar": int((items[kind] >= BAR).sum()) for kind in kinds[:2]}
        rows.append(row | {"n": len(out)})
    return pd.DataFrame(rows)


def shipped() -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """What the improved prompts that come with the project were chosen by.

    Returns
    -------
    silhouettes, candidates, words : DataFrame
        As of :class:`Improved` and of :func:`intensifier_sets`, of every questionnaire that was
        improved; made by ``data.make.improved``, which adds silhouettes of a family that
        had no part in the choice (``half`` is ``another family``, and ``its null``).

    Examples
    --------
    >>> silhouettes, candidates, words = shipped()
    >>> sorted(silhouettes["prompts"].unique())
    ['chance', 'improved', 'present']
    """
    # the half of random heads is called null, which is no missing value
    return tuple(
        pd.read_csv(data_dir() / f"{name}.csv", keep_default_na=False, na_values=[""])
        for name in SHIPPED
    )


def check_new(path: str | Path, report: str | Path | None = None) -> None:
    """Refuse to write an improved questionnaire where a file is, or under no questionnaire's name.

    Parameters
    ----------
    path, report
        As in :func:`write_improved`.

    Raises
    ------
    ParameterError
        With the file's name.
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*\.yaml", Path(path).name):
        raise ParameterError(
            f"{path}: name the file in small letters, digits, - and _, with the ending .yaml."
        )
    for file in (path, report):
        if file is not None and Path(file).expanduser().exists():
            raise ParameterError(f"{file} is there already and is not overwritten: name another.")


def write_improved(
    improved: Improved, path: str | Path, report: str | Path | None = None, date: str | None = None
) -> Path:
    """Write an improved questionnaire to a file of its own, with where it comes from.

    Parameters
    ----------
    improved : Improved
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
    content = improved.questionnaire.model_dump(mode="json", exclude_defaults=True)
    content |= {"id": path.stem}
    own = improved.split.groupby("half")["respondent_id"].agg(", ".join)
    head = (
        f"# Prompts of {improved.silhouettes['questionnaire'].iloc[0]}, improved by `psychometrics "
        f"improve` on {date or datetime.date.today().isoformat()}, seed {improved.seed}.\n"
        f"# Chosen on the answers of {own['chosen on']};\n"
        f"# held out were {own['held out']}.\n"
        "# Split: by chance within families, with that seed. Rule: of the "
        "candidates that fall behind\n# by at most "
        f"{TOLERANCE} in similarity, acceptability, neutrality and opposition, the one whose "
        "silhouette lies\n# farthest above that of random heads: intensifiers, then wordings, "
        "then terms.\n"
    )
    body = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100)
    try:
        path.write_text(head + body, encoding="utf-8")
        if report is not None:
            improved.candidates.to_csv(Path(report).expanduser(), index=False, float_format="%.4f")
    except OSError as error:
        raise ParameterError(f"{path}: cannot be written ({error.strerror}).") from None
    return path


class _Run:
    """What is measured on the half that chooses; every prompt is asked once."""

    def __init__(
        self, questionnaire, first, nulls, bases, seed, encoder, acceptability, asking
    ) -> None:
        self.questionnaire, self.first = questionnaire, first
        self.nulls, self.bases, self.seed = nulls, bases, seed
        self.encoder, self.acceptability, self.asking = encoder, acceptability, asking
        self.known: dict[tuple, tuple[np.ndarray, np.ndarray]] = {}
        self.least = min(2, len(first))
        self.present = _present(questionnaire)
        self._ask(questionnaire, self.present, None)

    def null(self, asked) -> pd.DataFrame:
        """Answers of random heads on each base."""
        parts = [
            null_answers(asked, respondents=self.nulls, base=base, seed=self.seed)
            for base in self.bases
        ]
        return pd.concat(parts, ignore_index=True)

    def _ask(self, pool: Questionnaire, entries: list[_Wording], levels) -> None:
        """Keep P(entailment) of the first half and of null respondents, (R, L) by sentence."""
        answers = ask(pool, self.first, **self.asking)
        there = set(answers["respondent_id"])  # who fails is told by a warning
        left = [given for given in self.first if _name(given, self.asking["dtype"]) in there]
        if len(left) < self.least or (self.known and len(left) < len(self.first)):
            raise RespondentError(
                "A respondent of the half that chooses did not answer all candidates: leave it "
                "out, or name others."
            )
        self.first = left
        null = self.null(pool)
        self.names = [sorted(frame["respondent_id"].unique()) for frame in (answers, null)]
        real, null = (_rows(frame, pool) for frame in (answers, null))
        for entry, key in zip(entries, _keys(entries), strict=True):
            for term in (*entry.source, *entry.inverse):
                self.known[levels, entry.said, term] = real[*key, term], null[*key, term]

    def cubes(self, entries: list[_Wording], levels) -> list[tuple[np.ndarray, np.ndarray]]:
        """Of each entry, (R, T, L) of the first half and of null respondents."""
        missing = []
        for entry in entries:
            kinds = [[t for t in kind if (levels, entry.said, t) not in self.known]
                     for kind in (entry.source, entry.inverse)]  # fmt: skip
            if kinds[0] or kinds[1]:  # a template needs terms of both kinds
                source, inverse = kinds[0] or entry.source[:1], kinds[1] or entry.inverse[:1]
                missing.append(replace(entry, source=tuple(source), inverse=tuple(inverse)))
        if missing:
            # an item whose templates are all known is left out
            self._ask(_built(self.questionnaire, missing, levels,
                             f"{self.questionnaire.id}-candidates"), missing, levels)  # fmt: skip
        found = []
        for entry in entries:
            rows = [self.known[levels, entry.said, t] for t in (*entry.source, *entry.inverse)]
            found.append(tuple(np.stack([row[k] for row in rows], axis=1) for k in (0, 1)))
        return found

    def silhouettes(self, entries: list[_Wording], levels) -> list[pd.DataFrame]:
        """Of each respondent and item, the first half's and null respondents'."""
        cubes = self.cubes(entries, levels)
        frames = []
        for null in (False, True):
            values = {
                (entry.item, entry.place): silhouettes(two_way(cube[null]), entry.signs())
                for entry, cube in zip(entries, cubes, strict=True)
            }
            wide = pd.DataFrame(values, index=pd.Index(self.names[null], name="respondent_id"))
            items = wide.T.groupby(level=0, sort=False).mean().rename_axis("item_id")
            frames.append(items.stack().rename("silhouette").reset_index())
        return frames

    def intensifiers(self) -> tuple[tuple | None, list[dict]]:
        """The levels of intensifiers whose silhouettes lie farthest above the null."""
        present = self.questionnaire
        first = [entry for entry in _present(present) if entry.place == 1]
        options = _options(present)
        rows = []
        for number, levels in enumerate(options):
            entries = [_moved(entry, levels) for entry in first]
            cubes = self.cubes(entries, levels)
            values = [_silhouettes(c, e) for c, e in zip(cubes, entries, strict=True)]
            s, n = np.mean(values, axis=0)
            words = levels or present.intensifiers or ()
            steps = _steps([c[0] for c in cubes], entries, words) if words else pd.DataFrame()
            rows.append({
                "stage": "intensifiers", "item_id": "", "template": 0,
                "rule": "listed" if number else "present",
                "intensifiers": _said(words), **steps.mean().drop("trend", errors="ignore"),
                "silhouette": s, "null": n, "separation": s - n, "allowed": True,
            })  # fmt: skip
        best = _best(rows)
        return options[best], [row | {"chosen": k == best} for k, row in enumerate(rows)]

    def wording(self, table: pd.DataFrame, levels) -> tuple[list, dict, list[dict]]:
        """For each template the wording that is chosen, and those that were allowed."""
        places = {(entry.item, entry.place): entry for entry in _present(self.questionnaire)}
        rules: dict[_Wording, str] = {}  # with the gap at the end two candidates can be one
        for row in table.itertuples():
            own = places[row.item_id, row.template]
            entry = replace(own, premise=row.premise, hypothesis=row.hypothesis,
                            source=own.source[:FEW], inverse=own.inverse[:FEW])  # fmt: skip
            rules.setdefault(_moved(entry, levels), row.rule)
        entries = list(rules)
        values = [_silhouettes(c, e) for c, e in zip(self.cubes(entries, levels), entries,
                                                     strict=True)]  # fmt: skip
        content = self.content(entries, levels).groupby("entry")[list(_CONTENT)].mean()
        rows, chosen, allowed = [], [], {}
        for place, present in places.items():
            own = [n for n, e in enumerate(entries) if (e.item, e.place) == place]
            found = []
            for n in own:
                behind = content.loc[n] - content.loc[own[0]]
                s, null = values[n]
                found.append({
                    "stage": "wording", "item_id": place[0], "template": place[1],
                    "rule": rules[entries[n]], "premise": entries[n].premise,
                    "hypothesis": entries[n].hypothesis, **content.loc[n].to_dict(),
                    "silhouette": s, "null": null, "separation": s - null,
                    "allowed": bool((behind >= -TOLERANCE).all()),
                })  # fmt: skip
            best = _best(found)
            rows += [row | {"chosen": k == best} for k, row in enumerate(found)]
            whole = {"source": present.source, "inverse": present.inverse}
            chosen.append(replace(entries[own[best]], **whole))
            allowed[place] = [replace(entries[n], **whole) for n, row in
                              zip(own, found, strict=True) if row["allowed"]]  # fmt: skip
        return chosen, allowed, rows

    def terms(self, chosen: list[_Wording], levels) -> tuple[list, dict, list[dict]]:
        """For each template the terms that are chosen, and the pool they come from."""
        listed = {item.id: item.candidates for item in self.questionnaire.items}
        pools = []
        for entry in chosen:
            own = [c for c in listed[entry.item] if c.template == entry.place]
            source = (*entry.source, *(t for c in own for t in c.source))
            inverse = (*entry.inverse, *(t for c in own for t in c.inverse))
            pools.append(replace(entry, source=source, inverse=inverse))
        cubes = self.cubes(pools, levels)
        content = self.content(pools, levels)
        opposition = self.opposition(pools)
        rows, finals = [], []
        for number, (entry, whole) in enumerate(zip(chosen, pools, strict=True)):
            measured = content[content["entry"] == number].set_index("term")
            measured = measured[["similarity", "acceptability"]].assign(**{
                "opposition": pd.Series(opposition[number])})  # fmt: skip
            sizes = len(entry.source), len(entry.inverse)
            signs = np.repeat([1, -1], sizes)
            words = [*whole.source, *whole.inverse]
            choices = [
                [*source, *inverse]
                for source in itertools.combinations(range(len(whole.source)), sizes[0])
                for inverse in itertools.combinations(range(len(whole.source), len(words)),
                                                      sizes[1])
            ]  # fmt: skip
            measures = [measured.loc[[words[k] for k in own]].mean() for own in choices]
            found = []
            for own, measure in zip(choices, measures, strict=True):
                s, null = (float(silhouettes(two_way(c[:, own]), signs).mean())
                           for c in cubes[number])  # fmt: skip
                found.append({
                    "stage": "terms", "item_id": entry.item, "template": entry.place,
                    "premise": entry.premise, "hypothesis": entry.hypothesis,
                    "source": ", ".join(words[k] for k in own[: sizes[0]]),
                    "inverse": ", ".join(words[k] for k in own[sizes[0]:]),
                    **measure.to_dict(), "silhouette": s, "null": null, "separation": s - null,
                    "allowed": bool((measure - measures[0] >= -TOLERANCE).all()),
                })  # fmt: skip
            best = _best(found)
            finals.append(replace(
                entry, source=tuple(words[k] for k in choices[best][: sizes[0]]),
                inverse=tuple(words[k] for k in choices[best][sizes[0]:])))  # fmt: skip
            for k in dict.fromkeys([0, best]):  # of up to hundreds of choices these two are kept
                rule = "listed" if k else "present"
                rows.append(found[k] | {"rule": rule, "chosen": k == best, "of": len(choices)})
        return finals, {(w.item, w.place): w for w in pools}, rows

    def content(self, entries: list[_Wording], levels) -> pd.DataFrame:
        """Similarity, acceptability and neutrality of each entry and term."""
        own = self.questionnaire
        words = levels or own.intensifiers or own.levels(own.items[0])
        ends = [{"weight": level.weight, "terms": [word]}
                for level, word in ((words[0], words[0].terms[0]),
                                    (words[-1], words[-1].terms[-1]))]  # fmt: skip
        pool = _built(own, entries, ends, f"{own.id}-candidates")
        table = content_validity(pool, self.encoder, self.acceptability)
        places = {key: n for n, key in enumerate(_keys(entries))}
        keys = zip(table["item_id"], table["template"], strict=True)
        table["entry"] = [places[key] for key in keys]
        found = table.groupby(["entry", "term"], sort=False)[["similarity", "acceptability"]]
        found = found.mean().reset_index()
        return found.assign(
            neutrality=found["entry"].map(dict(enumerate(self.neutrality(entries))))
        )

    def neutrality(self, entries: list[_Wording]) -> np.ndarray:
        r""":math:`1 - |\cos(e, \bar e_{S^+}) - \cos(e, \bar e_{S^-})|` of the gapped sentence."""
        model = load_sentence_encoder(base_path() if self.encoder == "embedded" else self.encoder)
        texts = [e.text(t) for e in entries for t in ("...", *e.source, *e.inverse)]
        unique = sorted(set(texts))
        vectors = model.encode(unique, normalize_embeddings=True, show_progress_bar=False)
        known = dict(zip(unique, vectors, strict=True))
        values = []
        for entry in entries:
            gap = known[entry.text("...")]
            near = [np.mean([gap @ known[entry.text(t)] for t in kind])
                    for kind in (entry.source, entry.inverse)]  # fmt: skip
            values.append(1 - abs(near[0] - near[1]))
        return np.array(values)

    def opposition(self, pools: list[_Wording]) -> list[dict[str, float]]:
        """Of each term: P(contradiction) of the first term of the other kind minus of its own's.

        Between the sentences that hold the terms, the mean over the first half of respondents.
        """
        pairs = {}
        for number, entry in enumerate(pools):
            for own, other in ((entry.source, entry.inverse), (entry.inverse, entry.source)):
                for term in own:
                    pairs[number, term, 1] = entry.claim(other[0]), entry.claim(term)
                    if term != own[0]:
                        pairs[number, term, -1] = entry.claim(own[0]), entry.claim(term)
        unique = sorted(set(pairs.values()))
        values = np.zeros(len(unique))
        for given in self.first:
            respondent = given
            if not hasattr(given, "answer"):
                respondent = load_respondent(given, dtype=self.asking["dtype"])
            values += respondent.answer(unique)[:, 2] / len(self.first)
        known = dict(zip(unique, values, strict=True))
        found: list[dict[str, float]] = [{} for _ in pools]
        for (number, term, sign), pair in pairs.items():
            found[number][term] = found[number].get(term, 0.0) + sign * float(known[pair])
        return found


def _exact(dtype: str | None) -> str | None:
    return None if dtype == "auto" else dtype


def _name(respondent: object, dtype: str | None) -> str:
    """What answers call a respondent: a folder's name, not its path."""
    own = hasattr(respondent, "answer")
    identity = respondent.identity if own else identify(respondent, dtype=dtype)
    return identity["respondent_id"]


def _families(names: list[str]) -> list[str]:
    known = population_table().set_index("respondent_id")["family"].to_dict()
    return [known.get(name, name.split("-")[0]) for name in names]


def _check(questionnaire: Questionnaire, table: pd.DataFrame) -> None:
    for entry in _present(questionnaire):
        if max(len(entry.source), len(entry.inverse)) < 2:
            raise ParameterError(
                f"{questionnaire.id}, item {entry.item}, template {entry.place}: has one source "
                "and one inverse term, which have no silhouette; add a second of a kind."
            )
    terms = any(c.source or c.inverse for item in questionnaire.items for c in item.candidates)
    if (table["rule"] == "present").all() and not terms and not questionnaire.candidates:
        raise ParameterError(
            f"{questionnaire.id} has no candidates: list some under its items, or let the rules "
            "make some."
        )


def _present(questionnaire: Questionnaire) -> list[_Wording]:
    return [
        _Wording(item.id, place, template.premise, template.hypothesis, terms.source, terms.inverse)
        for item in questionnaire.items
        for place, template in enumerate(item.templates, start=1)
        for terms in [template.terms or item.terms]
    ]


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
    content = questionnaire.model_dump(exclude={"candidates"})
    if levels is not None:
        content["intensifiers"] = [
            level if isinstance(level, dict) else level.model_dump() for level in levels
        ]
    for item in content["items"]:
        item["candidates"], item["terms"] = (), None
        item["templates"] = [e.entry() for e in entries if e.item == item["id"]]
        if levels is not None:
            item["intensifiers"] = None
    content["id"] = name
    if not name.endswith("_improved"):  # items without candidates need not be asked
        content["items"] = [item for item in content["items"] if item["templates"]]
        content["scales"], content["norms"] = [{"id": "all", "title": "all", "items": "all"}], ()
        content["categories"], content["bias"] = (), ()
        content["wording"] = "verbatim"  # measured against the text in the file, on any machine
        for item in content["items"]:
            item["weights"] = None
    if name.endswith("_improved"):
        content["short_title"] = f"{questionnaire.short_title} (improved)"
        content["title"] = f"{questionnaire.title}, improved prompts"
    return Questionnaire.model_validate(content)


def _keys(entries: list[_Wording]) -> list[tuple[str, int]]:
    """Item and number of the template that each entry is in a questionnaire of them all."""
    count: dict[str, int] = {}
    keys = []
    for entry in entries:
        count[entry.item] = count.get(entry.item, 0) + 1
        keys.append((entry.item, count[entry.item]))
    return keys


def _rows(answers: pd.DataFrame, pool: Questionnaire) -> dict[tuple, np.ndarray]:
    """P(entailment) by item, template and term, each (R, L)."""
    table = prompts(pool)
    wide = answers.pivot(index="respondent_id", columns=_ASKED, values="entailment")
    wide = wide[pd.MultiIndex.from_frame(table[_ASKED])].to_numpy(dtype=float)
    parts = table.groupby(["item_id", "template", "term"], sort=False)
    return {key: wide[:, part.index] for key, part in parts}


def _silhouettes(cubes: tuple[np.ndarray, np.ndarray], entry: _Wording) -> tuple[float, float]:
    """Mean silhouette of the first half and of null respondents."""
    return tuple(float(silhouettes(two_way(cube), entry.signs()).mean()) for cube in cubes)


def _steps(cubes: list[np.ndarray], entries: list[_Wording], levels) -> pd.DataFrame:
    """How far the weights' order is kept over all intensifiers, the rare and the frequent ones.

    Spearman's correlation of weight and mean PSS of source terms, one row per respondent; within
    the rare and the frequent ones of the whole trend's sign.
    """
    weights = np.array([level.weight for level in levels for _ in level.terms])
    sides = {"rare": weights < 0, "frequent": weights > 0}
    curves = [
        two_way(cube)[:, : len(entry.source)].mean(axis=1)
        for cube, entry in zip(cubes, entries, strict=True)
        if cube.shape[2] == len(weights)
    ]
    rows = []
    for curve in np.mean(curves, axis=0) if curves else ():
        row = {"trend": correlation_interval(weights, curve)["r"]}
        for name, own in sides.items():
            if own.sum() > 2:
                within = correlation_interval(weights[own], curve[own])["r"]
                row[f"order_{name}"] = np.sign(row["trend"]) * within
        rows.append(row)
    return pd.DataFrame(rows, columns=["trend", "order_rare", "order_frequent"], dtype=float)


def _options(questionnaire: Questionnaire) -> list[tuple | None]:
    """The present levels (None) and others; items with levels of their own keep them."""
    own = any(item.intensifiers for item in questionnaire.items)
    return [None] if own else [None, *questionnaire.candidates]


def _said(levels) -> str:
    return ", ".join(word for level in levels for word in level.terms)


def _best(found: list[dict]) -> int:
    """The allowed candidate with the largest separation; the first of equals."""
    return int(np.argmax([r["separation"] if r["allowed"] else -np.inf for r in found]))


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
            entry, pool = own[rng.integers(len(own))], pools[place]
            source, inverse = (
                tuple(rng.choice(words, size, replace=False).tolist())
                for words, size in ((pool.source, len(entry.source)),
                                    (pool.inverse, len(entry.inverse)))
            )  # fmt: skip
            entry = replace(entry, source=source, inverse=inverse)
            entries.append(_moved(entry, levels))
        found.append(_built(questionnaire, entries, levels, f"{questionnaire.id}-candidates"))
    return found
