"""A wrong name, folder, file or value is refused before a model is loaded or a prompt is sent."""

from __future__ import annotations

import shlex

import pytest

from psychometrics.exceptions import PsychometricsError, RespondentError
from psychometrics.models.sources import find
from psychometrics_book import check_parameters

SMALL = "minilm-mnli-l3-s16"


@pytest.fixture
def nothing_runs(monkeypatch):
    """Let every load of a model and every start of a kernel fail the test."""

    def refuse(*_: object, **__: object) -> None:
        pytest.fail("something was run")

    places = (
        "models.loading.load_model",
        "models.embedded.load_model",
        "modes.nli.load_model",
        "modes.nli.NLIRespondent",
        "modes.chat.load_model",
        "modes.option_scorers.load_model",
    )
    for place in places:
        monkeypatch.setattr(f"psychometrics.{place}", refuse)
    monkeypatch.setattr("psychometrics_book.runs._execute_notebook", refuse)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (f"profile {SMALL} --questionnaires gad7 --against nix", "'nix'"),
        (f"profile {SMALL} --questionnaires gad7 --against '{SMALL},nix'", "'nix'"),
        (f"profile {SMALL} --questionnaires gad7 --base nix", "'nix'"),
        (f"profile {SMALL} --questionnaires gad7 -c dtype=float8", "float8"),
        (f"profile {SMALL} --questionnaires gad7 -c store=", "store"),
        (f"profile {SMALL} --questionnaires gad7 --mode human", "fill-in"),
        (f"compare {SMALL} nix --questionnaires gad7", "'nix'"),
        ("train-nli nix out", "'nix'"),
        (f"compare {SMALL} minilm-both-l6-s1 --mode '<b>'", "mode must be one of"),
        ("profile m --mode chat --questionnaires ipip20 -c role=bad -c base_url=http://h/v1",
         "no role 'bad'"),
        ("run 01-first-score -p item=99", "has 7 items"),
        ("run 03-assessment -p respondent=nix", "'nix'"),
        ("run 13-finding -p executed=nowhere", "nowhere"),
        ("improve gad7 -o nowhere/x.yaml", "no folder nowhere"),
        (f"ask gad7 --respondents {SMALL} --store ''", "store"),
        (f"ask gad7 --respondents {SMALL} --failures x.txt", ".csv"),
        (f"ask gad7 ipip50 --respondents {SMALL}", "no prompts"),
        (f"ask gad7 --respondents {SMALL} --dry-run", "mode 'nli' uses no endpoint"),
        (f"scores gad7 --respondents {SMALL} -c temperature=true", "temperature"),
        (f"profile {SMALL} --base nix", "nix"),
    ],
)  # fmt: skip
def test_a_mistake_on_the_command_line_is_told_before_anything_runs(
    arguments, said, ended, nothing_runs
):
    code, shown, errors = ended(*shlex.split(arguments))
    told = [line for line in errors.splitlines() if line.startswith("psychometrics: ")]

    assert (code, shown) == (1, "")
    assert [said in line for line in told] == [True]


@pytest.mark.parametrize(
    ("chapter", "values"),
    [
        ("01-first-score", {"item": 8}),
        ("01-first-score", {"null_respondents": 10**30}),
        ("02-prompt-design", {"seed": 10**30}),
        ("04-consistency", {"populations": 10**30}),
        ("07-interventions", {"lr": 1e30}),
        ("08-items", {"draws": 10**30}),
        ("benchmarks", {"measured": "nowhere.csv"}),
    ],
)
def test_a_value_that_no_run_could_use_is_refused(chapter, values):
    with pytest.raises(PsychometricsError):
        check_parameters(chapter, values)


def test_a_member_can_be_looked_at_without_naming_the_population():
    check_parameters("03-assessment", {"respondent": "minilm-both-l6-s1"})


def test_a_mistyped_folder_is_told_as_a_missing_folder_with_its_neighbour(tiny_model, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tiny_model.parent.parent)
    place = f"{tiny_model.parent.name}/{tiny_model.name}"

    with pytest.raises(RespondentError, match="no such folder") as error:
        find(f"{place}x")

    assert error.value.kind == "not found"
    assert place in str(error.value)
