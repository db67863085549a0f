"""The directory of one run: config.yaml, metrics.jsonl, last.npz, best.npz."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from cnncli.config import Config, dump_config, load_config
from cnncli.data.atomic_files import (
    temporaries,
    write_text_atomically,
    write_text_exclusively,
)
from cnncli.errors import CheckpointError, TrainingError, UsageError
from cnncli.training.checkpoint import Checkpoint, load_checkpoint
from cnncli.training.metrics import EpochReport, best_epoch
from cnncli.training.run_lock import RunLock
from cnncli.training.trainer import OnStep, Trainer

NAMES = ("config.yaml", "metrics.jsonl", "last.npz", "best.npz")


@dataclass(frozen=True)
class RunDirectory:
    """Where a run keeps its state. The files are complete at every moment."""

    path: Path

    @property
    def config(self) -> Path:
        """The resolved configuration, trainable again as it is."""
        return self.path / "config.yaml"

    @property
    def metrics(self) -> Path:
        """One JSON object for each finished epoch."""
        return self.path / "metrics.jsonl"

    @property
    def last(self) -> Path:
        """Checkpoint of the last finished epoch, from which a run is resumed."""
        return self.path / "last.npz"

    @property
    def best(self) -> Path:
        """Checkpoint of the best epoch so far."""
        return self.path / "best.npz"

    @classmethod
    def create(
        cls, path: Path, config: Config, *, overwrite: bool = False, lock: RunLock | None = None
    ) -> RunDirectory:
        """Take a directory for a new run and write its configuration.

        Parameters
        ----------
        overwrite : whether a run that is in it already is replaced
        lock : keeps other processes out of the directory from now on; None lets them in

        Raises
        ------
        UsageError : the directory is taken and `overwrite` is false, or in use, or it is a file
        TrainingError : it cannot be written
        """
        run = cls(path)
        try:
            run._claim(config, overwrite, lock)
        except OSError as error:
            raise _cannot_write(path, error) from None
        return run

    @classmethod
    def create_numbered(
        cls, parent: Path, name: str, config: Config, lock: RunLock | None = None
    ) -> RunDirectory:
        """Take ``parent/name``, or ``parent/name-2``, ``-3``, ... where that is taken."""
        for run in cls._numbered(parent, name):
            with suppress(UsageError):  # taken, or another run was faster
                return cls.create(run.path, config, lock=lock)
        raise AssertionError("there is always a higher number")

    @classmethod
    def next_free(cls, parent: Path, name: str) -> RunDirectory:
        """Find what `create_numbered` would take now, and take nothing."""
        for run in cls._numbered(parent, name):
            with suppress(UsageError):
                run.require_free()
                return run
        raise AssertionError("there is always a higher number")

    @classmethod
    def _numbered(cls, parent: Path, name: str) -> Iterator[RunDirectory]:
        return (cls(parent / (name if number == 1 else f"{name}-{number}")) for number in count(1))

    def require_free(self) -> None:
        """Check that nothing is there but perhaps a directory that is empty, or as good as.

        What a program left that was killed while it took the directory does not count.

        Raises
        ------
        UsageError : it is taken, or a file
        """
        if self.path.is_dir():
            if set(self.path.iterdir()) - set(self._leftovers()):
                raise self._taken()
        elif self.path.exists() or self.path.is_symlink():  # a link to nothing does not exist
            raise self._is_a_file()

    def _claim(self, config: Config, overwrite: bool, lock: RunLock | None) -> None:
        if not overwrite:
            self.require_free()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise self._is_a_file() from None
        if lock is not None:
            lock.take(self.path)
        if overwrite or lock is not None:
            self.remove_leftovers()
        if overwrite:
            for name in NAMES:
                (self.path / name).unlink(missing_ok=True)
        try:
            # two runs may both have found the directory free: only one can make this file
            write_text_exclusively(self.config, dump_config(config))
        except FileExistsError:
            raise self._taken() from None

    def _taken(self) -> UsageError:
        return UsageError(
            f"{self.path}: the run directory is taken; "
            "name another with --run-dir, or give --overwrite to replace the run in it"
        )

    def _is_a_file(self) -> UsageError:
        return UsageError(f"{self.path}: is a file, not a directory for a run")

    def save(self, checkpoint: Checkpoint, *, is_best: bool) -> None:
        """Write the files of a finished epoch: best before last, so that last never knows more.

        Raises
        ------
        CheckpointError, TrainingError : a file cannot be written; the earlier ones are still whole
        """
        if is_best:
            checkpoint.save(self.best)
        checkpoint.save(self.last)
        self.rebuild_metrics(checkpoint)

    def rebuild_metrics(self, checkpoint: Checkpoint) -> None:
        """Bring metrics.jsonl to what the last checkpoint knows; it is left alone where it is so already.

        Raises
        ------
        TrainingError : it cannot be written
        """
        lines = "".join(json.dumps(line) + "\n" for line in checkpoint.metrics)
        try:
            if not self.metrics.is_file() or self.metrics.read_bytes() != lines.encode():
                write_text_atomically(self.metrics, lines)
        except OSError as error:
            raise _cannot_write(self.metrics, error) from None

    def record(self, checkpoint: Checkpoint, *, is_best: bool) -> None:
        """Write the configuration of a checkpoint, changed between two epochs, and the checkpoint.

        Raises
        ------
        CheckpointError, TrainingError : see `save`
        """
        try:
            write_text_atomically(self.config, dump_config(checkpoint.config))
        except OSError as error:
            raise _cannot_write(self.config, error) from None
        self.save(checkpoint, is_best=is_best)

    def load_last(self) -> Checkpoint | None:
        """Load the checkpoint to resume from; None where the run ended before its first.

        Raises
        ------
        CheckpointError : there is no run in the directory, or its checkpoint is damaged
        """
        if not self.config.is_file():
            raise CheckpointError(f"{self.path}: holds no run (there is no config.yaml in it)")
        if self.last.exists():
            return load_checkpoint(self.last)
        if self._has_finished_epochs():
            raise CheckpointError(
                f"{self.path}: {self.last.name} is missing, so the run cannot be resumed; "
                f"put {self.last.name} back, or train in another directory"
            )
        return None

    def _has_finished_epochs(self) -> bool:
        # a run that dies while it writes its first checkpoints leaves a best of epoch 0 at most
        if self.metrics.is_file() and self.metrics.stat().st_size > 0:
            return True
        return self.best.is_file() and load_checkpoint(self.best).epoch > 0

    def load_best(self, metrics: Sequence[dict[str, Any]]) -> Checkpoint:
        """Load the best checkpoint of the run that has these metrics so far.

        Raises
        ------
        CheckpointError : it is missing, damaged, or of another epoch or run
        """
        best, epoch = load_checkpoint(self.best), best_epoch(metrics)
        # the times in the metrics tell runs apart
        if list(best.metrics) != list(metrics[:epoch]):
            raise CheckpointError(
                f"{self.best}: expected epoch {epoch}, the best of this run, got epoch {best.epoch} "
                "of another time or run"
            )
        return best

    def require_best(self, metrics: Sequence[dict[str, Any]]) -> None:
        """Check that the run that has these metrics so far can be resumed to the right best.npz.

        Where the last epoch is the best, its checkpoint holds all of it. Where a program was killed
        between best.npz and last.npz of an epoch, best.npz is one epoch ahead, and will be written again.

        Raises
        ------
        CheckpointError : best.npz is missing, damaged, or of another epoch or run
        """
        if best_epoch(metrics) == len(metrics):
            return
        ahead = load_checkpoint(self.best).metrics
        if list(ahead[:-1]) != list(metrics) or best_epoch(ahead) != len(ahead):
            self.load_best(metrics)

    def remove_leftovers(self) -> None:
        """Remove half-written files that a killed program has left."""
        for path in self._leftovers():
            path.unlink(missing_ok=True)

    def _leftovers(self) -> list[Path]:
        return [path for name in NAMES for path in temporaries(self.path / name)]

    def load_config(self) -> Config:
        """Read the resolved configuration."""
        return load_config(self.config)


def run_epochs(trainer: Trainer, run: RunDirectory, on_step: OnStep | None = None) -> Iterator[EpochReport]:
    """Train what is left of a run and keep its directory up to date; one report after each epoch.

    Raises
    ------
    TrainingError, CheckpointError : see `Trainer.epochs` and `RunDirectory.save`
    """
    if trainer.epoch == 0:
        run.save(trainer.checkpoint(), is_best=True)
    for report in trainer.epochs(on_step):
        run.save(trainer.checkpoint(), is_best=trainer.best_epoch == trainer.epoch)
        yield report


def _cannot_write(path: Path, error: OSError) -> TrainingError:
    return TrainingError(f"{path}: cannot write: {error.strerror or error}")
