"""What leaves for an endpoint, and what is said of it: secrets go to nobody and are not shown."""

from __future__ import annotations

import base64
import json
import time
import urllib.parse

import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psychometrics.asking.ask import ask
from psychometrics.endpoints import request_queue
from psychometrics.endpoints.client import _find_proxy
from psychometrics.endpoints.endpoint import Endpoint
from psychometrics.endpoints.secrets import _find_secrets, _mask_secrets, mask_conditions
from psychometrics.exceptions import ParameterError, RespondentError

from .test_respondents_chat import FOUR, QUICK, ask_chat, completion, http, raw_server, sends

ANSWER = completion("1: 4\n2: 4\n3: 4\n4: 4")
VARIABLES = [f"{name}_proxy" for name in ("http", "https", "all", "no")]


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def recorded(seen):
    """Answer every request, and keep its head."""

    def serve(connection, request):
        seen.append(request.partition(b"\r\n\r\n")[0].decode())
        connection.sendall(http(200, ANSWER))

    return serve


def put(url, store, **how):
    return ask_chat(FOUR, "m", store, base_url=url, runs=1, **QUICK | how)


@pytest.mark.parametrize("machine", ["machine 127.0.0.1", "default"])
@pytest.mark.parametrize(
    "how",
    [{}, {"api_key": "sk-key"}, {"api_key": "sk-key", "headers": {"api-key": "{api_key}"}}],
    ids=["no key", "a key", "a header of its own"],
)
def test_no_entry_of_a_netrc_leaves(tmp_path, monkeypatch, machine, how):
    netrc, seen = tmp_path / "netrc", []
    netrc.write_text(f"{machine} login anon password secretpw\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".netrc").write_text(netrc.read_text())
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with raw_server(recorded(seen)) as url:
        answers = put(url, tmp_path / "store", **how)
    assert (answers["status"] == "ok").all()
    basic = base64.b64encode(b"anon:secretpw").decode()
    assert not any(text in seen[0] for text in ("Basic", basic, "secretpw", "anon"))
    assert ("Authorization: Bearer sk-key" in seen[0]) == (how == {"api_key": "sk-key"})


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY", "all_proxy"])
def test_a_proxy_is_taken_from_its_variable_with_its_password_and_no_others(
    tmp_path, monkeypatch, variable
):
    seen = []
    with raw_server(recorded(seen)) as url:
        host = url.removeprefix("http://").removesuffix("/v1")
        monkeypatch.setenv(variable, f"http://me:proxypw@{host}")
        answers = put("http://model.test/v1", tmp_path, api_key="sk-key")
    assert (answers["status"] == "ok").all()
    assert seen[0].startswith("POST http://model.test/v1/chat/completions")
    own = base64.b64encode(b"me:proxypw").decode()
    assert f"Proxy-Authorization: Basic {own}" in seen[0]
    assert "\r\nAuthorization: Bearer sk-key" in seen[0]


def test_no_proxy_and_an_empty_variable_mean_a_direct_request(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "proxy.test:3128")
    assert _find_proxy("https://model.test/v1") == "http://proxy.test:3128"
    monkeypatch.setenv("NO_PROXY", "model.test")
    assert _find_proxy("https://model.test:8000/v1") is None
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("ALL_PROXY", "")
    assert _find_proxy("https://model.test/v1") is None


@pytest.mark.parametrize(
    "proxy", ["socks5://me:proxypw@127.0.0.1:9", "socks5h://host", "http://:proxypw@:9"]
)
def test_a_proxy_that_cannot_be_gone_through_is_refused_and_nothing_sent(
    tmp_path, monkeypatch, proxy
):
    seen = []
    monkeypatch.setenv("ALL_PROXY", proxy)
    with raw_server(recorded(seen)) as url, pytest.raises(RespondentError) as error:
        put(url, tmp_path)
    assert not seen
    assert "ALL_PROXY" in str(error.value)
    assert "NO_PROXY=127.0.0.1" in str(error.value)
    assert "proxypw" not in str(error.value)


def test_large_headers_are_read(tmp_path):
    many = [f"X-{n}: y" for n in range(500)]
    headers = [f"Content-Security-Policy: {'a' * 30_000}", *many]
    with raw_server(lambda connection, _: connection.sendall(http(200, ANSWER, *headers))) as url:
        assert (put(url, tmp_path)["status"] == "ok").all()


@pytest.mark.parametrize("user", ["user:topsecretpw", "tokenAsUser", "a%40b:top%2Fsecretpw"])
def test_credentials_of_an_address_are_masked_in_every_form(tmp_path, user):
    def repeat(connection, request):
        basic = request.split(b"Basic ")[1].split(b"\r")[0]
        said = b'{"error": "bad: Basic %s, %s"}' % (basic, base64.b64decode(basic))
        connection.sendall(http(401, said))

    with raw_server(repeat) as url, pytest.raises(RespondentError) as error:
        put(url.replace("//", f"//{user}@"), tmp_path)
    said = str(error.value)
    assert "bad: Basic …" in said
    assert not any(text in said for text in ("secretpw", "tokenAsUser", "dXNlcjp", "dG9rZW5B"))


@pytest.mark.parametrize(
    "address",
    ["http://user:hunter2@secret@host/v1", "http://user:hunter2@a..b/v1",
     f"http://user:hunter2@{'x' * 300}/v1", "http://user:hunter2@host:99999/v1",
     "http://user:pass@hunter2/secret@host/v1"],
)  # fmt: skip
def test_an_invalid_address_is_refused_and_not_shown(address, monkeypatch):
    for made in (lambda: Endpoint(address), Endpoint().resolved):
        monkeypatch.setenv("OPENAI_BASE_URL", address)
        with pytest.raises(ParameterError, match="base_url") as error:
            made()
        assert "hunter2" not in str(error.value)
        assert "secret@" not in str(error.value)


@pytest.mark.parametrize("name", ["Content-Length", "transfer-encoding", "", "a b", "a:b", "é"])
def test_headers_that_would_break_a_request_are_refused(name):
    with pytest.raises(ParameterError, match="headers"):
        Endpoint("http://host/v1", headers={name: "3"})


def test_an_address_that_turns_out_wrong_ends_in_one_error(tmp_path):
    with raw_server(sends(ANSWER)), pytest.raises(RespondentError):
        put("http://no-such-host.invalid/v1", tmp_path)


UNREADABLE = {
    "an empty reply": b"",
    "a page": b"<html>Welcome</html>",
    "another shape": b'{"choices": "4"}',
    "a list": b"[]",
    "no choices": b'{"choices": []}',
}


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=list(UNREADABLE))
def test_a_reply_that_cannot_be_read_is_asked_for_twice_whatever_the_retries(tmp_path, body):
    seen = []

    def serve(connection, request):
        seen.append(request)
        sends(body)(connection, request)

    with raw_server(serve) as url, pytest.raises(RespondentError, match="sent up to 2 times each"):
        put(url, tmp_path, batch_size=1, concurrency=1, retries=50)

    assert len(seen) == 6  # three requests in a row, of which each is sent twice


