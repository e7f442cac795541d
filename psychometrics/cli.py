"""The ``psychometrics`` command."""

from __future__ import annotations

import math
import re
import sys
import time
import warnings
from pathlib import Path
from typing import Annotated, Literal

import typer

import psychometrics as pm

from .exceptions import ParameterError, PsychometricsError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Put questionnaires to language models, score the answers, build the book.",
)

QuestionnaireName = Annotated[
    str,
    typer.Argument(metavar="QUESTIONNAIRE", help="One that `questionnaires` lists, or a file."),
]
Questionnaires = Annotated[
    list[str],
    typer.Argument(metavar="QUESTIONNAIRE...", help="What `questionnaires` lists, or files."),
]
Respondents = Annotated[
    str,
    typer.Option(
        help='"embedded", its families "encoders" (seconds) and "decoders" (minutes with a '
        "questionnaire of your own), or names, folders, hub ids and populations' files with "
        "commas; for chat the names of models at OPENAI_BASE_URL, for simulated a number."
    ),
]
Store = Annotated[str | None, typer.Option(help="Folder or URL of the store of answers.")]
Mode = Annotated[str, typer.Option(help="How it is asked: nli, mlm, options, chat, ...")]
Conditions = Annotated[
    list[str] | None,
    typer.Option("--condition", "-c", help="name=value of the mode, such as role=hero."),
]
Plot = Annotated[
    Path | None,
    typer.Option(help="Draw the scores, too: two axes as a compass. A .png, .svg or .pdf file."),
]
Profiled = Annotated[
    str,
    typer.Option(
        "--questionnaires",
        "--" + "instruments",  # the word of other programs
        help="Names or files, with commas.",
    ),
]
Against = Annotated[
    str | None,
    typer.Option(
        help='Respondents behind it in the figures: "embedded" (the default in mode nli), names '
        'with commas, or "nobody".'
    ),
]
Base = Annotated[
    str | None,
    typer.Option(help="The untouched model it was trained from, whose random heads judge it."),
]
Pdf = Annotated[bool, typer.Option("--pdf", help="Print the page to a .pdf file beside it, too.")]
Dtype = Annotated[
    Literal["float32", "bfloat16"] | None, typer.Option(help="Precision of the models.")
]


@app.command("new-questionnaire")
def _new_questionnaire(
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="A CSV file with a column `item`, see below.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A .yaml file; else the table's name.")
    ] = None,
) -> None:
    """Draft a questionnaire's file from a table of items, with comments on what is left to write.

    Columns: item, and where wanted scale, reverse (yes), options (0=Not at all; 1=Often), source
    and inverse terms (with semicolons), premise and hypothesis.
    """
    from .questionnaires.drafts import draft

    path = draft(table, output or table.with_suffix(".yaml"))
    typer.echo(f"{path}: a draft. Fill in what its comments ask for; at each save it is checked by")
    typer.echo(f"  psychometrics check {path} --watch")
    _report(path, measured=False)


@app.command("check")
def _check(
    questionnaire: QuestionnaireName,
    measure: Annotated[
        bool, typer.Option("--measure", help="Let models check opposites and congruence, too.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Check a file again whenever it is saved.")
    ] = False,
) -> None:
    """Check a questionnaire's file: its mistakes, what it holds, and what its wording breaks."""
    path = Path(questionnaire)
    if not watch:
        _report(questionnaire, measure)
        return
    if not path.is_file():
        raise ParameterError(f"{questionnaire} is no file: --watch needs one that you edit.")
    seen = None
    while True:
        try:
            saved = path.stat().st_mtime_ns
        except FileNotFoundError:  # some editors replace the file
            saved = seen
        if saved != seen:
            seen = saved
            typer.echo(f"--- {time.strftime('%H:%M:%S')}")
            try:
                _report(path, measure)
            except PsychometricsError as error:
                typer.echo(str(error))
        time.sleep(0.5)


