"""The qualitative protocol: sheets of completions for annotators, and their agreement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from .beliefs import MASK
from .exceptions import ParameterError
from .hurtfulness import hurtful, missed
from .studies.fairbelief import read_table


def completed(
    queries: Sequence[str],
    rows: Sequence[Sequence[str]],
    hits: np.ndarray,
    n: int = 8,
    seed: int = 0,
) -> list[str]:
    """Sentences to look at: a seeded sample of hits, the mask replaced by the completion.

    Parameters
    ----------
    queries : sequence of T str
    rows : sequence of T sequences of K str
        Completions.
    hits : ndarray of bool, shape (T, K)
        Those to draw from.
    n : int
        How many, fewer if there are not as many different sentences.
    seed : int
        Of the draw.

    Returns
    -------
    list of str
        Offensive.

    Examples
    --------
    >>> completed(["It is [M]."], [["fine", "a rat"]], np.array([[False, True]]))
    ['It is a rat.']
    """
    places = np.random.default_rng(seed).permutation(np.argwhere(hits)).tolist()
    drawn = (queries[t].replace(MASK, rows[t][k].strip()) for t, k in places)
    return list(dict.fromkeys(drawn))[:n]


def lexicon_errors(
    queries: Sequence[str],
    rows: Sequence[Sequence[str]],
    words: Iterable[str],
    everyday: Iterable[str],
    n: int = 5,
    seed: int = 0,
) -> dict[str, list[str]]:
    """Sentences that a lexicon may judge wrongly, either way.

    Parameters
    ----------
    queries : sequence of T str
    rows : sequence of T sequences of K str
        Completions.
    words : iterable of str
        Lemmas.
    everyday : iterable of str
        Those among them that are ordinary words.
    n, seed
        As in :func:`completed`.

    Returns
    -------
    dict of lists of str
        Sentences counted for an everyday word alone, and sentences not counted because of a capital
        letter, a final s or a lemma of several words. Offensive.
    """
    words, everyday = set(words), set(everyday)
    found = {
        "Counted for an everyday word alone": hurtful(rows, everyday & words)
        & ~hurtful(rows, words - everyday)
    }
    labels = {
        "capital": "a capital letter",
        "plural": "a final s",
        "phrase": "a lemma of several words",
    }
    for name, hits in missed(rows, words).items():
        found[f"Not counted because of {labels[name]}"] = hits
    return {label: completed(queries, rows, hits, n, seed) for label, hits in found.items()}


def sheets(
    queries: Sequence[str],
    rows: dict[str, Sequence[Sequence[str]]],
    annotators: Sequence[str],
    instances: int = 60,
    shared: int = 0,
    top: int = 10,
    seed: int = 0,
) -> pd.DataFrame:
    """Sheets for annotators: an even, seeded share of the templates, with the top completions.

    Parameters
    ----------
    queries : sequence of T str
    rows : dict of sequences of T sequences of K str
        Completions by model.
    annotators : sequence of str
        Their names.
    instances : int
        Templates drawn, shared ones included.
    shared : int
        How many of them go to every annotator, so that agreement can be measured; the rest are
        dealt out in turn.
    top : int
        Completions of each model for each template.
    seed : int
        Of the draw.

    Returns
    -------
    DataFrame
        ``annotator, instance, respondent_id, template, rank, completion`` and an empty ``label``.
        Offensive; save one annotator's rows with ``to_csv``.

    Raises
    ------
    ParameterError
        There are fewer templates than asked for, no annotators, or two of the same name.

    References
    ----------
    Setzu et al. (2024), section 4.2: 60 instances, three annotators, top 10.
    """
    if not 0 <= shared <= instances <= len(queries):
        raise ParameterError(
            f"shared ({shared}) must be at most instances ({instances}), and those at most the "
            f"{len(queries)} templates."
        )
    if not annotators or len(set(annotators)) != len(annotators):
        raise ParameterError("Name at least one annotator, and each only once.")
    drawn = np.random.default_rng(seed).permutation(len(queries))[:instances].tolist()
    hands = [(t, name) for t in drawn[:shared] for name in annotators]
    own = drawn[shared:]
    hands += [(t, annotators[i % len(annotators)]) for i, t in enumerate(own)]
    lines = [
        (name, t, model, queries[t], k + 1, model_rows[t][k], "")
        for t, name in hands
        for model, model_rows in rows.items()
        for k in range(top)
    ]
    columns = ["annotator", "instance", "respondent_id", "template", "rank", "completion", "label"]
    order = ["annotator", "instance", "respondent_id", "rank"]
    return pd.DataFrame(lines, columns=columns).sort_values(order, ignore_index=True)


def read_annotations(paths: Iterable[str | Path], labels: Sequence[str]) -> pd.DataFrame:
    """Filled sheets, read back and checked.

    Parameters
    ----------
    paths : iterable of paths
        CSV files as saved from :func:`sheets`.
    labels : sequence of str
        Labels that may be given.

    Returns
    -------
    DataFrame
        The sheets one below the other.

    Raises
    ------
    ParameterError
        A label is missing or unknown, or an annotator has labelled something twice.
    """
    parts = []
    for path in paths:
        frame = read_table(Path(path), ("annotator", "instance", "respondent_id", "rank", "label"))
        wrong = frame.index[~frame["label"].isin(labels)]
        if len(wrong):
            raise ParameterError(
                f"{path}, row {wrong[0] + 2}: the label must be one of {', '.join(labels)}, got "
                f"'{frame['label'][wrong[0]]}'."
            )
        parts.append(frame.astype({"instance": int, "rank": int}))
    if not parts:
        raise ParameterError("Name at least one filled sheet.")
    whole = pd.concat(parts, ignore_index=True)
    twice = whole.duplicated(["annotator", "instance", "respondent_id", "rank"])
    if twice.any():
        row = whole[twice].iloc[0]
        raise ParameterError(
            f"{row['annotator']} labelled instance {row['instance']} of {row['respondent_id']}, "
            f"rank {row['rank']}, twice: keep one of the two."
        )
    return whole


def annotation_agreement(annotations: pd.DataFrame) -> pd.DataFrame:
    """Agreement of annotators on what all of them labelled.

    Parameters
    ----------
    annotations : DataFrame
        As :func:`read_annotations` gives it.

    Returns
    -------
    DataFrame
        ``annotators, n, agreement, kappa``: one row for all (mean pairwise agreement, Fleiss'
        kappa) and one for each pair (Cohen's kappa).

    Raises
    ------
    ParameterError
        There are fewer than two annotators, or nothing that all of them labelled.

    References
    ----------
    Fleiss (1971); Cohen (1960).
    """
    from sklearn.metrics import cohen_kappa_score
    from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

    keys = ["instance", "respondent_id", "rank"]
    wide = annotations.pivot(index=keys, columns="annotator", values="label").dropna()
    if wide.empty or wide.shape[1] < 2:
        raise ParameterError(
            "Agreement needs completions that two or more annotators all labelled: draw the "
            "sheets with shared above 0."
        )
    pairs = []
    for one, other in combinations(wide.columns, 2):
        same = float((wide[one] == wide[other]).mean())
        labels = sorted(set(wide[one]) | set(wide[other]))
        kappa = cohen_kappa_score(wide[one], wide[other]) if len(labels) > 1 else np.nan
        pairs.append((f"{one}, {other}", len(wide), same, kappa))
    counts = aggregate_raters(wide.to_numpy())[0]
    together = fleiss_kappa(counts, method="fleiss") if counts.shape[1] > 1 else np.nan
    mean = float(np.mean([pair[2] for pair in pairs]))
    lines = [(", ".join(wide.columns), len(wide), mean, together)]
    lines += pairs if wide.shape[1] > 2 else []
    return pd.DataFrame(lines, columns=["annotators", "n", "agreement", "kappa"])
