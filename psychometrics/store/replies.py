"""The stored replies of a chat model or an endpoint, by request, run and attempt."""

from __future__ import annotations

import pandas as pd

from .answers import StoredAnswers, key_of


class StoredReplies:
    """The replies about one questionnaire: those in the store, and new ones.

    Parameters
    ----------
    stored : StoredAnswers
    fingerprint : str
        The respondent's; part of each reply's key.

    Attributes
    ----------
    known : dict of dict
        ``reply`` and ``finish_reason``, if there is one, by key.
    """

    def __init__(self, stored: StoredAnswers, fingerprint: str) -> None:
        self._stored = stored
        self._fingerprint = fingerprint
        self.known = stored.rows.reindex(columns=["reply", "finish_reason"]).to_dict("index")

    def key(self, request: str, about: dict) -> str:
        """Return the key of the reply to a request."""
        return key_of(self._fingerprint, request, str(about["run"]), str(about["attempt"]))

    def add(self, new: dict[str, tuple[dict, str, dict]], seconds: float) -> None:
        """Save what a conversation was about, its request and what was replied, by key."""
        rows = [
            {"run": about["run"], "attempt": about["attempt"], "items": " ".join(about["items"])}
            | {"request": request, **found}
            for about, request, found in new.values()
        ]
        index = pd.Index(list(new), name="key")
        self.known |= {key: {"finish_reason": None} | found for key, (_, _, found) in new.items()}
        there = self._stored.add(pd.DataFrame(rows, index=index), seconds)
        if there:
            columns = ["reply", "finish_reason"]  # another process was first: its replies count
            self.known |= self._stored.rows.loc[there].reindex(columns=columns).to_dict("index")
