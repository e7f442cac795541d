"""A local chat endpoint with a simulated respondent behind it.

The endpoint implements the part of the OpenAI protocol that asking needs, reads the prompt as a
model would, and answers from known traits, with known bad habits. Everything from prompt to score
can therefore be checked against known values. The endpoint is a real server for any client in any
process.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pandas as pd

from psychometrics.files import digest_text
from psychometrics.modes import simulated
from psychometrics.modes.messages import caesar
from psychometrics.questionnaires import Questionnaire


@contextmanager
def simulated_endpoint(
    questionnaire: Questionnaire, traits: pd.DataFrame, seed: int = 0
) -> Iterator[str]:
    """Serve simulated respondents as chat models on loopback while the context lasts.

    Parameters
    ----------
    questionnaire : Questionnaire
        The questionnaire that will be asked.
    traits : DataFrame, shape (respondents, scales)
        Traits from :func:`psychometrics.modes.simulated.draw_traits`; the index names the models.
    seed : int

    Yields
    ------
    str
        The base URL.

    Examples
    --------
    >>> import urllib.request
    >>> from psychometrics.modes.messages import messages
    >>> from psychometrics.questionnaires import load_questionnaire
    >>> mini = load_questionnaire("ipip20")
    >>> request = {"model": "simulated-1", "messages": messages(mini, mini.items[:1])}
    >>> with simulated_endpoint(mini, simulated.draw_traits(mini, 1) * 0 + 60.0) as url:
    ...     body = json.dumps(request).encode()
    ...     reply = urllib.request.urlopen(f"{url}/chat/completions", body).read()
    >>> json.loads(reply)["choices"][0]["message"]["content"]
    '1: 5'
    """
    lock = threading.Lock()
    repeats: Counter[str] = Counter()

    def reply(model: str, prompt: list[dict[str, str]]) -> str:
        system = " ".join(m["content"] for m in prompt if m["role"] == "system")
        user = prompt[-1]["content"]
        shift = re.search(r"each letter is moved (\d+) places", system)
        user = caesar(user, -int(shift[1])) if shift else user

        digest = digest_text(model, system, user)
        with lock:  # the draw depends on the question, not on the order of threads
            repeats[digest] += 1
            rng = np.random.default_rng([seed, int(digest[:8], 16), repeats[digest]])

        draw = int(rng.integers(1 << 31))
        draws = simulated.answers(questionnaire, traits.loc[[model]], seed=draw, difficulty_sd=0.0)
        text = _lines(questionnaire, user, draws.set_index("item_id")["value"])
        return caesar(text, int(shift[1])) if shift else text

    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(reply))
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()

    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _lines(questionnaire: Questionnaire, user: str, values: pd.Series) -> str:
    """Return an answer to each numbered statement of a prompt, with the prompt's labels."""
    lines = []
    for item in questionnaire.items:
        statement = re.escape(questionnaire.statement(item))
        line = re.search(rf"^(\d+)\. {statement}(?: \((.*)\))?$", user, re.MULTILINE)
        if not line:
            continue

        options = questionnaire.choices(item)
        text = next(option.label for option in options if option.value == values[item.id])
        label = re.search(rf"(\w+) = {re.escape(text)}(?![\w ])", line[2] or user)
        if label:
            lines.append((int(line[1]), f"{line[1]}: {label[1]}"))

    return "\n".join(line for _, line in sorted(lines))


def _handler(reply: Callable[[str, list[dict[str, str]]], str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            model = request["model"]
            message = {"role": "assistant", "content": reply(model, request["messages"])}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            content = {"id": "1", "object": "chat.completion", "created": 0}
            body = json.dumps(content | {"model": model, "choices": [choice]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            pass

    return Handler
