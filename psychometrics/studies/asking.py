"""What comparing ways of asking needs: several ways in one table, and a model without a self."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from ..asking.answers import check_columns, check_numbers, tidy
from ..asking.ask import ask
from ..asking.population import population_table
from ..exceptions import ParameterError, QuestionnaireError
from ..measures.scoring import category_scores, scale_scores
from ..models.loading import quietly
from ..models.sources import base_path
from ..modes.messages import PERSONAS, messages
from ..questionnaires import Option, Questionnaire, load_questionnaire
from .psychobench import published_tables


def recovery(scores: pd.DataFrame, traits: pd.DataFrame) -> pd.DataFrame:
    """How well scores give back the traits of simulated respondents.

    Parameters
    ----------
    scores : DataFrame
        Of :func:`psychometrics.measures.scoring.scale_scores`; several runs are averaged.
    traits : DataFrame, shape (respondents, scales)
        As from :func:`psychometrics.modes.simulated.draw_traits`.

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
    >>> from psychometrics.modes.simulated import draw_traits
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
        By the way's name, conditions of :mod:`psychometrics.modes.options`.
    choose : {"argmax", "draw", "expected"}

    Returns
    -------
    DataFrame
        As from :func:`psychometrics.asking.ask` in mode ``options``, with a column ``way``.
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
        As from :func:`psychometrics.measures.scoring.scale_scores`, with a column ``role``.
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


def agreement_null(
    answers: pd.DataFrame, by: str = "way", n_resamples: int = 1000, seed: int = 0
) -> pd.DataFrame:
    """Mean kappa of every two ways of asking, beside what it is when items are mixed up.

    Parameters
    ----------
    answers : DataFrame
        ``respondent_id, item_id, value, status`` and ``by``, one run.
    by : str
        The column that tells the ways apart.
    n_resamples, seed : int
        How often one way's answers are dealt to the items at random, within each respondent.

    Returns
    -------
    DataFrame
        ``first, second, n`` (respondents), ``kappa`` (quadratic weights, mean over respondents)
        with its 95 % interval by t over respondents ``low, high``, ``null_low, null_high`` (the
        middle 95 % of the mean kappa of mixed items) and ``p``, two-sided. Respondents whose kappa
        is not defined (one way always answers alike) are left out; the interval is missing with
        one respondent, all is with none.

    Raises
    ------
    ParameterError
        A column is missing, or an item was answered twice in one way.

    References
    ----------
    Cohen (1968) for kappa; as in :func:`psychometrics.measures.reliability.answer_agreement`.
    """
    check_columns(answers, ["respondent_id", "item_id", "status", by], ["value"])
    check_numbers(n_resamples=n_resamples, seed=seed)
    given = answers[answers["status"] == "ok"]
    if given.duplicated(["respondent_id", "item_id", by]).any():
        raise ParameterError(f"An item was answered twice in the same {by}: keep one run.")
    rng = np.random.default_rng(seed)
    rows = []
    for first, second in combinations(sorted(given[by].unique()), 2):
        kappas, nulls = [], []
        for _, part in given[given[by].isin([first, second])].groupby("respondent_id"):
            grid = part.pivot(index="item_id", columns=by, values="value")
            both = grid.reindex(columns=[first, second]).dropna().to_numpy()
            expected = ((both[:, :1] - both[:, 1]) ** 2).mean() if len(both) else 0.0
            if np.ptp(both, axis=0).min(initial=np.inf) == 0 or expected == 0:
                continue
            mixed = rng.permuted(np.tile(both[:, 1], (n_resamples, 1)), axis=1)
            kappas.append(1 - ((both[:, 0] - both[:, 1]) ** 2).mean() / expected)
            nulls.append(1 - ((both[:, 0] - mixed) ** 2).mean(axis=1) / expected)
        row = {"first": first, "second": second, "n": len(kappas)}
        row |= dict.fromkeys(("kappa", "low", "high", "null_low", "null_high", "p"), np.nan)
        if kappas:
            null = np.mean(nulls, axis=0)
            row["kappa"] = np.mean(kappas)
            if len(kappas) > 1:
                row["low"], row["high"] = _student(kappas)
            row["null_low"], row["null_high"] = np.quantile(null, [0.025, 0.975])
            beyond = (np.abs(null) >= abs(row["kappa"]) - 1e-12).sum()
            row["p"] = (1 + beyond) / (1 + n_resamples)
        rows.append(row)
    return pd.DataFrame(rows)


