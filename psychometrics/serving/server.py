"""A server of null respondents that any client of chat models can ask.

It answers on this machine alone unless told otherwise, reads no file by a client's wish, and limits
the size of requests and the time that they may take.
"""

from __future__ import annotations

import contextlib
import hmac
import ipaddress
import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ..checks import check_numbers
from ..exceptions import ParameterError, PsychometricsError
from . import protocol
from .respondents import Respondents, request_seed

KEY_VARIABLE = "PSYCHOMETRICS_SERVE_KEY"
"""The environment variable with the key that clients must send, if there is to be one."""
_LARGEST_BODY = 1 << 20
# Seconds for a request to arrive, and for which an idle connection is kept.
_PATIENCE = 30.0
_MOST_CONNECTIONS = 256
# Repeated requests are counted until there are this many different ones.
_MOST_COUNTED = 1_000_000
_WRITERS = {
    "/chat/completions": protocol.chat_completion,
    "/completions": protocol.completion,
}
_ERRORS = {
    401: "authentication_error",
    404: "not_found_error",
    500: "server_error",
}


class NullServer(ThreadingHTTPServer):
    """A server of null respondents; a context that stops serving when it is left.

    Parameters
    ----------
    host : str
        An address of this machine.
    port : int
        A port; 0 takes any free one.
    questionnaires : iterable of str or Path
        Files of questionnaires whose items the respondents recognise, besides the shipped ones.
    key : str, optional
        The key that clients must send.
    public : bool
        Whether the address may be one that other machines can reach; this needs a key.
    repeats : bool
        Whether a request that is repeated gets another draw, as from a model that samples. By
        default the reply depends on the content and the seed alone.

    Raises
    ------
    ParameterError
        The address can be reached by other machines, or cannot be used.

    Examples
    --------
    >>> import urllib.request
    >>> with NullServer(port=0) as server:
    ...     models = json.load(urllib.request.urlopen(f"{server.url}/models"))
    >>> models["data"][0]["id"]
    'random'
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 8765,
        questionnaires: Iterable[str | Path] = (),
        key: str | None = None,
        public: bool = False,
        repeats: bool = False,
    ) -> None:
        self.is_public = not _is_loopback(host)
        if self.is_public and not (public and key):
            mend = f"set {KEY_VARIABLE}" if public else "use 127.0.0.1, or add --public"
            raise ParameterError(f"host: other machines can reach {host}; {mend}.")
        check_numbers(port=port + 1)
        if port > 65_535:
            raise ParameterError(f"port: {port} is too large; use 0 to 65535.")

        self.respondents = Respondents(questionnaires)
        self.host = host
        self.key = key
        self.repeats = repeats
        self.stats: Counter[str] = Counter()
        self.counts: Counter[int] = Counter()
        self.lock = threading.Lock()
        self.slots = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            reason = error.strerror or error
            raise ParameterError(
                f"host, port: {host}:{port} cannot be used ({reason}); name another."
            ) from None

    @property
    def url(self) -> str:
        """The base URL for clients."""
        return f"http://{self.host}:{self.server_address[1]}/v1"

    def __enter__(self) -> NullServer:
        self.thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.shutdown()
        self.server_close()
        self.thread.join()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection, or close it if there are too many."""
        if self.slots.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection in its thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print an error, unless the client hung up."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def count_draw(self, request: dict[str, Any]) -> int:
        """Return how often a request was made before, if repeats get other draws."""
        if not self.repeats:
            return 0
        digest = request_seed(json.dumps(request, sort_keys=True))
        with self.lock:
            if len(self.counts) >= _MOST_COUNTED:
                self.counts.clear()
            self.counts[digest] += 1
            return self.counts[digest] - 1


