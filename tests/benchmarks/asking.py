"""Prompts to probabilities, ours and the peers': in a running process, and in a cold one."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from psychometrics.exceptions import PsychometricsError
from psychometrics.measures.scoring import item_scores
from psychometrics.models.embedded import load_embedded
from psychometrics.models.loading import load_tokenizer
from psychometrics.models.sources import base_path, find
from psychometrics.modes import load_respondent
from psychometrics.modes.nli import PROBABILITIES
from psychometrics.paths import cache_dir
from psychometrics.questionnaires import load_questionnaire
from psychometrics.questionnaires.prompts import prompts

from .flops import forward_flop, matmul_rate
from .rows import OURS, alternated, peak_mb, row, worker

QUESTIONNAIRES = ("gad7", "phq9", "soc13")
MEMBER, DECODER = "minilm-both-l6-s1", "smol"
MODELS = {"MiniLM": 29, "BERT-base": 4, "RoBERTa-large": 2, "SmolLM2-135M": 2}
"""The models, and how many of the 29 items each is asked: large ones are asked fewer, for time."""
OTHERS = 3
"""Items that a folder's model is asked."""
QLATENT = "1.0.27"
BATCH = 32
"""Of the transformers pipelines; on a processor larger ones gain nothing."""
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class _Question:
    """The first template of an item: what qlatent calls a question."""

    premise: str
    hypothesis: str
    terms: dict[str, float]
    intensifiers: dict[str, float]


def asking(
    models: Sequence[str] = tuple(MODELS), repetitions: int = 5, qlatent: str = "auto"
) -> list[dict]:
    """Rows of the NLI benchmark: each model asked by each tool, in turn.

    Parameters
    ----------
    models : sequence of str
        Of :data:`MODELS`, or folders of classifiers.
    repetitions : int
    qlatent : str
        "auto" makes an environment for it in the cache where there is none, "none" leaves it out,
        anything else is the path of a Python that has it.
    """
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for model in models:
            folder, note = saved(model, Path(scratch))
            rows += _one_model(model, folder, note, repetitions, qlatent)
    return rows


def start(model: str = "MiniLM", repetitions: int = 5, qlatent: str = "auto") -> list[dict]:
    """Rows of the first answer of a cold process: import, load, ask one prompt."""
    question, scripts = chosen_questions(1)[0], {}
    pair = [f"I feel {next(iter(question.terms))}.", "It often happens to me."]
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        folder, note = saved(model, Path(scratch))
        scripts[OURS] = [sys.executable, "-c", _OURS_FIRST.format(str(folder), pair)]
        scripts["transformers pipeline"] = [sys.executable, "-c", _PIPE_FIRST.format(
            str(folder), {"text": pair[0], "text_pair": pair[1]})]  # fmt: skip
        if python := _qlatent_python(qlatent):
            scripts[f"qlatent {QLATENT}"] = [str(python), "-c", _QLATENT_FIRST.format(
                str(folder), *pair)]  # fmt: skip
        tools = {name: lambda command=command: _cold(command) for name, command in scripts.items()}
        for tool in tools.values():  # files into the system's memory
            tool()
        for name, number, took, gave in alternated(tools, repetitions):
            more = {"cpu_seconds": gave["cpu_seconds"], "memory_mb": gave["memory_mb"]}
            versions = {"version": QLATENT} if "qlatent" in name else {}
            rows.append(row("start", f"first answer, {model}", 1, name.replace(f" {QLATENT}", ""),
                            took, repetition=number, note=note, precision="default", **more,
                            **versions))  # fmt: skip
    return rows


