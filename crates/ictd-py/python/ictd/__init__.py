"""Transformers that do reinforcement learning in their forward pass."""

from ictd._core import __version__
from ictd.gym import Episode, Episodes, collect, register_when_imported
from ictd.results import Figure, Result

__all__ = ["Episode", "Episodes", "Figure", "Result", "__version__", "collect"]

register_when_imported()
del register_when_imported
