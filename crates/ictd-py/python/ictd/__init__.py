"""Transformers that do reinforcement learning in their forward pass."""

from ictd._core import __version__
from ictd.results import Figure, Result

__all__ = ["Figure", "Result", "__version__"]

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
