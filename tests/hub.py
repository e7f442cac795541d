"""A model hub on this machine: its listing in the form that the hub gives, its models as files."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from huggingface_hub import constants

PAGE = 3
"""Models on a page of the listing, so that there are several."""


def commit(model: str) -> str:
    return hashlib.sha1(model.encode()).hexdigest()


def recorded(model: str, files: list[str], **more: object) -> dict:
    """An entry of the listing, as ``/api/models`` gives it."""
    licence = more.pop("licence", "mit")
    task = more.pop("task", "text-classification")
    tags = ["safetensors", task, *([f"license:{licence}"] if licence else [])]
    files = [{"rfilename": file} for file in [".gitattributes", "README.md", *files]]
    known = {"id": model, "sha": commit(model), "gated": False, "private": False, "downloads": 0}
    known |= {"pipeline_tag": task, "tags": tags, "siblings": files}
    return known | {"cardData": {"license": licence}} | more


class Hub:
    """Its ``entries``, its ``folder`` with a folder of files per model, and what was ``asked``."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.entries, self.asked, self.url = folder, {}, Counter(), ""

    def add(self, model: str, files: dict[str, bytes] | Path, **more: object) -> None:
        """List a model; a folder's files are served, or those whose content is given."""
        own = self.folder / model
        own.mkdir(parents=True)
        if isinstance(files, Path):
            files = {file.name: file.read_bytes() for file in files.iterdir()}
        for name, content in files.items():
            (own / name).write_bytes(content)
        self.entries[model] = recorded(model, sorted(files), **more)

    def reply(self, path: str, query: dict) -> tuple[int, object, dict]:
        if path == "/api/models":
            return self._page(query)
        if not (found := re.match(r"/api/models/([^/]+/[^/]+)(/.*)?$|/([^/]+/[^/]+)/resolve/(.+)$",
                                  path)):  # fmt: skip
            return 404, {}, {}
        model = found[1] or found[3]
        if model not in self.entries:
            return 404, {}, {"X-Error-Code": "RepoNotFound"}
        own, entry = self.folder / model, self.entries[model]
        revision, _, file = (found[4] or found[2] or "").rpartition("/")
        known = {commit(model), "main"}
        if found[1] and not revision.startswith("/tree"):
            named = (found[2] or "/main").rsplit("/", 1)[1]
            if named not in known:
                return 404, {}, {"X-Error-Code": "RevisionNotFound"}
            files = [".gitattributes", "README.md", *sorted(file.name for file in own.iterdir())]
            return 200, entry | {"siblings": [{"rfilename": file} for file in files]}, {}
        if entry["gated"]:
            return 403, {}, {"X-Error-Code": "GatedRepo"}
        if found[1]:
            sizes = {file.name: file.stat().st_size for file in sorted(own.iterdir())}
            files = [
                {"type": "file", "path": name, "size": size, "oid": commit(name)}
                for name, size in sizes.items()
            ]
            return 200, files, {}
        if revision not in known:
            return 404, {}, {"X-Error-Code": "RevisionNotFound"}
        if not (own / file).is_file():
            return 404, {}, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit(model)}
        return 200, (own / file).read_bytes(), {"X-Repo-Commit": commit(model)}

    def _page(self, query: dict) -> tuple[int, object, dict]:
        word, task = query.get("search", [""])[0], query.get("pipeline_tag", [None])[0]
        if task == "no-such-task":
            return 400, {"error": "Invalid pipeline tag"}, {}
        found = [e for e in self.entries.values()
                 if word in e["id"] and task in (None, e["pipeline_tag"])]  # fmt: skip
        assert query["sort"] == ["downloads"]
        found.sort(key=lambda entry: -entry["downloads"])
        start = int(query.get("cursor", ["0"])[0])
        fields = {"_id", "id", "modelId", *query["expand"]}
        page = [{k: v for k, v in e.items() if k in fields} for e in found[start : start + PAGE]]
        more = {}
        if start + PAGE < len(found):
            flat = "&".join(
                f"{k}={v}" for k, values in query.items() for v in values if k != "cursor"
            )
            more = {"Link": f'<{self.url}/api/models?{flat}&cursor={start + PAGE}>; rel="next"'}
        return 200, page, more


@contextmanager
def serving(folder: Path):
    """A hub that is served and is this process's own, with an empty cache beside its folder."""
    hub = Hub(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            parts = urlsplit(self.path)
            hub.asked[parts.path] += self.command == "GET"
            status, found, headers = hub.reply(parts.path, parse_qs(parts.query))
            body = found if isinstance(found, bytes) else json.dumps(found).encode()
            tag = hashlib.sha256(body).hexdigest()
            span = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            if span and status == 200:
                status, body = 206, body[int(span[1]) : int(span[2]) + 1]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("ETag", f'"{tag}"')
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    hub.url = f"http://127.0.0.1:{server.server_port}"
    with pytest.MonkeyPatch.context() as patch:
        template = hub.url + "/{repo_id}/resolve/{revision}/{filename}"
        patch.setattr(constants, "HF_HUB_CACHE", str(folder.with_name("hub")))
        patch.setattr(constants, "HF_HUB_OFFLINE", False)
        patch.setattr(constants, "ENDPOINT", hub.url)
        patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        yield hub
    server.shutdown()
    server.server_close()
