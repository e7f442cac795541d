"""A section of the book can be shared with a picture of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from PIL import Image

PAGE = """# A page

```{{share-card}} ten-runs-test
:title: the ten-runs test
:picture: {picture}
:alt: a "bell"
Ten runs are not ten people.
```

```{{figure}} bell.png
:name: fig-bell
A bell.
```
"""


def build(folder: Path, picture: str) -> str:
    """Build a book of one page, and return what Sphinx warns of."""
    extensions = ["myst_parser", "psychometrics_book.sphinx.cards"]
    (folder / "conf.py").write_text(
        f"extensions = {extensions}\nhtml_baseurl = 'https://example.org/'\n", encoding="utf-8"
    )
    (folder / "index.md").write_text(PAGE.format(picture=picture), encoding="utf-8")
    Image.new("L", (4, 4)).save(folder / "bell.png")
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", str(folder), str(folder / "out")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr


@pytest.mark.parametrize(
    ("picture", "address"),
    [("index#fig-bell", "_images/bell.png"), ("_static/bell.png", "_static/bell.png")],
)
def test_a_card_has_title_sentence_and_picture_and_leads_to_its_section(tmp_path, picture, address):
    build(tmp_path, picture)
    page = BeautifulSoup((tmp_path / "out" / "index.html").read_text("utf-8"), "html.parser")
    card = tmp_path / "out" / page.find("a", class_="share-card")["href"]
    head = BeautifulSoup(card.read_text("utf-8"), "html.parser").head
    values = {meta["property"]: meta["content"] for meta in head.find_all("meta", property=True)}
    assert values["og:title"] == "The ten-runs test"
    assert values["og:description"] == "Ten runs are not ten people."
    assert values["og:image"] == f"https://example.org/{address}"
    assert values["og:image:alt"] == 'a "bell"'
    target = head.find("meta", attrs={"http-equiv": "refresh"})["content"]
    assert target == "0; url=../../index.html#ten-runs-test"


def test_a_figure_that_a_page_does_not_have_is_warned_of(tmp_path):
    assert "no figure fig-curve" in build(tmp_path, "index#fig-curve")
