"""Populations as files: by hand, and asked, against a hub that is served."""

from __future__ import annotations

import gc
import json
import shutil
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import yaml
from huggingface_hub import constants
from transformers import PreTrainedModel

from psychometrics import ask, population, population_table
from psychometrics.exceptions import KINDS, ParameterError, RespondentError
from psychometrics.modes import load_respondent

from .hub import commit, serving

NLI = ["entailment", "neutral", "contradiction"]
CONFIG = {"model_type": "bert", "architectures": ["BertForSequenceClassification"]}
THREE = {"id2label": {"0": "ENTAILMENT", "1": "Neutral", "2": "contradiction"}}


def named(**changes: object) -> dict[str, bytes]:
    """Files of a model of which nothing but config.json is ever looked at."""
    return {"config.json": json.dumps(CONFIG | THREE | changes).encode(),
            "model.safetensors": b"", "tokenizer.json": b"{}"}  # fmt: skip


def counted(parameters: int) -> dict:
    return {"safetensors": {"parameters": {"F32": parameters}, "total": parameters}}


@pytest.fixture(scope="module")
def models(save_tiny_model, tmp_path_factory):
    """Two tiny models of different architectures, with label names of their own."""
    folder = tmp_path_factory.mktemp("tiny")
    first = save_tiny_model(folder / "first", "bert", ("CONTRADICTION", "Neutral", "Entailed"))
    return first, save_tiny_model(folder / "second", "roberta")


@pytest.fixture
def hub(models, tmp_path):
    """A hub of eight models, two of which can be asked; and an empty cache of it."""
    pickles = {"config.json": named()["config.json"], "pytorch_model.bin": b"", "vocab.txt": b""}
    own = {"auto_map": {"AutoModelForSequenceClassification": "code.Model"}, "model_type": "own"}
    few = counted(9)
    listed = [
        ("acme/bert-mnli", models[0], 9000, counted(25_000)),
        ("acme/gated-mnli", named(), 8000, {"gated": "manual"} | few),
        ("acme/pickled-mnli", pickles, 7000, {}),
        ("acme/own-mnli", named(**own), 6000, few),
        ("acme/roberta-nli", models[1], 5000, {"licence": "apache-2.0"}),
        ("acme/odd-mnli", named(model_type="odd"), 2500, few),
        ("acme/torn-mnli", named() | {"config.json": b"{"}, 2000, few),
        ("acme/rare-mnli", named(), 3, few),
    ]
    with serving(tmp_path / "served") as hub:
        for model, files, downloads, more in listed:
            hub.add(model, files, downloads=downloads, **more)
        yield hub


KINDS_OF_FAILURES = {
    "gated": "gated", "pickled": "no safetensors", "own": "remote code", "odd": "architecture",
    "torn": "incomplete",
}  # fmt: skip


# Asked


def written(path: Path, *entries: dict, **more: object) -> Path:
    path.write_text(yaml.safe_dump({"title": "mine", "respondents": list(entries), **more}))
    return path


