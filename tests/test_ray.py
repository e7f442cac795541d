"""The Ray engine on a real cluster of two machines: what it returns, and what it survives."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.request import Request, urlopen

import pandas as pd
import pyarrow.parquet as pq
import pytest

import psychometrics as pm
from psychometrics.asking import cluster
from psychometrics.asking.population import population
from psychometrics.exceptions import ParameterError, RespondentError, StoreError
from psychometrics.models.sources import Source, find
from psychometrics.modes.mode import Identity
from psychometrics_book.studies.meaningless import null_model
from tests.faults.faults import ON_RAY, SMALL, _two_machines, _workers

_WAIT = "RAY_raylet_start_wait_time_s"
os.environ[_WAIT] = ON_RAY[_WAIT]  # read when Ray is imported
ray = pytest.importorskip("ray", reason="the engine for clusters is an extra")
pytestmark = pytest.mark.timeout(900)  # a busy machine takes minutes to start each node
ASKED = ["challenges", "gad7"]


@pytest.fixture(scope="module")
def machines():
    """Two machines of a cluster, which are processes of this one."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ON_RAY.items():
            patch.setenv(name, value)
        patch.setenv("AWS_ACCESS_KEY_ID", "key")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        try:
            machines = _two_machines()
            ray.init(machines.address, log_to_driver=False, logging_level="ERROR")
        except Exception as error:  # Ray raises nothing more special where a node is late
            ray.shutdown()
            load = os.getloadavg()[0]
            if load <= os.cpu_count():
                raise
            pytest.skip(f"Ray did not start while the machine was busy (load {load:.0f}): {error}")
        yield machines
        ray.shutdown()
        machines.shutdown()


@pytest.fixture(scope="module")
def models(tmp_path_factory, save_tiny_model):
    """Folders of three models that take a few seconds."""
    folder = tmp_path_factory.mktemp("models")
    deep = {"hidden_size": 64, "num_hidden_layers": 6}
    return [str(save_tiny_model(folder / f"m{seed}", seed=seed, **deep)) for seed in range(3)]


@pytest.fixture(scope="module")
def here(models, tmp_path_factory):
    """What the local engine returns."""
    store = tmp_path_factory.mktemp("here")
    return pm.ask(ASKED, models, store=store, dtype="float32", progress=False)


def on_cluster(models, store, asked=ASKED, **how) -> pd.DataFrame:
    return pm.ask(asked, models, store=store, engine="ray", progress=False, **how)


def keys(store: Path) -> list[str]:
    """The keys of all rows of all parts, merged or not."""
    parts = [pq.read_table(part) for part in store.rglob("*.parquet")]
    return [key for part in parts for key in part["key"].to_pylist()]


