"""Runs under the interpreter of qlatent's own environment, where this project is not installed.

One request a line, as JSON: ``load`` a model, ``run`` the questions, ``first`` answer.
"""

import json
import os
import sys
import time


def _main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the library prints
    import torch
    from qlatent.qmnli.qmnli import QMNLI
    from transformers import pipeline

    questions, pipe = [], None
    for line in sys.stdin:
        request = json.loads(line)
        if "load" in request:
            torch.set_num_threads(request["threads"])
            device = request.get("device", "cpu")
            pipe = pipeline("zero-shot-classification", model=request["load"], device=device)
            questions = [
                QMNLI(
                    context_template=premise,
                    answer_template=hypothesis,
                    dimensions={"term": terms, "intensifier": intensifiers},
                    model=pipe,
                )
                for premise, hypothesis, terms, intensifiers in request["questions"]
            ]
            answers.write("{}\n")
            continue
        asked = questions[: request.get("first", len(questions))]
        began = time.perf_counter()
        found = [p for question in asked for p in question.run(pipe)._pdf["P"]]
        took = time.perf_counter() - began
        answers.write(json.dumps({"seconds": took, "p": [float(p) for p in found]}) + "\n")


if __name__ == "__main__":
    _main()
