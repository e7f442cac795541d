"""The diagnostic of language inference: read the published answers, and ask its items again.

Answers (0 or 1) are shipped; the sentences are fetched when a respondent is asked.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from psychometrics.asking.population import population
from psychometrics.checks import check_choice
from psychometrics.data import NLI_LABELS, fetch
from psychometrics.exceptions import ParameterError, RespondentError
from psychometrics.modes import identify, mode_named
from psychometrics.modes.mode import Asking
from psychometrics.paths import data_dir
from psychometrics.progress import Progress
from psychometrics.questionnaires import Questionnaire
from psychometrics.store import StoredAnswers, key_of

CATEGORIES = {
    "MN": "morphological negation",
    "PP": "prepositional phrases",
    "LE": "lexical entailment",
    "Q": "quantifiers",
    "PS": "propositional structure",
    "RLS": "richer logical structure",
    "WK": "world knowledge",
}
_REGIMES = {
    (False, False): "untrained",
    (True, False): "pre-trained only",
    (False, True): "fine-tuned from scratch",
    (True, True): "both",
}
# What people read instead of the names of the three classes.
_CHOICES = {
    "entailment": "it must be true, too",
    "neutral": "it may be true or not",
    "contradiction": "it cannot be true",
}
_GROUPS = ("people", "transformers", "lstms")


def models(live: bool = False) -> pd.DataFrame:
    """Return the language models, with their kind and training.

    Parameters
    ----------
    live : bool
        Whether to return the models that answered for this book instead of the 240 published
        models.

    Returns
    -------
    DataFrame
        Indexed by ``respondent_id``: ``population`` (transformers or lstms), ``family``,
        ``pretrained``, ``finetuned`` (bool), ``data`` on which they were fine-tuned, and
        ``regime``, the published name of the combination of pretraining and fine-tuning. Published
        models also have ``builds_on`` (the respondent that supplied their initial weights); this
        book's models have ``seed``, the number of training ``pairs``, ``accuracy`` on held-out MNLI
        with its Wilson 95 % interval ``low, high``, ``seconds`` of training, and, if embedded, the
        ``fingerprint``.

        Not all models work: one published LSTM solves 0 of the 812 items, which would not happen by
        guessing (its labels are probably coded differently); it is kept, as published.

    References
    ----------
    Laverghetta et al. (2021), section 3.

    Examples
    --------
    >>> models()["population"].value_counts().to_dict()
    {'transformers': 183, 'lstms': 57}
    """
    table = _models(live).drop(columns="answers")
    pairs = zip(table["pretrained"], table["finetuned"], strict=True)
    return table.assign(regime=[_REGIMES[bool(a), bool(b)] for a, b in pairs])


def item_table(sentences: bool = False) -> pd.DataFrame:
    """Return the items of the diagnostic.

    Parameters
    ----------
    sentences : bool
        Whether to fetch the sentences, which are not shipped, and add ``premise, hypothesis``.

    Returns
    -------
    DataFrame
        Indexed by ``item_id``: ``subcategory``, ``domain``, ``label`` (the right answer, a
        Categorical), ``asked`` (the category in which people saw the item, otherwise empty) and
        ``pair``. Items come in pairs: the same two sentences in both directions, one after the
        other, so that the items 2k and 2k + 1 are twins.

    Raises
    ------
    DataError
        The sentences cannot be fetched.

    References
    ----------
    Wang et al. (2019), section 4.

    Examples
    --------
    >>> len(item_table())
    812
    """
    table = _read("items.csv").set_index("item_id")
    label = pd.Categorical(table["label"], categories=NLI_LABELS)
    table = table.assign(label=label, pair=table.index // 2)
    if not sentences:
        return table
    file = fetch("glue_diagnostic")
    raw = pd.read_csv(file, sep="\t", dtype=str, keep_default_na=False, header=None, quoting=3)
    body = raw.iloc[2:-1, [0, 3, 4]].set_axis(["item_id", "premise", "hypothesis"], axis=1)
    return table.join(body.astype({"item_id": int}).set_index("item_id"))


def answers(
    who: str | None = None, category: str | None = None, sample: str = "phase", live: bool = False
) -> pd.DataFrame:
    """Return 0/1 answers of models or of people.

    Parameters
    ----------
    who : {"people", "transformers", "lstms"}, optional
        Whose answers to return; by default the answers of all models.
    category : str, optional
        Key of ``CATEGORIES``, to select the items that people saw in this category; by default all
        items.
    sample : {"phase", "completers"}
        People to include: all people who were accepted in the category's phase, or the 19 people
        who completed all phases and are the only people who can be compared across categories.
    live : bool
        Whether to use this book's models instead of the published models.

    Returns
    -------
    DataFrame, shape (R, I)
        Indexed by ``respondent_id``, or by the participant's number within sample and category. The
        columns are ``item_id``.

    Examples
    --------
    >>> answers("lstms", "MN").shape, answers("people", "MN").shape
    ((57, 15), (45, 15))
    """
    if who != "people":
        matrix = _answers(live)
        if who is not None:
            check_choice(_GROUPS, who=who)
            matrix = matrix[_models(live)["population"] == who]

        return matrix.copy() if category is None else matrix[_item_ids(category)]

    check_choice(("phase", "completers"), sample=sample)
    if category is None:
        if sample == "phase":
            raise ParameterError("phases had different people: name a category, or 'completers'.")
        return pd.concat([answers("people", c, sample) for c in CATEGORIES], axis=1)

    columns = _item_ids(category)
    table = _read("people.csv.gz")
    table = table[(table["sample"] == sample) & (table["category"] == category)]
    return _matrix(table.set_index("participant").rename_axis(None), columns)


def questionnaire(category: str | None = None) -> Questionnaire:
    """Return the items that people were asked as a questionnaire, scored right or wrong.

    The sentences are fetched from the published file; the question and the options are the
    project's. Every right answer adds 1 to its category, so a score is a number of right answers
    and can be compared with the :func:`answers` of people and of models.

    Parameters
    ----------
    category : str, optional
        Key of ``CATEGORIES``; by default all seven categories, each with its own score.

    Returns
    -------
    Questionnaire
        The questionnaire, whose item ids are those of :func:`item_table`, as text.

    Raises
    ------
    ParameterError
        The category is unknown.
    DataError
        The sentences cannot be fetched.

    References
    ----------
    Laverghetta et al. (2021), section 3, for the subset that people were asked.
    """
    if category is not None:
        check_choice(CATEGORIES, category=category)

    chosen = list(CATEGORIES)
    name = "diagnostic"
    title = "Diagnostic"
    if category:
        chosen = [category]
        name = f"diagnostic-{category.lower()}"
        title = f"Diagnostic of inference, {CATEGORIES[category]}"

    options = [
        {"value": value, "label": label} for value, label in enumerate(_CHOICES.values(), start=1)
    ]
    return Questionnaire.model_validate(
        {
            "id": name,
            "title": title,
            "short_title": title,
            "measures": ", ".join(CATEGORIES[key] for key in chosen),
            "citation": "laverghetta2021",
            "source": "the authors' table of answers to the GLUE diagnostic",
            "licence": "sentences of the GLUE diagnostic, read at run time and not shipped",
            "wording": "upstream",
            "instructions": "Suppose that the first of two sentences is true. What of the second?",
            "options": options,
            "categories": [CATEGORIES[key] for key in chosen],
            "items": _items(chosen),
        }
    )


def _items(categories: list[str]) -> list[dict]:
    """Return the sentences of the categories; the right option adds 1 to its category."""
    table = item_table(sentences=True)
    items = []
    for row in table[table["asked"].isin(categories)].itertuples():
        weights = [
            [float(row.asked == name and row.label == label) for name in categories]
            for label in _CHOICES
        ]
        text = f"{row.premise}\n{row.hypothesis}"
        items.append({"id": str(row.Index), "text": text, "weights": weights})

    return items


def ask_diagnostic(
    respondents: str | Path | object | Iterable[str | Path | object],
    store: str | Path | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Put the whole diagnostic to NLI respondents in float32, using the response store.

    Parameters
    ----------
    respondents : str or respondent, or several
        Respondents, as in :func:`psychometrics.asking.ask`.
    store : str or Path, optional
        Folder of the response store.
    progress : bool
        Whether to show a progress bar.

    Returns
    -------
    DataFrame of 0 and 1, shape (R, I)
        Indexed by ``respondent_id``: 1 if the most probable class is the right class, and otherwise
        0.

    Raises
    ------
    RespondentError, DataError, StoreError
        No respondent can answer, or the sentences or the store cannot be used.

    Warns
    -----
    UserWarning
        A respondent failed; the warning gives the reason. The others were asked.
    """
    if isinstance(respondents, str):
        respondents = population(respondents)
    elif isinstance(respondents, Path) or hasattr(respondents, "answer"):
        respondents = [respondents]

    respondents = list(respondents)
    names = [str(respondent) for respondent in respondents]
    if not names or len(set(names)) < len(names):
        got = ", ".join(names) or "none"
        raise RespondentError(f"Name at least one respondent, and each only once; got {got}.")

    table = item_table(sentences=True)
    right = table["label"].map(NLI_LABELS.index).to_numpy()
    rows = {}
    errors = {}
    with Progress(unit="item", disable=not progress, pairs=len(names), total=0) as bar:
        for respondent in respondents:
            name = str(respondent)
            try:
                if hasattr(respondent, "answer"):
                    identity = respondent.identity
                else:
                    identity = identify(respondent, dtype="float32")

                name = identity["respondent_id"]
                chances = _ask_respondent(table, identity, respondent, store, bar)
                if np.isnan(chances).any():
                    raise RespondentError(
                        f"{name} has two outputs, but the diagnostic needs three: leave it out."
                    )

                rows[name] = chances.argmax(axis=1) == right
            except Exception as error:
                errors[name] = RespondentError.of(name, error)

    RespondentError.tell(errors, rows)
    return pd.DataFrame.from_dict(rows, orient="index", columns=table.index).astype(np.int8)


