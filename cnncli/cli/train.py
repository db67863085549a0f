"""``cnncli train``: a configuration in, a trained and evaluated network out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from cnncli.cli import formats
from cnncli.cli.arguments import (
    json_option,
    path_option,
    set_option,
    threads_option,
)
from cnncli.cli.evaluate import verdict
from cnncli.cli.inspect_shapes import facts_as_json, write_facts
from cnncli.cli.interrupts import deferred_interrupts
from cnncli.cli.progress import DownloadProgress, Progress
from cnncli.cli.recovery import interruption, recovery_of_result, system_failure, with_recovery
from cnncli.cli.run_plan import Plan, make_workers, plan_new_run, plan_resumed_run, thread_count
from cnncli.cli.terminal import NO_BREAK, Stream, labelled, notices, results, write_json
from cnncli.config import Choice, Config, fields_of
from cnncli.data import Dataset, DatasetDescription, Split, cache_directory, is_at_hand, load_dataset
from cnncli.errors import CheckpointError, TrainingError
from cnncli.nn import LAYERS, Network
from cnncli.nn.inspection import inspect_network
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


@click.command()
@path_option("--config", "config_path", metavar="FILE", summary="Configuration to train.")
@set_option()
@path_option(
    "--run-dir",
    "run_path",
    metavar="DIR",
    summary="Directory to keep the run in. By default the next free one of runs/NAME, runs/NAME-2, ...",
)
@click.option("--overwrite", is_flag=True, help="Replace the run that is in the directory already.")
@path_option(
    "--resume",
    "resume_path",
    metavar="RUN_DIR",
    summary="Resume the run in a directory; --set training.epochs=N may add epochs.",
)
@threads_option()
@click.option("--dry-run", is_flag=True, help="Show what would be done, and write nothing.")
@click.option("--quiet", is_flag=True, help="Print only the result.")
@json_option()
@click.pass_context
def train(
    ctx: click.Context,
    config_path: Path | None,
    overrides: tuple[str, ...],
    run_path: Path | None,
    overwrite: bool,
    resume_path: Path | None,
    threads: int | None,
    dry_run: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Train a network, then evaluate it on the test set.

    The run directory holds config.yaml, metrics.jsonl, last.npz (to resume from) and best.npz (the
    epoch with the highest validation accuracy, or the last one). The test set is used once, at the
    end. An interrupted run keeps its last finished epoch; --resume continues to the same bits.

    \b
    cnncli train --config configs/quickstart.yaml
    cnncli train --config my.yaml --set training.epochs=3 --run-dir runs/short
    cnncli train --resume runs/short
    """
    if config_path is None and resume_path is None:
        raise click.UsageError("give --config FILE to start a run, or --resume RUN_DIR to resume one", ctx)
    if resume_path is not None and (run_path is not None or overwrite):
        raise click.UsageError("--run-dir and --overwrite are for new runs, not for --resume", ctx)
    with RunLock() as lock:
        if resume_path is not None:
            if not dry_run and resume_path.is_dir():
                lock.take(resume_path)
            plan = plan_resumed_run(resume_path, config_path, overrides)
        else:
            assert config_path is not None
            plan = plan_new_run(config_path, overrides, run_path, overwrite)
        if dry_run:
            _show(plan, threads, as_json=as_json)
            return
        stream = Stream(None) if quiet else notices()
        with make_workers(threads, plan.config) as workers:
            outcome = carry_out(plan, workers, stream, lock)
    with recovery_of_result(outcome.trainer, outcome.run):
        _write_result(plan, outcome, stream, as_json=as_json)


def _write_result(plan: Plan, outcome: Outcome, stream: Stream, *, as_json: bool) -> None:
    if not plan.is_finished:
        stream.write()
    if as_json:
        write_json(outcome.to_dict())
    else:
        results().write(results().bold(verdict("test", outcome.test)))
    stream.write()
    write_outcome(outcome.trainer, outcome.run, plan.first_epoch - 1, stream)


def _show(plan: Plan, threads: int | None, *, as_json: bool) -> None:
    """Show what a run would do, from the configuration and the description of its data alone."""
    data, description = plan.config.data, plan.describe_data()
    has_data = is_at_hand(data.dataset, data.directory)
    network = plan.build_network(description)
    facts = inspect_network(network)
    if as_json:
        write_json(
            {"run_dir": str(plan.run.path), "config": plan.config.to_dict(), "network": facts_as_json(facts)}
        )
        return
    stream = results()
    n_threads = thread_count(threads, plan.config)
    write_summary(plan, description, network, n_threads, plan.run.path, stream)
    write_facts(facts, stream)
    stream.write()
    if not has_data:
        fate = "it would be downloaded" if data.directory is None else "the run would stop"
        where = data.directory or cache_directory(data.dataset)
        stream.write(f"the files of {data.dataset} are not in {where}: {fate}")
    stream.write("dry run: nothing was trained or written")


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
    """Train what is left of a run, report to `stream`, and evaluate the best checkpoint.

    `lock` keeps other processes out of the directory of a new run from the moment that it is taken.

    Raises
    ------
    CnncliError : any kind; one that ends a run names the checkpoint to resume from, if there is one
    KeyboardInterrupt : SIGINT or SIGTERM came; its message does the same
    """
    # what is wrong with the configuration shows before the data is read, let alone fetched
    description = plan.describe_data()
    network = plan.build_network(description)
    with DownloadProgress(stream) as downloads:
        dataset = load_dataset(plan.config.data.dataset, plan.config.data.directory, downloads)
    trainer = _new_trainer(plan, dataset, network, workers)
    if dataset.train.is_constant:
        stream.write("warning: all training images are equal, so there is nothing to learn from them")
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
        raise with_recovery(error, trainer, run) from None
    except BrokenPipeError:
        raise
    except OSError as error:
        raise with_recovery(system_failure(error), trainer, run) from None


