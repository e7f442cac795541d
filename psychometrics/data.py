"""External data: files of other owners, fetched on demand and checked, never shipped."""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from .exceptions import DataError
from .paths import cache_dir, data_dir

if TYPE_CHECKING:
    import pandas as pd

_MIRROR = "PSYCHOMETRICS_DATA_MIRROR"
NLI_LABELS = ("entailment", "neutral", "contradiction")


@functools.cache
def registry() -> dict[str, dict[str, str]]:
    """Read ``data/registry.yml``: repository, commit, path, sha256 and licence by key."""
    return yaml.safe_load((data_dir() / "registry.yml").read_text(encoding="utf-8"))


def fetch(key: str) -> Path:
    """Return the local path of an external file, from the mirror if it is there, else downloaded.

    Parameters
    ----------
    key : str
        A key of ``data/registry.yml``.

    Returns
    -------
    Path
        A file with the SHA-256 of the registry.

    Raises
    ------
    DataError
        The key is unknown, the file cannot be fetched, or its checksum differs.

    Examples
    --------
    >>> try:
    ...     fetch("weather")
    ... except DataError as error:
    ...     print(str(error)[:41])
    data/registry.yml has no entry 'weather';
    """
    relative = _relative(key)
    mirror = os.environ.get(_MIRROR)
    path = Path(mirror or "") / relative
    try:
        if not mirror or not path.is_file():
            return _download(key, relative)
        found = _sha256(path, path.stat().st_mtime_ns)
    except DataError:  # itself an OSError
        raise
    except OSError as error:
        place = f"{error.filename or path} cannot be read or written ({error.strerror})"
        raise DataError(f"{place}: see to its permissions, or replace that copy.") from None
    if found != registry()[key]["sha256"]:
        raise DataError(f"{path} differs from data/registry.yml ('{key}'): replace that copy.")
    return path


def available(*keys: str) -> bool:
    """Say whether files can be read without a download (in the mirror or already in the cache)."""
    roots = [cache_dir() / "external", *filter(None, [os.environ.get(_MIRROR)])]
    return all(any((Path(root) / _relative(key)).is_file() for root in roots) for key in keys)


def mnli_sample() -> pd.DataFrame:
    """Load the 18,000 labelled MNLI pairs, with the project's fixed split.

    A pair is held out if the SHA-256 of its premise is 0 modulo 10: no premise is on both sides,
    and the split depends on the text alone.

    Returns
    -------
    DataFrame
        ``premise, hypothesis, label`` (0 entailment, 1 neutral, 2 contradiction), ``genre``,
        ``held_out``.
    """
    import pandas as pd

    frame = pd.concat(
        [pd.read_csv(fetch(f"mnli_{label}"), dtype={"premise": str}) for label in NLI_LABELS],
        ignore_index=True,
    ).dropna(subset=["premise", "hypothesis"])
    frame["held_out"] = [
        int(hashlib.sha256(text.strip().encode()).hexdigest(), 16) % 10 == 0
        for text in frame["premise"]
    ]
    return frame[["premise", "hypothesis", "label", "genre", "held_out"]].reset_index(drop=True)


def snli_sample() -> pd.DataFrame:
    """Load SNLI's dev and test pairs: ``premise, hypothesis, label``, as in :func:`mnli_sample`."""
    import pandas as pd

    names, parts = ["premise", "hypothesis", "label"], []
    for split in ("dev", "test"):
        files = (fetch(f"snli_{name}_{split}") for name in ("s1", "s2", "labels"))
        columns = [file.read_text(encoding="utf-8").splitlines() for file in files]
        if len({len(column) for column in columns}) != 1:
            raise DataError(f"e-SNLI's {split} files differ in length: fetch them again.")
        parts.append(pd.DataFrame(dict(zip(names, columns, strict=True))))
    frame = pd.concat(parts, ignore_index=True)
    for name in names[:2]:
        frame[name] = frame[name].str.replace(r"\s+([.,!?;:])", r"\1", regex=True).str.strip()
    frame["label"] = frame["label"].map(NLI_LABELS.index)
    return frame


def _relative(key: str) -> str:
    """Path of a file below a mirror's or the cache's top."""
    if not isinstance(key, str) or key not in registry():
        raise DataError(f"data/registry.yml has no entry '{key}'; it has {', '.join(registry())}.")
    entry = registry()[key]
    return f"{entry['repository']}/{entry['commit']}/{entry['path']}"


def _download(key: str, relative: str) -> Path:
    import pooch

    url = f"https://raw.githubusercontent.com/{relative}".replace(" ", "%20")
    target = cache_dir() / "external" / relative
    known = f"sha256:{registry()[key]['sha256']}"
    try:
        return Path(pooch.retrieve(url, known_hash=known, fname=target.name, path=target.parent))
    except PermissionError:
        raise
    except ValueError:  # how pooch reports another checksum
        raise DataError(
            f"{url} has other content than data/registry.yml says of '{key}'; set "
            f"{_MIRROR} to a folder that holds the right {relative}."
        ) from None
    except OSError as error:
        raise DataError(
            f"'{key}' could not be downloaded from {url} ({type(error).__name__}); connect to the "
            f"network, or set {_MIRROR} to a folder that holds {relative}."
        ) from error


@functools.lru_cache(maxsize=64)
def _sha256(path: Path, _modified: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
