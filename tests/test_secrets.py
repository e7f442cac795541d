"""No page, notebook, table, record or stored answer has a secret of an endpoint."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from psychometrics import profiles
from psychometrics.endpoints.endpoint import Endpoint
from psychometrics.endpoints.secrets import mask_conditions, refuse_secrets
from psychometrics.exceptions import ParameterError
from tests.endpoint import served

USER, PASSWORD, GATE, KEY = "ada-lovelace", "correct-horse", "battery-staple", "sk-0123456789"
BASIC = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
STUDY = """
title: A study
question: Does the role matter?
planned: {date: 2026-11-23}
questionnaires: [gad7]
respondents: [m]
mode: chat
conditions: {runs: [1], retries: [0], temperature: [0, 1]}
analyses: [scores, evidence]
"""


def _files_with_secrets(folder: Path) -> dict[str, list[str]]:
    """Return the files below a folder that hold a secret, with the secrets."""
    held = {}
    for path in folder.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        texts = content + str(path.relative_to(folder)).encode()
        held[str(path)] = [
            secret for secret in (USER, PASSWORD, GATE, KEY, BASIC) if secret.encode() in texts
        ]
    return {path: secrets for path, secrets in held.items() if secrets}


@pytest.fixture
def gateway(ended, monkeypatch):
    """An endpoint that asks for a key, a password and a header, all in the environment."""
    demands = {"api-key": KEY, "x-gate": GATE, "authorization": f"basic {BASIC.lower()}"}
    with served(demands=demands) as endpoint:
        address = endpoint.url.replace("//", f"//{USER}:{PASSWORD}@")
        monkeypatch.setenv("OPENAI_BASE_URL", address)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        headers = {"api-key": "{api_key}", "x-gate": GATE}
        monkeypatch.setenv("OPENAI_HEADERS", json.dumps(headers))
        yield endpoint


def test_a_profile_and_a_comparison_take_secrets_from_the_environment(gateway, ended, tmp_path):
    for words in (["profile", "m"], ["compare", "m", "n"]):
        code, said, errors = ended(*words, "--mode", "chat", "--questionnaires", "gad7",
                                   "-c", "runs=1", "-c", "retries=0", "-o", "p.html")  # fmt: skip
        assert code == 0, said + errors
        assert not any(secret in said + errors for secret in (PASSWORD, GATE, KEY, BASIC))
    assert sum(gateway.replied.values())
    assert (tmp_path / "runs" / "p.ipynb").is_file()
    assert _files_with_secrets(tmp_path) == {}


def test_a_study_takes_secrets_from_the_environment(gateway, ended, tmp_path):
    (tmp_path / "study.yaml").write_text(STUDY)
    assert ended("study", "run", "study.yaml")[0] == 0
    assert ended("study", "report", "study.yaml")[0] == 0
    assert sum(gateway.replied.values())
    assert (tmp_path / "study" / "report.html").is_file()
    assert _files_with_secrets(tmp_path) == {}


HELD = [
    ("base_url", f"http://{USER}:{PASSWORD}@host/v1"),
    ("base_url", f"http://{PASSWORD}@host/v1"),
    ("base_url", f"https://host/v1?key={KEY}"),
    ("base_url", f"https://host/v1?{KEY}"),
    ("headers", json.dumps({"api-key": KEY})),
    ("headers", json.dumps({"Authorization": f"Bearer {KEY}"})),
    ("headers", json.dumps({"api-key": "{api_key}", "x-gate": GATE})),
]


@pytest.mark.parametrize(("name", "value"), [*HELD, ("store", f"s3://{USER}:{KEY}@bucket/x")])
@pytest.mark.parametrize("command", ["profile", "compare"])
def test_a_secret_in_a_condition_of_a_page_is_refused_and_not_shown(
    ended, tmp_path, command, name, value
):
    models = ["m"] if command == "profile" else ["m", "n"]
    code, said, errors = ended(command, *models, "--mode", "chat", "-c", f"{name}={value}")
    assert code == 1
    assert name in errors
    assert not any(secret in said + errors for secret in (USER, PASSWORD, GATE, KEY))
    assert _files_with_secrets(tmp_path) == {}


@pytest.mark.parametrize(("name", "value"), [*HELD, ("api_key", KEY)])
def test_a_secret_in_a_study_is_refused_and_not_recorded(ended, tmp_path, name, value):
    conditions = json.dumps({name: [value], "runs": [1]})
    text = STUDY.replace("{runs: [1], retries: [0], temperature: [0, 1]}", conditions)
    (tmp_path / "study.yaml").write_text(text)
    code, said, errors = ended("study", "run", "study.yaml")
    assert code == 1
    assert name in errors
    assert not any(secret in said + errors for secret in (USER, PASSWORD, GATE, KEY))
    assert set(_files_with_secrets(tmp_path)) <= {str(tmp_path / "study.yaml")}


@pytest.mark.parametrize(("name", "value"), [
    *HELD, ("api_key", KEY), ("store", f"s3://{USER}:{KEY}@bucket/x"),
    ("store", f"s3://bucket/x?secret={KEY}"), ("base_url", f"http://{USER}:a/b{PASSWORD}@host/v1"),
    ("base_url", f"http://{USER}:a#{PASSWORD}@host/v1"),
])  # fmt: skip
def test_a_secret_that_is_refused_is_also_masked(name, value):
    with pytest.raises(ParameterError, match=name):
        refuse_secrets({name: value})
    shown = json.dumps(mask_conditions({name: value}))
    assert not any(secret in shown for secret in (USER, PASSWORD, GATE, KEY))


@pytest.mark.parametrize("conditions", [
    {}, {"base_url": "http://127.0.0.1:8000/v1"}, {"headers": '{"api-key": "{api_key}"}'},
    {"base_url": "https://x.azure.test/openai/deployments/D?api-version=2024-10-21"},
    {"headers": {"Authorization": "Bearer {api_key}"}},
    {"store": "s3://bucket/x?region=eu"}, {"store": "a@b?c=d"}, {"role": "me@example.test"},
])  # fmt: skip
def test_conditions_without_a_secret_pass(conditions):
    refuse_secrets(conditions)
    assert mask_conditions(conditions) == conditions


def test_headers_of_the_environment_are_those_of_an_endpoint_without_its_own(monkeypatch):
    monkeypatch.setenv("OPENAI_HEADERS", '{"x-gate": "a"}')
    bare, own = (Endpoint("http://host/v1", headers=headers) for headers in (None, {"x-own": "b"}))
    assert bare.resolved().headers == {"x-gate": "a"}
    assert own.resolved().headers == {"x-own": "b"}
    monkeypatch.setenv("OPENAI_HEADERS", "x-gate: a")
    with pytest.raises(ParameterError, match="headers"):
        bare.resolved()


def test_the_table_of_how_a_model_was_asked_masks_what_was_passed_in_python(gateway, tmp_path):
    headers = {"api-key": "{api_key}", "x-gate": GATE}
    tables = profiles.assess("m", "gad7", "chat", runs=1, retries=0, headers=headers, api_key=KEY)
    assert "runs=1" in tables.asked.loc["conditions", "how"]
    assert not any(secret in tables.asked.to_csv() for secret in (PASSWORD, GATE, KEY))
