"""The chat route against real servers: one that misbehaves on purpose, and `transformers serve`."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from psychometrics.asking.ask import ask
from psychometrics.endpoints import client
from psychometrics.endpoints.endpoint import Endpoint
from psychometrics.exceptions import ParameterError, RespondentError, StoreError
from psychometrics.modes.chat import Chat
from psychometrics.modes.messages import messages
from psychometrics.modes.mode import Asking, Identity
from psychometrics.modes.simulated import draw_traits
from psychometrics.progress import Progress
from psychometrics.questionnaires import load_questionnaire
from psychometrics.questionnaires.answers import COLUMNS
from psychometrics.store import StoredAnswers
from psychometrics.store.replies import Reply
from psychometrics_book.server import simulated_endpoint

REFUSAL = "As a language model, I have no personality to describe."
MINI = load_questionnaire("ipip20")
FOUR = MINI.model_copy(update={"id": "four", "items": MINI.items[:4], "scales": ()})
QUICK = {"retries": 4, "pause": 0.01, "timeout": 0.5, "concurrency": 1}
PLACE = set(Endpoint.__dataclass_fields__)


def ask_chat(questionnaire, model, store, **how):
    """Ask one model; what belongs to the endpoint is taken out of the conditions."""
    endpoint = Endpoint(**{name: how.pop(name) for name in PLACE & set(how)})
    return ask(questionnaire, [model], store, "chat", progress=False, endpoint=endpoint, **how)


def talks_of(questionnaire, how):
    asking = Asking(None, Identity("m"), None, Progress(disable=True), how)
    return Chat("chat").talks(questionnaire, asking)


def kept_replies(store, model, questionnaire_id="four"):
    return StoredAnswers(store, "chat", questionnaire_id, model).rows


@contextmanager
def scripted(script=(), delay: float = 0.0, reply=None):
    """A server that does what the script says, request by request, and answers after its end."""
    seen, times, lock = [], [], threading.Lock()

    def serve(connection, request):
        with lock:
            step = script[len(seen)] if len(seen) < len(script) else "answer"
            seen.append(json.loads(request.split(b"\r\n\r\n", 1)[1]))
            times.append(time.monotonic())
        time.sleep(1.0 if step == "time out" else delay)
        user = seen[-1]["messages"][-1]["content"]
        count = sum(line[:1].isdigit() for line in user.splitlines())
        text = reply(count) if reply else "\n".join(f"{i}: 4" for i in range(1, count + 1))
        whole = http(200, completion(REFUSAL if step == "refuse" else text))
        if isinstance(step, int):
            whole = http(step, b'{"error": {"message": "no"}}')
        others = {
            "garbage": http(200, b"<html>Gateway</html>"),
            "drop": whole[:-20],
            "429": http(429, b"{}", "Retry-After: 0.4"),
        }
        connection.sendall(others.get(step, whole))

    with raw_server(serve) as url:
        yield url, seen, times


def test_a_reply_in_json_has_its_schema_sent_along_and_is_read(tmp_path):
    def reply(count):
        return json.dumps({str(n): 4 for n in range(1, count + 1)})

    forms = {}
    for how in ("json", "json_schema"):
        with scripted([], reply=reply) as (url, seen, _):
            answers = ask_chat(FOUR, "m", tmp_path, base_url=url, reply=how, runs=1, batch_size=3,
                               concurrency=1)  # fmt: skip
        assert answers["value"].tolist() == [4.0] * 4
        forms[how] = [request.get("response_format") for request in seen]
    assert forms["json"] == [None, None]
    schemas = [form["json_schema"]["schema"] for form in forms["json_schema"]]
    assert sorted(schema["required"] for schema in schemas) == [["1"], ["1", "2", "3"]]


def test_every_kind_of_failure_is_survived_and_never_becomes_an_answer(tmp_path):
    script = ["answer", "time out", "garbage", "drop", 500, "429", "refuse", "answer"]
    with scripted(script) as (url, seen, times):
        answers = ask_chat(FOUR, "m", runs=2, base_url=url, store=tmp_path, **QUICK)
    assert answers.columns[:7].tolist() == list(COLUMNS)
    assert answers["status"].tolist() == ["ok"] * 8
    assert answers["value"].tolist() == [4.0] * 8
    assert answers["attempts"].tolist() == [1] * 4 + [2] * 4  # the refusal is the second run's
    assert len(seen) == len(script)
    assert times[6] - times[5] >= 0.4  # Retry-After
    kept = kept_replies(tmp_path, "m")
    assert kept["reply"].tolist()[1] == REFUSAL
    assert [json.loads(usage)["total_tokens"] for usage in kept["usage"]] == [3] * 3
    assert json.loads(kept["request"].iloc[0])["messages"] == seen[0]["messages"]
    assert set(kept["finish_reason"]) == {"stop"}


def test_what_stays_refused_or_wrong_is_recorded_as_such_after_the_set_number_of_times(tmp_path):
    with scripted(reply=lambda n: "1: 4\n2: 9\nAs a language model I cannot say.") as (
        url,
        seen,
        _,
    ):
        answers = ask_chat(FOUR, "m", runs=1, ask_again=1, batch_size=4, base_url=url,
                           shuffle=False, store=tmp_path, **QUICK)  # fmt: skip
    assert answers["status"].tolist() == ["ok", "ok", "out_of_range", "refused"]
    assert answers["value"].isna().tolist() == [False, False, True, True]
    assert answers["attempts"].tolist() == [1, 2, 2, 2]
    assert len(seen) == 2


# --- servers that do harm --------------------------------------------------------------------


@contextmanager
def raw_server(serve):
    """A server that does what a function does with each connection and its request."""
    listening = socket.create_server(("127.0.0.1", 0))

    def accept():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                threading.Thread(target=one, args=(connection,), daemon=True).start()

    def one(connection):
        with connection, contextlib.suppress(OSError):
            request, length = b"", 1
            while len(request.partition(b"\r\n\r\n")[2]) < length:
                request += connection.recv(65536)
                if found := re.search(rb"(?i)content-length: (\d+)\r\n", request):
                    length = int(found[1])
            serve(connection, request)

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    finally:
        listening.close()


def http(status, body, *headers):
    lines = [f"HTTP/1.1 {status} x", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def completion(content):
    message = {"role": "assistant", "content": content}
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    choices = [{"message": message, "index": 0, "finish_reason": "stop"}]
    return json.dumps({"choices": choices, "usage": usage}).encode()


@pytest.mark.parametrize("after", ["inf", "9" * 400])
def test_an_endless_retry_after_is_bounded_and_said(tmp_path, after, monkeypatch):
    monkeypatch.setattr(client, "_LONGEST_WAIT", 0.3)
    times = []

    def busy(connection, _request):
        times.append(time.monotonic())
        if len(times) == 1:
            connection.sendall(http(429, b"{}", f"Retry-After: {after}"))
        else:
            connection.sendall(http(200, completion("1: 4\n2: 4\n3: 4\n4: 4")))

    with raw_server(busy) as url, pytest.warns(UserWarning, match=r"asks us to wait .* in 0.3 s"):
        answers = ask_chat(FOUR, "m", tmp_path, base_url=url, runs=1, **QUICK)
    assert (answers["status"] == "ok").all()
    assert 0.3 <= times[1] - times[0] < 3


def test_prompts_and_key_do_not_follow_to_another_origin(tmp_path):
    reached = []

    def other(connection, request):
        reached.append(request)
        connection.sendall(http(200, completion("1: 4")))

    with raw_server(other) as away:

        def elsewhere(connection, _request):
            connection.sendall(http(307, b"", f"Location: {away}/chat/completions"))

        with raw_server(elsewhere) as url, pytest.raises(RespondentError, match="redirects"):
            ask_chat(FOUR, "m", tmp_path, base_url=url, api_key="secret-key", runs=1, **QUICK)
    assert not reached


@pytest.mark.parametrize(
    ("content", "raw", "status"),
    [
        (4, "4", "ok"),
        ([{"type": "text", "text": "1: "}, {"type": "text", "text": "4"}], "1: 4", "ok"),
        ("4 \ud800", "4 �", "unreadable"),
        ({"mood": 4}, '{"mood": 4}', "unreadable"),
        ({"answer": 4}, '{"answer": 4}', "ok"),
        (None, "", "missing"),
    ],
)
def test_odd_content_is_kept_as_text_and_read_strictly(tmp_path, content, raw, status):
    one = FOUR.model_copy(update={"items": FOUR.items[:1]})

    how = {"runs": 1, "ask_again": 0, **QUICK}
    with raw_server(sends(completion(content))) as url:
        answers = ask_chat(one, "m", tmp_path, base_url=url, **how)
    assert answers["raw"].tolist() == [raw]
    assert answers["status"].tolist() == [status]
    again = ask_chat(one, "m", tmp_path, base_url=url, **how)  # the server is gone
    pd.testing.assert_frame_equal(answers, again)


def ended(message, reason):
    choice = {"index": 0, "message": {"role": "assistant"} | message, "finish_reason": reason}
    return json.dumps({"choices": [choice]}).encode()


CALL = {"tool_calls": [{"type": "function", "function": {"name": "f", "arguments": '{"1": 4}'}}]}
ENDED = {
    "filtered": (ended({"content": ""}, "content_filter"), ["refused"] * 4),
    "filtered midway": (ended({"content": "1: 4\n2: 4\n3:"}, "content_filter"),
                        ["ok", "ok", "refused", "refused"]),
    "calls a tool": (ended({"content": None} | CALL, "tool_calls"), ["tool_call"] * 4),
    "calls and answers": (ended({"content": "1: 4\n2: 4\n3: 4\n4: 4"} | CALL, "tool_calls"),
                          ["ok"] * 4),
}  # fmt: skip


@pytest.mark.parametrize(("body", "statuses"), ENDED.values(), ids=list(ENDED))
def test_a_reply_that_ended_for_another_reason_has_its_status_also_from_the_store(
    tmp_path, body, statuses
):
    how = {"runs": 1, "ask_again": 0, "shuffle": False, **QUICK}
    with raw_server(sends(body)) as url:
        answers = ask_chat(FOUR, "m", tmp_path, base_url=url, **how)
    assert answers["status"].tolist() == statuses
    again = ask_chat(FOUR, "m", tmp_path, base_url=url, **how)  # the server is gone
    pd.testing.assert_frame_equal(answers, again)


def test_a_reply_without_choices_has_its_status_and_is_asked_for_again(tmp_path):
    empty, text = [True], b"chores done"

    def serve(connection, request):
        without = empty and text in request
        body = b'{"choices": [], "usage": {"prompt_tokens": 3}}' if without else completion("1: 4")
        connection.sendall(http(200, body))

    how = {"runs": 1, "shuffle": False, "batch_size": 1, **QUICK, "retries": 1}
    with raw_server(serve) as url:
        answers = ask_chat(FOUR, "m", tmp_path, base_url=url, **how)
        assert answers["status"].tolist() == ["ok", "ok", "no_choice", "ok"]
        empty.clear()
        answers = ask_chat(FOUR, "m", tmp_path, base_url=url, **how)
        assert answers["status"].tolist() == ["ok"] * 4


def drip(connection, _request):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n")
    for _ in range(100):
        connection.sendall(b" ")
        time.sleep(0.1)


def pour(connection, _request):
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    for _ in range(10_000):
        connection.sendall(b" " * 2**16)
    raise AssertionError("All was read.")


def echo(connection, request):
    key = request.split(b"Bearer ")[1].split(b"\r")[0].decode()
    body = json.dumps({"error": {"message": f"Incorrect API key: {key}."}}).encode()
    connection.sendall(http(401, body))


def sends(body, status=200):
    return lambda connection, _request: connection.sendall(http(status, body))


HARM = {
    "drips": (drip, r"no complete reply within 0.5 s"),
    "pours": (pour, "more than 65,536 bytes"),
    "echoes the key": (echo, "Incorrect API key: …"),
    "refuses": (sends(b"{}", 400), "refuses"),
    "is elsewhere": (sends(b"{}", 404), "refuses"),
    "nests": (sends(b"[" * 60_000), "unreadable reply"),
    "sends a number": (sends(b"5"), "unreadable reply"),
    "sends other choices": (sends(b'{"choices": {"0": 1}}'), "unreadable reply"),
    "sends no text": (sends(b"\xff"), "unreadable reply"),
}


@pytest.mark.parametrize(("serve", "said"), HARM.values(), ids=list(HARM))
def test_a_server_that_does_harm_ends_the_run_soon_without_the_key(
    tmp_path, monkeypatch, serve, said
):
    monkeypatch.setattr(client, "_LARGEST_REPLY", 2**16)
    began = time.monotonic()
    with raw_server(serve) as url, pytest.raises(RespondentError, match=said) as error:
        ask_chat(FOUR, "m", tmp_path, base_url=url, api_key="secret-key", runs=1,
                 **QUICK | {"retries": 1})  # fmt: skip
    assert time.monotonic() - began < 5
    assert "secret-key" not in str(error.value)


PROGRAM = """
import sys
from psychometrics.asking.ask import ask
from psychometrics.questionnaires import load_questionnaire
from psychometrics.endpoints.endpoint import Endpoint
place = Endpoint(sys.argv[1], concurrency=2)
print("begun", flush=True)
ask(load_questionnaire("ipip20"), ["m"], sys.argv[2], "chat", progress=False, runs=2, batch_size=4,
    endpoint=place)
