"""The picture of the README and the landing page."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt

from .. import figures
from ..ask import ask
from ..intervals import scale_intervals
from ..paths import book_dir
from ..questionnaires import load_questionnaire
from ..scoring import item_scores, pss
from ..trends import trends


def draw_result(questionnaire: str = "gad7", seed: int = 1) -> Path:
    """Draw the picture of the README and the landing page from the embedded population's answers.

    Parameters
    ----------
    questionnaire : str
        Whose answers to draw.
    seed : int
        Of the bootstrap.

    Returns
    -------
    Path
        The picture.
    """
    loaded = load_questionnaire(questionnaire)
    answers = ask(loaded, "embedded")
    curves = trends(pss(answers), seed=seed)
    scores = scale_intervals(item_scores(answers), loaded, seed=seed)
    figures.style()
    figure, axes = plt.subplots(1, 2, figsize=(12, 4.8))
    figures.overview(curves, scores, f"{loaded.short_title}, mean item score", axes)
    path = book_dir() / "_static" / "result.png"
    figure.savefig(path, dpi=100)
    plt.close(figure)
    return path
