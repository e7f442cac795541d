"""PsychoBench where nothing is there: empty answers, dealt scales, and the claims beside them."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from ..asking.answers import check_columns, check_numbers, tidy
from ..asking.ask import ask
from ..exceptions import ParameterError
from ..measures.norms import PAPER_LEVEL, compare_means, compare_norms, norm_table
from ..measures.reliability import alpha
from ..measures.scoring import item_scores, keyed_items, scale_scores
from ..questionnaires import Questionnaire, load_questionnaire, psychobench_keys
from .psychobench import published_tables, significance_counts

KINDS = ("random", "middle", "agree", "habit")
MODELS = ("llama2-7b", "llama2-13b", "text-davinci-003", "gpt-3.5-turbo", "gpt-4")
"""The paper's five models; ``gpt-4-jb`` is the fifth, jailbroken."""
_LLAMA, _GPT, _JAILBREAK = MODELS[:2], MODELS[2:], "gpt-4-jb"
_DARK = ("narcissism", "machiavellianism", "psychopathy")
_WLEIS = ("sea", "oea", "uoe", "roe")
_FIVE = ("openness", "conscientiousness", "extraversion", "agreeableness", "neuroticism")


def empty_answers(
    questionnaire: str | Questionnaire,
    kind: str = "random",
    respondents: int = 1,
    runs: int = 10,
    seed: int = 0,
) -> pd.DataFrame:
    r"""Answers of respondents who do not read the items.

    Where each has a habit, a liking for options that is drawn evenly from all that there are, I
    items keyed one way have in expectation, with K options,

    .. math:: \alpha = \frac{I}{I + K}

    Parameters
    ----------
    questionnaire : str or Questionnaire
    kind : {"random", "middle", "agree", "habit"}
        Every option equally likely; always the middle one (the lower of two); always the last;
        each respondent by probabilities of their own, the same for all items.
    respondents, runs : int
        How many, and how often each is asked.
    seed : int

    Returns
    -------
    DataFrame
        As :func:`psychometrics.asking.ask` gives answers to items, ``mode`` being ``empty``.

    Raises
    ------
    ParameterError
        There is no such kind, or a number is impossible.

    Examples
    --------
    >>> answers = empty_answers("ipip20", "middle", runs=2)
    >>> len(answers), answers["value"].unique().tolist()
    (40, [3.0])
    """
    if kind not in KINDS:
        raise ParameterError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}.")
    check_numbers(respondents=respondents, runs=runs, seed=seed)
    if not isinstance(questionnaire, Questionnaire):
        questionnaire = load_questionnaire(questionnaire, texts=False)
    rng = np.random.default_rng(seed)
    habits: dict[int, np.ndarray] = {}
    shape = (respondents, runs)
    parts = []
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
        parts.append(values[chosen])
    who, run = np.indices(shape)
    frame = pd.DataFrame(
        {
            "respondent_id": [f"{kind}-{n + 1}" for n in np.tile(who.ravel(), len(parts))],
            "run": np.tile(run.ravel() + 1, len(parts)),
            "item_id": np.repeat([item.id for item in questionnaire.items], who.size),
            "value": np.concatenate([part.ravel() for part in parts]),
        }
    )
    return tidy(frame.assign(mode="empty", status="ok"), questionnaire)