"""


def test_a_key_press_is_heard_soon_while_a_request_is_slow(tmp_path):
    with scripted(delay=60) as (url, seen, _):
        child = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, url, tmp_path],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # A run in the background ignores key presses, and would hand that on.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        )
        deadline = time.monotonic() + 60
        while not seen and time.monotonic() < deadline:
            time.sleep(0.05)
        began = time.monotonic()
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=50)
    assert time.monotonic() - began < 15  # two on a machine that does nothing else
    assert b"KeyboardInterrupt" in said


def test_no_reply_is_recorded_and_a_dead_endpoint_stops_the_run_with_one_sentence(tmp_path):
    settings = QUICK | {"retries": 1}
    with scripted([500, 500]) as (url, _, _):
        answers = ask_chat(FOUR, "m", runs=2, base_url=url, store=tmp_path / "a", **settings)
    assert answers["status"].tolist() == ["no_reply"] * 4 + ["ok"] * 4
    with pytest.raises(RespondentError, match="gave no reply to 3 requests in a row"):
        ask_chat(FOUR, "m", runs=9, base_url=url, store=tmp_path / "b", **settings)  # closed now


def test_statements_are_shuffled_by_seed_and_run_and_batched_whole():
    how = Chat.conditions | {"runs": 3, "batch_size": 8, "seed": 5}

    def plan_of(**more):
        turns = [next(talk) for talk in talks_of(MINI, how | more)]
        return [(turn.run, turn.items) for turn in turns]

    plan = plan_of()
    assert [len(items) for _, items in plan] == [8, 8, 4] * 3
    runs = [[item for run, items in plan if run == one for item in items] for one in (1, 2, 3)]
    assert all(sorted(ids) == sorted(i.id for i in MINI.items) for ids in runs)
    assert len({tuple(ids) for ids in runs}) == 3
    assert plan_of(runs=5)[:9] == plan  # more runs change none before
    assert plan_of(seed=6) != plan


@pytest.mark.parametrize(
    "how",
    [
        {"labels": "alphabetical"}, {"order": "reversed"},
        {"order": "shuffled", "labels": "alphabetical"}, {"cipher": 3},
        {"cipher": 3, "labels": "alphabetical", "order": "reversed"},
        {"wording": "v2", "think": True, "role": "liar"}, {"wording": "v3", "role": "none"},
        {"wording": "v4", "role": "You are a sailor."}, {"wording": "v5", "batch_size": 1},
    ],
    ids=str,
)  # fmt: skip
def test_extreme_traits_come_back_exactly_however_they_are_asked(tmp_path, how):
    traits = draw_traits(MINI, 2) * 0 + 60.0  # so far out that chance has no part
    with simulated_endpoint(MINI, traits) as url:
        answers = ask_chat(MINI, "simulated-1", runs=1, base_url=url, store=tmp_path, **how)
    reverse = {item for scale in MINI.scales for item in scale.reverse}
    expected = [1.0 if item in reverse else 5.0 for item in answers["item_id"]]
    assert answers["value"].tolist() == expected


def test_wrong_parameters_and_no_endpoint_are_refused_and_nothing_sent(tmp_path, monkeypatch):
    with scripted() as (url, seen, _):
        for wrong in (
            {"runs": 0}, {"ask_again": -1}, {"role": "clown"}, {"labels": "roman"}, {"model": 5},
            {"order": "random"}, {"temperature": float("nan")}, {"max_tokens": 0}, {"cipher": "a"},
            {"constrained": True}, {"concurrency": 0}, {"timeout": "x"}, {"base_url": "ftp://host"},
            {"api_key": "secret\nX-Evil: 1"},
            {"base_url": "http://ho\0st/v1"}, {"base_url": 5}, {"api_key": "sécret"},
        ):  # fmt: skip
            with pytest.raises(ParameterError, match=next(iter(wrong)).split("_")[0]) as error:
                ask_chat(FOUR, **({"model": "m", "base_url": url, "store": tmp_path} | wrong))
            assert "cret" not in str(error.value)
        assert not seen
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(RespondentError, match="OPENAI_BASE_URL"):
        ask_chat(FOUR, "m", store=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="is a file"):
        ask_chat(FOUR, "m", base_url="http://127.0.0.1:9/v1", store=tmp_path / "file")


def test_address_and_key_come_from_the_environment(tmp_path, monkeypatch):
    with scripted() as (url, seen, _):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", "secret-key")
        answers = ask(FOUR, ["m"], tmp_path, "chat", progress=False, runs=1)
    assert len(seen) == 1
    assert (answers["mode"] == "chat").all()
    (part,) = tmp_path.rglob("*.parquet")
    assert b"secret-key" not in part.read_bytes()
    with raw_server(lambda connection, _: connection.sendall(b"no HTTP\r\n\r\n")) as bare:
        url = f"{bare.replace('//', '//user:secret-key@')}?key=secret-key"
        guarded = Endpoint(url, api_key="secret-key", retries=0)
        with pytest.raises(RespondentError) as error:
            ask(FOUR, ["m"], tmp_path / "b", "chat", endpoint=guarded, progress=False, runs=1)
    assert "secret-key" not in repr(guarded) + guarded.place + str(error.value)


# --- a real model behind a real server -------------------------------------------------------

LEARNT = {"ipip20_1": 4, "ipip20_2": 2, "ipip20_3": 5, "ipip20_4": 1}


@pytest.fixture(scope="module")
def chat_model(tmp_path_factory) -> Path:
    """A small Llama that was taught here what to answer to each of four statements."""
    import torch
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    talks = [
        [*messages(FOUR, [item]), {"role": "assistant", "content": f"1: {LEARNT[item.id]}"}]
        for item in FOUR.items
    ]
    words = pre_tokenizers.Split(Regex(r"\w+|\s|[^\w\s]"), "isolated")
    texts = [part["content"] for talk in talks for part in talk]
    found = {word for text in texts for word, _ in words.pre_tokenize_str(text)}
    special = ["<unk>", "<eos>", "<system>", "<user>", "<assistant>"]
    vocab = {word: i for i, word in enumerate([*special, *sorted(found)])}
    core = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
    core.pre_tokenizer, core.decoder = words, decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, unk_token="<unk>", eos_token="<eos>", pad_token="<eos>",
        additional_special_tokens=special[2:],
    )  # fmt: skip
    tokenizer.chat_template = (
        "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}"
    )
    whole = [tokenizer.apply_chat_template(talk, tokenize=False) + "<eos>" for talk in talks]
    ids = tokenizer(whole, padding=True, return_tensors="pt")["input_ids"]
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(vocab), hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=512,
        bos_token_id=None, eos_token_id=1, pad_token_id=1,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    while (loss := model(input_ids=ids, labels=ids).loss) > 0.03:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    folder = tmp_path_factory.mktemp("chat") / "taught"
    model.generation_config.max_new_tokens = 12
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def server(chat_model):
    """The address of a `transformers serve` with that model, in float32."""
    pytest.importorskip("fastapi", reason="transformers serve needs fastapi and uvicorn")
    pytest.importorskip("uvicorn", reason="transformers serve needs fastapi and uvicorn")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", "from transformers.cli.transformers import main; main()",
               "serve", str(chat_model), "--host", "127.0.0.1", "--port", str(port),
               "--device", "cpu", "--dtype", "float32"]  # fmt: skip
    log = (chat_model.parent / "serve.log").open("w+")
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    try:
        while True:
            log.seek(0)
            assert process.poll() is None, log.read()[-2000:]
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1).close()
                break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(timeout=30)
        log.close()


# --- a real model in this process --------------------------------------------------------------


def ask_here(questionnaire, model, store, **how):
    how = {"dtype": "float32", "batch_size": 1, "ask_again": 0} | how
    return ask(questionnaire, model, store, "chat", progress=False, **how)


def test_a_model_replies_here_as_behind_a_server_and_is_kept(server, chat_model, tmp_path):
    there = ask_chat(FOUR, str(chat_model), runs=1, batch_size=1, base_url=server,
                     store=tmp_path / "there")  # fmt: skip
    here = ask_here(FOUR, [chat_model], tmp_path / "here", runs=1)
    assert here["value"].tolist() == [*LEARNT.values()]
    assert here[["item_id", "raw", "value"]].equals(there[["item_id", "raw", "value"]])
    assert (here["respondent_id"] == "taught").all()
    again = ask_here(FOUR, [chat_model], tmp_path / "here", runs=2)  # the second run is new
    assert again.attrs["summary"]["from_store"] == again.attrs["summary"]["asked"] == 4
    kept = kept_replies(tmp_path / "here", "taught")
    assert (kept["finish_reason"] == "stop").all()
    assert kept["usage"].iloc[0] == '{"completion_tokens": 5}'


def test_a_run_that_is_stopped_keeps_the_replies_it_had(chat_model, tmp_path, monkeypatch):
    from psychometrics.modes import generation

    whole, calls = generation._generate, []

    def once(*args):
        calls.append(1)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return whole(*args)

    with monkeypatch.context() as patch:
        patch.setattr(generation, "_generate", once)
        patch.setattr(generation.replies, "__defaults__", (0.0, 256, None, 2, None, None))
        with pytest.raises(KeyboardInterrupt):
            ask_here(FOUR, [chat_model], tmp_path, runs=1)
    after = ask_here(FOUR, [chat_model], tmp_path, runs=1)
    assert after.attrs["summary"]["from_store"] == 2


@pytest.mark.filterwarnings("ignore:.*cut off")
def test_a_drawn_reply_does_not_depend_on_who_else_is_asked(chat_model, tmp_path):
    how = {"temperature": 2.0, "wording": "v2", "max_tokens": 6}
    many = ask_here(FOUR, [chat_model], tmp_path / "many", runs=3, **how)
    one = ask_here(FOUR, [chat_model], tmp_path / "one", runs=1, **how)
    other = ask_here(FOUR, [chat_model], tmp_path / "one", runs=1, seed=1, **how)
    assert one["raw"].tolist() == many[many["run"] == 1]["raw"].tolist()
    assert one["raw"].tolist() != other.sort_values("item_id")["raw"].tolist()
    assert many["raw"].nunique() > 6


def test_a_reply_cut_off_by_the_limit_is_said_to_be(chat_model, tmp_path):
    with pytest.warns(UserWarning, match="taught: 4 replies about four .* max_tokens"):
        answers = ask_here(FOUR, [chat_model], tmp_path, runs=1, max_tokens=2)
    assert answers["status"].tolist() == ["cut_off"] * 4
    assert set(answers["raw"]) == {"1:"}  # which is no label
    with pytest.warns(UserWarning, match="cut off"):  # also where it is kept
        ask_here(FOUR, [chat_model], tmp_path, runs=1, max_tokens=2)


def test_of_a_reply_cut_off_whole_lines_count_and_a_refusal_stays_one(tmp_path):
    how = {**Chat.conditions, "ask_again": 0, "shuffle": False, "runs": 1}

    def status(reply):
        talk = talks_of(FOUR, how)[0]
        next(talk)
        with pytest.raises(StopIteration) as end:
            talk.send(Reply(reply, "length"))
        return [row["status"] for row in end.value.value]

    assert status("1: 4\n2: 3\n3: 1") == ["ok", "ok", "cut_off", "cut_off"]
    assert status("As a language model, I cannot") == ["refused"] * 4


@pytest.mark.parametrize("how", [{}, {"order": "reversed", "ask_again": 1}])
def test_a_constrained_reply_is_always_read_whatever_the_model_would_say(chat_model, tmp_path, how):
    how |= {"wording": "v2", "batch_size": 4, "temperature": 5.0, "runs": 5, "constrained": True}
    answers = ask_here(FOUR, [chat_model], tmp_path, **how)
    assert (answers["status"] == "ok").all()
    assert answers["value"].nunique() > 1
    assert answers["raw"].str.count("\n").eq(3).all()


def test_who_holds_no_conversation_is_refused(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    for model, said in (("minilm-mnli-l3-s16", "judges pairs"), ("gpt-4", "or name a model on")):
        with pytest.raises(RespondentError, match=said):
            ask_here(FOUR, model, tmp_path)


def test_draws_follow_the_models_distribution_and_a_form_takes_the_longer_text_too(chat_model):
    import torch

    from psychometrics.models.loading import load_model
    from psychometrics.modes.generation import encode, replies

    model, tokenizer = load_model(chat_model, "causal")
    talk = messages(FOUR, FOUR.items[:1])
    with torch.no_grad():
        logits = model(torch.tensor([encode(tokenizer, talk)])).logits[0, -1]
    expected = (logits / 4).softmax(-1)
    drawn = replies((model, tokenizer), [talk] * 1000, temperature=4.0, max_tokens=1)
    for token in expected.topk(5).indices.tolist():
        share = np.mean([one["reply"] == tokenizer.decode([token]) for one in drawn])
        assert share == pytest.approx(expected[token].item(), abs=0.05)
    (one,) = replies((model, tokenizer), [talk], forms=[[["1", "1: 4"]]])
    assert one["reply"] == "1: 4"


def test_no_pad_token_and_a_template_without_system_text_are_no_hindrance(chat_model, tmp_path):
    from psychometrics.models.loading import load_model
    from psychometrics.modes.generation import encode, replies

    model, tokenizer = load_model(chat_model, "causal")
    talks = [messages(FOUR, [item]) for item in FOUR.items]
    before = replies((model, tokenizer), talks, max_tokens=12)
    tokenizer.pad_token = None
    assert replies((model, tokenizer), talks, max_tokens=12) == before
    plain = encode(tokenizer, talks[0])
    tokenizer.chat_template = (
        "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}"
        + tokenizer.chat_template
    )
    merged = tokenizer.decode(encode(tokenizer, talks[0]))
    assert talks[0][0]["content"] in merged
    assert len(encode(tokenizer, talks[0])) != len(plain)
    tokenizer.chat_template = "{{ raise_exception('never') }}"
    with pytest.raises(RespondentError, match="does not accept the conversation"):
        encode(tokenizer, talks[0])
    tokenizer.eos_token = None
    model.generation_config.eos_token_id = None
    with pytest.raises(RespondentError, match="no token that ends"):
        replies((model, tokenizer), talks)


def test_a_base_model_without_a_template_is_refused_with_the_mode_to_use(chat_model, tmp_path):
    from transformers import AutoTokenizer

    plain = tmp_path / "plain"
    shutil.copytree(chat_model, plain)
    tokenizer = AutoTokenizer.from_pretrained(plain)
    tokenizer.chat_template = None
    (plain / "chat_template.jinja").unlink(missing_ok=True)
    tokenizer.save_pretrained(plain)
    with pytest.raises(RespondentError, match="options"):
        ask_here(FOUR, [plain], tmp_path, runs=1)
