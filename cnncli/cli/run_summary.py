"""A run before it starts and after it has ended, in a few labelled lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cnncli.cli import formats
from cnncli.cli.plan import Plan
from cnncli.cli.streams import Stream
from cnncli.cli.tables import NO_BREAK, labelled
from cnncli.config import Choice, Config, fields_of
from cnncli.data import DatasetDescription
from cnncli.nn import LAYERS, Network
from cnncli.training import RunDirectory, Trainer

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


def write_outcome(trainer: Trainer, run: RunDirectory, stream: Stream) -> None:
    """Write which epoch was kept, where it is, how long it took, and what to do next."""
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
            ("time", formats.duration(sum(line["seconds"] for line in trainer.metrics))),
            ("next", formats.command("eval", run.path)),
        ],
    )


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
    return f"{run_path}, going on with epoch {plan.first_epoch}"
