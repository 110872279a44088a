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
