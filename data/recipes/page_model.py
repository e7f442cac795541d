"""Compare the model of the page *Ask a model* with Python: ``data/page_model.csv``.

Run as ``python -m recipes.page_model``; it needs onnxruntime, which the project does not require.
"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from psychometrics import load_questionnaire, load_respondent, prompts
from psychometrics.paths import data_dir, questionnaires_dir
from psychometrics_book.sphinx import page_model


def shipped_pairs() -> list[tuple[str, str]]:
    """Return the distinct pairs of sentences of the project's questionnaires."""
    loaded = [load_questionnaire(path) for path in sorted(questionnaires_dir().glob("*.yaml"))]
    asked = [one for one in loaded if any(item.templates for item in one.items)]
    table = pd.concat([prompts(one) for one in asked])[["premise", "hypothesis"]]
    return list(table.drop_duplicates().itertuples(index=False, name=None))


def page_answers(encoded: list[dict]) -> np.ndarray:
    """Return the exported model's probabilities, (n, 3)."""
    import onnxruntime

    session = onnxruntime.InferenceSession(page_model.exported())
    order = sorted(range(len(encoded)), key=lambda i: len(encoded[i]["input_ids"]))
    answers = np.zeros((len(encoded), 3), dtype="float32")

    for start in range(0, len(order), 64):
        rows = order[start : start + 64]
        given = {"trained": np.array(1, dtype="float32")}
        for name, column in (
            ("ids", "input_ids"), ("kinds", "token_type_ids"), ("mask", "attention_mask")
        ):  # fmt: skip
            columns = itertools.zip_longest(*(encoded[i][column] for i in rows), fillvalue=0)
            given[name] = np.array(list(columns)).T

        answers[rows] = session.run(["probabilities"], given)[0]

    return answers


def main() -> None:
    pairs = shipped_pairs()
    respondent = load_respondent(page_model.MEMBER)
    python = respondent.answer(pairs)
    page = np.abs(page_answers(respondent._encode(pairs)) - python).max(axis=1)
    row = {
        "fingerprint": page_model.fingerprint(),
        "prompts": len(pairs),
        "largest": page.max(),
        "mean": page.mean(),
    }
    pd.DataFrame([row]).to_csv(data_dir() / "page_model.csv", index=False, float_format="%.6f")


if __name__ == "__main__":
    main()
