"""What comparing ways of asking needs: several ways in one table, and a model without a self."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ..ask import ask
from ..exceptions import ParameterError
from ..messages import PERSONAS
from ..population import population_table
from ..questionnaires import Questionnaire
from ..respondents.loading import quietly
from ..respondents.sources import base_path
from ..scoring import scale_scores
from .psychobench import published_tables


def recovery(scores: pd.DataFrame, traits: pd.DataFrame) -> pd.DataFrame:
    """How well scores give back the traits of simulated respondents.

    Parameters
    ----------
    scores : DataFrame
        Of :func:`psychometrics.scoring.scale_scores`; several runs are averaged.
    traits : DataFrame, shape (respondents, scales)
        As from :func:`psychometrics.respondents.simulated.draw_traits`.

    Returns
    -------
    DataFrame
        ``scale, title, n, r`` (Pearson, score with trait) and its 95 % Fisher interval ``low,
        high``.

    Raises
    ------
    ParameterError
        Fewer than four respondents have both.

    Examples
    --------
    >>> from psychometrics import load_questionnaire, scale_scores
    >>> from psychometrics.respondents.simulated import draw_traits
    >>> mini = load_questionnaire("ipip20")
    >>> traits = draw_traits(mini, 400, seed=1)
    >>> answers = ask(mini, traits, mode="simulated", progress=False)
    >>> table = recovery(scale_scores(answers, mini), traits)
    >>> (table["r"] > 0.7).all()
    np.True_
    """
    from scipy.stats import norm

    rows = []
    for (scale, title), part in scores.groupby(["scale", "title"], sort=False):
        if scale not in traits.columns:
            continue
        score = part.groupby("respondent_id")["score"].mean().dropna()
        both = pd.concat([score, traits[scale]], axis=1, join="inner").dropna()
        if len(both) < 4:
            raise ParameterError(f"Scale {scale} has {len(both)} respondents: 4 are the least.")
        r = both.corr().iloc[0, 1]
        half = norm.ppf(0.975) / np.sqrt(len(both) - 3)
        low, high = np.tanh(np.arctanh(r) + np.array([-half, half]))
        rows.append((scale, title, len(both), r, low, high))
    return pd.DataFrame(rows, columns=["scale", "title", "n", "r", "low", "high"])


def ceiling(answers: pd.DataFrame, questionnaire: Questionnaire) -> pd.DataFrame:
    """Cronbach's alpha of each scale, and its root: what a correlation with the trait comes to.

    Where items differ only by chance, a score's correlation with the trait is the root of its
    reliability.

    Parameters
    ----------
    answers : DataFrame
        One run, ``respondent_id, item_id, value, status``.
    questionnaire : Questionnaire

    Returns
    -------
    DataFrame
        ``scale, alpha, ceiling``.
    """
    import pingouin

    given = answers[answers["status"] == "ok"]
    wide = given.pivot(index="respondent_id", columns="item_id", values="value")
    rows = []
    for scale in questionnaire.scales:
        items = wide[list(scale.items)].dropna().copy()
        for name in scale.reverse:
            values = [option.value for option in questionnaire.choices(name)]
            items[name] = min(values) + max(values) - items[name]
        alpha = float(pingouin.cronbach_alpha(items)[0])
        rows.append((scale.id, alpha, np.sqrt(max(alpha, 0.0))))
    return pd.DataFrame(rows, columns=["scale", "alpha", "ceiling"])


def nli_ways(
    questionnaire: Questionnaire,
    respondents: Sequence,
    ways: Mapping[str, Mapping[str, object]],
    choose: str = "argmax",
) -> pd.DataFrame:
    """Answers of the same NLI respondents, asked in several ways.

    Parameters
    ----------
    questionnaire : Questionnaire
    respondents : sequence
        Names or loaded respondents.
    ways : mapping of str to mapping
        By the way's name, conditions of :mod:`psychometrics.respondents.options`.
    choose : {"argmax", "draw", "expected"}

    Returns
    -------
    DataFrame
        As from :func:`psychometrics.ask` in mode ``options``, with a column ``way``.
    """
    parts = [
        ask(
            questionnaire, respondents, mode="options", progress=False, choose=choose, **how
        ).assign(way=name)
        for name, how in ways.items()
    ]
    return pd.concat(parts, ignore_index=True)


def persona_scores(
    questionnaire: Questionnaire, respondents: Sequence, personas: Mapping[str, str] = PERSONAS
) -> pd.DataFrame:
    """Scale scores that NLI respondents expect of personas.

    Parameters
    ----------
    questionnaire : Questionnaire
        With scales.
    respondents : sequence
        Names or loaded respondents.
    personas : mapping of str to str
        Sentences in the first person, by the role's name.

    Returns
    -------
    DataFrame
        As from :func:`psychometrics.scoring.scale_scores`, with a column ``role``.
    """
    ways = {name: {"persona": text} for name, text in personas.items()}
    answers = nli_ways(questionnaire, respondents, ways, choose="expected")
    return scale_scores(answers.assign(role=answers["way"]), questionnaire, by=["role"])


def role_shifts(scores: pd.DataFrame) -> pd.DataFrame:
    """How far each role moves each scale from the default role, over respondents.

    Parameters
    ----------
    scores : DataFrame
        Of :func:`persona_scores`.

    Returns
    -------
    DataFrame
        ``role, scale, title, shift`` (mean over respondents) and its Student interval ``low,
        high``, missing with one respondent.

    Raises
    ------
    ParameterError
        There is no role "default".
    """
    from scipy.stats import t

    if "default" not in set(scores["role"]):
        raise ParameterError("There is no role 'default' in the scores.")
    titles = scores.drop_duplicates("scale").set_index("scale")["title"]
    wide = scores.pivot_table(
        index="respondent_id", columns=["role", "scale"], values="score", sort=False
    )
    rows = []
    for role in scores["role"].unique():
        if role == "default":
            continue
        for scale in titles.index:
            shift = wide[role, scale] - wide["default", scale]
            n = len(shift)
            half = t.ppf(0.975, n - 1) * shift.std() / np.sqrt(n) if n > 1 else np.nan
            mean = shift.mean()
            rows.append((role, scale, titles[scale], mean, mean - half, mean + half))
    return pd.DataFrame(rows, columns=["role", "scale", "title", "shift", "low", "high"])


def published_role_shifts(openness: str = "intellect") -> pd.DataFrame:
    """The paper's shifts of the Big Five by role, in points of the five-point scale.

    Parameters
    ----------
    openness : str
        What to call openness, which is intellect in the IPIP questionnaires.

    Returns
    -------
    DataFrame
        ``role, scale, shift``.

    References
    ----------
    Huang et al. (2024), Table 8: gpt-3.5-turbo, ten runs for each role.
    """
    table = published_tables().query("study == 'roles' and questionnaire == 'bfi'")
    table = table.assign(scale=table["scale"].replace({"openness": openness}))
    wide = table.pivot(index="scale", columns="respondent_id", values="mean")
    shifts = wide.sub(wide["default"], axis=0).drop(columns="default")
    long = shifts.rename_axis(columns="role").stack().rename("shift").reset_index()
    return long[["role", "scale", "shift"]]


def null_model(folder: str | Path, seed: int = 0) -> Path:
    """Save a small causal language model with random weights: a respondent without a self.

    Whatever it prefers, it prefers for reasons that have nothing to do with what is asked.

    Parameters
    ----------
    folder : str or Path
        Where; what is there already is used again.
    seed : int
        Of the weights.

    Returns
    -------
    Path
        The folder, ``null-<seed>`` in the given one.
    """
    import torch
    from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel

    target = Path(folder) / f"null-{seed}"
    if (target / "model.safetensors").is_file():
        return target
    with quietly():
        tokenizer = AutoTokenizer.from_pretrained(base_path())
        config = GPT2Config(
            vocab_size=len(tokenizer),
            n_positions=1024,
            n_embd=64,
            n_layer=2,
            n_head=4,
            initializer_range=0.2,
            bos_token_id=tokenizer.cls_token_id,
            eos_token_id=tokenizer.sep_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = GPT2LMHeadModel(config)
        model.save_pretrained(target)
        tokenizer.save_pretrained(target)
    return target


def best_members(names: Sequence[str], members: int) -> list[str]:
    """Of some respondents those with the best accuracy on held-out MNLI; unknown ones stay.

    Parameters
    ----------
    names : sequence of str
    members : int
        At most so many.

    Returns
    -------
    list of str
    """
    accuracy = population_table().set_index("respondent_id")["accuracy"]
    ranked = sorted(names, key=lambda name: -accuracy.get(name, 1.0))
    return ranked[:members]
