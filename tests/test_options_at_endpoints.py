"""Options by the log-probabilities of an endpoint: what is too little for an answer says so."""

from __future__ import annotations

import json
import math

import pandas as pd
import pytest

from psychometrics.asking.ask import ask
from psychometrics.endpoints.endpoint import Endpoint
from psychometrics.exceptions import RespondentError

from .test_respondents_chat import FOUR, http, raw_server

SYSTEM = 'You are an assistant who can only reply numbers from 1 to 5. Format: "index: score".'


def server(probabilities, seen=None):
    """Give the first tokens the probabilities that a function makes from a request's prompt."""

    def serve(connection, request):
        body = json.loads(request.split(b"\r\n\r\n", 1)[1])
        if seen is not None:
            seen.append(body)
        tokens = probabilities(body["messages"][-1]["content"])
        tops = [{"token": token, "logprob": math.log(share)} for token, share in tokens.items()]
        message = {"role": "assistant", "content": "1"}
        choice = {"index": 0, "message": message, "finish_reason": "length"}
        choice["logprobs"] = {"content": [{"top_logprobs": tops}]} if tops else None
        connection.sendall(http(200, json.dumps({"choices": [choice]}).encode()))

    return raw_server(serve)


def put(url, store, questionnaire=FOUR, **how):
    place = Endpoint(url, retries=0, pause=0.01, timeout=5.0, concurrency=1)
    return ask(questionnaire, ["m"], store, "options", progress=False, endpoint=place, **how)


def by_meaning(text):
    """The option 'very accurate' is likely wherever it stands."""
    (label,) = [part[0] for part in text.split(": ")[1].split(", ") if "very accurate" in part]
    return {"The": 0.1, **{name: 0.8 if name == label else 0.02 for name in "12345"}}


CASES = {
    "a label whatever it means": (
        lambda _: {"1": 0.6, "2": 0.1, "3": 0.1, "4": 0.1, "5": 0.05}, "tied", 0.95, 5),
    "one label of five": (
        lambda _: {"The": 0.6, "As": 0.2, "I": 0.1, "1": 0.07}, "unseen_labels", 0.07, 1),
    "seven in a hundred": (
        lambda _: {"A": 0.93, **dict.fromkeys("1234", 0.012), "5": 0.022}, "little_mass", 0.07, 5),
}  # fmt: skip


@pytest.mark.parametrize(("tokens", "status", "mass", "seen"), CASES.values(), ids=list(CASES))
def test_labels_that_say_too_little_are_no_answer(tmp_path, tokens, status, mass, seen):
    with server(tokens) as url:
        answers = put(url, tmp_path)
        shares = put(url, tmp_path, choose="none")
    assert answers["item_id"].tolist() == [item.id for item in FOUR.items]
    assert answers["status"].tolist() == [status] * 4
    assert answers["value"].isna().all()
    assert answers["mass"].to_numpy() == pytest.approx(mass)
    assert answers["labels_seen"].tolist() == [seen] * 4
    assert answers.attrs["summary"]["statuses"] == {status: 4}
    assert shares["probability"].notna().all(), "the probabilities are there for who wants them"
    assert shares["status"].eq("ok").all()


def test_an_unseen_label_that_could_not_matter_is_no_hindrance(tmp_path):
    def sure(text):
        likely = max(by_meaning(text), key=by_meaning(text).get)
        return {likely: 0.999, "The": 1e-6}

    with server(sure) as url:
        answers = put(url, tmp_path)
    assert answers["value"].tolist() == [5.0] * 4
    assert answers["labels_seen"].tolist() == [1] * 4


def test_items_are_judged_one_by_one_and_stay_in_their_order(tmp_path):
    def tokens(text):
        return {"The": 0.99, "1": 0.01} if "chores" in text else by_meaning(text)

    with server(tokens) as url:
        answers = put(url, tmp_path, runs=2, choose="draw")
    assert answers["status"].tolist() == ["ok", "ok", "unseen_labels", "ok"] * 2
    assert answers["run"].tolist() == [1] * 4 + [2] * 4
    with server(lambda _: {"The": 0.9}) as url, pytest.raises(RespondentError, match="none of the"):
        put(url, tmp_path / "b")
    with server(lambda _: {}) as url, pytest.raises(RespondentError, match="no log-probabilities"):
        put(url, tmp_path / "c")


