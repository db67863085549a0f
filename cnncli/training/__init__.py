"""The training engine: sharded gradients, the epoch loop, evaluation, checkpoints, run directories.

Set OPENBLAS_NUM_THREADS=1 (and OMP_NUM_THREADS, MKL_NUM_THREADS) before NumPy is first imported:
parallelism is over shards, and a BLAS with threads of its own gets in the way. The `cnncli` command
does so by itself.
"""

from __future__ import annotations

from cnncli.training.checkpoint import Checkpoint, load_checkpoint
from cnncli.training.evaluation import ClassScores, Evaluation, evaluate
from cnncli.training.metrics import EpochReport, StepReport, best_epoch, is_finished
from cnncli.training.run_directory import RunDirectory, run_epochs
from cnncli.training.run_lock import RunLock
from cnncli.training.trainer import Trainer, TrainingData
from cnncli.training.workers import Workers, available_cores

__all__ = [
    "Checkpoint",
    "ClassScores",
    "EpochReport",
    "Evaluation",
    "RunDirectory",
    "RunLock",
    "StepReport",
    "Trainer",
    "TrainingData",
    "Workers",
    "available_cores",
    "best_epoch",
    "evaluate",
    "is_finished",
    "load_checkpoint",
    "run_epochs",
]
