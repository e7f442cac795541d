"""What modes declare of themselves, and modes and questionnaires that another package adds."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest
import yaml

import psychometrics as pm
from psychometrics.exceptions import ParameterError, QuestionnaireError
from psychometrics.modes import MODES, mode_named, mode_names
from psychometrics.modes.mode import Conditions, Identity
from psychometrics.questionnaires import library

COIN = """
import pandas as pd
from psychometrics.modes.mode import Conditions, Identity, Mode


class CoinConditions(Conditions):
    heads: bool = True


class Coin(Mode):
    conditions_type = CoinConditions
    needs_options = True

    def identify(self, respondent, dtype=None, **conditions):
        name = str(respondent)
        return Identity(name, "coin", mode=self.name, fingerprint=name)

    def answer(self, questionnaire, asking):
        place = -1 if asking.conditions["heads"] else 0
        rows = [
            {"respondent_id": asking.identity["respondent_id"], "mode": self.name, "run": 1,
             "item_id": item.id, "value": questionnaire.choices(item)[place].value, "status": "ok"}
            for item in questionnaire.items
        ]
        asking.bar.expect(len(rows))
        asking.bar.update(len(rows))
        return pd.DataFrame(rows).assign(questionnaire=questionnaire.id, **asking.conditions)


not_a_mode = print
"""
BROKEN = """
raise OSError("a library of the machine is missing")
"""
POINTS = """
[psychometrics.modes]
coin = wellbeing.coin:Coin
edge = wellbeing.coin:not_a_mode
broken = wellbeing.broken:Coin
lost = wellbeing.nothing:Coin
renamed = wellbeing.coin:Dice
nli = wellbeing.coin:Coin

[psychometrics.questionnaires]
wellbeing = wellbeing.sheets
"""


@pytest.fixture
def wellbeing(tmp_path, monkeypatch):
    """A package in a folder of its own, installed beside ours, with a mode and a questionnaire."""
    sheets = tmp_path / "wellbeing" / "sheets"
    sheets.mkdir(parents=True)
    (tmp_path / "wellbeing" / "__init__.py").touch()
    (tmp_path / "wellbeing" / "coin.py").write_text(COIN)
    (tmp_path / "wellbeing" / "broken.py").write_text(BROKEN)
    (sheets / "__init__.py").touch()

    shipped = yaml.safe_load((pm.paths.questionnaires_dir() / "gad7.yaml").read_text("utf-8"))
    (sheets / "calm7.yaml").write_text(yaml.safe_dump(shipped | {"id": "calm7"}), "utf-8")

    about = tmp_path / "wellbeing-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: wellbeing\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)

    mode_named.cache_clear()
    library._added_files.cache_clear()
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    mode_named.cache_clear()
    library._added_files.cache_clear()


def test_a_mode_and_a_questionnaire_of_another_package_are_asked_by_name(wellbeing, tmp_path):
    answers = pm.ask("calm7", ["one cent"], tmp_path / "s", mode="coin", progress=False)
    assert answers["value"].eq(3.0).all()
    assert answers["questionnaire"].unique().tolist() == ["calm7"]
    tails = pm.ask("calm7", ["a cent"], tmp_path / "s", mode="coin", heads=False, progress=False)
    assert tails["value"].eq(0.0).all()
    assert "coin" in mode_names()
    assert "calm7" in pm.questionnaire_names()


def test_an_added_mode_declares_its_conditions_and_they_are_checked(wellbeing):
    with pytest.raises(ParameterError, match="heads should be a valid boolean"):
        mode_named("coin").complete({"heads": "up"})
    with pytest.raises(ParameterError, match="'tails': its conditions are heads"):
        mode_named("coin").complete({"tails": True})


def test_what_another_package_adds_does_not_replace_ours_and_must_be_a_mode(wellbeing):
    assert type(mode_named("nli")).__module__ == "psychometrics.modes.nli"
    with pytest.raises(ParameterError, match=r"wellbeing\.coin:not_a_mode is not a subclass"):
        mode_named("edge")


@pytest.mark.parametrize("name", ["broken", "lost", "renamed"])
def test_a_mode_of_another_package_that_cannot_be_imported_is_an_error_of_the_package(
    wellbeing, name, ended
):
    with pytest.raises(ParameterError, match=r"wellbeing\.\w+:\w+ cannot be imported"):
        mode_named(name)
    status, _, said = ended("scores", "gad7", "--mode", name)
    assert status == 1
    assert len(said.strip().splitlines()) == 1
    assert name in mode_names()


def test_a_file_with_the_name_of_an_added_questionnaire_is_refused(wellbeing, tmp_path):
    sheet = (wellbeing / "wellbeing" / "sheets" / "calm7.yaml").read_text("utf-8")
    other = tmp_path / "other" / "calm7.yaml"
    other.parent.mkdir()
    other.write_text(sheet.replace("not at all", "never"), "utf-8")
    with pytest.raises(QuestionnaireError, match="calm7"):
        pm.load_questionnaire(other)


@pytest.mark.parametrize("name", MODES)
def test_every_mode_says_what_it_answers_sends_and_takes(name):
    mode = mode_named(name)
    assert mode.answers in ("prompts", "items")
    assert mode.sends in ("prompts", "messages", "statements", "nothing")
    assert issubclass(mode.conditions_type, Conditions)
    assert mode.complete({}) == mode.conditions
    assert mode.asked_once.keys() <= mode.conditions.keys()


def test_values_stay_as_they_were_given_since_answers_are_stored_by_them():
    assert type(mode_named("chat").complete({"temperature": 1})["temperature"]) is int


@pytest.mark.parametrize("name", ["nli", "mlm", "causal", "nsp", "acceptability", "options"])
def test_models_that_answer_in_these_modes_may_be_named_by_a_population(name):
    assert mode_named(name).takes_populations


def test_people_endpoints_and_simulated_respondents_are_no_population():
    assert not any(
        mode_named(n).takes_populations for n in ("chat", "custom", "human", "simulated")
    )


def test_an_identity_is_frozen_and_reads_as_the_mapping_that_a_manifest_holds():
    identity = Identity("m", "local", "owner/m", "0", "nli", "float32", "f")
    values = {"respondent_id": "m", "source": "local", "model": "owner/m", "revision": "0",
              "mode": "nli", "dtype": "float32", "fingerprint": "f"}  # fmt: skip
    assert list(dict(identity).items()) == list(values.items())
    assert list(replace(identity, by="logits", device="cpu"))[-2:] == ["device", "by"]
    assert Identity.of(values | {"tuned": True}) == identity
    with pytest.raises(FrozenInstanceError):
        identity.dtype = "bfloat16"
