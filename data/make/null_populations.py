"""Makes ``data/null_populations.parquet``: ``python -m data.make.null_populations``.

The plan is ``data/plans/within-base.yml``. Each of 200 populations has an untrained head in the
place of every embedded member, on the member's base and number of layers; no two populations share
a head. Of every population the file has each kind of evidence within each base, for heads of four
sizes. ``data/within_base.csv`` compares the members with them under the plan's other choices.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from psychometrics.asking.ask import ask
from psychometrics.asking.population import population, population_table, untouched_bases
from psychometrics.measures.evidence import evidence, jackknife, profiles, reached, resized
from psychometrics.measures.nulls import null_answers
from psychometrics.modes.nli import PROBABILITIES
from psychometrics.paths import data_dir
from psychometrics.questionnaires import load_questionnaire
from psychometrics.studies.untrained import EXPECTED, PLACEBOS, SIZES

from . import dose

NAMES, PRIMARY = ("gad7", "phq9", "soc13", *PLACEBOS), ("alpha", "correlations", "silhouette")
POPULATIONS = 200
ENDS = (7, 16, 29)
"""Where the items of the three questionnaires end, in the order of a profile's columns."""


def _main() -> None:
    loaded = [load_questionnaire(name) for name in NAMES]
    members = population("encoders") + population("decoders")
    table = population_table().set_index("respondent_id").loc[members]
    bases = table["family"]
    answers = ask(loaded, members, progress=False)
    ours = profiles(answers, loaded)
    by = bases.to_numpy()
    rows = [evidence(ours, loaded, EXPECTED, by).assign(size="trained", population=0)]
    rows[0]["single"] = _single(ours, by)
    observed, drawn = _choices(ours, table), []
    observed |= dict.fromkeys(("means over prompts kept", "other seeds"), observed["as planned"])
    for number, null in _populations(loaded, members):
        print(number, flush=True)
        if number >= POPULATIONS:  # the plan's other seeds
            values = _arrays(profiles(resized(null, answers), loaded))
            drawn.append(pd.concat({"other seeds": _primary(values, by)}))
            continue
        for size, factor in SIZES.items():
            heads = profiles(null if factor is None else resized(null, answers, factor), loaded)
            found = evidence(heads, loaded, EXPECTED, by)
            rows.append(found.assign(size=size, population=number, single=_single(heads, by)))
            if size == "matched":
                drawn.append(pd.concat(_choices(heads, table)))
        values = _arrays(profiles(_grown(null, answers), loaded))
        drawn.append(pd.concat({"means over prompts kept": _primary(values, by)}))
        if number == POPULATIONS - 1:
            _ship_populations(pd.concat(rows))
            _ship_choices(observed, pd.concat(drawn))
    _ship_choices(observed, pd.concat(drawn))


def _single(table: pd.DataFrame, bases: np.ndarray) -> list:
    """Return the mean silhouettes of single respondents, a list for each base, none for both."""
    means = _arrays(table)[1].mean(axis=1).astype("float32")
    return [means[bases == base].tolist() for base in dict.fromkeys(bases)] + [None]


def _ship_populations(frame: pd.DataFrame) -> None:
    frame = frame.rename_axis("base").reset_index()
    frame = frame.astype(dict.fromkeys(frame.select_dtypes("float"), "float32"))
    frame.to_parquet(data_dir() / "null_populations.parquet", index=False, compression="zstd")


def _ship_choices(observed: dict[str, pd.DataFrame], drawn: pd.DataFrame) -> None:
    found = []
    for choice, table in observed.items():
        for base in table.index if choice in drawn.index else ():
            compared = reached(table.loc[base], drawn.loc[[(choice, base)]])
            compared = compared.rename_axis("evidence").reset_index()
            found.append(compared.assign(choice=choice, base=base))
    whole = pd.concat(found).set_index(["choice", "base", "evidence"]).reset_index()
    whole.to_csv(data_dir() / "within_base.csv", index=False, float_format="%.6g")


def _populations(loaded: list, members: list[str]) -> Iterator[tuple[int, pd.DataFrame]]:
    """Yield answers of a head in the place of each member; no head comes twice."""
    number, bases, frame = len(members), untouched_bases(members), None
    for draw in range(2 * POPULATIONS):
        answers = null_answers(loaded, "random-heads", number, seed=draw * number, **bases)
        if frame is None:  # texts are numbered once
            texts = ["respondent_id", "questionnaire", "item_id", "term", "intensifier"]
            frame = answers.astype(dict.fromkeys(texts, "category"))
        yield draw, frame.assign(**answers[list(PROBABILITIES)])


def _arrays(table: pd.DataFrame) -> np.ndarray:
    """Return scores and silhouettes of the items of the three questionnaires, shape (2, R, 29)."""
    return np.stack([table[name].to_numpy()[:, : ENDS[-1]] for name in ("source", "silhouette")])


def _primary(values: np.ndarray, bases: np.ndarray, centre=np.mean) -> pd.DataFrame:
    """Return the primary statistics within each base and combined; quicker than `evidence`."""
    found = {}
    for base in dict.fromkeys(bases):
        source, width = values[:, bases == base]
        parts = np.split(source, ENDS[:-1], axis=1)
        sums = [part.sum(axis=1) for part in parts]
        alphas = [
            (1 - part.var(axis=0).sum() / total.var()) * part.shape[1] / (part.shape[1] - 1)
            for part, total in zip(parts, sums, strict=True)
        ]
        rank = np.corrcoef([rankdata(total) for total in sums])
        turned = [rank[0, 1], -rank[0, 2], -rank[1, 2]]
        least = min(turned) if centre is np.mean else centre(turned)
        found[base] = [centre(alphas), least, centre(width)]
    found = pd.DataFrame(found, PRIMARY).T
    if len(found) > 1:
        counts = pd.Series(bases).value_counts()
        found.loc["both"] = found.mul(counts / counts.sum(), axis=0).sum()
    return found


