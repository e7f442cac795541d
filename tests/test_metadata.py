"""What describes a release comes from one place, and licences are named for each file."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import yaml

from recipes import metadata

ROOT = Path(__file__).parents[1]
OWNER = {
    "authors": [{"family": "Noether", "given": "Emmy", "orcid": "0000-0000-0000-0001"}],
    "repository": "https://github.com/a/b",
    "url": "https://a.github.io/b/",
    "doi": "10.5281/zenodo.1",
}


def test_the_files_of_a_release_are_those_that_the_one_source_gives():
    written = metadata.files(metadata.read())
    assert {name: (ROOT / name).read_text(encoding="utf-8") for name in written} == written


def test_what_only_an_owner_can_give_is_listed_until_it_is_there():
    about = metadata.read()
    empty = about | dict.fromkeys(("repository", "url", "doi")) | {"authors": [{"name": "We"}]}
    assert [line.split(":")[0] for line in metadata.missing(empty)] == [
        f"data/metadata.yml, {name}" for name in ("authors", "repository", "url", "doi")
    ]
    assert metadata.missing(about | OWNER) == []


def test_an_authors_names_reach_all_three_files():
    written = metadata.files(metadata.read() | OWNER)
    author = yaml.safe_load(written["CITATION.cff"])["authors"][0]
    assert author["family-names"] == "Noether"
    assert author["orcid"] == "https://orcid.org/0000-0000-0000-0001"
    assert json.loads(written["codemeta.json"])["author"][0]["givenName"] == "Emmy"
    assert json.loads(written[".zenodo.json"])["creators"][0]["name"] == "Noether, Emmy"


def test_each_licence_that_a_file_may_have_has_its_text():
    annotations = tomllib.loads((ROOT / "REUSE.toml").read_text(encoding="utf-8"))["annotations"]
    named = {one["SPDX-License-Identifier"] for one in annotations}
    assert named == {path.stem for path in (ROOT / "LICENSES").glob("*.txt")}
