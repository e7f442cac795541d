"""Answers from people, from simulated respondents whose traits are known, and from functions."""

from __future__ import annotations

import contextlib
import html
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from ..answers import tidy
from ..exceptions import ParameterError, StoreError
from ..paths import store_dir
from ..questionnaires import Questionnaire
from ..store import answers_path

SPREAD = 1.5
"""Thresholds of the simulated items lie evenly between minus and plus this, in trait units."""
BACK, SKIP, LEAVE = "b", "s", "q"


def draw_traits(
    questionnaire: Questionnaire, respondents: int = 100, correlation: float = 0.0, seed: int = 0
) -> pd.DataFrame:
    """Draw trait levels for simulated respondents.

    Parameters
    ----------
    questionnaire : Questionnaire
    respondents : int
        How many.
    correlation : float
        Between any two traits, from 0 to below 1.
    seed : int

    Returns
    -------
    DataFrame, shape (respondents, scales)
        Standard normal levels; columns are the scales' ids (the categories where answers add to
        categories, ``trait`` where there are neither), the index names the respondents.

    Raises
    ------
    ParameterError
        A number is impossible.

    Examples
    --------
    >>> from psychometrics.questionnaires import load_questionnaire
    >>> draw_traits(load_questionnaire("ipip20"), 3).shape
    (3, 5)
    """
    if respondents < 1:
        raise ParameterError(f"respondents must be a whole number from 1, got {respondents!r}.")
    if not 0 <= correlation < 1:
        raise ParameterError(f"correlation must be from 0 to below 1, got {correlation!r}.")
    names = (
        [scale.id for scale in questionnaire.scales] or list(questionnaire.categories) or ["trait"]
    )
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((respondents, 1))
    own = rng.standard_normal((respondents, len(names)))
    levels = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own
    width = len(str(respondents))
    index = [f"simulated-{i:0{width}d}" for i in range(1, respondents + 1)]
    return pd.DataFrame(levels, columns=names, index=pd.Index(index, name="respondent_id"))


def graded_probabilities(
    trait: np.ndarray, discrimination: float, thresholds: np.ndarray
) -> np.ndarray:
    """Probability of each option under the graded-response model.

    Parameters
    ----------
    trait : ndarray, shape (R,)
    discrimination : float
        Slope; negative where agreement lowers the trait.
    thresholds : ndarray, shape (K - 1,)
        Rising: the trait level at which an option or a higher one is as probable as not.

    Returns
    -------
    ndarray, shape (R, K)
        Each row sums to one.

    References
    ----------
    Samejima (1969).

    Examples
    --------
    >>> graded_probabilities(np.array([0.0]), 1.0, np.array([0.0]))
    array([[0.5, 0.5]])
    """
    sign = np.sign(discrimination) or 1.0
    steps = abs(discrimination) * (sign * np.asarray(trait)[:, None] - np.asarray(thresholds))
    above = 1 / (1 + np.exp(-steps))
    edges = np.ones((len(above), 1)), np.zeros((len(above), 1))
    above = np.hstack([edges[0], above, edges[1]])
    return above[:, :-1] - above[:, 1:]


