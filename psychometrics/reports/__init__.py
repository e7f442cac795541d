"""Reports: pages about one's own models, runs and studies, in one design."""

from __future__ import annotations

from .. import rooms_of

__getattr__ = rooms_of(__name__)
