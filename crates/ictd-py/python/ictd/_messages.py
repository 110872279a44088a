"""Messages of the library besides results: to the logger ``ictd``."""

from __future__ import annotations

import logging

__all__ = ["tell"]

_logger = logging.getLogger("ictd")


def tell(text: str) -> None:
    """Says a line of the library's: what begins with "warning: " as a warning, all else as information."""
    start = "warning: "
    if text.startswith(start):
        _logger.warning("%s", text.removeprefix(start))
    else:
        _logger.info("%s", text)
