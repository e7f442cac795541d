"""Null respondents and shuffled scoring keys: the results to expect if there is no effect.

A *null respondent* answers by the same procedure without the ability in question. A result for a
population of null respondents is due to the method alone. All kinds are in this one file, because
heads, words and noise differ in only one line each, and share the bases, the random draws and the
shipped answers.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import softmax
from threadpoolctl import threadpool_limits

from .. import models  # torch is loaded only with a model
from ..checks import check_choice, check_columns, check_numbers, whole_depth
from ..data import shipped
from ..exceptions import ParameterError
from ..measures.validity import item_contrasts
from ..modes.nli import PROBABILITIES
from ..questionnaires import AnyQuestionnaires, Questionnaire, Scale, load_questionnaires
from ..questionnaires.prompts import prompts
from ..store import key_of

_Numbers = NDArray[np.floating[Any]]
_Pairs = tuple[tuple[str, str], ...]  # premise and hypothesis
_Reading = tuple[str, int | None, str | None]  # a base, its layers, and a decoder's wording

# What seeds the random numbers of a kind.
_SEEDS = {"random-heads": 0, "noise": 3, "random-words": 4}


@dataclass(frozen=True)
class NullRespondent:
    """A respondent that answers by the usual procedure without the ability in question.

    Parameters
    ----------
    kind : str
        As ``null`` in :func:`null_answers`.
    base : str
        The untouched model.
    layers : int, optional
        Number of the base's layers to use; by default all.
    wording : str, optional
        Text that a decoder reads.
    number : int
        Number that seeds the random draws.

    Examples
    --------
    >>> respondent = NullRespondent("noise", number=3)
    >>> respondent.name, respondent.answer((("Cats purr.", "It is quiet."),)).shape
    ('noise-s3', (1, 3))
    """

    kind: str
    base: str = "embedded"
    layers: int | None = None
    wording: str | None = None
    number: int = 0

    @property
    def reading(self) -> _Reading:
        """The base, the layers and the wording, which determine the vectors of prompts."""
        return self.base, self.layers, self.wording

    @property
    def name(self) -> str:
        """The ``respondent_id``."""
        base = "" if self.base == "embedded" else f"-{Path(self.base).name}"
        layers = "" if self.layers is None else f"-l{self.layers}"
        return f"{self.kind}{base}{layers}-s{self.number}"

    @property
    def shipped_name(self) -> str:
        """The name in a shipped table.

        A head's name ends in a digest of the base's weights, the wording and the definition of the
        vectors, so that a head with different inputs has a different name.
        """
        return f"{self.name} {models.vectors.reading_key(self.base, self.wording)[:8]}"

    def answer(self, pairs: _Pairs, vectors: _Numbers | None = None) -> _Numbers:
        """Return probabilities of entailment, neutral and contradiction, shape (prompts, 3).

        Parameters
        ----------
        pairs : tuple of (str, str)
            The premises and hypotheses.
        vectors : ndarray, shape (prompts, width), optional
            The prompts' vectors from the untouched base; by default they are computed.
        """
        rng = np.random.default_rng([_SEEDS[self.kind], self.number])
        if self.kind == "noise":
            values = rng.random((len(pairs), 3), dtype="float32")
            shares: _Numbers = values / values.sum(axis=1, keepdims=True)
            return shares

        if vectors is None:
            vectors = _read_prompts({self.reading}, (pairs,))[self.reading]

        if self.kind == "random-words":
            logits = vectors.astype(float) @ drawn_words(self.base, rng).T
        else:
            logits = head_logits(vectors, rng, models.vectors.is_decoder(self.base))

        answers: _Numbers = softmax(logits, axis=1)
        return answers


def null_answers(
    questionnaires: AnyQuestionnaires,
    null: str = "random-heads",
    respondents: int = 24,
    base: str | Sequence[str] = "embedded",
    layers: int | Sequence[int | None] | None = None,
    seed: int = 0,
    wording: str | Sequence[str | None] | None = None,
) -> pd.DataFrame:
    r"""Return null respondents' answers in the format of :func:`psychometrics.asking.ask`.

    A random head on an encoder whose vector of a prompt's first token is *h* answers

    .. math:: \mathrm{softmax}(V \tanh(W h)), \qquad W_{ij}, V_{ij} \sim N(0, 0.02^2),

    like an untrained classifier of the BERT family. On a decoder *h* is the vector of the last
    token, and the head is linear, :math:`\mathrm{softmax}(V h)`, as in decoders' classifiers.
    *Random words* are heads whose rows of *V* are the output vectors of three whole words, drawn
    from the decoder's vocabulary: such a respondent answers with words, as the book's decoders do,
    but with unrelated ones. The base reads each prompt once for all heads, in float32; the heads
    compute in float64.

    Parameters
    ----------
    questionnaires : str, Path or Questionnaire, or several
        Names of shipped questionnaires, paths of files, or loaded ones.
    null : {"random-heads", "noise", "random-words"}
        Random heads on the untouched base; three uniform random numbers for each prompt, divided by
        their sum; or random words of an untouched decoder.
    respondents : int
        Number of respondents.
    base : str or sequence of str
        The untouched model: ``"embedded"`` for the encoder, ``"smollm2"`` for the decoder, a folder
        or a hub id. Several bases are assigned to the respondents in turn.
    layers : int or sequence of int, optional
        Number of the base's layers to use; by default, and for None, all. Several numbers are
        assigned in turn. :func:`psychometrics.asking.population.untouched_bases` gives the bases
        and layers of a population.
    seed : int
        Number of the first respondent; different numbers give different random draws.
    wording : str or sequence of str, optional
        Text that a decoder reads, with ``{premise}`` and ``{hypothesis}``; by default, and for
        None, a decoder reads the pair as a classifier does. Several wordings are assigned in turn.

    Returns
    -------
    DataFrame
        ``respondent_id, mode``, the prompt table's columns, ``entailment, neutral,
        contradiction``.

    Raises
    ------
    ParameterError
        The kind is unknown, or a number is out of range.

    References
    ----------
    Devlin et al. (2019) for the form of the head and its starting values.

    Examples
    --------
    >>> answers = null_answers("challenges", "noise", respondents=2)
    >>> answers.groupby("respondent_id").size().tolist()
    [192, 192]
    """
    reading = base, layers, seed, wording
    return next(_draw_populations(questionnaires, null, respondents, 1, *reading))


def null_distribution(
    statistic: Callable[[pd.DataFrame], Any],
    questionnaires: AnyQuestionnaires,
    null: str = "random-heads",
    respondents: int = 24,
    draws: int = 100,
    base: str | Sequence[str] = "embedded",
    layers: int | Sequence[int | None] | None = None,
    seed: int = 0,
    wording: str | Sequence[str | None] | None = None,
) -> pd.DataFrame:
    """Return the distribution of a statistic over populations of null respondents.

    Parameters
    ----------
    statistic : callable
        A function that takes answers, as :func:`psychometrics.asking.ask` returns them, and returns
        a number, or several numbers by name.
    questionnaires, null, base, layers, seed, wording
        As in :func:`null_answers`.
    respondents : int
        Size of each population.
    draws : int
        Number of populations, which share no respondent.

    Returns
    -------
    DataFrame, shape (draws, statistics)
        If the statistic is one number, a single column ``statistic``.

    Raises
    ------
    ParameterError
        As for :func:`null_answers`.

    Examples
    --------
    >>> means = null_distribution(
    ...     lambda answers: answers["entailment"].mean(), "challenges", "noise", 3, draws=4)
    >>> means.shape, bool(means["statistic"].between(0.3, 0.37).all())
    ((4, 1), True)
    """
    if not callable(statistic):
        raise ParameterError(f"statistic must be a function of answers, got {statistic!r:.60}.")

    rows = []
    reading = base, layers, seed, wording
    for answers in _draw_populations(questionnaires, null, respondents, draws, *reading):
        value = statistic(answers)
        if isinstance(value, Mapping | pd.Series):
            rows.append(dict(value))
        elif np.isscalar(value):
            rows.append({"statistic": value})
        else:
            raise ParameterError(f"statistic must give a number or numbers, got {value!r:.60}.")

    return pd.DataFrame(rows)


def kernel(
    questionnaires: AnyQuestionnaires,
    base: str = "embedded",
    layers: int | None = None,
    wording: str | None = None,
) -> pd.DataFrame:
    r"""Return the semantic kernel: the covariance of item scores over untrained heads on a base.

    A linear head with small random weights gives a prompt with vector *h* the entailment :math:`1/3
    + w^\top h` to first order, where *w* has the same variance in every direction. For
    probabilities near 1/3 the two-way normalisation is linear, too:

    .. math::

        \mathrm{PSS}(l_j | s_i) \approx \frac{1}{L}\bigl(1 + 3\, w^\top \ddot h_{ij}\bigr),
        \qquad
        \ddot h_{ij} = h_{ij} - \bar h_{i\cdot} - \bar h_{\cdot j} + \bar h_{\cdot\cdot},

    so that an item's score is :math:`w^\top \phi`. The item's contrast :math:`\phi =
    \frac{3}{|S^+| L^2} \sum_{s_i \in S^+} \sum_j v_j \ddot h_{ij}` is averaged over templates and
    multiplied by the item's key, and *v_j* is the weight of intensifier *j*. The covariance of two
    items is :math:`K_{ab} = \phi_a^\top \phi_b`, up to the size of the head.

    The kernel approximates the tanh of an encoder's head and the normalisation to first order. Both
    approximations hold while the answers stay near 1/3, as at the starting values of
    :func:`null_answers`: over six bases or depths the item correlations of 2,000 such heads
    correlate with the kernel's at .998 or more, and no alpha differs by more than .023. Both fail
    for heads as decisive as a trained model (correlations of .73 to .98, alphas lower by up to .22;
    ``data/kernel_errors.csv``, chapter 6).

    Parameters
    ----------
    questionnaires : str, Path or Questionnaire, or several
        Questionnaires with prompts.
    base, layers, wording
        The untouched model, the number of its layers to use, and the wording, as in
        :func:`null_answers`.

    Returns
    -------
    DataFrame, shape (I, I)
        Rows and columns by ``questionnaire, scale, item_id``, each item with its key; subscales are
        left out, and ``scale`` is empty if there are no scales. The overall size is arbitrary.

    Raises
    ------
    ParameterError
        The base has fewer layers than requested.
    QuestionnaireError
        A questionnaire has no prompts.
    RespondentError
        The base cannot be read.

    References
    ----------
    Reuben et al. (2024), section 3.2, for the score; Neal (1996), chapter 2, for networks with
    random weights as Gaussian processes.

    Examples
    --------
    >>> K = kernel("challenges")
    >>> K.shape, bool(np.allclose(K, K.T))
    ((4, 4), True)
    """
    loaded = load_questionnaires(questionnaires)
    reading = base, whole_depth(layers), wording
    table, parts = _prompt_table(loaded)
    return kernel_of_vectors(loaded, table, _read_prompts({reading}, parts)[reading])


def kernel_of_vectors(
    questionnaires: Sequence[Questionnaire], table: pd.DataFrame, vectors: np.ndarray
) -> pd.DataFrame:
    """Return the semantic kernel of given vectors, in the form of :func:`kernel`.

    Parameters
    ----------
    questionnaires : sequence of Questionnaire
    table : DataFrame
        The questionnaires' prompts, one questionnaire after another.
    vectors : ndarray, shape (prompts, width)
        Vectors of the prompts from a base, untouched or adapted.

    Returns
    -------
    DataFrame, shape (I, I)

    Examples
    --------
    >>> from psychometrics import load_questionnaire, prompts
    >>> one = load_questionnaire("challenges")
    >>> vectors = np.random.default_rng(0).normal(size=(len(prompts(one)), 5))
    >>> kernel_of_vectors([one], prompts(one), vectors).shape
    (4, 4)
    """
    contrasts = item_contrasts(table, vectors)
    keyed = {}
    for questionnaire in questionnaires:
        scales: list[Scale | None] = [s for s in questionnaire.scales if s.parent is None]
        for scale in scales or [None]:
            for item, key in questionnaire.keys(scale).items():
                place = questionnaire.id, scale.id if scale else "", item
                keyed[place] = key * contrasts.loc[(questionnaire.id, item)].to_numpy()

    names = pd.MultiIndex.from_tuples(keyed, names=["questionnaire", "scale", "item_id"])
    phi = np.stack(list(keyed.values()))

    return pd.DataFrame(phi @ phi.T, names, names)


def shuffled(answers: pd.DataFrame, column: str = "weight", seed: int = 0) -> pd.DataFrame:
    """Shuffle the scoring key of answers, in the same way for all respondents.

    Parameters
    ----------
    answers : DataFrame
        Answers to prompts, as :func:`psychometrics.asking.ask` returns them.
    column : {"weight", "polarity"}
        What to permute: the weights among the intensifiers of the questionnaire, or the stances
        (source and inverse) among the terms of each template, which keeps the number of terms of
        each stance.
    seed : int

    Returns
    -------
    DataFrame
        The same answers with a shuffled column ``weight`` or ``polarity``. Results with a shuffled
        key are not due to the meaning of the words.

    Raises
    ------
    ParameterError
        The column is missing, or an intensifier has two weights, as in answers to two
        questionnaires.

    Examples
    --------
    >>> from psychometrics import load_questionnaire, prompts
    >>> answers = prompts(load_questionnaire("challenges"))
    >>> sorted(set(shuffled(answers)["weight"])) == sorted(set(answers["weight"]))
    True
    """
    check_choice(("weight", "polarity"), column=column)
    check_numbers(seed=seed)
    groups = ["questionnaire", "item_id", "template"] if column == "polarity" else []
    keys = [*groups, "term" if groups else "intensifier", column]
    check_columns(answers, keys)
    # A cell is a combination of the keys, which all respondents share.
    cell = answers.groupby(keys, sort=False, dropna=False).ngroup().to_numpy()
    cells = answers[keys].iloc[np.unique(cell, return_index=True)[1]].reset_index(drop=True)

    if not groups and cells["intensifier"].duplicated().any():
        raise ParameterError("An intensifier has two weights; shuffle one questionnaire at a time.")

    rng = np.random.default_rng(seed)
    grouped = cells.groupby(groups or np.zeros(len(cells)), sort=False)
    permuted = grouped[column].transform(rng.permutation).to_numpy()

    return answers.assign(**{column: permuted[cell]})


def _draw_populations(
    questionnaires: AnyQuestionnaires,
    null: str,
    size: int,
    draws: int,
    base: str | Sequence[str],
    layers: int | Sequence[int | None] | None,
    seed: int,
    wording: str | Sequence[str | None] | None,
) -> Iterator[pd.DataFrame]:
    """Yield the answers of each population of null respondents.

    Each respondent has its own random numbers. Heads are computed in parallel, each by one thread,
    since numpy releases the interpreter's lock while it draws and multiplies. If several threads
    shared one matrix product, they would wait for each other longer than they compute.
    """
    check_choice(_SEEDS, null=null)
    check_numbers(respondents=size, draws=draws, seed=seed)
    bases = _as_list(base)
    depths = [whole_depth(depth) for depth in _as_list(layers)]
    wordings = _as_list(wording)
    if not (bases and depths and wordings):
        raise ParameterError("base, layers and wording: a list is empty; give a value.")

    table, parts = _prompt_table(load_questionnaires(questionnaires))
    check_numbers(answers=size * len(table))
    pairs = tuple(pair for texts in parts for pair in texts)
    prompted = pd.concat([table] * size, ignore_index=True)  # grouped by respondent

    respondents = [
        NullRespondent(null, bases[n % len(bases)], depths[n % len(depths)],
                       wordings[n % len(wordings)], n)
        for n in range(seed, seed + draws * size)
    ]  # fmt: skip
    stored = _shipped_answers(respondents, pairs)
    readings = {m.reading for m in respondents if null != "noise" and m not in stored}
    vectors = _read_prompts(readings, parts)
    if null == "random-words":  # load it here, because two threads must not load a model at once
        for name in {respondent.base for respondent in respondents}:
            drawn_words(name, np.random.default_rng(0))

    def answer(respondent: NullRespondent) -> _Numbers:
        if respondent in stored:
            return stored[respondent]
        return respondent.answer(pairs, vectors.get(respondent.reading))

    for draw in range(draws):
        population = respondents[draw * size : (draw + 1) * size]
        with threadpool_limits(1, "blas"), ThreadPoolExecutor(os.cpu_count()) as pool:
            answers = np.stack(list(pool.map(answer, population)))

        frame = prompted.copy(deep=False)
        frame.insert(0, "respondent_id", np.repeat([m.name for m in population], len(table)))
        frame.insert(1, "mode", "nli")
        frame[list(PROBABILITIES)] = answers.reshape(-1, len(PROBABILITIES))
        yield frame


def _as_list(value: Any) -> list[Any]:
    """Return one value, or several, as a list."""
    return [*value] if isinstance(value, Iterable) and not isinstance(value, str) else [value]


def _prompt_table(questionnaires: list[Questionnaire]) -> tuple[pd.DataFrame, tuple[_Pairs, ...]]:
    """Return all questionnaires' prompts in one table, and each questionnaire's pairs of texts."""
    tables = [prompts(questionnaire) for questionnaire in questionnaires]
    texts = (table[["premise", "hypothesis"]] for table in tables)
    parts = tuple(tuple(text.itertuples(index=False, name=None)) for text in texts)
    return pd.concat(tables, ignore_index=True), parts


def _read_prompts(readings: set[_Reading], parts: tuple[_Pairs, ...]) -> dict[_Reading, _Numbers]:
    """Return the prompts' vectors by reading, from one pass for each base and wording."""
    vectors: dict[_Reading, _Numbers] = {}
    for base, wording in sorted({(base, wording) for base, _, wording in readings}, key=str):
        depths = {depth for b, depth, w in readings if (b, w) == (base, wording)}
        by_depth = models.vectors.layer_vectors(base, depths, parts, wording)
        vectors |= {(base, depth, wording): values for depth, values in by_depth.items()}
    return vectors


