"""Self-report inventories: items, response options, keys, subscales and norms as one object.

Three kinds of file become the same :class:`Inventory`: the project's own YAML, the thirteen scales
of PsychoBench's ``questionnaires.json``, and questionnaires whose answers add to categories
(``categories``, ``questions``, ``choices``, ``scores``).
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

import pandas as pd
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from .data import fetch
from .exceptions import ParameterError, QuestionnaireError
from .paths import data_dir, questionnaires_dir
from .questionnaire import Norm, Option

UPSTREAM = "psychobench"
COMPASS = "political_compass"
MODES = ("chat", "option_logits", "nli", "human", "simulated", "custom")
STATUSES = ("ok", "refused", "out_of_range", "missing", "ambiguous", "unreadable", "no_reply")
"""What became of a question; only ``ok`` has a value."""
COLUMNS = ("respondent_id", "inventory", "mode", "run", "item_id", "value", "status")
"""Of every table of answers; what is particular to a way of asking comes after them."""

Text = Annotated[str, Field(min_length=1)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


class InventoryItem(_Part):
    """One question; options of its own, and what each option adds to each category, if it has."""

    id: Text
    text: Text
    options: tuple[Option, ...] | None = None
    weights: tuple[tuple[float, ...], ...] | None = None


class Subscale(_Part):
    """Items that are added up, or averaged, after those in ``reverse`` are turned round."""

    id: Text
    title: Text
    items: Annotated[tuple[Text, ...], Field(min_length=1)]
    reverse: tuple[Text, ...] = ()
    mode: Literal["mean", "sum"]


class Inventory(_Part):
    """A questionnaire that is answered by choosing an option for each item."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
    title: Text
    short_title: Text
    measures: Text
    language: Text = "en"
    citation: Text
    source: Text
    licence: Text
    instructions: Text
    system: str | None = None
    stem: str | None = None
    options: tuple[Option, ...] = ()
    items: Annotated[tuple[InventoryItem, ...], Field(min_length=1)]
    scales: tuple[Subscale, ...] = ()
    norms: tuple[Norm, ...] = ()
    categories: tuple[Text, ...] = ()
    bias: tuple[float, ...] = ()

    @model_validator(mode="after")
    def _parts_fit(self) -> Inventory:
        if mistakes := _mistakes(self):
            raise ValueError("; ".join(mistakes))
        return self

    def choices(self, item: InventoryItem | str) -> tuple[Option, ...]:
        """Options of an item (or the item with this id): its own, or the inventory's."""
        if isinstance(item, str):
            item = self.item(item)
        return item.options or self.options

    def item(self, item_id: str) -> InventoryItem:
        """The item with this id."""
        for item in self.items:
            if item.id == item_id:
                return item
        raise ParameterError(f"{self.id} has no item '{item_id}': it has {self.items[0].id} etc.")

    def scale(self, scale_id: str) -> Subscale:
        """The scale with this id."""
        for scale in self.scales:
            if scale.id == scale_id:
                return scale
        known = ", ".join(scale.id for scale in self.scales)
        raise ParameterError(f"{self.id} has no scale '{scale_id}': it has {known}.")

    def statement(self, item: InventoryItem) -> str:
        """The item as a whole sentence: after the stem, if there is one, and with a full stop."""
        text = item.text
        if self.stem:
            text = f"{self.stem} {text[0].lower()}{text[1:]}"
        return text if text[-1] in ".?!" else f"{text}."

    def span(self, scale: Subscale) -> tuple[float, float]:
        """Lowest and highest score that the scale can take."""
        ends = [[o.value for o in self.choices(name)] for name in scale.items]
        low, high = sum(min(e) for e in ends), sum(max(e) for e in ends)
        return (low, high) if scale.mode == "sum" else (low / len(ends), high / len(ends))


def load_inventory(name_or_path: str | Path, texts: bool = True) -> Inventory:
    """Read an inventory by its name, or a file of one of the three kinds.

    Parameters
    ----------
    name_or_path : str or Path
        A name in :func:`inventory_names`, a YAML file, or a JSON file with category scores.
    texts : bool
        Whether the items' wording is needed. Without it the thirteen PsychoBench scales load
        with no download: keys, norms and ranges, and a placeholder for each item.

    Returns
    -------
    Inventory
        Frozen and checked.

    Raises
    ------
    QuestionnaireError
        There is no such inventory, or its file is malformed.
    DataError
        The wording is needed and can neither be found nor downloaded.

    References
    ----------
    Huang et al. (2024), Table 5 and appendix A.

    Examples
    --------
    >>> load_inventory("ipip20").span(load_inventory("ipip20").scales[0])
    (1.0, 5.0)
    >>> [scale.title for scale in load_inventory("dtdd", texts=False).scales]
    ['Machiavellianism', 'Psychopathy', 'Narcissism']
    """
    name = str(name_or_path)
    if name in psychobench_keys():
        return _psychobench(name, texts)
    if name == COMPASS:
        return read_categories(fetch(COMPASS), id=COMPASS, title="Political Compass, as used by "
                               "question_llm", short_title="PCT", measures="political position",
                               citation="questionllm")  # fmt: skip
    path = questionnaires_dir() / "inventories" / f"{name}.yaml"
    path = path if path.is_file() else Path(name_or_path).expanduser()
    if not path.is_file():
        raise QuestionnaireError(
            f"No inventory '{name}': give one of {', '.join(inventory_names())}, or a file's path."
        )
    if path.suffix == ".json":
        return read_categories(path)
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError):
        raise QuestionnaireError(f"{path}: not valid YAML in UTF-8; correct it.") from None
    return _checked(content, path.name)


