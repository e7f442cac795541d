"""Write forty items for a class, with their answers: ``make course``, or with ``SEED=7``.

Each kind of item is drawn four times with different numbers, so that two years, or two rows of a
room, get different sheets. The answers are only in the written file, not on any page of the book.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.metrics import silhouette_samples

from psychometrics.measures.irt import information, probability
from psychometrics.measures.normalisation import two_way

DRAWS = 4


def items(seed: int) -> pd.DataFrame:
    """Return forty items: ``chapter, question, answer, how``."""
    rng = np.random.default_rng(seed)
    kinds = (
        _pss,
        _weighted,
        _interval,
        _silhouette,
        _alpha,
        _corrected,
        _rasch,
        _odds,
        _keyed,
        _norm,
    )
    rows = []
    for kind in kinds:
        sheet = [kind(rng) for _ in range(DRAWS + 1)]
        rows += sheet[:DRAWS]  # the last has always been left out, so that a seed keeps its items

    return pd.DataFrame(rows, columns=["chapter", "question", "answer", "how"])


def _pss(rng: np.random.Generator) -> tuple[str, str, float, str]:
    p = rng.integers(1, 10, (2, 2)) / 10
    return (
        "first-score",
        f"A model gives *tense* the probabilities {p[0, 0]} (*rarely*) and {p[0, 1]} "
        f"(*often*), and *relaxed* {p[1, 0]} and {p[1, 1]}. Normalise the table. What is "
        "the PSS of *often* for *tense*?",
        two_way(p)[0, 1],
        "Divide each column by its sum, then each row.",
    )


def _weighted(rng: np.random.Generator) -> tuple[str, str, float, str]:
    share = rng.multinomial(20, [0.25] * 4) / 20
    return (
        "first-score",
        "The PSS of a term for the weights −2, −1, 1 and 2 are "
        f"{share[0]}, {share[1]}, {share[2]} and {share[3]}. What is its weighted mean?",
        share @ [-2, -1, 1, 2],
        "Multiply each share by its weight, and add.",
    )


def _interval(rng: np.random.Generator) -> tuple[str, str, float, str]:
    n = rng.integers(7, 20)
    mean = rng.integers(-9, 10) / 10
    sd = rng.integers(2, 12) / 10
    return (
        "first-score",
        f"A scale has {n} items. Their scores have the mean {mean} and the standard "
        f"deviation {sd}. What is the upper end of the 95 % interval by Student's *t*?",
        mean + stats.t.ppf(0.975, n - 1) * sd / np.sqrt(n),
        "Mean plus the quantile of t with one degree of freedom less than items, times sd/√n.",
    )


def _silhouette(rng: np.random.Generator) -> tuple[str, str, float, str]:
    x = rng.choice(np.arange(1, 20), 4, replace=False) / 10
    value = silhouette_samples(x[:, None], [1, 1, 0, 0])[0]
    return (
        "consistency",
        f"On a line, *tense* lies at {x[0]}, *nervous* at {x[1]}, *calm* at {x[2]} and "
        f"*relaxed* at {x[3]}. The first two are source terms. "
        "What is the silhouette of *tense*?",
        value,
        "(b − a) / max(a, b), with the mean distances from the other kind and from its own.",
    )


def _alpha(rng: np.random.Generator) -> tuple[str, str, float, str]:
    k = rng.integers(3, 12)
    r = rng.integers(1, 9) / 10
    return (
        "consistency",
        f"{k} items have equal variances, and every two of them correlate at {r}. "
        "What is Cronbach's alpha?",
        k * r / (1 + (k - 1) * r),
        "k r / (1 + (k − 1) r).",
    )


def _corrected(rng: np.random.Generator) -> tuple[str, str, float, str]:
    r = rng.integers(1, 6) / 10
    r_xx = rng.integers(6, 10) / 10
    r_yy = rng.integers(6, 10) / 10
    return (
        "relations",
        f"Two scales correlate at {r}; their reliabilities are {r_xx} and {r_yy}. "
        "What is the correlation corrected for attenuation?",
        r / np.sqrt(r_xx * r_yy),
        "Divide by the root of the product of the reliabilities.",
    )


def _rasch(rng: np.random.Generator) -> tuple[str, str, float, str]:
    theta = rng.integers(-15, 16) / 10
    b = rng.integers(-15, 16) / 10
    item = pd.DataFrame({"difficulty": [b], "discrimination": [1.0], "guessing": [0.0]}, ["a"])
    ask = rng.random() < 0.5
    value = (probability if ask else information)(np.array([theta]), item)
    return (
        "items",
        f"A respondent has an ability of {theta} logits, an item a difficulty of {b}. "
        + ("With what probability is it solved" if ask else "How much information does it give")
        + " under the Rasch model?",
        np.ravel(value)[0],
        "P = 1 / (1 + exp(b − θ))" + ("." if ask else "; information is P (1 − P)."),
    )


def _odds(rng: np.random.Generator) -> tuple[str, str, float, str]:
    t = rng.integers(2, 10, (2, 4))
    n = t.sum(axis=1)
    return (
        "items",
        "Two strata of equal score hold a, b, c, d = "
        + " and ".join(", ".join(map(str, row)) for row in t)
        + " (right and wrong answers of people, then of models). What is the Mantel-Haenszel "
        "odds ratio?",
        (t[:, 0] * t[:, 3] / n).sum() / (t[:, 1] * t[:, 2] / n).sum(),
        "Σ a d / n over Σ b c / n.",
    )


def _keyed(rng: np.random.Generator) -> tuple[str, str, float, str]:
    x = rng.integers(1, 6, 4)
    return (
        "self-report",
        "A scale of four items has options from 1 to 5. The answers are "
        f"{', '.join(map(str, x))}; the second and fourth item are reverse-keyed. "
        "What is the score, as a mean?",
        (x[0] + 6 - x[1] + x[2] + 6 - x[3]) / 4,
        "Replace a reverse-keyed answer x by 6 − x, then take the mean.",
    )


def _norm(rng: np.random.Generator) -> tuple[str, str, float, str]:
    mean = rng.integers(20, 46) / 10
    norm = rng.integers(25, 41) / 10
    sd = rng.integers(5, 11) / 10
    return (
        "self-report",
        f"A model's mean is {mean}, with a standard deviation of 0.2 over its runs. "
        f"The norm is {norm} with {sd}. What is δ?",
        (mean - norm) / sd,
        "Divide the difference by the spread of the people.",
    )


def _main() -> None:
    parser = argparse.ArgumentParser(description="Write forty items with their answers.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("runs/course-items.csv"))
    arguments = parser.parse_args()
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    items(arguments.seed).round({"answer": 4}).to_csv(arguments.output, index=False)
    print(f"{arguments.output}: forty items with their answers. Keep it from the class.")


if __name__ == "__main__":
    _main()