def _report(questionnaire: str | Path, measured: bool) -> None:
    """What a questionnaire holds, and what the rules of wording find in it."""
    from .questionnaires.wording import wording

    questionnaire = pm.load_questionnaire(questionnaire, texts=False)
    table = pm.questionnaires.counts(questionnaire)
    asked = table[table["prompts"] > 0]
    typer.echo(f"{questionnaire.short_title}: {questionnaire.title}")
    typer.echo(table.to_string(float_format="{:.2f}".format))
    typer.echo(
        f"{len(table)} items, {len(questionnaire.scales)} scales, {table['prompts'].sum()} prompts"
    )
    if len(asked):
        typer.echo(
            f"terms per template: {asked['source'].mean():.2f} source, "
            f"{asked['inverse'].mean():.2f} inverse"
        )
    if questionnaire.language != "en" or questionnaire.wording == "upstream":
        return
    found = wording(questionnaire, measured)
    for row in found.itertuples():
        place = f"{row.item_id}, template {row.template}" if row.template else row.item_id
        typer.echo(f"{place}, {row.rule}: {row.finding}; {row.mend}.")
    typer.echo(
        f"wording: {len(found)} finding(s)"
        + ("" if len(found) else "; the rules find nothing, which people may")
    )


@app.command("prompts")
def _prompts(
    questionnaire: QuestionnaireName,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A .csv or .parquet file; else printed.")
    ] = None,
) -> None:
    """Write the prompt table of a questionnaire."""
    questionnaire = pm.load_questionnaire(questionnaire)
    if output is None:
        pm.prompts(questionnaire).to_csv(sys.stdout, index=False)
    else:
        from .questionnaires.prompts import write_prompts

        typer.echo(f"{output}: {len(write_prompts(questionnaire, output))} prompts")


@app.command("questionnaires")
def _questionnaires() -> None:
    """List the questionnaires that come with the project: scales, items, ways to ask, norms."""
    pm.questionnaires.overview().to_csv(sys.stdout, index=False)


@app.command("ask")
def _ask(
    questionnaires: Questionnaires,
    respondents: Respondents = "embedded",
    mode: Mode = "nli",
    condition: Conditions = None,
    store: Store = None,
    dtype: Dtype = None,
    failures: Annotated[
        Path | None,
        typer.Option(help="A .csv file of who failed and why; these are not tried in vain again."),
    ] = None,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep-downloads/--discard-downloads",
            help="Whether weights from the hub stay on the disk when a model has answered.",
        ),
    ] = True,
    engine: Annotated[
        Literal["local", "ray"],
        typer.Option(help="Where models are asked: here, or on the machines of a Ray cluster."),
    ] = "local",
    address: Annotated[
        str | None, typer.Option(help="Of the Ray cluster; else the one that runs here.")
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(help="Of an endpoint: most requests at once; 4.")
    ] = None,
    requests_per_minute: Annotated[
        float | None, typer.Option(help="Of an endpoint: most requests begun.")
    ] = None,
    tokens_per_minute: Annotated[
        float | None, typer.Option(help="Of an endpoint: most tokens sent and received.")
    ] = None,
    price_in: Annotated[
        float | None, typer.Option(help="Of a million tokens sent, in any currency.")
    ] = None,
    price_out: Annotated[float | None, typer.Option(help="Of a million tokens received.")] = None,
    max_cost: Annotated[
        float | None,
        typer.Option(help="Leave unasked what might exceed it; needs both prices, -c max_tokens."),
    ] = None,
    batch: Annotated[
        bool, typer.Option("--batch", help="By the endpoint's batch API: cheaper, within a day.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Send nothing; say how many requests and tokens.")
    ] = False,
) -> None:
    """Put questionnaires to respondents and store the answers."""
    place = {
        "concurrency": concurrency,
        "requests_per_minute": requests_per_minute,
        "tokens_per_minute": tokens_per_minute,
        "price_in": price_in,
        "price_out": price_out,
        "max_cost": max_cost,
        "batch": batch or None,
        "dry_run": dry_run or None,
    }
    place = {name: value for name, value in place.items() if value is not None}
    if place and mode != "chat":
        option = next(iter(place)).replace("_", "-")
        raise ParameterError(f"--{option} is for an endpoint: add --mode chat, or leave it out.")
    more = {"endpoint": pm.endpoints.Endpoint(**place)} if place else {}
    more |= {"engine": engine, "address": address, "failures": failures, "keep_downloads": keep}
    answers = _asked(questionnaires, respondents, mode, condition, store, dtype, **more)
    who, there = answers["respondent_id"].nunique(), len(answers)
    there -= answers.attrs["summary"].get("unasked", 0)
    typer.echo(f"{who} respondent(s), {there} answers in the store")
    _exit(answers)