def _matrix(table: pd.DataFrame, columns: Sequence[int]) -> pd.DataFrame:
    """Parse answers stored as text, one character per item, into numbers."""
    matrix = np.array([list(row) for row in table["answers"]], dtype=np.int8)
    return pd.DataFrame(matrix, index=table.index, columns=columns)


def _ask_respondent(
    table: pd.DataFrame, identity: dict, respondent: object, store: str | Path | None, bar: Progress
) -> np.ndarray:
    """Return the probabilities of the three labels, (I, 3), stored or new."""
    mode = mode_named("nli")
    name = identity["respondent_id"]
    pairs = list(zip(table["premise"], table["hypothesis"], strict=True))
    keys = {pair: key_of(identity["fingerprint"], *pair) for pair in pairs}
    asking = Asking(mode.open(respondent, identity), identity, store, bar, {})
    with StoredAnswers(store, "nli", "glue-diagnostic", name, identity, NLI_LABELS) as kept:
        mode.ask_missing(asking, keys, kept, len(keys))
        return kept.rows.loc[[keys[pair] for pair in pairs], list(NLI_LABELS)].to_numpy()


def _item_ids(category: str) -> list[int]:
    check_choice(CATEGORIES, category=category)
    table = item_table()
    return table.index[table["asked"] == category].to_list()


@functools.cache
def _read(name: str) -> pd.DataFrame:
    kinds = {"answers": str, "fingerprint": str}
    return pd.read_csv(data_dir() / "diagnostic" / name, dtype=kinds, keep_default_na=False)


def _models(live: bool) -> pd.DataFrame:
    """Return the models, with their answers as text."""
    return _read("live.csv.gz" if live else "models.csv.gz").set_index("respondent_id")


@functools.cache
def _answers(live: bool) -> pd.DataFrame:
    return _matrix(_models(live), item_table().index)
