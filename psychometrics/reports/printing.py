"""Print pages to PDF with Chromium or Chrome."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from ..exceptions import ParameterError, PsychometricsError, check_file

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def check_page(path: str | Path) -> Path:
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
    >>> check_page("report.doc")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: report.doc: end the file's name in .html or .pdf.
    """
    path = check_file(path, (".html", ".pdf"))
    if path.suffix == ".pdf":
        _needed_browser(path)

    return path


def print_page(address: str, output: Path, profile: Path) -> None:
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


def find_browser() -> str | None:
    """Return the path of Chromium or Chrome, if one of them is installed."""
    return next(filter(None, map(shutil.which, _BROWSERS)), None)


def _needed_browser(place: object) -> str:
    """Return the path of Chromium or Chrome; ``place`` names the file to print."""
    browser = find_browser()
    if browser is None:
        raise ParameterError(
            f"{place}: a PDF is printed by Chromium or Chrome, and neither is on the PATH; "
            "install one, or write only the .html page."
        )
    return browser
