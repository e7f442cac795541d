from __future__ import annotations

import functools
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from psychometrics import data, load_respondent, training
from psychometrics.exceptions import DataError, ParameterError
from psychometrics.models.loading import load_model
from psychometrics.models.sources import base_path
from psychometrics.training import loop, train_nli
from psychometrics.training.pairs import _labelled_pairs, nli_pairs
from recipes.talking import adapt
from tests.killing import start_elsewhere
from tests.tiny import save_tiny_decoder, save_tiny_masked_lm

PLAIN = """
with torch.no_grad():
    logits = model.eval()(**tokenizer({}, {}, padding=True, return_tensors="pt")).logits
assert "psychometrics" not in sys.modules
print(json.dumps(logits.softmax(-1).tolist()))
"""
HYPOTHESES = ["I feel calm.", "It happens.", "I never do."]  # entailed, neutral, contradicted
PAIRS = pd.DataFrame({"premise": "I feel calm.", "hypothesis": np.repeat(HYPOTHESES, 8),
                      "label": np.repeat([0, 1, 2], 8)})  # fmt: skip


def trained_answers(monkeypatch, pairs, *arguments, **settings) -> np.ndarray:
    """Train, and give the model's answers as it is in memory, one pair at a time."""
    kept = {}

    def keep(model, tokenizer, *rest):
        kept["model"], kept["tokenizer"] = model.eval(), tokenizer
        return save(model, tokenizer, *rest)

    save = loop._save
    monkeypatch.setattr(loop, "_save", keep)
    train_nli(*arguments, progress=False, **settings)
    with torch.no_grad():
        logits = [
            kept["model"](**kept["tokenizer"](*pair, return_tensors="pt")).logits for pair in pairs
        ]
    return torch.cat(logits).softmax(dim=-1).numpy()


def stop(*_):
    raise KeyboardInterrupt


def changed(trained: Path, base: Path) -> set[str]:
    """Names of the base's weights that differ after training."""
    after, before = load_file(trained / "model.safetensors"), load_file(base / "model.safetensors")
    return {name for name in before if not torch.equal(before[name], after[name])}


@pytest.mark.parametrize("folder", ["/proc/x/y", "x" * 300])
def test_a_folder_that_cannot_be_made_is_refused_before_the_pairs_are_read(ended, folder):
    code, _, errors = ended("train-nli", "minilm", folder, "--data", "nowhere.csv")
    assert code == 1
    assert folder in errors


def test_a_trained_folder_is_a_respondent_that_learned_its_pairs(tiny_model, tmp_path):
    manifest = train_nli(tiny_model, PAIRS, tmp_path / "out", epochs=30, lr=5e-3, batch_size=8,
                         progress=False)  # fmt: skip
    respondent = load_respondent(tmp_path / "out", dtype="float32")
    answers = respondent.answer(list(zip(PAIRS.premise, PAIRS.hypothesis, strict=True)))
    assert (np.argmax(answers, axis=1) == PAIRS.label).all()
    assert manifest["pairs"] == 24
    assert manifest["steps"] == 90
    assert json.loads((tmp_path / "out" / "manifest.json").read_text()) == manifest


@pytest.mark.parametrize("tuning", ["frozen", "unfrozen", "lora"])
def test_the_encoder_changes_if_not_frozen_and_lora_saves_an_adapter(tiny_model, tmp_path, tuning):
    train_nli(tiny_model, PAIRS, tmp_path, tuning=tuning, epochs=1, lr=1e-2, progress=False)
    if tuning == "lora":
        names = set(load_file(tmp_path / "adapter_model.safetensors"))
        assert not (tmp_path / "model.safetensors").exists()
    else:
        names = changed(tmp_path, tiny_model)
    of_head = {name for name in names if "pooler" in name or "classifier" in name}
    assert of_head
    assert any("encoder.layer.0" in name for name in names - of_head) == (tuning != "frozen")
    assert all("lora_" in name for name in names - of_head) == (tuning != "unfrozen")


LONG_AND_SHORT = [("I feel calm at home.", "It happens very rarely."), ("I do.", "No.")]


