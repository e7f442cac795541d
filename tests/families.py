"""Tiny NLI classifiers of sixteen families and the bases they were trained from, saved here."""

from __future__ import annotations

import json
from pathlib import Path

from tests.conftest import _save_tiny_model

FAMILIES = {
    "albert": ("albert", "AlbertForMaskedLM"), "bart": ("bart", "BartForConditionalGeneration"),
    "bert": ("bert", "BertForPreTraining"), "bert-without-pooler": ("bert", "BertForMaskedLM"),
    "convbert": ("convbert", "ConvBertForMaskedLM"),
    "deberta": ("deberta-v2", "DebertaV2ForMaskedLM"),
    "distilbert": ("distilbert", "DistilBertForMaskedLM"),
    "electra": ("electra", "ElectraForMaskedLM"), "gpt2": ("gpt2", "GPT2LMHeadModel"),
    "llama": ("llama", "LlamaForCausalLM"), "longformer": ("longformer", "LongformerForMaskedLM"),
    "modernbert": ("modernbert", "ModernBertForMaskedLM"), "mpnet": ("mpnet", "MPNetForMaskedLM"),
    "qwen": ("qwen2", "Qwen2ForCausalLM"), "roberta": ("roberta", "RobertaModel"),
    "roberta-without-pooler": ("roberta", "RobertaForMaskedLM"),
    "t5": ("t5", "T5ForConditionalGeneration"), "xlnet": ("xlnet", "XLNetLMHeadModel"),
}  # fmt: skip
"""Architecture of each family, and the class that its base was published as."""


def save_family(folder: Path, family: str) -> Path:
    """Save an NLI classifier, whose manifest names its base, saved beside it; return its folder."""
    import transformers

    architecture, published = FAMILIES[family]
    model, base = folder / family, folder / f"{family}-base"
    _save_tiny_model(model, architecture)
    _save_tiny_model(base, architecture)
    tokenizer = transformers.AutoTokenizer.from_pretrained(base)
    if architecture in ("gpt2", "llama", "qwen2"):  # their bases are published without one
        tokenizer.pad_token = None
        tokenizer.save_pretrained(base)
    config = transformers.AutoConfig.from_pretrained(base)
    getattr(transformers, published)(config).save_pretrained(base)
    (model / "manifest.json").write_text(json.dumps({"base": str(base)}))
    return model
