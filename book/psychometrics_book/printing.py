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
    on_screen = {name: titles.pop(name) for name in names if _ONLY_ON_SCREEN.fullmatch(name)}
    first = (html / names[0]).read_text(encoding="utf-8")
    canonical = re.search(r'rel="canonical" href="(.*?)index\.html"', first)
    online = canonical.group(1) if canonical else ""
    with tempfile.TemporaryDirectory() as folder:
        readers = _print_pages(html, Path(folder), titles, on_screen, online)

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


def _print_pages(
    html: Path, folder: Path, titles: dict[str, str], on_screen: dict[str, str], online: str
) -> dict[str, PdfReader]:
    """Return the PDFs of the contents, whose name is empty, and of the pages that have titles."""
    from tqdm import tqdm

    readers = {}
    starts = {}
    number = 1
    for name in tqdm(titles, unit="page"):
        starts[name] = number
        readers[name] = _print(f"{(html / name).as_uri()}?page={number}", folder)
        number += len(readers[name].pages)

    contents = folder / "contents.html"
    values = {"titles": titles, "on_screen": on_screen, "starts": starts}
    text = fill_template("contents.html.j2", book=html.as_uri(), online=online, **values)
    contents.write_text(text, encoding="utf-8")
    return {"": _print(contents.as_uri(), folder)} | readers


def _print(address: str, folder: Path) -> PdfReader:
    from pypdf import PdfReader

    file = folder / "page.pdf"
    file.unlink(missing_ok=True)
    print_page(address, file, folder / "profile")
    return PdfReader(file)


def _link_pages(
    readers: dict[str, PdfReader], pages: dict[str, Sequence[PageObject]], book: str, online: str
) -> None:
    """Make links into the book point into the PDF, else to the page online, if it is known."""
    from pypdf.generic import ArrayObject, NameObject, TextStringObject

    places = {name: reader.named_destinations for name, reader in readers.items()}
    sources = [(name, page) for name in pages for page in pages[name]]
    for source, page in sources:
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
                online_address = address.replace(book, online, 1)
                link["/A"][NameObject("/URI")] = TextStringObject(online_address)
            else:
                notes.remove(reference)