def beside_empty(
    comparisons: pd.DataFrame,
    runs: int = 10,
    draws: int = 20,
    level: float = PAPER_LEVEL,
    correction: str = "holm",
    seed: int = 0,
) -> pd.DataFrame:
    """How many scales of a respondent differ from people, beside respondents who do not read.

    Parameters
    ----------
    comparisons : DataFrame
        Of one respondent, as :func:`psychometrics.measures.norms.compare_norms` gives them.
    runs, draws, level, correction, seed
        Of the empty respondents, who answer the questionnaires compared: how often each is asked,
        how many there are (one, where chance plays no part), tests as in
        :func:`psychometrics.measures.norms.compare_norms`.

    Returns
    -------
    DataFrame
        Indexed by what is counted; the respondent's column, and for each kind of empty answers the
        median over the draws, with ``least`` and ``most`` of the kinds that chance draws.

    Examples
    --------
    >>> from psychometrics.measures.norms import compare_norms
    >>> scores = pd.DataFrame({"respondent_id": "a", "questionnaire": "gse", "scale": "overall",
    ...                        "mean": [39.0], "sd": [0.5], "n": [10]})
    >>> beside_empty(compare_norms(scores), draws=2).loc["significant", ["a", "agree"]].tolist()
    [1.0, 1.0]
    """
    names = list(comparisons["questionnaire"].unique())
    own = significance_counts(comparisons.assign(settled=True), level, correction)
    table = {comparisons["respondent_id"].iloc[0]: own.drop("settled").astype(float)}
    for kind in KINDS:
        times = draws if kind in ("random", "habit") else 1
        found = _empty_comparisons(kind, names, runs, times, level, correction, seed)
        table[kind] = found.median()
        if times > 1:
            table |= {f"{kind}, least": found.min(), f"{kind}, most": found.max()}
    return pd.DataFrame(table)


def stand_in(trait: float = 0.5, runs: int = 10, seed: int = 0) -> pd.DataFrame:
    """Scores on the thirteen of a simulated respondent, where the questionnaires' wording is not
    at hand and no model can be asked.

    Parameters
    ----------
    trait : float
        Level of every trait, in standard deviations.
    runs, seed
        How often it is asked; of chance.

    Returns
    -------
    DataFrame
        As :func:`psychometrics.measures.scoring.scale_scores` gives them.

    Examples
    --------
    >>> stand_in(runs=2)["respondent_id"].unique().tolist()
    ['simulated (trait 0.5)']
    """
    who = pd.Index([f"simulated (trait {trait:g})"], name="respondent_id")
    known = [load_questionnaire(name, texts=False) for name in psychobench_keys()]
    answers = [
        ask(
            questionnaire,
            pd.DataFrame(trait, columns=[s.id for s in questionnaire.scales], index=who),
            mode="simulated",
            runs=runs,
            seed=seed,
            progress=False,
        )
        for questionnaire in known
    ]
    return scale_scores(pd.concat(answers), known)


def empty_consistency(
    questionnaires: Iterable[str] | None = None, respondents: int = 200, seed: int = 0
) -> pd.DataFrame:
    """Cronbach's alpha of scales answered by respondents who do not read the items.

    Parameters
    ----------
    questionnaires : iterable of str, optional
        By default the thirteen but CABIN.
    respondents, seed
        As in :func:`empty_answers`, each asked once.

    Returns
    -------
    DataFrame
        ``questionnaire, scale, items, reversed``; alpha with Feldt's interval of answers at random,
        ``random, random_low, random_high``, and of habits, ``habit, habit_low, habit_high``.

    References
    ----------
    Cronbach (1951); Feldt (1965).

    Examples
    --------
    >>> found = empty_consistency(["gse"]).iloc[0]
    >>> bool(found["random_high"] < 0.3 < 0.6 < found["habit_low"])
    True
    """
    names = list(questionnaires or (name for name in psychobench_keys() if name != "cabin"))
    rows = []
    for name in names:
        questionnaire = load_questionnaire(name, texts=False)
        scored = {
            kind: item_scores(empty_answers(questionnaire, kind, respondents, 1, seed))
            for kind in ("random", "habit")
        }
        for scale in questionnaire.scales:
            row = {"questionnaire": name, "scale": scale.id, "items": len(scale.items)}
            row["reversed"] = len(scale.reverse)
            for kind, items in scored.items():
                found = alpha(keyed_items(items, questionnaire, scale).reset_index(drop=True))
                row |= {kind: found["alpha"]}
                row |= {f"{kind}_low": found["low"], f"{kind}_high": found["high"]}
            rows.append(row)
    return pd.DataFrame(rows)


