"""What is raised: the library's own text, as the exceptions that callers expect."""

from __future__ import annotations

from typing import Any

__all__ = ["DivergedError", "FileError", "IctdError", "InputError", "InputTypeError", "InternalError", "RefusedWarning"]


class IctdError(Exception):
    """Anything that this library raises on its own."""


class InputError(IctdError, ValueError):
    """A value that is refused: what was found, what was expected, and where."""


class InputTypeError(IctdError, TypeError):
    """An object of a type that is refused."""


class DivergedError(IctdError, ArithmeticError, ValueError):
    """The input was fine, and numbers left the finite range: layers or training diverge."""


class FileError(IctdError, OSError):
    """A file that cannot be read or written."""

    @staticmethod
    def of(code: int | None, text: str, path: str) -> FileError:
        """An error of that number of the system's, as the class that Python has for it."""
        error = _file_error(type(OSError(code, "")) if code is not None else OSError)(text)
        error.errno, error.filename = code, path
        return error

    def __str__(self) -> str:
        # That of OSError is made of the number and the path, which the library's text has.
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> tuple[Any, ...]:
        return (FileError.of, (self.errno, str(self), self.filename))


_file_errors: dict[type[OSError], type[FileError]] = {OSError: FileError}


def _file_error(kind: type[OSError]) -> type[FileError]:
    """The class that is a FileError and one of Python's: always the same."""
    if kind not in _file_errors:
        _file_errors[kind] = type("FileError", (FileError, kind), {"__module__": __name__})
    return _file_errors[kind]


class InternalError(IctdError, RuntimeError):
    """A bug of the library."""


class RefusedWarning(UserWarning):
    """Values that should not be used: the judgement says why."""
