"""Slides of a chapter: one HTML file, from its executed notebook, for a room without a network.

Each section gives a slide with its first paragraph and its numbered formulas, each figure and each
table with a caption one of its own, the exercises one each, without solutions. What the section
says beyond that are the notes.
"""

from __future__ import annotations

import ast
import base64
import json
import re
from html import escape
from pathlib import Path

from ..exceptions import ParameterError
from ..paths import book_dir

_HEAD = ("chapter-head", "chapter-foot")
_LEFT_OUT = {"remove-cell", "remove-output", "hide-cell", "hide-output"}
_FENCE = re.compile(r"^(`{3,}|:{3,})\{([\w-]+)\}[ \t]*(.*)\n((?:.*\n)*?)\1[ \t]*$", re.M)
_PARTS = re.compile(r"\$\$(.+?)\$\$(?:[ \t]*\([\w-]+\))?|\$([^$\n]+?)\$", re.S)
_HELD = re.compile("\x02(\\d+)\x03")


def make_slides(chapter: str, output: str | Path | None = None) -> Path:
    """Write the slides of a chapter.

    Parameters
    ----------
    chapter : str
        Its name, such as ``"03-assessment"``, where the book was built, or an executed notebook's
        path.
    output : str or Path, optional
        The HTML file; by default ``<chapter>-slides.html`` in this folder.

    Returns
    -------
    Path
        The file. Arrow keys, the space bar, Home and End turn the slides, ``n`` shows the notes;
        printed, each slide is a page.

    Raises
    ------
    ParameterError
        The chapter was not executed, or the file cannot be written.

    Examples
    --------
    >>> make_slides("a-chapter-that-was-not-run")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: a-chapter-that-was-not-run was not executed: ...
    """
    path = Path(chapter)
    if path.suffix != ".ipynb":
        path = book_dir() / "chapters" / f"{chapter}.ipynb"
    if not path.is_file():
        raise ParameterError(
            f"{chapter} was not executed: run `psychometrics book`, or name the copy that "
            f"`psychometrics run` wrote, such as runs/{path.name}."
        )
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    slides = _slides(cells, _values(cells))
    output = Path(output) if output is not None else Path(f"{path.stem}-slides.html")
    title = re.sub("<[^>]+>", "", slides[0]["title"]) if slides else path.stem
    try:
        output.write_text(_page(title, slides), encoding="utf-8")
    except OSError as error:
        raise ParameterError(f"{output} cannot be written ({error.strerror}).") from None
    return output


def _values(cells: list[dict]) -> dict[str, object]:
    """What the cells glued, by name."""
    found = {}
    for output in (output for cell in cells for output in cell.get("outputs", [])):
        name = output.get("metadata", {}).get("scrapbook", {}).get("name")
        if name:
            text = "".join(output["data"]["application/papermill.record/text/plain"])
            found[name] = float("nan") if text == "nan" else ast.literal_eval(text)
    return found


def _slides(cells: list[dict], values: dict[str, object]) -> list[dict]:
    """Dicts with ``title``, ``body`` and ``notes``, each HTML."""
    slides, title = [], ""
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            slides += [{"title": title, "notes": "", **one} for one in _shown(cell, values)]
            continue
        if cell["cell_type"] != "markdown":
            continue
        for heading, text in _sections(source):
            if heading:
                title = _html(heading, values, inline=True)
            first, notes, own = _split(text, values)
            if heading and first:
                slides.append({"title": title, "body": first, "notes": notes})
            elif slides:
                slides[-1]["notes"] += first + notes
            slides += [{"title": title, "notes": "", **one} for one in own]
    return slides


def _sections(source: str) -> list[tuple[str, str]]:
    """Headings of a cell with what stands below each; the first may have none."""
    parts = re.split(r"^#{1,4} +(.+)$", f"\n{source}", flags=re.M)
    pairs = zip(["", *parts[1::2]], parts[::2], strict=True)
    return [(heading.strip(), text) for heading, text in pairs if heading or text.strip()]


