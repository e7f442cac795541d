"""Psychometric functions beside other libraries', with how far their results lie apart."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

from psychometrics.measures import irt, reliability

from .rows import OURS, Worker, alternated, row

RESPONDENTS, ITEMS, DRAWS = 1000, 100, 10_000
_ONCE = ("girth 2pl", "mirt 121 nodes", "R:eRm", "R:psych")
"""Peers that take seconds or tens of them."""
_R = Path(__file__).with_name("peers.R")


def statistics(
    repetitions: int = 5, respondents: int = RESPONDENTS, number: int = ITEMS,
    draws: int = DRAWS,
) -> list[dict]:  # fmt: skip
    """Rows of the psychometric functions; a peer that is not installed is named in a row's note.

    Parameters
    ----------
    repetitions : int
        Of those that take long (`_ONCE`) there is one.
    respondents, number : int
        Rows and columns of the simulated 0/1 answers.
    draws : int
        Of bootstraps.
    """
    rasch, two = (_answers(respondents, number, spread) for spread in (0.0, 0.3))
    scale = _scale(300, 20)
    rows = []
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        ask = _r_worker(stack, Path(folder), rasch, two, scale)
        size = f"{respondents} × {number}"
        rows += _task(f"Rasch, conditional, {size}", _conditional(rasch, ask("rasch")), repetitions)
        rows += _task(f"2PL, marginal, {size}", _two_parameters(two, ask("two")), repetitions)
        rows += _task("Cronbach's alpha with its interval, 300 × 20",
                      _alpha(scale, ask("two"), draws), repetitions)  # fmt: skip
    return rows


def _task(task: str, tools: dict[str, Callable[[], dict | None]], repetitions: int) -> list[dict]:
    """Rows of the tools; agreement is the greatest difference of a tool's ``value`` to ours."""
    once = {name: tool for name, tool in tools.items() if name in _ONCE}
    several = {name: tool for name, tool in tools.items() if name not in once}
    for tool in several.values():
        tool()
    found = [*alternated(several, repetitions), *(alternated(once, 1) if once else ())]
    values = {name: np.asarray(gave.pop("value"), dtype="float64").ravel()
              for name, _, _, gave in found if "value" in gave}  # fmt: skip
    rows = []
    for name, number, took, gave in found:
        if gave.pop("missing", False):
            if number == 1:
                rows.append(row("statistics", task, None, name, None, note="not installed"))
            continue
        apart = np.abs(values[name] - values[OURS]).max() if name in values else None
        tool = name.removesuffix(" 2pl")
        rows.append(row("statistics", task, None, tool, took, repetition=number,
                        agreement=apart, **gave))  # fmt: skip
    return rows


def _answers(respondents: int, number: int, spread: float) -> pd.DataFrame:
    """0/1 answers of a normal population; slopes vary by so much on the log scale."""
    rng = np.random.default_rng(1)
    slope = np.exp(rng.normal(0, spread, number))
    steps = slope * (rng.normal(size=(respondents, 1)) - rng.normal(size=number))
    drawn = rng.random((respondents, number)) < 1 / (1 + np.exp(-steps))
    return pd.DataFrame(drawn.astype(int)).add_prefix("item")


def _scale(respondents: int, number: int) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    levels = rng.normal(size=(respondents, 1)) + 1.5 * rng.normal(size=(respondents, number))
    return pd.DataFrame(np.clip(np.round(levels + 3), 1, 5)).add_prefix("item")


def _r_worker(stack, folder: Path, rasch, two, scale) -> Callable:
    """Function from the answers' name to a function that asks R, or to None where R is not."""
    if shutil.which("Rscript") is None:
        return lambda answers: None
    workers = {}
    for name, table in (("rasch", rasch), ("two", two)):
        (folder / name).mkdir()
        table.to_csv(folder / name / "binary.csv", index=False)
        scale.to_csv(folder / name / "scale.csv", index=False)
        workers[name] = stack.enter_context(Worker(["Rscript", str(_R), str(folder / name)]))
    return lambda answers: (
        lambda package, draws=1: workers[answers].ask(package=package, draws=draws)
    )


def _conditional(answers: pd.DataFrame, ask_r: Callable | None) -> dict[str, Callable]:
    tools = {OURS: lambda: {"value": irt.fit_conditional(answers)["difficulty"]}}
    tools["R:eRm"] = _from_r(ask_r, "eRm")
    if _there("girth", tools):
        from girth import rasch_conditional

        def by_girth() -> dict:
            found = rasch_conditional(answers.to_numpy().T)["Difficulty"]
            return {"value": found - found.mean()}

        tools["girth"] = by_girth
    return tools