def simulate_graded(
    questionnaire: Questionnaire,
    respondents: int = 100,
    traits: pd.DataFrame | None = None,
    discrimination: float = 1.5,
    difficulty_sd: float = 0.5,
    acquiescence: float = 0.0,
    missing: float = 0.0,
    runs: int = 1,
    seed: int = 0,
) -> pd.DataFrame:
    """Answers of simulated respondents whose trait levels are known.

    Items follow the graded-response model: the same slope for all, turned round for reverse-keyed
    items, thresholds evenly spread and moved by an amount drawn for each item. Where answers add
    to categories instead of scales, an option's log-odds are the sum over categories of trait
    times the option's score (a nominal model).

    Parameters
    ----------
    questionnaire : Questionnaire
    respondents : int
        How many, where ``traits`` does not say it.
    traits : DataFrame, shape (respondents, scales), optional
        Levels in standard units as :func:`draw_traits` gives them; drawn with ``seed`` if
        left out. An item in several scales follows the first that holds it; one in none follows
        chance alone.
    discrimination : float
        Slope of the items.
    difficulty_sd : float
        Standard deviation over items of what moves their thresholds.
    acquiescence : float
        Standard deviation over respondents of a tendency to agree, whatever the key.
    missing : float
        Share of answers that are left out, at random.
    runs : int
        How often each is asked; traits stay, chance is drawn anew.
    seed : int

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, mode, run, item_id, value, status``.

    Raises
    ------
    ParameterError
        A number is impossible, or ``traits`` lacks a scale.

    References
    ----------
    Samejima (1969); Bock (1972) for the nominal model.

    Examples
    --------
    >>> from psychometrics.questionnaires import load_questionnaire
    >>> simulate_graded(load_questionnaire("ipip20"), respondents=3, seed=1)["value"].notna().all()
    np.True_
    """
    if not 0 <= missing < 1:
        raise ParameterError(f"missing must be a share from 0 to below 1, got {missing!r}.")
    if runs < 1:
        raise ParameterError(f"runs must be a whole number from 1, got {runs!r}.")
    if traits is None:
        traits = draw_traits(questionnaire, respondents, seed=seed)
    rng = np.random.default_rng([seed, 1])  # another stream than the traits'
    style = acquiescence * rng.standard_normal(len(traits))
    places = {item.id: _place(questionnaire, item.id) for item in questionnaire.items}
    if lacking := {scale for scale, _ in places.values() if scale} - set(traits.columns):
        raise ParameterError(f"traits has no column '{min(lacking)}': it needs one per scale.")
    shifts = dict(zip(places, difficulty_sd * rng.standard_normal(len(places)), strict=True))
    parts = []
    for run in range(1, runs + 1):
        for item in questionnaire.items:
            values = np.array([option.value for option in questionnaire.choices(item)])
            scale, sign = places[item.id]
            if scale is None and questionnaire.categories:
                shares = _nominal(traits, questionnaire, item, discrimination, style)
                ordered = values
            else:
                level = traits[scale].to_numpy() if scale else np.zeros(len(traits))
                ordered = np.sort(values)
                thresholds = np.linspace(-SPREAD, SPREAD, len(values) + 1)[1:-1] + shifts[item.id]
                shares = graded_probabilities(sign * level + style, discrimination, thresholds)
            picked = (rng.random((len(shares), 1)) > shares.cumsum(axis=1)[:, :-1]).sum(axis=1)
            left_out = rng.random(len(shares)) < missing
            parts.append(
                pd.DataFrame(
                    {
                        "respondent_id": traits.index,
                        "mode": "simulated",
                        "run": run,
                        "item_id": item.id,
                        "value": ordered[picked],
                        "status": np.where(left_out, "missing", "ok"),
                    }
                )
            )
    answers = pd.concat(parts, ignore_index=True)
    order = {name: i for i, name in enumerate(traits.index)}
    answers = answers.sort_values(
        ["respondent_id", "run"],
        key=lambda c: c.map(order) if c.name == "respondent_id" else c,
        kind="stable",
    )
    return tidy(answers, questionnaire)


def _place(questionnaire: Questionnaire, item_id: str) -> tuple[str | None, int]:
    """First scale that holds an item, and -1 where it is reverse-keyed there."""
    for scale in questionnaire.scales:
        if item_id in scale.items:
            return scale.id, -1 if item_id in scale.reverse else 1
    return ("trait", 1) if not questionnaire.scales and not questionnaire.categories else (None, 1)


def _nominal(traits, questionnaire, item, slope, style) -> np.ndarray:
    if lacking := set(questionnaire.categories) - set(traits.columns):
        raise ParameterError(f"traits has no column '{min(lacking)}': it needs one per category.")
    weights = np.array(item.weights, dtype=float)
    largest = max(np.abs(weights).max(), 1e-12)  # files differ in the unit of their scores
    utility = slope * traits[list(questionnaire.categories)].to_numpy() @ (weights / largest).T
    utility += style[:, None] * np.linspace(-1, 1, len(weights))
    utility = np.exp(utility - utility.max(axis=1, keepdims=True))
    return utility / utility.sum(axis=1, keepdims=True)


