"""How many operations a questionnaire gives a device, and how often it copies, by model class.

Both are counted on the processor, in float16, for which it packs no weights, so that the layers are
those of a card. Nothing is timed. A number of operations depends on a model's layers and on the
lengths of the texts, not on widths, so that narrow models with random weights stand for real ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.profiler import ProfilerActivity, profile

from psychometrics.models.loading import load_tokenizer
from psychometrics.models.sources import base_path
from psychometrics.modes.mode import Identity
from psychometrics.modes.nli import PROBABILITIES, NLIRespondent, _WordsRespondent

from .asking import chosen_prompts, chosen_questions
from .rows import OURS, row

CLASSES = {
    "BERT-base": ("bert", 12),
    "RoBERTa-large": ("roberta", 24),
    "DeBERTa-v3-base": ("deberta-v2", 12),
    "SmolLM2-135M": ("llama", 30),
    "Qwen2.5-1.5B": ("qwen2", 28),
}
"""The class of each model, and its layers."""
_SIZES = {
    "hidden_size": 16, "num_attention_heads": 4, "intermediate_size": 16, "pad_token_id": 0,
    "max_position_embeddings": 514,
}  # fmt: skip
_DEBERTA = {
    "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False,
    "position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": True,
    "type_vocab_size": 0,
}  # fmt: skip
# What only looks at a tensor's memory or reserves some, and starts nothing on a card.
_FREE = {
    f"aten::{name}"
    for name in (
        "_local_scalar_dense", "_nested_tensor_from_mask", "_reshape_alias", "_unsafe_view",
        "alias", "as_strided", "chunk", "detach", "detach_", "empty", "empty_like",
        "empty_strided", "expand", "flatten", "is_nonzero", "item", "lift_fresh", "narrow",
        "numpy_T", "permute", "reshape", "resize_", "resolve_conj", "resolve_neg", "result_type",
        "select", "slice", "split", "split_with_sizes", "squeeze", "t", "tensor_split",
        "transpose", "unbind", "unflatten", "unsqueeze", "view", "view_as",
    )
}  # fmt: skip


def operations() -> list[dict]:
    """Rows of each model: operations and copies, as we read texts, and in two other ways.

    The prompts are those of the first template of GAD-7's items.
    """
    table = chosen_prompts(chosen_questions(7))
    pairs = list(table[["premise", "hypothesis"]].itertuples(index=False, name=None))
    rows = []
    for name, (architecture, layers) in CLASSES.items():
        respondent = _respondent(architecture, layers)
        respondent.token_budget = 10**9  # a card's memory holds all
        note = f"{architecture}, {layers} layers, random weights"
        for tool, answer in _ways(respondent, pairs).items():
            counts = _counted(answer)
            counted = row(
                "operations", name, len(pairs), tool, None, precision="float16", note=note
            )
            # A count belongs to no processor and no date, unlike the times beside it.
            rows.append(counted | counts | {"processor": None, "date": None})

    return rows


def _ways(respondent: Any, pairs: list[tuple[str, str]]) -> dict[str, Callable[[], object]]:
    """Return how the pairs can be read: as we do, length by length, and padded in one batch."""
    fast = respondent._fast_forward
    encoded = respondent._encode(sorted(set(pairs)))

    def read_by_length() -> None:
        respondent._fast_forward = None
        respondent.answer(pairs)
        respondent._fast_forward = fast

    @torch.inference_mode()
    def read_padded() -> None:
        width = max(len(one["input_ids"]) for one in encoded)
        columns = {
            name: [[*one[name], *[0] * (width - len(one[name]))] for one in encoded]
            for name in encoded[0]
        }
        columns["attention_mask"] = [
            [1] * len(one["input_ids"]) + [0] * (width - len(one["input_ids"])) for one in encoded
        ]
        inputs = {name: torch.tensor(rows, device="cpu") for name, rows in columns.items()}
        respondent.model(**inputs).logits.float().softmax(-1).cpu()

    ways: dict[str, Callable[[], object]] = {OURS: lambda: respondent.answer(pairs)}
    if fast is not None:
        ways["transformers, one pass a length"] = read_by_length
    ways["transformers, one padded batch"] = read_padded
    return ways


def _counted(answer: Callable[[], object]) -> dict[str, int]:
    answer()  # what is made once
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        answer()
    with _Copies() as copies:
        answer()
    tops = [event for event in profiled.events() if event.cpu_parent is None]
    return {"operations": sum(map(_started, tops)), "copies": copies.count}


def _started(event: Any) -> int:
    """Return how many operations an event started: its own, or those within it."""
    within = sum(map(_started, event.cpu_children))
    if within or event.name in _FREE or not event.name.startswith("aten::"):
        return within
    return 1


class _Copies(TorchFunctionMode):
    """Count copies between a card and the processor, if all but fresh tensors were on the card."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self._on_processor: dict[int, torch.Tensor] = {}

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(function, "__name__", "")
        is_fresh = name in ("tensor", "from_numpy") and "device" not in kwargs
        is_here = bool(args) and id(args[0]) in self._on_processor
        places = [one for one in (*args, *kwargs.values()) if isinstance(one, torch.device)]
        to_card = name == "to" and bool(places)
        from_card = name in ("cpu", "tolist", "item", "__bool__", "__int__", "__float__")
        self.count += (name == "tensor" and not is_fresh) or (to_card and is_here)
        self.count += from_card and not is_here

        result = function(*args, **kwargs)
        if to_card:
            self._on_processor.pop(id(result), None)
        elif is_fresh or (is_here and isinstance(result, torch.Tensor) and name != "embedding"):
            self._on_processor[id(result)] = result
        return result


def _respondent(architecture: str, layers: int) -> NLIRespondent:
    """Return a narrow model with random weights and MiniLM's word pieces, which answers pairs."""
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification

    decodes = architecture in ("llama", "qwen2")
    tokenizer = load_tokenizer(base_path())
    if architecture in ("roberta", "deberta-v2"):
        tokenizer.model_input_names = ["input_ids", "attention_mask"]

    more = {"num_key_value_heads": 2} if decodes else {"id2label": dict(enumerate(PROBABILITIES))}
    more |= _DEBERTA if architecture == "deberta-v2" else {}
    config = AutoConfig.for_model(
        architecture, vocab_size=len(tokenizer), num_hidden_layers=layers, **_SIZES, **more
    )
    torch.manual_seed(0)
    builder = AutoModelForCausalLM if decodes else AutoModelForSequenceClassification
    model = builder.from_config(config).to(torch.float16).eval()
    identity = Identity(architecture, device="cpu", dtype="float16")

    if decodes:
        recipe = {"wording": "{premise} {hypothesis} Answer:", "answers": ["yes", "maybe", "no"]}
        return _WordsRespondent(model, tokenizer, identity, recipe)
    return NLIRespondent(model, tokenizer, identity)
