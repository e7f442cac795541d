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
from pathlib import Path
from string import Template
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit
from xml.etree.ElementTree import Element, tostring

import pandas as pd
import pyarrow as pa
from pydantic import BaseModel, ValidationError

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
_BOOKKEEPING = ("key", "written", "seconds", "manifest")
_MARKS = {"✗": "bad", "!": "unsure", "–": "unsure", "✓": "good"}  # from the worst on
# Pages load nothing and execute nothing, even if a model's reply looks like HTML.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; sandbox allow-forms"
)


class _Score(BaseModel):
    about: str | None = None
    questionnaire: str | None = None
    model: str | None = None
    mark: str | None = None
    verdict: str | None = None


class _Scores(BaseModel):
    rows: list[_Score]


class _Report(BaseModel):
    """The part of a page's JSON file that the list of runs shows."""

    kind: str
    title: str
    about: str = ""
    results: _Scores


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
            listed[folder.path] = names, runs if names == earlier_names else _read_runs(folder)

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


def _read_runs(folder: Folder) -> list[Run]:
    """Return the runs in a folder of a store."""
    rows = _read_rows(folder, _BOOKKEEPING)
    runs = []
    for text, group in rows.groupby("manifest", observed=True, sort=False):
        last = datetime.fromtimestamp(group["written"].max() / 1e9, UTC)
        runs.append(Run(folder, str(text), len(group), last))
    return runs


def _read_rows(folder: Folder, columns: tuple[str, ...] = ()) -> pd.DataFrame:
    """Return the stored rows of a folder, with some columns or all."""
    tables = folder.read_new(set(), pa.schema([]), lambda name: not columns or name in columns)
    if not tables:
        return pd.DataFrame(columns=list(_BOOKKEEPING))
    rows = pa.concat_tables(tables, promote_options="permissive").to_pandas()
    return rows.sort_values("written", kind="stable").drop_duplicates("key")


def _find_report(run: Run, reports: dict[Path, _Report]) -> tuple[Path, list[_Score]] | None:
    """Return the last page about a run, with the run's scores on it, if there is one."""
    manifest = run.manifest
    for page, report in reports.items():
        mode = re.match(r"mode (\w+)", report.about)
        if mode is not None and mode[1] != manifest["mode"]:
            continue

        scores = [
            row
            for row in report.results.rows
            if row.questionnaire == run.questionnaire
            and (row.model or report.title) == manifest["respondent_id"]
            and row.mark in _MARKS
        ]
        if scores:
            return page, scores

    return None


def _find_verdict(run: Run, reports: dict[Path, _Report]) -> Element:
    """Return a run's verdict, which is that of its worst scale on the last page about it."""
    found = _find_report(run, reports)
    return _tag("span", "not judged") if found is None else _link_verdict(*found)


def _link_verdict(page: Path, scores: list[_Score]) -> Element:
    """Return the worst verdict of some scores, as a link to their page."""
    verdicts = [
        (list(_MARKS).index(row.mark), f"{row.mark} {row.verdict}")
        for row in scores
        if row.mark in _MARKS
    ]
    link = "page?" + urlencode({"name": page.name})
    if not verdicts:
        return _tag("a", "see the page", href=link)

    place, words = min(verdicts)
    return _tag("a", words, href=link, class_=list(_MARKS.values())[place])


class _Entry(NamedTuple):
    """A line of the list: when it was made, its mode or kind, the text to search, its cells."""

    when: datetime
    mode: str
    text: str
    cells: list[Element | str]


def _list_entries(runs: list[Run], reports: dict[Path, _Report]) -> Iterator[_Entry]:
    """Yield the runs, and the pages that no run leads to, such as those about tables."""
    alone = dict(reports)
    for run in runs:
        found = _find_report(run, reports)
        if found is not None:
            alone.pop(found[0], None)

        who, mode = (str(run.manifest[name]) for name in ("respondent_id", "mode"))
        verdict = _find_verdict(run, reports)
        text = [run.title, str(run.manifest["questionnaire"]), who, str(verdict.text)]
        link = _tag("a", run.title, href="answers?" + urlencode({"run": run.name}))
        when = f"{run.last:%Y-%m-%d %H:%M}"
        cells = [link, verdict, who, mode, when, f"{run.answers:,}"]
        yield _Entry(run.last, mode, " ".join(text), cells)

    for page, report in alone.items():
        titles = list(dict.fromkeys(row.about for row in report.results.rows if row.about))
        verdict = _link_verdict(page, report.results.rows)
        title = ", ".join(titles) or report.title
        link = _tag("a", title, href="page?" + urlencode({"name": page.name}))
        written = datetime.fromtimestamp(page.stat().st_mtime, UTC)
        mode = f"page: {report.kind}"
        text = " ".join([title, report.title, mode, str(verdict.text)])
        who = report.title if titles else ""
        cells = [link, verdict, who, mode, f"{written:%Y-%m-%d %H:%M}", ""]
        yield _Entry(written, mode, text, cells)


def _list_runs(
    runs: list[Run], reports: dict[Path, _Report], query: dict[str, str]
) -> list[Element]:
    """Return the list of runs and pages, searched and filtered as a query says."""
    words = query.get("q", "").casefold().split()
    entries = sorted(_list_entries(runs, reports), key=lambda entry: entry.when, reverse=True)
    rows = [
        entry.cells
        for entry in entries
        if all(word in entry.text.casefold() for word in words)
        and query.get("mode", entry.mode) == entry.mode
    ]

    search = _tag("input", name="q", type="search", value=query.get("q", ""))
    modes = _tag("select", _tag("option", "all modes", value=""), name="mode")
    for mode in sorted({entry.mode for entry in entries}):
        chosen = {"selected": ""} if query.get("mode") == mode else {}
        modes.append(_tag("option", mode, **chosen))

    label = _tag("label", "Questionnaire, respondent or verdict", search, class_="search")
    form = _tag("form", label, _tag("label", "Mode", modes), _tag("button", "Search"), action="./")
    count = f"{len(rows)} of {len(entries)} runs and pages, the last one first"
    if len(rows) > _SHOWN_RUNS:
        count += f"; {_SHOWN_RUNS} are listed, and a search narrows the list"

    heads = ["questionnaire", "verdict", "respondent", "mode", "last (UTC)", "answers or replies"]
    table = _table(heads, rows[:_SHOWN_RUNS])
    return [form, _tag("p", f"{count}.", class_="note"), table]


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

    verdict = _find_verdict(run, reports)
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

    cells = [[_show_value(value) for value in row] for row in page_rows.itertuples(index=False)]
    count = f"Answers {start + 1} to {start + len(page_rows)} of {len(rows)}."
    note = _tag("p", count, class_="note")
    return [pages, _tag("p", verdict), facts, note, _table(list(rows), cells)]


def _show_value(value: object) -> Element | str:
    """Return a stored value as text, folded if it is long."""
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    if len(text) > _LONG_TEXT:
        return _tag("details", _tag("summary", f"{text[:80]} …"), _tag("div", text))
    return text


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
