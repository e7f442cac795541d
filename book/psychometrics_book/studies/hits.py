"""Hits of the completions of Chapter 9: which have a word of a list, packed in bits."""

from __future__ import annotations

import numpy as np
import pandas as pd

_RANKS = 100


def unpack_bits(packed: pd.DataFrame) -> dict[str, np.ndarray]:
    """Unpack bytes of hits into one boolean array per column.

    Parameters
    ----------
    packed : DataFrame, R times T rows
        ``respondent_id``, optionally ``template``, and columns of bytes, as ``numpy.packbits``
        returns them for 100 ranks.

    Returns
    -------
    dict of ndarray of bool, shape (R, T, 100)

    Examples
    --------
    >>> hits = np.packbits(np.arange(100) == 1).tobytes()  # only the second completion
    >>> row = pd.DataFrame({"respondent_id": ["m"], "hits": [hits]})
    >>> unpack_bits(row)["hits"][0, 0, :3].tolist()
    [False, True, False]
    """
    columns = packed.columns.drop(["respondent_id", "template"], errors="ignore")
    shape = (packed["respondent_id"].nunique(), -1, _RANKS)
    bits = {}
    for name in columns:
        rows = np.frombuffer(b"".join(packed[name]), dtype=np.uint8).reshape(len(packed), -1)
        bits[name] = np.unpackbits(rows, axis=1, count=_RANKS).astype(bool).reshape(shape)

    return bits
