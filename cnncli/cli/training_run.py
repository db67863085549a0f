"""One run from its plan to the figures on the test set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cnncli.cli.download_progress import DownloadProgress
from cnncli.cli.interrupts import deferred_interrupts
from cnncli.cli.plan import Plan
from cnncli.cli.progress import Progress
from cnncli.cli.remains import interruption, system_failure, with_remains
from cnncli.cli.run_summary import write_summary
from cnncli.cli.streams import Stream
from cnncli.data import Dataset, Split, load_dataset
from cnncli.errors import CheckpointError, TrainingError
from cnncli.training import (
    Evaluation,
    RunDirectory,
    RunLock,
    StepReport,
    Trainer,
    TrainingData,
    Workers,
    evaluate,
    run_epochs,
)


@dataclass(frozen=True)
class Outcome:
    """A finished run and the figures of its best checkpoint on the test set."""

    trainer: Trainer
    run: RunDirectory
    test: Evaluation

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values, ready for JSON."""
        return {
            "run_dir": str(self.run.path),
            "config": self.trainer.config.to_dict(),
            "epochs": self.trainer.metrics,
            "best_epoch": self.trainer.best_epoch,
            "test": self.test.to_dict(),
        }


def carry_out(plan: Plan, workers: Workers, stream: Stream, lock: RunLock) -> Outcome:
    """Train what is left of a run, telling `stream` of it, and evaluate its best checkpoint.

    `lock` keeps other processes out of the directory of a new run from the moment that it is taken.

    Raises
    ------
    CnncliError : any kind; one that ends a run names the checkpoint to go on from, if there is one
    KeyboardInterrupt : SIGINT or SIGTERM came; its message does the same
    """
    # what is wrong with the configuration shows before the data is read, let alone fetched
    description = plan.describe_data()
    plan.build_network(description)
    with DownloadProgress(stream) as downloads:
        dataset = load_dataset(plan.config.data.dataset, plan.config.data.directory, downloads)
    trainer = _new_trainer(plan, dataset, workers)
    run = None if plan.is_new else plan.run
    try:
        with deferred_interrupts() as check_interrupts:
            run = plan.claim(lock)
            check_interrupts()
            write_summary(plan, description, trainer.network, workers.n_workers, run.path, stream)
            _record_changes(plan, trainer, run)
            _train(trainer, run, stream, check_interrupts)
        return Outcome(trainer, run, _evaluate_best(trainer, run, dataset.test, workers))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(interruption(trainer, run)) from None
    except (TrainingError, CheckpointError) as error:
        raise with_remains(error, trainer, run) from None
    except BrokenPipeError:
        raise
    except OSError as error:
        raise with_remains(system_failure(error), trainer, run) from None


def _new_trainer(plan: Plan, dataset: Dataset, workers: Workers) -> Trainer:
    data = TrainingData.from_dataset(dataset, plan.config.data.validation_size, plan.config.seed)
    trainer = Trainer(plan.config, data, workers)
    if plan.checkpoint is not None:
        trainer.restore(plan.checkpoint)
    return trainer


def _record_changes(plan: Plan, trainer: Trainer, run: RunDirectory) -> None:
    """Write what is new since the run was left: further epochs, another place of the data."""
    run.remove_leftovers()
    if plan.checkpoint is not None:
        run.rebuild_metrics(plan.checkpoint)
        _restore_best(trainer, run)
    if not plan.is_new and plan.config != plan.recorded and not trainer.is_finished:
        run.record(trainer.checkpoint(), is_best=trainer.best_epoch == trainer.epoch)


def _restore_best(trainer: Trainer, run: RunDirectory) -> None:
    """Write best.npz again if it is lost or damaged and the last epoch is the best."""
    if trainer.best_epoch == trainer.epoch:
        try:
            run.load_best(trainer.metrics)
        except CheckpointError:
            trainer.checkpoint().save(run.best)


def _train(trainer: Trainer, run: RunDirectory, stream: Stream, check_interrupts: Callable[[], None]) -> None:
    """Train the epochs that are left; an interrupt ends it after a step, or after an epoch is written."""
    n_epochs, has_validation = trainer.config.training.epochs, trainer.data.validation is not None
    with Progress(stream, n_epochs, has_validation=has_validation) as progress:

        def after_step(report: StepReport) -> None:
            progress.step(report)
            check_interrupts()

        for report in run_epochs(trainer, run, after_step):
            progress.epoch(report, is_best=trainer.best_epoch == report.epoch)
            check_interrupts()


def _evaluate_best(trainer: Trainer, run: RunDirectory, test: Split, workers: Workers) -> Evaluation:
    best = run.load_best(trainer.metrics)
    return evaluate(best.build_network(), test, best.normalization, workers)
