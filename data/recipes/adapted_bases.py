"""Make ``data/adapted_bases.csv``: ``python -m recipes.adapted_bases``.

Does a member's silhouette come from its head or from its base? Following the last deviation in
``data/plans/within-base.yml``, sixty untrained heads are put on the base that a member's training
adapted, and on the same base before adaptation. Decoders also get random words, and the untouched
decoder is asked with the member's own words. This takes ten minutes on one processor core.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from psychometrics.asking.ask import ask
from psychometrics.asking.population import population, untouched_bases
from psychometrics.models.loading import load_model, load_tokenizer
from psychometrics.models.sources import SMOLLM2, find
from psychometrics.models.vectors import last_states, layer_vectors, pair_vectors, worded
from psychometrics.modes import load_respondent
from psychometrics.nulls.evidence import profiles
from psychometrics.nulls.respondents import drawn_words, head_logits
from psychometrics.paths import data_dir
from psychometrics.questionnaires import load_questionnaire
from psychometrics_book.studies.untrained import REAL

from . import dose

HEADS = 60


def _main() -> None:
    loaded = [load_questionnaire(name) for name in REAL]
    table, places = dose.templates(REAL)
    parts = tuple(
        tuple(part[["premise", "hypothesis"]].itertuples(index=False, name=None))
        for _, part in table.groupby("questionnaire", sort=False)
    )
    pairs = [pair for part in parts for pair in part]
    members = population("all")
    answers = ask(loaded, members, progress=False)
    trained = profiles(answers, loaded)["silhouette"].mean(axis=1)

    rows = []
    stands = zip(*untouched_bases(members).values(), strict=True)
    for name, (base, layers, wording) in zip(members, stands, strict=True):
        untouched = layer_vectors(base, {layers}, parts, wording)[layers]
        row = {"respondent_id": name, "base": base, "layers": layers, "trained": trained[name]}
        for which, vectors in (("adapted", _adapted(name, pairs)), ("untouched", untouched)):
            row |= _silhouettes(vectors, places, base, which)

        if base == SMOLLM2:
            row["own words, untouched"] = _own_words(name, untouched, places)

        rows.append(row)
        print(row, flush=True)

    frame = pd.DataFrame(rows)
    frame.to_csv(data_dir() / "adapted_bases.csv", index=False, float_format="%.4f")


def _adapted(name: str, pairs: list[tuple[str, str]]) -> np.ndarray:
    """Return a trained member's vectors of pairs, which its head or its words read."""
    respondent = load_respondent(name)
    if hasattr(respondent, "wording"):
        texts = worded(pairs, respondent.wording)
        return last_states(respondent.model, respondent.tokenizer, texts)
    return pair_vectors(respondent.model.base_model, respondent.tokenizer, pairs)[-1]


def _silhouettes(vectors: np.ndarray, places: list, base: str, which: str) -> dict[str, float]:
    """Return mean and standard deviation of the silhouettes of untrained heads on vectors."""
    decodes = base == SMOLLM2
    drawn = [
        head_logits(vectors, np.random.default_rng([0, number]), decodes) for number in range(HEADS)
    ]
    values = _mean_silhouettes(np.stack(drawn), places)
    found = {f"heads, {which}": values.mean(), f"heads, {which}, sd": values.std(ddof=1)}

    if decodes:
        words = (drawn_words(base, np.random.default_rng([4, number])) for number in range(HEADS))
        values = _mean_silhouettes(np.stack([vectors @ three.T for three in words]), places)
        found[f"words, {which}"] = values.mean()
        found[f"words, {which}, sd"] = values.std(ddof=1)

    return found


def _own_words(name: str, vectors: np.ndarray, places: list) -> float:
    """Return the silhouette of the untouched decoder that answers by a member's own words."""
    words = find(name).recipe["answers"]
    tokenizer = load_tokenizer(find(SMOLLM2))
    ids = [tokenizer(word, add_special_tokens=False)["input_ids"][0] for word in words]
    model, _ = load_model(find(SMOLLM2), "causal")
    rows = model.get_output_embeddings().weight.detach()[ids].numpy()
    return float(_mean_silhouettes((vectors @ rows.T)[None], places)[0])


def _mean_silhouettes(logits: np.ndarray, places: list) -> np.ndarray:
    """Return each head's mean silhouette over items, from logits (heads, prompts, 3)."""
    entailment = dose.shares(logits.astype(float), "entailment")
    return dose.score(entailment, places)["silhouette"].mean(axis=1)


if __name__ == "__main__":
    _main()
