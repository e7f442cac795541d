"""Show a store's last runs in the browser: their answers, their verdicts and their pages.

The server changes nothing, listens on 127.0.0.1 alone, and answers only at an address that contains
a secret and names this machine. No script runs on its pages, and what a model wrote is text.
"""

from __future__ import annotations

import json
import re
import secrets
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from operator import itemgetter
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit
from xml.etree.ElementTree import Element, tostring

import pandas as pd
import pyarrow as pa
from pydantic import AliasPath, BaseModel, Field, ValidationError

from ..exceptions import PsychometricsError
from ..modes import mode_names
from ..questionnaires import load_questionnaire
from ..store import key_of
from ..store.folder import Folder, folders

_HOST = "127.0.0.1"
_PAGE = Template((Path(__file__).parent / "templates" / "viewer.html").read_text("utf-8"))
_SHOWN_RUNS = 200
_SHOWN_ANSWERS = 100
_LONG_TEXT = 600
_HEADS = ["questionnaire", "verdict", "respondent", "mode", "last (UTC)", "answers or replies"]
_BOOKKEEPING = ("key", "written", "seconds", "manifest")
_MARKS = {"✗": "bad", "!": "unsure", "–": "unsure", "✓": "good"}  # from the worst on
# Pages load nothing and execute nothing, even if a model's reply looks like HTML.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; sandbox allow-forms"
)


class _Report(BaseModel):
    """The part of a page's JSON file that the list of runs shows."""

    kind: str
    title: str
    about: str = ""
    rows: list[dict[str, str | float | None]] = Field(validation_alias=AliasPath("results", "rows"))


@dataclass(frozen=True)
class Run:
    """The answers of one respondent to one questionnaire under the same conditions.

    Parameters
    ----------
    folder : Folder
    text : str
        The manifest, as it is stored.
    answers : int
    last : datetime
        Time at which the last answer was stored (UTC).
    """

    folder: Folder
    text: str
    answers: int
    last: datetime

    @property
    def name(self) -> str:
        """A hash that identifies the run in addresses."""
        return key_of(self.folder.path, self.text)

    @property
    def manifest(self) -> dict[str, Any]:
        """The respondent and the conditions."""
        return {name: value for name, value in json.loads(self.text).items() if value is not None}

    @property
    def title(self) -> str:
        """The questionnaire's title, or its id if its file is elsewhere."""
        name = str(self.manifest["questionnaire"])
        more = ", controls" if name != self.questionnaire else ""
        try:
            return f"{load_questionnaire(self.questionnaire, texts=False).short_title}{more}"
        except PsychometricsError:
            return name

    @property
    def questionnaire(self) -> str:
        """The id of the questionnaire to which the questions, or the controls, belong."""
        return str(self.manifest["questionnaire"]).removesuffix("_controls")


