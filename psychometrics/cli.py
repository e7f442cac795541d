"""The ``psychometrics`` command."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .exceptions import ParameterError, PsychometricsError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Put questionnaires to language models, score the answers, build the book.",
)

Instrument = Annotated[
    str, typer.Argument(metavar="QUESTIONNAIRE", help="A shipped instrument or a YAML file.")
]
Inventory = Annotated[
    str, typer.Argument(metavar="INVENTORY", help="One that `inventories` lists, or a file.")
]
Respondents = Annotated[
    str,
    typer.Option(help='"embedded", or names, folders and hub ids separated by commas.'),
]
Store = Annotated[Path | None, typer.Option(help="Folder of the response store.")]


class Tuning(StrEnum):
    """What of the base model is trained."""

    unfrozen = "unfrozen"
    frozen = "frozen"
    lora = "lora"


class Score(StrEnum):
    """Definition of the raw score."""

    entailment = "entailment"
    contrast = "contrast"


class Precision(StrEnum):
    """Precision of the models' computations."""

    float32 = "float32"
    bfloat16 = "bfloat16"


@app.command()
def check(questionnaire: Instrument) -> None:
    """Check a questionnaire file and print what it holds."""
    from .questionnaires import counts, load_questionnaire

    instrument = load_questionnaire(questionnaire)
    table = counts(instrument)
    asked = table[table["prompts"] > 0]
    typer.echo(f"{instrument.short_title}: {instrument.title}")
    typer.echo(table.to_string(float_format="{:.2f}".format))
    typer.echo(
        f"{len(table)} items, {len(instrument.scales)} scales, {table['prompts'].sum()} prompts"
    )
    if len(asked):
        typer.echo(
            f"terms per template: {asked['source'].mean():.2f} source, "
            f"{asked['inverse'].mean():.2f} inverse"
        )


@app.command()
def prompts(
    questionnaire: Instrument,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A .csv or .parquet file; else printed.")
    ] = None,
) -> None:
    """Write the prompt table of a questionnaire."""
    from .prompts import prompts as expand
    from .prompts import write_prompts
    from .questionnaires import load_questionnaire

    instrument = load_questionnaire(questionnaire)
    if output is None:
        expand(instrument).to_csv(sys.stdout, index=False)
    else:
        typer.echo(f"{output}: {len(write_prompts(instrument, output))} prompts")


@app.command()
def ask(
    questionnaires: Annotated[
        list[str], typer.Argument(metavar="QUESTIONNAIRE...", help="Instruments or YAML files.")
    ],
    respondents: Respondents = "embedded",
    store: Store = None,
    dtype: Annotated[Precision | None, typer.Option(help="Precision of the models.")] = None,
) -> None:
    """Put questionnaires to respondents and store the answers."""
    from .ask import ask as put

    answers = put(questionnaires, respondents, store=store, dtype=dtype and dtype.value)
    who = answers["respondent_id"].nunique()
    typer.echo(f"{who} respondent(s), {len(answers)} answers in the store")


@app.command()
def scores(
    questionnaires: Annotated[
        list[str], typer.Argument(metavar="QUESTIONNAIRE...", help="Instruments or YAML files.")
    ],
    respondents: Respondents = "embedded",
    store: Store = None,
    score: Annotated[Score, typer.Option(help="Definition of the raw score.")] = Score.entailment,
    temperature: Annotated[float, typer.Option(help="Of the two-way normalisation.")] = 1.0,
    items: Annotated[bool, typer.Option("--items", help="Item scores, not scale scores.")] = False,
) -> None:
    """Print scale scores as CSV, asking what is not in the store yet."""
    from .ask import ask as put
    from .questionnaires import load_questionnaire
    from .scoring import item_scores, scale_scores

    instruments = [load_questionnaire(name) for name in questionnaires]
    answers = put(instruments, respondents, store=store)
    if items:
        table = item_scores(answers, score.value, temperature)
    else:
        table = scale_scores(answers, score.value, temperature, questionnaires=instruments)
    table.to_csv(sys.stdout, index=False, float_format="%.6f")


@app.command()
def inventories() -> None:
    """List the inventories of self-report: scales, items and ranges."""
    from .studies.psychobench import overview

    overview().to_csv(sys.stdout, index=False)


