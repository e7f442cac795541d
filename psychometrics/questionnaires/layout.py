"""Layouts of files that are converted into the project's layout, and parts that they share."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from abc import abstractmethod
from pathlib import Path
from typing import Any

from .model import Part


class _Layout(Part):
    """A file's content in another layout."""

    @abstractmethod
    def convert(self, path: Path) -> dict[str, Any]:
        """Return the content in the project's layout.

        Raises
        ------
        ValueError
            The project's layout has no place for a part of the content.
        """


def _count_options(low: int, high: int, labels: dict[int, str]) -> list[dict[str, Any]]:
    """Return whole numbers as options; a number without a label is its own label."""
    return [{"value": n, "label": labels.get(n, str(n))} for n in range(low, high + 1)]


def _describe_file(path: Path, title: str) -> dict[str, Any]:
    """Return values for the keys that a JSON file does not have."""
    return {
        "id": _make_identifier(path.stem),
        "title": title,
        "short_title": title,
        "citation": "user",
        "source": path.name,
        "licence": "as the file's owner states",
    }


def _make_identifier(stem: str) -> str:
    """Return an identifier for a file's name, with a digest if it has letters other than a to z.

    Examples
    --------
    >>> _make_identifier("My scale (2)"), _make_identifier("Té")
    ('my-scale-2', 't-5a4fdea7')
    """
    slug = re.sub(r"[^a-z0-9_-]+", "-", stem.lower()).strip("-_")
    if slug and stem.isascii():
        return slug
    name = unicodedata.normalize("NFC", stem)  # as some file systems do not
    digest = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return f"{slug or 'own'}-{digest}"