def _new_trainer(plan: Plan, dataset: Dataset, network: Network, workers: Workers) -> Trainer:
    data = TrainingData.from_dataset(dataset, plan.config.data.validation_size, plan.config.seed)
    trainer = Trainer(plan.config, data, workers, network)
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
    best.restore(trainer.network)
    return evaluate(trainer.network, test, best.normalization, workers)


LABEL_WIDTH = 10


def write_summary(
    plan: Plan,
    data: DatasetDescription,
    network: Network,
    n_threads: int,
    run_path: Path,
    stream: Stream,
) -> None:
    """Write what is about to be trained, on what, and where it is kept."""
    config = plan.config
    n_parameters = sum(parameter.value.size for parameter in network.parameters.values())
    _write(
        stream,
        [
            ("config", config.source),
            ("data", _data(config, data.train_size)),
            ("network", f"{formats.count(n_parameters)} parameters: {_network(config)}"),
            ("optimizer", _optimizer(config)),
            ("training", _training(config, data.train_size, n_threads)),
            ("run", _run(plan, run_path)),
        ],
    )
    stream.write()


def write_outcome(trainer: Trainer, run: RunDirectory, n_before: int, stream: Stream) -> None:
    """Write which epoch was kept, where it is, how long it took, and what to do next.

    `n_before` epochs were trained before this command resumed the run.
    """
    best = trainer.metrics[trainer.best_epoch - 1]
    accuracy = best["validation_accuracy"]
    why = "the last" if accuracy is None else f"validation accuracy {formats.percent(accuracy)}"
    if trainer.epoch < trainer.config.training.epochs:
        why += "; stopped early, no later epoch was better"
    _write(
        stream,
        [
            ("best epoch", f"{trainer.best_epoch} of {trainer.epoch}, {why}"),
            ("checkpoint", str(run.best)),
            ("time", _time(trainer, n_before)),
            ("next", formats.command("eval", run.path)),
        ],
    )


def _time(trainer: Trainer, n_before: int) -> str:
    seconds = [line["seconds"] for line in trainer.metrics]
    total = formats.duration(sum(seconds))
    if not n_before:
        return total
    return f"{total} for all {len(seconds)} epochs, {formats.duration(sum(seconds[n_before:]))} of it now"


def _write(stream: Stream, entries: Sequence[tuple[str, str]]) -> None:
    for label, text in entries:
        first, *rest = labelled(label, text, label_width=LABEL_WIDTH, width=stream.width)
        stream.write(stream.dim(first[:LABEL_WIDTH]) + first[LABEL_WIDTH:])
        for line in rest:
            stream.write(line)


def _data(config: Config, n_train: int) -> str:
    n_validation = config.data.validation_size
    aside = f"{formats.count(n_validation)} for validation" if n_validation else "none for validation"
    images = f"{config.data.dataset}: {formats.count(n_train - n_validation)} images to train on, {aside}"
    return images + _augmentation(config)


def _augmentation(config: Config) -> str:
    changes = {} if config.data.augment is None else vars(config.data.augment)
    text = ", ".join(f"{name} {value:g}" for name, value in changes.items() if value)
    return f"; augmented: {text}" if text else ""


def _network(config: Config) -> str:
    return ", ".join(_layer(choice) for choice in config.network)


def _layer(choice: Choice) -> str:
    """Write a layer with the options that it cannot do without: ``conv2d 24 5x5``."""
    required = [field.name for field in fields_of(LAYERS[choice.name]).values() if field.is_required]
    return NO_BREAK.join([choice.name, *(_value(choice.options[name]) for name in required)])


def _value(value: object) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _optimizer(config: Config) -> str:
    rate = config.optimizer.options["learning_rate"]
    return f"{config.optimizer.name}, learning rate {rate:g}, schedule {config.schedule.name}"


def _training(config: Config, n_train: int, n_threads: int) -> str:
    n_images = n_train - config.data.validation_size
    batch_size = min(config.training.batch_size, n_images)
    n_steps = -(-n_images // batch_size)
    epochs, steps = formats.counted(config.training.epochs, "epoch"), formats.counted(n_steps, "step")
    images, threads = formats.counted(batch_size, "image"), formats.counted(n_threads, "thread")
    return f"{epochs} of {steps} of {images}, on {threads}"


def _run(plan: Plan, run_path: Path) -> str:
    if plan.is_new:
        return str(run_path)
    if plan.is_finished:
        return f"{run_path}, finished before: nothing is trained"
    return f"{run_path}, resuming with epoch {plan.first_epoch}"
