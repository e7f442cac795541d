"""One design for every report: a page that needs nothing else, on a screen, a phone and paper.

A page is one HTML file with its style and figures in it. It follows the reader's choice of light or
dark, scrolls wide tables on a phone, and prints. A report puts it together from the blocks that
:func:`paragraph`, :func:`table`, :func:`drawing` and :func:`strip` give.
"""

from __future__ import annotations

import io
import math
import re
import shutil
import subprocess
import tempfile
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from .. import __version__
from ..exceptions import ParameterError, PsychometricsError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
"""Programs that can print a page to a PDF file, in the order in which they are looked for."""
_INKS = {
    "#0072b2": "blue", "#d55e00": "orange", "#009e73": "green", "#cc79a7": "pink",
    "#e69f00": "yellow", "#56b4e9": "sky", "#999999": "faint", "#9aa5b1": "faint",
    "#000000": "ink", "#262626": "ink", "#333333": "ink", "#ffffff": "paper", "#cccccc": "line",
}  # fmt: skip
"""Colours of matplotlib's figures, and those of the page that they become, which know the dark."""


def page(
    title: str,
    sections: Sequence[tuple[str, str | Iterable[str]]],
    path: str | Path,
    lead: str = "",
) -> Path:
    """Write a report as one file.

    Parameters
    ----------
    title : str
        Plain text.
    sections : sequence of (str, str or iterable of str)
        A heading in plain text, and the blocks below it, as the functions of this module give
        them.
    path : str or Path
        Ends in .html, or in .pdf, which Chromium prints.
    lead : str
        Plain text under the title.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ParameterError
        The path ends otherwise, cannot be written, or is a .pdf where there is no Chromium.
    PsychometricsError
        Chromium did not print the page.

    Examples
    --------
    >>> file = page("A report", [("Scores", [paragraph("None yet.")])], tempfile.mktemp(".html"))
    >>> "<h2 id='scores'>Scores</h2>" in file.read_text(encoding="utf-8")
    True
    """
    path = checked_path(path)
    parts, links, taken = [], [], set()
    for heading, blocks in sections:
        name = slug = re.sub(r"\W+", "-", heading.lower()).strip("-") or "section"
        while name in taken:
            name = f"{slug}-{len(taken)}"
        taken.add(name)
        inside = blocks if isinstance(blocks, str) else "\n".join(blocks)
        links.append(f"<li><a href='#{name}'>{escape(heading)}</a></li>")
        parts.append(
            f"<section aria-labelledby='{name}'>\n<h2 id='{name}'>{escape(heading)}</h2>\n"
            f"{inside}\n</section>"
        )
    text = _PAGE.substitute(
        title=escape(title),
        description=escape(lead or title, quote=True),
        lead=f"<p class='lead'>{escape(lead)}</p>" if lead else "",
        style=_STYLE,
        links="".join(links),
        body="\n".join(parts),
        made=f"Psychometrics of Language Models {__version__}, {time.strftime('%Y-%m-%d')}",
    )
    with tempfile.TemporaryDirectory() as folder:
        file = path if path.suffix != ".pdf" else Path(folder, "page.html")
        try:
            file.write_text(text, encoding="utf-8")
            if file != path:
                _print(file, path, Path(folder))
        except OSError as error:
            raise ParameterError(f"{path}: cannot be written ({error.strerror}).") from None
    return path


def checked_path(path: str | Path) -> Path:
    """Refuse a report that could not be written, before anything is computed for it.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    Path

    Raises
    ------
    ParameterError
        As in :func:`page`.

    Examples
    --------
    >>> checked_path("report.doc")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: report.doc: end the page's name in .html or .pdf.
    """
    path = Path(path)
    if path.suffix.lower() not in (".html", ".pdf"):
        raise ParameterError(f"{path}: end the page's name in .html or .pdf.")
    if path.suffix.lower() == ".pdf" and _browser() is None:
        raise ParameterError(
            f"{path}: a PDF is printed by Chromium or Chrome, and neither is found: install one, "
            "or write an .html file and print it from your browser."
        )
    if not path.absolute().parent.is_dir():
        raise ParameterError(f"{path}: there is no folder {path.parent}; make it first.")
    if path.is_dir():
        raise ParameterError(f"{path} is a folder: name a file.")
    return path.with_suffix(path.suffix.lower())


def printed(page: str | Path, path: str | Path) -> Path:
    """Print a page to a PDF file with Chromium.

    Parameters
    ----------
    page : str or Path
        An .html file.
    path : str or Path
        Ends in .pdf.

    Returns
    -------
    Path

    Raises
    ------
    ParameterError
        As in :func:`page`.
    PsychometricsError
        Chromium did not print it.

    Examples
    --------
    >>> printed("no-such-page.html", "report.pdf")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: no-such-page.html: there is no such page to print.
    """
    page = Path(page)
    if not page.is_file():
        raise ParameterError(f"{page}: there is no such page to print.")
    path = checked_path(path)
    with tempfile.TemporaryDirectory() as folder:
        _print(page.absolute(), path, Path(folder))
    return path


