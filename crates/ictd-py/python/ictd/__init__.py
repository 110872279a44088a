"""Transformers that do reinforcement learning in their forward pass."""

from ictd._core import __version__
from ictd.results import Figure, Result

__all__ = ["Figure", "Result", "__version__"]
