"""Errors of the package. Every message says what is wrong, where, and what to do."""

from __future__ import annotations

import errno
import importlib
import os
import warnings
from collections.abc import Iterator, Mapping, Sized
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import ClassVar

from .paths import user_path

KINDS = {
    "gated": "the hub gives it only to those who have accepted its terms",
    "not found": "there is no such model, or not this version of it",
    "network": "the hub could not be reached",
    "no safetensors": "it has no safetensors weights: only formats that can carry code, or none",
    "remote code": "it needs program code of its own, which is never run",
    "architecture": "its architecture cannot answer in this mode, or is unknown to transformers",
    "labels": "its outputs do not mean entailment, neutral and contradiction",
    "memory": "it does not fit into memory",
    "incomplete": "one of its files is missing, damaged, or at odds with another",
    "other": "anything else",
}
"""The reasons why a model cannot answer, by the ``kind`` of a :class:`RespondentError`."""


class PsychometricsError(Exception):
    """The base class of errors that a user can fix; the command prints no traceback for them."""


class QuestionnaireError(PsychometricsError, ValueError):
    """A questionnaire's file is malformed, or lacks a required part."""


class RespondentError(PsychometricsError, ValueError):
    """A model cannot answer: it is missing, incomplete, unsafe to load, or ambiguous.

    ``kind``, one of :data:`KINDS`, names the obstacle, so that failures of many models can be
    counted.
    """

    def __init__(self, message: str = "", *, kind: str = "other") -> None:
        super().__init__(message)
        self.kind = kind

    @classmethod
    def of(cls, name: str, error: Exception) -> RespondentError:
        """Turn an error into a RespondentError, with a sentence on why a respondent failed."""
        if isinstance(error, PsychometricsError):
            if isinstance(error, RespondentError):
                return error
            raise error

        failure = cls(f"{type(error).__name__}: {' '.join(str(error).split())}")
        if out_of_memory(error):
            failure = cls(
                f"{name} does not fit into memory: use a smaller model, dtype='bfloat16', "
                "device='cpu' instead of a GPU, or an endpoint that serves the model.",
                kind="memory",
            )

        failure.__cause__ = error
        return failure

    @staticmethod
    def tell(errors: Mapping[str, RespondentError], answers: Sized) -> None:
        """Warn of the respondents that failed; raise the first error if none answered."""
        if errors and not len(answers):
            raise next(iter(errors.values()))
        for name, error in errors.items():
            reason = " ".join(str(error).split())
            warnings.warn(f"{name} did not answer everything: {reason}", stacklevel=3)


class IncompleteModelError(RespondentError):
    """A file of a model is missing, damaged, or at odds with another; its kind is *incomplete*."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message, kind="incomplete")


class StoreError(PsychometricsError, OSError):
    """A response store cannot be read or written."""


class DataError(PsychometricsError, OSError):
    """External data are neither in the mirror nor downloadable, or fail their checksum."""


class ParameterError(PsychometricsError, ValueError):
    """A parameter's name or value is wrong."""


class MissingPackageError(PsychometricsError, ImportError):
    """An optional package is not installed; the message contains the command that installs it.

    ``extras`` maps each optional package to the project's extra that installs it.
    """

    extras: ClassVar = {
        package: extra
        for extra, packages in {
            "models": "torch transformers peft safetensors gguf huggingface_hub",
            "onnx": "onnx onnxruntime tokenizers",
            "chat": "aiohttp",
            "train": "accelerate datasets",
            "figures": "jinja2 markupsafe matplotlib seaborn",
            "book": "bs4 jupyter_book latex2mathml nbconvert nbformat networkx nh3 onnxscript "
            "papermill pybtex pypdf sentence_transformers",
        }.items()
        for package in packages.split()
    }

    def __init__(self, package: str) -> None:
        super().__init__(
            f"{package}: it is not installed; "
            f"pip install 'psychometrics-of-language-models[{self.extras[package]}]'.",
            name=package,
        )


def needed(module: str) -> ModuleType:
    """Import a module of an optional package.

    Parameters
    ----------
    module : str
        A module of one of ``MissingPackageError.extras``, such as ``"matplotlib.pyplot"``.

    Returns
    -------
    module

    Raises
    ------
    MissingPackageError
        The package is not installed.

    Examples
    --------
    >>> needed("matplotlib.pyplot").__name__
    'matplotlib.pyplot'
    """
    with naming_extras():
        return importlib.import_module(module)


@contextmanager
def naming_extras() -> Iterator[None]:
    """Turn the absence of an optional package into an error that names its extra.

    Examples
    --------
    >>> with naming_extras():
    ...     raise ModuleNotFoundError("No module named 'papermill'", name="papermill")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.MissingPackageError: papermill: it is not installed; pip install ...
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in MissingPackageError.extras:
            raise

        raise MissingPackageError(package) from None


@contextmanager
def writing(path: object) -> Iterator[None]:
    """Turn a failure to write a file into a one-sentence error.

    Examples
    --------
    >>> with writing("no/folder.csv"):
    ...     raise FileNotFoundError(2, "No such file or directory")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: no/folder.csv cannot be written (No such file or ...
    """
    try:
        yield
    except OSError as error:
        is_full = error.errno in (errno.ENOSPC, errno.EFBIG)
        mend = "free some space, or name another file" if is_full else "name another file"
        reason = error.strerror or error
        raise ParameterError(f"{path} cannot be written ({reason}): {mend}.") from None


def check_file(path: str | Path, endings: tuple[str, ...]) -> Path:
    """Refuse a file that could not be written, before its content is computed.

    Parameters
    ----------
    path : str or Path
    endings : tuple of str
        Permitted extensions of the file's name.

    Returns
    -------
    Path
        The path, with its extension in lower case.

    Raises
    ------
    ParameterError
        The name has a different extension, the folder is missing or must not be written to, or the
        path is a folder.

    Examples
    --------
    >>> check_file("scores.doc", (".csv", ".json"))
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: scores.doc: end the file's name in .csv or .json.
    """
    file = user_path(path)
    if file is None:
        name = f"{str(path)!r:.200}"
        raise ParameterError(f"{name} is no file, or its name is too long: name a file.")
    if file.is_dir():
        raise ParameterError(f"{file} is a folder: name a file.")
    if file.suffix.lower() not in endings:
        raise ParameterError(f"{file}: end the file's name in {' or '.join(endings)}.")
    if not file.absolute().parent.is_dir():
        raise ParameterError(f"{file}: there is no folder {file.parent}; make it first.")
    if file.exists() and not file.is_file():
        raise ParameterError(f"{file} is not a file: name a file.")
    for place in (file.absolute().parent, file):
        if place.exists() and not os.access(place, os.W_OK):
            raise ParameterError(f"{file} cannot be written ({place} is protected): name another.")

    return file.with_suffix(file.suffix.lower())


def out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that the memory of the machine or of a GPU ran out."""
    # recognises torch.OutOfMemoryError without importing torch
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    texts = ("out of memory", "not enough memory", "can't alloc")
    return isinstance(error, RuntimeError) and any(text in str(error) for text in texts)