@app.command()
def chat(
    inventory: Inventory,
    model: Annotated[str, typer.Argument(help="The endpoint's name for the model.")],
    role: Annotated[str, typer.Option(help="A role's name, or a description.")] = "default",
    wording: Annotated[str, typer.Option(help="v1 to v5.")] = "v1",
    runs: Annotated[int, typer.Option(help="How often the whole inventory is asked.")] = 10,
    store: Store = None,
    items: Annotated[bool, typer.Option("--items", help="Answers, not scale scores.")] = False,
) -> None:
    """Put an inventory to a chat model at OPENAI_BASE_URL and print its scores as CSV."""
    from .questionnaires import load_questionnaire
    from .respondents.chat import ask_chat

    loaded = load_questionnaire(inventory)
    answers = ask_chat(
        loaded, model, role=role, wording=wording, runs=runs, store=store, progress=True
    )
    _print_answers(answers, loaded, items)


@app.command(name="fill-in")
def fill_in(
    inventory: Inventory,
    name: Annotated[str, typer.Option(help="What you want to be called.")] = "me",
    path: Annotated[Path | None, typer.Option(help="File of the answers.")] = None,
    items: Annotated[bool, typer.Option("--items", help="Answers, not scale scores.")] = False,
) -> None:
    """Answer an inventory yourself; one may go back, stop and go on later."""
    from .questionnaires import load_questionnaire
    from .respondents.persons import ask_person

    loaded = load_questionnaire(inventory)
    _print_answers(ask_person(loaded, name, path), loaded, items)


@app.command()
def population(
    build: Annotated[
        bool, typer.Option("--build", help="Train the members not there yet.")
    ] = False,
) -> None:
    """Print the table of the embedded population, or build it."""
    from .population import population_table

    if build:
        from .make.population import build_population  # trains, with torch

        build_population()
    table = population_table()
    table.to_csv(sys.stdout, index=False)


@app.command()
def run(
    notebook: Annotated[str, typer.Argument(help="A notebook's name, such as 02-assessment.")],
    parameter: Annotated[
        list[str] | None, typer.Option("--parameter", "-p", help="name=value; may be repeated.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The executed copy.")
    ] = None,
) -> None:
    """Execute a notebook with other parameters."""
    from .book import parse_parameters, run_notebook

    typer.echo(f"{run_notebook(notebook, parse_parameters(parameter or []), output)}")


@app.command()
def book() -> None:
    """Execute all notebooks and build the book."""
    from .book import build_book

    typer.echo(f"open {build_book()}")


@app.command(name="train-nli")
def train_nli(
    base: Annotated[str, typer.Argument(help="Encoder: a hub id, a folder, or 'minilm'.")],
    output: Annotated[Path, typer.Argument(help="Folder for the model and its manifest.")],
    data: Annotated[
        list[str] | None,
        typer.Option(help="mnli, snli, a file, or a hub id; may be repeated. Default: mnli."),
    ] = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="The paper's settings: unfrozen, lr 5e-5, 3 epochs.")
    ] = False,
    tuning: Annotated[Tuning | None, typer.Option(help="What is trained.")] = None,
    epochs: Annotated[float | None, typer.Option(help="Passes over the data.")] = None,
    lr: Annotated[float | None, typer.Option(help="Peak learning rate.")] = None,
    batch_size: Annotated[int, typer.Option(help="Pairs per step.")] = 32,
    rank: Annotated[int, typer.Option(help="Rank of LoRA adapters.")] = 16,
    layers: Annotated[int | None, typer.Option(help="Keep only the first layers.")] = None,
    seed: Annotated[int, typer.Option(help="Seed.")] = 0,
) -> None:
    """Put an NLI head on a base model and train it."""
    chosen = {"tuning": tuning and tuning.value, "epochs": epochs, "lr": lr}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    if paper and chosen:
        raise ParameterError(f"--paper sets {', '.join(chosen)} itself: leave one of them out.")
    from .respondents.sources import base_path
    from .training import PAPER_SETTINGS
    from .training import train_nli as train

    manifest = train(
        base_path() if base == "minilm" else base,
        data or ["mnli"],
        output,
        batch_size=batch_size,
        rank=rank,
        layers=layers,
        seed=seed,
        **(PAPER_SETTINGS | chosen),
    )
    typer.echo(f"{output}: trained on {manifest['pairs']} pairs in {manifest['seconds']:.0f} s")


def _print_answers(answers, inventory, items: bool) -> None:
    if not items and inventory.categories:
        from .categories import category_scores, option_probabilities

        table = category_scores(option_probabilities(answers), inventory)
    elif not items:
        from .norms import sum_scores

        table = sum_scores(answers, inventory)
    else:
        table = answers
    table.to_csv(sys.stdout, index=False)


def main() -> None:
    """Run the command; what a user can mend ends in one sentence and exit status 1."""
    try:
        app()
    except PsychometricsError as error:
        typer.echo(f"psychometrics: {error}", err=True)
        raise SystemExit(1) from None