def llama_server(connection, request):
    """Reply in the form of llama-server, whose tokens have ids and bytes beside their text.

    A probability of zero is the logarithm of the lowest float32, and a letter and its byte are two
    tokens of one text, the likelier first.
    """
    body = json.loads(request.split(b"\r\n\r\n", 1)[1])
    shares = [*by_meaning(body["messages"][-1]["content"]).items()] if "logprobs" in body else []
    tops = [(token, math.log(share)) for token, share in shares]
    tops += [(token, math.log(0.001)) for token, _ in shares[1:2]]
    tops += [("\ufffd", -3.4028234663852886e38)]
    tokens = [{"id": 300 + place, "token": token, "bytes": [*token.encode()], "logprob": logprob}
              for place, (token, logprob) in enumerate(tops)]  # fmt: skip
    message = {"role": "assistant", "content": "1: 2\n2: 2\n3: 2\n4: 2"}
    choice = {"finish_reason": "length", "index": 0, "message": message}
    if "logprobs" in body:
        choice["logprobs"] = {"content": [{**tokens[0], "top_logprobs": tokens}]}
    else:
        choice["finish_reason"] = "stop"
    usage = {"completion_tokens": 1, "prompt_tokens": 40, "total_tokens": 41,
             "prompt_tokens_details": {"cached_tokens": 30}}  # fmt: skip
    reply = {"choices": [choice], "created": 1764300000, "model": "tiny-Q4_K_M",
             "system_fingerprint": "b6900-1a2b3c4d", "object": "chat.completion", "usage": usage,
             "id": "chatcmpl-x", "timings": {"cache_n": 30, "prompt_n": 10}}  # fmt: skip
    connection.sendall(http(200, json.dumps(reply).encode()))


def test_a_model_in_four_bits_answers_from_llama_server_under_a_name_with_its_precision(tmp_path):
    with raw_server(llama_server) as url:
        place = Endpoint(url, retries=0)
        how = {"progress": False, "endpoint": place}
        options = ask(FOUR, ["tiny-Q4_K_M"], tmp_path, "options", **how)
        chat = ask(FOUR, ["tiny-Q4_K_M"], tmp_path, "chat", **how)

    assert options["value"].tolist() == [5.0] * 4
    # The labels have .8 and four times .02; the byte of the first label adds .001.
    assert options["mass"].to_numpy() == pytest.approx(0.881)
    assert chat["value"].tolist() == [2.0] * 4
    for answers in (options, chat):
        assert answers["respondent_id"].str.contains("tiny-Q4_K_M").all()


@pytest.mark.parametrize("labels", ["numeric", "alphabetical"])
def test_a_files_system_text_reaches_an_endpoint_without_the_form_of_longer_replies(
    tmp_path, labels
):
    own, seen = FOUR.model_copy(update={"system": SYSTEM}), []
    letters = dict.fromkeys("ABCDE12345", 0.1)
    with server(lambda _: letters, seen) as url:
        put(url, tmp_path, own, labels=labels, choose="expected")
        put(url, tmp_path, own, labels=labels, choose="expected", role="You are a sailor.")
    system = {body["messages"][0]["content"] for body in seen}
    assert len(system) == 2
    assert sum("You are a sailor." in text for text in system) == 1
    assert sum("only reply numbers from 1 to 5." in text for text in system) == (
        labels == "numeric"
    )
    assert not any("Format" in text for text in system)


def test_a_dry_run_has_what_would_be_sent(tmp_path):
    answers = put("http://127.0.0.1:9/v1", tmp_path, dry_run=True, log=True)
    assert answers["status"].eq("unasked").all()
    assert answers["sent"].map(json.loads).map(len).eq(5).all(), "an order of options each"
    assert isinstance(answers, pd.DataFrame)


NO_PROBABILITIES = {
    "infinite": dict.fromkeys("12345", float("inf")),
    "huge": dict.fromkeys("12345", 1e308),
    "no number": {"1": float("nan"), "2": -1.0},
    "true": dict.fromkeys("12345", True),
    "more than one in sum": {label: -0.1 * place for place, label in enumerate("12345")},
}


def replying(logprobs):
    """Reply with 1 and with these log-probabilities, whether or not they are asked for."""
    tops = [{"token": token, "logprob": logprob} for token, logprob in logprobs.items()]
    message = {"role": "assistant", "content": "1: 2\n2: 2\n3: 2\n4: 2"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    choice["logprobs"] = {"content": [{"top_logprobs": tops}]}
    body = json.dumps({"choices": [choice]}).encode()
    return raw_server(lambda connection, _: connection.sendall(http(200, body)))


@pytest.mark.parametrize("logprobs", NO_PROBABILITIES.values(), ids=list(NO_PROBABILITIES))
def test_log_probabilities_that_are_none_are_no_answer(tmp_path, logprobs):
    with replying(logprobs) as url, pytest.raises(RespondentError):
        put(url, tmp_path)


def test_log_probabilities_that_were_not_asked_for_do_not_replace_a_reply(tmp_path):
    with replying({"1": -0.1}) as url:
        place = Endpoint(url, retries=0)
        answers = ask(FOUR, ["m"], tmp_path, "chat", progress=False, endpoint=place)

    assert answers["value"].tolist() == [2.0] * 4


def test_an_endpoint_is_asked_for_one_token_and_as_many_probabilities_as_openai_gives(tmp_path):
    seen = []
    with server(by_meaning, seen) as url:
        put(url, tmp_path)
    assert {body["top_logprobs"] for body in seen} == {20}
    assert {body["logprobs"] for body in seen} == {True}
    assert {body["max_tokens"] for body in seen} == {1}