def _student(values: Sequence[float]) -> tuple[float, float]:
    from scipy.stats import t

    half = t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return np.mean(values) - half, np.mean(values) + half


def exchange_null(
    scores: Mapping[str, pd.DataFrame],
    traits: pd.DataFrame,
    n_resamples: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Whether the ways of asking the same respondents differ by more than chance.

    If the way made no difference, a respondent's scores could be exchanged among the ways. So they
    are, at random, and the largest correlation of score and trait less the smallest is held
    against what it is then.

    Parameters
    ----------
    scores : mapping of str to DataFrame
        By the way's name, as :func:`psychometrics.measures.scoring.scale_scores` gives them;
        several runs
        are averaged.
    traits : DataFrame, shape (respondents, scales)
    n_resamples, seed : int
        Of the exchanges.

    Returns
    -------
    DataFrame
        ``scale, title, n`` (respondents with a score in every way), ``lowest, highest`` (r),
        ``range, null`` (median of the exchanges), ``null_high`` (their 97.5 % point) and ``p``.

    Raises
    ------
    ParameterError
        There are fewer than two ways, or fewer than four respondents with all scores of a scale.
    """
    check_numbers(n_resamples=n_resamples, seed=seed)
    if len(scores) < 2:
        raise ParameterError("Two ways of asking are the least that can be compared.")
    frame = pd.concat(dict(scores), names=["way"]).reset_index("way")
    rng = np.random.default_rng(seed)
    rows = []
    for (scale, title), part in frame.groupby(["scale", "title"], sort=False):
        if scale not in traits.columns:
            continue
        wide = part.pivot_table(index="respondent_id", columns="way", values="score").dropna()
        wide = wide.join(traits[[scale]].set_axis(["trait"], axis=1), how="inner").dropna()
        if len(wide) < 4:
            raise ParameterError(f"Scale {scale} has {len(wide)} respondents: 4 are the least.")
        trait = wide.pop("trait").to_numpy()
        own = wide.to_numpy()
        order = rng.random((n_resamples, *own.shape)).argsort(axis=2)
        exchanged = np.take_along_axis(np.broadcast_to(own, order.shape), order, axis=2)
        r, null = _correlations(own, trait), _correlations(exchanged, trait)
        spans = np.ptp(null, axis=-1)
        rows.append(
            {"scale": scale, "title": title, "n": len(wide), "lowest": r.min(),
             "highest": r.max(), "range": np.ptp(r), "null": np.median(spans),
             "null_high": np.quantile(spans, 0.975),
             "p": (1 + (spans >= np.ptp(r) - 1e-12).sum()) / (1 + n_resamples)}
        )  # fmt: skip
    return pd.DataFrame(rows)


def _correlations(scores: np.ndarray, trait: np.ndarray) -> np.ndarray:
    """Of (..., respondents, ways) with (respondents,): (..., ways); NaN where a way is constant."""
    centred = scores - scores.mean(axis=-2, keepdims=True)
    z = trait - trait.mean()
    size = np.sqrt((centred**2).sum(axis=-2) * (z**2).sum())
    size = np.where(size > 1e-12, size, np.nan)
    return np.einsum("...rw,r->...w", centred, z) / size


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


FORMATS = {
    "digits": {"permutations": "given"},
    "letters": {"permutations": "given", "labels": "alphabetical"},
    "option texts": {"permutations": "given", "score": "text_mean"},
    "yes or no": {"permutations": "given"},
    "own voice": {"wording": "voice"},
}
"""Ways of asking a language model for options: conditions of mode ``options``, in the order given,
as a liking for a place is taken away with the empty item."""
EMPTY = "I am a person."
"""A statement that says nothing of a trait: the empty item."""


def shuffled_words(questionnaire: Questionnaire, seed: int = 0) -> Questionnaire:
    """A questionnaire whose items have their words in random order: what is left without grammar.

    Parameters
    ----------
    questionnaire : Questionnaire
    seed : int

    Examples
    --------
    >>> mini = load_questionnaire("ipip20")
    >>> len(shuffled_words(mini).items[0].text.split()) == len(mini.items[0].text.split())
    True
    """
    rng = np.random.default_rng(seed)
    items = []
    for item in questionnaire.items:
        words = item.text.rstrip(".").split()
        text = " ".join(words[i] for i in rng.permutation(len(words)))
        items.append(item.model_copy(update={"text": text}))
    return questionnaire.model_copy(
        update={"id": f"{questionnaire.id}_shuffled", "items": tuple(items)}
    )


def yes_or_no(questionnaire: Questionnaire) -> Questionnaire:
    """A questionnaire with *no* and *yes* for its options, at the ends of its own scale.

    Examples
    --------
    >>> [(o.value, o.label) for o in yes_or_no(load_questionnaire("ipip20")).options]
    [(1.0, 'no'), (5.0, 'yes')]
    """
    values = [option.value for option in questionnaire.choices(questionnaire.items[0])]
    ends = Option(value=min(values), label="no"), Option(value=max(values), label="yes")
    instructions = (
        "Describe yourself as you generally are now. Does each statement describe you? Answer yes "
        "or no."
    )
    changes = {"id": f"{questionnaire.id}_yes_no", "options": ends, "instructions": instructions}
    return questionnaire.model_copy(update=changes)


def formats(
    questionnaire: Questionnaire,
    respondent: str | Path,
    store: str | Path | None = None,
    ways: Mapping[str, dict] = FORMATS,
    seed: int = 0,
    **options: object,
) -> pd.DataFrame:
    """Expected answers of a language model, item by item, in several formats and with their nulls.

    Parameters
    ----------
    questionnaire : Questionnaire
        With reverse-keyed items, and options in common.
    respondent : str or Path
        A causal language model.
    store : str or Path, optional
        Folder or URL of the response store.
    ways : mapping of str to dict
        Conditions of mode ``options`` by the format's name.
    seed : int
        Of the words' order in the items without grammar.
    **options
        Of :func:`psychometrics.asking.ask.ask`, such as ``dtype``.

    Returns
    -------
    DataFrame
        ``respondent_id, format, baseline`` (*none*, or *empty item*, whose log-probabilities are
        subtracted), ``items`` (*as written*, or *words shuffled*), ``item_id, reverse, value``
        (expected answer, in the options' values).

    Raises
    ------
    RespondentError, StoreError
        As :func:`psychometrics.asking.ask.ask`.
    """
    parts = []
    for words in ("as written", "words shuffled"):
        written = questionnaire if words == "as written" else shuffled_words(questionnaire, seed)
        for name, how in ways.items():
            asked = yes_or_no(written) if name == "yes or no" else written
            for baseline in (EMPTY, None):  # what the second asks for is kept by then
                answers = ask(
                    asked, [respondent], store, "options", choose="expected", baseline=baseline,
                    progress=False, **{**options, **how},
                )  # fmt: skip
                kept = answers[["respondent_id", "item_id", "value"]]
                kept = kept.assign(format=name, baseline="empty item" if baseline else "none")
                parts.append(kept.assign(items=words))
    table = pd.concat(parts, ignore_index=True)
    reverse = {item for scale in questionnaire.scales for item in scale.reverse}
    table["reverse"] = table["item_id"].isin(reverse)
    columns = ["respondent_id", "format", "baseline", "items", "item_id", "reverse", "value"]
    return table[columns]


def reading(
    answers: pd.DataFrame, by: Sequence[str] = ("format", "baseline", "items"), seed: int = 0
) -> pd.DataFrame:
    """Whether plain-keyed and reverse-keyed items are answered differently: do items get read?

    A respondent that does not read its items answers both kinds alike. Most inventories write
    more of what is desirable into plain-keyed items, so that one who reads them, and describes
    itself well, answers them higher.

    Parameters
    ----------
    answers : DataFrame
        Of :func:`formats`; one respondent.
    by : sequence of str
        What tells ways of asking apart.
    seed : int
        Of the null's draws.

    Returns
    -------
    DataFrame
        ``by``, ``n`` (items), ``plain, reverse`` (mean answers), ``difference`` with its 95 %
        Welch interval over items ``low, high``, and of 10,000 draws in which the keys are dealt
        to the items at random the middle 95 % ``null_low, null_high`` and ``p``, two-sided.
        Missing with fewer than two items of a kind.

    References
    ----------
    Welch (1947) for the interval.

    Examples
    --------
    >>> given = pd.DataFrame({"reverse": [False, False, True, True], "value": [4, 5, 1, 2.0]})
    >>> reading(given, by=[])["difference"].tolist()
    [3.0]
    """
    from scipy.stats import permutation_test, ttest_ind

    check_columns(answers, [*by, "reverse"], ["value"])
    rows = []
    groups = answers.groupby(list(by), sort=False) if by else [((), answers)]
    for names, part in groups:
        part = part.dropna(subset=["value"])
        plain, other = (part.loc[part["reverse"] == key, "value"] for key in (False, True))
        row = dict(zip(by, names, strict=True)) | {"n": len(part)}
        row |= {"plain": plain.mean(), "reverse": other.mean()}
        row |= {"difference": row["plain"] - row["reverse"]}
        row |= dict.fromkeys(("low", "high", "null_low", "null_high", "p"), np.nan)
        if min(len(plain), len(other)) > 1 and part["value"].nunique() > 1:
            test = ttest_ind(plain, other, equal_var=False)
            row["low"], row["high"] = test.confidence_interval()
            dealt = permutation_test(
                (plain, other), lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis),
                vectorized=True, n_resamples=9999, rng=np.random.default_rng(seed),
            )  # fmt: skip
            row["null_low"], row["null_high"] = np.quantile(dealt.null_distribution, [0.025, 0.975])
            row["p"] = dealt.pvalue
        rows.append(row)
    return pd.DataFrame(rows)


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


LIBRARY_FILES = {
    "example": {
        "categories": ["Cat A", "Cat B", "Cat C"],
        "data": {
            "id_0": {
                "question": "Choose one answer from the following.",
                "choices": [f"Answer {i} (Cat {c})" for i, c in enumerate("ABCA", start=1)],
                "scores": [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]],
            }
        },
    },
    "likert": {
        "categories": ["order"],
        "choice_descs": ["Strongly disagree", "Disagree", "Agree", "Strongly agree"],
        "data": {"id_0": {"question": "I keep lists.", "scores": [[-2], [-1], [1], [2]]}},
    },
    "true-false": {"data": {"id_0": {"question": "Two is even.", "answer": "True"}}},
}
"""Small questionnaires in the library's layout; the first is the one that its page shows."""


def library_findings(folder: str | Path) -> pd.DataFrame:
    """What the questionnaire library says of its files and scores, tried on small files.

    Parameters
    ----------
    folder : str or Path
        Where the files are written.

    Returns
    -------
    DataFrame
        Index: claims of ``data/claims/questionnaires.csv``; ``value``, a share of what was tried.

    References
    ----------
    The question_llm library's page.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> library_findings(mkdtemp())["value"].eq(1).all()
    np.True_
    """
    folder, loaded = Path(folder), {}
    for name, content in LIBRARY_FILES.items():
        path = folder / f"{name}.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        loaded[name] = load_questionnaire(path)
    added, numbered, shown = [], [], []
    for name, questionnaire in loaded.items():
        (item,) = questionnaire.items
        choices = questionnaire.choices(item)
        prompt = messages(questionnaire, [item])[-1]["content"]
        shown += [questionnaire.statement(item) in prompt]
        shown += [choice.label in prompt for choice in choices]
        numbered += [f"{i} = {choice.label}" in prompt for i, choice in enumerate(choices, 1)]
        stated = LIBRARY_FILES[name]["data"]["id_0"].get("scores", [[1, 0], [0, 1]])
        for choice, scores in zip(choices, stated, strict=True):
            row = {"respondent_id": "reader", "mode": "human", "run": 1, "item_id": item.id,
                   "value": choice.value, "status": "ok"}  # fmt: skip
            found = category_scores(tidy([row], questionnaire), questionnaire)["score"]
            added.append(found.tolist() == scores)
        rows = pd.DataFrame({"respondent_id": "m", "questionnaire": questionnaire.id,
                             "mode": "options", "item_id": item.id,
                             "value": [choice.value for choice in choices],
                             "probability": 1 / len(choices)})  # fmt: skip
        means = category_scores(rows, questionnaire)["score"].to_numpy()
        added.append(bool(np.allclose(means, np.mean(stated, axis=0))))
    example = LIBRARY_FILES["example"]
    faulty = [
        {"categories": example["categories"]},
        {"data": example["data"]},
        example | {"categories": ["Cat A"]},
        example | {"data": {"id_0": {"question": "Choose.", "choices": ["one", "two"]}}},
    ]
    refused = []
    for content in faulty:
        path = folder / "faulty.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        try:
            load_questionnaire(path)
            refused.append(False)
        except QuestionnaireError:
            refused.append(True)
    values = {
        "ql-files": float(len(loaded) == len(LIBRARY_FILES)),
        "ql-likert-numbers": np.mean(numbered),
        "ql-prompts": np.mean(shown),
        "ql-evaluate": np.mean(added),
        "ql-strict": np.mean(refused),
    }
    return pd.Series(values, name="value").rename_axis("claim_id").to_frame()
