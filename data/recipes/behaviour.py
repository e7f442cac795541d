"""Measure smollm2's behaviour in its roles: ``python -m recipes.behaviour [JUDGE]``.

This asks smollm2 which facts it knows and which requests it declines, and writes
``data/behaviour.csv``, in a few minutes. With a JUDGE, a chat model, it prints instead how well the
judge's readings agree with labelled replies.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from psychometrics.exceptions import PsychometricsError
from psychometrics.models.sources import SMOLLM2
from psychometrics.paths import data_dir
from psychometrics_book.studies.behaviour import declined, judged, known, requests_in
from psychometrics_book.studies.content import rater_agreement


def agreement(judge: str | Path, store: str | Path | None = None, **how: object) -> pd.DataFrame:
    """Compare the word rules and a judge with labelled replies of smollm2.

    Returns
    -------
    DataFrame
        By reader (``rules, judge``): the number of ``replies``; those that ``decline`` by the
        label, by the reader (``says``), and by both; ``agreement`` and Krippendorff's alpha.
    """
    keys = ["role", "item", "run"]
    labelled = pd.read_csv(data_dir() / "texts" / "labelled_replies.csv").dropna()
    replies = pd.read_csv(data_dir() / "behaviour.csv").query("part == 'requests'")
    table = labelled.merge(replies, on=keys).merge(
        requests_in()[["request", "text"]], left_on="item", right_on="request"
    )
    table["judge"] = judged(table["text"], table["reply"], judge, store, **how)
    rows = {}
    for reader, column in (("rules", "value"), ("judge", "judge")):
        sheets = [table.assign(rater=r, read=table[c])[["rater", *keys, "read"]].dropna()
                  for r, c in (("label", "declines"), (reader, column))]  # fmt: skip
        agreements = rater_agreement(pd.concat(sheets), ["read"], keys).iloc[0]
        both = (table["declines"] == 1) & (table[column] == 1)
        rows[reader] = {
            "replies": len(table), "decline": int((table["declines"] == 1).sum()),
            "says": int((table[column] == 1).sum()), "both": int(both.sum()),
            "agreement": agreements["agreement"], "alpha": agreements["krippendorff_alpha"],
        }  # fmt: skip

    return pd.DataFrame(rows).T


def _main() -> None:
    if sys.argv[1:]:
        try:
            print(agreement(sys.argv[1]).to_string())
        except PsychometricsError as error:
            sys.exit(str(error))
        return

    found = pd.concat([known(SMOLLM2), declined(SMOLLM2)], ignore_index=True)
    found["run"] = found["run"].astype(int)
    found["value"] = found["value"].astype(int)
    found.to_csv(data_dir() / "behaviour.csv", index=False)


if __name__ == "__main__":
    _main()
