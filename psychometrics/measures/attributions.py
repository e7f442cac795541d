"""Attributions: each word's contribution to the answer, measured by leaving the word out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from ..checks import check_columns
from ..exceptions import ParameterError

_SENTENCES = ("premise", "hypothesis")
_Answer = Callable[[Sequence[tuple[str, str]]], np.ndarray]
_COLUMNS = ["item_id", "term", "intensifier", *_SENTENCES]
# Floor for probabilities, so that their logarithm is finite.
_SMALLEST = 1e-12


def word_attributions(answer: _Answer, prompts: pd.DataFrame) -> pd.DataFrame:
    """Ask each prompt again without each of its words in turn.

    A term or an intensifier of several words is left out as a whole. The method needs only answers,
    so it applies to every respondent and, in the same way, to every null respondent.

    Parameters
    ----------
    answer : callable
        A function that takes n pairs of premise and hypothesis and returns probabilities, shape (n,
        3), entailment first, such as the ``answer`` of a respondent from
        :func:`psychometrics.load_respondent`.
    prompts : DataFrame
        Prompts, as :func:`psychometrics.prompts` returns them, or some of their rows.

    Returns
    -------
    DataFrame
        One row per word: the columns of ``prompts``; ``sentence`` (*premise* or *hypothesis*),
        ``word``, and its ``part`` (*term*, *intensifier*, or the sentence); ``attribution``, the
        log probability of entailment minus its value without the word; ``share``, the attribution
        divided by the sum of the absolute attributions of its prompt, between -1 and 1.

    Raises
    ------
    ParameterError
        A column is missing, there is no prompt, or the answers have the wrong shape.

    References
    ----------
    Zeiler and Fergus (2014) for occlusion; Li, Monroe and Jurafsky (2016) for words.

    Examples
    --------
    >>> prompt = {"item_id": "a", "term": "calm", "intensifier": "always",
    ...           "premise": "I am calm", "hypothesis": "Always so."}
    >>> def answer(pairs):  # a respondent that looks for one word
    ...     return np.array([[0.8 if "calm" in one else 0.2, 0.1, 0.1] for one, other in pairs])
    >>> words = word_attributions(answer, pd.DataFrame([prompt]))
    >>> words.loc[words["word"] == "calm", "attribution"].round(2).tolist()
    [1.39]
    """
    check_columns(prompts, _COLUMNS)
    if prompts.empty:
        raise ParameterError("prompts: the table is empty; give at least one prompt.")

    rows: list[tuple[int, str, str, str]] = []  # for each word: prompt, sentence, text and kind
    shorter_pairs: list[tuple[str, str]] = []
    pairs = list(prompts[[*_SENTENCES]].itertuples(index=False, name=None))
    for number, prompt in enumerate(prompts.to_dict("records")):
        spans = _locate_parts(prompt)
        for place, sentence in enumerate(_SENTENCES):
            text = prompt[sentence]
            # a term or an intensifier counts as one word
            units = [(start, end, name) for name, (at, start, end) in spans.items() if at == place]
            for match in re.finditer(r"\w[\w'’-]*", text):
                start, end = match.span()
                if all(end <= unit[0] or start >= unit[1] for unit in units):
                    units.append((start, end, sentence))

            for start, end, kind in sorted(units):
                rows.append((number, sentence, text[start:end], kind))
                shorter = prompt | {sentence: " ".join((text[:start] + text[end:]).split())}
                shorter_pairs.append((shorter["premise"], shorter["hypothesis"]))

    numbers = [row[0] for row in rows]
    words = pd.DataFrame(rows, columns=["prompt", "sentence", "word", "part"])
    words["attribution"] = _log_entailment(answer, pairs)[numbers]
    words["attribution"] -= _log_entailment(answer, shorter_pairs)
    sizes = words["attribution"].abs().groupby(words["prompt"]).transform("sum")
    words["share"] = words["attribution"] / sizes.where(sizes > 0)

    repeated = prompts.iloc[numbers].reset_index(drop=True)
    return pd.concat([repeated, words.drop(columns="prompt")], axis=1)


def _locate_parts(prompt: Mapping[str, str] | pd.Series) -> dict[str, tuple[int, int, int]]:
    """Locate a prompt's term and intensifier: return the sentence (0 or 1), start and end of each.

    The search for a term begins in the premise, the search for an intensifier in the hypothesis.

    Examples
    --------
    >>> _locate_parts({"term": "calm", "intensifier": "rarely", "premise": "I feel calm.",
    ...             "hypothesis": "Rarely so."})
    {'term': (0, 7, 11), 'intensifier': (1, 0, 6)}
    """
    spans = {}
    for name, order in (("term", (0, 1)), ("intensifier", (1, 0))):
        word = re.compile(rf"(?<!\w){re.escape(prompt[name])}(?!\w)", re.IGNORECASE)
        for place in order:
            match = word.search(prompt[_SENTENCES[place]])
            if match:
                spans[name] = (place, *match.span())
                break

    return spans


def _log_entailment(answer: _Answer, pairs: list[tuple[str, str]]) -> np.ndarray:
    """Return each pair's log probability of entailment, asking each distinct pair once."""
    unique = list(dict.fromkeys(pairs))
    values = np.asarray(answer(unique), dtype=float)
    if values.shape != (len(unique), 3):
        raise ParameterError(f"answer: shape {values.shape} for {len(unique)} pairs; give (n, 3).")
    logs = dict(zip(unique, np.log(np.maximum(values[:, 0], _SMALLEST)), strict=True))
    return np.array([logs[pair] for pair in pairs])
