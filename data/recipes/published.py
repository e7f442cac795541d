"""Rebuild ``data/published``: ``python -m recipes.published``.

Readers convert each published set into the package's table of answers. Known errors in the files
are corrected here, and documented.

Only answers under the MIT licence are stored item by item; the other sets are stored as counts,
means and covariances, sums by scale score, and the fit of single runs and people. This takes a
minute on one core.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from psychometrics.checks import check_columns
from psychometrics.data import fetch, registry
from psychometrics.exceptions import DataError, ParameterError
from psychometrics.measures.intervals import row_correlations
from psychometrics.paths import data_dir
from psychometrics.questionnaires import Questionnaire, load_questionnaire
from psychometrics.questionnaires.answers import COLUMNS, tidy

OPEN = ("llmpersonality", "ai_like_humans", "students_mexico", "students_bmi", "adults_peru")
"""Sets under the MIT licence."""
LEAST = 60
"""Minimum number of rows without a gap for a group's covariances."""
SEED = 1


MODELS = (
    "llama3.1-8b", "llama3.3-70b", "mistral-7b", "mistral-large-123b", "qwen2.5-7b", "qwen2.5-72b",
)  # fmt: skip
"""Models of ``llm_questionnaires``, by family and size."""
CONDITIONS = ("baseline", "history", "inverted")
"""Ways of asking: each item in its own call; with the last five questions and answers in view; the
same with reversed labels."""
SOURCES = (
    "llm_questionnaires", "survey", "llmpersonality", "ai_like_humans", "students_mexico",
    "students_bmi", "adults_peru",
)  # fmt: skip
"""Published sets of answers."""
_LABELS = {
    "very inaccurate": 1, "moderately inaccurate": 2, "neither accurate nor inaccurate": 3,
    "moderately accurate": 4, "very accurate": 5,
}  # fmt: skip
_SOC_TURNED = (1, 2, 3, 7, 10)
"""Items whose published answers run from coherent to incoherent."""


def answers(source: str) -> pd.DataFrame:
    """Return a published set of answers as the package's table.

    Parameters
    ----------
    source : str
        One of ``SOURCES``: ``llm_questionnaires`` (IPIP-50, six open models, up to 1,000 runs
        in three conditions), ``survey`` (IPIP-50, 19,719 people), ``llmpersonality`` (IPIP-50,
        twelve models of 2024), ``ai_like_humans`` (BFI, eight models of 2026), ``students_mexico``
        (PHQ-9 and GAD-7), ``students_bmi`` (these and the PSS-10), ``adults_peru`` (SOC-13).

    Returns
    -------
    DataFrame
        The columns of every table of answers, and ``condition``. Answers to inverted labels are
        reversed, so that a high value always agrees with the item; answers to SOC-13 have the
        direction of the items in our own wording.

    Raises
    ------
    DataError
        A file cannot be fetched.
    ParameterError
        The source is none of these.

    Notes
    -----
    Corrected: the headers of ``llm_questionnaires`` name the domains in a different order from the
    values; a missing answer of the survey is 0; ``gad5`` of one Mexican student is 10 instead of 1;
    one model of ``llmpersonality`` wrote numbers next to labels of the opposite meaning (the label
    counts), and one repeated the labels before its answers (the last number counts). Left out: the
    condition with cycled items, whose values fit neither its header nor the order of the items, and
    the heights, weights and diagnoses of people.

    References
    ----------
    Münker (2025); Anand (2024); AI Like Humans Contributors (2026); the people's sets as named in
    the registry.

    Examples
    --------
    >>> answers("weather")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: source must be one of llm_questionnaires, survey, \
llmpersonality, ai_like_humans, students_mexico, students_bmi, adults_peru, got 'weather'.
    """
    if source not in SOURCES:
        raise ParameterError(f"source must be one of {', '.join(SOURCES)}, got '{source}'.")

    return {
        "llm_questionnaires": _runs,
        "survey": _survey,
        "llmpersonality": _llmpersonality,
        "ai_like_humans": _ai_like_humans,
        "students_mexico": _students_mexico,
        "students_bmi": _students_bmi,
        "adults_peru": _adults_peru,
    }[source]()


