"""Choose better prompts for a questionnaire on half of the respondents; test them on the rest.

:func:`improve` splits the respondents before any measurement. On the first half alone it chooses
the intensifiers, then the wording of each template, then its terms. The second half answers the
chosen prompts, the present prompts, and prompts drawn at random from the same candidates.
:func:`held_out` summarises its answers.
"""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from psychometrics.asking.ask import ask
from psychometrics.asking.population import population, population_table
from psychometrics.checks import check_columns, check_names, check_numbers
from psychometrics.data import write_csv, write_text
from psychometrics.exceptions import ParameterError, RespondentError, check_file
from psychometrics.measures.intervals import mean_interval
from psychometrics.measures.normalisation import pss
from psychometrics.measures.validity import term_silhouettes
from psychometrics.modes import identify
from psychometrics.questionnaires import Questionnaire, load_questionnaire
from psychometrics.questionnaires.prompts import prompts

from .candidates import _build, _check_candidates, _draw_questionnaires, _present_wordings, wordings
from .choosing import TOLERANCE, _Choice

_BASES = {"MiniLM": "embedded", "SmolLM2": "smollm2"}
_HEAD = (Path(__file__).parent / "templates" / "improved.yaml").read_text(encoding="utf-8")


@dataclass(frozen=True)
class _Improved:
    """The result of :func:`improve`.

    Attributes
    ----------
    questionnaire : Questionnaire
        The improved questionnaire, named ``<id>_improved``.
    silhouettes : DataFrame
        The ``silhouette`` of each respondent and item for the ``present``, the ``improved`` and the
        random (``chance``) prompts (column ``prompts``), with the respondent's ``half``: ``chosen
        on``, ``held out``, or ``null`` for null respondents.
    candidates : DataFrame
        One row per candidate: its ``stage`` (intensifiers, wording, terms), its words, its
        measurements on the first half, and whether it was ``allowed`` and ``chosen``.
    split : DataFrame
        The respondents in each half.
    seed : int
        Seed of the halves and of the random prompts.
    """

    questionnaire: Questionnaire
    silhouettes: pd.DataFrame
    candidates: pd.DataFrame
    split: pd.DataFrame
    seed: int = 1

    def write(self, path: str | Path, report: str | Path) -> None:
        """Write the questionnaire, with its provenance, to a file of its own.

        Parameters
        ----------
        path : str or Path
            A new file; its name without ``.yaml`` becomes the questionnaire's id.
        report : str or Path
            A new file for the table of candidates (CSV).

        Raises
        ------
        ParameterError
            A file exists already (it is not overwritten), or cannot be written.
        """
        check_new(path, report)
        path = Path(path).expanduser()
        content = self.questionnaire.model_dump(mode="json", exclude_defaults=True)
        content |= {"id": path.stem}
        halves = self.split.groupby("half")["respondent_id"].agg(", ".join)
        head = _HEAD.format(
            of=self.silhouettes["questionnaire"].iloc[0],
            chose=halves["chosen on"],
            out=halves["held out"],
            date=datetime.date.today().isoformat(),
            seed=self.seed,
            limit=TOLERANCE,
        )
        body = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100)

        write_text(path, head + body)
        write_csv(self.candidates, Path(report).expanduser(), decimals=4)


def _halves(respondents: Sequence[str], seed: int = 1) -> pd.DataFrame:
    """Split respondents at random into halves with nearly equal numbers of each family.

    Parameters
    ----------
    respondents : sequence of str
        Names; their order does not matter. The family of a respondent from outside the population
        is its name up to the first hyphen.
    seed : int
        Seed of the draw.

    Returns
    -------
    DataFrame
        ``respondent_id, family, half``, shuffled within families, which keep their order. The
        first, third, fifth, ... respondents are ``chosen on``, the others ``held out``.

    Raises
    ------
    ParameterError
        There are fewer than four respondents, too few for two in each half.

    Examples
    --------
    >>> _halves(["a-1", "b-1", "a-2", "b-2"]).groupby("half")["family"].agg(sorted).to_dict()
    {'chosen on': ['a', 'b'], 'held out': ['a', 'b']}
    """
    names = list(respondents)

    if len(names) < 4:
        raise ParameterError(f"{len(names)} respondent(s) cannot be halved: name at least four.")
    families = population_table().set_index("respondent_id")["family"].to_dict()
    of_names = [families.get(name, name.split("-")[0]) for name in names]
    table = pd.DataFrame({"respondent_id": names, "family": of_names})
    rng = np.random.default_rng(seed)
    parts = table.groupby("family")["respondent_id"]
    order = [name for _, family in parts for name in rng.permutation(sorted(family))]
    table["half"] = np.where(table["respondent_id"].isin(order[0::2]), "chosen on", "held out")

    return table


