"""Write the page of a typed result: one HTML file that works offline, or its PDF.

The page is made from a :class:`~psychometrics.reports.report.Report` by one template, with a figure
by matplotlib. The notebook that repeats the computation is a download beside it.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from .. import __version__
from ..data import write_csv, write_text
from ..exceptions import needed, writing
from ..files import replacing
from ..formats import fill, markdown_table, number
from .assessments import Assessment, Comparison
from .contents import report_comparison, report_profile
from .printing import print_page
from .report import _MARKS, _TONES, Report, Table

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure

_TEMPLATES = Path(__file__).parent / "templates"
_KINDS = {
    "profile": "Profile of a model",
    "compare": "Models side by side",
    "answers": "Profile of answers",
    "study": "Report of a study",
    "audit": "Audit of printed numbers",
}
_SIGNS = {"passed": "✓", "failed": "✗", "open": "!", "not done": "–", "not needed": "–"}
# The colours in which a figure is drawn, and the page's names for them, light and dark.
_INK = "#222833"
_COLOURS = {
    _INK: "var(--ink)", "#0072b2": "var(--trained)", "#9aa5b1": "var(--null)",
    "#e69f00": "var(--people)", "#fffffe": "var(--ground)",
}  # fmt: skip


@dataclass(frozen=True)
class Picture:
    """A figure as a page holds it.

    Parameters
    ----------
    drawing : bytes
        The figure as SVG.
    printed : bytes
        The figure as PDF.
    caption, alt : str
        What to see in it, and what it shows, for those who cannot see it.
    """

    drawing: bytes
    printed: bytes
    caption: str
    alt: str

    @property
    def svg(self) -> str:
        """The figure for the page, whose colours follow the page's."""
        text = self.drawing.decode("utf-8")
        text = text[text.index("<svg") :]
        text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
        text = re.sub(r'(<svg [^>]*?)width="[^"]+" height="[^"]+"|^', r"\1", text, count=1)
        for colour, name in _COLOURS.items():
            text = re.sub(colour, name, text, flags=re.I)
        return text


def picture(figure: Figure, caption: str, alt: str) -> Picture:
    """Return a figure as SVG and PDF, and close it.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> picture(plt.figure(), "Nothing.", "An empty figure.").drawing[:5]
    b'<?xml'
    """
    plt = needed("matplotlib.pyplot")
    files = {}
    settings = {"svg.fonttype": "none", "svg.hashsalt": "psychometrics", "pdf.fonttype": 42}
    with plt.rc_context(settings):
        for form, date in (("svg", "Date"), ("pdf", "CreationDate")):
            with io.BytesIO() as file:
                figure.savefig(file, format=form, metadata={date: None}, transparent=True)
                files[form] = file.getvalue()

    plt.close(figure)
    return Picture(files["svg"], files["pdf"], caption, alt)


def draw_scores(result: Assessment | Comparison) -> Picture | None:
    """Return the picture of scores over those of models that know nothing, or None without scores.

    Examples
    --------
    >>> from psychometrics.measures.styles import empty_answers
    >>> from psychometrics.reports.profiles import judge_respondents
    >>> answers = empty_answers("gad7", "agree")
    >>> name = answers["respondent_id"].iloc[0]
    >>> draw_scores(judge_respondents(answers, "gad7", [name])[name]).caption
    'A score among the grey points is not unusual.'
    """
    assessments = result.assessments if isinstance(result, Comparison) else {"this model": result}
    assessment = next(iter(assessments.values()))
    rows = assessment.scale_names

    def with_rows(table: pd.DataFrame) -> pd.DataFrame:
        keys = zip(table["questionnaire"], table["scale"], strict=True) if len(table) else ()
        return table.assign(row=[rows[key] for key in keys])

    points = pd.concat([with_rows(each.scores).assign(who=name) for name, each in
                        assessments.items()])  # fmt: skip
    if points["score"].isna().all():
        return None

    nulls = pd.concat([each.nulls for each in assessments.values()])
    if len(nulls):
        nulls = nulls.drop_duplicates(["questionnaire", "scale", "who"])

    people = None
    if len(assessments) == 1 and assessment.norms is not None:
        people = with_rows(assessment.norms)[["row", "norm_mean", "norm_sd"]].drop_duplicates("row")
        people.columns = ["row", "mean", "sd"]

    to_prompts = assessment.base is not None
    null = "models that know nothing" if to_prompts else "the same answers dealt at random"
    unit = "score (mean weight of words)" if to_prompts else "score"
    with _figure_style():
        strip = needed("psychometrics.figures").strip
        figure = strip(points, with_rows(nulls), with_rows(assessment.others), people, unit, null)

    words = "{row.row}: {row.who} {row.score:.3f} ({row.low:.3f} to {row.high:.3f})"
    described = [fill(words, row=row) for row in points.itertuples()]
    alt = f"Scores with their intervals over those of {null}. {'; '.join(described[:12])}."
    return picture(figure, "A score among the grey points is not unusual.", alt)