@pytest.mark.parametrize("tuning", ["unfrozen", "lora"])
@pytest.mark.parametrize(
    "architecture", ["gpt2", "llama", "distilbert", "electra", "bert", "roberta"]
)
def test_every_base_answers_as_in_training(
    architecture, tuning, tmp_path, monkeypatch, save_tiny_model
):
    base = tmp_path / "base"
    if architecture in ("gpt2", "llama"):
        save_tiny_decoder(base, architecture)
    else:  # BERT's masked language model has no pooler either
        save_tiny_masked_lm(base, save_tiny_model(tmp_path / "nli", architecture))
    layers = 1 if architecture == "bert" else None
    answers = trained_answers(
        monkeypatch, LONG_AND_SHORT, base, PAIRS, tmp_path / "out", tuning=tuning, rank=2,
        layers=layers, epochs=1, lr=1e-2, batch_size=12,
    )  # fmt: skip
    respondent = load_respondent(tmp_path / "out", dtype="float32")
    found = respondent.answer(LONG_AND_SHORT)
    np.testing.assert_allclose(found, answers, atol=2e-5)
    assert np.ptp(found, axis=0).max() > 1e-3
    assert layers in (None, respondent.model.config.num_hidden_layers)


def test_the_two_lines_of_the_readme_load_adapters_without_this_package(tmp_path, save_tiny_model):
    code, asked = "import json, sys, torch", list(map(list, zip(*LONG_AND_SHORT, strict=True)))
    outs = {"bert": save_tiny_model, "gpt2": save_tiny_decoder}
    for architecture, save in outs.items():
        base, out = save(tmp_path / architecture, architecture), tmp_path / f"{architecture}-lora"
        train_nli(base, PAIRS, out, tuning="lora", layers=1, epochs=1, lr=1e-2, progress=False)
        left = {"README.md", "adapter_config.json", "adapter_model.safetensors", "manifest.json",
                "recipe.json", "tokenizer.json", "tokenizer_config.json"}  # fmt: skip
        assert {path.name for path in out.iterdir()} - {"chat_template.jinja"} == left
        lines = (out / "README.md").read_text().replace("this folder", str(out)).splitlines()
        code += "\n" + "\n".join(line.strip() for line in lines if line.startswith("    "))
        code += PLAIN.format(*asked)
    words = [sys.executable, "-c", code]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    for architecture, line in zip(outs, ended.stdout.splitlines(), strict=True):
        respondent = load_respondent(tmp_path / f"{architecture}-lora", dtype="float32")
        np.testing.assert_allclose(json.loads(line), respondent.answer(LONG_AND_SHORT), atol=2e-5)


@pytest.fixture
def many_pairs(tmp_path):
    """A file of pairs with 60 premises; nobody is trained on those of some."""
    premises = [f"I feel calm, {number}." for number in range(60)]
    frame = pd.DataFrame({"premise": np.repeat(premises, 3), "hypothesis": HYPOTHESES * 60,
                          "label": [0, 1, 2] * 60})  # fmt: skip
    frame.to_csv(tmp_path / "pairs.csv", index=False)
    return frame


def test_accuracy_is_measured_on_premises_that_nobody_was_trained_on(
    many_pairs, tiny_model, tmp_path, monkeypatch
):
    seen, own = [], loop.tokenised
    monkeypatch.setattr(training, "tokenised", lambda *x: seen.append(x[1]["premise"]) or own(*x))
    out, data = tmp_path / "out", str(tmp_path / "pairs.csv")
    manifest = train_nli(tiny_model, data, out, epochs=9, lr=5e-3, progress=False)
    held = many_pairs[~many_pairs["premise"].isin(seen[0])]
    assert 0 < len(held) == manifest["held_out"] == len(many_pairs) - manifest["pairs"]
    pairs = list(zip(held["premise"], held["hypothesis"], strict=True))
    answers = load_respondent(out, dtype="float32").answer(pairs)
    right = (answers.argmax(axis=1) == held["label"]).mean()
    assert manifest["accuracy"] == pytest.approx(right, abs=1e-4)
    assert manifest["low"] < right <= manifest["high"] + 1e-4
    assert right > 0.6
    assert manifest["majority"] == pytest.approx(1 / 3, abs=1e-4)


def test_what_cannot_be_trained_is_refused(tiny_model, tmp_path):
    base = save_tiny_decoder(tmp_path / "base", "gpt2", end=None)
    with pytest.raises(ParameterError, match="set pad_token"):
        train_nli(base, PAIRS, tmp_path / "out", progress=False)


