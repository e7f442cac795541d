"""Commands that judge respondents or printed tables, on the terminal and on pages."""

from __future__ import annotations

import contextlib
import math
import re
import shlex
import sys
import warnings
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option

import psychometrics as pm

from ..data import write_csv, write_text
from ..endpoints.secrets import refuse_secrets
from ..exceptions import (
    ParameterError,
    PsychometricsError,
    RespondentError,
    needed,
    writing,
)
from ..reports.printing import check_page
from .answers import _collect_answers, read_answer_file, write_table
from .options import (
    AnswerFile,
    Conditions,
    DryRun,
    Mode,
    Store,
    app,
    parse_conditions,
    parse_reading_settings,
    split_names,
)

if TYPE_CHECKING:  # slow to import
    import pandas as pd

    from ..reports.report import Report

_PANEL = "Profiles and studies"
_Profiled = Annotated[
    str,
    Option(
        "--questionnaires", "--questionnaire", "--instruments", help="Names or files, as in a,b,c."
    ),
]
_Against = Annotated[
    str,
    Option(
        help='Respondents to compare with: "default" (the embedded population in mode nli, '
        'otherwise none), names separated by commas, or "nobody" for none.'
    ),
]
_Page = Annotated[Path | None, Option("--output", "-o", help="The page: .html or .pdf.")]
_Pdf = Annotated[bool, Option("--pdf", help="Also print the page to a .pdf file.")]
_Json = Annotated[bool, Option("--json", help="Print the results as JSON instead.")]
_Controls = Annotated[
    bool,
    Option(
        "--controls/--no-controls",
        help="Ask a chat model also with the options turned round, and about the weather.",
    ),
]
_PROFILED = "gad7,phq9,soc13"
# Most respondents of a file that are compared without being named.
_SIDE_BY_SIDE = 12


@app.command("profile", rich_help_panel=_PANEL)
def _profile(
    model: Annotated[
        str | None,
        Argument(help="A member, a folder, a hub id or a chat model.", show_default=False),
    ] = None,
    questionnaires: _Profiled = _PROFILED,
    against: _Against = "default",
    mode: Mode = "nli",
    condition: Conditions = None,
    base: Annotated[str | None, Option(help="The model's base before training.")] = None,
    controls: _Controls = True,
    output: _Page = None,
    pdf: _Pdf = False,
    as_json: _Json = False,
    dry_run: DryRun = False,
    answer_file: AnswerFile = None,
) -> None:
    """Judge one model, and write a page about it: its scores, nulls, norms, and warnings.

    The verdicts are printed; the page (.html or .pdf) needs the extra `figures`. With --answers,
    the page describes the answers in a file, from models or people, and no model is asked.
    """
    if answer_file is not None:
        return _profile_answers(
            answer_file, model, questionnaires, mode, condition, output, pdf, as_json
        )

    if model is None:
        raise ParameterError("Name a model, or a table with --answers.")

    if dry_run:
        _plan_requests([model], questionnaires, mode, condition, controls)

    name = re.sub(r"[^\w.-]+", "-", Path(model).name or model)
    pages = _plan_pages(output, pdf, Path(f"profile-{name}.html"))
    if base is not None:
        pm.models.sources.find(base)

    settings = _settings_of_asking([model], questionnaires, against, mode, condition, controls)
    assessment = pm.profiles.assess(model, base=base, **settings)
    report = pm.contents.report_profile(assessment)
    cells = [
        "import psychometrics as pm",
        f"assessment = pm.profiles.assess({model!r}, base={base!r}, **{settings!r})",
        "assessment",
        "assessment.flags",
    ]
    figure = pm.pages.draw_scores(assessment) if pages else None
    files = _write_files(report, figure, pages, cells, pm.contents.profile_tables(assessment))
    lines = [
        f"{row.mark} {row.questionnaire}, {row.title}: {_judged_score(row)}"
        for row in assessment.scores.itertuples()
    ]
    if not pages:
        lines += _flag_lines(assessment.flags)
    _print_report(report, lines, assessment.agreement, files, as_json)