def improve(
    questionnaire: str | Path | Questionnaire,
    respondents: str | Sequence = "encoders",
    seed: int = 1,
    **asking: object,
) -> _Improved:
    r"""Choose better prompts on half of the respondents and measure them on the other half.

    A candidate is *allowed* if it falls below the part that it replaces by at most 0.05 in
    similarity to the item, acceptability and neutrality (templates) or opposition (terms). The
    choice is the allowed candidate whose silhouette lies farthest above the null respondents',

    .. math:: \bar s_{\text{first half}} - \bar s_{\text{random heads}} ,

    or the present part if no candidate does better. The parts are chosen in this order: first the
    intensifiers of the questionnaire, then the wording of each template, then the source and
    inverse terms, whose number stays the same.

    Parameters
    ----------
    questionnaire : Questionnaire, name or path
        A questionnaire that lists ``candidates``, or one for which rules generate candidates (see
        :func:`wordings`).
    respondents : str or sequence
        At least four respondents, as :func:`psychometrics.asking.ask` takes them; by default the
        package's encoders, since their weights are always installed.
    seed : int
        Seed of the halves and of the random prompts.
    **asking
        ``store``, ``dtype``, ``device`` and ``progress`` of :func:`psychometrics.asking.ask`.

    Returns
    -------
    _Improved

    Raises
    ------
    ParameterError
        There are too few respondents or no candidates, or a template has at most one term of each
        kind.
    QuestionnaireError
        The questionnaire has no templates.
    RespondentError
        A respondent does not exist or did not answer.

    References
    ----------
    Reuben et al. (2024), sections 3.1 and 3.3, for the measures and the rules for templates and
    terms; Hastie, Tibshirani and Friedman (2009), section 7.10.2, for testing each choice on
    held-out data.
    """
    check_numbers(seed=seed)
    names = population(respondents) if isinstance(respondents, str) else list(respondents)
    _halves([str(name) for name in names])  # refuse too few respondents before opening one
    questionnaire = load_questionnaire(questionnaire)
    prompts(questionnaire)  # refuse a questionnaire without prompts
    table = wordings(questionnaire)
    _check_candidates(questionnaire, table)

    asking = asking | {"dtype": None if asking.get("dtype") == "auto" else asking.get("dtype")}
    identities = [
        name.identity if hasattr(name, "answer") else identify(name, dtype=asking["dtype"])
        for name in names
    ]
    split = _halves([identity["respondent_id"] for identity in identities], seed)
    chose = [name for name, half in zip(names, split["half"], strict=True) if half == "chosen on"]
    second = [name for name, half in zip(names, split["half"], strict=True) if half == "held out"]
    bases = list(dict.fromkeys(_BASES.get(family, "embedded") for family in split["family"]))

    choice = _Choice(questionnaire, chose, bases, seed, asking)
    levels, of_intensifiers = choice.intensifiers()
    chosen, allowed, of_wordings = choice.wording(table, levels)
    finals, pools, of_terms = choice.terms(chosen, levels)
    candidates = pd.DataFrame([*of_intensifiers, *of_wordings, *of_terms])
    candidates.insert(0, "questionnaire", questionnaire.id)

    better = _build(questionnaire, finals, levels, f"{questionnaire.id}_improved")
    by_chance = _draw_questionnaires(questionnaire, allowed, pools, seed)
    frames = [
        _held_out_silhouettes(questionnaire, better, by_chance, second, asking),
        choice.silhouettes(_present_wordings(questionnaire), None).assign(prompts="present"),
        choice.silhouettes(finals, levels).assign(prompts="improved"),
    ]
    widths = _widths_by_half(frames, questionnaire.id, split)

    return _Improved(better, widths, candidates, split, seed)


def _widths_by_half(
    frames: list[pd.DataFrame], questionnaire_id: str, split: pd.DataFrame
) -> pd.DataFrame:
    """Return silhouettes of all prompts with each respondent's half, or ``null``."""
    widths = pd.concat(frames, ignore_index=True).assign(questionnaire=questionnaire_id)
    widths["half"] = widths["respondent_id"].map(split.set_index("respondent_id")["half"])
    widths["half"] = widths["half"].fillna("null")
    if widths.groupby("half")["respondent_id"].nunique().reindex(split["half"]).min() < 2:
        raise RespondentError("Fewer than two respondents in one half answered: name more of them.")

    columns = ["questionnaire", "item_id", "half", "respondent_id", "prompts", "silhouette"]
    return widths[columns]


