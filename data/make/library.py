"""Record what question_llm computes: ``python -m data.make.library questionnaire_classes.py``.

The argument is the library's own file, at commit 683df0b of d-noe/question_llm; it is run and not
shipped. ``data/texts/library_answers.json`` holds seeded random questionnaires in its layout,
probabilities of their answers, and what its ``make_prompts()`` and ``evaluate()`` return; and how
its ``from_json()`` reads the three small files of this folder.
"""

from __future__ import annotations

import importlib.util
import json
import sys

import numpy as np

from psychometrics.paths import data_dir

CLASSES = {
    "choice": "Questionnaire",
    "likert": "LikertQuestionnaire",
    "true-false": "TFQuestionnaire",
}


def random_file(rng: np.random.Generator, bias: bool) -> dict:
    """Return a questionnaire of one to four questions in the library's layout."""
    categories = [f"category {n}" for n in range(rng.integers(1, 4))]
    data = {}
    for question in range(rng.integers(1, 5)):
        size = rng.integers(2, 6)
        data[f"id_{question}"] = {
            "question": f"Question {question}?",
            "choices": [f"choice {n}" for n in range(size)],
            "scores": rng.normal(size=(size, len(categories))).round(2).tolist(),
        }
    extra = {"categories_bias": rng.normal(size=len(categories)).round(2).tolist()} if bias else {}
    return {"categories": categories, **extra, "data": data}


def recorded(library: object, file: dict, rng: np.random.Generator) -> dict:
    """Return a questionnaire, probabilities of its answers, and the library's prompts and score."""
    theirs = library.Questionnaire.from_dict(file)
    shares = [
        rng.dirichlet(np.ones(len(part["choices"]))).tolist() for part in file["data"].values()
    ]
    probabilities = [
        dict(zip(keys, row, strict=True))
        for keys, row in zip(theirs.get_choices_keys(), shares, strict=True)
    ]
    return {
        "file": file,
        "probabilities": shares,
        "prompts": theirs.make_prompts(),
        "evaluate": theirs.evaluate(probabilities),
    }


if __name__ == "__main__":
    spec = importlib.util.spec_from_file_location("question_llm", sys.argv[1])
    library = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(library)
    folder, rng = data_dir() / "texts" / "library", np.random.default_rng(20261123)
    files = {
        name: getattr(library, kind).from_json(folder / f"{name}.json")
        for name, kind in CLASSES.items()
    }
    shown = {
        "random": [recorded(library, random_file(rng, n % 2 == 1), rng) for n in range(40)],
        "files": {
            name: {part: getattr(theirs, part) for part in ("questions", "choices", "scores")}
            for name, theirs in files.items()
        },
    }
    path = folder.parent / "library_answers.json"
    path.write_text(json.dumps(shown) + "\n", encoding="utf-8")
