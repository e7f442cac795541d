"""Chat endpoints at scale: many at once, limits and budgets, against a real server."""

from __future__ import annotations

import multiprocessing
import os
import random
import time

import pandas as pd
import pytest

from psychometrics.asking.ask import ask
from psychometrics.endpoints.endpoint import Endpoint
from psychometrics.exceptions import ParameterError, RespondentError
from psychometrics.questionnaires import load_questionnaire
from psychometrics.store import StoredAnswers

from . import endpoint
from .endpoint import served

MINI = load_questionnaire("ipip20")
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
PRICES = {"price_in": 100.0, "price_out": 400.0}


def put(server, store, how=None, questionnaires=MINI, **place):
    """Ask 20 statements one by one, in as many runs as ``how`` says."""
    how = {"runs": 5, "batch_size": 1, "ask_again": 0, "max_tokens": 20} | (how or {})
    place = Endpoint(server.url, **{"pause": 0.05, "timeout": 20.0} | place)
    return ask(questionnaires, ["m"], store, "chat", progress=False, endpoint=place, **how)


def same(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    return one.reset_index(drop=True).equals(other.reset_index(drop=True))


def test_hundreds_are_in_flight_over_all_questionnaires_and_each_is_asked_once(tmp_path):
    others = [MINI.model_copy(update={"id": f"q{n}"}) for n in range(4)]
    with served(delay=1.0) as server:
        answers = put(server, tmp_path, {"runs": 4}, others, concurrency=256)
        assert (answers["status"] == "ok").all()
        assert answers["questionnaire"].drop_duplicates().tolist() == ["q0", "q1", "q2", "q3"]
        assert 150 <= server.most <= 256
        assert sum(server.replied.values()) == 320
        again = put(server, tmp_path, {"runs": 4}, others, concurrency=1)
        assert sum(server.replied.values()) == 320, "how it is sent is in no key"
    assert same(answers, again)


@pytest.mark.parametrize("says", ["seconds", "date", "headers", "nothing"])
def test_a_limit_is_found_and_kept_without_a_reply_lost_or_paid_twice(tmp_path, says):
    with served(delay=0.02, per_second=60, burst=10, says=says) as server:
        answers = put(server, tmp_path, {"runs": 3}, concurrency=64, retries=0)
    assert (answers["status"] == "ok").all()
    assert len(server.times) == 60
    assert server.refused < 200


def test_a_server_that_refuses_one_in_ten_costs_less_than_twice_the_time(tmp_path, monkeypatch):
    took = []
    for share in (0.0, 0.1):
        rng = random.Random(3)
        passes = lambda _, r=rng, s=share: 0.2 * (r.random() < s)  # noqa: E731
        monkeypatch.setattr(endpoint.Endpoint, "too_many", passes)
        with served(delay=0.1) as server:
            began = time.monotonic()
            answers = put(server, tmp_path / str(share), {"runs": 4}, concurrency=4)
            took.append(time.monotonic() - began)
    assert answers.attrs["summary"]["refused"] == server.refused > 3
    assert took[1] < 2 * took[0]


def test_a_retry_after_is_obeyed_and_slows_neither_the_rest_nor_another_model(
    tmp_path, monkeypatch
):
    counts = {"m": 0}

    def too_many(server):  # two of three requests for one model are to come again in 0.3 s
        counts["m"] += not server.replied_to_other
        return 0.0 if server.replied_to_other or counts["m"] % 3 == 0 else 0.3

    monkeypatch.setattr(endpoint.Endpoint, "replied_to_other", False, raising=False)
    monkeypatch.setattr(endpoint.Endpoint, "too_many", too_many)
    with served() as server:
        how = {"runs": 1, "batch_size": 2, "max_tokens": None}
        began = time.monotonic()
        answers = put(server, tmp_path, how)
        took = time.monotonic() - began
        server.replied_to_other = True
        place = Endpoint(server.url, pause=0.05, timeout=20.0)
        began = time.monotonic()
        ask(MINI, ["another"], tmp_path, "chat", progress=False, endpoint=place, ask_again=0, **how)
        took_other = time.monotonic() - began
    assert (answers["status"] == "ok").all()
    assert server.refused == 20
    assert 20 * 0.3 / 4 < took < 60 * 0.3
    assert took_other < 2


def test_azures_form_and_what_else_a_request_says_reach_the_server(tmp_path):
    demands = {"api-key": "secret-key", "api-version": "2024-10-21"}
    how = {"top_p": 0.5, "sampling_seed": 7, "temperature": "none"}
    with served(demands=demands) as server:
        server.url = server.url.replace("/v1", "/openai/deployments/d?api-version=2024-10-21")
        place = {"api_key": "secret-key", "headers": {"api-key": "{api_key}"}}
        put(server, tmp_path, {"runs": 2} | how, **place)
        assert all(request["top_p"] == 0.5 for request in server.requests)
        assert {said["seed"] for said in server.requests} == {7, 8}
        assert not any("temperature" in said for said in server.requests)
        with pytest.raises(RespondentError) as error:
            put(server, tmp_path / "b", headers={"api-key": "another-key"})
    assert "another-key" not in str(error.value)


@pytest.mark.parametrize("tops", [20, 4])
def test_options_of_an_endpoint_have_the_probabilities_of_its_tokens(tmp_path, tops):
    how = {"store": tmp_path, "mode": "options", "progress": False}
    with served(tops=tops) as server:
        shares = ask(MINI, ["m"], base_url=server.url, choose="none", **how)
        means = ask(MINI, ["m"], base_url=server.url, choose="expected", **how)
        assert sum(server.replied.values()) == 100, "each order of each item once"
        few = how | {"store": tmp_path / "b"}
        prices = {"price_in": 1e4, "price_out": 0.0, "max_cost": 20.0}
        left = ask(MINI, ["m"], base_url=server.url, permutations="given", **few, **prices)
    # The server's weights are 1 to 5 by place; 4 tokens show places 5, 4 and 3, the least is 3/30.
    weights = [1, 2, 3, 4, 5] if tops == 20 else [3, 3, 3, 4, 5]
    first = shares[shares["permutation"] == 1].groupby("item_id", sort=False)["probability"]
    assert first.agg(list).iloc[0] == pytest.approx([w / sum(weights) for w in weights])
    assert shares["mass"].iloc[0] == pytest.approx(0.5 if tops == 20 else 0.4)
    if tops == 20:
        assert means["value"].to_numpy() == pytest.approx(3.0), "a liking for places falls out"
        assert set(left["status"]) == {"ok", "unasked"}
    else:  # two labels of five are not shown, and could be as likely as the third
        assert set(means["status"]) == {"unseen_labels"}
        assert means["value"].isna().all()
        assert set(left["status"]) == {"unseen_labels", "unasked"}


@pytest.mark.parametrize("concurrency", [1, 8])
def test_who_refuses_every_request_is_given_up_within_the_patience(tmp_path, concurrency):
    began = time.monotonic()
    with (
        served(per_second=1e-9, burst=0, says="nothing") as server,
        pytest.raises(RespondentError, match="status 429"),
    ):
        put(server, tmp_path, concurrency=concurrency, patience=2.0)
    assert time.monotonic() - began < 10


def test_an_endpoint_that_is_busy_with_a_request_is_not_given_up(tmp_path):
    with served(per_second=20, burst=1, delay=1.5, says="nothing") as server:
        answers = put(server, tmp_path, {"runs": 1}, concurrency=8, patience=0.5, pause=0.1)
    assert server.refused, "the others were refused for longer than the patience"
    assert (answers["status"] == "ok").all()


@pytest.mark.parametrize("broken", [0, 7])
def test_a_budget_is_never_exceeded_and_what_is_left_is_asked_the_next_time(tmp_path, broken):
    with served(delay=0.05, broken=broken) as server:
        spent, calls = 0.0, 0
        while True:
            answers = put(server, tmp_path, concurrency=256, max_cost=0.6, **PRICES)
            summary, calls = answers.attrs["summary"], calls + 1
            paid = server.cost(100.0, 400.0) - spent
            assert paid <= 0.6
            spent += paid
            if not broken:
                assert summary["cost"] == pytest.approx(paid, abs=1e-5)
                assert summary["tokens"]["cached"] == 3 * summary["asked"]
            left = (answers["status"] == "unasked").sum()
            assert left == summary.get("unasked", 0)
            assert summary["asked"] + summary["from_store"] + left == 100
            assert summary["unanswered"] == 0
            if not left:
                break
            assert paid > 0.4, "no more is left unasked than need be"
    assert calls >= 3
    assert (answers["status"] == "ok").all()
    if not broken:
        assert max(server.replied.values()) == 5, "the five runs send the same texts"
        assert sum(server.replied.values()) == 100


def test_tokens_are_kept_with_each_reply_and_estimated_where_the_endpoint_says_none(tmp_path):
    with served(usage=False) as server:
        answers = put(server, tmp_path, {"runs": 1}, **PRICES)
    tokens = answers.attrs["summary"]["tokens"]
    assert tokens["estimated"] == 20
    assert tokens["prompt"] == pytest.approx(server.tokens["prompt"], rel=0.1)
    usage = StoredAnswers(tmp_path, "chat", "ipip20", "m").rows["usage"]
    assert usage.str.contains('"estimated": true').all()


def test_a_dry_run_sends_nothing_and_says_what_would_be_sent(tmp_path):
    with served() as server:
        put(server, tmp_path, {"runs": 2})
        before = sum(server.replied.values())
        planned = put(server, tmp_path, dry_run=True, **PRICES).attrs["summary"]
        assert sum(server.replied.values()) == before == 40
        assert (planned["requests"], planned["unasked"], planned["from_store"]) == (60, 60, 40)
        found = put(server, tmp_path, **PRICES).attrs["summary"]
    assert planned["tokens"]["prompt"] == pytest.approx(found["tokens"]["prompt"], rel=0.1)
    assert planned["cost"] >= found["cost"]


def _drive(url, store, cache, tables):
    os.environ["XDG_CACHE_HOME"] = str(cache)
    server = type("Server", (), {"url": url})
    put(server, store, {"shuffle": False, "ask_again": 1}).to_pickle(tables)


def test_drivers_with_a_store_in_common_pay_once_and_return_what_it_holds(tmp_path):
    with served(delay=0.02) as server:
        fork = multiprocessing.get_context("fork")
        places = [(server.url, tmp_path / "s", tmp_path / f"c{n}", tmp_path / f"{n}.pkl")
                  for n in range(3)]  # fmt: skip
        drivers = [fork.Process(target=_drive, args=place) for place in places]
        for driver in drivers:
            driver.start()
        for driver in drivers:
            driver.join()
        assert sum(server.replied.values()) == 100
        there = put(server, tmp_path / "s", {"shuffle": False, "ask_again": 1})
        assert sum(server.replied.values()) == 100
    assert all(same(there, pd.read_pickle(path)) for *_, path in places)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ({"max_cost": 1.0}, "needs price_in and price_out"),
        ({"price_in": float("nan")}, "price_in should be"),
        ({"max_cost": 1.0, **PRICES}, "max_cost needs max_tokens"),
    ],
)
def test_what_no_budget_can_be_kept_with_is_refused(tmp_path, place, said):
    with pytest.raises(ParameterError, match=said):
        put(type("Server", (), {"url": "http://127.0.0.1:9/v1"}), tmp_path,
            {"max_tokens": None}, **place)  # fmt: skip