def _two_parameters(answers: pd.DataFrame, ask_r: Callable | None) -> dict[str, Callable]:
    """Agreement is of difficulties; the note has the log likelihood, which is to be greatest.

    Nobody computes standard errors. What mirt takes for the likelihood is a sum over 21 nodes,
    which lie further apart than the abilities of respondents to 100 items are spread.
    """

    def told(slope: np.ndarray, difficulty: np.ndarray) -> dict:
        frame = pd.DataFrame({"discrimination": slope, "difficulty": difficulty, "guessing": 0.0})
        frame.index = answers.columns
        return {"value": difficulty, "note": f"log likelihood {_likelihood(answers, frame):.2f}"}

    def ours() -> dict:
        found = irt.fit(answers, "2pl", errors=False)
        return told(found["discrimination"].to_numpy(), found["difficulty"].to_numpy())

    def by_mirt(nodes: int = 21) -> dict:
        import mirt

        found = mirt.fit_mirt(
            answers.to_numpy(), model="2PL", n_quadpts=nodes, compute_standard_errors=False
        ).model.parameters
        return told(np.ravel(found["discrimination"]), np.ravel(found["difficulty"]))

    tools = {OURS: ours, "mirt": by_mirt, "mirt 121 nodes": lambda: by_mirt(121)}
    tools["R:mirt"] = _from_r(ask_r, "mirt")
    if _there("girth 2pl", tools):
        from girth import twopl_mml

        def by_girth() -> dict:
            found = twopl_mml(answers.to_numpy().T)
            return told(found["Discrimination"], found["Difficulty"])

        tools["girth 2pl"] = by_girth
    return tools


def _likelihood(answers: pd.DataFrame, parameters: pd.DataFrame) -> float:
    """Marginal log likelihood over a normal population, by 201 equal steps."""
    theta = np.linspace(-7, 7, 201)
    weights = np.exp(-(theta**2) / 2)
    p = np.clip(irt.probability(theta, parameters), 1e-12, 1 - 1e-12)
    x = answers.to_numpy(dtype=float)
    joint = x @ np.log(p).T + (1 - x) @ np.log1p(-p).T + np.log(weights / weights.sum())
    top = joint.max(axis=1)
    return float((top + np.log(np.exp(joint - top[:, None]).sum(axis=1))).sum())


def _alpha(scale: pd.DataFrame, ask_r: Callable | None, draws: int) -> dict[str, Callable]:
    """Our interval and pingouin's are Feldt's and need no bootstrap; the others draw samples."""
    import pingouin
    from scipy.stats import bootstrap

    def ours() -> dict:
        return {"value": [reliability.alpha(scale)["alpha"]], "note": "interval by Feldt's formula"}

    def by_pingouin() -> dict:
        return {"value": [pingouin.cronbach_alpha(scale)[0]], "note": "interval by Feldt's formula"}

    values = scale.to_numpy()

    def alpha_of(index: np.ndarray, axis: int = -1) -> np.ndarray:
        drawn = values[index]
        k = values.shape[1]
        variance = drawn.var(axis=-2, ddof=1).sum(axis=-1)
        return k / (k - 1) * (1 - variance / drawn.sum(axis=-1).var(axis=-1, ddof=1))

    def by_scipy() -> dict:
        bootstrap((np.arange(len(values)),), alpha_of, n_resamples=draws, batch=100,
                  method="percentile", rng=np.random.default_rng(1))  # fmt: skip
        return {"value": [alpha_of(np.arange(len(values)))], "note": f"{draws:,} samples"}

    few = max(1, draws // 100)
    tools = {OURS: ours, "pingouin": by_pingouin, "scipy": by_scipy}
    tools["R:psych"] = _from_r(ask_r, "psych", few, f"{few:,} samples only: a hundredth")
    return tools


def _from_r(ask_r: Callable | None, package: str, draws: int = 1, note: str | None = None):
    def asked() -> dict:
        gave = {"missing": True} if ask_r is None else ask_r(package, draws)
        return gave if note is None or "missing" in gave else gave | {"note": note}

    return asked


def _there(package: str, tools: dict) -> bool:
    """Whether a package is installed; a row says so where it is not."""
    if find_spec(package.split()[0]) is None:
        tools[package] = lambda: {"missing": True}
        return False
    return True