def paragraph(text: str, note: bool = False) -> str:
    """Plain text as a paragraph, or as a note in smaller letters.

    Parameters
    ----------
    text : str
    note : bool

    Returns
    -------
    str
        HTML.

    Examples
    --------
    >>> paragraph("p < .05")
    '<p>p &lt; .05</p>'
    """
    return f"<p class='note'>{escape(text)}</p>" if note else f"<p>{escape(text)}</p>"


def table(
    frame: pd.DataFrame,
    caption: str,
    formats: str | Mapping[str, str] = "{:.2f}",
    links: Mapping[str, str] | None = None,
) -> str:
    """A frame as a table with a caption, which scrolls where the screen is narrow.

    Parameters
    ----------
    frame : DataFrame
        Its index is not shown. Where a cell's text begins with ✗, ! or ✓, the row's mark has a
        colour, too.
    caption : str
        Plain text.
    formats : str or mapping
        Of numbers, for all columns or by column.
    links : mapping, optional
        Addresses by the texts of cells.

    Returns
    -------
    str
        HTML.

    Examples
    --------
    >>> frame = pd.DataFrame({"scale": ["GAD-7"], "r": [0.5]})
    >>> "<td class='number'>0.50</td>" in table(frame, "Correlations")
    True
    """
    head = "".join(
        f"<th scope='col'{_kind(frame[name])}>{escape(str(name))}</th>" for name in frame
    )
    rows = []
    for number in range(len(frame)):
        cells = []
        for place, name in enumerate(frame):
            value = frame[name].iloc[number]
            form = formats if isinstance(formats, str) else formats.get(name, "{:.2f}")
            text = escape(_shown(value, form))
            if links and str(value) in links:
                text = f"<a href='{escape(links[str(value)], quote=True)}'>{text}</a>"
            if (mark := text[:1]) in _MARKS:
                text = f"<span class='mark {_MARKS[mark]}'>{mark}</span>{text[1:]}"
            tag = "th scope='row'" if place == 0 else f"td{_kind(frame[name])}"
            cells.append(f"<{tag}>{text}</{tag.split()[0]}>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    label = escape(caption, quote=True)
    return (
        f"<div class='scroll' role='region' tabindex='0' aria-label='{label}'><table>"
        f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def drawing(figure: Figure, caption: str, alt: str) -> str:
    """A figure of matplotlib's, in the page and in its colours.

    Parameters
    ----------
    figure : Figure
        It is closed.
    caption : str
        Plain text.
    alt : str
        What is to be seen, in a sentence or two.

    Returns
    -------
    str
        HTML.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> "<svg" in drawing(plt.figure(), "Nothing", "An empty figure.")
    True
    """
    import matplotlib.pyplot as plt

    file = io.StringIO()
    with plt.rc_context({"svg.fonttype": "none"}):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    plt.close(figure)
    svg = file.getvalue()[file.getvalue().index("<svg") :]
    # names inside the picture are its own, so that two pictures may stand on a page
    own = f"g{zlib.crc32(svg.encode()):x}-"
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{own}", svg)
    svg = re.sub(r"#[0-9a-f]{6}\b", lambda m: _ink(m[0]), svg)
    # texts without a colour of their own are black, in the dark, too
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{escape(alt, quote=True)}" ', 1)
    return f"<figure class='drawing'>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def strip(
    points: pd.DataFrame,
    clouds: Mapping[str, pd.DataFrame],
    caption: str,
    alt: str,
    unit: str,
    reference: float | None = 0.0,
) -> str:
    """Scores with intervals before the scores of others, a row for each scale.

    Drawn in shares of the width, so that a phone shows the same letters on a shorter axis.

    Parameters
    ----------
    points : DataFrame
        ``label, who, score, low, high``: rows of the figure, and who is drawn in them.
    clouds : mapping of str to DataFrame
        Others by their name, each ``label, score``.
    caption, alt : str
        Plain text.
    unit : str
        What the axis shows.
    reference : float, optional
        Where the dotted line stands; None draws none.

    Returns
    -------
    str
        HTML.

    Raises
    ------
    ParameterError
        There is nothing to draw.

    Examples
    --------
    >>> own = pd.DataFrame({"label": ["GAD-7"], "who": "m", "score": 0.1, "low": 0.0, "high": 0.2})
    >>> others = {"others": pd.DataFrame({"label": "GAD-7", "score": [0.0, 0.3]})}
    >>> strip(own, others, "Scores", "One score between two.", "score").count("<circle") >= 2
    True
    """
    values = [points[name].to_numpy(dtype=float) for name in ("score", "low", "high")]
    values += [cloud["score"].to_numpy(dtype=float) for cloud in clouds.values()]
    values += [np.array([np.nan if reference is None else reference])]
    values = np.concatenate(values)
    values = values[np.isfinite(values)]
    if not points["score"].notna().any():
        raise ParameterError("There is no score to draw.")
    low, high = values.min(), values.max()
    pad = 0.04 * (high - low) or 0.5
    low, high = low - pad, high + pad

    def x(value: float) -> str:
        return f"{100 * (value - low) / (high - low):.2f}%"

    people = list(dict.fromkeys(points["who"]))
    parts, top = [], 0
    for label in dict.fromkeys(points["label"]):
        parts.append(f"<text x='0' y='{top + 14}' class='label'>{escape(str(label))}</text>")
        y = top + 28
        for number, cloud in enumerate(clouds.values()):
            for value in cloud.loc[cloud["label"] == label, "score"].dropna():
                parts.append(f"<circle cx='{x(value)}' cy='{y}' r='4' class='cloud{number}'/>")
            y += 15
        own = points[points["label"] == label].set_index("who").reindex(people)
        for number, (who, row) in enumerate(own.iterrows()):
            if np.isfinite(row["score"]):
                told = f"{who}: {row['score']:.3f}"
                if np.isfinite(row["low"]):
                    told += f" ({row['low']:.3f} to {row['high']:.3f})"
                    parts.append(
                        f"<line x1='{x(row['low'])}' x2='{x(row['high'])}' y1='{y}' y2='{y}' "
                        f"class='own own{number % 6}'/>"
                    )
                parts.append(
                    f"<circle cx='{x(row['score'])}' cy='{y}' r='6' class='own own{number % 6}'>"
                    f"<title>{escape(told)}</title></circle>"
                )
            y += 15
        top = y + 6
    rules = []
    if reference is not None:
        rules.append(
            f"<line x1='{x(reference)}' x2='{x(reference)}' y1='18' y2='{top}' class='zero'/>"
        )
    rules.append(f"<line x1='0' x2='100%' y1='{top}' y2='{top}' class='axis'/>")
    for tick in _ticks(low, high):
        where = (tick - low) / (high - low)
        anchor = "start" if where < 0.05 else "end" if where > 0.95 else "middle"
        rules.append(
            f"<line x1='{x(tick)}' x2='{x(tick)}' y1='{top}' y2='{top + 5}' class='axis'/>"
            f"<text x='{x(tick)}' y='{top + 19}' text-anchor='{anchor}'>{tick:.10g}</text>".replace(
                ">-", ">−"
            )
        )
    rules.append(
        f"<text x='50%' y='{top + 38}' text-anchor='middle' class='unit'>{escape(unit)}</text>"
    )
    keys = [(f"cloud{n}", f"{name}") for n, name in enumerate(clouds)]
    keys += [(f"own own{n % 6}", f"{who}, with 95 % interval") for n, who in enumerate(people)]
    legend = "".join(
        f"<li><svg width='14' height='14' aria-hidden='true'><circle cx='7' cy='7' r='5' "
        f"class='{kind}'/></svg>{escape(name)}</li>"
        for kind, name in keys
    )
    return (
        f"<figure class='strip'><ul class='legend'>{legend}</ul>"
        f"<svg role='img' aria-label='{escape(alt, quote=True)}' width='100%' "
        f"height='{top + 44}'>{''.join(rules + parts)}</svg>"
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


_MARKS = {"✗": "bad", "!": "fair", "✓": "good"}


def _kind(column: pd.Series) -> str:
    return " class='number'" if pd.api.types.is_numeric_dtype(column) else ""


def _shown(value: object, form: str) -> str:
    if isinstance(value, float | np.floating):
        if not math.isfinite(value):
            return "–"
        return form.format(value).replace("-", "−")
    return "–" if value is None else str(value)


def _ink(colour: str) -> str:
    return f"var(--{_INKS[colour]})" if colour in _INKS else colour


def _ticks(low: float, high: float) -> np.ndarray:
    from matplotlib.ticker import MaxNLocator

    ticks = MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(low, high)
    return ticks[(ticks >= low) & (ticks <= high)].round(12) + 0.0


def _browser() -> str | None:
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


def _print(file: Path, path: Path, folder: Path) -> None:
    """Print an HTML file to a PDF file."""
    browser = _browser()
    command = [
        browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--no-pdf-header-footer", f"--user-data-dir={folder / 'browser'}",
        f"--print-to-pdf={path.absolute()}", file.as_uri(),
    ]  # fmt: skip
    path.open("ab").close()  # says what is wrong with the path, which Chromium does not
    before = path.stat().st_mtime_ns
    try:
        result = subprocess.run(command, check=False, capture_output=True, timeout=120)
        failed = result.returncode or path.stat().st_mtime_ns == before
    except subprocess.TimeoutExpired:
        failed = True
    if failed:
        raise PsychometricsError(
            f"{path} was not printed: {browser} failed; write an .html file and print it from your "
            "browser."
        )


_STYLE = (Path(__file__).with_name("page.css")).read_text(encoding="utf-8")
_PAGE = Template(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))
