"""Train the embedded population: ``python -m recipes.population``."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
from statsmodels.stats.proportion import proportion_confint

from psychometrics.asking.population import FAMILIES, population_table
from psychometrics.exceptions import DataError, ParameterError
from psychometrics.models.sources import BASE_MODEL, base_path
from psychometrics.modes import load_respondent
from psychometrics.paths import cache_dir, data_dir

RECIPE = ["data", "share", "genre", "layers", "tuning", "epochs", "lr", "seed"]
"""Columns that define a member of a family; a decoder's adapter also has a rank and a wording."""


def _build_population(
    only: list[str] | None = None, workers: int = 2, folder: str | Path | None = None
) -> pd.DataFrame:
    """Train missing members of ``data/population.csv``, and fill in the table.

    Parameters
    ----------
    only : list of str, optional
        Train only these members, even if they exist.
    workers : int
        Number of members trained at the same time, each on one thread.
    folder : str or Path, optional
        Folder of unfinished training, so that a stopped build resumes.

    Returns
    -------
    DataFrame
        The table, as :func:`psychometrics.asking.population.population_table` returns it.
    """
    work = Path(folder) if folder else cache_dir() / "training"
    table = population_table()

    if only and (unknown := set(only) - set(table["respondent_id"])):
        raise ParameterError(
            f"data/population.csv has no row {', '.join(sorted(unknown))}: add it."
        )

    there = data_dir() / "population"
    todo = [
        row
        for row in table.to_dict("records")
        if (row["respondent_id"] in only if only else not (there / row["respondent_id"]).is_dir())
    ]
    threads = 1 if workers > 1 else None

    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        genres = sorted({row["genre"] for row in todo if isinstance(row["genre"], str)})
        for done in as_completed([pool.submit(_adapt, genre, work, threads) for genre in genres]):
            done.result()

        for done in as_completed([pool.submit(_train_member, row, work, threads) for row in todo]):
            member, result = done.result()
            table = population_table()
            for column, value in result.items():
                table.loc[table["respondent_id"] == member, column] = value

            table["pairs"] = table["pairs"].astype("Int64")
            table.to_csv(data_dir() / "population.csv", index=False)
            print(f"{member}: accuracy {result['accuracy']:.3f} on held-out MNLI", flush=True)

    return table


def _genre_adapter(genre: str, work: Path) -> Path:
    return work / f"genre-{genre}"


def _adapt(genre: str, work: Path, threads: int | None) -> None:
    """Adapt the encoder to a genre's own sentences: MNLI premises, without held-out ones."""
    import torch

    from psychometrics.training.pairs import mnli_sample

    from .heads import adapt_encoder

    output = _genre_adapter(genre, work)
    if (output / "manifest.json").is_file():
        return

    if threads:
        torch.set_num_threads(threads)

    pairs = mnli_sample()
    sentences = pairs.loc[(pairs["genre"] == genre) & ~pairs["held_out"], "premise"].unique()
    if not len(sentences):
        raise DataError(f"The MNLI sample has no genre '{genre}': correct data/population.csv.")

    adapt_encoder(base_path(), list(sentences), output, progress=False)


def _train_member(recipe: dict, work: Path, threads: int | None) -> tuple[str, dict]:
    import torch

    from psychometrics.training import train_nli
    from psychometrics.training.pairs import nli_pairs

    if threads:
        torch.set_num_threads(threads)

    member = recipe["respondent_id"]
    if recipe["family"] == FAMILIES["decoders"]:
        return member, _train_decoder(recipe, work / member)

    pairs = nli_pairs(recipe["data"].split("+"))
    if recipe["share"] < 1:
        pairs = pairs.sample(frac=recipe["share"], random_state=int(recipe["seed"]))

    genre = recipe["genre"] if isinstance(recipe["genre"], str) else None
    manifest = train_nli(
        base_path(),
        pairs,
        work / member,
        tuning=recipe["tuning"],
        epochs=recipe["epochs"],
        lr=recipe["lr"],
        layers=int(recipe["layers"]),
        seed=int(recipe["seed"]),
        adapter=_genre_adapter(genre, work) if genre else None,
        dropout=0.0,
        progress=False,
    )
    _pack_member(member, {name: recipe[name] for name in RECIPE}, work / member)

    return member, {"pairs": len(pairs), "seconds": manifest["seconds"]} | _held_out(recipe)