@app.command("scores")
def _scores(
    questionnaires: Questionnaires,
    respondents: Respondents = "embedded",
    mode: Mode = "nli",
    condition: Conditions = None,
    store: Store = None,
    dtype: Dtype = None,
    score: Annotated[
        Literal["entailment", "contrast"] | None,
        typer.Option(help="Definition of the raw score of prompts."),
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(help="Of the two-way normalisation of prompts.")
    ] = None,
    items: Annotated[bool, typer.Option("--items", help="Scores of items, not scales.")] = False,
    plot: Plot = None,
) -> None:
    """Print scores as CSV, asking what is not in the store yet."""
    _check_plot(plot)
    loaded = [pm.load_questionnaire(name) for name in questionnaires]
    if len({bool(questionnaire.categories) for questionnaire in loaded}) > 1 and not items:
        raise ParameterError("Some of these have scales, others categories: score them one by one.")
    if temperature is not None and not 0 < temperature < math.inf:
        raise ParameterError(f"temperature must be a positive number, got {temperature:g}.")
    answers = _asked(loaded, respondents, mode, condition, store, dtype)
    how = {"score": score, "temperature": temperature}
    how = {k: v for k, v in how.items() if v is not None}
    _print_scores(answers, loaded, items, how)
    _draw(answers, loaded, plot, how)
    _exit(answers)


@app.command("profile")
def _profile(
    model: Annotated[str, typer.Argument(help="A member, a folder, a hub id, a chat model.")],
    questionnaires: Profiled = "gad7,phq9,soc13",
    against: Against = None,
    mode: Mode = "nli",
    condition: Conditions = None,
    store: Store = None,
    dtype: Dtype = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A .html or .pdf file; else profile-MODEL.html."),
    ] = None,
    base: Base = None,
    pdf: Pdf = False,
) -> None:
    """Write a page about one model: scores, nulls, norms, and what may not be read from them."""
    paths = _pages(output, f"profile-{_file_name(model)}.html", pdf)
    how = _how(mode, against, store, dtype, condition) | ({"base": base} if base else {})
    scores = pm.reports.profiles.profile(model, paths[0], _names(questionnaires), **how)
    for row in scores.itertuples():
        typer.echo(f"{row.mark} {row.questionnaire}, {row.title}: {row.score:.3f} "
                   f"({row.low:.3f} to {row.high:.3f}), {row.verdict}")  # fmt: skip
    _written(paths)


@app.command("compare")
def _compare(
    models: Annotated[
        list[str], typer.Argument(metavar="MODEL1 MODEL2...", help="Each as for `profile`.")
    ],
    questionnaires: Profiled = "gad7,phq9,soc13",
    against: Against = None,
    mode: Mode = "nli",
    condition: Conditions = None,
    store: Store = None,
    dtype: Dtype = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A .html or .pdf file; else compare.html.")
    ] = None,
    pdf: Pdf = False,
) -> None:
    """Write a page with models side by side, and their differences with paired intervals."""
    paths = _pages(output, "compare.html", pdf)
    how = _how(mode, against, store, dtype, condition)
    rows = pm.reports.profiles.compare(models, paths[0], _names(questionnaires), **how)
    for row in rows.itertuples():
        typer.echo(f"{row.questionnaire}, {row.scale}: {row.second} minus {row.first} "
                   f"{row.difference:+.3f} ({row.low:+.3f} to {row.high:+.3f})")  # fmt: skip
    _written(paths)
    if failed := rows.attrs["failed"]:
        for name, reason in failed.items():
            typer.echo(f"psychometrics: {name} could not be asked: {reason}", err=True)
        raise typer.Exit(1)


