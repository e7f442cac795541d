"""Other ways to compute the same forward passes, in turn with ours: what did not help, and why not.

Each is a respondent that differs from ours in one thing; it is prepared and warmed before it is
timed, and the seconds that this takes are noted.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
import torch

from psychometrics.modes import load_respondent
from psychometrics.modes.nli import NLIRespondent

from .asking import MEMBER, MODELS, chosen_prompts, chosen_questions
from .rows import OURS, alternated, row

TASK = "MiniLM, computed otherwise"
_MANY_TOKENS = 16_384


def tried(repetitions: int = 5, number: int = MODELS["MiniLM"]) -> list[dict]:
    """Rows of ours in bfloat16 and of each other way, with how far its answers lie from float32's.

    Parameters
    ----------
    repetitions : int
    number : int
        Items that are asked.
    """
    pairs = [
        tuple(p)
        for p in chosen_prompts(chosen_questions(number))[["premise", "hypothesis"]].to_numpy()
    ]
    exact = _member("float32").answer(pairs)
    rows, tools, said = [], {}, {}
    for (name, precision), prepare in _WAYS.items():
        began = time.perf_counter()
        try:
            with warnings.catch_warnings():  # of libraries about what they will do one day
                warnings.simplefilter("ignore")
                answer = prepare()
                away = np.abs(answer(pairs) - exact)
        except ModuleNotFoundError as error:
            rows.append(row("tried", TASK, len(pairs), name, None, note=f"no {error.name}"))
            continue
        said[name] = {
            "precision": precision,
            "agreement": float(away.max()),
            "note": f"prepared in {time.perf_counter() - began:.0f} s; {away.mean():.4f} from "
            "float32 on average",
        }
        tools[name] = lambda answer=answer: {"answers": answer(pairs)}
    return rows + [
        row("tried", TASK, len(pairs), name, took, repetition=repetition, **said[name])
        for name, repetition, took, _ in alternated(tools, repetitions)
    ]


def _member(dtype: str) -> NLIRespondent:
    return load_respondent(MEMBER, device="cpu", dtype=dtype)


def _ours() -> Callable:
    return _member("bfloat16").answer


def _padded() -> Callable:
    """transformers' own forward pass, over batches of texts that are about as long."""
    respondent = _member("bfloat16")
    respondent._fast_forward = None
    return respondent.answer


def _large_batches() -> Callable:
    respondent = _member("bfloat16")
    respondent.token_budget = _MANY_TOKENS
    return respondent.answer


def _compiled() -> Callable:
    """transformers' own forward pass, compiled for any shape."""
    respondent = _member("bfloat16")
    respondent._fast_forward = None
    respondent.model.forward = torch.compile(respondent.model.forward, dynamic=True)
    return respondent.answer


def _int8() -> Callable:
    """Weights in eight bits, and what they are multiplied with, scaled batch by batch."""
    respondent = _member("float32")
    respondent._fast_forward = None
    respondent.model = torch.ao.quantization.quantize_dynamic(
        respondent.model, {torch.nn.Linear}, dtype=torch.qint8
    )
    return respondent.answer


def _openvino() -> Callable:
    """OpenVINO in bfloat16, a batch for all texts of one length, so that it pads nothing either."""
    if find_spec("openvino") is None:
        raise ModuleNotFoundError(name="openvino")
    import openvino

    respondent = _member("float32")
    model = respondent.model

    class Logits(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids, mask, types):
            return self.model(input_ids=ids, attention_mask=mask, token_type_ids=types).logits

    example = tuple(torch.ones(2, 16, dtype=torch.long) for _ in range(3))
    converted = openvino.convert_model(Logits(), example_input=example)
    compiled = openvino.Core().compile_model(
        converted, "CPU", {"INFERENCE_PRECISION_HINT": "bf16",
                           "INFERENCE_NUM_THREADS": torch.get_num_threads()},
    )  # fmt: skip

    def logits(features: list[dict]) -> torch.Tensor:
        lengths = np.array([len(one["input_ids"]) for one in features])
        found = np.empty((len(features), 3), dtype="float32")
        for length in np.unique(lengths):
            places = np.flatnonzero(lengths == length)
            ids, types = (np.array([features[i][name] for i in places])
                          for name in ("input_ids", "token_type_ids"))  # fmt: skip
            found[places] = compiled([ids, np.ones_like(ids), types])[0]
        return torch.from_numpy(found)

    respondent._fast_forward = logits
    return respondent.answer


_WAYS = {
    (OURS, "bfloat16"): _ours,
    ("padded batches of transformers", "bfloat16"): _padded,
    (f"batches of {_MANY_TOKENS:,} tokens", "bfloat16"): _large_batches,
    ("torch.compile", "bfloat16"): _compiled,
    ("OpenVINO", "bfloat16"): _openvino,
    ("int8 weights", "int8"): _int8,
}
