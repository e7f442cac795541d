"""PsychoBench: its thirteen scales beside the paper's, and what differs upstream."""

from __future__ import annotations

import pandas as pd

from ..questionnaires import load_questionnaire, psychobench_keys, upstream_file


def overview() -> pd.DataFrame:
    """The thirteen scales beside the paper's Table 5: items, range, scoring, norms.

    Returns
    -------
    DataFrame
        One row per subscale: ``questionnaire, scale, items, reversed, low, high, mode, groups`` (of
        norms).

    Examples
    --------
    >>> overview().groupby("questionnaire", sort=False)["items"].sum()["epq-r"].item()
    100
    """
    rows = []
    for name in psychobench_keys():
        questionnaire = load_questionnaire(name, texts=False)
        for scale in questionnaire.scales:
            low, high = questionnaire.span(scale)
            rows.append(
                {
                    "questionnaire": name,
                    "scale": scale.title,
                    "items": len(scale.items),
                    "reversed": len(scale.reverse),
                    "low": low,
                    "high": high,
                    "mode": scale.mode,
                    "groups": sum(norm.scale == scale.id for norm in questionnaire.norms),
                }
            )
    return pd.DataFrame(rows)


def upstream_differences() -> pd.DataFrame:
    """Compare the project's keys and norms with PsychoBench's file, number by number.

    Returns
    -------
    DataFrame
        ``questionnaire, place, upstream, ours``, one row per difference; empty when only names
        differ, which :func:`corrections` lists.
    """
    rows = []
    upstream = {entry["name"]: entry for entry in upstream_file()}
    for name, keys in psychobench_keys().items():
        theirs = upstream[keys["upstream"]]
        low, high = keys["range"]
        pairs = [
            ("items", len(theirs["questions"]), keys["n_items"]),
            ("reversal", theirs["scale"], low + high),
            ("mode", {"AVG": "mean", "SUM": "sum"}[theirs["compute_mode"]], keys["mode"]),
            ("reverse", sorted(theirs["reverse"]), keys["reverse"]),
            ("scales", len(theirs["categories"]), len(keys["scales"])),
        ]
        for category, scale in zip(theirs["categories"], keys["scales"], strict=True):
            pairs.append((scale["title"], sorted(category["cat_questions"]), scale["items"]))
            crowds = [(c["mean"], round(c["std"], 4), c["n"]) for c in category["crowd"]]
            ours = [(n["mean"], round(n["sd"], 4), n["n"]) for n in scale["norms"]]
            pairs.append((f"{scale['title']}, norms", crowds, ours))
        rows += [(name, place, str(a), str(b)) for place, a, b in pairs if a != b]
    return pd.DataFrame(rows, columns=["questionnaire", "place", "upstream", "ours"])
