"""Studies: what belongs to one paper, with its figures."""

from __future__ import annotations

from .. import rooms_of

__getattr__ = rooms_of(__name__)
