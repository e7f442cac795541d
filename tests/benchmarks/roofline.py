"""Where the seconds of a forward pass go, each operation against what bounds it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from math import prod
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile
from transformers import AutoConfig

from psychometrics.modes import load_respondent

from .asking import MODELS, chosen_prompts, chosen_questions, saved
from .flops import matmul_rate, memory_rate
from .rows import OURS, row

OPERATIONS = {
    "mkldnn::_linear_pointwise": "linear layers",
    "aten::linear": "linear layers",  # on processors that refuse bfloat16 in the packed ones
    "aten::_scaled_dot_product_flash_attention_for_cpu": "attention",
    "aten::native_layer_norm": "normalisation",
    "aten::add": "additions",
}


def roofline(models: Sequence[str] = ("MiniLM", "BERT-base"), repetitions: int = 5) -> list[dict]:
    """Rows of each operation of a pass in bfloat16: seconds, work, and the rate of its roof.

    Linear layers are bounded by multiplication, the others by memory: theirs is in gigabytes, as
    read and written once, against a copy of a batch's states.
    """
    rows = []
    for model in models:
        table = chosen_prompts(chosen_questions(MODELS[model]))
        pairs = list(table[["premise", "hypothesis"]].itertuples(index=False, name=None))
        with tempfile.TemporaryDirectory() as scratch:
            folder, note = saved(model, Path(scratch))
            respondent = load_respondent(folder, device="cpu", dtype="bfloat16")
            config = AutoConfig.from_pretrained(folder)
        respondent.answer(pairs)
        for number in range(repetitions):
            roofs = matmul_rate(config, 4096, torch.bfloat16), memory_rate(config.hidden_size)
            began = time.perf_counter()
            with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiled:
                respondent.answer(pairs)
            found = _by_operation(profiled, time.perf_counter() - began)
            rows += [
                row("roofline", f"{model}: {name}", len(pairs), OURS, seconds, note=note,
                    precision="bfloat16", repetition=number + 1, gflop=work / 1e9 or None,
                    peak_gflops=roofs[name != "linear layers"] / 1e9)
                for name, (seconds, work) in found.items()
            ]  # fmt: skip
    return rows


def _by_operation(profiled: profile, wall: float) -> dict[str, tuple[float, float]]:
    """Seconds and work of each operation; the rest is what computes nothing, Python and tokens."""
    found = dict.fromkeys(OPERATIONS.values(), (0.0, 0.0))
    for event in profiled.key_averages(group_by_input_shape=True):
        if name := OPERATIONS.get(event.key):
            shapes, (seconds, work) = event.input_shapes, found[name]
            took = event.cpu_time_total if name == "linear layers" else event.self_cpu_time_total
            done = event.count * (
                2 * prod(shapes[0]) * shapes[1][0]
                if name == "linear layers"
                else 2 * sum(map(prod, shapes[:3])) + 2 * prod(shapes[0])
            )
            found[name] = seconds + took / 1e6, work + done
    return found | {"the rest": (wall - sum(seconds for seconds, _ in found.values()), 0.0)}
