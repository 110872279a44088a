"""Transformers that do reinforcement learning in their forward pass.

Values of logged states (`SoftmaxTD` and the other estimators), the forward pass and all that is in it (`forward`, `Transformer`), other
constructions and circuits, training (`pretrain`), theory (`certify`), studies (`reproduce`), sweeps, and environments (`collect`).
"""

from ictd import errors, td
from ictd._core import __version__
from ictd.attention import kernel_weights, kernels, similarities
from ictd.blocks import Block, BlockLike
from ictd.constructions import Circuit, algorithms, circuit, circuits, construct
from ictd.contexts import Context
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
from ictd.gym import collect
from ictd.recording import Episode, Episodes
from ictd.registration import register_when_imported
from ictd.results import Figure, Result
from ictd.studies import Reproduction, branches, control, mirror, readings, reproduce
from ictd.sweeps import SweepTable, read_sweep, sweep, sweep_show
from ictd.tasks import Family, Task, TaskSource, families, task
from ictd.theory import bound, certify, lemmas, msve, neu, regimes, verify
from ictd.torch import to_torch
from ictd.training import Checkpoint, Run, load_checkpoint, load_run, pretrain, print_config, runs
from ictd.transformers import Gradient, Transformer, forward

register_when_imported()
del register_when_imported

# By topic, in the order in which data moves.
__all__ = ["Family", "Task", "TaskSource", "families", "task"]
__all__ += ["Context", "Episode", "Episodes", "Log", "as_log", "collect", "read_log", "targets"]
__all__ += ["kernel_weights", "kernels", "similarities"]
__all__ += ["Block", "BlockLike", "Gradient", "Transformer", "forward", "td", "to_torch"]
__all__ += ["Circuit", "algorithms", "circuit", "circuits", "construct"]
__all__ += ["Constant", "Judgement", "KBRL", "KernelLSTD", "LSTD", "LSTDLambda", "LinearLSTD", "LinearTD", "MonteCarlo", "NotFittedError"]
__all__ += ["SoftmaxTD", "TabularTD", "evaluate"]
__all__ += ["Checkpoint", "Run", "load_checkpoint", "load_run", "pretrain", "print_config", "runs"]
__all__ += ["SweepTable", "read_sweep", "sweep", "sweep_show"]
__all__ += ["bound", "certify", "lemmas", "msve", "neu", "regimes", "verify"]
__all__ += ["Reproduction", "branches", "control", "mirror", "readings", "reproduce"]
__all__ += ["Figure", "Result", "__version__", "errors"]