def test_a_budget_below_one_request_is_said_before_anything_is_sent(tmp_path):
    with served() as server:
        with pytest.raises(RespondentError, match=r"max_cost=0\.001 is less than one"):
            put(server, tmp_path, max_cost=0.001, **PRICES)
        for mode, how in (("chat", {"max_tokens": 20}), ("options", {})):
            place = Endpoint(server.url, max_cost=0.001, **PRICES)
            with pytest.raises(RespondentError, match="max_cost"):
                ask(MINI, ["m"], tmp_path, mode, progress=False, endpoint=place, **how)
        assert not server.replied
        put(server, tmp_path, {"runs": 1})
        with pytest.warns(UserWarning, match="max_cost"):
            answers = put(server, tmp_path, {"runs": 2}, max_cost=0.001, **PRICES)
    assert answers["status"].value_counts().to_dict() == {"ok": 20, "unasked": 20}


def test_requests_and_their_cost_are_printed_before_they_are_sent(tmp_path, capsys, monkeypatch):
    seen = []
    reply = endpoint.Endpoint.completion

    def watch(server, request):
        seen.append(capsys.readouterr().err)
        return reply(server, request)

    monkeypatch.setattr(endpoint.Endpoint, "completion", watch)
    with served() as server:
        for place, said in (
            (PRICES, "20 requests to be sent, of about"),
            ({"api_key": "key"}, "at an unknown price"),
            ({}, ""),
        ):
            store = tmp_path / str(len(seen))
            where = Endpoint(server.url, concurrency=1, **place)
            answers = ask(MINI, ["m"], store, "chat", endpoint=where, batch_size=1, max_tokens=20)
            before = seen[-20]
            assert said in before
            assert bool(said) == ("to be sent" in before)
            assert (answers["run"] == 1).all(), "once, as nobody asked for more"
    assert len(seen) == 60