def _one_model(model: str, folder: Path, note: str, repetitions: int, qlatent: str) -> list[dict]:
    from transformers import AutoConfig

    questions = chosen_questions(MODELS.get(model, OTHERS))
    table = chosen_prompts(questions)
    pairs = list(table[["premise", "hypothesis"]].itertuples(index=False, name=None))
    who = _decoders()[0] if "answers" in _recipe(folder) else folder
    respondents = {dtype: load_respondent(who, device="cpu", dtype=dtype) for dtype in _DTYPES}
    config = AutoConfig.from_pretrained(folder)
    lengths = _lengths(folder, pairs)
    work, tokens = forward_flop(config, lengths) / 1e9, sum(lengths)
    answers: dict[str, np.ndarray] = {}
    tools: dict[str, Callable[[], dict | None]] = {}
    for dtype in _DTYPES:
        tools[f"rate:{dtype}"] = lambda dtype=dtype: {
            "rate": matmul_rate(config, min(tokens, 4096), _DTYPES[dtype]) / 1e9
        }
        tools[f"{OURS}:{dtype}"] = lambda dtype=dtype: _ours(
            respondents[dtype], pairs, table, answers, f"{OURS}:{dtype}"
        )
        tools |= _pipelines(folder, pairs, dtype, answers)
    with contextlib.ExitStack() as stack:
        decoder = "answers" in _recipe(folder)
        python = None if decoder else _qlatent_python(qlatent)
        if python:
            ask = stack.enter_context(worker([str(python), str(_WORKER)]))
            sent = [[q.premise, q.hypothesis, q.terms, q.intensifiers] for q in questions]
            ask(load=str(folder), questions=sent, threads=torch.get_num_threads())
            tools["qlatent:float32"] = lambda: _by_qlatent(ask, answers)
        for name, tool in tools.items():  # what is only done once is not counted
            if not name.startswith("rate"):
                tool()
        found = list(alternated(tools, repetitions))
    rates = {(name, number): gave["rate"] for name, number, _, gave in found if "rate" in gave}
    rows = []
    for name, number, took, _ in found:
        tool, _, dtype = name.partition(":")
        if tool == "rate":
            continue
        rows.append(
            row("asking", f"NLI, {model}", len(pairs), tool, took, precision=dtype,
                repetition=number, gflop=work, peak_gflops=rates[f"rate:{dtype}", number],
                tokens=tokens, agreement=_apart(answers, name), note=note)
        )  # fmt: skip
        if tool == "qlatent":
            rows[-1]["version"] = QLATENT
    return rows


def _recipe(folder: Path) -> dict:
    """How a decoder is asked; nothing for classifiers."""
    file = folder / "recipe.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def _lengths(folder: Path, pairs: list[tuple[str, str]]) -> list[int]:
    """Tokens of each prompt, without padding."""
    from transformers import AutoTokenizer

    tokenizer, recipe = AutoTokenizer.from_pretrained(folder), _recipe(folder)
    if "answers" in recipe:
        texts = [recipe["wording"].format(premise=p, hypothesis=h) for p, h in pairs]
        return [len(ids) for ids in tokenizer(texts)["input_ids"]]
    premises, hypotheses = map(list, zip(*pairs, strict=True))
    return [len(ids) for ids in tokenizer(premises, hypotheses)["input_ids"]]


def _ours(respondent, pairs, table, answers, name) -> None:
    """From pairs to item scores."""
    found = respondent.answer(pairs)
    answers[name] = found
    scored = table.assign(respondent_id="it", mode="nli")
    scored[list(PROBABILITIES)] = found
    item_scores(scored)


def _by_qlatent(ask: Callable[..., dict], answers: dict) -> dict:
    gave = ask(run=True)
    answers["qlatent:float32"] = np.array(gave.pop("p"))
    return gave