def _split(text: str, values: dict) -> tuple[str, str, list[dict]]:
    """First paragraph with the numbered formulas, the rest, and boxes and exercises as slides."""
    own = []

    def box(match: re.Match) -> str:
        kind, argument, inside = match[2], match[3], f"{match[4]}"
        options = dict(re.findall(r"^:(\w+): *(.*)$", inside, re.M))
        inside = re.sub(r"^:\w+:.*\n", "", inside, flags=re.M)
        inside = _FENCE.sub("", inside)  # a form to check an answer
        if kind == "exercise":
            name = f"Exercise: {argument}" if argument else "Exercise"
            own.append({"title": name, "body": _html(inside, values)})
        elif any(name in options.get("class", "") for name in _HEAD):
            own.append({"title": escape(argument), "body": _html(inside, values)})
        return ""

    text = _FENCE.sub(box, text + "\n")
    text = re.sub(r"^\([\w-]+\)=\n", "", text, flags=re.M)
    blocks = [block for block in re.split(r"\n\s*\n", text) if block.strip()]
    formulas = [block for block in blocks[1:] if block.strip().startswith("$$")]
    rest = [block for block in blocks[1:] if block not in formulas]
    first = _html("\n\n".join([*blocks[:1], *formulas]), values)
    return first, _html("\n\n".join(rest), values), own


def _shown(cell: dict, values: dict) -> list[dict]:
    """Slides of a cell's captioned figure or table."""
    about = cell.get("metadata", {})
    figure, table = about.get("mystnb", {}).get("figure"), about.get("table")
    if _LEFT_OUT & set(about.get("tags", [])) or not (figure or table):
        return []
    caption = _html((figure or table)["caption"], values, inline=True)
    found = []
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        if figure and "image/png" in data:
            picture = "".join(data["image/png"]).replace("\n", "")
            image = about["mystnb"].get("image", {})
            alternative = escape(image.get("alt", re.sub("<[^>]+>", "", caption)))
            shown = f'<img src="data:image/png;base64,{picture}" alt="{alternative}">'
        elif figure and "image/svg+xml" in data:
            drawing = base64.b64encode("".join(data["image/svg+xml"]).encode()).decode()
            shown = f'<img src="data:image/svg+xml;base64,{drawing}" alt="">'
        elif table and "<table" in "".join(data.get("text/html", "")):
            shown = f'<div class="table">{"".join(data["text/html"])}</div>'
        else:
            continue
        found.append({"body": f"<figure>{shown}<figcaption>{caption}</figcaption></figure>"})
    return found


def _html(text: str, values: dict, inline: bool = False) -> str:
    """HTML of a chapter's Markdown; formulas as MathML, which needs no script."""
    from latex2mathml.converter import convert
    from markdown_it import MarkdownIt

    held = []

    def hold(match: re.Match) -> str:
        way = "block" if match[1] else "inline"
        held.append(convert((match[1] or match[2]).strip(), display=way))
        return f"\x02{len(held) - 1}\x03"

    text = _roles(_PARTS.sub(hold, text), values)
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    html = markdown.renderInline(text.strip()) if inline else markdown.render(text)
    html = re.sub(r"</?a\b[^>]*>", "", html)  # links lead nowhere from a slide
    return _HELD.sub(lambda match: held[int(match[1])], html)


def _roles(text: str, values: dict) -> str:
    """The book's roles as the words that a reader sees."""

    def role(match: re.Match) -> str:
        name, inside = match[1], match[2]
        if name == "glue:text":
            key, _, digits = inside.partition(":")
            value = values.get(key, "?")
            return format(value, digits) if digits and value != "?" else str(value)
        if name.startswith("cite"):
            cited = [re.sub(r"^([a-z-]+?)(\d{4}).*", _author, key) for key in inside.split(",")]
            said = " and ".join(cited)
            return said.replace(",", "") if name == "cite:t" else f"({said})"
        if name in ("numref", "ref", "eq", "doc"):
            kinds = {"fig": "the figure", "tab": "the table", "eq-": "the formula"}
            return next(
                (said for start, said in kinds.items() if inside.startswith(start)), "above"
            )
        return inside.partition("<")[0].strip().lstrip("~")

    text = re.sub(r"\{([\w:]+)\}`([^`]+)`", role, text)
    return re.sub(r"\[\]\(([^)]+)\)", lambda m: f"*{Path(m[1]).stem}*", text)