def _keys_of(source: str) -> list[str]:
    """Return the keys of a set's files in ``data/registry.yml``.

    Parameters
    ----------
    source : str
        One of ``SOURCES``.

    Returns
    -------
    list of str
        Keys for :func:`psychometrics.data.available`.

    Examples
    --------
    >>> _keys_of("adults_peru")
    ['adults_peru']
    """
    if source == "survey":
        return ["llm_questionnaires_items", "llm_questionnaires_people"]
    if source == "llm_questionnaires":
        names = [f"{source}_{c}_{m}" for c in CONDITIONS for m in MODELS]
        return ["llm_questionnaires_items", *names]
    return [key for key in registry() if key.startswith(source)]


@functools.cache
def _asked_order() -> tuple[str, ...]:
    """Return the IPIP-50's items in the order in which ``llm_questionnaires`` asks them.

    Items are matched by wording; this needs the set's file of items.

    Raises
    ------
    DataError
        The file cannot be fetched, or a statement is not one of the questionnaire's.
    """
    file = json.loads(fetch("llm_questionnaires_items").read_text(encoding="utf-8"))
    ours = {_plain(i.text): i.id for i in load_questionnaire("ipip50").items}
    given = sorted(file[0]["questions"], key=lambda question: question["id"])
    try:
        return tuple(ours[_plain(question["content"])] for question in given)
    except KeyError as error:
        raise DataError(f"The IPIP-50 has no item {error}: replace that copy.") from None


def _plain(text: str) -> str:
    """Return a statement without its subject and punctuation."""
    text = re.sub(r"^(i am|am|i)\s+", "", text.strip().lower())
    return re.sub(r"[^a-z]", "", text)


def _long(
    table: pd.DataFrame, questionnaire: str, condition: str, ids: Sequence[str] | None = None
) -> pd.DataFrame:
    """Turn a matrix of answers (index: respondent, run) into rows, with gaps as missing answers."""
    table = table.set_axis(list(ids) if ids is not None else list(table), axis=1)
    long = table.rename_axis(columns="item_id").stack(future_stack=True).rename("value")
    long = long.reset_index()
    low, high = {"soc13": (1, 7), "pss10": (0, 4)}.get(questionnaire, (None, None))
    given = load_questionnaire(questionnaire, texts=False) if low is None else None
    if given is not None:
        ends = [option.value for option in given.choices(given.items[0])]
        low = min(ends)
        high = max(ends)

    long["status"] = np.where(
        long["value"].isna(), "missing", np.where(long["value"].between(low, high), "ok",
                                                  "out_of_range")
    )  # fmt: skip
    long = long.assign(questionnaire=questionnaire, mode="published", condition=condition)

    if given is not None:
        return tidy(long, given)
    long["value"] = long["value"].astype(float).where(long["status"] == "ok")
    return long[[*COLUMNS, "condition"]]


def _indexed(table: pd.DataFrame, names: Sequence[str], runs: Sequence[int]) -> pd.DataFrame:
    index = pd.MultiIndex.from_arrays([list(names), list(runs)], names=["respondent_id", "run"])
    return table.set_axis(index, axis=0)


def _people(table: pd.DataFrame, prefix: str) -> pd.DataFrame:
    names = [f"{prefix}-{number:05d}" for number in range(1, len(table) + 1)]
    return _indexed(table, names, [1] * len(table))


def _runs() -> pd.DataFrame:
    parts = []
    for condition in CONDITIONS:
        for model in MODELS:
            # the header is wrong and not read: the columns follow the items' numbers
            table = pd.read_csv(
                fetch(f"llm_questionnaires_{condition}_{model}"), header=None, skiprows=1
            ).astype(float)

            if condition == "inverted":
                table = 6 - table

            table = _indexed(table, [model] * len(table), range(1, len(table) + 1))
            parts.append(_long(table, "ipip50", condition, _asked_order()))

    return pd.concat(parts, ignore_index=True)


