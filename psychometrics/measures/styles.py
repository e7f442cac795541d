"""Response styles: acquiescence, extreme responding, social desirability, decisiveness."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
import pandas as pd

from ..checks import check_choice, check_columns, check_names, check_numbers
from ..exceptions import ParameterError
from ..questionnaires import Questionnaire, load_questionnaire, load_questionnaires
from ..questionnaires.answers import tidy
from .normalisation import pss
from .scoring import _answers_to, keyed_items


def response_styles(
    answers: pd.DataFrame,
    questionnaires: Questionnaire | Iterable[Questionnaire],
    by: Sequence[str] = (),
) -> pd.DataFrame:
    r"""Return each run's acquiescence and extreme responding, regardless of item content.

    With answers rescaled to :math:`a \in [-1, 1]`, acquiescence is

    .. math:: A = \tfrac12(\bar a_{\text{keyed}} + \bar a_{\text{reversed}})

    averaged over the scales that have both kinds of items. A trait cancels out: respondents who
    agree that they are talkative and disagree that they are quiet have an acquiescence of 0.

    Parameters
    ----------
    answers : DataFrame
        ``respondent_id, questionnaire, mode, run, item_id, value, status``.
    questionnaires : Questionnaire or several
        All questionnaires that were answered.
    by : sequence of str
        Further columns that distinguish administrations.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, mode, run``, the columns of ``by``; ``agreeing`` (mean of
        all answers, −1 to 1), ``acquiescence`` (missing if no scale has both kinds of items, or if
        all such scales lack an answer), ``extreme`` (share of answers at either end; missing with
        two options), ``middle`` (share at the midpoint; missing without a midpoint), ``commonest``
        (share of the most frequent answer), ``answered`` (share with status ok).

    Raises
    ------
    ParameterError
        A questionnaire has no answers, an answer is to a different questionnaire or an unknown
        item, or an item has two answers in a run.

    References
    ----------
    Paulhus (1991); Baumgartner and Steenkamp (2001); Soto et al. (2008) for balanced keys.

    Examples
    --------
    >>> from psychometrics.questionnaires import load_questionnaire
    >>> mini = load_questionnaire("ipip20")
    >>> yes = pd.DataFrame({"respondent_id": "a", "questionnaire": "ipip20", "mode": "human",
    ...     "run": 1, "item_id": [item.id for item in mini.items], "value": 5, "status": "ok"})
    >>> response_styles(yes, mini)[["agreeing", "acquiescence", "middle"]].to_numpy().tolist()
    [[1.0, 1.0, 0.0]]
    """
    check_names(by=by)
    keys = ["respondent_id", "questionnaire", "mode", "run", *by]
    check_columns(answers, [*keys, "item_id", "status"], ["value"], once=[*keys, "item_id"])
    loaded = {sheet.id: sheet for sheet in load_questionnaires(questionnaires)}
    unnamed = set(answers["questionnaire"]) - set(loaded)

    if unnamed and not isinstance(questionnaires, Questionnaire):
        raise ParameterError(f"Some answers are to '{min(unnamed)}'; name this questionnaire, too.")
    tables = []
    for questionnaire in loaded.values():
        rows = tidy(_answers_to(questionnaire, answers), questionnaire)
        tables.append(_run_styles(rows, questionnaire, keys))

    return pd.concat(tables, ignore_index=True)


def decisiveness(shares: pd.DataFrame) -> pd.Series:
    r"""Return the distance of each respondent's PSS from uniform shares, regardless of direction.

    .. math:: D = 100 \sqrt{\overline{(L \cdot \mathrm{PSS}(l_j | s_i) - 1)^2}}

    over the respondent's terms and their L intensifiers.

    Parameters
    ----------
    shares : DataFrame
        PSS per prompt, as :func:`psychometrics.measures.normalisation.pss` returns it.

    Returns
    -------
    Series
        Root mean square deviation from the uniform share, in per cent of that share, by respondent.
        Gaps are left out, and the value is missing for a respondent without answers.

    Examples
    --------
    >>> from psychometrics import load_questionnaire, prompts
    >>> table = prompts(load_questionnaire("challenges"))
    >>> answers = pd.concat(
    ...     [table.assign(respondent_id=r, entailment=0.5 + s * table["polarity"] * table["weight"])
    ...      for r, s in (("a", 0.1), ("b", 0.05))])
    >>> decisiveness(pss(answers)).round().tolist()
    [57.0, 29.0]
    """
    keys = ["respondent_id", "questionnaire", "item_id", "template", "polarity", "term"]
    check_columns(shares, keys, ["pss"])
    even = 1 / shares.groupby(keys)["pss"].transform("size")
    squares = ((shares["pss"] - even) / even) ** 2
    return 100 * squares.groupby(shares["respondent_id"], sort=False).mean().pow(0.5)


def balanced_pairs(
    responses: pd.DataFrame,
    questionnaires: Sequence[Questionnaire],
    score: Literal["entailment", "contrast"] = "entailment",
    temperature: float = 1.0,
) -> pd.DataFrame:
    r"""Return each respondent's scores for agreeing and content from source and inverse terms.

    An item with both kinds of terms amounts to a pair of opposite statements. With the expected
    weights :math:`s` of source terms and :math:`i` of inverse terms, the latter reversed,

    .. math:: A = \tfrac12 \overline{(s - i)}, \qquad C = \tfrac12 \overline{(s + i)}

    are the weight given to both statements alike (agreeing), and the weight given to one statement
    against the other (content).

    Agreeing with everything raises the score from source terms and lowers the score from inverse
    terms, so that the two scores correlate negatively over respondents, **if** they are taken
    before the two-way normalisation. The normalisation divides by the sum over both kinds of terms,
    so that one kind gains what the other loses. Afterwards even independent noise correlates at
    +0.90, so a high correlation is not evidence.

    Parameters
    ----------
    responses : DataFrame
        Answers to prompts, as :func:`psychometrics.asking.ask` returns them.
    questionnaires : sequence of Questionnaire or their names
    score, temperature
        As in :func:`psychometrics.measures.scoring.item_scores`.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire``; ``source, inverse``, the keyed scores from source terms
        and from reversed inverse terms, in units of the item scores; ``content``, their mean;
        ``agreeing``, half their difference before keying, positive if frequent words are preferred
        whatever the term.

    Raises
    ------
    ParameterError
        An answer is missing or occurs twice.

    References
    ----------
    Soto et al. (2008) for balanced keys.

    Examples
    --------
    >>> from psychometrics import load_questionnaire, prompts
    >>> table = prompts(load_questionnaire("challenges"))
    >>> yes = table.assign(respondent_id="a", entailment=0.5 + 0.1 * table["weight"])
    >>> balanced_pairs(yes, [load_questionnaire("challenges")]).round(3)[
    ...     ["content", "agreeing"]].to_numpy().tolist()
    [[0.0, 0.206]]
    """
    questionnaires = load_questionnaires(questionnaires)
    shares = pss(responses, score, temperature)
    sharp = shares["raw"].clip(lower=1e-12) ** (1 / temperature)
    terms = ["respondent_id", "questionnaire", "item_id", "template", "polarity", "term"]
    shares["pss"] = sharp / sharp.groupby([shares[k] for k in terms]).transform("sum")
    shares["score"] = shares["pss"] * shares["weight"] * shares["polarity"]
    keys = ["respondent_id", "questionnaire", "item_id"]
    tables = []
    for questionnaire in questionnaires:
        of_questionnaire = _answers_to(questionnaire, shares)
        means = of_questionnaire.groupby([*keys, "polarity"])["score"].mean().unstack("polarity")
        means = means.reindex(columns=[1, -1]).reset_index()
        source = keyed_items(means.rename(columns={1: "score"}), questionnaire)
        inverse = keyed_items(means.rename(columns={-1: "score"}), questionnaire)
        key = pd.Series(questionnaire.keys())
        table = pd.DataFrame({"source": source.mean(axis=1), "inverse": inverse.mean(axis=1)})
        table["content"] = table.mean(axis=1, skipna=False)
        table["agreeing"] = ((source - inverse) * key).mean(axis=1) / 2
        table.insert(0, "questionnaire", questionnaire.id)
        tables.append(table.rename_axis("respondent_id").reset_index())

    return pd.concat(tables, ignore_index=True)


def empty_answers(
    questionnaire: str | Questionnaire,
    kind: str = "random",
    respondents: int = 1,
    runs: int = 10,
    seed: int = 0,
) -> pd.DataFrame:
    r"""Simulate answers of respondents who do not read the items.

    A respondent's habit is a preference for options, drawn from a uniform Dirichlet distribution.
    The expected alpha of I items with the same key and K options is

    .. math:: \alpha = \frac{I}{I + K}

    Parameters
    ----------
    questionnaire : str or Questionnaire
    kind : {"random", "middle", "agree", "habit"}
        How to answer: with all options equally likely; always with the middle option (the lower of
        two); always with the last option; or with each respondent's own probabilities, the same for
        all items.
    respondents, runs : int
        Number of respondents, and number of runs per respondent.
    seed : int

    Returns
    -------
    DataFrame
        Answers to items as :func:`psychometrics.asking.ask` returns them, in mode ``empty``.

    Raises
    ------
    ParameterError
        The kind is unknown, or a number is out of range.

    Examples
    --------
    >>> answers = empty_answers("ipip20", "middle", runs=2)
    >>> len(answers), answers["value"].unique().tolist()
    (40, [3.0])
    """
    check_choice(("random", "middle", "agree", "habit"), kind=kind)
    check_numbers(respondents=respondents, runs=runs, seed=seed)
    questionnaire = load_questionnaire(questionnaire, texts=False)
    check_numbers(answers=respondents * runs * len(questionnaire.items))
    rng = np.random.default_rng(seed)
    habits: dict[int, np.ndarray] = {}
    shape = (respondents, runs)
    columns = []
    for item in questionnaire.items:
        values = np.array([option.value for option in questionnaire.choices(item)], dtype=float)
        count = len(values)
        if kind == "random":
            chosen = rng.integers(0, count, shape)
        elif kind == "habit":
            if count not in habits:
                habits[count] = rng.dirichlet(np.ones(count), respondents).cumsum(axis=1)

            chosen = (rng.random(shape)[..., None] > habits[count][:, None, :-1]).sum(axis=-1)
        else:
            chosen = np.full(shape, count - 1 if kind == "agree" else (count - 1) // 2)

        columns.append(values[chosen])

    respondent, run = np.indices(shape)
    names = [f"{kind}-{n + 1}" for n in respondent.ravel()]
    frame = pd.DataFrame({"respondent_id": names * len(columns), "mode": "empty", "status": "ok"})
    frame["run"] = np.tile(run.ravel() + 1, len(columns))
    frame["item_id"] = np.repeat([item.id for item in questionnaire.items], respondent.size)

    return tidy(frame.assign(value=np.ravel(columns)), questionnaire)


def _run_styles(
    answers: pd.DataFrame, questionnaire: Questionnaire, keys: list[str]
) -> pd.DataFrame:
    items = {
        item.id: (*questionnaire.ends(item), len(questionnaire.choices(item)))
        for item in questionnaire.items
    }
    low, high, count = np.array([items[item] for item in answers["item_id"]]).T
    value = answers["value"].where(answers["status"] == "ok").astype("float64")
    scaled = 2 * (value - low) / (high - low) - 1
    has_middle = (count > 2) & (count % 2 == 1) & value.notna()
    has_ends = (count > 2) & value.notna()
    frame = answers[keys].assign(
        agreeing=scaled,
        extreme=(scaled.abs() == 1).astype(float).where(has_ends),
        middle=(scaled == 0).astype(float).where(has_middle),
        answered=value.notna().astype(float),
    )
    grouped = frame.groupby(keys, sort=False)
    table = grouped.mean()
    table["commonest"] = value.groupby([answers[k] for k in keys], sort=False).agg(
        lambda x: x.value_counts(normalize=True).iloc[0] if x.notna().any() else np.nan
    )
    wide = answers[keys].assign(item_id=answers["item_id"], a=scaled)
    wide = wide.pivot(index=keys, columns="item_id", values="a").reindex(columns=list(items))
    balanced = []
    for scale in questionnaire.scales:
        reverse = list(scale.reverse)
        plain = [item for item in scale.items if item not in scale.reverse]
        if reverse and plain:
            is_complete = wide[[*plain, *reverse]].notna().all(axis=1)
            mean = (wide[plain].mean(axis=1) + wide[reverse].mean(axis=1)) / 2
            balanced.append(mean.where(is_complete))

    table["acquiescence"] = pd.concat(balanced, axis=1).mean(axis=1) if balanced else np.nan
    columns = ["agreeing", "acquiescence", "extreme", "middle", "commonest", "answered"]
    return table[columns].reset_index()