def test_the_same_seed_gives_the_same_model_and_another_seed_another(tiny_model, tmp_path):
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        train_nli(tiny_model, PAIRS, tmp_path / folder, epochs=1, seed=seed, progress=False)
    assert not changed(tmp_path / "a", tmp_path / "b")
    assert changed(tmp_path / "a", tmp_path / "c")


def test_a_stopped_run_goes_on_from_its_last_epoch(tiny_model, tmp_path):
    whole = train_nli(tiny_model, PAIRS, tmp_path / "whole", epochs=4, lr=1e-3, progress=False)

    class StoppingTrainer(loop.Trainer):
        def training_step(self, *given):
            if self.state.epoch >= 2:
                raise KeyboardInterrupt
            return super().training_step(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "Trainer", StoppingTrainer)
        with pytest.raises(KeyboardInterrupt):
            train_nli(tiny_model, PAIRS, tmp_path / "twice", epochs=4, lr=1e-3, progress=False)
    assert not (tmp_path / "twice" / "manifest.json").exists()
    resumed = train_nli(tiny_model, PAIRS, tmp_path / "twice", epochs=4, lr=1e-3, progress=False)
    assert resumed["steps"] == whole["steps"]
    assert not changed(tmp_path / "twice", tmp_path / "whole")


def test_a_folder_of_another_training_is_left_as_it_is(tiny_model, save_tiny_model, tmp_path):
    first = train_nli(tiny_model, PAIRS, tmp_path / "used", epochs=2, progress=False)
    again = train_nli(tiny_model, PAIRS, tmp_path / "used", epochs=2, progress=False)
    assert first["resumed_at"] == 0
    assert again == first | {"resumed_at": first["steps"]}
    manifest = (tmp_path / "used" / "manifest.json").read_bytes()
    base = save_tiny_model(tmp_path / "base", seed=7)
    changes = [(tiny_model, PAIRS, how) for how in ({"lr": 1e-2}, {"seed": 5}, {"epochs": 3})]
    for other, pairs, how in (*changes, (tiny_model, PAIRS.iloc[:-1], {}), (base, PAIRS, {})):
        with pytest.raises(ParameterError, match="another folder"):
            train_nli(other, pairs, tmp_path / "used", progress=False, **{"epochs": 2} | how)
    assert (tmp_path / "used" / "manifest.json").read_bytes() == manifest


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


@pytest.mark.parametrize("damage", [_cut, Path.unlink])
def test_a_training_goes_on_from_its_last_complete_checkpoint(
    tiny_model, tmp_path, monkeypatch, damage
):
    how = {"epochs": 2, "lr": 1e-3, "progress": False}
    whole = train_nli(tiny_model, PAIRS, tmp_path / "whole", **how)
    with monkeypatch.context() as patch:  # killed before the model is saved
        patch.setattr(loop, "_save", stop)
        patch.setattr("transformers.trainer.rotate_checkpoints", lambda **_: None)
        with pytest.raises(KeyboardInterrupt):
            train_nli(tiny_model, PAIRS, tmp_path / "cut", **how)

    first, last = sorted((tmp_path / "cut").glob("checkpoints-*/checkpoint-*"))
    damage(last / "trainer_state.json")
    resumed = train_nli(tiny_model, PAIRS, tmp_path / "cut", **how)
    assert resumed["resumed_at"] == int(first.name.rpartition("-")[2]) == whole["steps"] / 2
    assert not changed(tmp_path / "cut", tmp_path / "whole")
    assert not list((tmp_path / "cut").glob("checkpoints-*"))


