"""Transformers that do reinforcement learning in their forward pass.

Estimators of values (`SoftmaxTD` and others), the forward pass and its parts (`forward`, `Transformer`), training (`pretrain`), studies
(`reproduce` and others), tasks, and environments of Gymnasium (`collect`).
"""

from ictd._core import __version__
from ictd.results import Figure, Result

__all__ = ["Figure", "Result", "__version__"]

# Environments.
from ictd.gym import Episode, Episodes, collect, register_when_imported

__all__ += ["Episode", "Episodes", "collect"]

register_when_imported()
del register_when_imported

# Estimators and logs.
from ictd.episodes import Log, as_log, evaluate, read_log, targets
from ictd.estimators import (
    KBRL,
    LSTD,
    Constant,
    Judgement,
    KernelLSTD,
    LinearLSTD,
    LinearTD,
    LSTDLambda,
    MonteCarlo,
    NotFittedError,
    SoftmaxTD,
    TabularTD,
)

__all__ += ["Judgement", "KBRL", "KernelLSTD", "LSTD", "LSTDLambda", "LinearLSTD", "LinearTD", "Log", "MonteCarlo", "NotFittedError", "SoftmaxTD"]
__all__ += ["Constant", "TabularTD", "as_log", "evaluate", "read_log", "targets"]

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

# Training and studies.
from ictd.studies import Reproduction, branches, control, mirror, readings, reproduce
from ictd.sweeps import SweepTable, read_sweep, sweep, sweep_show
from ictd.training import Checkpoint, Run, TaskFamily, load_checkpoint, load_run, pretrain, print_config, runs

__all__ += ["Checkpoint", "Run", "TaskFamily", "load_checkpoint", "load_run", "pretrain", "print_config", "runs"]
__all__ += ["Reproduction", "branches", "control", "mirror", "readings", "reproduce"]
__all__ += ["SweepTable", "read_sweep", "sweep", "sweep_show"]