def dealt_generalisability(
    answers: pd.DataFrame,
    questionnaire: Questionnaire,
    facet: str = "wording",
    draws: int = 500,
    seed: int = 0,
) -> pd.Series:
    r"""Generalisability over a facet of scales to which the items are dealt at random.

    With mean squares of respondents and of the rest,

    .. math:: E\rho^2 = \frac{MS_R - MS_E}{MS_R}

    Parameters
    ----------
    answers : DataFrame
        Answers to items, every respondent in every cell of the facet once.
    questionnaire : Questionnaire
        Scales of equal size are dealt its items, each with the key that it has.
    facet : str
        What the mean is taken over.
    draws, seed
        Of the deals.

    Returns
    -------
    Series
        One coefficient a deal, the mean over its scales; 0 for a scale whose coefficient would be
        negative.

    Raises
    ------
    ParameterError
        A column is missing, or an answer is missing or there twice.

    References
    ----------
    Brennan (2001), chapter 2; deals by :func:`psychometrics.measures.structure.item_deals`.
    """
    needed = ["respondent_id", "questionnaire", "mode", "run", "item_id", facet]
    check_columns(answers, needed, ["value"])
    check_numbers(draws=draws, seed=seed)
    cells = []
    for _, part in answers.groupby(facet, sort=False):
        scores = part[["respondent_id", "questionnaire", "mode", "run", "item_id", "value"]]
        if scores.duplicated(["respondent_id", "item_id"]).any():
            raise ParameterError(f"A respondent has two answers to an item at one {facet}.")
        keyed = keyed_items(scores.rename(columns={"value": "score"}), questionnaire)
        cells.append(keyed.droplevel([n for n in keyed.index.names if n != "respondent_id"]))
    people = cells[0].index
    cube = np.stack([cell.reindex(people).to_numpy(float) for cell in cells], axis=1)
    if np.isnan(cube).any() or any(len(cell) != len(people) for cell in cells):
        raise ParameterError(f"Every respondent must have answered every item at each {facet}.")
    rng = np.random.default_rng(seed)
    number = len(questionnaire.scales)
    found = []
    for _ in range(draws):
        parts = np.array_split(rng.permutation(cube.shape[2]), number)
        found.append(np.nanmean([_relative(cube[:, :, part].mean(axis=2)) for part in parts]))
    return pd.Series(found, name="relative")


def claim_findings(draws: int = 100, seed: int = 0, level: float = PAPER_LEVEL) -> pd.DataFrame:
    """What the paper's own figures say of its claims, and what random answers would say.

    Parameters
    ----------
    draws : int
        Sets of tables in which every model and every role answers at random.
    seed : int
        Of these.
    level : float
        Of significance.

    Returns
    -------
    DataFrame
        Indexed by ``claim_id`` of ``data/claims/psychobench.csv``: ``value``, its 95 % interval
        ``low, high``, and ``null, null_low, null_high``, median and central 95 % over the sets of
        random tables. Differences are in standard deviations of people. The interval of a mean over
        models takes these as a sample; that of a difference of two respondents is of their runs.

    References
    ----------
    Huang et al. (2024), sections 3.2 and 4.1 and appendix B.3.

    Examples
    --------
    >>> found = claim_findings(draws=2)
    >>> bool(found.loc["psychobench-lying", "value"] > 1)
    True
    """
    check_numbers(draws=draws, seed=seed)
    own = pd.DataFrame(_all_claims(_Figures(published_tables()), level)).T
    own.columns = ["value", "low", "high"]
    rng = np.random.default_rng(seed)
    random = _random_tables()
    drawn = pd.DataFrame(
        {name: found[0] for name, found in _all_claims(_Figures(random(rng), False), level).items()}
        for _ in range(draws)
    )
    low, middle, high = drawn.quantile([0.025, 0.5, 0.975]).to_numpy()
    table = own.assign(null=middle, null_low=low, null_high=high)
    return table.rename_axis("claim_id")


def _empty_comparisons(
    kind: str, names: Sequence[str], runs: int, draws: int, level: float, correction: str, seed: int
) -> pd.DataFrame:
    """Counts of :func:`beside_empty` for respondents of one kind, a row each."""
    known = [load_questionnaire(name, texts=False) for name in names]
    answers = pd.concat([empty_answers(q, kind, draws, runs, seed) for q in known])
    against = compare_norms(
        scale_scores(answers, known), norm_table(names, paper=True), level, correction
    )
    return pd.DataFrame(
        significance_counts(part.assign(settled=True), level, correction).drop("settled")
        for _, part in against.groupby("respondent_id", sort=False)
    )


