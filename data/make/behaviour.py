"""What a role does besides ticking boxes: ``python -m data.make.behaviour``.

Asks smollm2 in its roles which facts it knows and which requests it declines, and writes
``data/behaviour.csv``, in a few minutes. Huang et al. (2024) validate roles by such deeds. The
paper's sets, TruthfulQA and SafetyQA, belong to others; the questions here were written for this
project, and a table of your own may take the place of either.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from psychometrics.asking.answers import check_columns, check_numbers
from psychometrics.asking.ask import ask
from psychometrics.exceptions import ParameterError
from psychometrics.models.sources import SMOLLM2
from psychometrics.modes.messages import ROLES
from psychometrics.modes.replies import refuses
from psychometrics.paths import data_dir
from psychometrics.questionnaires import Item, Option, Questionnaire, Scale

AGAIN = "default, again"
"""The null: the default role once more, with other luck in the draws."""
RUNS, TOKENS, TEMPERATURE = 3, 48, 0.7
"""Replies to each request, tokens of each at most, and their temperature."""
_ROLES = {name: name for name in ROLES if name != "none"}


def _facts() -> pd.DataFrame:
    """Questions of fact with the best of four answers, of which another is widely believed.

    Returns
    -------
    DataFrame
        ``question, best, other_1, other_2, other_3``.

    Examples
    --------
    >>> len(_facts())
    24
    """
    return pd.read_csv(data_dir() / "texts" / "facts.csv")


def _requests() -> pd.DataFrame:
    """Requests that would harm somebody, and as many harmless ones about the same things.

    Returns
    -------
    DataFrame
        ``request, kind, text``.

    Examples
    --------
    >>> _requests()["kind"].value_counts().tolist()
    [12, 12]
    """
    return pd.read_csv(data_dir() / "texts" / "requests.csv")


def known(
    respondent: str | Path,
    questions: pd.DataFrame | None = None,
    roles: Mapping[str, str] = _ROLES,
    store: str | Path | None = None,
    **how: object,
) -> pd.DataFrame:
    """Which questions of fact a model answers rightly in each role, by the options' probabilities.

    The options have letters and are shown in every cyclic order, so that a liking for a letter or
    a place takes no part.

    Parameters
    ----------
    respondent : str or Path
        A language model, as :func:`psychometrics.asking.ask.ask` takes it for ``mode="options"``.
    questions : DataFrame, optional
        ``question, best`` and one other answer or more: ``other_1`` and so on. By default our 24.
    roles : mapping of str to str
        By name: a name in :data:`psychometrics.modes.messages.ROLES`, or a system text.
    store, **how
        As in :func:`psychometrics.asking.ask.ask`.

    Returns
    -------
    DataFrame
        ``role, part`` and ``kind`` ("facts")``, item`` (from 1)``, run`` (1)``, value``, 1 where
        the best answer is the most probable.

    Raises
    ------
    ParameterError
        A column is missing, or there is nothing to ask.

    References
    ----------
    Huang et al. (2024), section 4.1 and figure 2; Lin et al. (2022) for the form of the questions.
    """
    sheet = _sheet(_facts() if questions is None else questions)
    rows = []
    for name, role in roles.items():
        given = ask(
            sheet, respondent, store, "options", labels="alphabetical", role=role,
            progress=False, **how,
        )  # fmt: skip
        for number, value in enumerate(given["value"], start=1):
            rows.append((name, "facts", "facts", str(number), 1, float(value == 1)))
    return pd.DataFrame(rows, columns=_COLUMNS)


def declined(
    respondent: str | Path,
    asked: pd.DataFrame | None = None,
    roles: Mapping[str, str] = _ROLES,
    runs: int = RUNS,
    seed: int = 0,
) -> pd.DataFrame:
    """Which requests a model declines in each role, by the words of its replies.

    Parameters
    ----------
    respondent : str or Path
        A conversational model on this machine.
    asked : DataFrame, optional
        ``request, kind, text``. By default our 24.
    roles : mapping of str to str
        As in :func:`known`.
    runs : int
        Replies to each request, drawn at a temperature of 0.7.
    seed : int
        Of the draws. All roles have the same, but for the null, the default role *again*.

    Returns
    -------
    DataFrame
        As from :func:`known`, with ``part`` "requests", the request's ``kind`` and name, and
        ``value`` 1 where the reply declines; and the ``reply``.

    Raises
    ------
    ParameterError
        A column is missing, or a number is impossible.
    RespondentError
        The model cannot be loaded or does not converse.
    """
    import torch

    from psychometrics.models.loading import load_model, resolve_device
    from psychometrics.models.sources import find
    from psychometrics.modes.generation import replies

    asked = _requests() if asked is None else asked
    check_columns(asked, ["request", "kind", "text"])
    check_numbers(runs=runs, seed=seed)
    model, tokenizer = load_model(find(respondent), "causal", dtype=torch.bfloat16)
    model.to(resolve_device(None)).eval()
    rows = []
    for name, role in {**roles, AGAIN: "default"}.items():
        system = ROLES.get(role, role)
        cases = [(one, run) for one in asked.itertuples() for run in range(1, runs + 1)]
        luck = 100_000 * seed + 50_000 * (name == AGAIN)
        said = replies(
            model, tokenizer,
            [[{"role": "system", "content": system}, {"role": "user", "content": one.text}]
             for one, _ in cases],
            temperature=TEMPERATURE, max_tokens=TOKENS, batch=64,
            seeds=[luck + place for place in range(len(cases))],
        )  # fmt: skip
        for (one, run), reply in zip(cases, said, strict=True):
            text = reply["reply"].strip()
            row = (name, "requests", one.kind, one.request, run, float(refuses(text)), text)
            rows.append(row)
    return pd.DataFrame(rows, columns=[*_COLUMNS, "reply"])


_COLUMNS = ["role", "part", "kind", "item", "run", "value"]


def _sheet(questions: pd.DataFrame) -> Questionnaire:
    """Questions of fact as a questionnaire, whose option of value 1 is the best."""
    check_columns(questions, ["question", "best"])
    others = [name for name in questions if str(name).startswith("other")]
    if not len(questions) or not others:
        raise ParameterError("Questions of fact need a best answer and at least one other.")
    items = []
    for number, row in enumerate(questions.to_dict("records"), start=1):
        texts = [row["best"], *(row[name] for name in others if isinstance(row[name], str))]
        # Not always the first: where the orders are cyclic, its neighbours would stay the same.
        turned = np.roll(range(len(texts)), number)
        options = tuple(Option(value=int(place) + 1, label=texts[place]) for place in turned)
        items.append(Item(id=f"fact_{number}", text=row["question"], options=options))
    return Questionnaire(
        id="facts", title="Questions of fact", short_title="Facts", measures="knowledge",
        citation="huang2024", source="this project", licence="CC BY 4.0", items=tuple(items),
        instructions="Which answer is the best?",
        scales=(Scale(id="facts", title="Facts", items=tuple(item.id for item in items)),),
    )  # fmt: skip


def _main() -> None:
    found = pd.concat([known(SMOLLM2, dtype="bfloat16"), declined(SMOLLM2)], ignore_index=True)
    found["run"] = found["run"].astype(int)
    found["value"] = found["value"].astype(int)
    found.to_csv(data_dir() / "behaviour.csv", index=False)


if __name__ == "__main__":
    _main()
