"""Benchmarks of this package beside others: ``make bench``, or the notebook ``benchmarks``.

A part is measured by one function: ``asking`` (prompts to probabilities), ``start`` (a cold
process), ``growth``, ``chat`` (an endpoint that takes a while), ``roofline`` (seconds of the
operations of a forward pass), ``operations`` (how many there are, counted). Every repetition is a
row of ``data/benchmarks.csv``; its ``statistics`` (Rasch, 2PL and alpha by other libraries, in
November 2026) are not measured again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from psychometrics.exceptions import ParameterError
from psychometrics.paths import data_dir

from .asking import MODELS, asking, start
from .chat import chat
from .growth import growth
from .operations import operations
from .roofline import roofline
from .rows import COLUMNS, OURS

PARTS = ("asking", "roofline", "operations", "start", "growth", "chat")
RECORDED = data_dir() / "benchmarks.csv"
__all__ = [
    "MODELS", "OURS", "PARTS", "RECORDED", "measure", "recorded", "summary",
]  # fmt: skip


def measure(
    path: str | Path,
    parts: Sequence[str] = PARTS,
    models: Sequence[str] = tuple(MODELS),
    repetitions: int = 5,
    qlatent: str = "auto",
    largest: int = 1_000_000,
) -> pd.DataFrame:
    """Measure parts anew; each is written as soon as it is there, in the place of what it was.

    Parameters
    ----------
    path : str or Path
        The CSV file. Rows of tasks that are not measured stay.
    parts : sequence of str
        Of :data:`PARTS`.
    models : sequence of str
        Of ``MODELS``, or folders of NLI classifiers.
    repetitions : int
        Of each tool, in turn with the others. Growth is measured once.
    qlatent : str
        "auto" makes an environment for qlatent where there is none, "none" leaves it out; else the
        path of a Python that has it.
    largest : int
        As in growth: most prompts; a tenth of the answers of people, a hundredth of a table.

    Returns
    -------
    DataFrame
        All that the file holds now, as :func:`recorded` gives it.

    Raises
    ------
    ParameterError
        There is no such part; nothing was measured.
    PsychometricsError
        A peer has failed.

    Examples
    --------
    >>> measure("benchmarks.csv", ["asknig"])
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: There is no part 'asknig': it must be one of asking...
    """
    if wrong := [part for part in parts if part not in PARTS]:
        raise ParameterError(
            f"There is no part '{wrong[0]}': it must be one of {', '.join(PARTS)}."
        )
    path = Path(path)
    how = {
        "asking": lambda: asking(models, repetitions, qlatent),
        "roofline": lambda: roofline(repetitions=repetitions),
        "operations": operations,
        "start": lambda: start(models[0], repetitions, qlatent),
        "growth": lambda: growth(largest),
        "chat": lambda: chat(repetitions),
    }
    for part in parts:
        rows = pd.DataFrame(how[part](), columns=list(COLUMNS))
        before = recorded(path)
        again = (before["part"] == part) & before["task"].isin(rows["task"])
        kept = before[~again]
        table = pd.concat([kept, rows], ignore_index=True) if len(kept) else rows
        beside = path.with_name(f".{path.name}.part")
        table.to_csv(beside, index=False, float_format="%.6g")
        beside.replace(path)
    return recorded(path)


def recorded(path: str | Path = RECORDED) -> pd.DataFrame:
    """What was measured, one row for each repetition.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    DataFrame
        ``part, task, size, tool, version, precision, repetition, seconds``; where they apply
        ``cpu_seconds, memory_mb, store_mb, gflop`` (of the work), ``peak_gflops`` (a second, in
        matrix multiplications of the same shapes), ``tokens``, ``agreement`` (the greatest
        difference to our result), ``operations`` and ``copies``; ``processor, date, note``. Of
        ``chat`` the size is how many requests are in flight, and the seconds are those of one
        request.

    Examples
    --------
    >>> set(PARTS) <= set(recorded()["part"])
    True
    """
    path = Path(path)
    if not path.is_file() or not path.stat().st_size:
        return pd.DataFrame(columns=list(COLUMNS))
    return pd.read_csv(path, dtype={"note": str, "version": str, "precision": str, "date": str})


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Medians over repetitions, and how many times as long as ours each tool takes.

    Parameters
    ----------
    table : DataFrame
        As :func:`recorded` gives it.

    Returns
    -------
    DataFrame
        One row per part, task, tool and precision: ``repetitions``; median ``seconds`` with
        ``low`` and ``high``; ``times_ours``, the median over rounds of its seconds over ours in
        the same round at the quickest of our precisions, with ``times_low`` and ``times_high``,
        and ``times_same``, over ours in the tool's own precision;
        ``share_of_peak``, the median of what it computes a second over what the machine's matrix
        multiplications do in the same round; ``tokens_per_second``; ``agreement``, ``version``,
        ``note``.

    Examples
    --------
    >>> rows = pd.DataFrame({"part": "start", "task": "first answer", "precision": "default",
    ...     "tool": ["psychometrics", "peer"], "repetition": 1, "seconds": [2.0, 5.0]})
    >>> summary(rows.reindex(columns=list(COLUMNS)))["times_ours"].tolist()
    [1.0, 2.5]
    """
    timed = table[table["seconds"].notna()].copy()
    timed["precision"] = timed["precision"].fillna("")
    own = timed[timed["tool"] == OURS]
    medians = own.groupby(["part", "task", "precision"])["seconds"].median().sort_values()
    best = medians.reset_index().drop_duplicates(["part", "task"])[["part", "task", "precision"]]
    same = own.groupby(["part", "task", "precision", "repetition"])["seconds"].median()
    own = own.merge(best, on=["part", "task", "precision"])
    own = own.groupby(["part", "task", "repetition"])["seconds"].median()
    rows = []
    for names, part in timed.groupby(["part", "task", "tool", "precision"], sort=False):
        keys = pd.MultiIndex.from_frame(part[["part", "task", "repetition"]])
        times = part["seconds"].to_numpy() / own.reindex(keys).to_numpy()
        times = times[np.isfinite(times)]
        alike = pd.MultiIndex.from_frame(part[["part", "task", "precision", "repetition"]])
        alike = part["seconds"].to_numpy() / same.reindex(alike).to_numpy()
        with_times = len(times) > 0
        seconds = part["seconds"]
        share = part["gflop"].astype(float) / seconds / part["peak_gflops"].astype(float)
        rows.append(
            dict(zip(("part", "task", "tool", "precision"), names, strict=True))
            | {
                "repetitions": len(part),
                **seconds.agg({"seconds": "median", "low": "min", "high": "max"}),
                "times_ours": np.median(times) if with_times else np.nan,
                "times_low": times.min() if with_times else np.nan,
                "times_high": times.max() if with_times else np.nan,
                "times_same": np.median(alike) if np.isfinite(alike).all() else np.nan,
                "share_of_peak": share.median(),
                "tokens_per_second": (part["tokens"].astype(float) / seconds).median(),
                "agreement": part["agreement"].astype(float).max(),
                "version": part["version"].iloc[-1],
                "note": part["note"].iloc[-1],
            }
        )
    return pd.DataFrame(rows)
