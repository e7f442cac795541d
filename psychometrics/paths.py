"""Paths of the project's folders, at the top level of a clone or inside an installed package."""

from __future__ import annotations

import errno
import os
import pkgutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import lazy_loader

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


def attach_modules(package: str, paths: Iterable[str]) -> Any:
    """Return what a package needs to import each of its modules on first use.

    Parameters
    ----------
    package : str
        The package's ``__name__``.
    paths : iterable of str
        The package's ``__path__``.

    Returns
    -------
    tuple
        The package's ``__getattr__``, ``__dir__`` and ``__all__``.

    Examples
    --------
    >>> from psychometrics import store
    >>> sorted(attach_modules(store.__name__, store.__path__)[2])
    ['answers', 'folder', 'replies', 'urls', 'watching']
    """
    modules = [module.name for module in pkgutil.iter_modules(paths)]
    return lazy_loader.attach(package, submodules=modules)


def user_path(name: str | Path) -> Path | None:
    r"""Return the path that a user names, or None for a name that no file can have.

    Such a name has a NUL byte, the home of an unknown user, or too many characters.

    Examples
    --------
    >>> user_path("a\0b"), user_path("~nobody-of-this-name/x"), user_path("x" * 5000)
    (None, None, None)
    """
    try:
        path = Path(name).expanduser()
        os.stat(f"{path}.yaml")  # with room for an ending
    except (TypeError, ValueError, RuntimeError):
        return None
    except OSError as error:
        return None if error.errno == errno.ENAMETOOLONG else path

    return path
