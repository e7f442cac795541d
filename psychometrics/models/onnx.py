"""Find ONNX files among a model's files, and read the precision of their weights.

An ONNX file holds a model's graph and weights without program code. Transformers.js and optimum
write it into a model's folder or into its subfolder ``onnx``. This module needs no library that
runs such files.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path

from ..exceptions import IncompleteModelError, RespondentError
from ..paths import user_path
from .model_files import _WHOLE_WEIGHTS

FILES = (
    "model.onnx",
    "onnx/model.onnx",
    "model_quantized.onnx",
    "onnx/model_quantized.onnx",
)
"""The ONNX files that a folder may hold; the first one that exists answers for the folder."""
# Types of weights by their numbers in ONNX (TensorProto.DataType), from the coarsest on.
_TYPES = {
    22: "int4", 21: "uint4", 3: "int8", 2: "uint8", 16: "bfloat16", 10: "float16", 1: "float32",
    11: "float64",
}  # fmt: skip
# Numbers of fields in ONNX's messages: the graph of a model, its weights, their sizes and type.
_GRAPH = 7
_WEIGHTS = 5
_SIZES = 1
_TYPE = 2


def find_onnx(path: str | Path) -> Path | None:
    """Return the ONNX file that a path means, or None if it means a model of another kind.

    Parameters
    ----------
    path : str or Path
        An ONNX file, or a folder that holds one of ``FILES`` and no safetensors.

    Examples
    --------
    >>> find_onnx("minilm-mnli-l3-s16") is None
    True
    """
    place = user_path(path)
    if place is None or any(os.path.exists(place / name) for name in _WHOLE_WEIGHTS):
        return None
    if place.suffix == ".onnx" and os.path.isfile(place):
        return place.resolve()

    # Unlike methods of paths, these functions find nothing in a folder without permission.
    files = (place / name for name in FILES)
    return next((file.resolve() for file in files if os.path.isfile(file)), None)


def _settings_folder(file: Path) -> Path:
    """Return the folder with an ONNX file's config.json: its own, or the one above ``onnx``."""
    is_below = file.parent.name == "onnx" and not (file.parent / "config.json").is_file()
    return file.parent.parent if is_below else file.parent


def _onnx_files(file: Path) -> list[Path]:
    """Return an ONNX file and the files beside it that hold its larger weights."""
    return sorted(path for path in file.parent.iterdir() if path.name.startswith(file.name))


def resolve_precision(file: Path, dtype: str | None = None) -> str:
    """Return the precision of an ONNX file, which is its coarsest type of weights.

    Only matrices count: the offsets of quantized weights have a type of their own.

    Raises
    ------
    RespondentError
        Another precision was requested, or the file is damaged.
    """
    types = set()
    try:
        with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as m:
            for graph in _parse_fields(m, 0, len(m), _GRAPH):
                for weight in _parse_fields(m, *graph, _WEIGHTS):
                    sizes = _parse_numbers(m, weight, _SIZES)
                    if len(sizes) > 1:
                        types |= set(_parse_numbers(m, weight, _TYPE))
    except (ValueError, LookupError) as error:
        raise IncompleteModelError(f"{file}: not readable as ONNX; copy the file again.") from error

    precision = next((name for number, name in _TYPES.items() if number in types), None)
    if precision is None:
        raise IncompleteModelError(f"{file}: holds no weights; export the model again.")

    if dtype is not None and str(dtype).removeprefix("torch.") != precision:
        raise RespondentError(
            f"{file} has its weights in {precision}, and an ONNX file answers in no other "
            f"dtype than its own: leave out dtype='{dtype}', or name another file."
        )
    return precision


def _parse_numbers(content: mmap.mmap, message: tuple[int, int], number: int) -> list[int]:
    """Return the numbers in all fields with a number, written one by one or together."""
    values = []
    for begin, end in _parse_fields(content, *message, number):
        position = begin
        while position < end:
            value, position = _parse_number(content, position)
            values.append(value)

    return values


def _parse_fields(
    content: mmap.mmap | bytes, begin: int, end: int, number: int
) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each field with a number in a message of protocol buffers.

    Examples
    --------
    >>> message = bytes([0b1000, 3, 0b10010, 2, 65, 66])  # field 1 is 3, field 2 is "AB"
    >>> [message[begin:end] for begin, end in _parse_fields(message, 0, len(message), 2)]
    [b'AB']
    """
    position = begin
    while position < end:
        tag, position = _parse_number(content, position)
        form = tag % 8
        if form == 0:
            after = _parse_number(content, position)[1]
        elif form == 2:
            length, position = _parse_number(content, position)
            after = position + length
        else:
            after = position + {1: 8, 5: 4}[form]

        if after > end:
            raise ValueError("A field ends after its message.")
        if tag // 8 == number:
            yield position, after
        position = after


def _parse_number(content: mmap.mmap | bytes, position: int) -> tuple[int, int]:
    """Return a number in base 128, lowest digit first, and the position after it.

    Examples
    --------
    >>> _parse_number(bytes([0b10101100, 0b10]), 0)
    (300, 2)
    """
    value = 0
    for place in range(10):
        digit = content[position + place]
        value += digit % 128 << 7 * place
        if digit < 128:
            return value, position + place + 1

    raise ValueError("A number has more than ten digits.")
