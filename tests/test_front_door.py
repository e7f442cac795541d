"""What users rely on: names, dependencies, files, and that pages and notebooks are as promised."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import tomllib
from itertools import chain

import pytest
import yaml
from packaging.requirements import Requirement

import psychometrics as pm
from psychometrics.paths import book_dir, data_dir, notebooks_dir

ROOT = book_dir().parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
REQUIREMENTS = {*PROJECT["dependencies"], *chain(*PROJECT["optional-dependencies"].values())}


def test_every_name_of_the_front_door_is_a_function_or_a_room_and_is_listed():
    assert set(pm.__all__) <= set(dir(pm))
    for name in set(pm.__all__) - {"__version__"}:
        named = getattr(pm, name)
        assert inspect.isfunction(named) or inspect.ismodule(named), name
        assert named.__doc__, name


def test_versions_agree():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert pm.__version__ == PROJECT["version"] == citation["version"]


def test_every_dependency_is_pinned_with_hashes_to_a_version_that_pyproject_allows():
    text = (ROOT / "constraints.txt").read_text()
    pins = dict(re.findall(r"^(\S+)==(\S+) .*\\\n    --hash=sha256:", text, re.M))
    for requirement in map(Requirement, REQUIREMENTS):
        name = requirement.name.lower()
        if name == PROJECT["name"]:  # an extra that names others
            continue
        # neither the book nor its tests install it, and it wants older releases of other pins
        if name == "inspect-ai":
            continue

        assert "==" in str(requirement) or pins[name] in requirement.specifier, name


def test_workflows_install_nothing_without_the_hashes_of_constraints():
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values()
        steps = "\n".join(step.get("run", "") for job in jobs for step in job["steps"])
        for line in re.findall(r".*\bpip install\b.*", steps):
            pinned = {"-c constraints.txt", "--build-constraint constraints.txt"}
            assert "--require-hashes" in line or all(part in line for part in pinned), line


def test_a_package_of_an_extra_that_is_missing_is_named_with_the_extra():
    extras = ("book", "chat", "figures", "models", "onnx", "train")
    names = {
        Requirement(one).name for extra in extras for one in PROJECT["optional-dependencies"][extra]
    }
    folders = ROOT / "psychometrics", ROOT / "book" / "psychometrics_book"
    sources = [path.read_text("utf-8") for folder in folders for path in folder.rglob("*.py")]
    imported = set(re.findall(r"^\s*(?:from|import) (\w+)", "\n".join(sources), re.M))
    optional = {name.replace("-", "_") for name in names} & imported
    assert "papermill" in optional
    assert optional <= pm.exceptions.MissingPackageError.extras.keys()


def test_notebooks_are_without_outputs_and_have_one_parameters_cell():
    for path in sorted(notebooks_dir().glob("*.ipynb")):
        cells = json.loads(path.read_text())["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        assert not any(cell["outputs"] or cell["execution_count"] for cell in code), path.name
        tagged = [cell for cell in code if "parameters" in cell["metadata"].get("tags", [])]
        assert tagged == code[:1], path.name
        for line in "".join(tagged[0]["source"]).splitlines():
            assert "#" in line, f"{path.name}: explain the parameter in {line!r}"


def test_every_notebook_is_a_chapter_and_every_citation_has_an_entry():
    contents = (book_dir() / "_toc.yml").read_text()
    for path in notebooks_dir().glob("[0-9abr]*.ipynb"):  # the others are reports
        assert f"chapters/{path.stem}" in contents
    entries = set(re.findall(r"^@\w+{(\w+),", (book_dir() / "references.bib").read_text(), re.M))
    download = {pm.questionnaires.COMPASS}  # the one that is nothing else
    missing = set() if pm.data.available(*download) else download
    for name in sorted({*pm.questionnaire_names()} - missing):
        questionnaire = pm.load_questionnaire(name, texts=False)
        assert {questionnaire.citation, *(n.citation for n in questionnaire.norms)} <= entries


def test_names_that_notebooks_take_from_the_package_exist():
    for path in sorted(notebooks_dir().glob("*.ipynb")):
        cells = json.loads(path.read_text())["cells"]
        code = "\n".join("".join(one["source"]) for one in cells if one["cell_type"] == "code")
        for name in sorted(set(re.findall(r"\bpm((?:\.\w+)+)", code))):
            found = pm
            for part in name.split(".")[1:]:
                if found is pm or inspect.ismodule(found):
                    assert hasattr(found, part), f"{path.name}: pm{name}"
                    found = getattr(found, part)


def test_every_data_file_is_described():
    told = (data_dir() / "README.md").read_text()
    for path in data_dir().iterdir():
        assert path.name == "README.md" or path.name in told, path.name


def test_the_readme_names_files_that_exist():
    told = (ROOT / "README.md").read_text()
    names = re.findall(r"\]\((?!http)([^)]+)\)", told)
    names += re.findall(r"`([^`]+)`", " ".join(re.findall(r"^\| (`.*?`) \|", told, re.M)))
    for name in names:
        assert (ROOT / name).exists(), name


def test_a_name_that_moved_to_the_book_works_with_a_warning():
    with pytest.warns(DeprecationWarning, match="psychometrics_book.claims"):
        assert pm.claims is importlib.import_module("psychometrics_book.claims")
    with pytest.raises(AttributeError):
        _ = pm.no_such_name
