"""Classifiers in ONNX files answer as torch does, without torch; see psychometrics.modes.onnx."""

from __future__ import annotations

import contextlib
import io
import logging
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

from psychometrics.modes import load_respondent

pytest.importorskip("onnxruntime", reason="needs the extra onnx")
pytest.importorskip("onnxscript", reason="needs torch's exporter to ONNX")

PAIRS = [
    ("I feel calm.", "It rarely happens."),
    ("I worry about many things, and I cannot stop.", "It happens often."),
    ("It was dry.", "It rained all day, and I was late."),
]


def export(folder: Path, to: Path, float16: bool = False) -> Path:
    """Export a folder's classifier as transformers.js writes it: ``to`` is the ONNX file."""
    import torch
    from transformers import AutoModelForSequenceClassification

    model = AutoModelForSequenceClassification.from_pretrained(
        folder, attn_implementation="eager"
    ).eval()
    types = getattr(model.config, "type_vocab_size", 0) > 1

    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model.half() if float16 else model

        def forward(self, input_ids, attention_mask, token_type_ids=None):
            more = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
            return self.model(input_ids=input_ids, attention_mask=attention_mask, **more).logits

    ids = torch.arange(18).reshape(2, 9) % 10 + 5
    inputs = (ids, torch.ones_like(ids), torch.zeros_like(ids))[: 3 if types else 2]
    names = ["input_ids", "attention_mask", "token_type_ids"][: len(inputs)]
    batch = torch.export.Dim("batch", min=1, max=999)
    length = torch.export.Dim("length", min=3, max=128)
    shapes = {name: {0: batch, 1: length} for name in names}
    if not types:
        shapes["token_type_ids"] = None

    to.parent.mkdir(parents=True, exist_ok=True)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with (
        warnings.catch_warnings(),
        torch.inference_mode(),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            Classifier(), inputs, dynamo=True, optimize=False, verbose=False, input_names=names,
            output_names=["logits"], dynamic_shapes=shapes,
        )  # fmt: skip
        program.save(to, external_data=False)

    settings = to.parent.parent if to.parent.name == "onnx" else to.parent
    for path in folder.glob("*.json"):
        shutil.copy(path, settings)
    return settings


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "deberta-v2", "electra"])
def test_answers_in_float32_equal_torchs_within_1e_5(family, save_tiny_model, tmp_path):
    plain = save_tiny_model(tmp_path / "plain", family)
    folder = export(plain, tmp_path / "onnx-model" / "onnx" / "model.onnx")
    expected = load_respondent(plain).answer(PAIRS)
    respondent = load_respondent(folder)
    np.testing.assert_allclose(respondent.answer(PAIRS), expected, rtol=0, atol=1e-5)
    assert expected.std() > 0.01
    assert respondent.identity.source == "onnx"
    assert respondent.identity.dtype == "float32"