def _relative(scores: np.ndarray) -> float:
    people, cells = scores.shape
    grand = scores.mean()
    own, other = scores.mean(axis=1) - grand, scores.mean(axis=0) - grand
    rest = scores - grand - own[:, None] - other
    between = cells * (own**2).sum() / (people - 1)
    within = (rest**2).sum() / ((people - 1) * (cells - 1))
    return max(between - within, 0.0) / between if between > 1e-15 else np.nan


def _random_tables() -> Callable[[np.random.Generator], pd.DataFrame]:
    """Draws the published tables anew, with means and deviations of runs answered at random."""
    table = published_tables()
    sizes = {
        (name, scale["id"]): (len(scale["items"]), *key["range"], key["mode"])
        for name, key in psychobench_keys().items()
        for scale in key["scales"]
    }
    table = table[[pair in sizes for pair in zip(table["questionnaire"], table["scale"],
                                                 strict=True)]]  # fmt: skip
    shapes = [sizes[pair] for pair in zip(table["questionnaire"], table["scale"], strict=True)]
    groups = pd.Series(range(len(table))).groupby(pd.Series(shapes, dtype=object)).indices

    def draw(rng: np.random.Generator) -> pd.DataFrame:
        mean, sd = np.empty(len(table)), np.empty(len(table))
        for (items, low, high, mode), rows in groups.items():
            runs = rng.integers(low, high + 1, (len(rows), 10, items)).sum(axis=2)
            runs = runs / (1 if mode == "sum" else items)
            mean[rows], sd[rows] = runs.mean(axis=1), runs.std(axis=1, ddof=1)
        return table.assign(mean=mean, sd=sd, n=10)

    return draw


@functools.cache
def _norms() -> dict[tuple[str, str], list[tuple]]:
    """Groups of people with mean, standard deviation and size, by questionnaire and scale."""
    found: dict[tuple, list] = {}
    for row in norm_table(paper=True).itertuples():
        found.setdefault((row.questionnaire, row.scale), []).append(
            (row.group, row.norm_mean, row.norm_sd, row.norm_n)
        )
    return found