def _pipelines(folder, pairs, dtype: str, answers: dict) -> dict[str, Callable]:
    """The transformers pipelines that answer the same prompts."""
    from transformers import pipeline

    how = {"model": str(folder), "dtype": _DTYPES[dtype], "device": "cpu"}
    recipe = _recipe(folder)
    if "answers" in recipe:
        return _text_pipeline(folder, recipe, pairs, dtype, answers)
    classify = pipeline("text-classification", **how)
    given = [{"text": premise, "text_pair": hypothesis} for premise, hypothesis in pairs]

    def classified() -> None:
        rows = classify(given, top_k=None, batch_size=BATCH)
        scores = [{one["label"].lower(): one["score"] for one in row} for row in rows]
        answers[f"transformers pipeline:{dtype}"] = pd.DataFrame(scores)[
            list(PROBABILITIES)
        ].to_numpy()

    tools = {f"transformers pipeline:{dtype}": classified}
    if dtype == "float32" and len(pairs) > 1000:  # a premise with all its hypotheses at once
        zero_shot = pipeline("zero-shot-classification", **how)
        of = pd.DataFrame(pairs, columns=["p", "h"]).groupby("p", sort=False)["h"].agg(list)

        def zero_shot_all() -> None:
            found = {}
            for premise, labels in of.items():
                said = zero_shot(premise, labels, hypothesis_template="{}", multi_label=True,
                                 batch_size=BATCH)  # fmt: skip
                found |= {(premise, h): s for h, s in zip(said["labels"], said["scores"],
                                                          strict=True)}  # fmt: skip
            answers["transformers zero-shot:float32"] = np.array([found[pair] for pair in pairs])

        tools["transformers zero-shot:float32"] = zero_shot_all
    return tools


def _text_pipeline(folder, recipe, pairs, dtype, answers) -> dict[str, Callable]:
    """A decoder's first word, by the pipeline that generates text."""
    from transformers import AutoTokenizer, pipeline

    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    words = [tokenizer(word, add_special_tokens=False)["input_ids"][0]
             for word in recipe["answers"]]  # fmt: skip
    write = pipeline("text-generation", model=str(folder), tokenizer=tokenizer,
                     dtype=_DTYPES[dtype], device="cpu")  # fmt: skip
    texts = [recipe["wording"].format(premise=p, hypothesis=h) for p, h in pairs]

    def written() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            said = write(
                texts, max_new_tokens=1, do_sample=False, batch_size=BATCH,
                return_dict_in_generate=True, output_logits=True, return_full_text=False,
            )  # fmt: skip
        logits = np.array([np.asarray(one[0]["logits"], dtype="float64").ravel()[words]
                           for one in said])  # fmt: skip
        logits = np.exp(logits - logits.max(axis=1, keepdims=True))
        answers[f"transformers pipeline:{dtype}"] = logits / logits.sum(axis=1, keepdims=True)

    return {f"transformers pipeline:{dtype}": written}


def _apart(answers: dict[str, np.ndarray], name: str) -> float:
    """The greatest difference to our answers in float32.

    qlatent and the zero-shot pipeline leave neutral out: entailment against contradiction.
    """
    ours, found = answers[f"{OURS}:float32"].astype("float64"), answers[name]
    if found.ndim == 1:
        ours = ours[:, 0] / (ours[:, 0] + ours[:, 2])
    return float(np.abs(ours - found).max())


def chosen_questions(number: int) -> list[_Question]:
    """So many items of all, evenly spread, each by its first template."""
    found = []
    for name in QUESTIONNAIRES:
        questionnaire = load_questionnaire(name)
        for item in questionnaire.items:
            template = item.templates[0]
            terms = template.terms or item.terms
            signed = {term: 1.0 for term in terms.source} | {term: -1.0 for term in terms.inverse}
            levels = {t: level.weight for level in questionnaire.levels(item) for t in level.terms}
            found.append(_Question(template.premise, template.hypothesis, signed, levels))
    return [found[int(place)] for place in np.linspace(0, len(found) - 1, number)]


def chosen_prompts(questions: Sequence[_Question]) -> pd.DataFrame:
    """The prompts of the questions, in their order."""
    table = pd.concat([prompts(name) for name in QUESTIONNAIRES], ignore_index=True)
    first = table[table["template"] == 1]
    items = list(dict.fromkeys(first["item_id"]))
    chosen = [items[int(place)] for place in np.linspace(0, len(items) - 1, len(questions))]
    return first[first["item_id"].isin(chosen)].reset_index(drop=True)


