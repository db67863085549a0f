"""What a run will do, decided before any data is loaded: a new run, or one that is resumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cnncli.cli.arguments import MAX_THREADS
from cnncli.config import (
    Config,
    Difference,
    build_network,
    build_schedule,
    differences,
    load_config,
)
from cnncli.data import CATALOG, DatasetDescription, describe_dataset
from cnncli.data.randomness import WEIGHTS, stream
from cnncli.errors import CheckpointError, ConfigError, DataError, UsageError
from cnncli.nn import Network
from cnncli.training import Checkpoint, RunDirectory, RunLock, Workers, available_cores, is_finished
from cnncli.training.gradients import SHARDS_IN_FLIGHT

RUNS = Path("runs")


@dataclass(frozen=True)
class Plan:
    """A run to start or to resume.

    Attributes
    ----------
    run : its directory
    numbered_name : for a new run, that of a directory in `RUNS` that gets the next free number
    overwrite : whether a new run replaces the one in its directory
    checkpoint : what to resume from; None for a new run, or one that died before its first checkpoint
    recorded : the configuration in the run directory; None for a new run
    """

    config: Config
    run: RunDirectory
    numbered_name: str | None = None
    overwrite: bool = False
    checkpoint: Checkpoint | None = None
    recorded: Config | None = None

    @property
    def is_new(self) -> bool:
        return self.recorded is None

    @property
    def is_finished(self) -> bool:
        """Whether there is no epoch left to train."""
        return self.checkpoint is not None and is_finished(self.checkpoint.metrics, self.config.training)

    @property
    def first_epoch(self) -> int:
        """The epoch that is trained next, from 1."""
        return 1 if self.checkpoint is None else self.checkpoint.epoch + 1

    def claim(self, lock: RunLock) -> RunDirectory:
        """Take the directory of a new run and lock it; that of a run to resume is both already.

        Raises
        ------
        UsageError : another run has taken it meanwhile, or is still writing to it
        TrainingError : it cannot be written
        """
        if not self.is_new:
            return self.run
        if self.numbered_name is not None:
            return RunDirectory.create_numbered(RUNS, self.numbered_name, self.config, lock)
        return RunDirectory.create(self.run.path, self.config, overwrite=self.overwrite, lock=lock)

    def describe_data(self) -> DatasetDescription:
        """Describe the data set, and check what the configuration asks of it.

        Raises
        ------
        ConfigError : the validation set would leave nothing to train on
        DataError : the data is not there, or damaged
        """
        dataset = self.config.data.dataset
        if not self.is_new and dataset not in CATALOG and not Path(dataset).exists():
            raise DataError(
                f"{dataset}: the data set of the run is no longer there; say where it is with "
                "--set data.dataset=PATH"
            )
        data = describe_dataset(self.config.data.dataset, self.config.data.directory)
        if self.config.data.validation_size >= data.train_size:
            raise self.config.error(
                "data.validation_size",
                f"expected at most {data.train_size - 1}, as the training set has {data.train_size} images, "
                f"got {self.config.data.validation_size}",
            )
        return data

    def build_network(self, data: DatasetDescription) -> Network:
        """Build the network of the run with its initial weights.

        Raises
        ------
        ConfigError : it does not fit the images or the number of classes
        """
        rng = stream(self.config.seed, WEIGHTS)
        try:
            return build_network(self.config, data.image_shape, data.class_count, rng)
        except ConfigError as error:
            raise ConfigError(f"{error}{_unused_labels(data)}") from None


def plan_new_run(config_path: Path, overrides: Sequence[str], run_path: Path | None, overwrite: bool) -> Plan:
    """Plan a run of a configuration in a directory of its own.

    Raises
    ------
    ConfigError : the configuration has faults
    UsageError : the run directory is taken
    """
    config, name = load_config(config_path, overrides), config_path.stem
    if run_path is None and not overwrite:
        return Plan(config, RunDirectory.next_free(RUNS, name), numbered_name=name)
    run = RunDirectory(RUNS / name if run_path is None else run_path)
    if not overwrite:
        run.require_free()
    return Plan(config, run, overwrite=overwrite)


def _unused_labels(data: DatasetDescription) -> str:
    """Say which labels have no image, as where classes are counted from 1: they need outputs all the same."""
    unused = data.unused_labels
    if not unused:
        return ""
    if unused == (0,):
        return (
            f"\n  labels are 1 to {data.class_count - 1}, and classes are counted from 0: subtract 1 from "
            "the labels in the data set"
        )
    more = f" and {len(unused) - 5} more" if len(unused) > 5 else ""
    some = ", ".join(map(str, unused[:5]))
    return f"\n  labels are 0 to {data.class_count - 1}; no image has {some}{more}"


def plan_resumed_run(run_path: Path, config_path: Path | None, overrides: Sequence[str]) -> Plan:
    """Plan to resume the run in a directory, with its own configuration or one that hardly differs.

    Raises
    ------
    CheckpointError : there is no run in the directory, or its checkpoint is damaged
    ConfigError : the configuration has faults
    UsageError : it differs in something that cannot change any more; every difference is named
    """
    run = RunDirectory(run_path)
    checkpoint = run.load_last()
    if checkpoint is not None:
        run.require_best(checkpoint.metrics)
    # without a checkpoint the run died before its first, so nothing but the configuration is there
    recorded = run.load_config() if checkpoint is None else checkpoint.config
    # config.yaml and not the checkpoint: whoever edits it to train longer means it, as with --set
    wanted = load_config(run.config if config_path is None else config_path, overrides)
    _check_differences(run, recorded, wanted)
    return Plan(wanted, run, checkpoint=checkpoint, recorded=recorded)


def _check_differences(run: RunDirectory, recorded: Config, wanted: Config) -> None:
    refused = [
        f"  {difference}{_reason(difference, wanted)}"
        for difference in differences(recorded, wanted)
        if not _may_change(difference, wanted)
    ]
    if refused:
        raise UsageError(
            "\n".join([f"{run.path}: cannot be resumed with what differs from the run so far:", *refused])
        )


def _may_change(difference: Difference, wanted: Config) -> bool:
    if difference.key_path == "training.threads":
        return True
    if difference.key_path == "data.directory":
        # the files are verified, so they are the same wherever they are
        return wanted.data.dataset in CATALOG
    if difference.key_path == "data.dataset":
        # images of the user's own may have moved; the trainer compares them with the run's
        return not {difference.before, difference.after} & CATALOG.keys()
    if difference.key_path == "training.epochs":
        return bool(difference.after > difference.before) and not _depends_on_end(wanted)
    return False


def _reason(difference: Difference, wanted: Config) -> str:
    if difference.key_path == "seed":
        return " (null draws another; without --config the run keeps its own)"
    if difference.key_path != "training.epochs":
        return ""
    if difference.after < difference.before:
        return " (only a higher number can be trained)"
    name = wanted.schedule.name
    return f" ({name} fits its rates to the number; only constant and step without warmup can be extended)"


def _depends_on_end(config: Config) -> bool:
    return build_schedule(config, total_steps=1, steps_per_epoch=1).depends_on_end


def thread_count(threads: int | None, config: Config) -> int:
    """Count the threads to start: as the command line says, or the configuration, or one for each core.

    More than can have a shard at the same time would only take memory, so they are left out.

    Raises
    ------
    ConfigError : the configuration asks for an absurd number
    """
    configured = config.training.threads
    if threads is None and configured is not None and configured > MAX_THREADS:
        raise config.error("training.threads", f"expected at most {MAX_THREADS}, got {configured}")
    return min(threads or configured or available_cores(), SHARDS_IN_FLIGHT)


def make_workers(threads: int | None, config: Config) -> Workers:
    """Make as many workers as `thread_count` says."""
    return Workers(thread_count(threads, config))


def checkpoint_file(path: Path) -> Path:
    """Return a file as it is, and the best checkpoint of a run directory.

    Raises
    ------
    CheckpointError : the directory holds no run
    """
    if not path.is_dir():
        return path
    best = RunDirectory(path).best
    if not best.is_file():
        raise CheckpointError(f"{path}: holds no run with a checkpoint (there is no {best.name} in it)")
    return best
