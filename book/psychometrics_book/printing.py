"""Print the book to one PDF with Chromium or Chrome."""

from __future__ import annotations

import re
import tempfile
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

from psychometrics.exceptions import PsychometricsError, check_file, writing
from psychometrics.files import replacing
from psychometrics.paths import book_dir
from psychometrics.reports.printing import print_page

from .templating import fill_template

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pypdf import PageObject, PdfReader

_ONLY_ON_SCREEN = re.compile(
    r"(ask|impostors|execution|house|numbers|adding"
    r"|chapters/(records-.*|benchmarks)|reference/(?!formulas).*)\.html"
)
"""The pages that are not printed: they need a screen, are looked up, or are for contributors."""


def print_book(output: str | Path) -> Path:
    """Print the built book to one PDF, with contents, bookmarks and links.

    Pages that are only for the screen are left out; the contents list their addresses.

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
    from pypdf.constants import PageLabelStyle
    from sphinx_external_toc.parsing import parse_toc_yaml

    output = check_file(output, (".pdf",))
    html = (book_dir() / "_build" / "html").resolve()
    names = [f"{name}.html" for name in parse_toc_yaml(book_dir() / "_toc.yml")]
    missing = [name for name in names if not (html / name).is_file()]

    if missing:
        raise PsychometricsError(f"There is no page {missing[0]}: run `psychometrics book` first.")
    titles = {name: _page_title(html / name) for name in names}
    canonical = re.search(
        r'rel="canonical" href="(.*?)index\.html"', (html / names[0]).read_text("utf-8")
    )
    online = canonical.group(1) if canonical else ""
    readers = _print_pages(html, titles, online)
    writer = PdfWriter()
    pages = {}
    for name, reader in readers.items():
        start = len(writer.pages)
        writer.append(reader, titles.get(name, "Contents"), import_outline=False)
        pages[name] = writer.pages[start:]

    _link_pages(readers, pages, f"{html.as_uri()}/", online)
    writer.set_page_label(0, len(pages[""]) - 1, PageLabelStyle.LOWERCASE_ROMAN)
    writer.set_page_label(len(pages[""]), len(writer.pages) - 1, PageLabelStyle.DECIMAL)
    writer.compress_identical_objects()
    with writing(output), replacing(output) as part:
        writer.write(part)

    return output


def _page_title(page: Path) -> str:
    title = re.search(r"<title>(.*?)</title>", page.read_text(encoding="utf-8"), re.S)
    return unescape(title.group(1)).partition(" — ")[0].strip()


def _print_pages(html: Path, titles: dict[str, str], online: str) -> dict[str, PdfReader]:
    """Return the PDFs of the contents, whose name is empty, and of the pages for paper."""
    from pypdf import PdfReader
    from tqdm import tqdm

    readers: dict[str, PdfReader] = {}
    starts = {}
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder) / "profile"
        for name in tqdm([name for name in titles if not _ONLY_ON_SCREEN.fullmatch(name)]):
            starts[name] = 1 + sum(len(reader.pages) for reader in readers.values())
            printed = Path(folder) / f"{starts[name]}.pdf"
            print_page(f"{(html / name).as_uri()}?page={starts[name]}", printed, profile)
            readers[name] = PdfReader(printed)

        values = {"book": html.as_uri(), "titles": titles, "starts": starts, "online": online}
        contents = Path(folder) / "contents.html"
        contents.write_text(fill_template("contents.html.j2", **values), encoding="utf-8")
        printed = contents.with_suffix(".pdf")
        print_page(contents.as_uri(), printed, profile)
        return {"": PdfReader(printed), **readers}


def _link_pages(
    readers: dict[str, PdfReader], pages: dict[str, Sequence[PageObject]], book: str, online: str
) -> None:
    """Make links into the book point into the PDF, else to the page online, if it is known."""
    from pypdf.generic import ArrayObject, NameObject, TextStringObject

    places = {name: reader.named_destinations for name, reader in readers.items()}
    for source, page in [(name, page) for name in pages for page in pages[name]]:
        notes = page.get("/Annots") or []
        for reference in list(notes):
            link = reference.get_object()
            address = str(link.get("/A", {}).get("/URI", ""))
            # A name that several pages of the book have is the one of the link's own page.
            if "/Dest" in link:
                address = f"{book}{source}#{link['/Dest'][1:]}"
            if not address.startswith(book):
                continue

            name, _, anchor = address.removeprefix(book).partition("#")
            if name in pages:
                place = places[name].get(f"/{anchor}")
                number = readers[name].get_destination_page_number(place) if place else None
                fit = place.dest_array[1:] if place else [NameObject("/Fit")]
                target = pages[name][number or 0].indirect_reference
                link[NameObject("/Dest")] = ArrayObject([target, *fit])
                link.pop("/A", None)
            elif online:
                link["/A"][NameObject("/URI")] = TextStringObject(address.replace(book, online))
            else:
                notes.remove(reference)
