"""Write a model card into the folder of each embedded respondent: ``python -m recipes.cards``.

The card is a README.md with the metadata that model hubs read. Its facts come from the recipe and
from ``data/population.csv``.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import yaml

from psychometrics.paths import data_dir

_DATA = {"mnli": "nyu-mll/multi_nli", "snli": "stanfordnlp/snli"}
_BASES = {
    "MiniLM": "sentence-transformers/all-MiniLM-L6-v2",
    "SmolLM2": "HuggingFaceTB/SmolLM2-135M-Instruct",
}


def model_card(row: pd.Series) -> str:
    """Return the card of a respondent, given its row of ``population.csv``."""
    sources = [name for name in _DATA if name in row["data"]]
    metadata = {
        "license": "apache-2.0",
        "base_model": _BASES[row["family"]],
        "pipeline_tag": "text-classification",
        "library_name": "peft" if row["tuning"] == "lora" else "transformers",
        "language": "en",
        "tags": ["natural-language-inference", "psychometrics"],
        "datasets": [_DATA[name] for name in sources],
        "metrics": ["accuracy"],
    }
    heading = yaml.safe_dump(metadata, sort_keys=False)
    return (
        f"---\n{heading}---\n\n# {row['respondent_id']}\n\n"
        f"A small model of natural language inference: {_BASES[row['family']]}, cut after "
        f"{row['layers']:.0f} layers, trained on {row['pairs']:.0f} pairs of "
        f"{' and '.join(name.upper() for name in sources)} ({row['tuning']}, {row['epochs']:.0f} "
        f"epochs, learning rate {row['lr']:g}, seed {row['seed']:.0f}).\n\n"
        f"- **Accuracy** on held-out pairs: {row['accuracy']:.3f} "
        f"({row['low']:.3f} to {row['high']:.3f}).\n"
        "- **Made for** questionnaires in the form of inference, as one of a population of "
        "respondents: `psychometrics profile " + row["respondent_id"] + "`.\n"
        "- **Not made for** judging people or texts. A score of this model on a questionnaire is "
        "a property of its answers, not of a mind; untrained layers on the same base give similar "
        "reliabilities.\n"
        "- **Source of all numbers:** `data/population.csv`; trained by `make population`.\n"
    )


def write_cards() -> int:
    """Write all cards and return their number."""
    table = pd.read_csv(data_dir() / "population.csv")
    folders = [data_dir() / "population" / name for name in table["respondent_id"]]
    written = 0
    for (_, row), folder in zip(table.iterrows(), folders, strict=True):
        if folder.is_dir():
            (folder / "README.md").write_text(model_card(row), encoding="utf-8")
            written += 1

    return written


if __name__ == "__main__":
    print(f"{write_cards()} cards in {Path('data') / 'population'}")