def test_an_endpoint_that_only_fails_is_given_up_soon_whatever_the_retries(tmp_path):
    seen = []

    def fail(connection, request):
        seen.append(request)
        connection.sendall(http(500, b"{}"))

    with raw_server(fail) as url, pytest.raises(RespondentError, match="status 500"):
        put(url, tmp_path, batch_size=1, concurrency=1, retries=1000)

    assert len(seen) == 9  # three requests in a row, of which each is sent three times


@pytest.mark.parametrize(
    ("status", "header"),
    [(503, "X-Nothing: 0"), (503, "Retry-After: 0.1"), (429, "Retry-After: 0.1")],
)
def test_an_endpoint_that_says_it_is_busy_is_waited_for(tmp_path, status, header):
    seen = []

    def serve(connection, request):
        seen.append(request)
        busy = len(seen) < 5
        connection.sendall(http(status, b"{}", header) if busy else http(200, ANSWER))

    with raw_server(serve) as url:
        answers = put(url, tmp_path)

    assert (answers["status"] == "ok").all()
    assert len(seen) == 5


@pytest.mark.parametrize("status", [429, 500, 503, None])
def test_what_is_waited_for_before_the_first_reply_is_said_at_once_and_once(
    tmp_path, monkeypatch, capsys, status
):
    monkeypatch.setattr(request_queue, "_SILENCE", 0.2)
    said = []

    def serve(connection, request):
        said.append(capsys.readouterr().err.count("no reply yet"))
        if status is None:
            time.sleep(0.4)

        fails = status is not None and len(said) < 2
        connection.sendall(http(status, b"{}") if fails else http(200, ANSWER))

    with raw_server(serve) as url:
        place = Endpoint(url, **QUICK)
        ask(FOUR, ["m"], tmp_path, "chat", endpoint=place, runs=3)

    said.append(capsys.readouterr().err.count("no reply yet"))
    assert said[:2] == [0, 1]
    assert sum(said) == 1


KEY = 'sk-"quoted"-0123456789'


def repeats(text, sent):
    """Repeat a text in each field of the reply that is stored."""

    def serve(connection, request):
        sent.append(request.decode())
        reply = json.loads(completion(f"1: 4\nYour key is {text}."))
        usage = {"prompt_tokens": 3, "completion_tokens": 3, "said": text}
        body = json.dumps(reply | {"model": f"m {text}", "usage": usage}).encode()
        connection.sendall(http(200, body))

    return serve


