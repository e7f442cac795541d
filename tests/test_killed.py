"""Runs that are killed at random moments, in every mode that keeps items' answers."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pandas as pd
import pytest

from psychometrics.ask import ask
from psychometrics.questionnaires import load_questionnaire
from psychometrics.respondents.chat import Endpoint
from psychometrics.store import open_kept
from psychometrics.studies.asking import null_model

KILLS = {"logits": 6, "entailment": 3, "chat": 5, "custom": 4, "human": 2}
MINI = load_questionnaire("ipip20")
# Imports once and then forks for each kill: twenty interpreters would take minutes.
PROGRAM = """
import json, os, random, signal, sys, time, traceback
import torch
from psychometrics.ask import ask
from psychometrics.questionnaires import load_questionnaire
from psychometrics.respondents import _prompting, options, nli
from psychometrics.respondents.chat import Endpoint

plan, store, url, null, tiny, log = json.loads(sys.argv[1])
mini = load_questionnaire("ipip20")
options.BATCH, _prompting.SAVE_EVERY, nli.TOKEN_BUDGET = 4, 0.0, 400
scored, classified = options._Scorer.__call__, nli.NLIRespondent._logits

def slow(function):
    def slower(*given):
        time.sleep(0.04)
        return function(*given)
    return slower

torch.set_num_threads(1)
loaded = {"logits": options._Scorer(null, "float32"), "entailment": nli.load(tiny, None, "float32")}
loaded["logits"].load()
options.opened = lambda respondent, identity, **_: loaded[identity["by"]]
options._Scorer.__call__, nli.NLIRespondent._logits = slow(scored), slow(classified)

def four(prompt):
    with open(log, "a") as file:
        file.write("asked\\n")
    time.sleep(0.05)
    return "1: 4"

four.respondent_id = "four"

def types(prompt):
    time.sleep(0.05)
    return "3"

def run(way):
    how = {"progress": False, "store": store}
    if way == "logits":
        ask(mini, [null], mode="options", **how)
    elif way == "entailment":
        ask(mini, [tiny], mode="options", dtype="float32", **how)
    elif way == "chat":
        ask(mini, ["m"], mode="chat", runs=6, batch_size=4, endpoint=Endpoint(url, concurrency=2),
            **how)
    elif way == "custom":
        ask(mini, [four], mode="custom", runs=2, batch_size=1, **how)
    else:
        ask(mini, ["ann"], mode="human", read=types, write=str, **how)

draw = random.Random(7)
for way, kills in plan.items():
    for _ in range(kills):
        child = os.fork()
        if not child:
            try:
                run(way)
            except BaseException:
                traceback.print_exc()
            os._exit(0)
        time.sleep(draw.uniform(0.1, 1.5))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        print(way, flush=True)
"""


@pytest.fixture
def slow_server():
    """Answers every statement with a 4, after a while, and counts the requests."""
    seen = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            seen.append(body)
            user = json.loads(body)["messages"][-1]["content"]
            count = sum(line[:1].isdigit() for line in user.splitlines())
            text = "\n".join(f"{i}: 4" for i in range(1, count + 1))
            content = json.dumps({"choices": [{"message": {"content": text}}]}).encode()
            threading.Event().wait(0.08)
            try:
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
            except OSError:  # killed
                self.close_connection = True

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1", seen
    server.shutdown()
    server.server_close()


def test_after_twenty_kills_tables_are_whole_and_only_what_was_in_the_air_is_asked_again(
    tmp_path, slow_server, tiny_model
):
    url, seen = slow_server
    null, log, store = null_model(tmp_path, 3), tmp_path / "log", tmp_path / "store"
    given = [KILLS, *map(str, (store, url, null, tiny_model, log))]
    killed = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(given)],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert "Error" not in killed.stderr, killed.stderr
    assert killed.stdout.split() == [way for way, kills in KILLS.items() for _ in range(kills)]
    assert sum(KILLS.values()) == 20

    def four(prompt):
        with log.open("a") as file:
            file.write("asked\n")
        return "1: 4"

    four.respondent_id = "four"
    how = {
        "logits": {"mode": "options", "respondents": [str(null)]},
        "entailment": {"mode": "options", "respondents": [tiny_model], "dtype": "float32"},
        "chat": {"mode": "chat", "respondents": ["m"], "runs": 6, "batch_size": 4,
                 "endpoint": Endpoint(url)},
        "custom": {"mode": "custom", "respondents": [four], "runs": 2, "batch_size": 1},
        "human": {"mode": "human", "respondents": ["ann"], "read": lambda _: "3", "write": str},
    }  # fmt: skip
    questions = {"logits": 500, "entailment": 100, "chat": 30, "custom": 40}
    for way, conditions in how.items():
        who = {"logits": null.name, "entailment": tiny_model.name, "chat": "m", "custom": "four",
               "human": "ann"}[way]  # fmt: skip
        before = len(open_kept(store, conditions["mode"], "ipip20", who))
        assert before > 0  # something was kept of what was killed
        after_kills = ask(MINI, store=store, progress=False, **conditions)
        summary = after_kills.attrs["summary"]
        if way in ("logits", "entailment"):
            assert summary["asked"] == questions[way] - before
        kept = open_kept(store, conditions["mode"], "ipip20", who).rows
        if way == "human":
            assert kept["item_id"].is_unique  # no item was asked twice
            assert (after_kills["value"] == 3).all()
            continue
        assert len(kept) == questions[way]
        count = len(seen)
        undisturbed = ask(MINI, store=tmp_path / way, progress=False, **conditions)
        pd.testing.assert_frame_equal(after_kills, undisturbed, atol=1e-6)
        if way == "chat":
            assert count - 30 <= 2 * KILLS["chat"]  # two requests at once
        elif way == "custom":
            calls = len(log.read_text().splitlines()) - 40  # without the undisturbed run's
            assert calls - 40 <= KILLS["custom"]
