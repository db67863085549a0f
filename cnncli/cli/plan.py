"""What a run will do, settled before any data is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cnncli.config import Config, build_network, load_config
from cnncli.data import CATALOG, DatasetDescription, describe_dataset
from cnncli.errors import ConfigError, DataError
from cnncli.nn import Network
from cnncli.training import Checkpoint, RunDirectory, RunLock, is_finished

RUNS = Path("runs")


@dataclass(frozen=True)
class Plan:
    """A run to start or to go on with.

    Attributes
    ----------
    run : its directory
    numbered_name : for a new run, that of a directory in `RUNS` that gets the next free number
    overwrite : whether a new run replaces the one in its directory
    checkpoint : what to go on from; None for a new run, or one that died before its first checkpoint
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
        """Take the directory of a new run and lock it; that of a run to go on with is both already.

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
        """Build the network for what it shows, and for the errors that it has."""
        try:
            return build_network(self.config, data.image_shape, data.class_count, np.random.default_rng(0))
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
    more = f" and {len(unused) - 5} more" if len(unused) > 5 else ""
    some = ", ".join(map(str, unused[:5]))
    return f"\n  labels are 0 to {data.class_count - 1}; no image has {some}{more}"