def _shipped_answers(
    respondents: list[NullRespondent], pairs: _Pairs
) -> dict[NullRespondent, _Numbers]:
    """Return the shipped answers of heads on decoders, each of shape (prompts, 3).

    There are none for other respondents, or if a prompt is missing.
    """
    respondents = [r for r in respondents if r.kind != "noise" and r.wording is not None]
    if not respondents:
        return {}

    table = _shipped_heads()
    rows = table.index.get_indexer(pd.Index([key_of(*pair) for pair in pairs]))
    if (rows < 0).any():
        return {}

    answers = {}
    for respondent in respondents:
        columns = [f"{respondent.shipped_name} {answer}" for answer in PROBABILITIES]
        if columns[0] in table:
            answers[respondent] = table[columns].to_numpy()[rows]
    return answers


@functools.cache
def _shipped_heads() -> pd.DataFrame:
    """Return the shipped answers of heads, with three columns for each, or an empty table."""
    path = shipped("null_heads.parquet")
    return pd.read_parquet(path).set_index("key") if path.is_file() else pd.DataFrame()


def drawn_words(base: str, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return a decoder's output vectors of three words that are drawn at random.

    Parameters
    ----------
    base : str
    rng : Generator

    Returns
    -------
    ndarray of float32, shape (3, width)

    Raises
    ------
    ParameterError
        The base is an encoder.

    Examples
    --------
    >>> drawn_words("smollm2", np.random.default_rng(0)).shape
    (3, 576)
    """
    if not models.vectors.is_decoder(base):
        raise ParameterError(f"{base}: an encoder has no output words; use null='random-heads'.")
    words: NDArray[np.float32] = models.vectors.word_vectors(base)
    return words[rng.choice(len(words), 3, replace=False)]


def head_logits(vectors: _Numbers, rng: np.random.Generator, linear: bool) -> _Numbers:
    """Return the logits of an untrained head with the starting weights of a classifier.

    Parameters
    ----------
    vectors : ndarray, shape (prompts, width)
    rng : Generator
    linear : bool
        Whether the head is linear, as on a decoder; an encoder's head begins with a tanh layer.

    Returns
    -------
    ndarray of float64, shape (prompts, 3)
        The type is float64, since heads on few layers give answers that differ by less than float32
        resolves.

    Examples
    --------
    >>> head_logits(np.ones((2, 8), "float32"), np.random.default_rng(0), linear=True).shape
    (2, 3)
    """
    vectors = vectors.astype(float)
    width = vectors.shape[1]
    if not linear:
        vectors = np.tanh(vectors @ rng.normal(0, 0.02, (width, width)))
    logits: _Numbers = vectors @ rng.normal(0, 0.02, (width, 3))
    return logits