def test_checkpoints_of_another_training_are_left_as_they_are(tiny_model, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(loop, "_save", stop)
        with pytest.raises(KeyboardInterrupt):
            train_nli(tiny_model, PAIRS, tmp_path / "cut", epochs=1, progress=False)

    files = set(tmp_path.glob("cut/checkpoints-*/*/*"))
    with pytest.raises(ParameterError, match="another folder"):
        train_nli(tiny_model, PAIRS, tmp_path / "cut", epochs=2, progress=False)
    assert set(tmp_path.glob("cut/checkpoints-*/*/*")) == files != set()


def test_a_training_begins_again_if_no_checkpoint_is_complete(tiny_model, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(loop, "_save", stop)
        with pytest.raises(KeyboardInterrupt):
            train_nli(tiny_model, PAIRS, tmp_path / "cut", epochs=1, progress=False)
    _cut(next(tmp_path.glob("cut/checkpoints-*/*/trainer_state.json")))
    again = train_nli(tiny_model, PAIRS, tmp_path / "cut", epochs=1, progress=False)
    assert again["resumed_at"] == 0


def _train_one_layer(folder: Path) -> None:
    train_nli("minilm", PAIRS, folder, layers=1, epochs=3, batch_size=8, progress=False)


def test_a_training_killed_while_it_writes_a_checkpoint_goes_on_from_the_one_before(tmp_path):
    process = start_elsewhere(_train_one_layer, tmp_path / "killed")
    # 3 steps an epoch; this file has 90 MB and is written before trainer_state.json
    while not (files := list(tmp_path.glob("killed/checkpoints-*/checkpoint-6/optimizer.pt"))):
        assert process.is_alive()
        time.sleep(0.001)

    process.kill()
    process.join()
    assert not files[0].with_name("trainer_state.json").exists()
    _train_one_layer(tmp_path / "whole")
    _train_one_layer(tmp_path / "killed")
    manifest = json.loads((tmp_path / "killed" / "manifest.json").read_text())
    assert manifest["resumed_at"] == 3
    assert not changed(tmp_path / "killed", tmp_path / "whole")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_local_files_of_pairs_are_read_with_labels_by_name(tmp_path, suffix):
    frame = PAIRS.assign(label=[data.NLI_LABELS[i].upper() for i in PAIRS.label])
    write = {".parquet": frame.to_parquet, ".csv": functools.partial(frame.to_csv, index=False),
             ".jsonl": functools.partial(frame.to_json, orient="records", lines=True),
             ".tsv": functools.partial(frame.to_csv, index=False, sep="\t")}  # fmt: skip
    write[suffix](path := tmp_path / f"pairs{suffix}")
    assert nli_pairs(str(path))["label"].tolist() == PAIRS["label"].tolist()
    assert len(nli_pairs([str(path), str(path)])) == 2 * len(PAIRS)


@pytest.mark.parametrize(
    ("name", "raw"),
    [("a.csv", b""), ("a.csv", bytes(range(256))), ("a.tsv", b""), ("a.jsonl", b"{bad"),
     ("a.parquet", b"nope"), ("a.csv", b"premise,hypothesis,label\na, b,c,0\n")],
)  # fmt: skip
def test_a_damaged_file_of_pairs_is_refused(name, raw, tmp_path):
    (tmp_path / name).write_bytes(raw)
    with pytest.raises((DataError, ParameterError)):
        nli_pairs(str(tmp_path / name))
    for said, pairs in (
        ("label", PAIRS.drop(columns="label")),
        ("maybe", PAIRS.assign(label="maybe")),
        ("no labelled pairs", PAIRS.head(0)),
        (r"missing\.csv", str(tmp_path / "missing.csv")),
    ):
        with pytest.raises(DataError, match=said):
            nli_pairs(pairs)


@pytest.mark.parametrize(
    ("name", "value"),
    [("tuning", "melted"), ("lr", -1.0), ("lr", float("nan")), ("lr", 1e300), ("epochs", 0),
     ("epochs", float("nan")), ("batch_size", 0), ("rank", 0), ("seed", -1), ("seed", 1.5),
     ("layers", 0), ("dropout", 1.0), ("max_length", 1)],
)  # fmt: skip
def test_an_impossible_setting_is_refused_before_anything_is_read(name, value, tmp_path):
    with pytest.raises(ParameterError, match=name):
        train_nli("nowhere", "nowhere.csv", tmp_path, **{name: value})


def test_a_causal_model_learns_its_text_in_place(tmp_path):
    model, tokenizer = load_model(save_tiny_decoder(tmp_path / "base"), "causal")
    first = {name: weight.clone() for name, weight in model.state_dict().items()}
    text = tokenizer("I feel calm at home.", return_tensors="pt")["input_ids"]

    def loss() -> float:
        model.eval()
        with torch.no_grad():
            return float(model(input_ids=text, labels=text).loss)

    before = loss()
    sentences = ["I feel calm at home."] * 16
    manifest = adapt(model, tokenizer, sentences, epochs=10, lr=3e-2, rank=8, seed=0)
    assert manifest["steps"] == 20
    assert loss() < before / 2
    same = {name for name, weight in model.named_parameters() if torch.equal(weight, first[name])}
    moved = {name for name, _ in model.named_parameters()} - same
    assert {name.rsplit(".", 2)[1] for name in moved} == {
        *("q_proj", "k_proj", "v_proj", "o_proj"),
        *("gate_proj", "up_proj", "down_proj"),
    }


def test_the_embedded_base_is_called_minilm(tmp_path):
    train_nli("minilm", PAIRS, tmp_path, tuning="frozen", layers=1, epochs=1, progress=False)
    after = load_file(tmp_path / "model.safetensors")
    before = load_file(Path(base_path()) / "model.safetensors")
    name = "encoder.layer.0.attention.self.query.weight"
    torch.testing.assert_close(after[f"bert.{name}"], before[name])
    assert load_respondent(tmp_path).answer([("I feel calm.", "I do.")]).shape == (1, 3)


def test_a_control_has_the_same_pairs_and_as_many_of_each_label_in_another_order(
    tiny_model, tmp_path, monkeypatch
):
    tables = []
    facts = []

    def _train_into(output, model, tokenizer, dataset, collator, settings, describe, progress):
        facts.append(describe())
        return {}

    tokenised = training.tokenised
    monkeypatch.setattr(training, "_train_into", _train_into)
    monkeypatch.setattr(
        training,
        "tokenised",
        lambda tokenizer, table, *of: tables.append(table) or tokenised(tokenizer, table, *of),
    )
    for shuffled in (False, True, True):
        train_nli(tiny_model, PAIRS, tmp_path / "any", shuffled=shuffled, seed=3)

    true, control, again = tables
    assert control["premise"] == true["premise"]
    assert control["hypothesis"] == true["hypothesis"]
    assert control["label"] != true["label"]
    assert sorted(control["label"]) == sorted(true["label"])
    assert again["label"] == control["label"]
    assert [row["shuffled"] for row in facts] == [False, True, True]


def test_held_out_pairs_of_a_control_keep_their_labels(tiny_model, tmp_path, monkeypatch):
    pairs = PAIRS.assign(premise=[f"I feel calm {n}." for n in range(len(PAIRS))])
    pairs.to_csv(tmp_path / "pairs.csv", index=False)
    measured = []
    monkeypatch.setattr(
        training, "_measure_accuracy", lambda folder, rows: measured.append(rows) or {}
    )
    monkeypatch.setattr(training, "_train_into", lambda *of: of[6]())
    train_nli(tiny_model, str(tmp_path / "pairs.csv"), tmp_path / "any", shuffled=True)
    held_out = measured[0]
    assert len(held_out)
    assert (pairs.loc[held_out.index, "label"] == held_out["label"]).all()


def test_the_command_trains_a_control_on_shuffled_labels(ended, tiny_model, tmp_path, monkeypatch):
    seen = []

    def note(*_: object, **settings: object) -> None:
        seen.append(settings["shuffled"])
        raise ParameterError("noted.")

    monkeypatch.setattr(training, "train_nli", note)
    monkeypatch.chdir(tmp_path)
    PAIRS.to_csv("pairs.csv", index=False)
    for more in ([], ["--shuffled"]):
        ended("train-nli", tiny_model, "out", "--data", "pairs.csv", *more)

    assert seen == [False, True]


def test_files_of_anli_and_mnli_are_read_by_their_own_names(tmp_path):
    anli = [{"context": "I am calm.", "hypothesis": "I am.", "label": "e"},
            {"context": "I am calm.", "hypothesis": "I am not.", "label": "c"}]  # fmt: skip
    (tmp_path / "anli.jsonl").write_text("\n".join(map(json.dumps, anli)))
    mnli = [{"sentence1": "I am calm.", "sentence2": "I am tall.", "gold_label": "neutral"},
            {"sentence1": "I am calm.", "sentence2": "Who knows.", "gold_label": "-"}]  # fmt: skip
    (tmp_path / "mnli.jsonl").write_text("\n".join(map(json.dumps, mnli)))
    assert nli_pairs(str(tmp_path / "anli.jsonl"))["label"].tolist() == [0, 2]
    found = nli_pairs(str(tmp_path / "mnli.jsonl"))
    assert found[["premise", "hypothesis", "label"]].values.tolist() == [
        ["I am calm.", "I am tall.", 1]
    ]


def test_pairs_of_a_file_with_other_column_names_are_held_out_too(tmp_path):
    texts = [f"I feel calm {number}." for number in range(60)]
    names = pd.DataFrame({"premise": texts, "hypothesis": "I do.", "label": "neutral"})
    others = names.set_axis(["sentence1", "sentence2", "gold_label"], axis=1)
    held_out = []
    for number, frame in enumerate((names, others)):
        path = tmp_path / f"{number}.csv"
        frame.to_csv(path, index=False)
        held_out.append(_labelled_pairs(str(path), split=True).frame["held_out"].tolist())
    assert held_out[0] == held_out[1]
    assert 0 < sum(held_out[0]) < len(texts)


def test_a_folder_of_a_dataset_gives_its_training_parts(tmp_path):
    datasets = pytest.importorskip("datasets")
    one = datasets.Dataset.from_pandas(PAIRS.iloc[::8], preserve_index=False)
    parts = datasets.DatasetDict({"train_r1": one, "train_r2": one, "test": one})
    parts.save_to_disk(str(tmp_path / "saved"))
    assert len(nli_pairs(str(tmp_path / "saved"))) == 6
    (tmp_path / "files").mkdir()
    PAIRS.iloc[::6].to_csv(tmp_path / "files" / "train.csv", index=False)
    assert len(nli_pairs(str(tmp_path / "files"))) == 4


CLASSES = st.permutations(data.NLI_LABELS)


def _class_pairs(names: list[str]) -> tuple[list[int], dict[str, list]]:
    """Return the project's labels, and the columns of pairs with the numbers of classes."""
    labels = [0, 1, 2, 2, 1]
    texts = {"premise": [f"I feel calm {n}." for n in range(5)], "hypothesis": ["I do."] * 5}
    return labels, texts | {"label": [names.index(data.NLI_LABELS[label]) for label in labels]}


@given(names=CLASSES, column=st.sampled_from(["label", "gold_label"]), form=st.sampled_from(
    ["folder", "parts", "parquet"]))  # fmt: skip
@settings(max_examples=20, deadline=None)
def test_labels_of_a_data_set_are_read_by_the_names_of_its_classes(names, column, form):
    datasets = pytest.importorskip("datasets")
    labels, columns = _class_pairs(names)
    columns[column] = columns.pop("label")
    kinds = dict.fromkeys(("premise", "hypothesis"), datasets.Value("string"))
    kinds[column] = datasets.ClassLabel(names=[name.upper() for name in names])
    rows = datasets.Dataset.from_dict(columns, features=datasets.Features(kinds))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("pairs.parquet" if form == "parquet" else "pairs")
        if form == "parquet":
            rows.to_parquet(path)
        else:
            whole = rows if form == "folder" else datasets.DatasetDict(train=rows, test=rows)
            whole.save_to_disk(path)
        assert nli_pairs(str(path))["label"].tolist() == labels


@given(names=CLASSES)
@settings(max_examples=10, deadline=None)
def test_labels_of_a_categorical_column_are_its_categories_not_their_codes(names):
    labels, columns = _class_pairs(names)
    frame = pd.DataFrame(columns)
    frame["label"] = pd.Categorical.from_codes(frame["label"], names)
    with tempfile.TemporaryDirectory() as folder:
        frame.to_parquet(path := Path(folder) / "pairs.parquet")
        for source in (frame, str(path)):
            assert nli_pairs(source)["label"].tolist() == labels


@pytest.mark.parametrize("names", [
    ["entailment", "not_entailment"], ["entailment", "non-entailment"], ["0", "1"],
    ["entailment", "neutral", "contradiction", "hidden"], ["supports", "refutes", "unknown"],
])  # fmt: skip
def test_classes_that_are_not_the_three_are_refused(tmp_path, names):
    datasets = pytest.importorskip("datasets")
    rows = {"premise": ["I am calm."] * len(names), "hypothesis": ["I am."] * len(names),
            "label": list(range(len(names)))}  # fmt: skip
    kinds = {"premise": datasets.Value("string"), "hypothesis": datasets.Value("string"),
             "label": datasets.ClassLabel(names=names)}  # fmt: skip
    form = datasets.Features(kinds)
    datasets.Dataset.from_dict(rows, features=form).save_to_disk(tmp_path / "two")
    with pytest.raises(DataError):
        nli_pairs(str(tmp_path / "two"))


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["Entailment", "NEUTRAL", " contradiction "], [0, 1, 2]),
        (["entail", "neutral", "contradict"], [0, 1, 2]),
        (["entails", "neutral", "contradicts"], [0, 1, 2]),
        (["entailed", "neutral", "contradictory"], [0, 1, 2]),
        (["E", "N", "C"], [0, 1, 2]),
        (["0", "1", "2"], [0, 1, 2]),
        ([2.0, 1.0, 0.0], [2, 1, 0]),
        ([True, False, True], None),
        ([1, 2, 3], None),  # counted from one
        ([0, 1, 1], None),  # two classes, or no pair of the third
        ([0.5, 1, 2], None),
        (["neutral or contradiction", "entailment", "neutral"], None),
        (["not_entailment", "entailment", "neutral"], None),
        (["contrast", "entailment", "neutral"], None),
    ],
)
@pytest.mark.parametrize("suffix", ["", ".csv", ".jsonl", ".parquet"])
def test_labels_are_read_or_refused_alike_in_every_form(tmp_path, labels, expected, suffix):
    frame = PAIRS.iloc[:3].assign(label=labels)
    path = str(tmp_path / f"pairs{suffix}")
    write = {".csv": functools.partial(frame.to_csv, path, index=False),
             ".jsonl": functools.partial(frame.to_json, path, orient="records", lines=True),
             ".parquet": functools.partial(frame.to_parquet, path), "": str}  # fmt: skip
    write[suffix]()
    source = path if suffix else frame
    if expected is None:
        with pytest.raises(DataError):
            nli_pairs(source)
    else:
        assert nli_pairs(source)["label"].tolist() == expected