def _survey() -> pd.DataFrame:
    table = pd.read_csv(fetch("llm_questionnaires_people"), skipinitialspace=True)
    columns = [f"{letter}{number}" for letter in "ENACO" for number in range(1, 11)]
    table = _people(table[columns].astype(float).replace(0, np.nan), "person")
    return _long(table, "ipip50", "people", _asked_order())


def _llmpersonality() -> pd.DataFrame:
    text = fetch("llmpersonality").read_text(encoding="utf-8")
    items = load_questionnaire("ipip50").items
    rows = {}
    for found in re.finditer(r'^  "?([\w.\- ]+)"?: \{\n    personality', text, re.MULTILINE):
        start = text.index("response: `", found.end()) + len("response: `")
        rows[found[1]] = _listed(text[start : text.index("`", start)], [i.text for i in items])
    table = pd.DataFrame.from_dict(rows, orient="index", columns=[i.id for i in items])
    return _long(_indexed(table, table.index, [1] * len(table)), "ipip50", "single")


def _listed(reply: str, statements: Sequence[str]) -> list[float]:
    """Return the answers in a numbered list, by label or else by number; the last one counts.

    If the list repeats the statements, an answer belongs to the statement that it repeats.
    """
    places = {_plain(text): place for place, text in enumerate(statements)}
    values = [np.nan] * len(statements)
    parts = re.split(r"^\s*\**(\d+)[.)]\s", reply, flags=re.MULTILINE)
    label = re.compile("|".join(_LABELS).replace(" ", r"\s+"), re.IGNORECASE)

    for number, text in zip(parts[1::2], parts[2::2], strict=True):
        place = int(number) - 1
        head, _, tail = text.strip().partition(".")
        rest = text
        if _plain(head) in places:
            place = places[_plain(head)]
            rest = tail

        if not 0 <= place < len(values):
            continue
        named = label.search(rest)
        if named:
            values[place] = _LABELS[re.sub(r"\s+", " ", named[0].lower())]
        elif digit := re.match(r"\D{0,3}([1-5])\b", rest):
            values[place] = int(digit[1])

    return values


def _ai_like_humans() -> pd.DataFrame:
    questionnaire = load_questionnaire("bfi", texts=False)
    rows = {}
    for key in _keys_of("ai_like_humans"):
        reply = fetch(key).read_text(encoding="utf-8")
        numbers = dict(re.findall(r"^(\d+)\.\s*([1-5])\s*$", reply, re.MULTILINE))
        rows[key.removeprefix("ai_like_humans_")] = [
            float(numbers.get(item.id.rpartition("_")[2], np.nan)) for item in questionnaire.items
        ]

    table = pd.DataFrame.from_dict(
        rows, orient="index", columns=[i.id for i in questionnaire.items]
    )
    return _long(_indexed(table, table.index, [1] * len(table)), "bfi", "single")


def _students_mexico() -> pd.DataFrame:
    table = pd.read_csv(fetch("students_mexico"))
    table["gad5"] = table["gad5"].replace(10, 1)  # one cell; the options end at 3
    return _both(table, "phq{}", "gad{}", "mexico")


def _students_bmi() -> pd.DataFrame:
    table = pd.read_csv(fetch("students_bmi"), encoding="utf-8-sig")
    stress = table[[f"S{n}" for n in range(1, 11)]].astype(float)
    stress = _long(_people(stress, "bmi"), "pss10", "people", [f"pss10_{n}" for n in range(1, 11)])
    return pd.concat([_both(table, "D{}", "A{}", "bmi"), stress], ignore_index=True)


def _both(table: pd.DataFrame, phq: str, gad: str, prefix: str) -> pd.DataFrame:
    """Return the same people's answers to PHQ-9 and GAD-7."""
    parts = []
    for name, form, size in (("phq9", phq, 9), ("gad7", gad, 7)):
        own = table[[form.format(n) for n in range(1, size + 1)]].astype(float)
        ids = [f"{name}_{n}" for n in range(1, size + 1)]
        parts.append(_long(_people(own, prefix), name, "people", ids))
    return pd.concat(parts, ignore_index=True)


