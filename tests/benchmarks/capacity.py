"""What many models cost, on paper: from assumed sizes and rates, and from what was measured."""

from __future__ import annotations

import pandas as pd

MODELS = (88, 1_000, 50_000)
SIZES = {22.7: 0.2, 66: 0.15, 109: 0.35, 184: 0.1, 355: 0.2}
"""Assumed share of models by millions of weights: MiniLM, DistilBERT, BERT-base, DeBERTa-v3-base,
RoBERTa-large. No listing of a hub was counted for it."""
EMBEDDINGS = {22.7: 0.52, 66: 0.36, 109: 0.22, 184: 0.54, 355: 0.15}
"""Share of a model's weights that are looked up instead of multiplied."""
PROMPTS, TOKENS = 2_832, 20.5
"""Prompts of GAD-7, PHQ-9 and SOC-13, and their mean length in tokens of BERT."""
PEAK_TFLOPS, SHARE = 989.4, 0.2
"""Dense bfloat16 of an NVIDIA H100 SXM by its data sheet; the share of it that is assumed."""
READ_MB_S = 250.0
"""Assumed speed of downloading weights: two gigabits a second."""


def capacity(
    models: tuple[int, ...] = MODELS,
    gflops: float = 1e3 * PEAK_TFLOPS * SHARE,
    store_bytes: float = 35.0,
    overhead: float = 5.0,
) -> pd.DataFrame:
    """Hours, and bytes read and stored, of asking so many models all prompts of EMPALC.

    Parameters
    ----------
    models : sequence of int
    gflops : float
        Floating-point operations a second, in thousands of millions: of the card as assumed, or a
        processor's as measured.
    store_bytes : float
        Of an answer in the store, as measured.
    overhead : float
        Seconds a model for finding, loading and keeping, which the next model's forward pass does
        not hide.

    Returns
    -------
    DataFrame
        Indexed by ``models``: ``pflop`` of the forward passes; ``forward_hours``, of one card at
        that rate; ``overhead_hours``; ``read_tb`` of weights (two bytes each) and
        ``read_hours`` at :data:`READ_MB_S`; ``stored_gb`` of answers.

    Examples
    --------
    >>> capacity((1000,)).loc[1000, ["pflop", "read_tb"]].round(2).tolist()
    [12.43, 0.28]
    """
    weights = sum(share * size * 1e6 for size, share in SIZES.items())
    multiplied = sum(share * size * 1e6 * (1 - EMBEDDINGS[size]) for size, share in SIZES.items())
    rows = {}
    for number in models:
        flop = 2 * multiplied * PROMPTS * TOKENS * number
        rows[number] = {
            "pflop": flop / 1e15,
            "forward_hours": flop / (gflops * 1e9) / 3600,
            "overhead_hours": number * overhead / 3600,
            "read_tb": number * weights * 2 / 1e12,
            "read_hours": number * weights * 2 / (READ_MB_S * 1e6) / 3600,
            "stored_gb": number * PROMPTS * store_bytes / 1e9,
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("models")