class Viewer(ThreadingHTTPServer):
    """A server of pages about a store's runs, for this machine alone.

    Parameters
    ----------
    store : str or Path, optional
        Folder or URL; by default ``PSYCHOMETRICS_STORE``, or else the user's cache.
    folder : str or Path
        Folder with the pages of ``profile`` and ``compare``. Verdicts come from the JSON file of
        the same name beside each page.
    port : int
        Port to listen on; 0 takes a free one.

    Attributes
    ----------
    url : str
        The address of the list of runs, with its secret.

    Raises
    ------
    StoreError
        The store cannot be read.

    Examples
    --------
    >>> with Viewer("memory://view") as viewer:
    ...     viewer.runs()
    []
    """

    daemon_threads = True

    def __init__(
        self, store: str | Path | None = None, folder: str | Path = ".", port: int = 0
    ) -> None:
        self._store = store
        self._pages = Path(folder)
        self._runs: dict[str, tuple[list[str], list[Run]]] = {}
        self.runs()  # a store that cannot be read is reported before the browser opens
        super().__init__((_HOST, port), _Handler)
        self.secret = secrets.token_urlsafe(16)
        self.url = f"http://{_HOST}:{self.server_port}/{self.secret}/"

    def runs(self) -> list[Run]:
        """Return the runs in the store, the last one first."""
        listed = {}
        for folder in folders(self._store, read_only=True):
            names = [file.base_name for file in folder.files()]
            earlier_names, runs = self._runs.get(folder.path, ([], []))
            if names != earlier_names:
                runs = []
                by_manifest = _read_rows(folder, _BOOKKEEPING).groupby("manifest", sort=False)
                for text, rows in by_manifest:
                    last = datetime.fromtimestamp(rows["written"].max() / 1e9, UTC)
                    runs.append(Run(folder, str(text), len(rows), last))

            listed[folder.path] = names, runs

        self._runs = listed
        all_runs = [run for _, runs in listed.values() for run in runs]
        return sorted(all_runs, key=lambda run: run.last, reverse=True)

    def reports(self) -> dict[Path, _Report]:
        """Return what is known about the pages in the folder, the last one first."""
        pages = sorted(self._pages.glob("*.html"), key=lambda path: path.stat().st_mtime)
        reports = {}
        for page in reversed(pages):
            try:
                reports[page] = _Report.model_validate_json(page.with_suffix(".json").read_bytes())
            except (OSError, ValidationError):  # the page of another program
                continue
        return reports