def _adults_peru() -> pd.DataFrame:
    table = pd.read_csv(fetch("adults_peru"))
    own = table[[f"SOC_{n}" for n in range(1, 14)]].astype(float)
    items = load_questionnaire("soc13").items
    ids = [item.id for item in items]
    for n, (column, item) in enumerate(zip(own, items, strict=True), start=1):
        # high is coherent where not turned; our item then speaks for or against coherence
        if (n in _SOC_TURNED) == (item.keying == 1):
            own[column] = 8 - own[column]
    return _long(_people(own, "peru"), "soc13", "people", ids)


def _build_published(folder: Path | None = None) -> None:
    """Write the five files from the fetched sets.

    Parameters
    ----------
    folder : Path, optional
        Folder to write to, by default ``data/published``.

    Raises
    ------
    DataError
        A file cannot be fetched.
    """
    folder = data_dir() / "published" if folder is None else folder
    folder.mkdir(parents=True, exist_ok=True)
    text = {"index": False, "lineterminator": "\n"}
    whole = pd.concat([answers(source).assign(source=source) for source in OPEN])
    whole = whole[whole["questionnaire"] != "pss10"]  # not a questionnaire of the project
    packed = {"method": "gzip", "mtime": 1}
    whole.to_csv(folder / "answers.csv.gz", compression=packed, **text)
    tables = _tables()
    _counts(tables).to_csv(folder / "counts.csv.gz", compression=packed, **text)
    questionnaire = load_questionnaire("ipip50")
    turned = {
        item for scale in questionnaire.scales for item in scale.reverse
    }  # a keyed answer is 6 minus the given one
    keyed = {
        name: table.assign(**{item: 6 - table[item] for item in turned})
        for name, table in tables.items()
    }
    _moments(keyed).to_parquet(folder / "moments.parquet", index=False)
    parts = [
        by_score(table, questionnaire).assign(respondent_id=name[0], condition=name[1])
        for name, table in keyed.items()
        if name != ("people", "people") and name[1] != "inverted"
    ]
    pd.concat(parts, ignore_index=True).astype(
        {"score": "int16", "n": "int32", "sum": "int32", "squares": "int32"}
    ).to_parquet(folder / "by_score.parquet", index=False)
    _fit(tables).to_csv(folder / "fit.csv", float_format="%.6f", **text)


def _tables() -> dict[tuple[str, str], pd.DataFrame]:
    """Return raw answers (runs or people by items) by group, with halves and random answers."""
    items = [item.id for item in load_questionnaire("ipip50").items]
    tables = {}
    runs = answers("llm_questionnaires")
    for name, part in runs.groupby(["respondent_id", "condition"], sort=False):
        tables[name] = part.pivot(index="run", columns="item_id", values="value")[items]

    people = answers("survey").pivot(index="respondent_id", columns="item_id", values="value")
    people = people[items].reset_index(drop=True)
    tables["people", "people"] = people
    tables["people_a", "people"], tables["people_b", "people"] = people[::2], people[1::2]
    draws = np.random.default_rng(SEED).integers(1, 6, (1000, len(items)))
    tables["random", "people"] = pd.DataFrame(draws, columns=items).astype(float)

    return tables


def _counts(tables: dict) -> pd.DataFrame:
    parts = []
    for (name, condition), table in tables.items():
        if name in ("people_a", "people_b", "random"):
            continue
        counts = pd.DataFrame({str(value): (table == value).sum() for value in range(1, 6)})
        counts.insert(0, "missing", table.isna().sum())
        counts = counts.rename_axis("item_id").reset_index()
        counts.insert(0, "condition", condition)
        counts.insert(0, "respondent_id", name)
        parts.append(counts)

    return pd.concat(parts, ignore_index=True)


def _moments(tables: dict) -> pd.DataFrame:
    parts = []
    for (name, condition), table in tables.items():
        whole = table.dropna()
        if len(whole) < LEAST:
            continue

        moments = whole.cov().rename_axis("item_id").reset_index()
        for column, value in (("mean", whole.mean().to_numpy()), ("n", len(whole)),
                              ("condition", condition), ("respondent_id", name)):  # fmt: skip
            moments.insert(0, column, value)

        parts.append(moments)

    order = ["respondent_id", "condition", "item_id", "n", "mean"]
    frame = pd.concat(parts, ignore_index=True)
    return frame[[*order, *(c for c in frame if c not in order)]]