def _profile_answers(
    file: Path,
    model: str | None,
    questionnaires: str,
    mode: str,
    condition: list[str] | None,
    output: Path | None,
    pdf: bool,
    as_json: bool,
) -> None:
    """Judge the answers in a file, and write the page about them."""
    if model is not None:
        raise ParameterError("A page on --answers covers all respondents: leave the model out.")

    stem = file.name.partition(".")[0]
    pages = _plan_pages(output, pdf, Path(f"profile-{stem}.html"))
    answers, names = _read_file(file, questionnaires, mode, condition)
    tables = pm.answer_profiles.assess_answers(answers, names)
    loaded = pm.questionnaires.load_questionnaires(names, texts=False)
    command, cells = _repeat_reading("profile", [], file, names, condition)
    report = pm.contents.report_answers(answers, tables, loaded, stem, command)
    cells.append("tables = pm.answer_profiles.assess_answers(answers, questionnaires)")
    cells.append('tables["scales"]')
    titles = {each.id: each.short_title for each in loaded}
    figure = pm.pages.draw_alphas(tables["scales"], titles) if pages else None
    files = _write_files(report, figure, pages, cells, pm.contents.answer_tables(answers, tables))
    lines = []
    for row in tables["scales"].itertuples():
        value = f"alpha {row.alpha:.2f} ({row.alpha_low:.2f} to {row.alpha_high:.2f}), "
        value = "" if math.isnan(row.alpha) else value
        lines.append(f"{row.questionnaire}, {row.scale}: {value}{row.reading}")
    _print_report(report, lines, tables["agreement"], files, as_json)


@app.command("compare", rich_help_panel=_PANEL)
def _compare(
    models: Annotated[
        list[str] | None,
        Argument(metavar="MODEL1 MODEL2...", help="Models, as for `profile`.", show_default=False),
    ] = None,
    questionnaires: _Profiled = _PROFILED,
    against: _Against = "default",
    mode: Mode = "nli",
    condition: Conditions = None,
    controls: _Controls = True,
    output: _Page = None,
    pdf: _Pdf = False,
    as_json: _Json = False,
    dry_run: DryRun = False,
    answer_file: AnswerFile = None,
) -> None:
    """Judge models side by side with their paired differences, and write a page about them.

    The verdicts are printed; the page (.html or .pdf) needs the extra `figures`. With --answers,
    the page compares the named respondents of a file, or all of them.
    """
    models = models or []
    if dry_run:
        _plan_requests(models, questionnaires, mode, condition, controls)

    pages = _plan_pages(output, pdf, Path("compare.html"))
    if answer_file is None:
        pm.profiles.name_models(models)
        options = questionnaires, against, mode, condition, controls
        settings = _settings_of_asking(models, *options, may_fail=True)
        comparison = pm.comparisons.compare_models(models, **settings)
        command = shlex.join(["psychometrics", "compare", *sys.argv[2:]])
        cells = [
            "import psychometrics as pm",
            f"comparison = pm.comparisons.compare_models({models!r}, **{settings!r})",
        ]
    else:
        comparison, command, cells = _compare_respondents(
            answer_file, models, questionnaires, mode, condition
        )

    report = pm.contents.report_comparison(comparison, command)
    tables = pm.contents.comparison_tables(comparison)
    cells += ["comparison", "comparison.differences"]
    figure = pm.pages.draw_scores(comparison) if pages else None
    files = _write_files(report, figure, pages, cells, tables)

    lines = []
    if not pages:
        for name, assessment in comparison.assessments.items():
            lines += [name, *_flag_lines(assessment.flags)]
    lines += [
        f"{row.mark} {row.questionnaire}, {row.scale}: {row.model} {_judged_score(row)}"
        for row in tables["scores"].itertuples()
    ]
    lines += [
        f"{row.questionnaire}, {row.scale}: {row.model} {row.difference:+.3f} "
        f"({_ends(row.low, row.high, '+.3f')}), {row.verdict}"
        for row in comparison.differences.itertuples()
    ]
    _print_report(report, lines, comparison.agreement, files, as_json)

    for name, reason in comparison.failures.items():
        typer.echo(f"psychometrics: {name} could not be asked: {reason}", err=True)

    raise typer.Exit(1 if comparison.failures else 0)