@pytest.mark.parametrize(
    "how",
    [
        {"api_key": KEY}, {"headers": {"api-key": KEY}},
        {"headers": {"Authorization": f"Basic {KEY}"}},
    ],
    ids=["key", "header", "scheme"],
)  # fmt: skip
def test_a_key_that_a_reply_repeats_or_a_request_holds_is_stored_nowhere(tmp_path, how):
    sent = []
    with raw_server(repeats(KEY, sent)) as url:
        answers = put(url, tmp_path, ask_again=0, shuffle=False, **how)
    assert "0123456789" in sent[0]  # it was sent
    shown = answers.to_csv() + str(answers.attrs)
    for part in tmp_path.rglob("*.parquet"):
        table = pq.read_table(part)
        shown += table.to_pandas().to_csv() + str(table.schema.metadata)
    assert "0123456789" not in shown
    assert answers["status"].tolist() == ["ok", "missing", "missing", "missing"]


secret = st.text(alphabet="abcXYZ019-_.~/+=@:%\"'\\ é", min_size=6, max_size=30).filter(
    lambda text: len(text.strip()) > 5
)


@given(secret, secret)
def test_no_secret_of_any_setting_is_left_in_its_conditions(user, password):
    quoted = [urllib.parse.quote(text, safe="") for text in (user, password)]
    basic = base64.b64encode(f"{user}:{password}".encode()).decode()
    conditions = {
        "base_url": [f"https://{quoted[0]}:{quoted[1]}@host/v1"],
        "headers": json.dumps({"api-key": password}),
        "api_key": user,
        "temperature": 0.0,
    }
    masked = mask_conditions(conditions)
    assert masked["temperature"] == 0.0
    assert masked.keys() == conditions.keys()
    for text in (user, password, *quoted, basic, json.dumps(password)[1:-1]):
        assert text not in json.dumps(masked, ensure_ascii=False)
        assert text not in _mask_secrets(f"a {text} b", _find_secrets(conditions))


def test_what_is_no_secret_stays_as_it_is():
    conditions = {"headers": '{"api-key": "{api_key}"}', "temperature": 1, "role": "default"}
    assert mask_conditions(conditions) == conditions


def failing(error, counted):
    def serve(connection, _request):
        counted.append(1)
        connection.sendall(http(200, json.dumps({"error": error}).encode()))

    return serve


@pytest.mark.parametrize(
    "error",
    [
        {"code": "insufficient_quota"}, {"code": None, "type": "invalid_request_error"},
        {"code": 401, "message": "no"}, {"code": "404"}, "model not found",
        {"code": "invalid_api_key"}, {"type": "authentication_error"}, {"code": 402},
    ],
)  # fmt: skip
def test_an_error_with_status_200_that_would_come_again_ends_the_run_at_once(tmp_path, error):
    counted = []
    with (
        raw_server(failing(error, counted)) as url,
        pytest.raises(RespondentError, match="refuses"),
    ):
        put(url, tmp_path, **{"retries": 3, "concurrency": 1})
    assert len(counted) == 1
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.parametrize(
    "error", [{"code": 500}, {"code": "server_error"}, {"message": "x"}, "busy"]
)
def test_an_error_with_status_200_that_may_pass_is_sent_again_and_never_an_answer(tmp_path, error):
    counted = []

    def serve(connection, request):
        counted.append(1)
        body = json.dumps({"error": error}).encode() if len(counted) < 3 else ANSWER
        connection.sendall(http(200, body))

    with raw_server(serve) as url:
        answers = put(url, tmp_path, **{"retries": 3})
    assert (answers["status"] == "ok").all()
    assert len(counted) == 3


def named(models):
    """Reply in the name of one model after another."""
    coming = iter(models)

    def serve(connection, _request):
        body = json.loads(completion("1: 4")) | {"model": next(coming)}
        connection.sendall(http(200, json.dumps(body).encode()))

    return serve


def test_the_model_that_replies_is_stored_and_a_change_is_a_warning_also_from_the_store(tmp_path):
    how = {"batch_size": 1, "concurrency": 1, "shuffle": False}
    with raw_server(named(["m-1", "m-1", "m-2", "m-1"])) as url:
        with pytest.warns(UserWarning, match="m-1, m-2"):
            put(url, tmp_path, **how)
        with pytest.warns(UserWarning, match="m-1, m-2"):
            put(url, tmp_path, **how)  # nothing is sent

    stored = pd.concat(pd.read_parquet(part) for part in tmp_path.rglob("*.parquet"))
    assert sorted(stored["model"]) == ["m-1", "m-1", "m-1", "m-2"]


def test_a_snapshots_name_that_stays_the_same_is_no_warning(tmp_path):
    with raw_server(named(["m-2026-08-06"] * 4)) as url:
        answers = put(url, tmp_path, batch_size=1, concurrency=1)
    assert (answers["status"] == "ok").all()