def person_fit(values: pd.DataFrame, mean: pd.Series, covariance: pd.DataFrame) -> pd.DataFrame:
    r"""Return the profile of each set of answers, and its distance from people.

    Parameters
    ----------
    values : DataFrame, shape (R, I)
        Answers, one row per person or run.
    mean : Series
        People's mean of each item.
    covariance : DataFrame, shape (I, I)
        Covariance of people's answers.

    Returns
    -------
    DataFrame
        ``profile``: correlation of the row with the means, over items (high for people who answer
        like others, 0 for answers in a shuffled order), and ``distance``: :math:`D^2 = (x -
        \mu)^\top \Sigma^{-1} (x - \mu) / I`, 1 on average in people. The first is missing if a row
        does not vary, both if it has a gap.

    References
    ----------
    Meade and Craig (2012) on both as signs of careless answers.
    """
    items = list(values)
    sigma = covariance.loc[items, items].to_numpy(dtype=float)
    centre = mean.loc[items].to_numpy(dtype=float)
    table = values.to_numpy(dtype=float)
    gap = np.isnan(table).any(axis=1)
    off = np.where(gap[:, None], 0.0, table - centre)
    distance = np.einsum("ri,ri->r", off, np.linalg.solve(sigma, off.T).T) / len(items)
    profile = row_correlations(table, np.broadcast_to(centre, table.shape))
    distance[gap] = np.nan

    return pd.DataFrame({"profile": profile, "distance": distance}, index=values.index)


def by_score(keyed: pd.DataFrame, questionnaire: Questionnaire) -> pd.DataFrame:
    """Return the answers to each item by the sum of its scale, for ``standardised_dif``.

    Parameters
    ----------
    keyed : DataFrame, shape (R, I)
        Keyed answers. A scale leaves out rows with a gap in it.
    questionnaire : Questionnaire

    Returns
    -------
    DataFrame
        ``item_id, score`` (the scale's sum), ``n, sum, squares`` of the item's answers.

    Raises
    ------
    ParameterError
        An item is missing.
    """
    parts = []
    for scale in questionnaire.scales:
        check_columns(keyed, (), scale.items)
        own = keyed[list(scale.items)].dropna().astype(float)
        total = own.sum(axis=1)

        for item in scale.items:
            scores = pd.DataFrame({"score": total, "value": own[item], "square": own[item] ** 2})
            named = {"n": ("value", "size"), "sum": ("value", "sum"), "squares": ("square", "sum")}
            means = scores.groupby("score").agg(**named)
            parts.append(means.reset_index().assign(item_id=item))

    columns = ["item_id", "score", "n", "sum", "squares"]
    return pd.concat(parts, ignore_index=True)[columns]


def _fit(tables: dict) -> pd.DataFrame:
    """Compare single rows, the other half and shuffled rows with one half of the people."""
    half = tables["people_a", "people"].dropna()
    mean = half.mean()
    covariance = half.cov()
    rng = np.random.default_rng(SEED)
    rows = []
    bars = None
    order = [("people_b", "people"), *(k for k in tables if not k[0].startswith("people"))]
    for name in order:
        whole = tables[name].dropna()
        if len(whole) < LEAST:
            continue

        mixed = pd.DataFrame(rng.permuted(whole.to_numpy(), axis=1), columns=whole.columns)
        for kind, values in (("given", whole), ("shuffled", mixed)):
            fit = person_fit(values, mean, covariance)
            if bars is None:
                bars = fit["profile"].quantile(0.01), fit["distance"].quantile(0.99)

            row = {"respondent_id": name[0], "condition": name[1], "answers": kind, "n": len(fit)}
            for column in fit:
                for share in (0.025, 0.5, 0.975):
                    row[f"{column}_{share}"] = fit[column].quantile(share)

            row["profile_unlike"] = (fit["profile"] < bars[0]).mean()
            row["distance_unlike"] = (fit["distance"] > bars[1]).mean()
            rows.append(row)

    return pd.DataFrame(rows)


if __name__ == "__main__":
    _build_published()
