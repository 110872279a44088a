"""Transformers that do reinforcement learning in their forward pass."""

from ictd._core import __version__
from ictd.results import Figure, Result

__all__ = ["Figure", "Result", "__version__"]

# Training and studies.
from ictd.studies import Reproduction, branches, control, mirror, readings, reproduce
from ictd.sweeps import SweepTable, read_sweep, sweep, sweep_show
from ictd.training import Checkpoint, Run, TaskFamily, load_checkpoint, load_run, pretrain, print_config, runs

__all__ += ["Checkpoint", "Run", "TaskFamily", "load_checkpoint", "load_run", "pretrain", "print_config", "runs"]
__all__ += ["Reproduction", "branches", "control", "mirror", "readings", "reproduce"]
__all__ += ["SweepTable", "read_sweep", "sweep", "sweep_show"]
