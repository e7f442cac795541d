"""Find ONNX files among a model's files, and read the precision of their weights.

An ONNX file holds a model's graph and weights without program code. Transformers.js and optimum
write it into a model's folder or into its subfolder ``onnx``. This module does not run them.
"""

from __future__ import annotations

import os
from pathlib import Path

from ..exceptions import IncompleteModelError, RespondentError, naming_extras
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
    with naming_extras():
        import onnx

    try:
        graph = onnx.load(file, load_external_data=False).graph
    except Exception as error:  # an error of protobuf, which onnx does not name
        raise IncompleteModelError(f"{file}: not readable as ONNX; copy the file again.") from error

    types = {weight.data_type for weight in graph.initializer if len(weight.dims) > 1}
    precision = next((name for number, name in _TYPES.items() if number in types), None)
    if precision is None:
        raise IncompleteModelError(f"{file}: holds no weights; export the model again.")

    if dtype is not None and str(dtype).removeprefix("torch.") != precision:
        raise RespondentError(
            f"{file} has its weights in {precision}, and an ONNX file answers in no other "
            f"dtype than its own: leave out dtype='{dtype}', or name another file."
        )
    return precision