class _Refusal(Exception):
    """The error for a request that is refused, with the status of the response."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _PATIENCE
    # a reply is one packet, which need not wait for the client
    wbufsize = -1
    disable_nagle_algorithm = True
    server: NullServer

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def _answer(self, answer: Callable[[str], None]) -> None:
        """Answer a request for a page, or refuse it with the reason."""
        try:
            self._check_access()
            answer(self.path.partition("?")[0].rstrip("/").removeprefix("/v1"))
        except _Refusal as refusal:
            self._refuse(refusal.status, str(refusal))
        except PsychometricsError as error:
            self._refuse(404 if str(error).startswith("model:") else 400, str(error))
        except OSError:  # the client hung up
            raise
        except Exception:
            self.server.handle_error(self.request, self.client_address)
            self._refuse(500, "The server could not answer; its own output says why.")

    def _get(self, page: str) -> None:
        name = page.removeprefix("/models/")
        respondents = self.server.respondents
        if page == "/models":
            models = [_describe_model(each) for each in respondents.names()]
            self._send(200, {"object": "list", "data": models})
        elif name != page:
            respondents.check(name)
            self._send(200, _describe_model(name))
        elif page == "/stats":
            with self.server.lock:
                self._send(200, dict(self.server.stats))
        else:
            raise _Refusal(404, f"{page[:80]}: no such page; use /v1/models or /stats.")

    def _post(self, page: str) -> None:
        body = self._read_body()
        if page not in _WRITERS:
            raise _Refusal(404, f"{page[:80]}: no such page; use /v1/chat/completions.")

        request = None
        with contextlib.suppress(ValueError, RecursionError):
            request = json.loads(body)
        if not isinstance(request, dict):
            raise _Refusal(400, "body: not a JSON object; send one request.")

        draw = self.server.count_draw(request)
        replies = protocol.write_replies(self.server.respondents, request, draw)
        with self.server.lock:
            self.server.stats["requests"] += 1
            self.server.stats["answers"] += sum(len(reply.answers) for reply in replies)
            self.server.stats["without_options"] += not replies[0].answers
            self.server.stats[f"requests to {request['model']}"] += 1

        content = _WRITERS[page](request, replies)
        if request.get("stream"):
            self._stream(protocol.chunks(request, content))
        else:
            self._send(200, content)

    def _check_access(self) -> None:
        """Refuse pages of other sites, whose names may lead to this machine, and missing keys."""
        host = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
        if not self.server.is_public and not _is_loopback(host.strip("[]")):
            raise _Refusal(403, f"Host: {host[:80]!r} is not this machine; use 127.0.0.1.")

        sent = self.headers.get("Authorization", "").removeprefix("Bearer ")
        key = self.server.key
        if key and not hmac.compare_digest(sent.encode(), key.encode()):
            raise _Refusal(401, f"Authorization: another key; send the one in {KEY_VARIABLE}.")

    def _read_body(self) -> bytes:
        """Return the body of a request, unless it is too large or too slow."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or len(length) > 12:
            raise _Refusal(411, "Content-Length: missing; send the length of the body.")
        missing = int(length)
        if missing > _LARGEST_BODY:
            raise _Refusal(413, f"body: {missing} bytes; send at most {_LARGEST_BODY}.")

        deadline = time.monotonic() + _PATIENCE
        parts = []
        while missing:
            piece = self.rfile.read1(missing)
            if not piece or time.monotonic() > deadline:
                raise ConnectionAbortedError
            parts.append(piece)
            missing -= len(piece)
        return b"".join(parts)

    def _send(self, status: int, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response_only(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def _refuse(self, status: int, message: str) -> None:
        """Send an error, and close the connection, whose body may not have been read."""
        self.close_connection = True
        kind = _ERRORS.get(status, "invalid_request_error")
        with self.server.lock:
            self.server.stats["refused"] += 1
        error = {"message": message, "type": kind, "param": None, "code": None}
        if status == 404 and message.startswith("model:"):
            error |= {"param": "model", "code": "model_not_found"}
        self._send(status, {"error": error})

    def _stream(self, parts: Iterable[dict[str, Any]]) -> None:
        self.send_response_only(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in [*map(json.dumps, parts), "[DONE]"]:
            data = f"data: {event}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_args: object) -> None:
        """Write no line for each request."""


def _describe_model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "psychometrics"}


def environment_key() -> str | None:
    """Return the key that the environment sets for clients, if there is one.

    Raises
    ------
    ParameterError
        The key has signs that a header cannot carry.
    """
    key = os.environ.get(KEY_VARIABLE)
    if key and not (key.isascii() and key.isprintable()):
        raise ParameterError(f"{KEY_VARIABLE}: signs that cannot be sent; use ASCII letters.")
    return key or None


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