def test_failures_have_kinds_and_a_second_run_asks_nobody(hub, models, tmp_path, monkeypatch):
    models_on_hub = ["acme/bert-mnli", "acme/roberta-nli"]
    models_on_hub += [f"acme/{name}-mnli" for name in KINDS_OF_FAILURES]
    entries = [{"model": model, "revision": commit(model)} for model in models_on_hub]
    entries += [
        {"model": "acme/withdrawn", "revision": "0123abc"},
        {"model": "acme/bert-mnli2", "revision": "main"},
        {"model": "mine"},
        {"model": "acme/rare-mnli", "revision": "v9"},
    ]
    hub.add("acme/bert-mnli2", models[0], downloads=1)
    shutil.copytree(models[1], tmp_path / "mine")
    file = written(tmp_path / "all.yaml", *entries)

    loads = []
    real = PreTrainedModel.to

    def full(self, *args, **options):
        loads.append(self.config.architectures)
        if self.config.model_type == "bert" and len(loads) == 1:
            raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB")
        return real(self, *args, **options)

    monkeypatch.setattr(PreTrainedModel, "to", full)
    how = {"store": tmp_path / "store", "dtype": "float32", "progress": False}
    failures = tmp_path / "failed.csv"
    with pytest.warns(UserWarning, match="did not answer everything"):
        first = ask("challenges", str(file), **how, failures=failures)
    assert first["respondent_id"].unique().tolist() == [
        "acme/roberta-nli", "acme/bert-mnli2", "mine",
    ]  # fmt: skip
    summary = first.attrs["summary"]
    assert summary["asked"] == 3 * 192
    expected = {f"acme/{name}-mnli": kind for name, kind in KINDS_OF_FAILURES.items()}
    expected |= dict.fromkeys(("acme/withdrawn@0123abc", "acme/rare-mnli@v9"), "not found")
    expected["acme/bert-mnli"] = "memory"
    assert expected.items() <= summary["kinds"].items()
    table = pd.read_csv(failures, keep_default_na=False)
    assert dict(zip(table["respondent"], table["kind"], strict=True)) == summary["kinds"]
    assert set(table["kind"]) <= set(KINDS)
    assert dict(zip(table["respondent"], table["reason"], strict=True)) == summary["failed"]
    expected = load_respondent(models[1], device="cpu", dtype="float32").answer(
        list(first[["premise", "hypothesis"]][:5].itertuples(index=False, name=None))
    )
    assert np.abs(first[NLI][:5].to_numpy() - expected).max() < 1e-5

    before = hub.asked.copy()
    loads.clear()
    with pytest.warns(UserWarning, match="did not answer everything"):
        again = ask("challenges", str(file), **how, failures=failures)
    pd.testing.assert_frame_equal(again, first)
    assert (again.attrs["summary"]["asked"], loads) == (0, [])
    assert again.attrs["summary"]["failed"] == summary["failed"]
    assert pd.read_csv(failures, keep_default_na=False).equals(table)
    fetched = [path for path in (hub.asked - before) if "resolve" in path]
    assert [path for path in fetched if "bert-mnli/" in path or "pickled" in path] == []

    rows = table[table["kind"] != "memory"]
    rows.to_csv(failures, index=False)  # a line that is taken out is tried again
    loads.append("not the first")
    with pytest.warns(UserWarning, match="did not answer everything"):
        third = ask("challenges", str(file), **how, failures=failures)
    assert third["respondent_id"].nunique() == 4
    assert third.attrs["summary"]["asked"] == 192
    assert "acme/bert-mnli" not in set(pd.read_csv(failures)["respondent"])


def test_a_model_that_was_mended_or_asked_in_another_way_is_tried_again(save_tiny_model, tmp_path):
    good = save_tiny_model(tmp_path / "good")
    bad = save_tiny_model(tmp_path / "bad", labels=("good", "bad", "ugly"), seed=1)
    file = written(tmp_path / "two.yaml", {"model": "good"}, {"model": "bad"})
    how = {"store": tmp_path / "store", "progress": False, "failures": tmp_path / "f.csv"}
    with pytest.warns(UserWarning, match="bad did not answer"):
        assert ask("challenges", file, **how).attrs["summary"]["kinds"] == {"bad": "labels"}
    assert len(pd.read_csv(tmp_path / "f.csv")) == 1
    with pytest.raises(RespondentError, match="without the head for mode 'mlm'"):
        ask("challenges", str(bad), mode="mlm", **how)
    assert pd.read_csv(tmp_path / "f.csv")["mode"].tolist() == ["nli", "mlm"]
    config = json.loads((bad / "config.json").read_text())
    right = json.loads((good / "config.json").read_text())
    config |= {name: right[name] for name in ("id2label", "label2id")}
    (bad / "config.json").write_text(json.dumps(config))
    assert ask("challenges", file, **how)["respondent_id"].nunique() == 2
    assert pd.read_csv(tmp_path / "f.csv")["mode"].tolist() == ["mlm"]


def test_memory_is_tried_again_with_other_questions(tiny_model, tmp_path, monkeypatch):
    how = {"store": tmp_path / "store", "progress": False, "failures": tmp_path / "f.csv"}

    def full(*_, **__):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(PreTrainedModel, "to", full)
        with pytest.raises(RespondentError, match="does not fit"):
            ask("gad7", str(tiny_model), **how)
    with pytest.raises(RespondentError, match="does not fit"):
        ask("gad7", str(tiny_model), **how)
    assert len(ask("challenges", str(tiny_model), **how)) == 192


