"""Print pages, and the whole book, to PDF with Chromium or Chrome."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import yaml

from psychometrics.exceptions import ParameterError, PsychometricsError, check_file, writing
from psychometrics.files import replacing
from psychometrics.paths import book_dir

if TYPE_CHECKING:
    from pypdf import PdfWriter

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def _check_output(path: str | Path) -> Path:
    """Refuse a page that could not be written, before its content is computed.

    Returns
    -------
    Path
        The path, with the extension .html or .pdf in lower case.

    Raises
    ------
    ParameterError
        As in :func:`psychometrics.exceptions.check_file`, or no browser can print the page.

    Examples
    --------
    >>> _check_output("report.doc")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: report.doc: end the file's name in .html or .pdf.
    """
    path = check_file(path, (".html", ".pdf"))
    if path.suffix == ".pdf":
        _needed_browser(path)

    return path


def _print_page(address: str, output: Path, profile: Path) -> None:
    """Print an address to a PDF file with a headless browser.

    Parameters
    ----------
    address : str
        An address such as ``file:///tmp/page.html``.
    output : Path
        A new file.
    profile : Path
        A folder for the browser's own files, which several calls may share.

    Raises
    ------
    ParameterError
        There is no browser.
    PsychometricsError
        The browser did not print a page.
    """
    browser = _needed_browser(address)
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
               "--disable-background-networking", "--disable-component-update", "--disable-sync",
               "--no-pdf-header-footer", "--virtual-time-budget=20000",
               f"--user-data-dir={profile}", f"--print-to-pdf={output}"]  # fmt: skip
    subprocess.run([browser, *options, address], check=False, capture_output=True, timeout=300)
    if not output.is_file() or not output.stat().st_size:
        raise PsychometricsError(f"{browser} did not print {address}: try another browser.")


def print_book(output: str | Path) -> Path:
    """Print the built book to one PDF, with bookmarks, links, and its pages in order.

    Parameters
    ----------
    output : str or Path
        The file to write.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ParameterError
        The file cannot be written.
    PsychometricsError
        The book was not built, or there is no Chromium or Chrome to print it.

    Notes
    -----
    A headless browser prints each page; ``pypdf`` joins them.
    """
    from pypdf import PdfWriter
    from tqdm import tqdm

    output = check_file(output, (".pdf",))
    html = book_dir() / "_build" / "html"
    pages = [html / f"{name}.html" for name in _page_names(book_dir() / "_toc.yml")]
    missing = [page.name for page in pages if not page.is_file()]

    if missing:
        raise PsychometricsError(f"There is no page {missing[0]}: run `psychometrics book` first.")
    writer = PdfWriter()
    starts = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, page in enumerate(tqdm(pages, unit="page")):
            starts[page.resolve()] = len(writer.pages)
            printed = Path(folder) / f"{number}.pdf"
            address = f"{page.resolve().as_uri()}?page={len(writer.pages) + 1}"
            _print_page(address, printed, Path(folder) / "profile")
            writer.append(printed, import_outline=False)
            writer.add_outline_item(title=_page_title(page), page_number=starts[page.resolve()])

        _link_pages(writer, starts)
        writer.compress_identical_objects()
        with writing(output), replacing(output) as part:
            writer.write(part)

    return output


def _find_browser() -> str | None:
    """Return the path of Chromium or Chrome, if one of them is installed."""
    return next(filter(None, map(shutil.which, _BROWSERS)), None)


def _needed_browser(place: object) -> str:
    """Return the path of Chromium or Chrome; ``place`` names the file to print."""
    browser = _find_browser()
    if browser is None:
        raise ParameterError(
            f"{place}: a PDF is printed by Chromium or Chrome, and neither is on the PATH; "
            "install one, or write only the .html page."
        )
    return browser


def _page_names(toc: Path) -> list[str]:
    """Return the names of the book's pages in the order of the table of contents."""
    contents = yaml.safe_load(toc.read_text(encoding="utf-8"))
    parts = contents.get("parts", [contents])
    chapters = [chapter for part in parts for chapter in part.get("chapters", [])]
    below = [[c["file"], *(s["file"] for s in c.get("sections", []))] for c in chapters]
    return [contents["root"], *(name for names in below for name in names)]


def _page_title(page: Path) -> str:
    title = re.search(r"<title>(.*?)</title>", page.read_text(encoding="utf-8"), re.S)
    return unescape(title.group(1)).partition(" — ")[0].strip()


def _link_pages(writer: PdfWriter, starts: dict[Path, int]) -> None:
    """Make links to other pages of the book point into the PDF."""
    from pypdf.generic import ArrayObject, NameObject

    for page in writer.pages:
        for reference in page.get("/Annots") or []:
            link = reference.get_object()
            address = str(link.get("/A", {}).get("/URI", ""))
            path = Path(unquote(urlsplit(address).path)) if address.startswith("file:") else None
            if path in starts:
                target = writer.pages[starts[path]].indirect_reference
                link[NameObject("/Dest")] = ArrayObject([target, NameObject("/Fit")])
                del link["/A"]