study_app = typer.Typer(no_args_is_help=True, help="A study as one file: check, run, report.")
app.add_typer(study_app, name="study")
StudyFile = Annotated[Path, typer.Argument(metavar="STUDY", help="A .yaml file.")]


@study_app.command("check")
def _study_check(study: StudyFile) -> None:
    """Check a study's file and print what would be asked; nobody is asked."""
    from .reports.plans import combinations, load_study

    loaded = load_study(study)
    ways = len(combinations(loaded)) * len(loaded.seeds)
    typer.echo(f"{loaded.title}: {loaded.question}")
    typer.echo(
        f"{len(loaded.questionnaires)} questionnaire(s), {len(loaded.respondents)} respondent(s) "
        f"or population(s), asked in mode {loaded.mode} in {ways} way(s); "
        f"{len(loaded.planned.expectations)} expectation(s), planned on {loaded.planned.date}"
    )


@study_app.command("run")
def _study_run(study: StudyFile, store: Store = None) -> None:
    """Ask all that a study asks; a run that was stopped goes on where it was."""
    from .reports.plans import run_study

    summary = run_study(study, store)
    typer.echo(
        f"{summary['asked']} asked, {summary['from_store']} from the store, "
        f"{summary['unanswered']} refused or unreadable, {len(summary['failed'])} failed, "
        f"in {summary['seconds']:.1f} s."
    )
    for who, reason in summary["failed"].items():
        typer.echo(f"{who}: {reason}")
    if not summary["plan"]:
        typer.echo("The plan is not the one of the first run; the report will say so.")
    raise typer.Exit(1 if summary["failed"] else 0)


@study_app.command("report")
def _study_report(
    study: StudyFile,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A .html or .pdf file.")
    ] = None,
    store: Store = None,
) -> None:
    """Write the page of a study that was run."""
    from .reports.plans import report_study

    typer.echo(f"open {report_study(study, output, store)}")


@app.command("fill-in")
def _fill_in(
    questionnaire: QuestionnaireName,
    name: Annotated[str, typer.Option(help="What you want to be called.")] = "me",
    store: Store = None,
    items: Annotated[bool, typer.Option("--items", help="Answers, not scale scores.")] = False,
    plot: Plot = None,
) -> None:
    """Answer a questionnaire yourself; one may go back, stop and go on later.

    `diagnostic` is the test of inference that people and models were given, `diagnostic-mn` its
    part MN.
    """
    _check_plot(plot)
    first, _, category = questionnaire.partition("-")
    if first == "diagnostic":
        from .studies.diagnostic import questionnaire as diagnostic

        loaded = [diagnostic(category.upper() or None)]
    else:
        loaded = [pm.load_questionnaire(questionnaire)]
    answers = pm.ask(loaded, [name], store=store, mode="human", progress=False)
    _print_scores(answers, loaded, items, {})
    _draw(answers, loaded, plot, {})


@app.command("population")
def _population(
    file: Annotated[
        str, typer.Argument(metavar="[FILE]", help="A population's .yaml file.", show_default=False)
    ] = "embedded",
) -> None:
    """Print the table of the embedded population, or of a file's."""
    pm.population_table(file).to_csv(sys.stdout, index=False)


@app.command("new-population")
def _new_population(
    file: Annotated[Path, typer.Argument(help="A .yaml file that is not there yet.")],
    task: Annotated[
        str | None, typer.Option(help="As the hub calls it: text-classification, fill-mask, ...")
    ] = None,
    search: Annotated[
        str, typer.Option(help="Words with commas, of which an id holds at least one.")
    ] = "",
    top: Annotated[int, typer.Option(help="Look at so many, the most downloaded first.")] = 100,
    min_downloads: Annotated[int, typer.Option(help="In the last 30 days.")] = 0,
    licence: Annotated[str, typer.Option(help="With commas, such as mit,apache-2.0.")] = "",
    max_memory: Annotated[
        str | None, typer.Option(help="What the weights may take in float32, such as 24GB.")
    ] = None,
    labels: Annotated[
        str, typer.Option(help="Names of the outputs, such as entailment,neutral,contradiction.")
    ] = "",
) -> None:
    """Write a population's file from a query of the hub, with those left out and why."""
    from .asking.population_drafts import new_population

    table = new_population(
        file, task, _names(search), top, min_downloads, _names(licence), max_memory, _names(labels)
    )
    left = table.loc[table["kind"] != "", "kind"].value_counts()
    said = ", ".join(f"{n} {kind}" for kind, n in left.items())
    typer.echo(f"{file}: {(table['kind'] == '').sum()} respondents"
               + (f"; {left.sum()} left out ({said})" if said else ""))  # fmt: skip


