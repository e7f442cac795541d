"""inspect: a task with its own solver and scorer of multiple choices."""

import json
import os
import sys
import tempfile

import inspect_ai
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import choice
from inspect_ai.solver import multiple_choice

asked = json.load(sys.stdin)
os.environ["NULLS_API_KEY"] = "none"
os.environ["NULLS_BASE_URL"] = asked["url"]
samples = [
    Sample(input=item, choices=asked["options"], target="A", id=number)
    for number, item in enumerate(asked["items"], 1)
]
task = inspect_ai.Task(dataset=MemoryDataset(samples), solver=multiple_choice(), scorer=choice())
with tempfile.TemporaryDirectory() as folder:
    model = f"openai-api/nulls/{asked['model']}"
    (log,) = inspect_ai.eval(task, model=model, display="none", log_dir=folder)
    letters = {sample.id: sample.scores["choice"].answer for sample in log.samples}

print(json.dumps(["ABCDE".index(letters[number]) + 1 for number in sorted(letters)]))