def in_the_middle(store: Path, parts: int, do) -> threading.Thread:
    """Do something once a store has so many parts."""

    def wait() -> None:
        while len(list(store.rglob("*.parquet"))) < parts:
            time.sleep(0.01)
        do()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def same(found: pd.DataFrame, expected: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(found, expected, atol=1e-6, rtol=0)
    for name in ("unanswered", "failed"):
        assert found.attrs["summary"][name] == expected.attrs["summary"][name]


def test_a_cluster_returns_what_is_returned_here_once_asked(
    machines, models, here, tmp_path, monkeypatch
):
    found = on_cluster(models, tmp_path, dtype="float32")
    same(found, here)
    assert list(found.attrs) == list(here.attrs)
    counts = {name: found.attrs["summary"][name] for name in ("asked", "from_store")}
    assert counts == {name: here.attrs["summary"][name] for name in counts}
    assert sorted(keys(tmp_path)) == sorted(set(keys(tmp_path)))
    monkeypatch.setattr(cluster, "_run", None)  # nothing is started for what is stored
    again = on_cluster(models[::-1], tmp_path, dtype="float32")
    assert again.attrs["summary"]["asked"] == 0
    assert again.attrs["summary"]["from_store"] == len(again) == len(here)
    assert list(again["respondent_id"].unique()) == ["m2", "m1", "m0"]


def test_other_modes_that_load_models_travel_too(machines, tmp_path, tmp_path_factory):
    model = [null_model(tmp_path_factory.mktemp("null"), 3)]
    how = {"mode": "options", "dtype": "float32", "choose": "draw", "runs": 2}
    expected = pm.ask("ipip20", model, store=tmp_path / "here", progress=False, **how)
    found = on_cluster(model, tmp_path / "there", "ipip20", **how)
    same(found, expected)
    assert found.attrs["summary"]["asked"] == expected.attrs["summary"]["asked"]


def test_who_cannot_answer_is_named_and_the_others_are_asked(
    machines, models, tmp_path, save_tiny_model
):
    two = str(save_tiny_model(tmp_path / "two", labels=("no", "yes")))
    with pytest.warns(UserWarning, match="two did not answer everything: two has 2 output"):
        answers = on_cluster([two, models[0]], tmp_path / "there", dtype="float32")
    with pytest.warns(UserWarning, match="two did not answer"):
        expected = pm.ask(
            ASKED, [two, models[0]], store=tmp_path / "here", dtype="float32", progress=False
        )
    same(answers, expected)
    with pytest.raises(RespondentError, match="two has 2 output"):
        on_cluster([two], tmp_path / "there", dtype="float32")


def test_a_killed_worker_or_lost_machine_costs_no_answer(machines, models, here, tmp_path):
    killed = []

    def kill() -> None:
        for process in _workers()[:1]:
            killed.append(process.pid)
            process.kill()

    thread = in_the_middle(tmp_path, 2, kill)
    same(on_cluster(models, tmp_path, dtype="float32"), here)
    thread.join()
    assert killed
    assert sorted(keys(tmp_path)) == sorted(set(keys(tmp_path)))
    # A third machine joins, and leaves with what it was doing.
    third = machines.add_node(**SMALL)
    machines.wait_for_nodes()
    store, lost = tmp_path / "lost", []

    def leave() -> None:
        lost.append(len(_workers()))
        machines.remove_node(third, allow_graceful=False)

    thread = in_the_middle(store, 2, leave)
    found = on_cluster(models, store, dtype="float32")
    thread.join()
    same(found, here)
    assert lost[0] > 0
    assert sorted(keys(store)) == sorted(set(keys(store)))
    summary = found.attrs["summary"]
    assert summary["asked"] + summary["from_store"] == len(here)


def test_a_process_that_is_lost_each_time_is_given_up_with_a_sentence(machines, models, tmp_path):
    ended = threading.Event()

    def kill_all() -> None:
        while not ended.wait(0.05):
            for process in _workers():
                process.kill()

    thread = threading.Thread(target=kill_all, daemon=True)
    thread.start()
    try:
        with pytest.raises(RespondentError, match="m0 was tried 3 times, and its process was lost"):
            on_cluster(models[:1], tmp_path, dtype="float32")
    finally:
        ended.set()
        thread.join()


@pytest.fixture(scope="module")
def bucket():
    """URL of a bucket of a real object store, which speaks S3 on this machine."""
    pytest.importorskip("moto", reason="needs moto, which the extra `test` installs")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    command = [sys.executable, "-m", "moto.server"]
    with subprocess.Popen([*command, "-H", "127.0.0.1", "-p", str(port)], **quiet) as server:
        url = f"http://127.0.0.1:{port}"
        for _ in range(600):
            try:
                urlopen(Request(f"{url}/bucket", method="PUT")).close()
                break
            except OSError:
                time.sleep(0.1)
        yield f"s3://bucket/%s?endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
        server.terminate()


def test_answers_are_kept_in_an_object_store_by_both_engines(machines, bucket, models, here):
    local, there, expected = bucket % "local", bucket % "there", here[here["respondent_id"] == "m0"]
    same(pm.ask(ASKED, models[:1], store=local, dtype="float32", progress=False), expected)
    found = on_cluster(models[:1], there, dtype="float32")
    same(found, expected)
    assert found.attrs["summary"]["asked"] == len(expected)
    assert on_cluster(models[:1], local, dtype="float32").attrs["summary"]["asked"] == 0
    assert pm.manifests(there)["answers"].sum() == len(expected)


def test_what_a_cluster_cannot_do_is_done_here_or_refused(
    machines, models, here, tmp_path, monkeypatch
):
    loaded, file = pm.load_respondent(models[1], dtype="float32"), tmp_path / "file"
    file.touch()
    found = on_cluster([models[0], loaded], tmp_path / "both", dtype="float32")
    same(found, here[here["respondent_id"].isin(["m0", "m1"])])
    for error, said, asked, store, how in (
        (ParameterError, "No respondent is a model", [loaded], tmp_path, {}),
        (ParameterError, "has no options for some items", ["ann"], tmp_path, {"mode": "human"}),
        (ParameterError, "mean should be", models, tmp_path, {"mode": "causal", "mean": "median"}),
        (StoreError, "is one process's own memory", models, "memory://answers", {}),
        (StoreError, "is a file, not a store", models, file, {}),
    ):
        with pytest.raises(error, match=said):
            on_cluster(asked, store, **how)
    for how in ({"engine": "spark"}, {"address": "10.0.0.1:6379"}):
        with pytest.raises(ParameterError, match=next(iter(how))):
            pm.ask("gad7", models, **how)
    with monkeypatch.context() as unconnected:
        unconnected.setattr(ray, "is_initialized", lambda: False)
        with pytest.raises(ParameterError, match="There is no Ray cluster at"):
            cluster._connect("127.0.0.1:1")  # where nobody listens
    # A machine that has another model under the name.
    identity = pm.modes.identify(models[0], dtype="float32")
    task = cluster._Task(identity, models[1], "nli", [], "/answers", {})
    with pytest.raises(RespondentError, match=r"m0 differs on .*: copy the"):
        task.check_model()


def test_the_engine_for_clusters_says_what_to_install(models, monkeypatch):
    monkeypatch.setattr(cluster, "ray", None)
    with pytest.raises(ParameterError, match="pip install ray"):
        pm.ask("challenges", models[:1], engine="ray")


def test_processors_memory_and_gpus_are_asked_for_by_the_size_of_the_model(models, monkeypatch):
    from transformers import AutoModelForSequenceClassification

    model = AutoModelForSequenceClassification.from_pretrained(models[0])
    size = sum(parameter.numel() for parameter in model.parameters())
    assert find(models[0]).parameters() == size
    embedded = find(population("encoders")[0]).parameters()
    assert embedded == pytest.approx(22.7e6, rel=0.01)
    small, large = {"CPU": 2, "memory": 4e9}, {"CPU": 64, "memory": 4e11, "GPU": 4}
    task = cluster._Task(Identity(models[0], "nli", dtype="float32"), models[0], "nli", [], "", {})

    def resources(parameters, *nodes):
        monkeypatch.setattr(Source, "parameters", lambda _: parameters)
        return task.estimate_resources(list(nodes))

    assert resources(22e6, small) == {"num_cpus": 1, "memory": 2**30 + 132_000_000}
    assert resources(355e6, small)["num_cpus"] == 2  # all that there are
    assert resources(7e9, small)["memory"] == 4e9
    assert resources(355e6, small, large) == {
        "num_cpus": 8, "memory": 2**30 + 2_130_000_000, "num_gpus": 0.25,
    }  # fmt: skip
    assert resources(22e6, large)["num_gpus"] == 0.125
    assert resources(7e9, large)["num_gpus"] == 1.0
