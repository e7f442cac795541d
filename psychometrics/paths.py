"""Paths of the project's folders, at the top level of a clone or inside an installed package."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_ROOT = _PACKAGE.parent if (_PACKAGE.parent / "questionnaires").is_dir() else _PACKAGE / "_shipped"


def questionnaires_dir() -> Path:
    """Return the folder of the questionnaires' YAML files."""
    return _ROOT / "questionnaires"


def data_dir() -> Path:
    """Return the folder of the shipped data and adapters."""
    return _ROOT / "data"


def notebooks_dir() -> Path:
    """Return the folder of the parameterised notebooks."""
    return _ROOT / "notebooks"


def book_dir() -> Path:
    """Return the folder of the book's sources."""
    return _ROOT / "book"


def cache_dir() -> Path:
    """Return the user's cache folder for downloads and answers."""
    import pooch

    return Path(pooch.os_cache("psychometrics"))
