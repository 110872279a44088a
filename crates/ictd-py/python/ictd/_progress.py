"""How far long work is: a line on stderr, and the caller's own callback."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from ictd.errors import InputTypeError

__all__ = ["Callback", "watched"]


class Callback(Protocol):
    """Is told how far work is, five times a second at most; what it raises ends the work and is raised to the caller.

    More keywords may come: take ``**others``.
    """

    def __call__(self, *, name: str, done: int, total: int, unit: str, seconds: float) -> object: ...


class _Line:
    """One line that is rewritten, from the second second on."""

    def __init__(self) -> None:
        self.shown = False

    def __call__(self, *, name: str, done: int, total: int, unit: str, seconds: float, **_: Any) -> None:
        if seconds < 2.0 and not self.shown:
            return
        text = f"{name}: {done} of {total} {unit}" if total else f"{name}: {seconds:.0f} s"
        if total and done:
            left = seconds * (total - done) / done
            text += f", {left:.0f} s left" if left < 120 else f", {left / 60:.0f} min left"
        sys.stderr.write(f"\r\x1b[K{text[:120]}")
        sys.stderr.flush()
        self.shown = True

    def clear(self) -> None:
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


@contextlib.contextmanager
def watched(callback: Callback | None, progress: bool | None) -> Iterator[Callable[..., object] | None]:
    """What work tells: the callback, a line on stderr (where it is a terminal, unless said otherwise), both, or nothing."""
    if progress is None:
        progress = sys.stderr is not None and sys.stderr.isatty()
    if not progress:
        yield callback
        return
    if callback is not None and not callable(callback):
        raise InputTypeError(f"callback is of type {type(callback).__name__}, expected a function")
    line = _Line()

    def tell(**standing: Any) -> None:
        if callback is not None:
            callback(**standing)
        line(**standing)

    try:
        yield tell
    finally:
        line.clear()
