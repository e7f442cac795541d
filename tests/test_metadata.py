"""What describes a release comes from one place, and licences are named for each file."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import shutil
import subprocess
import tomllib
from importlib.metadata import version
from pathlib import Path

import pandas as pd
import pytest
import yaml

import psychometrics as pm
from psychometrics_book.sphinx.agents import overview
from recipes import metadata
from recipes.sbom import bill_of_materials

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


def test_tables_are_described_with_their_checksums_columns_and_licences():
    described = json.loads((ROOT / "data/croissant.json").read_text(encoding="utf-8"))
    files = {entry["@id"]: entry for entry in described["distribution"]}
    population = files["population.csv"]
    digest = hashlib.sha256((ROOT / "data/population.csv").read_bytes()).hexdigest()
    assert population["sha256"] == digest
    assert "licence: CC0" in population["description"]
    assert not [name for name, entry in files.items() if "licence" not in entry["description"]]

    records = {entry["name"]: entry["field"] for entry in described["recordSet"]}
    types = {field["name"]: field["dataType"] for field in records["population.csv"]}
    assert (types["respondent_id"], types["accuracy"]) == ("sc:Text", "sc:Float")


@pytest.mark.skipif(not shutil.which("mlcroissant"), reason="mlcroissant is not installed")
def test_the_validator_of_croissant_accepts_the_description():
    command = ["mlcroissant", "validate", "--jsonld", str(ROOT / "data/croissant.json")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_each_member_has_a_card_with_its_accuracy():
    table = pd.read_csv(ROOT / "data/population.csv").set_index("respondent_id", drop=False)
    cards = {path.parent.name: path for path in (ROOT / "data/population").glob("*/README.md")}
    members = {path.parent.name for path in (ROOT / "data/population").glob("*/recipe.json")}
    assert cards.keys() == members
    for name, path in cards.items():
        row = table.loc[name]
        card = path.read_text(encoding="utf-8")
        pairs = f"cut after {row['layers']} layers, trained on {row['pairs']} pairs of "
        accuracy = f"{row['accuracy']:.3f} ({row['low']:.3f} to {row['high']:.3f})"
        assert all(fact in card for fact in (f"# {name}\n", pairs, accuracy))
        assert yaml.safe_load(card.split("---\n")[1])["license"] == "apache-2.0"


def test_llms_txt_names_every_command_every_function_and_the_pages_with_their_addresses():
    text = overview({"trust": "Should I trust this score?"}, "https://a.github.io/b/")
    assert "- [Should I trust this score?](https://a.github.io/b/trust.html)" in text
    functions = [name for name in pm.__all__ if inspect.isroutine(getattr(pm, name))]
    assert not [name for name in functions if f"- `pm.{name}(" not in text]
    commands = re.findall(r"^- `psychometrics ([\w -]+)`: (.*)$", text, re.MULTILINE)
    assert {"ask", "profile", "study run"} <= {name for name, _ in commands}
    assert all(purpose for _, purpose in commands)


def test_a_release_lists_every_installed_distribution_once_with_its_version():
    bill = bill_of_materials(metadata.read())
    versions = {entry["name"]: entry["version"] for entry in bill["components"]}
    assert versions["numpy"] == version("numpy")
    names = [entry["bom-ref"] for entry in bill["components"]]
    assert len(names) == len(set(names))


def test_each_licence_that_a_file_may_have_has_its_text():
    annotations = tomllib.loads((ROOT / "REUSE.toml").read_text(encoding="utf-8"))["annotations"]
    named = {one["SPDX-License-Identifier"] for one in annotations}
    assert named == {path.stem for path in (ROOT / "LICENSES").glob("*.txt")}
