"""The chat route against real servers: one that misbehaves on purpose, and `transformers serve`."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pandas as pd
import pytest

from psychometrics.answers import COLUMNS
from psychometrics.ask import answer
from psychometrics.exceptions import ParameterError, RespondentError, StoreError
from psychometrics.messages import messages
from psychometrics.questionnaires import load_questionnaire
from psychometrics.respondents.chat import ask_chat, batches, read_replies, replies_path
from psychometrics.respondents.endpoint import REFUSAL, simulated_endpoint
from psychometrics.respondents.options import ask_logits
from psychometrics.respondents.persons import ask_custom, draw_traits

MINI = load_questionnaire("ipip20")
FOUR = MINI.model_copy(update={"id": "four", "items": MINI.items[:4], "scales": ()})
QUICK = {"retries": 4, "pause": 0.01, "timeout": 0.5, "concurrency": 1}


@contextmanager
def scripted(script=(), delay: float = 0.0, reply=None):
    """A server that does what the script says, request by request, and answers after its end."""
    seen, times, lock = [], [], threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with lock:
                step = script[len(seen)] if len(seen) < len(script) else "answer"
                seen.append(json.loads(body))
                times.append(time.monotonic())
            time.sleep(delay)
            user = seen[-1]["messages"][-1]["content"]
            count = sum(line[:1].isdigit() for line in user.splitlines())
            text = "\n".join(f"{i}: 4" for i in range(1, count + 1))
            if reply is not None:
                text = reply(count)
            if step == "refuse":
                text = REFUSAL
            elif step == "time out":
                time.sleep(1.0)
            whole = json.dumps(
                {"choices": [{"message": {"role": "assistant", "content": text}, "index": 0,
                              "finish_reason": "stop"}],
                 "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}}
            ).encode()  # fmt: skip
            if step == "garbage":
                self.send(200, b"<html>Gateway</html>")
            elif step == "no choices":
                self.send(200, b'{"choices": []}')
            elif step == "drop":
                self.send(200, whole[: len(whole) // 2], length=len(whole))
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
            elif step == "429":
                self.send(429, b'{"error": {"message": "slow down"}}', after="0.4")
            elif isinstance(step, int):
                self.send(step, b'{"error": {"message": "no"}}')
            else:
                self.send(200, whole)

        def send(self, status, body, length=None, after=None):
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(length or len(body)))
                if after:
                    self.send_header("Retry-After", after)
                self.end_headers()
                self.wfile.write(body)
            except OSError:  # the client has hung up, as it should after its time-out
                self.close_connection = True

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", seen, times
    finally:
        server.shutdown()
        server.server_close()


def test_every_kind_of_failure_is_survived_recorded_and_never_becomes_an_answer(tmp_path):
    script = ["time out", "garbage", "drop", 500, "answer", "no choices", "429", "refuse", "answer"]
    with scripted(script) as (url, seen, times):
        answers = ask_chat(FOUR, "m", runs=2, base_url=url, store=tmp_path, **QUICK)
    assert answers.columns[:7].tolist() == list(COLUMNS)
    assert answers["status"].tolist() == ["ok"] * 8
    assert answers["value"].tolist() == [4.0] * 8
    assert answers["attempts"].tolist() == [1] * 4 + [2] * 4  # the refusal is the second run's
    assert len(seen) == len(script)
    assert times[7] - times[6] >= 0.4  # Retry-After
    kept = read_replies(replies_path(tmp_path, "m", "four"))
    assert kept["error"].notna().sum() == 6
    assert kept["reply"].dropna().tolist()[1] == REFUSAL
    assert (
        kept["usage"].dropna().tolist()
        == [{"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}] * 3
    )


def test_what_stays_refused_or_wrong_is_recorded_as_such_after_the_set_number_of_times(tmp_path):
    with scripted(reply=lambda n: "1: 4\n2: 9\nAs a language model I cannot say.") as (
        url,
        seen,
        _,
    ):
        answers = ask_chat(FOUR, "m", runs=1, ask_again=1, batch_size=4, base_url=url,
                           shuffle=False, store=tmp_path, **QUICK)  # fmt: skip
    # First 1 and 3.. of four; then the three that are left, of which the first is answered.
    assert answers["status"].tolist() == ["ok", "ok", "out_of_range", "refused"]
    assert answers["value"].isna().tolist() == [False, False, True, True]
    assert answers["attempts"].tolist() == [1, 2, 2, 2]
    assert len(seen) == 2


def test_a_second_call_sends_nothing_and_a_changed_question_is_sent(tmp_path):
    with scripted() as (url, seen, _):
        first = ask_chat(FOUR, "m", runs=3, base_url=url, store=tmp_path, **QUICK)
        second = ask_chat(FOUR, "m", runs=3, base_url=url, store=tmp_path, **QUICK)
        assert len(seen) == 3
        pd.testing.assert_frame_equal(first, second)
        ask_chat(FOUR, "m", runs=4, base_url=url, store=tmp_path, **QUICK)  # one run more
        assert len(seen) == 4
        ask_chat(FOUR, "m", runs=3, role="hero", base_url=url, store=tmp_path, **QUICK)
        assert len(seen) == 7


def test_no_reply_is_recorded_and_a_dead_endpoint_stops_the_run_with_one_sentence(tmp_path):
    settings = QUICK | {"retries": 1}
    with scripted([500, 500]) as (url, _, _):
        answers = ask_chat(FOUR, "m", runs=2, base_url=url, store=tmp_path / "a", **settings)
    assert answers["status"].tolist() == ["no_reply"] * 4 + ["ok"] * 4
    with pytest.raises(RespondentError, match="gave no reply to 3 requests in a row"):
        ask_chat(FOUR, "m", runs=9, base_url=url, store=tmp_path / "b", **settings)  # closed now


@pytest.mark.parametrize("status", [400, 401, 404])
def test_what_no_retry_can_mend_stops_at_once(tmp_path, status):
    with scripted([status] * 9) as (url, seen, _), pytest.raises(RespondentError, match="refuses"):
        ask_chat(FOUR, "m", runs=5, base_url=url, store=tmp_path, **QUICK)
    assert len(seen) == 1


def test_concurrency_and_requests_per_minute_are_kept(tmp_path):
    with scripted(delay=0.3) as (url, _, times):
        ask_chat(FOUR, "m", runs=6, concurrency=3, base_url=url, store=tmp_path / "a")
        begun = sorted(times)
        at_once = [sum(t <= u < t + 0.3 for t in begun) for u in begun]
        assert 2 <= max(at_once) <= 3
        times.clear()
        ask_chat(FOUR, "m", runs=4, concurrency=4, requests_per_minute=300, base_url=url,
                 store=tmp_path / "b")  # fmt: skip
    assert times[-1] - times[0] > 0.5  # three gaps of 0.2


def test_a_run_that_was_killed_goes_on_and_no_kept_reply_is_asked_for_again(tmp_path):
    program = (
        "import sys; from psychometrics.respondents.chat import ask_chat; "
        "from psychometrics.questionnaires import load_questionnaire; "
        "ask_chat(load_questionnaire('ipip20'), 'm', runs=5, batch_size=4, concurrency=1, "
        "base_url=sys.argv[1], store=sys.argv[2])"
    )
    path = replies_path(tmp_path, "m", "ipip20")
    with scripted(delay=0.1) as (url, seen, _):
        child = subprocess.Popen([sys.executable, "-c", program, url, str(tmp_path)])
        deadline = time.monotonic() + 60
        while not (path.exists() and path.read_bytes().count(b"\n") >= 5):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.kill(child.pid, signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
        kept = [r["request"]["messages"] for r in read_replies(path).to_dict("records")]
        with path.open("ab") as file:  # as if the power had failed within a line
            file.write(b'{"key": "abc", "rep')
        before = len(seen)
        answers = ask_chat(MINI, "m", runs=5, batch_size=4, concurrency=1, base_url=url,
                           store=tmp_path)  # fmt: skip
    assert 5 <= len(kept) < 25
    again = [request["messages"] for request in seen[before:]]
    assert len(again) == 25 - len(kept)
    assert not [request for request in again if request in kept]
    times = Counter(json.dumps(request["messages"]) for request in seen)
    assert sum(times.values()) - len(times) <= 1  # at most the one on its way when it was killed
    assert (answers["status"] == "ok").all()
    assert len(answers) == 100
    assert len(read_replies(path)) == 25


def test_statements_are_shuffled_by_seed_and_run_and_batched_whole():
    plan = batches(MINI, 3, True, 8, "given", seed=5)
    assert [len(batch["items"]) for batch in plan] == [8, 8, 4] * 3
    runs = [
        [item.id for b in plan if b["run"] == run for item, _, _ in b["items"]] for run in (1, 2, 3)
    ]
    assert all(sorted(ids) == sorted(i.id for i in MINI.items) for ids in runs)
    assert len({tuple(ids) for ids in runs}) == 3
    assert batches(MINI, 5, True, 8, "given", seed=5)[:9] == plan  # more runs change none before
    assert batches(MINI, 3, True, 8, "given", seed=6) != plan


@pytest.mark.parametrize(
    "how",
    [
        {"labels": "alphabetical"},
        {"option_order": "reversed"},
        {"option_order": "shuffled", "labels": "alphabetical"},
        {"shift": 3},
        {"shift": 3, "labels": "alphabetical", "option_order": "reversed"},
        {"wording": "v2", "think": True, "role": "liar"},
        {"wording": "v3", "role": "none"},
        {"wording": "v4", "role": "You are a sailor."},
        {"wording": "v5", "batch_size": 1},
    ],
    ids=str,
)
def test_extreme_traits_come_back_exactly_however_they_are_asked(tmp_path, how):
    traits = draw_traits(MINI, 2) * 0 + 60.0  # so far out that chance has no part
    with simulated_endpoint(MINI, traits) as url:
        answers = ask_chat(MINI, "simulated-1", runs=1, base_url=url, store=tmp_path, **how)
    reverse = {item for scale in MINI.scales for item in scale.reverse}
    expected = [1.0 if item in reverse else 5.0 for item in answers["item_id"]]
    assert answers["value"].tolist() == expected


def test_refusals_and_strays_cost_requests_but_no_answers_are_made_up(tmp_path):
    traits = draw_traits(MINI, 1) * 0 + 60.0
    with simulated_endpoint(MINI, traits, refuses=0.3, strays=0.2, seed=3) as url:
        answers = ask_chat(MINI, "simulated-1", runs=6, base_url=url, store=tmp_path)
    assert answers["attempts"].max() == 3
    assert (answers["status"] == "ok").mean() > 0.9
    good = answers[answers["status"] == "ok"]
    assert set(good["value"]) == {1.0, 5.0}
    with simulated_endpoint(MINI, traits, refuses=1.0) as url:
        answers = ask_chat(MINI, "simulated-1", runs=1, base_url=url, store=tmp_path / "b")
    assert set(answers["status"]) == {"refused"}


def test_a_liking_for_the_first_option_turns_with_the_order_and_an_unknown_model_is_refused(
    tmp_path,
):
    traits = draw_traits(MINI, 1) * 0
    with simulated_endpoint(MINI, traits, first_option=1.0) as url:
        given = ask_chat(MINI, "simulated-1", runs=1, base_url=url, store=tmp_path)
        turned = ask_chat(
            MINI, "simulated-1", runs=1, option_order="reversed", base_url=url, store=tmp_path
        )
        with pytest.raises(RespondentError, match="There is no model 'nobody'"):
            ask_chat(MINI, "nobody", runs=1, base_url=url, store=tmp_path)
    assert set(given["value"]) == {1.0}
    assert set(turned["value"]) == {5.0}


def test_wrong_parameters_and_a_missing_endpoint_are_refused_before_anything_is_sent(
    tmp_path, monkeypatch
):
    with scripted() as (url, seen, _):
        for wrong in (
            {"runs": 0},
            {"batch_size": 1.5},
            {"ask_again": -1},
            {"timeout": 0},
            {"role": "clown"},
            {"wording": "v9"},
            {"labels": "roman"},
            {"option_order": "random"},
            {"model": ""},
        ):
            with pytest.raises(ParameterError, match=next(iter(wrong)).split("_")[0]):
                ask_chat(FOUR, **({"model": "m", "base_url": url, "store": tmp_path} | wrong))
        assert not seen
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(RespondentError, match="OPENAI_BASE_URL"):
        ask_chat(FOUR, "m", store=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be"):
        ask_chat(FOUR, "m", base_url="http://127.0.0.1:9/v1", store=tmp_path / "file")


def test_address_and_key_come_from_the_environment(tmp_path, monkeypatch):
    with scripted() as (url, seen, _):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", "secret-key")
        answers = answer(FOUR, "chat", model="m", runs=1, store=tmp_path)
    assert len(seen) == 1
    assert (answers["mode"] == "chat").all()
    assert "secret-key" not in replies_path(tmp_path, "m", "four").read_text()


# --- a real model behind a real server -------------------------------------------------------

LEARNT = {"ipip20_1": 4, "ipip20_2": 2, "ipip20_3": 5, "ipip20_4": 1}


@pytest.fixture(scope="module")
def chat_model(tmp_path_factory) -> Path:
    """A small Llama that was taught here what to answer to each of four statements."""
    import torch
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    from psychometrics.respondents.options import _one_item

    asked = []
    for item in FOUR.items:
        prompt = messages(FOUR, [item])
        asked.append((*(m["content"] for m in prompt), f"1: {LEARNT[item.id]}"))
        asked.append((*_one_item(prompt), str(LEARNT[item.id])))
    words = pre_tokenizers.Split(Regex(r"\w+|\s|[^\w\s]"), "isolated")
    template = (
        "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}"
    )
    found = {w for row in asked for text in row for w, _ in words.pre_tokenize_str(text)}
    special = ["<unk>", "<eos>", "<system>", "<user>", "<assistant>"]
    vocab = {word: i for i, word in enumerate([*special, *sorted(found)])}
    core = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
    core.pre_tokenizer, core.decoder = words, decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, unk_token="<unk>", eos_token="<eos>", pad_token="<eos>",
        additional_special_tokens=special[2:],
    )  # fmt: skip
    tokenizer.chat_template = template
    rows = []
    for system, user, reply in asked:
        text = f"<system>{system}<user>{user}<assistant>"
        start, end = tokenizer(text)["input_ids"], tokenizer(f"{reply}<eos>")["input_ids"]
        rows.append((start + end, [-100] * len(start) + end))
    width = max(len(ids) for ids, _ in rows)
    ids = torch.tensor([a + [1] * (width - len(a)) for a, _ in rows])
    labels = torch.tensor([b + [-100] * (width - len(b)) for _, b in rows])
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(vocab), hidden_size=64, intermediate_size=128, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=512,
            bos_token_id=None, eos_token_id=1, pad_token_id=1,
        )
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(400):
        loss = model(input_ids=ids, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if loss < 0.01:
            break
    assert loss < 0.05
    folder = tmp_path_factory.mktemp("chat") / "taught"
    model.generation_config.max_new_tokens = 12
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def server(chat_model):
    """`transformers serve` with that model on loopback."""
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
        for _ in range(600):
            if process.poll() is not None:
                log.seek(0)
                pytest.fail(f"transformers serve ended: {log.read()[-2000:]}")
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1).close()
                break
            except OSError:
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(timeout=30)
        log.close()


def test_a_real_model_behind_transformers_serve_says_what_it_was_taught(
    server, chat_model, tmp_path
):
    how = {"runs": 2, "batch_size": 1, "base_url": server, "store": tmp_path, "respondent_id": "t"}
    answers = ask_chat(FOUR, str(chat_model), concurrency=2, **how)
    assert answers["status"].tolist() == ["ok"] * 8
    assert answers["value"].tolist() == [*LEARNT.values()] * 2
    kept = read_replies(replies_path(tmp_path, "t", "four"))
    assert set(kept["reply"]) == {f"1: {value}" for value in LEARNT.values()}
    assert (kept["finish_reason"] == "stop").all()


def test_the_same_model_answers_alike_by_chat_by_its_logits_and_through_a_function(
    server, chat_model, tmp_path
):
    from openai import OpenAI

    by_logits = ask_logits(FOUR, chat_model, permutations="given", store=tmp_path)
    with OpenAI(base_url=server, api_key="none", max_retries=0) as client:

        def generate(prompt):
            reply = client.chat.completions.create(model=str(chat_model), messages=prompt)
            return reply.choices[0].message.content

        by_function = ask_custom(FOUR, generate, batch_size=1)
    assert by_logits["value"].tolist() == list(LEARNT.values())
    assert by_function["value"].tolist() == list(LEARNT.values())
    assert (by_logits["probability"] > 0.9).all()


def test_a_batch_that_the_model_was_not_taught_is_never_guessed_at(server, chat_model, tmp_path):
    answers = ask_chat(FOUR, str(chat_model), runs=1, batch_size=4, ask_again=0, base_url=server,
                       store=tmp_path, wording="v2")  # fmt: skip
    for row in answers.to_dict("records"):
        if row["status"] == "ok":  # then its line stands in the reply, letter by letter
            assert f"{row['position']}: {row['value']:g}" in row["raw"].splitlines()
        else:
            assert pd.isna(row["value"])