@app.command("table", rich_help_panel=_PANEL)
def _table(
    questionnaires: Annotated[
        list[str] | None,
        Argument(metavar="QUESTIONNAIRE...", help="Names or files.", show_default=False),
    ] = None,
    population: Annotated[
        str, Option("--population", "--respondents", help="A population's file, or names.")
    ] = "embedded",
    standardised: Annotated[
        bool, Option("--standardised", help="Also treat all models as one sample, as the paper.")
    ] = False,
    populations: Annotated[int, Option(help="Populations of random heads of each size.")] = 200,
    condition: Conditions = None,
    store: Store = None,
    failures: Annotated[Path | None, Option(help="A .csv file for failures and reasons.")] = None,
    engine: Annotated[Literal["local", "ray"], Option(help="This machine or a cluster.")] = "local",
    output: Annotated[Path, Option("--output", "-o", help="Folder of the tables.")] = Path("table"),
) -> None:
    """Write the tables of a population: scores, silhouettes, alphas, correlations, their nulls.

    By default, the questionnaires are gad7, phq9 and soc13. The folder gets scores.csv, with the
    scores and silhouettes of each model, and statistics.csv, by base and for all bases combined.
    All are compared with random heads on each model's own base; a model whose base is not known
    cannot be judged. Name it with the key `base` in the population's file. A stopped run resumes
    where it stopped; --condition, --failures, --store and --engine work as for `ask`.
    """
    questionnaires = questionnaires or _PROFILED.split(",")
    asking = {"store": store, "failures": failures, "engine": engine} | parse_conditions(condition)
    with warnings.catch_warnings():  # failures are listed at the end, one per line
        warnings.filterwarnings("ignore", ".* did not answer everything", UserWarning)
        tables = pm.populations.tabulate(
            questionnaires, population, standardised, populations, **asking
        )

    with writing(output):
        output.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        write_table(table, output / f"{name}.csv")
        typer.echo(output / f"{name}.csv")

    statistics = tables["statistics"]
    is_summary = statistics["base"].isin(pm.populations.SUMMARIES)
    for row in statistics[is_summary | ~is_summary.any()].itertuples():
        name = " ".join(filter(None, (row.statistic, row.scale, row.other)))
        value = f"{row.value:.2f} ({_ends(row.low, row.high, '.2f')}), "
        value = "" if math.isnan(row.value) else value
        typer.echo(f"{name}, {row.base} ({row.models}): {value}{row.verdict}")

    noted = tables["scores"].query("note != ''").drop_duplicates("respondent_id")
    for row in noted.itertuples():
        typer.echo(f"psychometrics: {row.respondent_id}: {row.note}", err=True)

    raise typer.Exit(int(tables["scores"]["questionnaire"].isna().any()))


@app.command("audit", rich_help_panel=_PANEL)
def _audit(
    table: Annotated[Path, Argument(metavar="TABLE", help="A CSV or YAML file of printed scales.")],
    output: Annotated[
        Path | None, Option("--output", "-o", help="The page (.html, .pdf) or the table (.csv).")
    ] = None,
) -> None:
    """Audit a paper's table without its data: what is possible, what needs no trait, the unit.

    The table has a row for each printed scale, with the column name and any of questionnaire,
    scale, items, reverse_keyed, lowest, highest, score (mean or sum), n, models, mean, sd, alpha,
    correlates_with, r, norm_mean, norm_sd, norm_n, t, f, df.
    """
    findings = pm.audits.audit(table)
    for name, rows in findings.groupby("name", sort=False):
        typer.echo(f"{name}")
        for row in rows.itertuples():
            typer.echo(f"  {row.check}: {row.result}. {row.sentence}")

    if output is not None and output.suffix.lower() in (".html", ".pdf"):
        command = f"psychometrics audit {table} --output {output}"
        report = pm.audits.report_audit(findings, table.name, command)
        cells = ["import psychometrics as pm", f"pm.audits.audit({str(table)!r})"]
        pm.pages.write_page(report, None, [output], pm.pages.make_notebook(report, cells))
        write_text(output.with_suffix(".json"), report.to_json())
        typer.echo(f"{output}, {output.with_suffix('.json')}")
    elif output is not None:
        write_csv(findings, output, decimals=6)
        typer.echo(f"{output}: {len(findings)} findings")


@app.command("view", rich_help_panel=_PANEL)
def _view(
    folder: Annotated[
        Path, Argument(metavar="[FOLDER]", help="Folder of pages; by default this one.")
    ] = Path(),
    store: Store = None,
    port: Annotated[
        int, Option(max=65535, min=0, help="Port of this machine; by default a free one.")
    ] = 0,
    browser: Annotated[
        bool, Option("--browser/--no-browser", help="Open the browser, or print the address only.")
    ] = True,
) -> None:
    """Show the runs in the store, with their answers, verdicts and pages, in the browser.

    The pages that `profile` and `compare` wrote to FOLDER give the verdicts. Nothing is changed,
    and only this machine can open the printed address. Ctrl-C ends the command.
    """
    # Imported here, as the store's packages take a second to import.
    from ..reports.viewer import Viewer

    with Viewer(store, folder, port) as viewer:
        typer.echo(f"{viewer.url} (Ctrl-C to stop)")
        if browser:
            webbrowser.open(viewer.url)
        with contextlib.suppress(KeyboardInterrupt):
            viewer.serve_forever()