class _Handler(BaseHTTPRequestHandler):
    """Answers GET requests; the base class refuses other methods."""

    server: Viewer

    def log_message(self, *_: object) -> None:
        """Print nothing, because addresses contain the secret."""

    def do_GET(self) -> None:
        """Send a page, or refuse a request that another site may have caused."""
        # A site whose name was made to point at this machine still names itself as the host.
        hosts = [f"{name}:{self.server.server_port}" for name in (_HOST, "localhost")]
        address = urlsplit(self.path)
        _, secret, page = f"{address.path}//".split("/")[:3]
        is_ours = self.headers.get("Host") in hosts
        if not is_ours or not secrets.compare_digest(secret.encode(), self.server.secret.encode()):
            self._send(HTTPStatus.FORBIDDEN, "Open the address that was printed.")
            return

        query = {name: values[-1] for name, values in parse_qs(address.query).items()}
        try:
            self._answer(page, query)
        except PsychometricsError as error:
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, "The store", _tag("p", str(error)))

    def _answer(self, page: str, query: dict[str, str]) -> None:
        """Send the page at an address; files and runs are looked up in lists, never opened."""
        runs = self.server.runs()
        reports = self.server.reports()
        run = next((run for run in runs if run.name == query.get("run")), None)
        report = next((path for path in reports if path.name == query.get("name")), None)
        if page == "":
            self._send(HTTPStatus.OK, "Runs", *_list_runs(runs, reports, query))
        elif page == "answers" and run is not None:
            title = f"{run.title}, {run.manifest['respondent_id']}"
            self._send(HTTPStatus.OK, title, *_list_answers(run, reports, query))
        elif page == "page" and report is not None:
            self._send_bytes(HTTPStatus.OK, report.read_bytes())
        else:
            self._send(HTTPStatus.NOT_FOUND, "There is no such page", _tag("a", "Runs", href="./"))

    def _send(self, status: HTTPStatus, title: str, *elements: Element) -> None:
        body = [tostring(element, encoding="unicode", method="html") for element in elements]
        page = _PAGE.substitute(title=escape(title), body="\n".join(body))
        self._send_bytes(status, page.encode("utf-8", "replace"))

    def _send_bytes(self, status: HTTPStatus, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Security-Policy", _POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(content)


def _read_rows(folder: Folder, columns: tuple[str, ...] = ()) -> pd.DataFrame:
    """Return the stored rows of a folder, with some columns or all."""
    tables = folder.read_new(set(), pa.schema([]), lambda name: not columns or name in columns)
    if not tables:
        return pd.DataFrame(columns=list(_BOOKKEEPING))
    rows = pa.concat_tables(tables, promote_options="permissive").to_pandas()
    return rows.sort_values("written", kind="stable").drop_duplicates("key")


def _find_report(run: Run, reports: dict[Path, _Report]) -> tuple[Path | None, Element]:
    """Return the last page about a run, if there is one, and the run's verdict on it."""
    manifest = run.manifest
    for page, report in reports.items():
        mode = re.match(r"mode (\w+)", report.about)
        if mode is not None and mode[1] != manifest["mode"]:
            continue

        scores = [
            row
            for row in report.rows
            if row.get("questionnaire") == run.questionnaire
            and (row.get("model") or report.title) == manifest["respondent_id"]
            and row.get("mark") in _MARKS
        ]
        if scores:
            return page, _link_verdict(page, scores)

    return None, _tag("span", "not judged")


def _link_verdict(page: Path, rows: list[dict[str, str | float | None]]) -> Element:
    """Return the worst verdict of some scores, as a link to their page."""
    order = list(_MARKS)
    marked = [(str(row["mark"]), row.get("verdict")) for row in rows if row.get("mark") in _MARKS]
    verdicts = [(order.index(mark), f"{mark} {verdict}") for mark, verdict in marked]
    link = "page?" + urlencode({"name": page.name})
    if not verdicts:
        return _tag("a", "see the page", href=link)

    place, words = min(verdicts)
    return _tag("a", words, href=link, class_=_MARKS[order[place]])


def _list_entries(
    runs: list[Run], reports: dict[Path, _Report]
) -> Iterator[tuple[datetime, str, list[Element | str]]]:
    """Yield the time, the text to search and the cells of runs, and of pages without a run."""
    alone = dict(reports)
    for run in runs:
        page, verdict = _find_report(run, reports)
        if page is not None:
            alone.pop(page, None)

        who, mode = (str(run.manifest[name]) for name in ("respondent_id", "mode"))
        text = [run.title, str(run.manifest["questionnaire"]), who, str(verdict.text)]
        link = _tag("a", run.title, href="answers?" + urlencode({"run": run.name}))
        last = f"{run.last:%Y-%m-%d %H:%M}"
        cells: list[Element | str] = [link, verdict, who, mode, last, f"{run.answers:,}"]
        yield run.last, " ".join(text), cells

    for page, report in alone.items():
        titles = list(dict.fromkeys(str(r["about"]) for r in report.rows if r.get("about")))
        verdict = _link_verdict(page, report.rows)
        title = ", ".join(titles) or report.title
        link = _tag("a", title, href="page?" + urlencode({"name": page.name}))
        written = datetime.fromtimestamp(page.stat().st_mtime, UTC)
        mode = f"page: {report.kind}"
        who = report.title if titles else ""
        cells = [link, verdict, who, mode, f"{written:%Y-%m-%d %H:%M}", ""]
        yield written, " ".join([title, report.title, mode, str(verdict.text)]), cells


def _list_runs(
    runs: list[Run], reports: dict[Path, _Report], query: dict[str, str]
) -> list[Element]:
    """Return the list of runs and pages, searched and filtered as a query says."""
    words = query.get("q", "").casefold().split()
    entries = sorted(_list_entries(runs, reports), key=itemgetter(0), reverse=True)
    mode_place = _HEADS.index("mode")
    rows = [
        cells
        for _, text, cells in entries
        if all(word in text.casefold() for word in words)
        and query.get("mode", cells[mode_place]) == cells[mode_place]
    ]

    search = _tag("input", name="q", type="search", value=query.get("q", ""))
    modes = _tag("select", _tag("option", "all modes", value=""), name="mode")
    for mode in sorted({str(cells[mode_place]) for *_, cells in entries}):
        chosen = {"selected": ""} if query.get("mode") == mode else {}
        modes.append(_tag("option", mode, **chosen))

    label = _tag("label", "Questionnaire, respondent or verdict", search, class_="search")
    form = _tag("form", label, _tag("label", "Mode", modes), _tag("button", "Search"), action="./")
    count = f"{len(rows)} of {len(entries)} runs and pages, the last one first"
    if len(rows) > _SHOWN_RUNS:
        count += f"; {_SHOWN_RUNS} are listed, and a search narrows the list"

    return [form, _tag("p", f"{count}.", class_="note"), _table(_HEADS, rows[:_SHOWN_RUNS])]


def _list_answers(run: Run, reports: dict[Path, _Report], query: dict[str, str]) -> list[Element]:
    """Return the page about a run: its verdict, its conditions and a part of its answers."""
    rows = _read_rows(run.folder)
    rows = rows[rows["manifest"] == run.text].drop(columns=list(_BOOKKEEPING))
    rows = rows.dropna(axis=1, how="all")
    rows = rows[sorted(rows, key="request".__eq__)]  # which is long, at the end
    start = int(query["start"]) if query.get("start", "").isdecimal() else 0
    page_rows = rows.iloc[start : start + _SHOWN_ANSWERS].astype(object)
    page_rows = page_rows.where(page_rows.notna(), "")

    facts = _tag("dl")
    for name, value in run.manifest.items():
        facts.extend([_tag("dt", name), _tag("dd", str(value))])
    facts = _tag("details", _tag("summary", "How it was asked"), facts)

    _, verdict = _find_report(run, reports)
    manifest = run.manifest
    if verdict.tag == "span" and manifest["mode"] in mode_names():
        model = manifest["respondent_id"]
        model = f"FOLDER/{model}" if manifest.get("source") == "local" else model
        words = ["psychometrics", "profile", model, "--mode", manifest["mode"]]
        words += ["--questionnaires", run.questionnaire]
        verdict.text = "Not judged yet. To judge it (with its conditions as -c name=value): "
        verdict.append(_tag("code", shlex.join(map(str, words))))

    pages = _tag("nav", _tag("a", "All runs", href="./"))
    for label, place in (("Earlier", start - _SHOWN_ANSWERS), ("Later", start + _SHOWN_ANSWERS)):
        if 0 <= place < len(rows):
            link = "answers?" + urlencode({"run": run.name, "start": place})
            pages.append(_tag("a", label, href=link))

    cells = []
    for values in page_rows.itertuples(index=False):
        texts = [f"{value:.4g}" if isinstance(value, float) else str(value) for value in values]
        cells.append([_fold(text) for text in texts])

    count = f"Answers {start + 1} to {start + len(page_rows)} of {len(rows)}."
    note = _tag("p", count, class_="note")
    return [pages, _tag("p", verdict), facts, note, _table(list(rows), cells)]


def _fold(text: str) -> Element | str:
    """Fold a long text."""
    if len(text) <= _LONG_TEXT:
        return text
    return _tag("details", _tag("summary", f"{text[:80]} …"), _tag("div", text))


def _table(heads: list[str], rows: list[list[Element | str]]) -> Element:
    """Return a table, whose rows are cards on a narrow screen."""
    body = _tag("tbody")
    for row in rows:
        cells = [
            _tag("td", cell, **{"data-head": head, "class": head})
            for head, cell in zip(heads, row, strict=True)
        ]
        body.append(_tag("tr", *cells))
    return _tag("table", _tag("thead", _tag("tr", *(_tag("th", head) for head in heads))), body)


def _tag(name: str, /, *children: Element | str, **attributes: str) -> Element:
    """Return an HTML element; texts are escaped when it is written."""
    element = Element(name, {key.rstrip("_"): value for key, value in attributes.items()})
    for child in children:
        if isinstance(child, Element):
            element.append(child)
        else:
            element.text = child
    return element
