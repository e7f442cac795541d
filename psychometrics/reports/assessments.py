"""The typed results of judging one model or several."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd

from ..exceptions import ParameterError
from ..questionnaires import AnyQuestionnaires, Questionnaire, load_questionnaires

if TYPE_CHECKING:
    from .own_base import UntouchedBase


def _show_in_jupyter(result: Assessment | Comparison) -> str:
    """Return the sentences, the figure, the tests and the table of a result, as its page does."""
    import psychometrics as pm

    return pm.pages.render_fragment(result)


@dataclass(frozen=True)
class Assessment:
    """A respondent's scores, judged by the rules, and the tables that the verdicts rest on.

    A table that does not apply, or that could not be computed, is None; ``asked`` then has the
    reason.

    Parameters
    ----------
    scores : DataFrame
        One row per scale: ``questionnaire, scale, title, score, low, high`` (over items), ``n``
        (items), ``place`` (share of the other respondents that score lower), ``mark`` and
        ``verdict``.
    flags : DataFrame
        The result of :func:`psychometrics.reports.rules.flags`, with ``questionnaire``.
    nulls, others : DataFrame
        Scale scores of the null respondents and of the other respondents: ``questionnaire, scale,
        who, score``.
    items, null_items : DataFrame
        Item scores of the respondent and of the null respondents.
    base : UntouchedBase, optional
        For answers to prompts, the base on which the null respondents are built.
    agreement : DataFrame, optional
        Agreement with the other respondents about the items
        (:func:`psychometrics.reports.agreement.agreement_table`).
    norms : DataFrame, optional
        For answers to items, the distance of each score from people's norms.
    kernel : DataFrame, optional
        For answers to prompts, :func:`psychometrics.nulls.kernels.kernel_statistics` on the model's
        base.
    sizes : DataFrame, optional
        For answers to prompts of GAD-7, PHQ-9 or SOC-13: ``questionnaire, respondents, million
        parameters``, ``silhouette`` and ``alpha`` with ``low, high``, for the model, for random
        heads of three sizes on its base, and for random heads at their start on the three bases of
        ``data/bases`` nearest in size (MiniLM with the nearest number of layers).
    asked : DataFrame, optional
        How the model was asked: ``what`` and ``how``.
    runs : DataFrame, optional
        For answers to items, ``questionnaire, scale, title``, the number of ``runs`` and the
        ``mean`` and ``sd`` of the scale's score over them.
    controls : DataFrame, optional
        For a chat model, its answers to the questions of :mod:`psychometrics.reports.controls`.
    questionnaires : tuple of Questionnaire
        The questionnaires that were asked.
    settings : dict
        The arguments of :func:`assess`, from which :meth:`command` is made.
    """

    scores: pd.DataFrame
    flags: pd.DataFrame
    nulls: pd.DataFrame
    others: pd.DataFrame
    items: pd.DataFrame
    null_items: pd.DataFrame
    base: UntouchedBase | None = None
    agreement: pd.DataFrame | None = None
    norms: pd.DataFrame | None = None
    kernel: pd.DataFrame | None = None
    sizes: pd.DataFrame | None = None
    asked: pd.DataFrame | None = None
    runs: pd.DataFrame | None = None
    controls: pd.DataFrame | None = None
    questionnaires: tuple[Questionnaire, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)

    _repr_html_ = _show_in_jupyter

    @property
    def is_judged_on_own_base(self) -> bool:
        """Whether random heads on the model's own base decide about it."""
        return self.base is not None and self.base.is_own

    @property
    def mode(self) -> str:
        """The response mode, or ``file`` if nobody was asked."""
        return str(self.settings.get("mode", "file"))

    @property
    def scale_names(self) -> dict[tuple[str, str], str]:
        """The titles of scales after those of their questionnaires, by the ids of both."""
        names = {}
        for each in self.questionnaires:
            for scale in each.scales:
                is_same = scale.title == each.short_title
                name = scale.title if is_same else f"{each.short_title}, {scale.title}"
                names[each.id, scale.id] = name

        return names

    def short_title(self, questionnaire: str) -> str:
        """Return the short title of a questionnaire, by its id."""
        titles = {each.id: each.short_title for each in self.questionnaires}
        return titles.get(questionnaire, questionnaire)

    def command(self, **changes: object) -> str:
        """Return the command that repeats the assessment, with changed settings or conditions.

        A table of answers has no such command, so it gives an empty text.
        """
        if not self.settings:
            return ""

        settings = self.settings | {k: v for k, v in changes.items() if k in self.settings}
        conditions = dict(settings["conditions"])
        conditions |= {k: v for k, v in changes.items() if k not in self.settings}
        words = ["psychometrics", "profile", settings["model"]]
        words += ["--questionnaires", ",".join(settings["questionnaires"])]
        if settings["mode"] != "nli":
            words += ["--mode", settings["mode"]]
        for name in ("against", "base"):
            if settings[name] not in (None, "default"):
                words += [f"--{name}", settings[name]]
        if settings["mode"] == "chat" and not settings["controls"]:
            words.append("--no-controls")
        for name, value in conditions.items():
            words += ["-c", f"{name}={value}"]

        return shlex.join(map(str, words))


@dataclass(frozen=True)
class Comparison:
    """Several models' assessments, with the paired differences from the first model.

    Parameters
    ----------
    assessments : dict of Assessment
        By the models' names.
    differences : DataFrame
        The result of :func:`psychometrics.reports.profiles.differences`.
    agreement : DataFrame
        The result of :func:`psychometrics.reports.agreement.agreement_table`.
    failures : dict of str
        Reasons why models could not be asked, by their names.
    read : DataFrame, optional
        What was read from a table of answers.
    """

    assessments: dict[str, Assessment]
    differences: pd.DataFrame
    agreement: pd.DataFrame
    failures: dict[str, str] = field(default_factory=dict)
    read: pd.DataFrame | None = None

    _repr_html_ = _show_in_jupyter

    @property
    def first(self) -> Assessment:
        """The assessment of the first model, with which the others are compared."""
        return next(iter(self.assessments.values()))

    @property
    def questionnaires(self) -> tuple[Questionnaire, ...]:
        """The questionnaires that all models answered."""
        return self.first.questionnaires


def load_with_scales(questionnaires: AnyQuestionnaires, texts: bool = True) -> list[Questionnaire]:
    """Load questionnaires; refuse one without scales, which has no scores to judge.

    Parameters
    ----------
    questionnaires : str, Path or Questionnaire, or several
    texts : bool
        As in :func:`psychometrics.load_questionnaire`.

    Raises
    ------
    ParameterError
        A questionnaire has no scales.

    Examples
    --------
    >>> [questionnaire.id for questionnaire in load_with_scales(["gad7", "phq9"])]
    ['gad7', 'phq9']
    """
    loaded = load_questionnaires(questionnaires, texts)
    for questionnaire in loaded:
        if not questionnaire.scales:
            raise ParameterError(
                f"{questionnaire.id} has no scales: use `psychometrics scores --plot`."
            )
    return loaded