class _Figures:
    """Means of a set of tables by cell, in people's standard deviations where it is asked."""

    def __init__(self, tables: pd.DataFrame, intervals: bool = True) -> None:
        self.intervals = intervals
        keys = zip(*(tables[c] for c in ("study", "respondent_id", "questionnaire", "scale")),
                   strict=True)  # fmt: skip
        self.cells = dict(zip(keys, zip(tables["mean"], tables["sd"], tables["n"], strict=True),
                              strict=True))  # fmt: skip
        self.norms = _norms()

    def mean(self, values) -> tuple[float, float, float]:
        """Of a sample, with its t interval."""
        mean = float(np.mean(values))
        if not self.intervals:
            return mean, np.nan, np.nan
        half = float(stats.t.isf(0.025, len(values) - 1) * stats.sem(values))
        return mean, mean - half, mean + half

    def share(self, hits: np.ndarray) -> tuple[float, float, float]:
        """Of hits, with Clopper and Pearson's interval."""
        if not self.intervals:
            return float(hits.mean()), np.nan, np.nan
        low, high = stats.binomtest(int(hits.sum()), len(hits)).proportion_ci(0.95)
        return float(hits.mean()), float(low), float(high)

    def unit(self, name: str, scale: str) -> float:
        return float(np.mean([sd for _, _, sd, _ in self.norms[name, scale]]))

    def delta(self, who: str, name: str, scale: str, group=None, study="models") -> float:
        mean = self.cells[study, who, name, scale][0]
        return float(np.mean([(mean - m) / sd for g, m, sd, _ in self.norms[name, scale]
                              if group in (None, g)]))  # fmt: skip

    def above(self, models: Iterable[str], scales: Mapping[str, Sequence[str]], group=None):
        """Mean over models of their distance from people; the models are the sample."""
        values = [
            np.mean([self.delta(m, q, s, group) for q, names in scales.items() for s in names])
            for m in models
        ]
        return self.mean(values)

    def apart(self, one: str, two: str, scales: Mapping[str, Sequence[str]], study="models"):
        """Difference of two respondents, the mean over scales; their runs are the sample."""
        cells = [(q, s) for q, names in scales.items() for s in names]
        difference, variance = 0.0, 0.0
        for q, s in cells:
            (m1, s1, n1), (m2, s2, n2) = (self.cells[study, who, q, s] for who in (one, two))
            unit = self.unit(q, s) * len(cells)
            difference += (m1 - m2) / unit
            variance += (s1**2 / n1 + s2**2 / n2) / unit**2
        if not self.intervals:
            return difference, np.nan, np.nan
        half = stats.t.isf(0.025, n1 + n2 - 2) * np.sqrt(variance)
        return difference, difference - half, difference + half

    def leads(self, who: str, name: str, scale: str, sign: int, rivals: Iterable[str]):
        """Difference from the rival that comes nearest, on the side of the claim."""
        nearest = max(
            (r for r in rivals if r != who),
            key=lambda r: sign * self.cells["models", r, name, scale][0],
        )
        return self.apart(who, nearest, {name: [scale]})

    def closer(self, one: str, two: str, cells: Iterable[tuple[str, str]], study="models"):
        """How much nearer the second is to people than the first; scales are the sample."""
        return self.mean([abs(self.delta(one, q, s, study=study))
                      - abs(self.delta(two, q, s, study=study)) for q, s in cells])  # fmt: skip

    def families(self, scales: Mapping[str, Sequence[str]]):
        """GPT models minus LLaMA-2, each model's mean over scales."""
        gpt, llama = (
            [
                np.mean([self.delta(m, q, s) for q, names in scales.items() for s in names])
                for m in family
            ]
            for family in (_GPT, _LLAMA)
        )
        low, high = (
            stats.ttest_ind(gpt, llama).confidence_interval(0.95)
            if self.intervals
            else (np.nan, np.nan)
        )
        return float(np.mean(gpt) - np.mean(llama)), float(low), float(high)

    def differ(self, study: str, pairs: Iterable[tuple[str, str]], cells, level: float):
        """Whether each difference of two respondents is significant."""
        figures = [
            (*self.cells[study, a, q, s], *self.cells[study, b, q, s])
            for (a, b), (q, s) in itertools.product(pairs, cells)
        ]
        return (compare_means(*np.array(figures).T, level=level)["p"] < level).to_numpy()

    def unlike_people(self, study: str, who: str, cells, level: float, group=None):
        """Whether each difference from people is significant."""
        figures = [
            (*self.cells[study, who, q, s], m, sd, n)
            for q, s in cells for g, m, sd, n in self.norms[q, s] if group in (None, g)
        ]  # fmt: skip
        return (compare_means(*np.array(figures).T, level=level)["p"] < level).to_numpy()

    def sex_roles(self, who: str) -> np.ndarray:
        """Expected shares of runs by Bem's rule, as if a run's two scores were independent and
        normal: undifferentiated, masculine, feminine, androgynous."""
        high = []
        for scale in ("masculine", "feminine"):
            mean, sd, _ = self.cells["models", who, "bsri", scale]
            cut = np.mean([m for _, m, _, _ in self.norms["bsri", scale]])
            high.append(float(stats.norm.sf(cut, mean, max(sd, 1e-9))))
        m, f = high
        return np.array([(1 - m) * (1 - f), m * (1 - f), (1 - m) * f, m * f])


