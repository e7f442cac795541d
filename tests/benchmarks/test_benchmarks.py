"""Benchmarks: what is counted is right, the appendix measures anew, a peer that fails is named."""

from __future__ import annotations

import pandas as pd
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModelForSequenceClassification

from tests import benchmarks
from tests.benchmarks.flops import forward_flop
from tests.benchmarks.rows import COLUMNS


@pytest.mark.parametrize("architecture", ["bert", "roberta"])
def test_operations_are_those_that_torch_counts(architecture, save_tiny_model, tmp_path):
    folder = save_tiny_model(tmp_path / architecture, architecture)
    model = AutoModelForSequenceClassification.from_pretrained(
        folder, attn_implementation="eager"
    ).eval()
    with torch.inference_mode(), FlopCounterMode(display=False) as counter:
        model(input_ids=torch.full((2, 11), 5), attention_mask=torch.ones(2, 11, dtype=int))
    assert counter.get_total_flops() == pytest.approx(forward_flop(model.config, [11, 11]))


def test_ratios_are_of_the_same_round_and_against_our_quickest_precision():
    rows = pd.DataFrame(
        [("psychometrics", "float32", 1, 4.0), ("psychometrics", "float32", 2, 4.0),
         ("psychometrics", "bfloat16", 1, 1.0), ("psychometrics", "bfloat16", 2, 2.0),
         ("peer", "float32", 1, 3.0), ("peer", "float32", 2, 10.0)],
        columns=["tool", "precision", "repetition", "seconds"],
    ).assign(part="asking", task="t", gflop=8.0, peak_gflops=4.0, tokens=100)  # fmt: skip
    found = benchmarks.summary(rows.reindex(columns=list(COLUMNS)))
    found = found.set_index(["tool", "precision"])
    peer = found.loc[("peer", "float32")]
    assert (peer["times_ours"], peer["times_low"], peer["times_high"]) == (4.0, 3.0, 5.0)
    assert peer["times_same"] == (3 / 4 + 10 / 4) / 2
    assert found.loc[("psychometrics", "float32"), "share_of_peak"] == 0.5
    assert found.loc[("psychometrics", "float32"), "tokens_per_second"] == 25


def test_a_tiny_model_is_measured_beside_the_pipeline(tmp_path, tiny_model):
    table = benchmarks.measure(
        tmp_path / "b.csv", ["asking"], [str(tiny_model)], repetitions=2, qlatent="none"
    )
    assert set(table["tool"]) == {"psychometrics", "transformers pipeline"}
    assert (table.groupby(["tool", "precision"]).size() == 2).all()
    assert table.loc[table["precision"] == "float32", "agreement"].max() < 1e-4
    assert (table[["gflop", "peak_gflops"]] > 0).all(axis=None)