def _settings_of_asking(
    models: list[str],
    questionnaires: str,
    against: str,
    mode: str,
    condition: list[str] | None,
    controls: bool,
    may_fail: bool = False,
) -> dict[str, Any]:
    """Return the settings of a page, refusing what could not be asked before anybody is asked.

    The statements that controls add are announced. With ``may_fail``, a model that cannot be read
    is left to the page, which lists it.
    """
    conditions = parse_conditions(condition, mode)
    refuse_secrets(conditions)
    if mode == "human":
        raise ParameterError(
            "mode human needs a person at the terminal, whom a page cannot ask: use "
            "`psychometrics fill-in`, then --answers."
        )

    store = conditions.get("store")
    if store is not None and (not str(store).strip() or Path(str(store)).is_file()):
        raise ParameterError(f"store: {store!r} is not a folder; name one, or a URL.")

    names = split_names(questionnaires)
    loaded = pm.reports.assessments.load_with_scales(names)
    rivals = [] if against in ("nobody", "default") else pm.population(against)
    elsewhere = ("store", "dtype", "device")
    chosen_mode = pm.modes.mode_named(mode)
    complete = chosen_mode.complete({k: v for k, v in conditions.items() if k not in elsewhere})
    dtype = None if conditions.get("dtype") == "auto" else conditions.get("dtype")
    with pm.models.devices.computing_on(conditions.get("device")):
        for name in [*models, *rivals]:
            try:
                identity = chosen_mode.identify(name, dtype, **complete)
            except RespondentError as error:
                if may_fail and name in models and error.kind != "not found":
                    continue
                raise

            for questionnaire in loaded:
                chosen_mode.check(questionnaire, identity, complete)

    compared = None if against == "nobody" else against
    settings = {"questionnaires": names, "against": compared, "mode": mode} | conditions
    if not controls:
        settings["controls"] = False
    elif mode == "chat":
        _announce_controls(len(models), loaded, settings, complete["batch_size"])
    return settings


def _announce_controls(
    models: int, loaded: list[pm.questionnaires.Questionnaire], settings: dict[str, Any], batch: int
) -> None:
    """Say how many statements the controls add to those of the questionnaires."""
    asked, _ = pm.controls.control_call(loaded, settings)
    statements = models * sum(len(each.items) for each in asked)
    requests = models * sum(math.ceil(len(each.items) / batch) for each in asked)
    typer.echo(
        f"psychometrics: controls (options turned round, weather, empty item) ask {statements} "
        f"statements more, in about {requests} requests if none is stored; --no-controls leaves "
        "them out.",
        err=True,
    )


def _plan_requests(
    models: list[str], questionnaires: str, mode: str, condition: list[str] | None, controls: bool
) -> None:
    """Estimate the requests to an endpoint, send none, and exit."""
    if controls and mode == "chat":
        loaded = pm.questionnaires.load_questionnaires(split_names(questionnaires))
        conditions = parse_conditions(condition, mode) | {"dry_run": True}
        asked, once = pm.controls.control_call(loaded, conditions)
        typer.echo("psychometrics: controls first, then the questionnaires:", err=True)
        if asked:
            pm.ask(asked, models, mode=mode, **once)

    _collect_answers(split_names(questionnaires), ",".join(models), mode, condition, True)


def _plan_pages(output: Path | None, pdf: bool, default: Path) -> list[Path]:
    """Return the pages to write, checked before anything is computed.

    Without the extra `figures` there are none, with a note, unless a page was asked for by name.
    """
    page = check_page(output or default)
    pages = [page, page.with_suffix(".pdf")] if pdf and page.suffix != ".pdf" else [page]
    try:
        for module in ("jinja2", "matplotlib", "seaborn"):
            needed(module)
    except PsychometricsError as error:
        if output is not None or pdf:
            raise

        typer.echo(f"psychometrics: no page is written: {error}", err=True)
        return []

    return [check_page(page) for page in pages]


def _write_files(
    report: Report,
    figure: pm.pages.Picture | None,
    pages: list[Path],
    cells: list[str],
    tables: dict[str, pd.DataFrame],
) -> list[Path]:
    """Write a page, its results and checklist, and its notebook and tables in `runs/`.

    The files beside the page are returned, the page first.
    """
    if not pages:
        return []

    stem = pages[0].stem
    notebook = pm.pages.make_notebook(report, cells)
    pm.pages.write_page(report, figure, pages, notebook)
    files = [*pages, pages[0].with_suffix(".json")]
    write_text(files[-1], report.to_json())
    if report.checklist is not None:
        files.append(pages[0].with_name(f"{stem}-checklist.md"))
        write_text(files[-1], pm.pages.format_markdown(report.checklist))

    folder = Path("runs") / stem
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)

    write_text(folder.with_suffix(".ipynb"), notebook)
    for name, table in tables.items():
        write_csv(table, folder / f"tab-{report.kind}-{name}.csv")
    return files


