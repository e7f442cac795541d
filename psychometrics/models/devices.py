"""Devices and precisions for a model's computations."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from ..exceptions import RespondentError

if TYPE_CHECKING:
    import torch


_PRECISIONS = ("float32", "bfloat16", "float16")
_DEVICE: ContextVar[str | None] = ContextVar("device", default=None)


@contextmanager
def computing_on(device: str | None) -> Iterator[None]:
    """Make a device the default within the block, if one is given.

    Raises
    ------
    RespondentError
        The device is unknown or not on this machine.

    Examples
    --------
    >>> with computing_on("cpu"):
    ...     resolve_device(None)
    device(type='cpu')
    """
    if device is not None:
        resolve_device(device)

    token = _DEVICE.set(device or _DEVICE.get())
    try:
        yield
    finally:
        _DEVICE.reset(token)


def resolve_device(device: str | torch.device | None) -> torch.device:
    """Return the device to compute on.

    It is the requested device, or else the device in ``PSYCHOMETRICS_DEVICE``, or else a GPU if
    there is one (CUDA, or Apple's MPS), or else the processor.

    Raises
    ------
    RespondentError
        The device is unknown or not on this machine.
    """
    import torch

    if device is None:
        device = _DEVICE.get() or os.environ.get("PSYCHOMETRICS_DEVICE") or None

    if device is None:
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")

    try:
        resolved = torch.device(device)
        module = torch.get_device_module(resolved)
        exists = module.is_available() and (resolved.index or 0) < module.device_count()
    except (RuntimeError, TypeError, AttributeError):
        exists = False

    if not exists:
        raise RespondentError(f"This machine has no device '{device}': use device='cpu'.")
    return resolved


def resolve_dtype(dtype: str | torch.dtype | None = None) -> str:
    """Return the precision of a model's computations: as requested, or else float32.

    bfloat16 keeps two to three digits of an answer, which depend on the processor. It is for large
    populations on hardware with fast bfloat16, and is never a default. float16 keeps three digits,
    and is for GPUs too old for bfloat16; large numbers overflow in float16. Processors without
    units for these types answer in them, too, but more slowly than in float32.

    Raises
    ------
    RespondentError
        The precision is not float32, bfloat16 or float16.
    """
    name = str(dtype or "float32").removeprefix("torch.")
    if name not in _PRECISIONS:
        allowed = ", ".join(map(repr, _PRECISIONS))
        raise RespondentError(f"dtype must be one of {allowed}, got '{dtype}'.")
    return name


def check_float32(device: torch.device, dtype: str, name: str = "The model") -> None:
    """Refuse float32 on a GPU that would instead multiply with TF32's ten bits.

    Convolutions, for which torch allows TF32 by default, are set to float32.

    Raises
    ------
    RespondentError
        The process has allowed TF32.
    """
    import torch

    if device.type != "cuda" or dtype != "float32":
        return

    torch.backends.cudnn.allow_tf32 = False
    if hasattr(torch.backends.cudnn, "conv"):  # since torch 2.9, this setting comes first
        torch.backends.cudnn.conv.fp32_precision = "ieee"

    try:
        exact = torch.get_float32_matmul_precision() == "highest"
    except RuntimeError:  # a setting that this function cannot read allows it
        exact = False

    if not exact:
        raise RespondentError(
            f"{name} would answer in TF32 and be recorded as float32: call "
            "torch.set_float32_matmul_precision('highest') first, or use dtype='bfloat16'."
        )
