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
from pathlib import Path
from typing import Any, NamedTuple

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
from ..questionnaires import Questionnaire, Scale, load_questionnaires
from ..questionnaires.prompts import prompts
from ..store import key_of

_Numbers = NDArray[np.floating[Any]]
_Pairs = tuple[tuple[str, str], ...]  # premise and hypothesis

_KINDS = ("random-heads", "random-bases", "shuffled-labels", "noise", "random-words")


def null_answers(
    questionnaires: str | Path | Questionnaire | Iterable[Any],
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
    null : {"random-heads", "random-bases", "shuffled-labels", "noise", "random-words"}
        Random heads on the untouched base; random heads on bases with random weights; members
        trained on pairs whose labels were shuffled (shipped answers to shipped questionnaires
        only); three uniform random numbers for each prompt, divided by their sum; or random words
        of an untouched decoder.
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
    return next(_drawn(questionnaires, null, respondents, 1, base, layers, seed, wording))


def null_distribution(
    statistic: Callable[[pd.DataFrame], Any],
    questionnaires: str | Path | Questionnaire | Iterable[Any],
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
        Number of populations. Populations share no respondent, except for the shipped kind
        (``"shuffled-labels"``), whose few respondents are drawn repeatedly.

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
    drawn = _drawn(questionnaires, null, respondents, draws, base, layers, seed, wording)
    for answers in drawn:
        value = statistic(answers)
        if isinstance(value, Mapping | pd.Series):
            rows.append(dict(value))
        elif np.isscalar(value):
            rows.append({"statistic": value})
        else:
            raise ParameterError(f"statistic must give a number or numbers, got {value!r:.60}.")

    return pd.DataFrame(rows)


def kernel(
    questionnaires: str | Path | Questionnaire | Iterable[Any],
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
    layers = whole_depth(layers)
    table, parts = _prompted(loaded)
    vectors = models.vectors.layer_vectors(base, {layers}, parts, wording)[layers]
    return kernel_of_vectors(loaded, table, vectors)


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
    for one in questionnaires:
        scales: list[Scale | None] = [scale for scale in one.scales if scale.parent is None]
        for scale in scales or [None]:
            for item, key in one.keys(scale).items():
                place = one.id, scale.id if scale else "", item
                keyed[place] = key * contrasts.loc[(one.id, item)].to_numpy()

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
    within = ["questionnaire", "item_id", "template"] if column == "polarity" else []
    keys = [*within, "term" if within else "intensifier", column]
    check_columns(answers, keys)
    # A cell is a combination of the keys, which all respondents share.
    cell = answers.groupby(keys, sort=False, dropna=False).ngroup().to_numpy()
    cells = answers[keys].iloc[np.unique(cell, return_index=True)[1]].reset_index(drop=True)

    if not within and cells["intensifier"].duplicated().any():
        raise ParameterError("An intensifier has two weights; shuffle one questionnaire at a time.")
    check_numbers(seed=seed)
    rng = np.random.default_rng(seed)
    groups = cells.groupby(within or np.zeros(len(cells)), sort=False)
    dealt = groups[column].transform(rng.permutation).to_numpy()

    return answers.assign(**{column: dealt[cell]})


class _Stand(NamedTuple):
    """The inputs of a null respondent: an untouched model, its layers, and a decoder's wording."""

    base: str
    layers: int | None
    wording: str | None


def _drawn(
    questionnaires: str | Path | Questionnaire | Iterable[Any],
    null: str,
    n: int,
    draws: int,
    base: str | Sequence[str],
    layers: int | Sequence[int | None] | None,
    seed: int,
    wording: str | Sequence[str | None] | None,
) -> Iterator[pd.DataFrame]:
    """Yield the answers of each population of null respondents."""
    check_choice(_KINDS, null=null)
    check_numbers(respondents=n, draws=draws, seed=seed)
    stand_of = _stand_by_number(base, layers, wording)

    table, parts = _prompted(load_questionnaires(questionnaires))
    check_numbers(answers=n * len(table))
    pairs = tuple(pair for part in parts for pair in part)
    prompted = pd.concat([table] * n, ignore_index=True)  # grouped by respondent

    heads: dict[tuple[_Stand, int], _Numbers] = {}
    vectors: dict[_Stand, _Numbers] = {}
    if null in ("random-heads", "random-words"):
        made = [(stand_of(number), number) for number in range(seed, seed + draws * n)]
        heads = _shipped_heads(null, made, pairs)
        vectors = _stand_vectors({one[0] for one in made if one not in heads}, parts)

    is_shipped = _listed(base) == ["embedded"] and layers is None and _listed(wording) == [None]
    kept = _shipped(null, pairs) if is_shipped else None

    for draw in range(draws):
        numbers = range(seed + draw * n, seed + (draw + 1) * n)
        if null == "shuffled-labels":
            names, answers = _some(null, kept, n, draw, seed)
        elif null == "random-bases" and kept is not None and numbers[-1] < len(kept):
            names = [f"{null}-s{number}" for number in numbers]
            answers = kept[list(numbers)]
        else:
            stands = [stand_of(number) for number in numbers]
            names = [_name(null, *one) for one in zip(stands, numbers, strict=True)]
            answers = _all_answers(null, pairs, stands, numbers, vectors, heads)

        yield _as_asked(prompted, names, answers)


def _stand_by_number(
    base: str | Sequence[str],
    layers: int | Sequence[int | None] | None,
    wording: str | Sequence[str | None] | None,
) -> Callable[[int], _Stand]:
    """Return a function from respondents' numbers to their inputs, which are assigned in turn."""
    bases = _listed(base)
    depths = [whole_depth(one) for one in np.atleast_1d(np.array(layers, dtype=object))]
    wordings = _listed(wording)
    if not (bases and depths and wordings):
        raise ParameterError("base, layers and wording: a list is empty; give a value.")

    return lambda number: _Stand(
        bases[number % len(bases)], depths[number % len(depths)], wordings[number % len(wordings)]
    )


def _as_asked(prompted: pd.DataFrame, names: list[str], answers: _Numbers) -> pd.DataFrame:
    """Return null answers as a table in the format of :func:`psychometrics.ask`."""
    frame = prompted.copy(deep=False)
    frame.insert(0, "respondent_id", np.repeat(names, len(frame) // len(names)))
    frame.insert(1, "mode", "nli")
    frame[list(PROBABILITIES)] = answers.reshape(-1, len(PROBABILITIES))
    return frame


def _listed(value: Any) -> list[Any]:
    """Return one value, or several, as a list."""
    return [*value] if isinstance(value, Iterable) and not isinstance(value, str) else [value]


def _name(null: str, stand: _Stand, number: int) -> str:
    parts = [null]
    if stand.base != "embedded":
        parts.append(Path(stand.base).name)
    if stand.layers is not None:
        parts.append(f"l{stand.layers}")
    return "-".join([*parts, f"s{number}"])


def _stand_vectors(stands: set[_Stand], parts: tuple[_Pairs, ...]) -> dict[_Stand, _Numbers]:
    """Return the prompts' vectors for each base and wording that null respondents use."""
    vectors: dict[_Stand, _Numbers] = {}
    for base, wording in sorted({(s.base, s.wording) for s in stands}, key=str):
        depths = {s.layers for s in stands if (s.base, s.wording) == (base, wording)}
        read = models.vectors.layer_vectors(base, depths, parts, wording)
        vectors |= {_Stand(base, depth, wording): values for depth, values in read.items()}
    return vectors


def _prompted(loaded: list[Questionnaire]) -> tuple[pd.DataFrame, tuple[_Pairs, ...]]:
    """Return all questionnaires' prompts in one table, and each questionnaire's pairs of texts."""
    tables = [prompts(questionnaire) for questionnaire in loaded]
    texts = (table[["premise", "hypothesis"]] for table in tables)
    parts = tuple(tuple(text.itertuples(index=False, name=None)) for text in texts)
    return pd.concat(tables, ignore_index=True), parts


def _some(
    null: str, few: _Numbers | None, n: int, draw: int, seed: int
) -> tuple[list[str], _Numbers]:
    """Select some of a few shipped respondents: the first, or a random sample in later draws."""
    if few is None:
        raise ParameterError(f"'{null}' answered only shipped prompts on MiniLM; use another null.")
    if n > len(few):
        raise ParameterError(f"There are {len(few)} respondents of '{null}', not {n}; lower n.")
    order = np.arange(len(few))
    if draw or seed:
        order = np.random.default_rng([seed, draw]).permutation(order)
    chosen = np.sort(order[:n])
    return [f"{null}-s{number}" for number in chosen], few[chosen]


def _all_answers(
    null: str,
    pairs: _Pairs,
    stands: list[_Stand],
    numbers: Sequence[int],
    vectors: dict[_Stand, _Numbers],
    heads: dict[tuple[_Stand, int], _Numbers],
) -> _Numbers:
    """Return answers of null respondents, shape (respondents, prompts, 3).

    Each respondent has its own random numbers. Heads are computed in parallel, each by one thread,
    since numpy releases the interpreter's lock while it draws and multiplies. If several threads
    shared one matrix product, they would wait for each other longer than they compute.
    """
    made = list(zip(stands, numbers, strict=True))
    if null not in ("random-heads", "random-words"):  # a random base loads a model
        return np.stack([_answers(null, pairs, *one, vectors) for one in made])
    if null == "random-words":  # load it here, because two threads must not load a model at once
        for base in {stand.base for stand in stands}:
            drawn_words(base, np.random.default_rng(0))

    def answer(one: tuple[_Stand, int]) -> _Numbers:
        return heads[one] if one in heads else _answers(null, pairs, *one, vectors)

    with threadpool_limits(1, "blas"), ThreadPoolExecutor(os.cpu_count()) as pool:
        return np.stack(list(pool.map(answer, made)))


def _answers(
    null: str, pairs: _Pairs, stand: _Stand, number: int, vectors: dict[_Stand, _Numbers]
) -> _Numbers:
    """Return one null respondent's answers, shape (prompts, 3)."""
    rng = np.random.default_rng([_KINDS.index(null), number])
    if null == "noise":
        values = rng.random((len(pairs), 3), dtype="float32")
        shares: _Numbers = values / values.sum(axis=1, keepdims=True)
        return shares

    is_decoder = models.vectors.is_decoder(stand.base)
    if null == "random-words":
        logits = vectors[stand].astype(float) @ drawn_words(stand.base, rng).T
    elif null == "random-heads":
        logits = head_logits(vectors[stand], rng, is_decoder)
    else:
        logits = head_logits(_read_vectors(stand, pairs, number), rng, is_decoder)

    answers: _Numbers = softmax(logits, axis=1)
    return answers


def _read_vectors(stand: _Stand, pairs: _Pairs, number: int) -> _Numbers:
    """Return each prompt's vectors from one layer, as read by a head on an untrained base."""
    hidden = models.vectors.prompt_vectors(stand.base, pairs, number)
    if stand.layers is not None and stand.layers >= len(hidden):
        raise ParameterError(f"{stand.base} has {len(hidden) - 1} layers, not {stand.layers}.")

    vectors: _Numbers = hidden[-1 if stand.layers is None else stand.layers]
    return vectors


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


def _shipped(null: str, pairs: _Pairs) -> _Numbers | None:
    """Return shipped answers, shape (respondents, prompts, 3), or None if a prompt is missing."""
    table = _shipped_table("nulls.parquet")
    rows = _shipped_rows(table, pairs)
    if rows is None:
        return None

    columns = [column for column in table if column.startswith(null)]
    answers: _Numbers = table[columns].to_numpy()[rows]
    return answers.reshape(len(pairs), -1, 3).transpose(1, 0, 2)


def _shipped_heads(
    null: str, made: list[tuple[_Stand, int]], pairs: _Pairs
) -> dict[tuple[_Stand, int], _Numbers]:
    """Return shipped answers of heads on decoders, each of shape (prompts, 3), by name.

    The result is empty if the shipped table lacks a prompt.
    """
    worded = [one for one in made if one[0].wording is not None]
    table = _shipped_table("null_heads.parquet") if worded else pd.DataFrame()
    rows = _shipped_rows(table, pairs)
    if rows is None:
        return {}

    heads = {}
    for one in worded:
        name = head_name(null, *one)
        columns = [f"{name} {kind}" for kind in PROBABILITIES]
        if columns[0] in table:
            heads[one] = table[columns].to_numpy()[rows]

    return heads


def head_name(null: str, stand: tuple[str, int | None, str | None], number: int) -> str:
    """Return the name of an untrained head in ``data/null_heads.parquet``.

    Parameters
    ----------
    null : str
    stand : tuple
        The base, its layers and the wording.
    number : int
        The respondent's number, which seeds its random numbers.

    Returns
    -------
    str
        The name ends in a digest of the base's weights, the wording and the definition of the
        vectors, so that a head with different inputs gets a different name.

    Examples
    --------
    >>> head_name("random-heads", ("embedded", 3, None), 7)[:18]
    'random-heads-l3-s7'
    """
    stand = _Stand(*stand)
    read = models.vectors.reading_key(stand.base, stand.wording)
    return f"{_name(null, stand, number)} {read[:8]}"


def _shipped_rows(table: pd.DataFrame, pairs: _Pairs) -> NDArray[np.intp] | None:
    """Return the prompts' rows of a shipped table, or None if it lacks a prompt."""
    rows: NDArray[np.intp] = table.index.get_indexer(pd.Index([key_of(*pair) for pair in pairs]))
    return None if table.empty or (rows < 0).any() else rows


@functools.cache
def _shipped_table(name: str) -> pd.DataFrame:
    """Return a shipped table by prompt, with three columns per respondent, or an empty table."""
    path = shipped(name)
    return pd.read_parquet(path).set_index("key") if path.is_file() else pd.DataFrame()
