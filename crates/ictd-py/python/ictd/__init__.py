"""Transformers that do reinforcement learning in their forward pass."""

from ictd._core import __version__
from ictd.results import Figure, Result

__all__ = ["Figure", "Result", "__version__"]

# --- the laboratory

from ictd import td  # noqa: E402
from ictd.attention import kernel_weights, kernels, similarities  # noqa: E402
from ictd.blocks import Block, BlockLike  # noqa: E402
from ictd.constructions import Circuit, algorithms, circuit, circuits, construct  # noqa: E402
from ictd.contexts import Context  # noqa: E402
from ictd.tasks import Family, Task, TaskSource, families, task  # noqa: E402
from ictd.theory import bound, certify, lemmas, msve, neu, regimes, verify  # noqa: E402
from ictd.torch import to_torch  # noqa: E402
from ictd.transformers import Gradient, Transformer, forward  # noqa: E402

__all__ += ["Block", "BlockLike", "Circuit", "Context", "Family", "Gradient", "Task", "TaskSource", "Transformer", "algorithms", "bound"]
__all__ += ["certify", "circuit", "circuits", "construct", "families", "forward", "kernel_weights", "kernels", "lemmas", "msve", "neu"]
__all__ += ["regimes", "similarities", "task", "td", "to_torch", "verify"]
