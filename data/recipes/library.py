"""Record question_llm's results: ``python -m recipes.library questionnaire_classes.py``.

The argument is the library's own file, at commit 683df0b of d-noe/question_llm; it is run but not
shipped. ``data/texts/library_answers.json`` has seeded random questionnaires in its layout,
probabilities of their answers, the results of its ``make_prompts()`` and ``evaluate()`` (for those
with their own prompt also normalised, with the result of ``get_optim_answers()``), and the result
of its ``from_json()`` for the three small files of this folder.
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


def stated_file(rng: np.random.Generator) -> dict:
    """Return a random questionnaire with its own prompt, labels and order of choices."""
    templates = [
        "Q: {question}\n{choices}\nA: ",
        "{choices}\n\n{question} Choose one.",
        "{question}",
    ]
    indices = ["numerical", "alphabetical", "alphabetical_u", "alphabetical_l"]

    return random_file(rng, bias=True) | {
        "prompt_template": templates[rng.integers(3)],
        "choice_delim": [". ", ") ", ": "][rng.integers(3)],
        "index_type": indices[rng.integers(4)],
        "seed": int(rng.integers(100)),
    }


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


def recorded_results(library: object, file: dict, rng: np.random.Generator) -> dict:
    """Also return the library's normalised results and its answers for and against a category."""
    found = recorded(library, file, rng)
    theirs = library.Questionnaire.from_dict(file)
    keys = theirs.get_choices_keys()
    shares = [
        dict(zip(*pair, strict=True)) for pair in zip(keys, found["probabilities"], strict=True)
    ]
    category = file["categories"][0]
    within = float(rng.uniform(0, 2))
    ideals = theirs.get_optim_answers(category, neg_examples=True, thrs=within)
    normalised = theirs.evaluate(shares, normalize_res=True)

    return found | {"keys": keys, "normalised": normalised, "ideals": ideals, "within": within}


if __name__ == "__main__":
    spec = importlib.util.spec_from_file_location("question_llm", sys.argv[1])
    library = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(library)
    folder = data_dir() / "texts" / "library"
    rng = np.random.default_rng(20261123)
    own = np.random.default_rng(20261124)
    files = {
        name: getattr(library, kind).from_json(folder / f"{name}.json")
        for name, kind in CLASSES.items()
    }
    shown = {
        "random": [recorded(library, random_file(rng, n % 2 == 1), rng) for n in range(40)],
        "stated": [recorded_results(library, stated_file(own), own) for _ in range(40)],
        "files": {
            name: {part: getattr(theirs, part) for part in ("questions", "choices", "scores")}
            for name, theirs in files.items()
        },
    }
    path = folder.parent / "library_answers.json"
    path.write_text(json.dumps(shown) + "\n", encoding="utf-8")