@pytest.mark.parametrize("suffix", ["", ".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["neutral", "entailment", "contradiction", "entailment"], [1, 0, 2, 0]),
        (["neutral", "Entailed", "CONTRADICTION", None], [1, 0, 2, 0]),
        (["neutral", "entailment", "contradiction", "neutral"], [2, 0, 1, 0]),  # of a rater
        (["neutral", "entailment", "entailment", "entailment"], [2, 0, 1, 0]),
        (["fiction", "letters", "travel", "letters"], [2, 0, 1, 0]),
        ([1, 0, 2, 0], [2, 0, 1, 0]),
    ],
)
def test_numbers_of_labels_mean_the_names_in_another_column(tmp_path, names, expected, suffix):
    frame = PAIRS.iloc[:4].assign(label=[2, 0, 1, 0], gold_label=names)
    path = str(tmp_path / f"pairs{suffix}")
    write = {".csv": functools.partial(frame.to_csv, path, index=False),
             ".jsonl": functools.partial(frame.to_json, path, orient="records", lines=True),
             ".parquet": functools.partial(frame.to_parquet, path), "": str}  # fmt: skip
    write[suffix]()
    pairs = _labelled_pairs(path if suffix else frame)
    assert pairs.frame["label"].tolist() == expected
    assert bool(pairs.unnamed) == (expected[0] == 2)