def _train_decoder(recipe: dict, folder: Path) -> dict:
    from .decoders import train_decoder

    told = {name: recipe[name] for name in ("data", "wording", "lr")}
    told |= {name: int(recipe[name]) for name in ("seed", "rank", "layers", "adapt_from", "epochs")}
    told["pairs"] = 0 if recipe["share"] == 1 else int(recipe["pairs"])
    made = train_decoder(told, folder)
    target = data_dir() / "population" / recipe["respondent_id"]
    target.mkdir(parents=True, exist_ok=True)

    for name in ("adapter_model.safetensors", "adapter_config.json"):
        shutil.copy(folder / name, target)

    written = json.loads((folder / "recipe.json").read_text(encoding="utf-8"))
    kept = {name: recipe[name] for name in [*RECIPE, "rank", "adapt_from"]}
    kept |= {name: written[name] for name in ("base", "wording", "answers", "dtype")}
    (target / "recipe.json").write_text(json.dumps(_plain(kept), indent=1) + "\n")
    return {"pairs": made["pairs"] // told["epochs"], "seconds": made["seconds"]} | _held_out(
        recipe
    )


def _plain(recipe: dict) -> dict:
    """Return a row of the table in JSON's types."""
    plain = {}
    for key, value in recipe.items():
        if value != value:  # missing
            plain[key] = None
        else:
            plain[key] = int(value) if isinstance(value, np.integer) else value
    return plain


def _pack_member(member: str, recipe: dict, trained: Path) -> None:
    """Save the trained parts in fp16: the adapter with its head, or the head alone."""
    from safetensors.torch import load_file, save_file

    folder = data_dir() / "population" / member
    temporary = folder.with_name(f".{member}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    frozen = recipe["tuning"] == "frozen"
    weights = load_file(trained / ("model.safetensors" if frozen else "adapter_model.safetensors"))

    if frozen:
        weights = {k: v for k, v in weights.items() if "pooler" in k or k.startswith("classifier")}

    name = "head.safetensors" if frozen else "adapter_model.safetensors"
    save_file({k: v.half().contiguous() for k, v in weights.items()}, temporary / name)
    if not frozen:
        config = json.loads((trained / "adapter_config.json").read_text(encoding="utf-8"))
        config["base_model_name_or_path"] = BASE_MODEL
        (temporary / "adapter_config.json").write_text(json.dumps(config, indent=1) + "\n")

    (temporary / "recipe.json").write_text(json.dumps(_plain(recipe), indent=1) + "\n")
    shutil.rmtree(folder, ignore_errors=True)
    temporary.rename(folder)


def _held_out(recipe: dict) -> dict:
    """Return a packed member's accuracy on pairs that it was not trained on."""
    decoder = recipe["family"] == FAMILIES["decoders"]
    respondent = load_respondent(recipe["respondent_id"], dtype=None if decoder else "float32")

    def accuracy(pairs: pd.DataFrame) -> float:
        answers = respondent.answer(list(zip(pairs["premise"], pairs["hypothesis"], strict=True)))
        return float((answers.argmax(axis=1) == pairs["label"]).mean())

    from psychometrics.training.pairs import mnli_sample, nli_pairs

    mnli = mnli_sample().query("held_out")
    share = accuracy(mnli)
    low, high = proportion_confint(round(share * len(mnli)), len(mnli), method="wilson")
    result = {"accuracy": round(share, 4), "low": round(low, 4), "high": round(high, 4)}

    if "snli" not in recipe["data"]:
        result["accuracy_snli"] = round(accuracy(nli_pairs("snli").sample(2000, random_state=0)), 4)

    return result


if __name__ == "__main__":
    _build_population()
