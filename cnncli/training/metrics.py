"""The figures of a run while it trains, and what they say: which epoch is best, whether to stop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cnncli.config import TrainingConfig


@dataclass(frozen=True)
class StepReport:
    """The state of an epoch after one optimizer step; means run over the epoch so far."""

    epoch: int
    step: int
    steps_per_epoch: int
    n_images: int
    mean_loss: float
    accuracy: float
    images_per_second: float


@dataclass(frozen=True)
class EpochReport:
    """The figures of one finished epoch: a line of metrics.jsonl.

    Attributes
    ----------
    epoch : from 1
    train_loss, train_accuracy : means over the epoch while the weights changed
    validation_loss, validation_accuracy : of the weights at its end; None without a validation set
    learning_rate : of its last step
    seconds : of the whole epoch, validation included
    images_per_second : over the time of assembling batches and stepping alone
    """

    epoch: int
    train_loss: float
    train_accuracy: float
    validation_loss: float | None
    validation_accuracy: float | None
    learning_rate: float
    seconds: float
    images_per_second: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def best_epoch(metrics: Sequence[dict[str, Any]]) -> int:
    """Return the epoch to keep, 0 if none is finished.

    The highest validation accuracy, then the lower loss, then the earlier epoch; without a
    validation set the last epoch.
    """
    if not metrics:
        return 0
    if metrics[-1]["validation_accuracy"] is None:
        return int(metrics[-1]["epoch"])
    best = min(
        metrics, key=lambda line: (-line["validation_accuracy"], line["validation_loss"], line["epoch"])
    )
    return int(best["epoch"])


def is_finished(metrics: Sequence[dict[str, Any]], training: TrainingConfig) -> bool:
    """Tell whether all epochs are done, or none of the last few was better than the best before."""
    patience = training.early_stopping and training.early_stopping.patience
    waited = len(metrics) - best_epoch(metrics)
    return len(metrics) >= training.epochs or bool(patience and waited >= patience)


def is_finite(*losses: float | None) -> bool:
    """Tell whether every loss that was measured is a finite number."""
    return all(loss is None or math.isfinite(loss) for loss in losses)
