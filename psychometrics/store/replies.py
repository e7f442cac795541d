"""The stored replies of a chat model or an endpoint, by request, run and attempt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from .answers import StoredAnswers, key_of


@dataclass(frozen=True)
class Turn:
    """One request of a conversation, with the items that it asks.

    Parameters
    ----------
    messages : list of dict
        ``role`` and ``content``.
    run, attempt : int
        Number of the questionnaire's run, and of the attempt at these items within the run, from 1.
    items : tuple of str
        Ids of the items in the request.
    response_format : dict, optional
        The schema of the reply, if the endpoint enforces a schema.
    """

    messages: list[dict[str, str]]
    run: int
    attempt: int
    items: tuple[str, ...]
    response_format: dict[str, Any] | None = None


@dataclass(frozen=True)
class Reply:
    """The reply to a turn.

    Parameters
    ----------
    text : str, optional
        The text of the reply; None if there is no reply.
    finish_reason : str, optional
        The reason why the reply ended, if known.
    status : str
        The reason for a missing reply: ``no_reply``, ``no_choice``, or ``unasked`` if no reply was
        requested.
    model : str, optional
        The model that replied, if an endpoint names it.
    is_new : bool
        Whether the reply was just requested rather than read from the store.
    """

    text: str | None
    finish_reason: str | None = None
    status: str = "no_reply"
    model: str | None = None
    is_new: bool = False


class StoredReplies:
    """The stored and new replies about one questionnaire.

    Parameters
    ----------
    stored : StoredAnswers
    fingerprint : str
        The respondent's fingerprint, which is part of each reply's key.

    Attributes
    ----------
    by_key : dict of Reply
    """

    def __init__(self, stored: StoredAnswers, fingerprint: str) -> None:
        self._stored = stored
        self._fingerprint = fingerprint
        self.by_key = _replies(stored.rows)

    def key(self, request: str, turn: Turn) -> str:
        """Return the key of the reply to a request."""
        return key_of(self._fingerprint, request, str(turn.run), str(turn.attempt))

    def add(self, new: Mapping[str, tuple[Turn, str, dict[str, Any]]], seconds: float) -> None:
        """Save turns with their requests and their replies, by key."""
        rows = [
            {"run": turn.run, "attempt": turn.attempt, "items": " ".join(turn.items)}
            | {"request": request, **columns}
            for turn, request, columns in new.values()
        ]
        self.by_key |= {
            key: Reply(columns["reply"], columns.get("finish_reason"), model=columns.get("model"))
            for key, (_, _, columns) in new.items()
        }
        index = pd.Index(list(new), name="key")
        stored_before = self._stored.add(pd.DataFrame(rows, index=index), seconds)
        if stored_before:  # another process was first, and its replies count
            self.by_key |= _replies(self._stored.rows.loc[stored_before])


def well_formed(text: str) -> str:
    """Replace lone surrogates in a text, since they cannot be stored.

    Examples
    --------
    >>> well_formed("yes" + chr(0xD83D)) == "yes" + chr(0xFFFD)
    True
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _replies(rows: pd.DataFrame) -> dict[str, Reply]:
    """Return the replies in rows of the store, by key."""
    columns = rows.reindex(columns=["reply", "finish_reason", "model"]).astype(object)
    columns = columns.where(columns.notna(), None)
    return {
        key: Reply(text, reason, model=model)
        for key, text, reason, model in columns.itertuples(name=None)
    }
