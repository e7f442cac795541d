"""The directive ``ask-a-model``: a real model that answers in the page once a reader starts it.

```` ```{ask-a-model} ```` is the full box; with ``:small:`` it asks one template of an item with
the terms and words from the options, with ``:questionnaire:`` it asks all items of a
questionnaire that a reader pastes. If the model or its runtime is not available when
the book is built, the box says so and the rest is built.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from functools import cache
from pathlib import Path
from typing import ClassVar

import pandas as pd
from docutils import nodes
from docutils.parsers.rst import directives
from scipy import stats
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.osutil import relative_uri

from psychometrics.authoring.wording import word_lists
from psychometrics.paths import data_dir, questionnaires_dir
from psychometrics.questionnaires import load_questionnaire

from ..templating import fill_template
from . import page_model

FOLDER = "_static/live"
PAGE = "ask"
TITLE = "Ask a model"
LISTED = ("gad7", "phq9", "soc13", "esteem10", "challenges", "placebo_weather")
EXAMPLES = {
    "gad7.yaml": "GAD-7, seven items on anxiety (YAML)",
    "placebo_weather.yaml": "A placebo about wet weather (YAML)",
}
LABELS = {
    "text": "The item, as a person would read it",
    "premise": "Premise, with {term}",
    "hypothesis": "Hypothesis, with {intensifier}",
    "source": "Source terms: they say what the item says",
    "inverse": "Inverse terms: they say the opposite",
    "words": "Frequency words with their weights",
    "seed": "Seed of the untrained head",
}
SERVE = (
    "This page was opened from a file, and browsers load models only from a server. Serve the "
    "book: run “python -m http.server --directory book/_build/html” and open http://localhost:8000/ask.html."
)
MISSING = "This copy of the book was built without the model or its runtime for browsers."
LOGGER = logging.getLogger(__name__)


@cache
def files() -> dict[str, Path]:
    """Return the files that the page loads, or none if they are not available."""
    try:
        return page_model.page_files()
    except (OSError, ValueError, ImportError) as error:
        LOGGER.info("Ask a model is built without its model: %s", error)
        return {}


def templates(name: str) -> list[dict]:
    """Return each template of a questionnaire as the fields of the page."""
    questionnaire = load_questionnaire(name)
    fields = []
    for number, item in enumerate(questionnaire.items, 1):
        for place, template in enumerate(item.templates, 1):
            terms = template.terms or item.terms
            label = f"{questionnaire.short_title} {number}: {item.text}"
            fields.append(
                {
                    "label": label + (f" (in other words, {place})" if place > 1 else ""),
                    "text": item.text,
                    "premise": template.premise,
                    "hypothesis": template.hypothesis,
                    "source": ", ".join(terms.source),
                    "inverse": ", ".join(terms.inverse),
                    "words": ", ".join(
                        f"{word} {level.weight:g}"
                        for level in questionnaire.levels(item)
                        for word in level.terms
                    ),
                }
            )

    return fields


class AskAModel(SphinxDirective):
    """A box in which a reader asks the model one item or a questionnaire."""

    option_spec: ClassVar = {
        "small": directives.flag,
        "questionnaire": directives.flag,
        **dict.fromkeys(("source", "inverse", "words"), directives.unchanged),
    }

    def run(self):
        app = self.env.app
        if app.builder.format != "html":
            return []

        folder = Path(app.outdir, FOLDER)
        for name, path in files().items():
            folder.mkdir(parents=True, exist_ok=True)
            if not (folder / name).is_file() or _size(folder / name) != _size(path):
                shutil.copyfile(path, folder / name)

        whole = "questionnaire" in self.options
        name, title = ("questionnaire", "Ask a whole questionnaire") if whole else ("ask", TITLE)
        data = self._of_a_questionnaire() if whole else self._of_an_item()
        text = json.dumps(self._shared() | data, separators=(",", ":")).replace("</", "<\\/")
        html = fill_template("box.html.j2", name=name, title=title, data=text)
        return [
            nodes.raw("", text, format="html", explorer=script)
            for script, text in ({"ask": ""} | {name: html}).items()
        ]

    def _shared(self) -> dict:
        """Return what each box needs to load the model."""
        app = self.env.app
        here = app.builder.get_target_uri(self.env.docname)
        sizes = {name: _size(path) for name, path in files().items()}
        versions = json.dumps([sizes, page_model.PACKAGES])

        return {
            "t": stats.t.isf(0.025, range(1, 31)).round(6).tolist(),
            "files": [{"name": name, "size": size} for name, size in sizes.items()],
            "size": sum(sizes.values()),
            "longest": page_model.LONGEST,
            "folder": relative_uri(here, FOLDER) + "/",
            "worker": relative_uri(here, "_static/explorers/ask.worker.mjs"),
            "page": relative_uri(here, app.builder.get_target_uri(PAGE)),
            "cache": f"ask-a-model-{hashlib.sha256(versions.encode()).hexdigest()[:12]}",
            "serve": SERVE,
            "missing": MISSING,
        }

    def _of_an_item(self) -> dict:
        small = "small" in self.options
        fields = {name: self.options[name] for name in LABELS if name in self.options}

        return {
            "small": small,
            "labels": LABELS,
            "first": templates("gad7")[0] | {"seed": "1"} | fields,
            "items": [] if small else [fields for name in LISTED for fields in templates(name)],
            "rules": None if small else word_lists(),
        }

    def _of_a_questionnaire(self) -> dict:
        folder = questionnaires_dir()
        table = (folder / "trust10.csv").read_text(encoding="utf-8").splitlines()[:5]
        examples = [{"label": "Trust, four items (CSV)", "text": "\n".join(table)}]
        examples += [
            {"label": label, "text": (folder / name).read_text(encoding="utf-8")}
            for name, label in EXAMPLES.items()
        ]

        return {
            "examples": examples,
            "words": templates("gad7")[0]["words"],
            "rules": word_lists(),
        }


def _size(path: Path) -> int:
    return path.stat().st_size


class MeasuredError(SphinxDirective):
    """A sentence on how far the page's answers are from Python's (``data/page_model.csv``)."""

    def run(self):
        row = pd.read_csv(data_dir() / "page_model.csv").iloc[0]
        size = sum(path.stat().st_size for path in files().values()) / 1e6
        sentences = (
            f"Over the {row['prompts']:,} different prompts that come with the book, no "
            f"probability differs from Python's in 32-bit floats by more than {row['largest']:.4f} "
            f"({row['mean']:.4f} on average)."
        )
        sentences += f" Your browser loads {size:.0f} MB once." if size else ""
        return [nodes.paragraph("", sentences)]


def setup(app):
    app.add_directive("ask-a-model", AskAModel)
    app.add_directive("ask-a-model-error", MeasuredError)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