def test_answers_outlive_discarded_downloads_and_need_no_hub(hub, models, tmp_path, monkeypatch):
    hub.add("acme/copy", models[1], downloads=1)
    file = written(tmp_path / "p.yaml", *({"model": m, "revision": commit(m)}
                   for m in ("acme/bert-mnli", "acme/copy")))  # fmt: skip
    load_respondent("acme/copy")  # was in the cache before
    how = {"store": tmp_path / "store", "progress": False, "dtype": "float32"}
    first = ask("challenges", file, **how, keep_downloads=False)
    left = sorted(path for path in (tmp_path / "hub").rglob("*") if path.is_file())
    weights = [path for path in left if path.suffix == ".safetensors"]
    assert ["copy" in str(path) for path in weights] == [True]
    assert max(p.stat().st_size for p in left if "bert-mnli" in str(p)) < 20_000
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    before = hub.asked.copy()
    again = ask("challenges", file, **how)
    pd.testing.assert_frame_equal(first, again)
    assert again.attrs["summary"]["asked"] == 0
    assert hub.asked == before
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    assert len(ask("gad7", file, **how)) > 0, "downloaded again"


def test_one_model_is_in_memory_at_a_time_even_after_failures(save_tiny_model, tmp_path):
    bad = [save_tiny_model(tmp_path / f"bad{i}", labels=("good", "bad", "ugly"), seed=i)
           for i in range(3)]  # fmt: skip

    def loaded() -> int:
        gc.collect()
        return sum(issubclass(type(thing), PreTrainedModel) for thing in gc.get_objects())

    class Spy:
        identity: ClassVar[dict] = {
            **dict.fromkeys(("respondent_id", "model", "fingerprint"), "spy"),
            **{"mode": "nli", "dtype": "float32", "source": "local", "revision": "0"},
        }

        def answer(self, pairs):
            self.seen = loaded()
            entailment = np.linspace(0.2, 0.4, len(pairs), dtype="float32")
            return np.stack([entailment, 0.6 - entailment, np.full_like(entailment, 0.4)], axis=1)

    spy, before = Spy(), loaded()
    with pytest.warns(UserWarning, match="did not answer"):
        ask("challenges", [*map(str, bad), spy], tmp_path / "store", progress=False)
    assert spy.seen == before


# By hand


def test_a_file_by_hand_takes_members_folders_and_hub_ids(tiny_model, tmp_path):
    (tmp_path / "folder").symlink_to(tiny_model, target_is_directory=True)
    file = written(tmp_path / "p.yaml", {"model": "minilm-mnli-l3-s16"}, {"model": "folder"},
                   {"model": "acme/x"}, {"model": "acme/y", "revision": "main"})  # fmt: skip
    names = ["minilm-mnli-l3-s16", str(tmp_path / "folder"), "acme/x", "acme/y@main"]
    assert population(file) == names
    assert population(f"{file}, other") == [*names, "other"]
    assert population_table(file)["respondent_id"].tolist()[2:] == ["acme/x", "acme/y"]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("title: [", "line 1"),
        ("[]", "population"),
        ("title: x\nrespondents: []", "no respondents"),
        ("title: x\nrespondents: 5", "respondents"),
        ("respondents: [{model: a/b}]", "title"),
        ("title: x\nrespondents:\n- model: a/b\n- model: c/d\n- model: a/b", "a/b"),
        ("title: x\nrespondents:\n- model: a/b\n  size: 3", "respondent 1, size"),
        ("title: x\nrespondents:\n- revision: abc", "respondent 1, model"),
        ("title: x\nrespondents:\n- model: a/b\n  revision: 1234", "respondent 1, revision"),
        ("title: x\nrespondents:\n- model: a,b", "respondent 1, model"),
        ("title: x\nrespondents:\n- model: a/b\n  downloads: -1", "respondent 1, downloads"),
        ("title: x\ntitle: y\nrespondents:\n- model: a/b", "line 2"),
        ("title: x\nrespondents:\n- model: a/b\nleft_out:\n- {model: c/d, kind: gatd, reason: r}",
         "left_out 1, kind"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_file_is_named_with_its_place(tmp_path, text, place):
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises((ParameterError, RespondentError), match=place):
        population(tmp_path / "p.yaml")


def test_a_file_that_is_none_is_named(tmp_path):
    with pytest.raises(ParameterError, match=r"none\.yaml"):
        population(tmp_path / "none.yaml")
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ParameterError, match="is not a table of failures"):
        ask("challenges", "minilm-mnli-l3-s16", "memory://none", failures=tmp_path / "t.csv")
    with pytest.raises(ParameterError, match="cannot be written"):
        ask("challenges", "minilm-mnli-l3-s16", "memory://none", failures=tmp_path / "no/t.csv")
