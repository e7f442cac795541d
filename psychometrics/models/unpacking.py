"""Unpack packed models once, into safetensors in the user's cache.

A packed model takes five times as long to answer as an unpacked model.
"""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import tempfile
import warnings
from pathlib import Path

from ..exceptions import IncompleteModelError, RespondentError
from ..files import known_sha256
from ..paths import cache_dir
from .model_files import read_json

# File in the folder of an unpacked model: the SHA-256 of each of its files.
_DIGESTS_FILE = "sha256.json"


def _unpacked_folder(digest: str) -> Path:
    """Return the folder for the unpacked copy of the file with the given SHA-256."""
    return cache_dir() / "models" / f"gguf-{digest[:16]}"


def _find_unpacked(name: str, digest: str) -> Path | None:
    """Return the folder of an unpacked model, if it exists; refuse one whose files were changed."""
    folder = _unpacked_folder(digest)
    note = folder / _DIGESTS_FILE
    if not note.is_file():
        return None
    if read_json(name, note) != _file_digests(folder):
        raise IncompleteModelError(
            f"{folder}, the unpacked copy of {name}, was changed: delete this folder, so that the "
            "model is unpacked again."
        )
    return folder


def _file_digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of an unpacked model."""
    paths = sorted(path for path in folder.glob("*") if path.name != _DIGESTS_FILE)
    return {path.name: known_sha256(path) for path in paths}


def _unpack(file: Path, digest: str) -> Path:
    """Unpack a GGUF file to bfloat16, unless that was done before; return the folder."""
    folder = _unpacked_folder(digest)
    if (folder / _DIGESTS_FILE).is_file():
        return folder

    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    folder.parent.mkdir(parents=True, exist_ok=True)

    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        try:
            # Its progress bar has no switch of its own.
            with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
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
                f"{file.name} cannot be unpacked ({reason}): check that the GGUF is complete."
            ) from error

        (Path(temporary) / _DIGESTS_FILE).write_text(json.dumps(_file_digests(Path(temporary))))
        if folder.is_dir() and not (folder / _DIGESTS_FILE).is_file():  # left by an earlier version
            shutil.rmtree(folder)

        try:
            Path(temporary).rename(folder)
        except OSError:  # another process was faster
            if not folder.is_dir():
                raise

    return folder