def _choices(table: pd.DataFrame, members: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the primary statistics under each choice that takes other members or means."""
    bases, values = members["family"].to_numpy(), _arrays(table)
    default, six = members["default"].to_numpy(), (members["layers"] == 6).to_numpy()
    found = {
        "as planned": _primary(values, bases),
        "medians": _primary(values, bases, np.median),
        "default members": _primary(values[:, default], bases[default]),
        "six layers": _primary(values[:, six], bases[six]),
    }
    for place, name in enumerate(members.index):
        others = (np.arange(len(members)) != place) & (bases == bases[place])
        found[f"without {name}"] = _primary(values[:, others], bases[others])
    return found


def _grown(null: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """Return heads as large as the members whose preferences for a class are kept."""
    names, number = list(PROBABILITIES), answers["respondent_id"].nunique()
    values, goal = (
        np.log(frame[names].to_numpy(dtype=float)).reshape(number, -1, 3)
        for frame in (null, answers)
    )
    own, sizes = ((dose.centred_logs(x) ** 2).mean(axis=(1, 2)) for x in (values, goal))
    values = values * np.sqrt(sizes / own)[:, None, None]
    values = np.exp(values - values.max(axis=2, keepdims=True))
    values /= values.sum(axis=2, keepdims=True)
    return null.assign(**dict(zip(names, values.reshape(-1, 3).T, strict=True)))


def centred(table: pd.DataFrame, depths: pd.Series) -> pd.DataFrame:
    """Return profiles whose scores are centred within each depth, and divided by their size there.

    The size is the root of the mean variance of the items of source terms. Depths are labels of
    base and depth, indexed as the table; a respondent that is alone at its depth is left out.
    """
    found = []
    for _, part in table.groupby(depths, sort=False):
        scores = part[["source", "inverse"]]
        size = np.sqrt(part["source"].var().mean())
        if len(part) > 1:
            found.append(pd.concat([(scores - scores.mean()) / size, part[["silhouette"]]], axis=1))
    return pd.concat(found)


def _kinds(table: pd.DataFrame, loaded: list) -> pd.Series:
    """Return each kind of evidence of a profile, *beyond placebos* among them."""
    found = evidence(table, loaded, EXPECTED)
    real = found[[f"ρ {a} {b}" for a, b in EXPECTED]].abs().mean()
    placebos = found[[f"ρ {a} {b}" for a in NAMES[:3] for b in PLACEBOS]].abs().mean()
    return pd.concat([found, pd.Series({"beyond placebos": real - placebos})])


def _by_depth(table: pd.DataFrame, depths: pd.Series, loaded: list) -> pd.DataFrame:
    """Return each kind of evidence by depth, and of all depths of a base, centred."""
    table = centred(table, depths)
    own = depths[table.index]
    groups = {name: own == name for name in own.unique()}
    groups |= {name: own.str.startswith(name) for name in ("MiniLM", "SmolLM2")}
    return pd.DataFrame({name: _kinds(table[which], loaded) for name, which in groups.items()}).T


def _depths() -> None:
    """Write ``data/within_depth.csv``: the comparison with untrained heads by base and depth."""
    loaded = [load_questionnaire(name) for name in NAMES]
    members = population("encoders") + population("decoders")
    table = population_table().set_index("respondent_id").loc[members]
    depths = table["family"] + ", " + table["layers"].astype(int).astype(str) + " layers"
    answers = ask(loaded, members, progress=False)
    ours = profiles(answers, loaded).loc[members]
    observed = _by_depth(ours, depths, loaded)
    many = ours[depths.map(depths.value_counts()) > 1]
    half = jackknife(
        lambda part: _kinds(centred(part, depths[part.index]), loaded),
        many, table.loc[many.index, "family"],
    )  # fmt: skip
    drawn = []
    for number, null in _populations(loaded, members):
        if number == POPULATIONS:
            break
        for size, factor in SIZES.items():
            heads = profiles(null if factor is None else resized(null, answers, factor), loaded)
            heads = heads.set_axis(members)
            drawn.append(_by_depth(heads, depths, loaded).assign(size=size))
        print(number, flush=True)
    drawn, found = pd.concat(drawn).set_index("size", append=True), []
    for base, size in drawn.index.unique():
        rows = reached(observed.loc[base], drawn.loc[[(base, size)]])
        if base in half.index:
            rows["low"] = observed.loc[base] - half.loc[base]
            rows["high"] = observed.loc[base] + half.loc[base]
        rows["members"] = depths[many.index].str.startswith(base).sum()
        found.append(rows.rename_axis("evidence").reset_index().assign(base=base, size=size))
    found = pd.concat(found).set_index(["base", "size", "evidence"]).reset_index()
    found.to_csv(data_dir() / "within_depth.csv", index=False, float_format="%.5g")


if __name__ == "__main__":
    _depths() if "depths" in sys.argv else _main()