def _all_claims(f: _Figures, level: float) -> dict[str, tuple[float, float, float]]:
    """Value and interval of every claim that can be tested, in the order of the paper."""
    only = (np.nan, np.nan)
    everyone = (*MODELS, _JAILBREAK)
    table1 = [("bfi", s) for s in _FIVE]
    table1 += [("epq-r", s) for s in ("extraversion", "neuroticism", "psychoticism", "lying")]
    table1 += [("dtdd", s) for s in _DARK]
    found: dict[str, tuple] = {
        "size-matters": f.share(f.differ("models", [("llama2-13b", "llama2-7b")], table1, level)),
        "update-matters": f.share(f.differ("models", [("gpt-4", "gpt-3.5-turbo")], table1, level)),
        "jailbreak-matters": f.share(f.differ("models", [(_JAILBREAK, "gpt-4")], table1, level)),
        "jailbreak-nearer-people": f.closer("gpt-4", _JAILBREAK, table1),
    }
    for scale in ("openness", "conscientiousness", "extraversion"):
        found[scale] = f.above(MODELS, {"bfi": [scale]})
    for scale in _DARK:
        most = ("llama2-7b", "llama2-13b", "gpt-3.5-turbo", _JAILBREAK)
        found[scale] = f.above(most, {"dtdd": [scale]})
    for who in ("text-davinci-003", "gpt-4"):
        found[f"dark-not-{who}"] = f.mean([f.delta(who, "dtdd", s) for s in _DARK])
    found["lying"] = f.above(everyone, {"epq-r": ["lying"]})
    found["lying-most-gpt-4"] = f.leads("gpt-4", "epq-r", "lying", 1, everyone)
    roles = np.array([f.sex_roles(who) for who in everyone])
    found["undifferentiated"] = f.mean(roles[:, 0])
    newest = np.array([f.sex_roles(who) for who in ("gpt-3.5-turbo", "gpt-4")])
    found["masculine-runs"] = (float((newest[:, 1] - newest[:, 2]).mean()), *only)
    found["no-feminine-runs"] = (float(newest[:, 2].mean()), *only)
    found["masculinity"] = f.above(MODELS[:4], {"bsri": ["masculine"]}, "Workers (Men)")
    found["masculinity-not-gpt-4"] = (
        max(f.delta(m, "bsri", "masculine", "Workers (Men)") for m in ("gpt-4", _JAILBREAK)), *only,
    )  # fmt: skip
    women = [
        f.unlike_people("models", m, [("bsri", "feminine")], level, "Workers (Women)")
        for m in MODELS[:4]
    ]
    found["femininity"] = (float(np.sum(women)), *only)
    found |= _vocations(f)
    found["culture"] = f.above(MODELS, {"icb": ["overall"]})
    found["attachment-anxiety"] = f.above(MODELS, {"ecr-r": ["attachment_anxiety"]})
    found["attachment-avoidance"] = f.above(MODELS, {"ecr-r": ["attachment_avoidance"]})
    found["attachment-least-gpt-4"] = f.leads("gpt-4", "ecr-r", "attachment_anxiety", -1, everyone)
    found["attachment-most-llama2-7b"] = f.leads(
        "llama2-7b", "ecr-r", "attachment_anxiety", 1, everyone
    )
    found["self-efficacy"] = f.above(MODELS, {"gse": ["overall"]})
    found["self-efficacy-gpt-4"] = f.apart("gpt-4", "gpt-3.5-turbo", {"gse": ["overall"]})
    found["self-efficacy-llama"] = f.apart("llama2-7b", "llama2-13b", {"gse": ["overall"]})
    optimists = (*MODELS[1:], _JAILBREAK)
    found["optimism"] = f.above(optimists, {"lot-r": ["overall"]})
    found["optimism-gpt-4"] = f.apart("gpt-4", "gpt-3.5-turbo", {"lot-r": ["overall"]})
    found["optimism-least-llama2-7b"] = f.leads("llama2-7b", "lot-r", "overall", -1, everyone)
    for scale in ("rich", "motivator", "important"):
        found[f"money-{scale}"] = f.above(_GPT, {"lms": [scale]})
    found["money-families"] = f.families({"lms": ["rich", "motivator", "important"]})
    found["eis"] = f.above(MODELS, {"eis": ["overall"]})
    for scale in _WLEIS:
        found[f"wleis-{scale}"] = f.above(MODELS, {"wleis": [scale]})
    found["emotion-families"] = f.families(
        {"eis": ["overall"], "wleis": _WLEIS, "empathy": ["overall"]}
    )
    for name in ("eis", "empathy"):
        found[f"jailbreak-{name}"] = f.apart(_JAILBREAK, "gpt-4", {name: ["overall"]})
    wleis = [("wleis", s) for s in _WLEIS]
    found["jailbreak-wleis"] = (
        float(f.differ("models", [(_JAILBREAK, "gpt-4")], wleis, level).sum()), *only,
    )  # fmt: skip
    return {f"psychobench-{k}": v for k, v in (found | _roles_and_prompts(f, level)).items()}


