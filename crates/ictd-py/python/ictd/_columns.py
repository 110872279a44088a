"""What NumPy and its friends give, as the library takes it: ``float64``, ``int64`` or lists of texts."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ictd import _core
from ictd._checks import unmasked
from ictd.errors import InputError, InputTypeError

__all__: list[str] = []

Floats = npt.NDArray[np.float64]
#: A column of a log as the library takes it.
Column = npt.NDArray[Any] | list[str]
_FLOAT64 = np.dtype(np.float64)


def is_frame(given: object) -> bool:
    """Whether it is a table with names of columns: of pandas, polars, or anything that speaks Arrow's PyCapsule interface."""
    return hasattr(given, "columns") and hasattr(given, "__len__") or hasattr(given, "__arrow_c_stream__") and not hasattr(given, "name")


def frame_columns(frame: Any) -> dict[Any, Any]:
    """The columns of a table by name. What is neither of pandas nor of polars goes through pyarrow."""
    if not (hasattr(frame, "columns") and hasattr(frame, "__getitem__") and hasattr(frame, "__len__")) or hasattr(frame, "column_names"):
        try:
            import pyarrow  # type: ignore[import-untyped,import-not-found,unused-ignore]
        except ImportError:
            raise InputTypeError(f"{type(frame).__name__} needs pyarrow to be read, or give a frame of pandas or polars") from None
        table = pyarrow.table(frame)
        _differ(table.column_names)
        return {name: table.column(name).to_numpy() for name in table.column_names}
    _differ(frame.columns)
    return {name: _plain(frame[name]) for name in frame.columns}


def _differ(names: Iterable[Any]) -> None:
    """Refuses two columns of one name."""
    seen: set[Any] = set()
    for name in names:
        if name in seen:
            raise InputError(f"the frame has two columns {name!r}, expected names that differ")
        seen.add(name)


def _plain(series: Any) -> npt.NDArray[Any]:
    """A column of a frame: numbers with NaN where there is none, or objects."""
    dtype = getattr(series, "dtype", None)
    if "pandas" in type(series).__module__ and not isinstance(dtype, np.dtype):
        if str(dtype).startswith("period"):
            return np.asarray(getattr(series, "dt", series).to_timestamp().to_numpy())
        if getattr(dtype, "kind", "O") in "biuf":
            kind = np.float64 if bool(series.isna().any()) else np.dtype(getattr(dtype, "numpy_dtype", np.float64))
            return np.asarray(series.to_numpy(dtype=kind, na_value=np.nan))
        return np.asarray(series.to_numpy(dtype=object, na_value=None))
    return _known(np.asarray(series.to_numpy()))


