"""Draws the picture of the README anew: ``python -m psychometrics.make.picture``."""

from __future__ import annotations

import matplotlib.pyplot as plt

from .. import figures
from ..ask import ask
from ..intervals import scale_intervals
from ..paths import book_dir
from ..population import readable_names
from ..questionnaires import load_questionnaire
from ..scoring import item_scores, pss
from ..trends import trends


def _main() -> None:
    loaded = load_questionnaire("gad7")
    answers = ask(loaded, "embedded")
    curves = trends(pss(answers))
    scores = scale_intervals(item_scores(answers), loaded)
    figures.style()
    names = readable_names(scores["respondent_id"])
    scores["respondent_id"] = scores["respondent_id"].map(names)
    figure, axes = plt.subplots(2, 1, figsize=(8, 8.4), height_ratios=(1, 1.8))
    figures.overview(curves, scores, f"{loaded.short_title}, mean item score", axes)
    axes[1].set_title(f"scores of {len(scores)} small models, with 95 % intervals")
    figure.savefig(book_dir() / "_static" / "result.png", dpi=130)


if __name__ == "__main__":
    _main()