def _vocations(f: _Figures) -> dict[str, tuple[float, float, float]]:
    only = (np.nan, np.nan)
    interests = [s["id"] for s in psychobench_keys()["cabin"]["scales"]]
    means = pd.DataFrame(
        {m: [f.cells["models", m, "cabin", s][0] for s in interests]
         for m in (*MODELS, _JAILBREAK)}, index=interests,
    )  # fmt: skip
    people = pd.Series({s: f.norms["cabin", s][0][1] for s in interests})
    models = means[list(MODELS)]
    liked = {"social_service", "health_care_service", "teaching_education"}
    disliked = {"physical_manual_labor", "protective_service"}
    together = models.mean(axis=1)
    rho = models.corr("spearman").to_numpy()[np.triu_indices(len(MODELS), 1)].mean()
    with_people = float(together.corr(people, method="spearman"))
    focus = (means["gpt-4"] - 3).abs() - (means[_JAILBREAK] - 3).abs()

    def reach(r: float) -> tuple[float, float]:
        z, half = np.arctanh(r), stats.norm.isf(0.025) / np.sqrt(len(interests) - 3)
        return float(np.tanh(z - half)), float(np.tanh(z + half))

    def hits(table: pd.Series, named: set, order: bool) -> tuple[float, float, float]:
        ranked = table.sort_values(ascending=order, kind="stable").index[: len(named)]
        return (float(len(named & set(ranked))), *only)

    return {
        "interests-alike": (float(rho), *reach(rho)),
        "interests-of-people": (with_people, *reach(with_people)),
        "vocations-liked": hits(together, liked, False),
        "vocations-liked-by-people": hits(people, liked, False),
        "vocations-disliked": hits(together, disliked, True),
        "vocations-disliked-by-people": hits(people, disliked, True),
        "jailbreak-central": f.mean(focus),
    }


def _roles_and_prompts(f: _Figures, level: float) -> dict[str, tuple[float, float, float]]:
    only = (np.nan, np.nan)
    cells = [(q, s) for q, s in f.norms if q != "cabin"]
    five = [("bfi", s) for s in _FIVE]
    unlike = f.unlike_people("roles", "ordinary", cells, level)
    found: dict[str, tuple] = {
        "ordinary-like-people": f.share(~unlike),
        "ordinary-nearer-people": f.closer("default", "ordinary", cells, "roles"),
    }
    introvert = {"bfi": ["extraversion"], "epq-r": ["extraversion"]}
    for role in ("psychopath", "liar"):
        found[f"{role}-dark"] = f.apart(role, "default", {"dtdd": _DARK}, "roles")
        found[f"{role}-introvert"] = f.apart(role, "default", introvert, "roles")
        found[f"{role}-lying"] = f.apart(role, "default", {"epq-r": ["lying"]}, "roles")
    for role in ("hero", "ordinary"):
        found[f"{role}-lying"] = f.apart(role, "default", {"epq-r": ["lying"]}, "roles")
    wordings = [(f"v{n}", "v1") for n in range(2, 6)]
    found["prompts"] = (float(f.differ("wordings", wordings, five, level).sum()), *only)
    found["reasoning-openness"] = f.apart("v1+cot", "v1", {"bfi": ["openness"]}, "wordings")
    found["reasoning-others"] = (
        float(f.differ("wordings", [("v1+cot", "v1")], five[1:], level).sum()), *only,
    )  # fmt: skip
    for scale in ("conscientiousness", "agreeableness"):
        found[f"assistant-{scale}"] = f.apart("without", "with", {"bfi": [scale]}, "assistant")
    rest = [("bfi", s) for s in ("openness", "extraversion", "neuroticism")]
    found["assistant-others"] = (
        float(f.differ("assistant", [("without", "with")], rest, level).sum()), *only,
    )  # fmt: skip
    heat = [(f"gpt-3.5-turbo {t}", "gpt-3.5-turbo 0") for t in ("0.01", "0.8")]
    found["temperature"] = (float(f.differ("temperature", heat, five, level).sum()), *only)
    return found
