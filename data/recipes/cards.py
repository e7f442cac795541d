"""Write a model card into the folder of each embedded respondent: ``python -m recipes.cards``.

The card is a README.md with the metadata that model hubs read. Its facts come from the recipe and
from ``data/population.csv``.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import yaml

from psychometrics.paths import data_dir

from .templating import fill_template

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
    base = _BASES[row["family"]]
    return fill_template("card.md.j2", heading=heading, row=row, base=base, sources=sources)


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