def _print_report(
    report: Report, lines: list[str], agreement: pd.DataFrame, files: list[Path], as_json: bool
) -> None:
    """Print a report for a reader at a terminal, as lines for a program, or as JSON."""
    if as_json:
        typer.echo(report.to_json())
        return

    if sys.stdout.isatty():
        from ..reports.terminal import print_report  # its packages are slow to load

        print_report(report)
        typer.echo()
    else:
        for statement in report.statements:
            typer.echo(f"{statement.about}: {statement.text}")

        table = agreement.dropna(axis=1, how="all")
        text = table.to_string(index=False, float_format="{:.3f}".format)
        lines = [*lines, "agreement of independent respondents:", text, pm.agreement.INDEPENDENT]
        for test in report.tests:
            command = f": {test.command}" if test.command else ""
            lines.append(f"{test.name} test: {test.status}{command}")

        typer.echo("\n".join(lines))

    if files:
        typer.echo(", ".join(map(str, files)))


def _repeat_reading(
    name: str, respondents: list[str], file: Path, names: list[str], condition: list[str] | None
) -> tuple[str, list[str]]:
    """Return the command that made a page about a table of answers, and cells that read it."""
    words = ["psychometrics", name, *respondents, "--answers", str(file)]
    words += ["--questionnaires", ",".join(names)]
    for setting in condition or []:
        words += ["-c", setting]

    settings = parse_reading_settings(condition)
    path = str(file.expanduser().absolute())
    call = f"pm.answers.files.read_all({path!r}, questionnaires, **{settings!r})"
    cells = ["import psychometrics as pm", f"questionnaires = {names!r}\nanswers = {call}"]
    return shlex.join(words), cells


def _judged_score(row: Any) -> str:
    """Return a row's score with its interval (if it has one) and its verdict."""
    if math.isnan(row.score):
        return str(row.verdict)
    return f"{row.score:.3f} ({_ends(row.low, row.high, '.3f')}), {row.verdict}"


def _ends(low: float, high: float, form: str) -> str:
    """Format the ends of an interval, or say that a single item has no interval."""
    return "no interval" if math.isnan(low) else f"{low:{form}} to {high:{form}}"


def _flag_lines(flags: pd.DataFrame) -> list[str]:
    """Return the evidence for and against interpreting the scores, line by line."""
    lines = []
    for row in flags.itertuples():
        place = f"{row.questionnaire}, {row.scale}" if row.scale else row.questionnaire
        lines.append(f"  {row.mark} {place}, {row.check}: {row.words}")
    return lines


def _read_file(
    file: Path, questionnaires: str, mode: str, condition: list[str] | None
) -> tuple[pd.DataFrame, list[str]]:
    """Return the answers in a file, and the names of the questionnaires."""
    if questionnaires == _PROFILED:
        raise ParameterError("--answers needs the questionnaires: name them with --questionnaires.")

    names = split_names(questionnaires)
    return read_answer_file(file, names, "embedded", mode, condition), names


def _compare_respondents(
    file: Path, models: list[str], questionnaires: str, mode: str, condition: list[str] | None
) -> tuple[pm.reports.assessments.Comparison, str, list[str]]:
    """Compare the named respondents of a file, or all if they are few; also return how to repeat.

    The second and third values are the command and the cells of the notebook.
    """
    answers, names = _read_file(file, questionnaires, mode, condition)
    respondents = answers["respondent_id"].unique().tolist()
    for name in models:
        pm.checks.check_choice(respondents, respondent=name)

    chosen = models or respondents
    most = len(models) or _SIDE_BY_SIDE
    if not 2 <= len(chosen) <= most:
        raise ParameterError(
            f"compare: --answers has {len(chosen)} respondent(s), but a page compares 2 to "
            f"{_SIDE_BY_SIDE}; name the respondents to compare."
        )

    comparison = pm.comparisons.compare_respondents(answers, names, chosen)
    command, cells = _repeat_reading("compare", chosen, file, names, condition)
    compare = f"pm.comparisons.compare_respondents(answers, questionnaires, {chosen!r})"
    return comparison, command, [*cells, f"comparison = {compare}"]
