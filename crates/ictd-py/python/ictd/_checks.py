"""What arguments must be before the library sees them."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Sequence
from typing import SupportsFloat, SupportsIndex, TypeVar

import numpy as np
import numpy.typing as npt

from ictd.errors import InputError, InputTypeError

__all__ = ["StepSize", "flag", "floats", "given", "listed", "plain_path", "real", "some_real", "step", "unmasked", "whole", "word"]

_Given = TypeVar("_Given")

StepSize = float | Sequence[float] | npt.NDArray[np.floating]
"""One step size for all layers, or one for each."""


def whole(name: str, value: SupportsIndex, least: int = 0) -> int:
    """A whole number, at least that."""
    try:
        found = operator.index(value)
    except TypeError:
        raise InputTypeError(f"{name} is of type {type(value).__name__}, expected a whole number, {least} or more") from None
    if not least <= found < 2**63:
        raise InputError(f"{name} is {found}, expected a whole number, {least} or more and below 2^63")
    return found


def given(name: str, value: SupportsIndex | None) -> int | None:
    """A whole number, if there is one."""
    return None if value is None else whole(name, value)


def real(name: str, value: SupportsFloat) -> float:
    """A number."""
    try:
        # A text is no number, though Python makes one of it.
        if isinstance(value, (str, bytes, bytearray)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise InputTypeError(f"{name} is of type {type(value).__name__}, expected a number") from None
    except OverflowError:
        raise InputError(f"{name} is beyond the numbers of double precision") from None


def some_real(name: str, value: SupportsFloat | None) -> float | None:
    """A number, if there is one."""
    return None if value is None else real(name, value)


def listed(name: str, values: Iterable[SupportsIndex] | SupportsIndex | None) -> list[int] | None:
    """A list of whole numbers, if there is one; a single number is a list of one."""
    if values is None:
        return None
    # An array without axes is a number, and looks as if it could be gone through.
    if not isinstance(values, Iterable) or isinstance(values, np.ndarray) and values.ndim == 0:
        return [whole(name, values)]  # type: ignore[arg-type,unused-ignore]
    return [whole(name, value) for value in values]


def word(name: str, value: str) -> str:
    """A text."""
    if not isinstance(value, str):
        raise InputTypeError(f"{name} is of type {type(value).__name__}, expected a text")
    return value


def plain_path(path: str | os.PathLike[str]) -> str:
    """A path as text."""
    return os.fspath(path)


def flag(name: str, value: bool) -> bool:
    """True or false."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputTypeError(f"{name} is of type {type(value).__name__}, expected true or false")
    return bool(value)


def unmasked(name: str, given: _Given) -> _Given:
    """What is given, unless it is an array of which entries are masked: what is under a mask does not count."""
    if isinstance(given, np.ma.MaskedArray) and np.ma.is_masked(given):
        raise InputError(f"{name} has masked entries, expected none: leave their rows out, or fill them with {name}.filled(…)")
    return given


def floats(name: str, numbers: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Numbers as an array of one's own."""
    try:
        made = np.asarray(unmasked(name, numbers))
        # A text is no number, though NumPy makes one of it.
        if made.dtype.kind in "SU" or made.dtype.kind == "O" and any(isinstance(entry, (str, bytes)) for entry in made.flat):
            raise TypeError("found a text")
        return np.array(made, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputTypeError(f"{name}: {error}, expected numbers") from None


def step(size: StepSize) -> float | tuple[float, ...]:
    """A number, or a tuple of one for each layer."""
    found = floats("step_size", size)
    return float(found) if found.ndim == 0 else tuple(float(one) for one in found)
