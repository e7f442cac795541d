"""Describe the shipped tables for archives and search engines, in Croissant 1.1.

``make release`` writes ``data/croissant.json``: each CSV and Parquet file with its SHA-256, and the
columns of each CSV with their types. Descriptions and licences are those of ``data/README.md``.
"""

from __future__ import annotations

import hashlib
import json
import re
from fnmatch import fnmatch
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).parents[2]
_FORMATS = {
    ".csv": "text/csv",
    ".gz": "application/gzip",
    ".parquet": "application/vnd.apache.parquet",
}
_TYPES = {"b": "sc:Boolean", "i": "sc:Integer", "f": "sc:Float"}
# Tables kept for regression tests repeat the book's pages; answers are the store's many parts.
_LEFT_OUT = ("tables", "recipes", "answers")
_CONTEXT = json.loads(
    Path(__file__).with_name("croissant-context.json").read_text(encoding="utf-8")
)


def describe(about: dict, root: Path = ROOT) -> dict:
    """Return the description of ``data/`` as a Croissant data set."""
    described = _descriptions(root)
    paths = [path for path in sorted((root / "data").rglob("*")) if _is_described(path, root)]
    files, records = [], []
    for path in paths:
        name = path.relative_to(root / "data").as_posix()
        places = [place for place in described if fnmatch(name, place)]
        text = described[places[0]] if places else ""
        files.append(_file_object(path, name, text))
        if path.suffix == ".csv":
            records.append(_record_set(path, name, text))

    address = about["repository"] or "https://example.org/psychometrics-of-language-models"
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "name": "psychometrics-of-language-models",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "description": about["abstract"],
        "license": "https://creativecommons.org/publicdomain/zero/1.0/",
        "usageInfo": "data/README.md names the licence of each file; some are not CC0.",
        "url": address,
        "version": about["version"],
        "datePublished": str(about["released"]),
        "keywords": about["keywords"],
        "creator": [_creator(author) for author in about["authors"]],
        "citeAs": f"{about['title']}, version {about['version']}.",
        "isLiveDataset": False,
        "distribution": [*files, _answers(described["answers/"])],
        "recordSet": records,
    }


def _identifier(name: str) -> str:
    return re.sub(r"\s+", "_", name)


def _creator(author: dict) -> dict:
    if "family" not in author:
        return {"@type": "Organization", "name": author["name"]}
    return {"@type": "Person", "name": f"{author['given']} {author['family']}"}


def _is_described(path: Path, root: Path) -> bool:
    place = path.relative_to(root / "data").parts
    return path.is_file() and path.suffix in _FORMATS and place[0] not in _LEFT_OUT


def _descriptions(root: Path) -> dict[str, str]:
    """Return what ``data/README.md`` says of each file or folder."""
    described = {}
    for line in (root / "data" / "README.md").read_text(encoding="utf-8").splitlines():
        cells = line.split(" | ")
        names = re.findall(r"`([^`]+)`", cells[0])
        if line.startswith("| `") and len(cells) == 4:
            folder = names[0].rpartition("/")[0]
            for name in names:
                place = name if "/" in name or not folder else f"{folder}/{name}"
                described[place] = f"{cells[1]} (licence: {cells[3].rstrip(' |')})"

    return described


def _file_object(path: Path, name: str, text: str) -> dict:
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "description": text,
        "contentUrl": name,
        "contentSize": f"{path.stat().st_size} B",
        "encodingFormat": _FORMATS[path.suffix],
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }


def _answers(text: str) -> dict:
    return {
        "@type": "cr:FileSet",
        "@id": "answers",
        "name": "answers",
        "description": text,
        "encodingFormat": _FORMATS[".parquet"],
        "includes": "answers/**/*.parquet",
    }


def _record_set(path: Path, name: str, text: str) -> dict:
    table = pd.read_csv(path, low_memory=False)
    fields = [
        {
            "@type": "cr:Field",
            "@id": _identifier(f"{name}/{column}"),
            "name": column,
            "dataType": _TYPES.get(table[column].dtype.kind, "sc:Text"),
            "source": {"fileObject": {"@id": name}, "extract": {"column": column}},
        }
        for column in table.columns
    ]
    return {
        "@type": "cr:RecordSet",
        "@id": _identifier(f"rows of {name}"),
        "name": name,
        "description": text,
        "field": fields,
    }
