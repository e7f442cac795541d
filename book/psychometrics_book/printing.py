"""Print the whole book to one PDF with Chromium or Chrome."""

from __future__ import annotations

import re
import tempfile
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from psychometrics.exceptions import PsychometricsError, check_file, writing
from psychometrics.files import replacing
from psychometrics.paths import book_dir
from psychometrics.reports.printing import print_page

if TYPE_CHECKING:
    from pypdf import PdfWriter


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
    from sphinx_external_toc.parsing import parse_toc_yaml
    from tqdm import tqdm

    output = check_file(output, (".pdf",))
    html = book_dir() / "_build" / "html"
    pages = [html / f"{name}.html" for name in parse_toc_yaml(book_dir() / "_toc.yml")]
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
            print_page(address, printed, Path(folder) / "profile")
            writer.append(printed, import_outline=False)
            writer.add_outline_item(title=_page_title(page), page_number=starts[page.resolve()])

        _link_pages(writer, starts)
        writer.compress_identical_objects()
        with writing(output), replacing(output) as part:
            writer.write(part)

    return output


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