def inventory_names() -> list[str]:
    """Names that :func:`load_inventory` knows.

    Examples
    --------
    >>> "ipip50" in inventory_names()
    True
    """
    own = sorted(path.stem for path in (questionnaires_dir() / "inventories").glob("*.yaml"))
    return [*own, *psychobench_keys(), COMPASS]


@functools.cache
def psychobench_keys() -> dict[str, dict]:
    """Keys, ranges, norms and sources of the thirteen scales, from ``data/norms``.

    Returns
    -------
    dict
        By the inventory's id, in the order of the paper's Table 5.
    """
    text = (data_dir() / "norms" / "psychobench.yml").read_text(encoding="utf-8")
    return yaml.safe_load(text)


@functools.cache
def corrections() -> pd.DataFrame:
    """What is wrong upstream and how the project has it.

    Returns
    -------
    DataFrame
        ``inventory, kind, place, upstream, ours, reason``. Rows of the kind *wording* are
        applied when items are read; *name* is corrected in the project's keys; the others say
        what a reader should know.

    Examples
    --------
    >>> set(corrections().query("inventory == 'dtdd' and kind == 'name'")["ours"])
    {'Narcissism'}
    """
    return pd.read_csv(data_dir() / "norms" / "corrections.csv", keep_default_na=False)


