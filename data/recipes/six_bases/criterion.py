"""A criterion that a respondent meets only if it reads the premise.

The plan is ``data/plans/six-bases.yml``. Three statistics compare changes of wording that must
reverse an answer with changes that must leave it alone. Reversing the weights of an untrained
linear head reverses all three signs, so their mean over such heads is zero on every base, whatever
its vectors are.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from psychometrics.paths import data_dir
from psychometrics.questionnaires import load_questionnaire
from psychometrics.questionnaires.prompts import prompts

SENTENCES = "plans/six-bases-sentences.csv"
_ENDS = ("never", "always")


def criterion_prompts() -> pd.DataFrame:
    """Return the prompts: ``part, case, version, end, premise, hypothesis``.

    Examples
    --------
    >>> table = criterion_prompts()
    >>> table.groupby("part", sort=False).size().to_dict()
    {'negation': 84, 'relevance': 112, 'sentences': 48}
    """
    parts = {"negation": _negated(), "relevance": _irrelevant(), "sentences": _sentences()}
    return pd.concat(parts, names=["part"]).reset_index("part").reset_index(drop=True)


def criterion(entailment: np.ndarray) -> pd.DataFrame:
    """Return the three statistics and their mean, for each respondent, from -1 to 1.

    Parameters
    ----------
    entailment : ndarray, shape (respondents, prompts)
        Probabilities of entailment of :func:`criterion_prompts`.

    Returns
    -------
    DataFrame
        ``negation, relevance, sentences, criterion``.

    Examples
    --------
    >>> criterion(np.full((1, 244), 0.5))["sentences"].tolist()
    [0.0]
    """
    table = criterion_prompts()
    logs = pd.DataFrame(np.log(np.maximum(entailment, 1e-12)).T)
    keys = [table["part"], table["case"], table["version"], table["end"]]
    by_prompt = logs.groupby(keys, sort=False).mean()
    leaning = by_prompt.xs("always", level="end") - by_prompt.xs("never", level="end")
    statistics = pd.DataFrame(
        {
            "negation": _turned(leaning.loc["negation"], "true", "not true", "plain", "true"),
            "relevance": _turned(leaning.loc["relevance"], "always", "never", "bus +", "bus -"),
            "sentences": _agreeing(leaning.loc["sentences"]),
        }
    )

    return statistics.assign(criterion=statistics.mean(axis=1))


def _turned(leaning: pd.DataFrame, first: str, second: str, one: str, other: str) -> pd.Series:
    """Compare a change that must reverse the answer with one that must leave it unchanged.

    The result is the mean change from `second` to `first` minus the mean size of the change from
    `one` to `other`, divided by the sum of the mean sizes of both.
    """
    version = {name: leaning.xs(name, level="version") for name in (first, second, one, other)}
    change = version[first] - version[second]
    idle = (version[one] - version[other]).abs().mean()
    signed = change.mean()
    whole = change.abs().mean() + idle
    return ((signed.abs() - idle).clip(lower=0) * np.sign(signed) / whole).fillna(0.0)


def _agreeing(leaning: pd.DataFrame) -> pd.Series:
    """Return how often a premise goes with its own hypothesis, minus how often with the other."""
    right = leaning.xs("second", level="version") - leaning.xs("first", level="version")
    return np.sign(right).mean()


def _one_a_stance(name: str) -> pd.DataFrame:
    """Return an item's first source and first inverse term, with the two ends of frequency."""
    table = prompts(load_questionnaire(name))
    table = table[(table["template"] == 1) & table["intensifier"].isin(_ENDS)]
    kept = ["item_id", "polarity", "intensifier"]
    table = table.drop_duplicates(kept)
    case = table["item_id"] + table["polarity"].astype(str)
    return table.assign(case=case).rename(columns={"intensifier": "end"})


def _versions(table: pd.DataFrame, premises: dict[str, pd.Series]) -> pd.DataFrame:
    parts = [table.assign(version=name, premise=text) for name, text in premises.items()]
    return pd.concat(parts)[["case", "version", "end", "premise", "hypothesis"]]


def _negated() -> pd.DataFrame:
    """Return the GAD-7's statements, affirmed and denied."""
    table = _one_a_stance("gad7")
    plain = table["premise"]
    within = plain.where(plain.str.startswith("I "), plain.str[:1].str.lower() + plain.str[1:])
    return _versions(
        table,
        {
            "plain": plain,
            "true": "It is true that " + within,
            "not true": "It is not true that " + within,
        },
    )


def _irrelevant() -> pd.DataFrame:
    """Return statements about the weather with their own frequency, or after a bus's frequency."""
    table = _one_a_stance("placebo_weather")
    plain = table["premise"]
    return _versions(
        table,
        {
            "always": plain.str.replace(r" (is|are) ", r" \1 always ", n=1, regex=True),
            "never": plain.str.replace(r" (is|are) ", r" \1 never ", n=1, regex=True),
            "bus +": "The bus is always late. " + plain,
            "bus -": "The bus is never late. " + plain,
        },
    )


def _sentences() -> pd.DataFrame:
    """Return sentences from outside the questionnaires, each with its pair's two hypotheses."""
    table = pd.read_csv(data_dir() / SENTENCES)
    rows = []
    for number, row in enumerate(table.itertuples(index=False)):
        for version, premise in zip(("first", "second"), row[:2], strict=True):
            for end, hypothesis in zip(_ENDS, row[2:], strict=True):
                rows.append((f"pair {number + 1}", version, end, premise, hypothesis))

    return pd.DataFrame(rows, columns=["case", "version", "end", "premise", "hypothesis"])
