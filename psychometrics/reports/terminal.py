"""Show a report on a terminal: what may be written, the table of verdicts, the five tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..formats import number
from .pages import _SIGNS
from .report import _MARKS, Column, Report

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

# Colours that can be read on light and on dark ground; a mark says the same without colour.
_COLOURS = {"✓": "green", "!": "dark_goldenrod", "✗": "red", "–": "none"}
_STATUSES = {"passed": "green", "failed": "red", "open": "dark_goldenrod"}
_NEEDED = ("verdict", "scale_title", "title", "model")  # of a narrow table, the columns that stay
_GAP = 2
_MOST_LINES = 4


def print_report(report: Report, console: Console | None = None) -> None:
    """Print a report, wrapped at words; columns that do not fit the terminal are left out.

    Parameters
    ----------
    report : Report
    console : rich.console.Console, optional
        By default the terminal, whose colours follow ``NO_COLOR`` and its own abilities.

    Examples
    --------
    >>> from rich.console import Console
    >>> from psychometrics.reports.report import Statement, Table
    >>> column = Column(key="verdict", heading="verdict")
    >>> results = Table(name="scores", title="", columns=[column],
    ...                 rows=[{"verdict": "May be reported", "mark": "✓"}])
    >>> said = Statement(about="Fear", case="passes", verdict="May be reported", text="Report it.")
    >>> report = Report(kind="profile", title="my-model", about="mode nli", statements=[said],
    ...                 tests=[], results=results)
    >>> print_report(report, Console(width=40))
    my-model
    mode nli
    <BLANKLINE>
    ✓ Fear: Report it.
    <BLANKLINE>
    verdict
    ✓ May be reported
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = console or Console(highlight=False)
    console.print(Text(report.title, style="bold"))
    console.print(Text(report.about, style="dim"))
    for statement in report.statements:
        mark = _MARKS[statement.case]
        head = f"{mark} {statement.about}: ", f"bold {_COLOURS[mark]}"
        console.print()
        console.print(Text.assemble(head, statement.text))

    console.print()
    console.print(_results_table(report, console.width))
    if report.tests:
        console.print()
        table = Table.grid(padding=(0, _GAP, 0, 0))
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True)
        for test in report.tests:
            status = Text(f"{_SIGNS[test.status]} {test.status}", _STATUSES.get(test.status, "dim"))
            lines = test.results[:_MOST_LINES]
            if len(test.results) > _MOST_LINES:
                lines.append(f"and {len(test.results) - _MOST_LINES} more")
            text = Text("\n".join(lines))
            if test.command:
                text = Text(test.command, style="dim")

            table.add_row(status, Text(test.name, style="bold"), text)

        console.print(table)


def _results_table(report: Report, width: int) -> Table:
    """Return the main table, with a line for each questionnaire if there are several."""
    from rich.table import Table
    from rich.text import Text

    groups = list(dict.fromkeys(row.get("about") for row in report.results.rows))
    columns = [column for column in report.results.columns if column.key != "about"]
    room = width
    fitting = []
    for column in sorted(columns, key=lambda each: each.key not in _NEEDED):
        needed = _least_width(report, column) + _GAP
        if column.key in _NEEDED or needed <= room:
            fitting.append(column.key)
            room -= needed

    columns = [column for column in columns if column.key in fitting]
    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="dim")
    spare = width - sum(_least_width(report, column) + _GAP for column in columns)
    for column in columns:
        least = _least_width(report, column)
        more = max(0, min(spare, len(column.heading) - least))  # for a heading on one line
        spare -= more
        table.add_column(
            column.heading, justify="right" if column.form else "left", width=least + more
        )

    for group in groups:
        if len(groups) > 1:
            table.add_row(Text(str(group), style="bold"))
        for row in report.results.rows:
            if row.get("about") == group:
                cells = [Text(_show_cell(column, row)) for column in columns]
                cells[0].stylize(_COLOURS[str(row["mark"])])  # the verdict
                table.add_row(*cells)

    return table


def _least_width(report: Report, column: Column) -> int:
    """Return the width of a column whose cells are not broken, nor the words of its heading."""
    cells = [_show_cell(column, row) for row in report.results.rows]
    return max(map(len, column.heading.split() + cells))


def _show_cell(column: Column, row: dict[str, Any]) -> str:
    value = row[column.key]
    shown = "" if value is None else number(value, column.form)
    return f"{row['mark']} {shown}" if column.key == "verdict" else shown