def _known(made: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Objects with NaN for pandas.NA, which cannot be compared."""
    missing = getattr(sys.modules.get("pandas"), "NA", None)
    if made.dtype.kind != "O" or missing is None:
        return made
    kept = [np.nan if entry is missing else entry for entry in made.ravel().tolist()]
    found = np.empty(made.size, dtype=object)
    found[:] = kept
    return found.reshape(made.shape)


def array(given: object, name: str) -> npt.NDArray[Any]:
    """Whatever NumPy makes an array of; sparse matrices and complex numbers are refused."""
    if hasattr(given, "toarray") and hasattr(given, "nnz"):
        raise InputTypeError(f"{name} is a sparse matrix, expected a dense array: X.toarray() makes one")
    unmasked(name, given)
    try:
        # A column of pandas may have a kind of its own for what is missing.
        made = _plain(given) if hasattr(given, "isna") and hasattr(given, "dtype") else _known(np.asarray(given))
    except (ValueError, TypeError) as error:
        raise InputError(f"{name}: {error}") from error
    _core.admit_entries(made.size, name)
    if made.dtype.kind == "c":
        raise InputError(f"Complex data not supported: {name} has dtype {made.dtype}, expected real numbers")
    return made


def floats(given: object, name: str) -> Floats:
    """Real numbers of any kind as ``float64``, without a copy where they are."""
    made = array(given, name)
    if made.dtype == _FLOAT64:
        return np.asarray(made, dtype=np.float64)
    if made.dtype.kind not in "fiubO":
        raise InputTypeError(f"{name} has dtype {made.dtype}, expected real numbers")
    try:
        return np.asarray(made.astype(np.float64))
    except TypeError as error:
        raise InputTypeError(f"{name}: {error}") from error
    except (ValueError, OverflowError) as error:
        raise InputError(f"{name}: {error}") from error


def column(given: object, name: str) -> Column:
    """One entry per row: numbers, texts, dates (as texts), truth values (as 0 and 1)."""
    made = array(given, name)
    if made.ndim != 1:
        raise InputError(f"{name} has shape {made.shape}, expected one dimension")
    if made.dtype.kind == "O":
        # Numbers that were kept as objects.
        plain = np.asarray(made.tolist()) if len(made) else made.astype(np.float64)
        made = plain if plain.ndim == 1 and plain.dtype.kind in "biuf" else made
    kind = made.dtype.kind
    if kind in "bi" or kind == "u" and (made.size == 0 or made.max() <= np.iinfo(np.int64).max):
        return np.ascontiguousarray(made, dtype=np.int64)
    if kind == "f":
        wide = np.ascontiguousarray(made, dtype=np.float64)
        # An episode 3.0 is the episode 3.
        is_whole = bool(np.all(np.isfinite(wide) & (wide == np.floor(wide)) & (np.abs(wide) < 2.0**53)))
        return wide.astype(np.int64) if is_whole else wide
    if kind == "m" and not np.isnat(made).any():
        # Of one unit, whichever it is.
        return np.ascontiguousarray(made).view(np.int64)
    if kind == "M":
        return [str(text) for text in made.astype("datetime64").astype(str)]
    return [text_of(entry) for entry in made.tolist()]


def text_of(entry: object) -> str:
    """A text, empty where there is no value."""
    if isinstance(entry, bytes):
        return entry.decode("utf-8", "replace")
    return "" if entry is None or entry != entry else str(entry)


class States:
    """States as features, one row each, or as labels."""

    def __init__(self, given: object, name: str = "X") -> None:
        self.names: list[str] | None = None
        self.is_label = False
        self.values: Column
        if is_frame(given):
            found = frame_columns(given)
            names = list(found)
            # As scikit-learn has it: only texts are names of features.
            self.names = names if names and all(isinstance(key, str) for key in names) else None
            parts = [np.asarray(part) for part in found.values()]
            if len(parts) == 1 and parts[0].dtype.kind not in "biuf" and not _is_numeric(parts[0]):
                self.is_label, self.values = True, column(parts[0], name)
                return
            wide = [floats(part, f"{name}, column {key}") for key, part in zip(names, parts, strict=True)]
            self.values = np.column_stack(wide) if wide else np.empty((len(given), 0))  # type: ignore[arg-type]
            return
        made = array(given, name)
        if made.ndim == 2 and made.shape[1] == 1 and made.dtype.kind in "UST":
            made = made[:, 0]
        if made.ndim == 1 and (made.dtype.kind in "biuUST" or made.dtype.kind == "O" and not _is_fractional(made)) and made.size:
            self.is_label, self.values = True, column(made, name)
            return
        if made.ndim != 2:
            raise InputError(
                f"Expected 2D array, got {'scalar' if made.ndim == 0 else f'{made.ndim}D'} array instead: {name} has shape {made.shape}, expected "
                "(rows, features), or labels in one dimension. Reshape your data either using array.reshape(-1, 1) if your data has a single "
                "feature or array.reshape(1, -1) if it contains a single sample."
            )
        self.values = floats(made, name)

    @property
    def rows(self) -> int:
        return len(self.values)

    @property
    def width(self) -> int:
        """Features per state; a label counts for one."""
        return 1 if self.is_label else int(np.shape(self.values)[1])


def _is_numeric(entries: npt.NDArray[Any]) -> bool:
    """Whether objects are numbers."""
    if entries.dtype.kind != "O":
        return False
    return all(entry is None or isinstance(entry, (int, float, np.number)) for entry in entries.tolist())


def _is_fractional(entries: npt.NDArray[Any]) -> bool:
    """Whether objects are numbers of which some are no integers: features and no labels."""
    return _is_numeric(entries) and any(isinstance(entry, (float, np.floating)) for entry in entries.tolist())


def has_sklearn() -> bool:
    """Whether somebody imported scikit-learn: what it expects is then raised and warned as its own."""
    return "sklearn" in sys.modules


def options(**given: object) -> str:
    """Options as JSON: what is None is left out, and numbers of NumPy are plain ones."""
    import json

    def plain(value: object) -> object:
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, (Mapping, Sequence)) and not isinstance(value, str):
            raise InputTypeError(f"an option is {value!r}, expected a number, a text or a truth value")
        return value

    kept = {key: plain(value) for key, value in given.items() if value is not None}
    try:
        return json.dumps(kept)
    except TypeError as error:
        raise InputTypeError(f"options: {error}") from None
