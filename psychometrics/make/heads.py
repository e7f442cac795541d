"""Trains the embedded masked-LM and acceptability heads: ``python -m psychometrics.make.heads``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from ..data import cola, mnli_sample
from ..paths import cache_dir, data_dir
from ..respondents.embedded import acceptability, head_table, load_masked_lm, masked_perplexity
from ..respondents.sources import BASE_MODEL, base_path


def _build_acceptability(work: Path) -> None:
    from sklearn.metrics import matthews_corrcoef

    from ..training import train_acceptability  # torch

    manifest = train_acceptability(base_path(), cola("train"), work)
    folder = _pack_head(work, "cola")
    figures = {}
    for part in ("in_domain", "out_of_domain"):
        judged = cola(part)
        chosen = acceptability(judged["sentence"].tolist()) > 0.5
        figures[f"matthews_{part}"] = round(
            float(matthews_corrcoef(judged["acceptable"], chosen)), 4
        )
    _write_recipe(folder, manifest, figures)


def _build_masked_lm(work: Path) -> None:
    from ..training import adapt_encoder  # torch

    pairs = mnli_sample()
    held_out = set(pairs.loc[pairs["held_out"], ["premise", "hypothesis"]].to_numpy().ravel())
    rest = pairs.loc[~pairs["held_out"], ["premise", "hypothesis"]].to_numpy().ravel()
    sentences = sorted(set(rest) - held_out)
    manifest = adapt_encoder(base_path(), sentences, work, epochs=2)
    folder = _pack_head(work, "mlm")
    model, tokenizer = load_masked_lm()
    figures = {
        "held_out_sentences": len(held_out),
        "perplexity": round(masked_perplexity(model, tokenizer, sorted(held_out)), 2),
    }
    _write_recipe(folder, manifest, figures)


def _pack_head(trained: Path, name: str) -> Path:
    """Keep adapter and head in fp16."""
    from safetensors.torch import load_file, save_file

    folder = data_dir() / "heads" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file in ("adapter_model.safetensors", "head.safetensors"):
        if (trained / file).is_file():
            weights = load_file(trained / file)
            # The decoder's weights are the word embeddings of the base.
            kept = {k: v.half().contiguous() for k, v in weights.items() if v.numel() < 1e7}
            save_file(kept, folder / file)
    config = json.loads((trained / "adapter_config.json").read_text(encoding="utf-8"))
    config["base_model_name_or_path"] = BASE_MODEL
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=1) + "\n")
    return folder


def _write_recipe(folder: Path, manifest: dict, figures: dict) -> None:
    manifest = {k: v for k, v in manifest.items() if k not in ("base", "versions")}
    text = json.dumps({"base": BASE_MODEL, **manifest, **figures}, indent=1)
    (folder / "recipe.json").write_text(text + "\n")


if __name__ == "__main__":
    for name, build in (("cola", _build_acceptability), ("mlm", _build_masked_lm)):
        if not (data_dir() / "heads" / name / "recipe.json").is_file():
            build(cache_dir() / "training" / name)
    print(head_table())