def saved(model: str, scratch: Path) -> tuple[Path, str]:
    """A model's folder, and what is to be said of its weights."""
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        RobertaConfig,
        RobertaForSequenceClassification,
    )

    folder = scratch / model.replace("/", "-")
    if model not in MODELS:
        return Path(model), "a folder that was given"
    if model in ("MiniLM", "SmolLM2-135M"):
        name = MEMBER if model == "MiniLM" else _decoders()[0]
        _save(*load_embedded(name), folder)
        if model != "MiniLM":
            shutil.copy(find(name).folder / "recipe.json", folder)
        return folder, f"the embedded member {name}"
    named = {"id2label": dict(enumerate(PROBABILITIES)),
             "label2id": {name: i for i, name in enumerate(PROBABILITIES)}}  # fmt: skip
    torch.manual_seed(0)
    tokenizer = load_tokenizer(base_path())
    if model == "BERT-base":
        loaded = BertForSequenceClassification(BertConfig(**named))
    else:
        tokenizer.model_input_names = ["input_ids", "attention_mask"]
        loaded = RobertaForSequenceClassification(RobertaConfig(
            vocab_size=50265, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16,
            intermediate_size=4096, max_position_embeddings=514, pad_token_id=0, **named,
        ))  # fmt: skip
    with torch.no_grad():  # or all answers would be about a third
        head = getattr(loaded.classifier, "out_proj", loaded.classifier)
        head.weight.mul_(20)
    _save(loaded, tokenizer, folder)
    return folder, "random weights in its sizes; the word pieces of bert-base-uncased"


def _save(model, tokenizer, folder: Path) -> None:
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _decoders() -> list[str]:
    from psychometrics.asking.population import population_table

    table = population_table()
    return table.loc[table["family"] == "SmolLM2", "respondent_id"].tolist()


# --- peers in other processes

_WORKER = Path(__file__).with_name("qlatent_worker.py")
_OURS_FIRST = "import psychometrics as pm; print(pm.load_respondent({!r}).answer([tuple({!r})]))"
_PIPE_FIRST = (
    "from transformers import pipeline; "
    "print(pipeline('text-classification', model={!r}, device='cpu')([{!r}], top_k=None))"
)
_QLATENT_FIRST = (
    "from transformers import pipeline; from qlatent.qmnli.qmnli import QMNLI; "
    "pipe = pipeline('zero-shot-classification', model={!r}, device='cpu'); "
    "q = QMNLI({!r}, {!r}, {{'intensifier': {{'often': 1}}}}, pipe, index=[]); "
    "print(q.run(pipe)._pdf)"
)
_PEAK = "; import re; print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])"
"""Most memory that the process had, in kB, as ``peak_mb`` has it; a peer has no such function."""


def _cold(command: Sequence[str]) -> dict:
    """Wall and processor seconds and the peak memory of a process that has ended well."""
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [*command[:-1], command[-1] + (_PEAK if peak_mb() is not None else "; print('nan')")]
    quiet = os.environ | {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run(command, capture_output=True, text=True, env=quiet, check=False)
    took, used = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        words = done.stderr.strip().splitlines() or ["it said nothing"]
        raise PsychometricsError(f"{command[0]} has failed: {words[-1][:300]}")
    worked = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    peak = float(done.stdout.split()[-1]) / 1024
    return {"seconds": took, "cpu_seconds": worked, "memory_mb": peak}


def _qlatent_python(asked: str) -> Path | None:
    """The Python that has qlatent; its environment is made where there is none."""
    if asked != "auto":
        return None if asked == "none" else Path(asked)
    folder = cache_dir() / "peers" / f"qlatent-{QLATENT}"
    python = folder / "bin" / "python"
    if not (folder / "ready").is_file():
        wanted = [f"qlatent=={QLATENT}", "ipython", "overrides", "transformers>=4.57,<5",
                  f"torch=={torch.__version__}"]  # fmt: skip
        for command in ([sys.executable, "-m", "venv", str(folder)],
                        [str(python), "-m", "pip", "install", "--quiet", *wanted]):  # fmt: skip
            subprocess.run(command, check=True)
        (folder / "ready").touch()
    return python