@app.command("fetch-model")
def _fetch_model() -> None:
    """Fetch the conversational model that the book asks, smollm2 (98 MB), once."""
    from .models import packed

    typer.echo(f"smollm2: {packed.fetch()}")


@app.command("run")
def _run(
    notebook: Annotated[str, typer.Argument(help="A notebook's name, such as 03-assessment.")],
    parameter: Annotated[
        list[str] | None, typer.Option("--parameter", "-p", help="name=value; may be repeated.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The executed copy; of a sweep the folder."),
    ] = None,
    sweep: Annotated[
        list[str] | None,
        typer.Option("--sweep", help="name=value,value: a run for each; may be repeated."),
    ] = None,
) -> None:
    """Execute a notebook with other parameters, or with many and one page of their results."""
    values = pm.book.parse_parameters(parameter or [])
    if not sweep:
        executed = pm.book.run_notebook(notebook, values, output)
        typer.echo(f"{executed}, as a page {pm.page.write_page(executed)}")
        return
    sweeps = pm.reports.sweeps
    runs = sweeps.sweep(notebook, sweeps.parse_grid(sweep), output, values)
    counts = runs["status"].value_counts()
    for row in runs[runs["status"] == "failed"].itertuples():
        typer.echo(f"psychometrics: {row.run} failed: {row.reason}", err=True)
    typer.echo(
        f"{len(runs)} runs: "
        + ", ".join(
            f"{counts.get(name, 0)} {name}" for name in ("run now", "done before", "failed")
        )
        + f"; {runs.attrs['page']}"
    )
    if counts.get("failed"):
        raise typer.Exit(1)


@app.command("book")
def _book() -> None:
    """Execute all notebooks and build the book."""
    typer.echo(f"open {pm.book.build_book()}")


@app.command("check-answer", context_settings={"ignore_unknown_options": True})
def _check_answer(
    exercise: Annotated[str, typer.Argument(help="Its name, such as ex-column-factor.")],
    value: Annotated[list[str], typer.Argument(help="Your answer: a number or words.")],
) -> None:
    """Check the answer of an exercise; status 1 where it is not right yet."""
    from .pages.exercises import is_right

    if not is_right(exercise, " ".join(value)):
        typer.echo("Not yet.")
        raise typer.Exit(1)
    typer.echo("Right.")


@app.command("pdf")
def _pdf(
    output: Annotated[Path, typer.Option("--output", "-o", help="The file.")] = Path("book.pdf"),
) -> None:
    """Print the built book into one PDF, by Chromium or Chrome."""
    typer.echo(f"{pm.book.print_book(output)}")


@app.command("slides")
def _slides(
    chapter: Annotated[
        str, typer.Argument(help="Such as 03-assessment, or an executed notebook's path.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The HTML file; by default beside you.")
    ] = None,
) -> None:
    """Make slides of an executed chapter: its sections, tables, figures and formulas."""
    path = Path(chapter)
    if path.suffix != ".ipynb":
        path = pm.paths.book_dir() / "chapters" / f"{chapter}.ipynb"
    output = output or Path(f"{path.stem}-slides.html")
    typer.echo(f"open {pm.page.write_page(path, output, 'slides')}")


