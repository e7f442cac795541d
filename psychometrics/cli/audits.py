"""The command that audits what a paper prints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

import psychometrics as pm

from ..data import write_csv, write_text
from .options import app


@app.command("audit", rich_help_panel="Profiles and studies")
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