def read_categories(
    path: str | Path,
    id: str | None = None,
    title: str | None = None,
    short_title: str | None = None,
    measures: str = "categories",
    citation: str = "user",
) -> Inventory:
    """Read a questionnaire whose answers add to categories.

    Parameters
    ----------
    path : str or Path
        JSON with ``categories``, ``data`` (per question: ``question``, ``scores`` of options by
        categories, and ``choices`` unless ``choice_descs`` gives them for all), and optionally
        ``categories_bias``.
    id, title, short_title, measures, citation : str, optional
        What the file does not say; by default from its name.

    Returns
    -------
    Inventory
        With options valued 1, 2, ... and ``weights`` of each item, shape (options, categories).

    Raises
    ------
    QuestionnaireError
        The file is malformed.

    References
    ----------
    The question_llm library's description (third document), *Instantiating Questionnaires*.
    """
    path = Path(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        categories = tuple(content["categories"])
        shared = content.get("choice_descs")
        items = []
        for key, question in content["data"].items():
            labels = question.get("choices") or shared
            if not labels:
                raise KeyError("choices")
            items.append(
                {
                    "id": str(key),
                    "text": question["question"],
                    "options": [{"value": i, "label": x} for i, x in enumerate(labels, start=1)],
                    "weights": question["scores"],
                }
            )
    except (KeyError, AttributeError, TypeError, ValueError) as error:
        raise QuestionnaireError(
            f"{path.name}: needs `categories` and `data` with `question`, `scores` and `choices` "
            f"for each question ({type(error).__name__}: {error})."
        ) from None
    name = id or path.stem.lower().replace(" ", "-")
    return _checked(
        {
            "id": name,
            "title": title or path.stem,
            "short_title": short_title or path.stem,
            "measures": measures,
            "citation": citation,
            "source": path.name,
            "licence": "as the file's owner states",
            "instructions": "Choose the option that fits best.",
            "items": items,
            "categories": categories,
            "bias": content.get("categories_bias") or [0.0] * len(categories),
        },
        path.name,
    )


def upstream_differences() -> pd.DataFrame:
    """Compare the project's keys and norms with PsychoBench's file, number by number.

    Returns
    -------
    DataFrame
        ``inventory, place, upstream, ours``, one row per difference; empty when only names
        differ, which :func:`corrections` lists.
    """
    rows = []
    upstream = {entry["name"]: entry for entry in _upstream_file()}
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
    return pd.DataFrame(rows, columns=["inventory", "place", "upstream", "ours"])


def overview() -> pd.DataFrame:
    """The thirteen scales beside the paper's Table 5: items, range, scoring, norms.

    Returns
    -------
    DataFrame
        One row per subscale: ``inventory, scale, items, reversed, low, high, mode, groups`` (of
        norms).

    Examples
    --------
    >>> overview().groupby("inventory", sort=False)["items"].sum()["epq-r"].item()
    100
    """
    rows = []
    for name in psychobench_keys():
        inventory = load_inventory(name, texts=False)
        for scale in inventory.scales:
            low, high = inventory.span(scale)
            rows.append(
                {
                    "inventory": name,
                    "scale": scale.title,
                    "items": len(scale.items),
                    "reversed": len(scale.reverse),
                    "low": low,
                    "high": high,
                    "mode": scale.mode,
                    "groups": sum(norm.scale == scale.id for norm in inventory.norms),
                }
            )
    return pd.DataFrame(rows)


def answer(inventory: Inventory, mode: str, **options) -> pd.DataFrame:
    """Put an inventory to someone or something: one call for every way of asking.

    Parameters
    ----------
    inventory : Inventory
    mode : {"chat", "option_logits", "nli", "human", "simulated", "custom"}
        How it is asked.
    **options
        Of :func:`psychometrics.chat.ask_chat`, :func:`psychometrics.logits.ask_logits`,
        :func:`psychometrics.logits.likert_by_nli`, :func:`psychometrics.persons.ask_person`,
        :func:`psychometrics.persons.simulate_graded` or
        :func:`psychometrics.persons.ask_custom`.

    Returns
    -------
    DataFrame
        ``respondent_id, inventory, mode, run, item_id, value, status``; a value is missing
        where the status is not ``ok``.

    Raises
    ------
    ParameterError
        The mode is unknown.

    Examples
    --------
    >>> answer(load_inventory("ipip20"), "simulated", respondents=2, seed=1).shape
    (40, 7)
    """
    if mode == "chat":
        from .chat import ask_chat as ask
    elif mode == "option_logits":
        from .logits import ask_logits as ask
    elif mode == "nli":
        from .logits import likert_by_nli as ask
    elif mode == "human":
        from .persons import ask_person as ask
    elif mode == "simulated":
        from .persons import simulate_graded as ask
    elif mode == "custom":
        from .persons import ask_custom as ask
    else:
        raise ParameterError(f"mode must be one of {', '.join(MODES)}, got '{mode}'.")
    return ask(inventory, **options)


def tidy(rows: list[dict] | pd.DataFrame, inventory: Inventory) -> pd.DataFrame:
    """Put answers into the form that every way of asking returns, and check them.

    Parameters
    ----------
    rows : list of dict or DataFrame
        Of each answer the columns of ``COLUMNS`` but ``inventory``; further ones are kept.
    inventory : Inventory

    Returns
    -------
    DataFrame
        One row per answer, ``value`` as float and missing where the status is not ``ok``.

    Raises
    ------
    ParameterError
        An item, a status or a value is none of the inventory's.
    """
    frame = pd.DataFrame(rows)
    if frame.empty:
        frame = pd.DataFrame(columns=list(COLUMNS))
    frame["inventory"] = inventory.id
    frame["value"] = frame["value"].astype(float)
    if stray := set(frame["status"]) - set(STATUSES):
        raise ParameterError(f"status must be one of {', '.join(STATUSES)}, got '{min(stray)}'.")
    frame["value"] = frame["value"].where(frame["status"] == "ok")
    spans = {}
    for item in inventory.items:
        values = [option.value for option in inventory.choices(item)]
        spans[item.id] = (min(values), max(values))
    if stray := set(frame["item_id"]) - set(spans):
        raise ParameterError(f"{inventory.id} has no item '{min(stray)}': correct it.")
    low = frame["item_id"].map(lambda i: spans[i][0]).astype(float)
    high = frame["item_id"].map(lambda i: spans[i][1]).astype(float)
    answered = frame["status"] == "ok"
    wrong = answered & ~frame["value"].between(low, high)
    if wrong.any():
        row = frame[wrong].iloc[0]
        raise ParameterError(
            f"{inventory.id}, item {row['item_id']}: {row['value']} is not between "
            f"{low[wrong].iloc[0]:g} and {high[wrong].iloc[0]:g}; record it as out of range."
        )
    extra = [column for column in frame.columns if column not in COLUMNS]
    return frame[[*COLUMNS, *extra]].reset_index(drop=True)


def _psychobench(name: str, texts: bool) -> Inventory:
    keys = psychobench_keys()[name]
    upstream = _wording(name) if texts else {}
    low, high = keys["range"]
    labels = keys["labels"]
    if isinstance(labels, dict):  # only some levels have words; the others are their number
        labels = [labels.get(value, str(value)) for value in range(low, high + 1)]
    reverse = set(keys["reverse"])
    scales = [
        {
            "id": scale["id"],
            "title": scale["title"],
            "items": [f"{name}_{i}" for i in scale["items"]],
            "reverse": [f"{name}_{i}" for i in scale["items"] if i in reverse],
            "mode": keys["mode"],
        }
        for scale in keys["scales"]
    ]
    by_title = {scale["title"]: scale["items"] for scale in keys["scales"]}
    for model, dimensions in keys.get("dimensions", {}).items():
        scales += [
            {
                "id": f"{model}_{title.lower().replace(' ', '_')}",
                "title": f"{title} ({model.upper()})",
                "items": [f"{name}_{i}" for interest in members for i in by_title[interest]],
                "mode": keys["mode"],
            }
            for title, members in dimensions.items()
        ]
    norms = [
        {"scale": scale["id"], "citation": keys["norm_citation"], **norm}
        for scale in keys["scales"]
        for norm in scale["norms"]
    ]
    questions = upstream.get("questions", {})
    return _checked(
        {
            "id": name,
            "title": keys["title"],
            "short_title": keys["upstream"],
            "measures": keys["measures"],
            "citation": keys["citation"],
            "source": f"PsychoBench's questionnaires.json, {keys['upstream']}",
            "licence": "wording: see the instrument's owner, read at run time and not shipped",
            "instructions": upstream.get("prompt", f"Instructions of the {keys['upstream']}."),
            "system": upstream.get("inner_setting"),
            "stem": keys.get("stem"),
            "options": [
                {"value": value, "label": label}
                for value, label in zip(range(low, high + 1), labels, strict=True)
            ],
            "items": [
                {
                    "id": f"{name}_{i}",
                    "text": questions.get(str(i), f"({keys['upstream']}, item {i})"),
                }
                for i in range(1, keys["n_items"] + 1)
            ],
            "scales": scales,
            "norms": norms,
        },
        f"data/norms/psychobench.yml, {name}",
    )


def _wording(name: str) -> dict:
    """The upstream entry with the project's corrections of its wording."""
    short = psychobench_keys()[name]["upstream"]
    entry = next(entry for entry in _upstream_file() if entry["name"] == short)
    entry = {**entry, "questions": dict(entry["questions"])}
    known = corrections()
    for row in known[(known["inventory"] == name) & (known["kind"] == "wording")].itertuples():
        if row.place == "prompt":
            entry["prompt"] = _replaced(entry["prompt"], row)
        else:
            number = row.place.removeprefix("item ")
            entry["questions"][number] = _replaced(entry["questions"][number], row)
    return entry


def _replaced(text: str, row) -> str:
    if row.upstream not in text:
        raise QuestionnaireError(
            f"data/norms/corrections.csv, {row.inventory}, {row.place}: '{row.upstream}' is not in "
            "the upstream wording; remove or correct that row."
        )
    return text.replace(row.upstream, row.ours)


@functools.cache
def _upstream_file() -> list[dict]:
    return json.loads(fetch(UPSTREAM).read_text(encoding="utf-8"))


def _checked(content: object, place: str) -> Inventory:
    if not isinstance(content, dict):
        raise QuestionnaireError(f"{place}: holds no inventory; start it with `id: ...`.")
    try:
        return Inventory.model_validate(content)
    except ValidationError as error:
        lines = []
        for mistake in error.errors():
            where = ", ".join(str(part) for part in mistake["loc"]) or "inventory"
            lines.append(f"{place}, {where}: {mistake['msg']}.")
        raise QuestionnaireError("\n".join(lines)) from None


def _mistakes(inventory: Inventory) -> list[str]:
    """What each part on its own cannot see."""
    found = []
    ids = [item.id for item in inventory.items]
    found += [f"item id '{i}' occurs twice; rename one" for i, n in Counter(ids).items() if n > 1]
    for item in inventory.items:
        options = inventory.choices(item)
        if len(options) < 2:
            found.append(f"item {item.id} has fewer than two options; add them")
        if len({option.value for option in options}) < len(options):
            found.append(f"item {item.id} has two options of one value; correct one")
        if inventory.categories:
            shape = [len(row) for row in item.weights or ()]
            if shape != [len(inventory.categories)] * len(options):
                found.append(f"item {item.id}: scores must be options by categories; correct them")
    for scale in inventory.scales:
        if unknown := set(scale.items) - set(ids):
            found.append(f"scale {scale.id} has no item '{min(unknown)}' to add; correct it")
        if stray := set(scale.reverse) - set(scale.items):
            found.append(f"scale {scale.id} reverses '{min(stray)}', which it does not hold")
    scales = {scale.id for scale in inventory.scales}
    found += [f"norms name no scale '{n.scale}'" for n in inventory.norms if n.scale not in scales]
    if len(inventory.bias) not in (0, len(inventory.categories)):
        found.append("the bias must have one number per category")
    return found