@contextmanager
def _figure_style() -> Iterator[None]:
    """Draw in the style of pages, in an ink that follows the page from light to dark."""
    figures = needed("psychometrics.figures")
    inks = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    with figures.plt.rc_context():
        figures.style()
        figures.plt.rcParams |= dict.fromkeys(inks, _INK)
        yield


def draw_alphas(scales: pd.DataFrame, titles: dict[str, str]) -> Picture | None:
    """Return the picture of alphas with what random answers and habits reach, or None without any.

    Parameters
    ----------
    scales : DataFrame
        The table ``scales`` of :func:`psychometrics.reports.answer_profiles.assess_answers`.
    titles : dict of str
        Short titles of the questionnaires, by id.
    """
    scales = scales.dropna(subset="alpha")
    if scales.empty:
        return None

    rows = [f"{titles[row.questionnaire]}, {row.title}" for row in scales.itertuples()]
    figures = needed("psychometrics.figures")
    with _figure_style():
        figure = figures.alphas_over_chance(scales.assign(row=rows))

    words = (
        "{row.row}: alpha {row.alpha:.2f}, random answers reach {row.independent:.2f}, habits "
        "{row.habit:.2f}"
    )
    described = [fill(words, row=row) for row in scales.assign(row=rows).itertuples()]
    caption = "An alpha within a grey bar is within reach of respondents that know nothing."
    return picture(figure, caption, f"{'; '.join(described)}.")


def draw_differences(table: pd.DataFrame) -> Picture:
    """Return the picture of differences with their intervals.

    Parameters
    ----------
    table : DataFrame
        ``row, difference, low, high``, one row per difference.
    """
    figures = needed("psychometrics.figures")
    with _figure_style():
        figure, ax = figures.plt.subplots(figsize=(4.6, 1 + 0.55 * len(table)))
        for place, row in enumerate(table.itertuples()):
            ax.text(0, -place, row.row, transform=ax.get_yaxis_transform(), fontsize=10, wrap=True)
            ax.hlines(-place - 0.3, row.low, row.high, color=figures.TRAINED, linewidth=2.5)
            ax.plot(row.difference, -place - 0.3, "o", color=figures.TRAINED, markersize=8)

        ax.axvline(0, linestyle=":", color=_INK, linewidth=1)
        ax.set(ylim=(-len(table) + 0.3, 0.5), yticks=[], xlabel="difference, with its interval")
        ax.spines["left"].set_visible(False)

    words = "{row.row}: {row.difference:.3f} ({row.low:.3f} to {row.high:.3f})"
    described = [fill(words, row=row) for row in table.itertuples()]
    caption = "An interval that includes zero shows no difference."
    return picture(figure, caption, f"{'; '.join(described)}.")


def write_page(
    report: Report, figure: Picture | None, pages: Sequence[Path], notebook: str = "{}"
) -> None:
    """Write a report as .html or .pdf pages, and its results as JSON beside the first one.

    Parameters
    ----------
    report : Report
    figure : Picture, optional
    pages : sequence of Path
        Files, as :func:`psychometrics.reports.printing.check_page` returns them.
    notebook : str
        The notebook that repeats the computation, which the page offers as a download.

    Raises
    ------
    ParameterError
        A page cannot be written.
    PsychometricsError
        The browser did not print the page.
    """
    text = render_page(report, figure, pages[0].stem, notebook)
    for page in pages:
        if page.suffix == ".html":
            write_text(page, text)
            continue

        with writing(page), replacing(page) as unfinished, tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "page.html"
            source.write_text(text, encoding="utf-8")
            print_page(source.as_uri(), unfinished.absolute(), Path(folder) / "browser")