@app.command("train-nli")
def _train_nli(
    base: Annotated[
        str, typer.Argument(help="Encoder or decoder: a hub id, a folder, or 'minilm'.")
    ],
    output: Annotated[Path, typer.Argument(help="Folder for the model and its manifest.")],
    data: Annotated[
        list[str] | None,
        typer.Option(help="mnli, snli, a file, or a hub id; may be repeated. Default: mnli."),
    ] = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="The paper's settings: unfrozen, lr 5e-5, 3 epochs.")
    ] = False,
    tuning: Annotated[
        Literal["unfrozen", "frozen", "lora"] | None, typer.Option(help="What is trained.")
    ] = None,
    epochs: Annotated[float | None, typer.Option(help="Passes over the data.")] = None,
    lr: Annotated[float | None, typer.Option(help="Peak learning rate.")] = None,
    batch_size: Annotated[int, typer.Option(help="Pairs per step.")] = 32,
    rank: Annotated[int, typer.Option(help="Rank of LoRA adapters.")] = 16,
    layers: Annotated[int | None, typer.Option(help="Keep only the first layers.")] = None,
    seed: Annotated[int, typer.Option(help="Seed.")] = 0,
) -> None:
    """Put an NLI head on a base model and train it."""
    chosen = {"tuning": tuning, "epochs": epochs, "lr": lr}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    if paper and chosen:
        raise ParameterError(f"--paper sets {', '.join(chosen)} itself: leave one of them out.")
    if (file := next(filter(Path.is_file, (output, *output.parents)), None)) is not None:
        raise ParameterError(f"{file} is a file: name a folder for the model.")
    manifest = pm.training.train_nli(
        base,
        data or ["mnli"],
        output,
        batch_size=batch_size,
        rank=rank,
        layers=layers,
        seed=seed,
        **(pm.training.PAPER_SETTINGS | chosen),
    )
    typer.echo(f"{output}: trained on {manifest['pairs']} pairs in {manifest['seconds']:.0f} s")


@app.command("improve")
def _improve(
    questionnaire: QuestionnaireName,
    respondents: Respondents = "embedded",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The new file; by default NAME_improved.yaml beside."),
    ] = None,
    rules: Annotated[
        bool, typer.Option("--rules/--no-rules", help="Whether rules make candidates, too.")
    ] = True,
    seed: Annotated[int, typer.Option(help="Of the halves and of what is drawn by chance.")] = 1,
    store: Store = None,
    dtype: Dtype = None,
) -> None:
    """Choose better prompts on half of the respondents, and show them on the other half."""
    from .studies import improving

    loaded = pm.load_questionnaire(questionnaire)
    beside = Path(questionnaire) if Path(questionnaire).is_file() else Path(f"{loaded.id}.yaml")
    output = output or beside.with_name(f"{loaded.id}_improved.yaml")
    report = output.with_name(f"{output.stem}_candidates.csv")
    improving.check_new(output, report)
    found = improving.improve(loaded, respondents, rules=rules, seed=seed, store=store, dtype=dtype)
    improving.write_improved(found, output, report)
    items = improving.held_out(found.silhouettes, ["questionnaire", "item_id"])
    shown = ["item_id", "present", "chance", "improved", "gain", "gain_low", "gain_high"]
    typer.echo(items[shown].to_string(index=False, float_format="{:.2f}".format))
    whole = improving.held_out(found.silhouettes).drop(columns="questionnaire").T
    typer.echo(whole.to_string(header=False, float_format="{:.2f}".format))
    typer.echo(f"{output}: the improved prompts; {report}: all candidates")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _file_name(model: str) -> str:
    return re.sub(r"[^\w.-]+", "-", Path(model).name or model)


def _pages(output: Path | None, name: str, pdf: bool) -> list[Path]:
    """The files to be written, once it is known that they can be."""
    first = output or Path(name)
    paths = [first]
    if pdf and first.suffix.lower() != ".pdf":
        paths.append(first.with_suffix(".pdf"))
    return [pm.reports.pages.checked_path(path) for path in paths]


def _how(mode: str, against: str | None, store, dtype, condition) -> dict:
    behind = {None: "default", "nobody": None}.get(against, against)
    how = {"mode": mode, "against": behind, "store": store, "dtype": dtype, "progress": True}
    return how | pm.book.parse_parameters(condition or [])


def _written(paths: list[Path]) -> None:
    """Name the pages, after the one that is to be printed has been."""
    for path in paths[1:]:
        pm.reports.pages.printed(paths[0], path)
    typer.echo(", ".join(map(str, paths)))