@pytest.mark.parametrize("nothing", [None, "", "-", -1, "-1", np.nan])
def test_pairs_without_a_label_are_counted_and_left_out(tiny_model, tmp_path, nothing):
    labels = ["entailment", "neutral", "contradiction", nothing]
    frame = PAIRS.iloc[:4].assign(label=pd.Series(labels, dtype=object))
    path = tmp_path / "pairs.jsonl"
    frame.to_json(path, orient="records", lines=True)
    for source in (frame, str(path)):
        manifest = train_nli(tiny_model, source, tmp_path / str(type(source)), epochs=1,
                             progress=False)  # fmt: skip
        assert (manifest["pairs"], manifest["left_out"]) == (3, 1)
        assert manifest["labels_without_names"] == []


def test_the_command_says_which_order_of_unnamed_labels_is_assumed(tiny_model, tmp_path, ended):
    pairs = tmp_path / "pairs.csv"
    PAIRS.to_csv(pairs, index=False)
    code, said, _ = ended("train-nli", str(tiny_model), str(tmp_path / "model"), "--data",
                          str(pairs), "--epochs", "1")  # fmt: skip
    assert code == 0
    assert f"{pairs} does not name its labels" in said
    assert ", ".join(data.NLI_LABELS) in said


def test_pairs_of_two_classes_cannot_teach_three(tiny_model, tmp_path):
    pairs = pd.DataFrame({"premise": ["a b"] * 4, "hypothesis": ["a"] * 4})
    pairs["label"] = ["entailment", "contradiction"] * 2
    with pytest.raises(DataError, match="neutral"):
        train_nli(tiny_model, pairs, tmp_path, progress=False)