def render_page(report: Report, figure: Picture | None, stem: str, notebook: str = "{}") -> str:
    """Return the page of a report as HTML; ``stem`` names the files that it offers.

    Examples
    --------
    >>> table = Table(name="scores", title="Scores.", columns=[], rows=[])
    >>> report = Report(kind="study", title="A study", about="", statements=[], tests=[],
    ...                 results=table)
    >>> "<h1>A study</h1>" in render_page(report, None, "study")
    True
    """
    script = (_TEMPLATES / "page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    template = _environment().get_template("page.html.j2")
    return template.render(
        report=report,
        figure=figure,
        full=True,
        stem=stem,
        script=script,
        digest=digest,
        notebook=notebook,
        citation=cite(report),
    )


def render_fragment(result: Assessment | Comparison) -> str:
    """Return the sentences, the figure, the tests and the table of a result as HTML."""
    report = report_profile(result) if isinstance(result, Assessment) else report_comparison(result)
    template = _environment().get_template("fragment.html.j2")
    return template.render(report=report, figure=draw_scores(result), full=False)


@cache
def _environment() -> Environment:
    """Return the templates' environment, which escapes whatever a name or a text holds."""
    jinja2 = needed("jinja2")
    environment: Environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals |= {
        "kinds": _KINDS,
        "marks": _MARKS,
        "tones": _TONES,
        "signs": _SIGNS,
        "number": number,
        "address": _address,
        "format_markdown": format_markdown,
        "format_latex": format_latex,
        "format_csv": format_csv,
    }
    return environment


def _address(kind: str, content: str | bytes) -> str:
    """Return the content of a file as an address from which the page offers it."""
    raw = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
    return f"data:{kind};base64,{base64.b64encode(raw).decode()}"


def _cells(table: Table) -> list[list[str]]:
    """Return the heads and the shown cells of a table as texts, without line breaks."""
    rows = [[column.heading for column in table.columns]]
    for row in table.rows:
        values = [row[column.key] for column in table.columns]
        texts = [
            "" if value is None else number(value, column.form)
            for value, column in zip(values, table.columns, strict=True)
        ]
        rows.append([" ".join(text.split()) for text in texts])

    return rows


def format_markdown(table: Table) -> str:
    """Return a table in Markdown.

    Examples
    --------
    >>> from psychometrics.reports.report import Column, Table
    >>> column = Column(key="a", heading="first", form=".1f")
    >>> print(format_markdown(Table(name="t", title="T.", columns=[column], rows=[{"a": 2.0}])))
    | first |
    | --- |
    | 2.0 |
    <BLANKLINE>
    """
    return markdown_table(_cells(table))


def format_latex(table: Table) -> str:
    r"""Return a table in LaTeX, for the package booktabs.

    Examples
    --------
    >>> from psychometrics.reports.report import Column, Table
    >>> column = Column(key="a", heading="share", form="")
    >>> print(format_latex(Table(name="t", title="T.", columns=[column], rows=[{"a": "5 %"}])))
    \begin{tabular}{l}
    \toprule
    share \\
    \midrule
    5 \% \\
    \bottomrule
    \end{tabular}
    <BLANKLINE>
    """
    heads, *rows = _cells(table)
    columns = "".join("r" if column.form else "l" for column in table.columns)
    frame = pd.DataFrame(rows, columns=heads)
    latex: str = frame.to_latex(index=False, escape=True, column_format=columns)
    return latex.replace("−", "$-$")


def format_csv(table: Table) -> str:
    """Return a table as CSV, with all digits and all keys of its rows."""
    with io.StringIO() as file:
        write_csv(pd.DataFrame(table.rows), file)
        return file.getvalue()


def cite(report: Report) -> str:
    """Return how to cite the instrument and the report.

    Examples
    --------
    >>> table = Table(name="scores", title="Scores.", columns=[], rows=[])
    >>> report = Report(kind="profile", title="my-model", about="", statements=[], tests=[],
    ...                 results=table)
    >>> cite(report).partition(". ")[0]
    'Profile of a model: my-model'
    """
    return (
        f"{_KINDS[report.kind]}: {report.title}. Psychometrics of Language Models, version "
        f"{__version__}."
    )


def make_notebook(report: Report, cells: Sequence[str]) -> str:
    """Return a short notebook that repeats a computation, as JSON.

    Examples
    --------
    >>> table = Table(name="scores", title="Scores.", columns=[], rows=[])
    >>> report = Report(kind="profile", title="my-model", about="", statements=[], tests=[],
    ...                 results=table)
    >>> len(json.loads(make_notebook(report, ["1 + 1"]))["cells"])
    2
    """
    made: list[dict[str, object]] = [
        {"cell_type": "markdown", "id": "title", "metadata": {}, "source": f"# {cite(report)}"}
    ]
    for place, source in enumerate(cells):
        code = {"cell_type": "code", "id": f"cell-{place}", "metadata": {}, "outputs": []}
        made.append(code | {"execution_count": None, "source": source})

    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return json.dumps(
        {"cells": made, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}, indent=1
    )
