"""What the book's pages hold beside text: answers of exercises, explorers, slides."""

from __future__ import annotations

from .. import rooms_of

__getattr__ = rooms_of(__name__)
