"""The scales of PsychoBench, by name or from a JSON file in its layout.

The project ships keys, ranges and norms of thirteen scales; their wording is read from
PsychoBench's own file at run time.
"""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
import yaml
from pydantic import Field

from ..data import fetch
from ..exceptions import QuestionnaireError
from ..paths import data_dir
from .checking import parse_part
from .layout import _count_options, _describe_file, _Layout, _make_identifier
from .model import Part, Questionnaire

_Whole = Annotated[int, Field(strict=True)]


@functools.cache
def psychobench_keys() -> dict[str, dict[str, Any]]:
    """Return keys, ranges, norms and sources of PsychoBench's scales, from ``data/norms``.

    Returns
    -------
    dict
        Keys, ranges, norms and sources by the questionnaire's id, in the order of Table 5 of Huang
        et al. (2024).
    """
    text = (data_dir() / "norms" / "psychobench.yml").read_text(encoding="utf-8")
    keys: dict[str, dict[str, Any]] = yaml.load(
        text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    )
    return keys


def _load_psychobench(name: str, texts: bool) -> Questionnaire:
    """Build one of PsychoBench's scales, from the project's keys and the downloaded wording.

    Parameters
    ----------
    name : str
    texts : bool
        Whether the items have their wording; without the wording nothing is downloaded.
    """
    keys = psychobench_keys()[name]
    upstream = _upstream_entry(name) if texts else {}
    low, high = keys["range"]
    labels = keys["labels"]
    if isinstance(labels, list):
        labels = dict(zip(range(low, high + 1), labels, strict=True))

    norms = [
        {"scale": scale["id"], "citation": keys["norm_citation"], **norm}
        for scale in keys["scales"]
        for norm in scale["norms"]
    ]
    questions = upstream.get("questions", {})
    items = [
        {"id": f"{name}_{i}", "text": questions.get(str(i), f"({keys['upstream']}, item {i})")}
        for i in range(1, keys["n_items"] + 1)
    ]
    content = {key: keys.get(key) for key in ("title", "measures", "citation", "stem")} | {
        "id": name,
        "short_title": keys["upstream"],
        "source": f"PsychoBench's questionnaires.json, {keys['upstream']}",
        "licence": "wording: see the questionnaire's owner, read at run time and not shipped",
        "wording": "upstream",
        "instructions": upstream.get("prompt", f"Instructions of the {keys['upstream']}."),
        "system": upstream.get("inner_setting"),
    }
    content |= {"options": _count_options(low, high, labels), "items": items}
    content |= {"scales": _scales(name, keys), "norms": norms}

    return parse_part(content, f"data/norms/psychobench.yml, {name}", Questionnaire)


def _scales(name: str, keys: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a questionnaire's scales, and the dimensions that combine several scales."""
    by_title = {scale["title"]: scale["items"] for scale in keys["scales"]}
    wholes = [(scale["id"], scale["title"], scale["items"]) for scale in keys["scales"]]

    for model, dimensions in keys.get("dimensions", {}).items():
        for title, members in dimensions.items():
            numbers = [number for member in members for number in by_title[member]]
            identity = f"{model}_{title.lower().replace(' ', '_')}"
            wholes.append((identity, f"{title} ({model.upper()})", numbers))

    scales = []
    for identity, title, numbers in wholes:
        scale = {"id": identity, "title": title, "mode": keys["mode"]}
        scale["items"] = [f"{name}_{number}" for number in numbers]
        scale["reverse"] = [f"{name}_{number}" for number in numbers if number in keys["reverse"]]
        scales.append(scale)

    return scales


def _upstream_entry(name: str) -> dict[str, Any]:
    """Return PsychoBench's entry for a scale, with the project's corrections of the wording."""
    entries = json.loads(fetch("psychobench").read_text(encoding="utf-8"))
    upstream_name = psychobench_keys()[name]["upstream"]
    entry: dict[str, Any] = next(entry for entry in entries if entry["name"] == upstream_name)
    corrections = pd.read_csv(data_dir() / "norms" / "corrections.csv", keep_default_na=False)
    chosen = (corrections["questionnaire"] == name) & (corrections["kind"] == "wording")
    for row in corrections[chosen].itertuples():
        texts = entry["questions"]
        place = row.place.removeprefix("item ")
        if row.place == "prompt":
            texts = entry

        if row.upstream not in texts[place]:
            raise QuestionnaireError(
                f"data/norms/corrections.csv, {name}, {row.place}: upstream lacks '{row.upstream}'."
            )

        texts[place] = texts[place].replace(row.upstream, row.ours)

    return entry


class _Crowd(Part):
    crowd_name: str
    mean: float
    std: float
    n: _Whole


class _Category(Part):
    cat_name: str
    cat_questions: tuple[_Whole, ...]
    crowd: tuple[_Crowd, ...] = ()


class _PsychoBench(_Layout):
    """One entry of PsychoBench's ``questionnaires.json``."""

    name: str
    questions: dict[str, str]
    inner_setting: str | None = None
    prompt: str
    scale: _Whole
    compute_mode: Literal["AVG", "SUM"]
    reverse: tuple[_Whole, ...] = ()
    categories: Annotated[tuple[_Category, ...], Field(min_length=1)]

    def convert(self, path: Path) -> dict[str, Any]:
        """Return the entry in the project's layout."""
        for number in self.reverse:
            if str(number) not in self.questions:
                raise ValueError(f"reverse: there is no question {number}; correct it")

        # The file has the sum of the lowest and highest answers, and the prompt often both.
        ends = re.search(r"from (-?\d{1,4}) to (-?\d{1,4})(?!\d)", self.prompt)
        low = int(ends[1]) if ends and int(ends[1]) + int(ends[2]) == self.scale else 1
        high = self.scale - low
        if not low < high <= low + 100:
            raise ValueError(f"scale: must be the lowest plus the highest answer, got {self.scale}")

        stem = _make_identifier(path.stem)
        titles = [category.cat_name.lower() for category in self.categories]
        names = [re.sub(r"[^a-z0-9]+", "_", title).strip("_") for title in titles]
        scales = []
        norms = []
        for number, category in enumerate(self.categories, start=1):
            items = category.cat_questions
            name = names[number - 1]
            if not name or names.count(name) > 1:  # titles share their letters, or have none
                name = f"{name or 's'}{number}"

            scale: dict[str, Any] = {"id": name, "title": category.cat_name}
            scale["items"] = [f"{stem}_{i}" for i in items]
            scale["reverse"] = [f"{stem}_{i}" for i in items if i in self.reverse]
            scales.append(scale | {"mode": "mean" if self.compute_mode == "AVG" else "sum"})

            for crowd in category.crowd:
                norm = {"scale": scale["id"], "group": crowd.crowd_name, "citation": "user"}
                norms.append(norm | {"n": crowd.n, "mean": crowd.mean, "sd": crowd.std})

        words = re.findall(r"(-?\d+) denotes ['\"]?([^'\",;.\n]+)", self.prompt)
        labels = {int(value): word for value, word in words}
        return _describe_file(path, self.name) | {
            "measures": ", ".join(category.cat_name for category in self.categories),
            "instructions": self.prompt,
            "system": self.inner_setting,
            "options": _count_options(low, high, labels),
            "items": [{"id": f"{stem}_{i}", "text": text} for i, text in self.questions.items()],
            "scales": scales,
            "norms": norms,
        }
