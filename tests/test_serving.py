"""Null respondents find items and options in prompts of other tools, and answer as they should."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import psychometrics as pm
from psychometrics.cli.options import app
from psychometrics.data import shipped
from psychometrics.endpoints.endpoint import Endpoint
from psychometrics.exceptions import ParameterError
from psychometrics.modes import simulated
from psychometrics.nulls.respondents import NullRespondent
from psychometrics.serving import protocol
from psychometrics.serving.forms import NO_QUESTION, Answer, fill_schema
from psychometrics.serving.prompts import Choice, Question, find_questions
from psychometrics.serving.protocol import write_replies
from psychometrics.serving.respondents import SIMPLE, Respondents
from psychometrics.serving.server import KEY_VARIABLE, NullServer
from tests.serving_prompts import FORMS, PARTY, WITHOUT_OPTIONS, WORDS

MINI = pm.load_questionnaire("ipip20")
RESPONDENTS = Respondents()
ACCURACY = tuple(Choice(str(n), word) for n, word in enumerate(WORDS, start=1))
EXTREME = "simulated-extraversion=9,agreeableness=-9,conscientiousness=9,neuroticism=-9,intellect=9"


def _request(text: str, model: str = "agrees", **fields) -> dict:
    return {"model": model, "messages": [{"role": "user", "content": text}], **fields}


def _reply(text: str, model: str = "agrees", **fields) -> str:
    return write_replies(RESPONDENTS, _request(text, model, **fields))[0].text


def test_there_are_forms_of_ten_tools_and_more():
    assert len(FORMS) >= 25
    assert len({form.name for form in FORMS}) == len(FORMS)


@pytest.mark.parametrize("form", FORMS, ids=[form.name for form in FORMS])
def test_items_and_options_of_a_tools_prompt_are_found_and_answered_in_its_form(form):
    questions = find_questions(form.text, form.system)
    assert [question.text for question in questions] == form.items
    if form.labels:
        assert all([c.label for c in one.choices] == form.labels for one in questions)

    messages = [{"role": "user", "content": form.text}]
    if form.system:
        messages.insert(0, {"role": "system", "content": form.system})
    (reply,) = write_replies(RESPONDENTS, {"model": "agrees", "messages": messages})
    assert reply.text == form.reply


@pytest.mark.parametrize("text", WITHOUT_OPTIONS)
def test_a_prompt_without_options_gets_a_sentence_that_says_so(text):
    assert find_questions(text) == []
    assert _reply(text) == NO_QUESTION


@pytest.mark.parametrize(
    "unit",
    [
        "1. a\n",
        "a=",
        "options ",
        "rate",
        "\n",
        "A) b\n",
        "{",
        "from ",
        '{"a":',
        "- ",
        "Q1: a\n",
        "[ ] a\n",
    ],
)
@pytest.mark.timeout(60)
def test_no_prompt_keeps_the_server_busy(unit):
    _reply(unit * (60_000 // len(unit)))


@pytest.mark.parametrize(("model", "kind"), [("middle", "middle"), ("agrees", "agree")])
@pytest.mark.parametrize("name", ["ipip20", "gad7", "esteem10"])
def test_a_constant_null_scores_as_the_same_null_asked_directly(model, kind, name):
    questionnaire = pm.load_questionnaire(name)
    rows = []
    for item in questionnaire.items:
        sent = pm.messages.messages(questionnaire, [item])
        reply = write_replies(RESPONDENTS, {"model": model, "messages": sent})[0].text
        rows.append(pm.replies.parse_reply(reply, questionnaire, [item])[0][1])
    direct = pm.styles.empty_answers(name, kind, runs=1)
    assert rows == direct["value"].tolist()


def test_options_shown_from_the_last_or_dealt_are_ordered_by_their_words():
    question = Question(
        PARTY, tuple(Choice(c, w) for c, w in zip("ABCDE", WORDS[::-1], strict=True))
    )
    assert RESPONDENTS.shares("agrees", question).argmax() == 0
    dealt = Question(PARTY, tuple(Choice(str(n), WORDS[n]) for n in (2, 0, 4, 1, 3)))
    assert RESPONDENTS.rising(dealt.choices) == (1, 3, 0, 4, 2)
    ends = (Choice("1", "strongly agree"), Choice("2", "2"), Choice("3", "strongly disagree"))
    assert RESPONDENTS.rising(ends) == (2, 1, 0)


def test_shares_of_simple_respondents():
    question = Question("This is an item about nothing.", ACCURACY)
    expected = {
        "random": [0.2] * 5,
        "first-option": [1, 0, 0, 0, 0],
        "middle": [0, 0, 1, 0, 0],
        "agrees": [0, 0, 0, 0, 1],
        "extreme": [0.5, 0, 0, 0, 0.5],
        "desirable": [0, 0, 1, 0, 0],
        "repeats-last": [0.2] * 5,
    }
    assert set(expected) == set(SIMPLE)
    for name, shares in expected.items():
        assert RESPONDENTS.shares(name, question).tolist() == shares
    assert RESPONDENTS.shares("repeats-last", question, "4").tolist() == [0, 0, 0, 1, 0]


def test_a_habit_prefers_the_same_places_in_all_items():
    first, second = (Question(text, ACCURACY) for text in (PARTY, "I like order."))
    shares = RESPONDENTS.shares("habit-3", first)
    assert shares.tolist() == RESPONDENTS.shares("habit-3", second).tolist()
    assert shares.sum() == pytest.approx(1)
    assert shares.tolist() != RESPONDENTS.shares("habit-4", first).tolist()


def test_the_desirable_respondent_knows_keys_and_else_the_feeling_of_an_item():
    high = {"I am the life of the party.": True, "I have frequent mood swings.": False}
    high |= {"I don't talk a lot.": False, "I adore wonderful days.": True, "I hate it.": False}
    for text, is_high in high.items():
        assert RESPONDENTS.shares("desirable", Question(text, ACCURACY)).argmax() == 4 * is_high


def test_a_simulated_respondent_answers_as_the_mode_simulated_does():
    traits = pd.DataFrame({scale.id: np.full(20_000, 0.0) for scale in MINI.scales})
    traits["extraversion"] = 1.0
    traits.index = [f"r{n}" for n in range(len(traits))]
    answers = simulated.answers(MINI, traits, difficulty_sd=0.0)
    for item in MINI.items[:8]:
        values = answers.loc[answers["item_id"] == item.id, "value"]
        frequencies = values.value_counts(normalize=True).reindex([1, 2, 3, 4, 5], fill_value=0)
        question = Question(MINI.statement(item), ACCURACY)
        shares = RESPONDENTS.shares("simulated-extraversion=1", question)
        assert shares == pytest.approx(frequencies.to_numpy(), abs=0.015)


def test_people_answer_as_often_as_the_shipped_counts_say():
    counts = pd.read_csv(shipped("published/counts.csv.gz"))
    row = counts[(counts["condition"] == "people") & (counts["item_id"] == "ipip50_1")]
    expected = row[list("12345")].to_numpy(dtype=float)[0]
    shares = RESPONDENTS.shares("people-ipip50", Question(PARTY, ACCURACY))
    assert shares == pytest.approx(expected / expected.sum())
    for sample in ("gad7", "phq9"):
        questionnaire = pm.load_questionnaire(sample)
        choices = tuple(Choice(f"{o.value:g}", o.label) for o in questionnaire.options)
        question = Question(questionnaire.items[0].text, choices)
        assert RESPONDENTS.shares(f"people-{sample}", question).argmax() < 2
    with pytest.raises(ParameterError, match="people-gad7"):
        RESPONDENTS.shares("people-gad7", Question("I like order.", ACCURACY))


def test_an_impostor_takes_the_option_that_its_untrained_head_finds_most_entailed():
    question = Question(PARTY, ACCURACY)
    pairs = tuple((PARTY, f"The answer is: {word}.") for word in WORDS)
    head = NullRespondent("random-heads", number=7).answer(pairs)
    assert RESPONDENTS.shares("impostor-embedded-7", question).argmax() == head[:, 0].argmax()


@pytest.mark.parametrize(
    "name",
    [
        "gpt-4",
        "habit",
        "habit--1",
        "habit-9999999999",
        "people-mars",
        "simulated-",
        "impostor-1",
        "simulated-extraversion",
        "simulated-length=1",
        "impostor-/etc/passwd-1",
        "impostor-../x-1",
    ],
)
def test_an_unknown_model_is_refused_with_the_known_names(name):
    with pytest.raises(ParameterError, match="model: "):
        RESPONDENTS.check(name)


def test_replies_depend_on_content_and_seed_alone():
    text = "Rate from 1 to 100: I am calm."
    first = _reply(text, "random", seed=1)
    assert first == _reply(text, "random", seed=1) == _reply(text, "random", seed=1, temperature=0)
    others = {_reply(text, "random", seed=seed) for seed in range(20)}
    assert len(others) > 10
    replies = write_replies(RESPONDENTS, _request(text, "random", n=20))
    assert len({reply.text for reply in replies}) > 10
    assert _reply(text, "random", seed=1) != _reply(f"{text} ", "random", seed=1)


def test_the_last_answer_is_repeated_over_a_conversation_and_within_a_message():
    text = "Rate from 1 to 5: I am calm."
    history = [{"role": "user", "content": text}, {"role": "assistant", "content": "2"}]
    messages = [*history, {"role": "user", "content": text}]
    (reply,) = write_replies(RESPONDENTS, {"model": "repeats-last", "messages": messages})
    assert reply.text == "2"
    several = pm.messages.messages(MINI, MINI.items)
    (reply,) = write_replies(RESPONDENTS, {"model": "repeats-last", "messages": several})
    assert len({line.partition(": ")[2] for line in reply.text.splitlines()}) == 1


SCHEMAS = [
    ({"properties": {"1": {"enum": [1, 2, 3]}}}, {"1": 3}),
    ({"properties": {"mood": {"enum": ["low", "high"]}, "why": {"type": "string"}}}, "mood"),
    ({"properties": {"rating": {"type": "integer", "minimum": 0, "maximum": 10}}}, {"rating": 10}),
    (
        {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"enum": ["x", "y"]}}},
        {"a": "y"},
    ),
    ({"properties": {"a": {"anyOf": [{"type": "null"}, {"enum": ["x", "y"]}]}}}, {"a": "y"}),
    ({"properties": {"ok": {"type": "boolean"}}}, {"ok": True}),
    ({"type": "array", "items": {"enum": [1, 2]}, "minItems": 2}, [2, 2]),
    ({"properties": {"a": {"const": 3}, "b": {"type": "null"}}}, {"a": 3, "b": None}),
    ({"type": "integer"}, 0),
]


@pytest.mark.parametrize(("schema", "expected"), SCHEMAS)
def test_a_schema_is_filled_with_answers(schema, expected):
    def highest(question: Question) -> Answer:
        count = len(question.choices)
        return Answer(question, count - 1, np.full(count, 1 / count))

    value = fill_schema(schema, [], highest)
    assert (value[expected] == "high") if expected == "mood" else value == expected


def test_a_schema_that_refers_to_itself_ends():
    schema = {"$ref": "#/$defs/A", "$defs": {"A": {"properties": {"a": {"$ref": "#/$defs/A"}}}}}
    fill_schema(schema, [], lambda question: Answer(question, 0, np.ones(1)))
    fill_schema({"$ref": "#"}, [], lambda question: Answer(question, 0, np.ones(1)))


def test_a_schema_with_too_many_values_is_refused_at_once():
    properties = {name: {"$ref": "#"} for name in "abcdefgh"}
    with pytest.raises(ParameterError):
        fill_schema(
            {"properties": properties}, [], lambda question: Answer(question, 0, np.ones(1))
        )


@pytest.mark.parametrize("values", [5, "abc", {"a": 1}, [], None])
def test_an_enum_that_is_no_list_of_values_is_no_list_of_options(values):
    form = {"type": "json_schema", "json_schema": {"schema": {"enum": values}}}
    assert _reply("Rate from 1 to 5: I am calm.", response_format=form) == '"5"'


def test_items_of_a_prompt_are_entries_of_a_list_in_a_schema():
    entry = {"properties": {"id": {"type": "integer"}, "answer": {"type": "integer"}}}
    form = {"type": "json_schema", "json_schema": {"schema": {"type": "array", "items": entry}}}
    text = "Rate from 1 to 5.\n1. I am calm.\n2. I talk."
    expected = [{"id": 1, "answer": 5}, {"id": 2, "answer": 5}]
    assert json.loads(_reply(text, response_format=form)) == expected


@pytest.mark.parametrize(
    "fields",
    [
        {"n": 0},
        {"n": 1000},
        {"n": "2"},
        {"seed": 1.5},
        {"messages": "text"},
        {"messages": []},
        {"messages": [1]},
        {"model": 3},
        {"max_tokens": "x"},
        {"model": "habit-" + "9" * 5000},
        {"response_format": {"type": "xml"}},
        {"response_format": "json"},
        {"tools": [], "tool_choice": {"type": "function", "function": {"name": "rate"}}},
    ],
)
def test_a_malformed_request_is_refused(fields):
    with pytest.raises(ParameterError):
        write_replies(RESPONDENTS, _request("Rate from 1 to 5: I am calm.") | fields)


def test_a_reply_that_is_too_long_is_cut_off():
    (reply,) = write_replies(RESPONDENTS, _request("Hello!", max_tokens=3))
    assert (reply.text, reply.finish_reason) == ("No item with", "length")


@pytest.fixture(scope="module")
def server():
    with NullServer(port=0) as one:
        yield one


def _post(server: NullServer, body: bytes | dict, path: str = "/v1/chat/completions", **headers):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection = http.client.HTTPConnection(*server.server_address, timeout=30)
    connection.request("POST", path, data, headers)
    response = connection.getresponse()
    content = json.loads(response.read())
    connection.close()
    return response.status, content


def test_the_server_lists_its_models_and_counts_its_requests(server):
    models = json.load(urllib.request.urlopen(f"{server.url}/models"))["data"]
    assert [one["id"] for one in models][:7] == list(SIMPLE)
    one = json.load(urllib.request.urlopen(f"{server.url}/models/habit-77"))
    assert one["id"] == "habit-77"

    before = dict(server.stats)
    assert _post(server, _request("Hello, how are you?"))[0] == 200
    stats = json.load(urllib.request.urlopen(f"{server.url[:-3]}/stats"))
    assert stats["requests"] - before.get("requests", 0) == 1
    assert stats["without_options"] - before.get("without_options", 0) == 1


@pytest.mark.parametrize(
    ("body", "path", "headers", "status"),
    [
        (_request("", "gpt-4"), "/v1/chat/completions", {}, 404),
        (_request("", n=0), "/v1/chat/completions", {}, 400),
        (b"no JSON", "/v1/chat/completions", {}, 400),
        (b"[1]", "/v1/chat/completions", {}, 400),
        (b"[" * 50_000, "/v1/chat/completions", {}, 400),
        (_request(""), "/v1/files", {}, 404),
        (_request(""), "/v1/chat/completions", {"Host": "example.org"}, 403),
        (_request(""), "/v1/chat/completions", {"Content-Length": "-1"}, 411),
        (_request(""), "/v1/chat/completions", {"Content-Length": str(1 << 30)}, 413),
    ],
)
def test_the_server_refuses_in_the_form_of_openai(server, body, path, headers, status):
    found, content = _post(server, body, path, **headers)
    assert found == status
    assert set(content["error"]) == {"message", "type", "param", "code"}
    if status == 404 and "chat" in path:
        assert content["error"]["code"] == "model_not_found"
        assert "first-option" in content["error"]["message"]


def test_a_failure_of_the_server_is_a_reply(server, monkeypatch, capsys):
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(protocol, "write_replies", fail)
    status, content = _post(server, _request("Rate from 1 to 5: I am calm."))
    assert (status, content["error"]["type"]) == (500, "server_error")
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_server_with_a_key_answers_those_who_send_it():
    with NullServer(port=0, key="secret") as server:
        body = _request("Rate from 1 to 5: I am calm.")
        assert _post(server, body)[0] == 401
        assert _post(server, body, Authorization="Bearer other")[0] == 401
        assert _post(server, body, Authorization="Bearer secret")[0] == 200


def test_addresses_that_others_can_reach_need_the_option_and_a_key(monkeypatch):
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    for options in ({}, {"public": True}, {"key": "secret"}):
        with pytest.raises(ParameterError, match="host"):
            NullServer("0.0.0.0", 0, **options)
    with NullServer("0.0.0.0", 0, key="secret", public=True) as server:
        assert server.is_public

    result = CliRunner().invoke(app, ["serve", "--host", "0.0.0.0", "--port", "0"])
    assert isinstance(result.exception, ParameterError)


def test_a_port_in_use_or_out_of_range_is_refused(server):
    for port in (server.server_address[1], 70_000, -1):
        with pytest.raises(ParameterError, match="port"):
            NullServer(port=port)


def test_a_repeated_request_gets_another_draw_if_wanted():
    body = _request("Rate from 1 to 100: I am calm.", "random")
    draws = []
    for _ in range(2):
        with NullServer(port=0, repeats=True) as server:
            replies = [_post(server, body)[1] for _ in range(5)]
            draws.append([reply["choices"][0]["message"]["content"] for reply in replies])
    assert draws[0] == draws[1]
    assert len(set(draws[0])) > 1


def test_the_openai_client_reads_every_form_of_reply(server):
    openai = pytest.importorskip("openai", reason="the openai client is not installed")
    text = "Rate from 1 (never) to 5 (always): I am calm."
    messages = [{"role": "user", "content": text}]
    with openai.OpenAI(base_url=server.url, api_key="none") as client:
        create = client.chat.completions.create
        reply = create(model="extreme", messages=messages, n=3, logprobs=True, top_logprobs=5)
        assert {choice.message.content for choice in reply.choices} <= {"1", "5"}
        top = reply.choices[0].logprobs.content[0].top_logprobs
        assert {one.token: round(np.exp(one.logprob), 3) for one in top} == {
            "1": 0.5, "5": 0.5, "2": 0, "3": 0, "4": 0
        }  # fmt: skip
        assert reply.usage.total_tokens > 10

        options = {"include_usage": True}
        parts = list(create(model="agrees", messages=messages, stream=True, stream_options=options))
        deltas = [part.choices[0].delta.content for part in parts if part.choices]
        assert "".join(filter(None, deltas)) == "5"
        assert parts[-1].usage.completion_tokens == 1

        function = {"name": "rate", "parameters": {"properties": {"rating": {"enum": [1, 2]}}}}
        tools = [{"type": "function", "function": function}]
        reply = create(model="agrees", messages=messages, tools=tools, tool_choice="required")
        assert reply.choices[0].message.tool_calls[0].function.arguments == '{"rating": 2}'
        assert reply.choices[0].finish_reason == "tool_calls"

        reply = client.completions.create(model="agrees", prompt=text, logprobs=2)
        assert reply.choices[0].text == " 5"
        assert reply.choices[0].logprobs.top_logprobs[0][" 5"] == 0
        with pytest.raises(openai.NotFoundError, match="first-option"):
            create(model="gpt-4", messages=messages)


@pytest.mark.parametrize(
    "conditions", [{}, {"batch_size": 1}, {"reply": "json_schema"}, {"labels": "alphabetical"}]
)
def test_our_own_mode_chat_scores_a_null_as_it_is(server, conditions, tmp_path):
    endpoint = Endpoint(base_url=server.url)
    scores = {"agrees": [3, 3, 3, 3, 2], "middle": [3] * 5, EXTREME: [5, 1, 5, 1, 5]}
    for model, expected in scores.items():
        answers = pm.ask(
            MINI, [model], mode="chat", endpoint=endpoint, store=tmp_path, **conditions
        )
        assert pm.scale_scores(answers)["score"].tolist() == expected


def test_our_own_mode_options_reads_the_probabilities_of_a_null(server, tmp_path):
    endpoint = Endpoint(base_url=server.url)
    model = "simulated-extraversion=1"
    how = {"mode": "options", "choose": "none", "permutations": "given", "store": tmp_path}
    rows = pm.ask(MINI, [model], endpoint=endpoint, **how)
    shares = rows.loc[rows["item_id"] == "ipip20_1", "probability"].to_numpy()
    expected = RESPONDENTS.shares(model, Question(PARTY, ACCURACY))
    assert shares == pytest.approx(expected, abs=1e-4)


def test_a_questionnaire_of_ones_own_is_recognised(tmp_path):
    text = (
        "id: tea\ntitle: Tea\nshort_title: Tea\ncitation: own\n"
        "measures: tea\nlanguage: en\nsource: own\nlicence: CC0\noptions:\n"
        "  - {value: 1, label: never}\n  - {value: 2, label: often}\nscales:\n"
        "  - {id: thirst, title: Thirst, items: all, reverse: [tea_2]}\nitems:\n"
        "  - {id: tea_1, text: I drink tea all day.}\n  - {id: tea_2, text: I avoid tea all day.}\n"
    )
    file = tmp_path / "tea.yaml"
    file.write_text(text, encoding="utf-8")
    respondents = Respondents([file])
    choices = (Choice("1", "never"), Choice("2", "often"))
    respondents.check("simulated-thirst=9")
    for item, place in {"I drink tea all day.": 1, "I avoid tea all day.": 0}.items():
        assert respondents.shares("simulated-thirst=9", Question(item, choices)).argmax() == place