def _author(match: re.Match) -> str:
    return f"{match[1].capitalize()}, {match[2]}"


def _page(title: str, slides: list[dict]) -> str:
    shown = "\n".join(
        f'<section aria-label="Slide {number} of {len(slides)}">\n<h2>{slide["title"]}</h2>\n'
        f'<div class="body">{slide["body"]}</div>\n'
        + (f'<aside class="notes">{slide["notes"]}</aside>\n' if slide["notes"] else "")
        + "</section>"
        for number, slide in enumerate(slides, 1)
    )
    return _PAGE.replace("{title}", escape(title)).replace("{slides}", shown)


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body { background: #fff; color: #1b1f24; font: 1.35rem/1.45 system-ui, sans-serif; margin: 0; }
section { box-sizing: border-box; margin: 0 auto; max-width: 62rem; padding: 1.5rem; }
h2 { border-bottom: 3px solid #0072b2; font-size: 1.9rem; line-height: 1.2; margin: 0 0 1rem; }
figure { margin: 0; text-align: center; }
figure img { max-height: 66vh; max-width: 100%; }
figcaption { font-size: 1.05rem; margin-top: 0.5rem; text-align: left; }
table { border-collapse: collapse; font-size: 1.1rem; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid #c8ccd1; padding: 0.15rem 0.6rem; text-align: left; }
.table { max-height: 66vh; overflow: auto; text-align: left; }
.body { overflow-x: auto; }
.notes { border-left: 4px solid #c8ccd1; color: #444c56; font-size: 1rem; padding-left: 1rem; }
nav { background: #fff; bottom: 0; display: none; gap: 0.75rem; padding: 0.5rem 1rem;
      position: fixed; right: 0; font-size: 1rem; align-items: center; }
nav button { font: inherit; padding: 0.2rem 0.8rem; }
.deck nav { display: flex; }
.deck section { display: none; min-height: 100vh; padding-bottom: 4rem; }
.deck section.now { display: block; }
.deck:not(.noted) .notes { display: none; }
@media print {
  nav, .notes { display: none !important; }
  .deck section, section { break-after: page; display: block; min-height: 0; }
  .table, figure img { max-height: none; overflow: visible; }
}
</style>
</head>
<body>
<main>
{slides}
</main>
<nav aria-label="Slides">
<button type="button" data-step="-1">Back</button>
<span id="place" role="status" aria-live="polite"></span>
<button type="button" data-step="1">Next</button>
<button type="button" id="notes" aria-pressed="false">Notes (n)</button>
</nav>
<script>
(function () {
  "use strict";
  const slides = Array.from(document.querySelectorAll("section"));
  let now = Math.max(0, Math.min(slides.length, Number(location.hash.slice(1)) || 1) - 1);
  const notes = document.getElementById("notes");
  function show(number) {
    now = Math.max(0, Math.min(slides.length - 1, number));
    slides.forEach((slide, i) => slide.classList.toggle("now", i === now));
    document.getElementById("place").textContent = now + 1 + " of " + slides.length;
    history.replaceState(null, "", "#" + (now + 1));
    window.scrollTo(0, 0);
  }
  function note() {
    const noted = document.body.classList.toggle("noted");
    notes.setAttribute("aria-pressed", String(noted));
  }
  document.querySelectorAll("[data-step]").forEach((button) =>
    button.addEventListener("click", () => show(now + Number(button.dataset.step))),
  );
  notes.addEventListener("click", note);
  document.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const onButton = event.target.tagName === "BUTTON";
    const moves = { ArrowRight: now + 1, ArrowLeft: now - 1, PageDown: now + 1, PageUp: now - 1,
                    Home: 0, End: slides.length - 1 };
    if (!onButton) moves[" "] = now + 1;
    if (event.key in moves) {
      event.preventDefault();
      show(moves[event.key]);
    } else if (event.key === "n") note();
  });
  document.body.classList.add("deck");
  show(now);
})();
</script>
</body>
</html>
"""