def ask_custom(
    questionnaire: Questionnaire,
    generate: Callable[[list[dict[str, str]]], str | None],
    parse: Callable | None = None,
    respondent_id: str = "custom",
    role: str = "default",
    wording: str = "v1",
    think: bool = False,
    labels: str = "numeric",
    option_order: str = "given",
    shift: int = 0,
    shuffle: bool = True,
    batch_size: int = 30,
    runs: int = 1,
    ask_again: int = 0,
    seed: int = 0,
) -> pd.DataFrame:
    """Put a questionnaire to anything that turns messages into text.

    Parameters
    ----------
    questionnaire : Questionnaire
    generate : callable
        Takes a list of messages (``role`` and ``content``), gives the reply; None for no reply.
    parse : callable, optional
        Takes reply, questionnaire, items, labels and orders, and gives a (status, value) for each
        item; by default :func:`psychometrics.parsing.parse_reply`.
    respondent_id : str
        What the respondent is called.
    role, wording, think, labels, option_order, shift, shuffle, batch_size, runs, ask_again, seed
        As in :func:`psychometrics.respondents.chat.ask_chat`.

    Returns
    -------
    DataFrame
        As from :func:`psychometrics.respondents.chat.ask_chat`, mode ``custom``.

    Raises
    ------
    ParameterError
        A parameter is impossible, or ``parse`` gives something else.

    References
    ----------
    The question_llm library's description (third document), *AdministerCustom*.

    Examples
    --------
    >>> from psychometrics.questionnaires import load_questionnaire
    >>> mini = load_questionnaire("ipip20")
    >>> ask_custom(mini, lambda messages: "4", batch_size=1)["value"].unique().item()
    4.0
    """
    from ..parsing import parse_reply
    from .chat import ask_batch, batches, check_numbers, in_order

    check_numbers(batch_size=batch_size, runs=runs, ask_again=ask_again, seed=seed)
    look = {"role": role, "wording": wording, "think": think, "labels": labels, "shift": shift}

    def send(request: dict, about: dict, name: str) -> str | None:
        return generate(request["messages"])

    def parsed(text, questionnaire, items, labels, orders):
        read = (parse or parse_reply)(text, questionnaire, items, labels, orders)
        read = list(read) if read is not None else []
        if len(read) != len(items) or not all(isinstance(r, tuple) and len(r) == 2 for r in read):
            raise ParameterError(
                f"parse must give a (status, value) for each of {len(items)} items, got {read!r}."
            )
        return read

    rows = []
    for batch in batches(questionnaire, runs, shuffle, batch_size, option_order, seed):
        rows += ask_batch(
            questionnaire, batch, look, {}, ask_again, respondent_id, "custom", send, parsed
        )
    return in_order(rows, questionnaire)


def ask_person(
    questionnaire: Questionnaire,
    respondent_id: str = "me",
    path: str | Path | None = None,
    run: int = 1,
    read: Callable[[str], str] = input,
    write: Callable[[str], None] = print,
) -> pd.DataFrame:
    """Ask a person in the terminal; each answer is saved at once, and one may go back.

    Parameters
    ----------
    questionnaire : Questionnaire
    respondent_id : str
        What the person is called; also names the file, where ``path`` does not.
    path : str or Path, optional
        File of the answers; by default in the response store. Where it exists, asking goes on
        at the first item without an answer.
    run : int
        Number of the sitting; each has a file of its own.
    read, write : callable
        In place of the terminal.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, mode, run, item_id, value, status``; what was skipped or not
        reached is ``missing``.

    Raises
    ------
    StoreError
        The file cannot be read or written, or is another questionnaire's.

    Examples
    --------
    >>> from psychometrics.questionnaires import load_questionnaire
    >>> ask_person(load_questionnaire("ipip20"))  # doctest: +SKIP
    """
    path = _person_path(questionnaire, respondent_id, path, run)
    answers = _saved(path, questionnaire)
    items = questionnaire.items
    write(f"{questionnaire.title}\n{questionnaire.instructions}")
    write(f"Type a number; {BACK} goes back, {SKIP} skips, {LEAVE} saves and leaves.")
    place = next((i for i, item in enumerate(items) if item.id not in answers), len(items))
    if place == len(items):
        write("All items have an answer; b goes back to the last.")
    while True:
        if place == len(items):
            prompt = f"Done. Enter finishes, {BACK} goes back: "
        else:
            item = items[place]
            options = questionnaire.choices(item)
            listed = "\n".join(f"  {option.value:g}  {option.label}" for option in options)
            before = f" (now {answers[item.id]:g})" if answers.get(item.id) is not None else ""
            write(
                f"\n{place + 1} of {len(items)}: {questionnaire.statement(item)}{before}\n{listed}"
            )
            prompt = "> "
        try:
            typed = read(prompt).strip().lower()
        except EOFError:
            break
        if typed == BACK:
            place = max(place - 1, 0)
        elif typed == LEAVE or place == len(items):
            break
        elif typed == SKIP:
            answers[item.id] = None
            place += 1
        else:
            known = {f"{option.value:g}": option.value for option in options}
            if typed not in known:
                write(f"Type one of {', '.join(known)}, or {BACK}, {SKIP}, {LEAVE}.")
                continue
            answers[item.id] = known[typed]
            place += 1
        save_person(path, questionnaire, respondent_id, run, answers)
    return person_answers(questionnaire, respondent_id, path, run)


