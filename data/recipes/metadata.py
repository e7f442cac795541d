"""Write the files that describe a release, from ``data/metadata.yml`` and ``pyproject.toml``.

``make release`` writes CITATION.cff, codemeta.json, .zenodo.json and data/croissant.json, and lists
the fields that only an owner can fill in; it ends with status 1 while one is missing.
"""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

import yaml

from . import croissant

ROOT = Path(__file__).parents[2]
PLACES = {
    "authors": "each author with family and given name",
    "repository": "the repository's address",
    "url": "the address of the published book",
    "doi": "the DOI of the archived release",
}
"""Fields that only an owner can fill in, and their content."""


def read(root: Path = ROOT) -> dict:
    """Return ``data/metadata.yml`` with the project's version, licence and Python."""
    about = yaml.safe_load((root / "data" / "metadata.yml").read_text(encoding="utf-8"))
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    return about | {
        "version": project["version"],
        "license": project["license"],
        "python": project["requires-python"],
    }


def missing(about: dict) -> list[str]:
    """Return the missing fields that only an owner can fill in, one sentence each."""
    absent = [name for name in PLACES if not about[name]]
    if any("family" not in author for author in about["authors"] or []):
        absent.insert(0, "authors")

    return [f"data/metadata.yml, {name}: it is empty; write {PLACES[name]}." for name in absent]


def files(about: dict) -> dict[str, str]:
    """Return the text of each file by its name."""
    return {
        "CITATION.cff": _citation(about),
        "codemeta.json": _json(_codemeta(about)),
        ".zenodo.json": _json(_zenodo(about)),
        "data/croissant.json": _json(croissant.describe(about)),
    }


def _citation(about: dict) -> str:
    """Return CITATION.cff, for the program and for the book."""
    authors = [_cff_author(author) for author in about["authors"]]
    title = about["title"]
    citation = {
        "cff-version": "1.2.0",
        "message": "If you use the book or the package, please cite it, and the paper whose "
        "method you used.",
        "title": title,
        "abstract": about["abstract"],
        "type": "software",
        "authors": authors,
        "version": about["version"],
        "date-released": about["released"],
        "license": about["license"],
        "keywords": about["keywords"],
        "repository-code": about["repository"],
        "url": about["url"],
        "doi": about["doi"],
        "preferred-citation": {
            "type": "book",
            "title": title,
            "authors": authors,
            "year": about["released"].year,
            "edition": f"version {about['version']}",
            "license": "CC-BY-4.0",
        },
        "references": about["references"],
    }
    given = {name: value for name, value in citation.items() if value}
    text = yaml.dump(given, sort_keys=False, allow_unicode=True, width=100, Dumper=_Plain)

    return f"# Written by `make release` from data/metadata.yml.\n{text}"


class _Plain(yaml.SafeDumper):
    """A YAML writer that repeats values in full, without aliases."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _cff_author(author: dict) -> dict:
    if "family" not in author:
        return {"name": author["name"]}

    named = {"family-names": author["family"], "given-names": author["given"]}
    if author.get("orcid"):
        named["orcid"] = f"https://orcid.org/{author['orcid']}"

    return named | {key: author[key] for key in ("affiliation", "email") if author.get(key)}


def _codemeta(about: dict) -> dict:
    """Return codemeta.json, version 3.0."""
    authors = [
        {
            "@type": "Person",
            "familyName": author["family"],
            "givenName": author["given"],
            **({"jobTitle": ", ".join(author["roles"])} if author.get("roles") else {}),
        }
        if "family" in author
        else {"@type": "Organization", "name": author["name"]}
        for author in about["authors"]
    ]
    described = {
        "@context": "https://w3id.org/codemeta/3.0",
        "@type": "SoftwareSourceCode",
        "name": about["title"],
        "description": about["abstract"],
        "version": about["version"],
        "datePublished": str(about["released"]),
        "license": f"https://spdx.org/licenses/{about['license']}",
        "programmingLanguage": "Python",
        "runtimePlatform": f"Python {about['python']}",
        "keywords": about["keywords"],
        "author": authors,
        "codeRepository": about["repository"],
        "url": about["url"],
        "identifier": about["doi"],
    }

    return {name: value for name, value in described.items() if value}


def _zenodo(about: dict) -> dict:
    """Return .zenodo.json, which an archive reads with each release."""
    creators = [
        {"name": f"{author['family']}, {author['given']}"} if "family" in author else author
        for author in about["authors"]
    ]

    return {
        "title": about["title"],
        "description": about["abstract"],
        "version": about["version"],
        "upload_type": "software",
        "access_right": "open",
        "license": about["license"].lower(),
        "keywords": about["keywords"],
        "creators": creators,
    }


def _json(content: dict) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _main() -> None:
    about = read()
    for name, text in files(about).items():
        (ROOT / name).write_text(text, encoding="utf-8")

    absent = missing(about)
    print("\n".join(absent) or "Nothing is missing.")
    sys.exit(bool(absent))


if __name__ == "__main__":
    _main()
