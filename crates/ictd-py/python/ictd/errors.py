"""What is raised: the library's own text, as the exceptions that callers expect."""

from __future__ import annotations

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

    @classmethod
    def of(cls, code: int | None, text: str, path: str) -> FileError:
        """An error of that number of the system's, as the class that Python has for it."""
        kind = type(OSError(code, "")) if code is not None else OSError
        found = cls if kind is OSError else _file_errors.setdefault(kind, type(cls.__name__, (cls, kind), {"__module__": __name__}))
        error = found(text)
        error.errno, error.filename = code, path
        return error


_file_errors: dict[type[OSError], type[FileError]] = {}


class InternalError(IctdError, RuntimeError):
    """A bug of the library."""


class RefusedWarning(UserWarning):
    """Values that should not be used: the judgement says why."""