def held_out(found: pd.DataFrame, by: Sequence[str] = ("questionnaire",)) -> pd.DataFrame:
    """Summarise silhouettes in the held-out half, before and after the improvement.

    Parameters
    ----------
    found : DataFrame
        The ``silhouettes`` of the result of :func:`improve`.
    by : sequence of str
        Grouping columns; add ``"item_id"`` for items.

    Returns
    -------
    DataFrame
        The columns of `by`; the held-out means ``present, chance, improved``; the paired ``gain``
        of the improved over the present prompts, and ``over_chance``, their gain over the random
        prompts, both with 95 % intervals over respondents (``_low, _high``); ``gain_chosen_on``,
        the gain in the half used to choose the prompts; ``n``, the number of held-out respondents.

    Raises
    ------
    ParameterError
        A column is missing, or a respondent occurs twice.

    Examples
    --------
    >>> rows = [("q", "i", half, f"{half}{n}", kind, value + n / 100)
    ...         for half in ("chosen on", "held out") for n in (1, 2)
    ...         for kind, value in (("present", 0.2), ("chance", 0.3), ("improved", 0.6))]
    >>> columns = ["questionnaire", "item_id", "half", "respondent_id", "prompts", "silhouette"]
    >>> held_out(pd.DataFrame(rows, columns=columns))[["gain", "gain_low"]].round(2).values.tolist()
    [[0.4, 0.4]]
    """
    check_names(by=by)
    keys = ["questionnaire", "item_id", "half", "respondent_id", "prompts"]
    check_columns(found, [*keys, *by], ["silhouette"], once=keys)
    wide = found.pivot_table("silhouette", ["half", *by, "respondent_id"], "prompts", sort=False)
    wide["gain"] = wide["improved"] - wide["present"]
    wide["over_chance"] = wide["improved"] - wide["chance"]
    chose = wide.loc["chosen on", "gain"].groupby(list(by)).mean()
    parts = wide.loc["held out"].groupby(list(by), sort=False)
    table = parts[["present", "chance", "improved"]].mean()

    for name in ("gain", "over_chance"):
        ends = [mean_interval(rows[name].to_numpy()) for _, rows in parts]
        table[name] = parts[name].mean()
        table[[f"{name}_low", f"{name}_high"]] = np.array(ends, dtype=float)

    return table.assign(gain_chosen_on=chose, n=parts.size()).reset_index()


def check_new(path: str | Path, report: str | Path) -> None:
    """Refuse a path that an improved questionnaire cannot be written to, before asking anyone.

    Parameters
    ----------
    path, report
        Paths, as in the result's ``write``.

    Raises
    ------
    ParameterError
        A file cannot be written; the message names the file.
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*\.yaml", Path(path).name):
        raise ParameterError(f"{path}: use lower-case letters, digits, - and _, then .yaml.")

    for file in (path, report):
        place = Path(file).expanduser()
        if place.exists():
            raise ParameterError(f"{file} exists and is not overwritten: name another file.")
        check_file(place, (".yaml", ".csv"))

        if not os.access(place.absolute().parent, os.W_OK):
            raise ParameterError(f"{file} cannot be written: name a file in another folder.")


def _held_out_silhouettes(
    questionnaire: Questionnaire,
    better: Questionnaire,
    by_chance: Sequence[Questionnaire],
    respondents: Sequence,
    asking: dict,
) -> pd.DataFrame:
    """Return silhouettes of the present and the improved prompts, and means of the random ones."""
    pool = better.model_copy(update={"id": f"{questionnaire.id}-candidates"})
    widths = term_silhouettes(pss(ask([questionnaire, pool], respondents, **asking)))
    kinds = widths["questionnaire"].map({questionnaire.id: "present", pool.id: "improved"})

    drawn = pd.concat(term_silhouettes(pss(ask(each, respondents, **asking))) for each in by_chance)
    means = drawn.groupby(["respondent_id", "item_id"], sort=False)["silhouette"].mean()
    return pd.concat([widths.assign(prompts=kinds), means.reset_index().assign(prompts="chance")])
