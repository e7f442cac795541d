"""Pages for people who carry on: the house as drawn, the guide followed, no place forgotten."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pandas as pd
import pytest
import yaml
from bs4 import BeautifulSoup

from psychometrics.modes import MODES
from psychometrics.paths import book_dir, data_dir, notebooks_dir, questionnaires_dir
from psychometrics_book.parameters import CHAPTERS
from psychometrics_book.sphinx import house, pages
from tests.killing import build_book

ROOT = book_dir().parent


@pytest.fixture
def package(tmp_path) -> Path:
    """A package of four rooms: the command, asking, modes and errors."""
    files = {
        "__init__.py": "",
        "__init__.pyi": "from .asking import ask\n",
        "cli.py": '"""The command."""\nimport psychometrics as pm\npm.ask()\n',
        "asking/__init__.py": '"""How models are asked.\n\nMore."""\n',
        "asking/ask.py": "def ask():\n    from ..modes import one\n",
        "modes.py": "from .errors import Wrong\n",
        "errors.py": "class Wrong(Exception): pass\n",
    }
    for name, text in files.items():
        path = tmp_path / "psychometrics" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return tmp_path / "psychometrics"


def test_the_house_is_drawn_from_imports_in_functions_and_through_lazy_names_too(package):
    rooms = house.rooms(package)
    assert {name: room.imports for name, room in rooms.items()} == {
        "asking": {"modes"},
        "cli": {"asking"},
        "errors": set(),
        "modes": {"errors"},
    }
    assert rooms["asking"].purpose == "How models are asked."


def test_floors_follow_imports_and_arrows_lead_only_to_the_rooms_needed_directly(package):
    rooms = house.rooms(package)
    assert house.floors(rooms) == [["errors"], ["modes"], ["asking"], ["cli"]]
    rooms["cli"].imports.add("errors")
    drawn = house.picture(rooms)
    assert drawn.count("<rect") == 4
    assert drawn.count("<path") == 3


def test_a_box_is_within_the_picture_and_its_text_readable_on_a_phone():
    drawn = house.picture(house.rooms())
    width = float(re.search(r'viewBox="0 0 (\d+)', drawn)[1])
    boxes = re.findall(r'<rect x="([-\d.]+)" y="[\d.]+" width="([\d.]+)"', drawn)
    assert boxes
    assert all(float(x) >= 0 and float(x) + float(w) <= width for x, w in boxes)
    sizes = {float(size) for size in re.findall(r"font:(\d+)px", drawn)}
    assert min(sizes) * 350 / width >= 10


def _chapters() -> list[Path]:
    return sorted(notebooks_dir().glob("[0-9]*.ipynb"))


def _prose(path: Path) -> str:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def test_a_chapter_has_every_place_that_the_guide_names():
    texts = {
        name: (book_dir() / f"{name}.md").read_text(encoding="utf-8")
        for name in ("index", "teaching")
    }
    contents = (book_dir() / "_toc.yml").read_text(encoding="utf-8")
    exercises = pd.read_csv(data_dir() / "exercises.csv", dtype=str)
    expectations = pd.read_csv(data_dir() / "expectations.csv", dtype=str)
    missing = []
    for path in _chapters():
        name = path.stem
        checks = set(re.findall(r"\{check\} (\S+)", _prose(path)))
        answered = set(exercises.loc[exercises["chapter"] == name, "exercise"])
        places = {
            "its parameters in book/psychometrics_book/parameters.py": name in CHAPTERS,
            "its line in book/_toc.yml": f"chapters/{name}" in contents,
            "its card in book/index.md": f":link: chapters/{name}" in texts["index"],
            "its row in book/teaching.md": f"(chapters/{name}.ipynb)" in texts["teaching"],
            "its lecture plan": "} For teachers: a lecture of 90 minutes\n" in _prose(path),
            "its sentences in data/expectations.csv": name in set(expectations["chapter"]),
            "its tables in data/tables (make tables)": (data_dir() / "tables" / name).is_dir(),
            f"answers of {sorted(checks - answered)} in data/exercises.csv": checks <= answered,
            f"fields for {sorted(answered - checks)} of data/exercises.csv": answered <= checks,
        }
        missing += [f"{name} lacks {what}" for what, there in places.items() if not there]

    assert missing == []


def test_a_questionnaire_has_its_row_in_the_readme():
    told = (questionnaires_dir() / "README.md").read_text(encoding="utf-8")
    patterns = re.findall(r"`([\w*]+\.yaml)`", told)
    files = sorted(questionnaires_dir().glob("*.yaml"))
    missing = [path.name for path in files if not any(path.match(one) for one in patterns)]
    assert missing == [], "add a row to questionnaires/README.md"


def test_a_mode_has_its_entry_in_the_reference_and_a_test():
    reference = (book_dir() / "reference" / "respondents.md").read_text(encoding="utf-8")
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").glob("*.py"))
    missing = []
    for mode, place in MODES.items():
        module = f"psychometrics.modes.{place.partition('.')[0]}"
        if f"automodule:: {module}\n" not in reference:
            missing.append(f"{mode}: {module} in book/reference/respondents.md")
        if f'"{mode}"' not in tests:
            missing.append(f"{mode}: a test in tests/")

    assert missing == []


def test_a_mode_made_by_the_guide_answers_and_passes_the_linter(tmp_path):
    page = (book_dir() / "adding.md").read_text(encoding="utf-8")
    code, entry = (
        "\n".join(line.removeprefix("   ") for line in block.splitlines()) + "\n"
        for block in re.findall(r"^   ```(?:py|toml)\n(.*?)^   ```$", page, re.M | re.S)
    )
    command = re.search(r"`(psychometrics scores [^`]* constant [^`]*)`", page)[1]

    (tmp_path / "my_modes").mkdir()
    (tmp_path / "my_modes" / "constant.py").write_text(code)
    ruff = [sys.executable, "-m", "ruff"]
    for check in (["check"], ["format", "--check"]):
        options = ["--no-cache", "--config", ROOT / "pyproject.toml", tmp_path]
        subprocess.run([*ruff, *check, *options], check=True)

    # what an installation leaves of the package's pyproject.toml
    installed = tmp_path / "my_modes-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: my_modes\nVersion: 1.0\n")
    (group, modes), *others = tomllib.loads(entry)["project"]["entry-points"].items()
    assert others == []
    lines = [f"[{group}]", *(f"{name} = {place}" for name, place in modes.items())]
    (installed / "entry_points.txt").write_text("\n".join(lines))

    start = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); "
    start += "from psychometrics.cli import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", start, *command.split()[1:], "--json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert not result.returncode, result.stderr
    scores = pd.DataFrame(json.loads(result.stdout))
    assert set(scores["respondent_id"]) == {"constant-1"}
    # Two plain and two reversed items: (1 + 1 + 5 + 5) / 4.
    assert scores.set_index("scale").loc["extraversion", "score"] == 3


def test_a_published_book_has_canonical_addresses_and_a_sitemap_of_all_pages(tmp_path):
    config = SimpleNamespace(
        book_repository="noether/book", book_version="stable", html_theme_options={}
    )
    pages._say(None, config)
    assert config.html_baseurl == "https://noether.github.io/book/"
    app = SimpleNamespace(
        config=config,
        builder=SimpleNamespace(name="html"),
        env=SimpleNamespace(found_docs={"index", "chapters/01-first-score"}),
        outdir=tmp_path,
    )
    pages._sitemap(app, None)
    urls = ElementTree.fromstring((tmp_path / "sitemap.xml").read_bytes())
    assert [url[0].text for url in urls] == [
        "https://noether.github.io/book/chapters/01-first-score.html",
        "https://noether.github.io/book/index.html",
    ]


def _published(folder: Path, version: str) -> dict[str, str]:
    """Build a book of two pages as the workflow does; return the links of its menu of versions."""
    for name in ("index", "one"):
        (folder / f"{name}.md").write_text(f"# Page {name}\n", encoding="utf-8")
    (folder / "_toc.yml").write_text("format: jb-book\nroot: index\nchapters:\n- file: one\n")
    for name in ("_config.yml", "_static", "references.bib"):
        source = book_dir() / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, folder / name)
    status, printed = build_book(folder, GITHUB_REPOSITORY="noether/book", BOOK_VERSION=version)
    assert status == 0, printed

    page = BeautifulSoup((folder / "_build/html/one.html").read_bytes(), "html.parser")
    assert f", {version}. Text" in page.get_text()
    menu = page.select_one(".dropdown-version-buttons")
    return {link.get_text(strip=True): link["href"] for link in menu.select("a")}


def test_a_published_page_leads_to_itself_in_the_other_version_and_to_the_printed_book(tmp_path):
    home = "https://noether.github.io/book/"
    assert _published(tmp_path, "development") == {
        "stable": f"{home}one.html",
        "development (shown here)": f"{home}dev/one.html",
        "PDF": f"{home}dev/book.pdf",
    }


def test_the_workflow_keeps_each_version_in_its_folder(tmp_path):
    """A commit replaces dev/ alone, a release all else; before a release, both are the commit."""
    workflow = yaml.safe_load((ROOT / ".github/workflows/publish.yml").read_text(encoding="utf-8"))
    steps = {step["name"]: step for step in workflow["jobs"]["publish"]["steps"] if "name" in step}
    script = steps["Lay out both versions"]["run"]
    for version, text in [("development", "1"), ("stable", "2"), ("development", "3")]:
        (tmp_path / "html").mkdir()
        (tmp_path / "html" / "index.html").write_text(text)
        environment = os.environ | {"BOOK_VERSION": version}
        subprocess.run(["bash", "-ec", script], check=True, cwd=tmp_path, env=environment)
        shutil.rmtree(tmp_path / "html")
        shown = [
            (tmp_path / "site" / name).read_text() for name in ("index.html", "dev/index.html")
        ]
        assert shown == {"1": ["1", "1"], "2": ["2", "1"], "3": ["2", "3"]}[text]
        waits = (tmp_path / "site" / "before-release").exists()
        assert waits == (text == "1"), "the first release takes the place of the commits"


def test_the_first_cell_on_colab_installs_what_chapters_import():
    source = pages.install_cell("noether/book")["source"]
    assert "[book] @ git+https://github.com/noether/book'" in source
