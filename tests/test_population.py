from __future__ import annotations

import gc
import shutil
import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch

import psychometrics as pm
from psychometrics import ask, load_questionnaire, load_respondent, prompts
from psychometrics.asking.population import population, population_table
from psychometrics.exceptions import RespondentError
from psychometrics.models import embedded, sources
from psychometrics.models.embedded import load_embedded
from psychometrics.models.loading import load_config, load_model
from psychometrics.models.sources import base_path, find
from psychometrics.modes.nli import PROBABILITIES
from psychometrics.paths import data_dir
from psychometrics_book.studies.untrained import PLACEBOS
from recipes.answers import SECOND
from tests.conftest import needs

MEMBERS = population()
RECIPE = ["data", "share", "genre", "layers", "tuning", "epochs", "lr", "seed"]
WORDINGS = {
    "plain": "Premise: {premise} Hypothesis: {hypothesis} Answer:",
    "follow": '"{premise}" Does it follow that "{hypothesis}"? Answer:',
    "question": "Passage: {premise} Question: Is it true that {hypothesis} Answer:",
}


def test_every_row_has_weights_and_the_families_are_populations():
    table = population_table()
    assert {path.name for path in (data_dir() / "population").iterdir()} == set(
        table["respondent_id"]
    )
    assert table.loc[table["default"], "respondent_id"].tolist() == MEMBERS
    assert len(MEMBERS) == 21
    assert set(population("decoders")) < set(MEMBERS)
    assert population("encoders") == table.query("family == 'MiniLM'")["respondent_id"].tolist()
    assert population("decoders") == table.query("family == 'SmolLM2'")["respondent_id"].tolist()


def test_each_folder_holds_the_recipe_of_its_row():
    for row in population_table().to_dict("records"):
        recipe = find(row["respondent_id"]).recipe
        columns = [*RECIPE, "rank", "adapt_from"] if row["family"] == "SmolLM2" else RECIPE
        expected = {k: None if v != v else v for k, v in row.items() if k in columns}
        assert {k: v for k, v in recipe.items() if k in expected} == expected
        if row["family"] == "SmolLM2":
            assert recipe["wording"] == WORDINGS[row["wording"]]


def test_a_decoder_answers_as_its_shipped_answers_say():
    name = population("decoders")[0]
    pairs = prompts(load_questionnaire("challenges"))[["premise", "hypothesis"]][:4]
    pairs = list(pairs.itertuples(index=False, name=None))
    shipped = ask("challenges", name, store="memory://shipped", progress=False)
    assert shipped.attrs["summary"]["asked"] == 0, "shipped: no model is needed"
    answered = load_respondent(name).answer(pairs)
    found = shipped[["entailment", "neutral", "contradiction"]].to_numpy()[:4]
    np.testing.assert_allclose(answered, found, atol=1e-4)


@pytest.mark.parametrize(
    ("mode", "names", "parts", "answers", "step", "nth"),
    [
        ("nli", PLACEBOS, ["premise", "hypothesis"], list(PROBABILITIES), 10, 1),
        ("mlm", SECOND, ["premise", "hypothesis", "intensifier"], ["probability"], 50, 4),
    ],
)
def test_some_of_the_encoders_shipped_answers_come_out_again(
    mode, names, parts, answers, step, nth
):
    members = [name for name in population() if name in population("encoders")][::nth]
    shipped = ask(list(names), members, mode=mode, store="memory://shipped", progress=False)
    assert shipped.attrs["summary"]["asked"] == 0, "shipped: no model is needed"

    for name, rows in shipped.groupby("respondent_id"):
        some = rows[::step]
        asked = list(some[parts].itertuples(index=False, name=None))
        answered = load_respondent(name, mode=mode).answer(asked)
        np.testing.assert_allclose(answered, some[answers], atol=1e-4, rtol=1e-3)


def test_population_and_heads_are_small_and_hold_no_pickles():
    for room, most in (("population", 64), ("heads/cola", 6), ("heads/mlm", 6)):
        files = [path for path in (data_dir() / room).rglob("*") if path.is_file()]
        assert sum(path.stat().st_size for path in files) <= most * 2**20
        assert {path.suffix for path in files} - {".md"} == {".safetensors", ".json"}


@needs("mnli_entailment", "mnli_neutral", "mnli_contradiction")
def test_the_reported_accuracy_is_that_of_the_shipped_weights():
    name = "minilm-mnli-l3-s16"
    held_out = pm.training.pairs.mnli_sample().query("held_out").iloc[::5]
    pairs = list(zip(held_out["premise"], held_out["hypothesis"], strict=True))
    answers = load_respondent(name, dtype="float32").answer(pairs)
    measured = (answers.argmax(axis=1) == held_out["label"]).mean()
    reported = population_table().set_index("respondent_id").loc[name, "accuracy"]
    assert measured == pytest.approx(reported, abs=0.05)  # of a fifth of the pairs


@pytest.mark.parametrize("was", [True, False])
def test_members_share_a_tokenizer_and_leave_the_garbage_collector_as_it_was(was):
    (gc.enable if was else gc.disable)()
    try:
        (first, tokenizer), (second, same) = load_embedded(MEMBERS[0]), load_embedded(MEMBERS[0])
        with pytest.raises(RespondentError, match="no config"):
            load_model(Path("/"), "classifier")
        assert gc.isenabled() is was
    finally:
        gc.enable()
    assert tokenizer is same
    assert first is not second
    assert all(
        torch.equal(one, other)
        for one, other in zip(first.parameters(), second.parameters(), strict=True)
    )


def test_every_member_has_a_readable_name_of_its_own_and_others_keep_theirs():
    members = pm.population_table()["respondent_id"]
    assert pm.readable_names(["smollm2"]) == {"smollm2": "SmolLM2"}
    shown = pm.readable_names([*members, "./here/mine", "there/mine", "gpt-x"])
    assert len(set(shown.values())) == len(shown)
    assert shown["minilm-both33-telephone-l6-s5"] == "MiniLM, 12k MNLI+SNLI, telephone"
    assert shown["smol-mnli1500-r2-s9"] == "SmolLM2, 1500 MNLI"
    assert shown["gpt-x"] == "gpt-x"
    assert shown["./here/mine"] == "mine (./here/mine)"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_an_adapter_is_merged_to_the_bit_as_peft_merges_it(dtype):
    from peft import PeftModel

    folder = find("minilm-mnli-l3-s16").folder

    def base():
        config = load_config(base_path(), num_labels=3, num_hidden_layers=3)
        torch.manual_seed(0)
        return load_model(base_path(), "classifier", config=config, fresh=True)[0].to(dtype)

    embedded._merge(ours := base().state_dict(), folder)
    theirs = PeftModel.from_pretrained(base(), str(folder)).merge_and_unload().state_dict()
    assert list(ours) == list(theirs)
    assert [key for key in ours if not ours[key].equal(theirs[key])] == []


def test_weights_that_are_left_out_of_an_installation_are_known_and_named(tmp_path):
    names = population("decoders")
    parts = tomllib.loads((data_dir().parent / "decoders" / "pyproject.toml").read_text())
    wheel = parts["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert {Path(path).parent.name for path in wheel} == set(names)
    left = shutil.copytree(
        data_dir() / "population" / names[0],
        tmp_path / "m",
        ignore=lambda *_: ["adapter_model.safetensors"],
    )
    source = sources._find_member(names[0], left)
    assert (source.digest, source.revision) == (find(names[0]).digest, find(names[0]).revision)