def person_form(
    questionnaire: Questionnaire,
    respondent_id: str = "me",
    path: str | Path | None = None,
    run: int = 1,
):
    """A small form for a notebook: one item at a time, back and next, saved at each choice.

    Parameters
    ----------
    questionnaire, respondent_id, path, run
        As in :func:`ask_person`; form and terminal share the file. :func:`person_answers` reads
        it.

    Returns
    -------
    ipywidgets.VBox
        Show it by ending a cell with it.

    Raises
    ------
    ParameterError
        ipywidgets is not installed; it comes with the ``book`` extra.
    StoreError
        The file cannot be read, or is another questionnaire's.

    Examples
    --------
    >>> person_form(load_questionnaire("ipip20"))  # doctest: +SKIP
    """
    try:
        import ipywidgets as widgets
    except ImportError:
        raise ParameterError(
            "The form needs ipywidgets: install the extra 'book', or use ask_person in a terminal."
        ) from None
    path = _person_path(questionnaire, respondent_id, path, run)
    answers = _saved(path, questionnaire)
    items = questionnaire.items
    first = next((i for i, item in enumerate(items) if item.id not in answers), 0)
    state = {"place": first, "showing": False}
    text = widgets.HTML()
    choice = widgets.RadioButtons(layout={"width": "max-content"})
    back = widgets.Button(description="Back")
    forward = widgets.Button(description="Next")

    def show() -> None:
        item = items[state["place"]]
        state["showing"] = True  # filling the choices in is no answer
        count = sum(value is not None for value in answers.values())
        text.value = (
            f"<p>{html.escape(questionnaire.instructions)}</p><p><b>{state['place'] + 1} of "
            f"{len(items)}:</b> {html.escape(questionnaire.statement(item))}</p>"
            f"<p>{count} answered, saved in {html.escape(str(path))}</p>"
        )
        choice.options = [(option.label, option.value) for option in questionnaire.choices(item)]
        choice.value = answers.get(item.id)
        back.disabled = state["place"] == 0
        forward.disabled = state["place"] == len(items) - 1
        state["showing"] = False

    def chosen(change: dict) -> None:
        if not state["showing"] and change["new"] is not None:
            answers[items[state["place"]].id] = change["new"]
            save_person(path, questionnaire, respondent_id, run, answers)

    def move(step: int) -> Callable:
        def moved(_button) -> None:
            state["place"] = min(max(state["place"] + step, 0), len(items) - 1)
            show()

        return moved

    choice.observe(chosen, names="value")
    back.on_click(move(-1))
    forward.on_click(move(1))
    show()
    return widgets.VBox([text, choice, widgets.HBox([back, forward])])


def person_answers(
    questionnaire: Questionnaire,
    respondent_id: str = "me",
    path: str | Path | None = None,
    run: int = 1,
) -> pd.DataFrame:
    """A person's saved answers, in the form of every way of asking.

    Parameters
    ----------
    questionnaire, respondent_id, path, run
        As in :func:`ask_person`.

    Returns
    -------
    DataFrame
        As from :func:`ask_person`.

    Raises
    ------
    StoreError
        The file cannot be read, or is another questionnaire's.
    """
    saved = _saved(_person_path(questionnaire, respondent_id, path, run), questionnaire)
    rows = []
    for item in questionnaire.items:
        value = saved.get(item.id)
        rows.append(
            {
                "respondent_id": respondent_id,
                "mode": "human",
                "run": run,
                "item_id": item.id,
                "value": value,
                "status": "missing" if value is None else "ok",
            }
        )
    return tidy(rows, questionnaire)


def save_person(
    path: Path, questionnaire: Questionnaire, respondent_id: str, run: int, answers: dict
) -> None:
    """Replace a person's file; the old one stays whole if this fails."""
    content = {
        "questionnaire": questionnaire.id,
        "respondent_id": respondent_id,
        "run": run,
        "answers": answers,
    }
    temporary = path.with_suffix(".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise StoreError(f"{path} cannot be written: {error.strerror}.") from error


def _person_path(questionnaire: Questionnaire, respondent_id: str, path, run: int) -> Path:
    if path is not None:
        return Path(path).expanduser()
    kept = answers_path(store_dir(), respondent_id, questionnaire.id, "human")
    return kept.with_name(f"{kept.stem}-{run}.json")


def _saved(path: Path, questionnaire: Questionnaire) -> dict[str, float | None]:
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        answers = dict(content["answers"])
        whose = content["questionnaire"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path} is no file of answers: name another, or remove it.") from error
    known = {
        item.id: {o.value for o in questionnaire.choices(item)} for item in questionnaire.items
    }
    fits = all(k in known and (v is None or v in known[k]) for k, v in answers.items())
    if whose != questionnaire.id or not fits:
        raise StoreError(
            f"{path} holds answers to '{whose}', not {questionnaire.id}: name another."
        )
    return answers