def _asked(questionnaires, respondents: str, mode: str, condition, store, dtype, **more):
    conditions = pm.book.parse_parameters(condition or [])
    if mode == "simulated":
        if not respondents.isdecimal():
            raise ParameterError(f"Simulated --respondents are a number, got '{respondents}'.")
        respondents = int(respondents)
    with warnings.catch_warnings():  # what it says of a failure comes at the end, in one line
        warnings.filterwarnings("ignore", ".* was not asked to the end", UserWarning)
        return pm.ask(
            questionnaires,
            respondents,
            store=store,
            mode=mode,
            dtype=dtype,
            **(conditions | more),
        )


def _print_scores(answers, questionnaires, items: bool, how: dict) -> None:
    if items:
        table = pm.item_scores(answers, **how) if "term" in answers else answers
    elif any(questionnaire.categories for questionnaire in questionnaires):
        table = pm.scoring.category_scores(answers, questionnaires)
    elif "option" in answers:
        raise ParameterError("choose=none gives probabilities, no answers to score: add --items.")
    else:
        table = pm.scale_scores(answers, questionnaires=questionnaires, **how)
    table.to_csv(sys.stdout, index=False, float_format="%.6f")


def _check_plot(path: Path | None) -> None:
    """Refuse a picture that cannot be written before anything is asked."""
    if path is None:
        return
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ParameterError(f"{path}: end the picture's name in .png, .svg or .pdf.")
    if not path.absolute().parent.is_dir():
        raise ParameterError(f"{path}: there is no folder {path.parent}; make it first.")


def _draw(answers, questionnaires, path: Path | None, how: dict) -> None:
    """Two axes as a compass, other categories and scales as points in their ranges."""
    if path is None:
        return
    import matplotlib.pyplot as plt

    pm.figures.style()
    figure, axes = plt.subplots(
        len(questionnaires),
        figsize=(7, 4.5 * len(questionnaires)),
        squeeze=False,
        layout="constrained",
    )
    for questionnaire, ax in zip(questionnaires, axes.flat, strict=True):
        own = answers[answers["questionnaire"] == questionnaire.id]
        if questionnaire.categories:
            scores, by = pm.scoring.category_scores(own, questionnaire), "category"
        else:
            scores, by = pm.scale_scores(own, questionnaires=questionnaire, **how), "scale"
            scores = scores.groupby(["respondent_id", "scale"], sort=False, as_index=False)
            scores = scores["score"].mean()  # over runs
            if "term" not in answers:
                spans = [questionnaire.span(questionnaire.scale(s)) for s in scores["scale"]]
                scores[["low", "high"]] = spans
            titles = {scale.id: scale.title for scale in questionnaire.scales}
            scores["scale"] = scores["scale"].map(titles)
        if scores["score"].isna().all():
            raise ParameterError(
                f"{questionnaire.id} has no score to draw yet: answer every question."
            )
        if len(questionnaire.categories) == 2 and (scores["low"] < 0).all():
            pm.figures.compass(scores.dropna(subset="score"), *questionnaire.categories, ax=ax)
        else:
            pm.figures.ranges(scores, by, ax=ax)
        ax.set_title(questionnaire.short_title)
    try:
        figure.savefig(path)
    except OSError as error:
        raise ParameterError(f"{path}: cannot be written ({error.strerror}).") from None
    finally:
        plt.close(figure)
    typer.echo(f"drawn in {path}", err=True)


def _exit(answers) -> None:
    """Status 1 where a respondent failed, with who and why."""
    if failed := answers.attrs["summary"]["failed"]:
        kinds = answers.attrs["summary"]["kinds"]
        for name, reason in failed.items():
            told = f"{name} was not asked to the end ({kinds[name]}): {reason}"
            typer.echo(f"psychometrics: {told}", err=True)
        raise typer.Exit(1)


def main() -> None:
    """Run the command; what a user can mend ends in one sentence and exit status 1."""
    try:
        app()
    except PsychometricsError as error:
        typer.echo(f"psychometrics: {error}", err=True)
        raise SystemExit(1) from None
