"""The training that is killed: its data, its configurations, and what its run directory must hold."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cnncli.config import load_config
from cnncli.errors import CnncliError
from cnncli.training import load_checkpoint
from tests.cli.program import arrays_of, make_tiny_dataset

# The labels are noisy and the rate is high, so that the best epoch is rarely the last one.
CONFIG = """\
seed: 3
data: {{dataset: noisy.npz, validation_size: 60}}
network:
  - conv2d: {{out_channels: 8, kernel_size: 3}}
  - relu
  - max_pool2d: {{kernel_size: 2}}
  - flatten
  - dropout: {{drop_probability: 0.3}}
  - dense: {{out_features: 64}}
  - relu
  - dense: {{out_features: 3}}
optimizer:
  adam: {{learning_rate: 0.02}}
schedule:
  {schedule}
training: {{{training}, batch_size: 16, shard_size: 6}}
"""

VARIANTS = {
    "every_epoch": CONFIG.format(schedule="one_cycle: {warmup: 0.3}", training="epochs: 6"),
    "early_stopping": CONFIG.format(
        schedule="step: {every: 3, factor: 0.7}",
        training="epochs: 40, early_stopping: {patience: 3}",
    ),
}

FILES = ["best.npz", "config.yaml", "last.npz", "metrics.jsonl"]
TIMES = ("seconds", "images_per_second")


def make_workspace(directory: Path) -> None:
    """Write the data set and a configuration for each variant."""
    make_tiny_dataset(directory / "clean.npz")
    with np.load(directory / "clean.npz") as clean:
        arrays = {name: clean[name] for name in clean.files}
    rng = np.random.default_rng(0)
    for name in ("y_train", "y_test"):
        wrong = rng.random(len(arrays[name])) < 0.3
        arrays[name] = np.where(wrong, rng.integers(0, 3, len(wrong)), arrays[name])
    np.savez(directory / "noisy.npz", **arrays)
    for name, text in VARIANTS.items():
        (directory / f"{name}.yaml").write_text(text)


@dataclass(frozen=True)
class State:
    """What lies in a run directory at the moment of a kill.

    Attributes
    ----------
    phase : how far the run had come
    is_writing : whether a file was half written
    faults : what is wrong with it; nothing should be
    """

    phase: str
    is_writing: bool
    faults: list[str]


def examine(run: Path) -> State:
    """Read everything in the directory of a run that has just been killed."""
    faults: list[str] = []
    epoch = None
    for path in (run / "best.npz", run / "last.npz"):
        if path.exists():
            try:
                epoch = load_checkpoint(path).epoch
                arrays_of(path)
            except (CnncliError, ValueError, OSError) as error:
                faults.append(f"{path} cannot be read: {error}")
    try:
        if (run / "config.yaml").exists():
            load_config(run / "config.yaml")
        if (run / "metrics.jsonl").exists():
            metrics_of(run)
    except (CnncliError, ValueError, KeyError) as error:
        faults.append(f"{run}: {error}")
    return State(_phase(run, epoch), any(run.glob(".*.tmp")), faults)


def _phase(run: Path, epoch: int | None) -> str:
    if not (run / "config.yaml").exists():
        return "before the run directory was taken"
    if not (run / "last.npz").exists():
        return "before the first checkpoint"
    return "in the first epoch" if epoch == 0 else "in a later epoch, or after the last"


def differences(run: Path, whole: Path) -> list[str]:
    """Compare the end of a run with that of the one that nothing happened to; nothing should differ."""
    names = sorted(path.name for path in run.iterdir())
    found = [] if names == FILES else [f"{run} holds {names}"]
    if set(FILES) - set(names):
        return found
    for name in ("last.npz", "best.npz"):
        ours, theirs = arrays_of(run / name), arrays_of(whole / name)
        if ours.keys() != theirs.keys():
            found.append(f"{run / name}: other arrays")
        found += [
            f"{run / name}: {key} differs"
            for key in ours.keys() & theirs.keys()
            if ours[key].dtype != theirs[key].dtype or ours[key].tobytes() != theirs[key].tobytes()
        ]
        if load_checkpoint(run / name).epoch != load_checkpoint(whole / name).epoch:
            found.append(f"{run / name}: another epoch")
    if metrics_of(run) != metrics_of(whole):
        found.append(f"{run / 'metrics.jsonl'} differs")
    if (run / "config.yaml").read_bytes() != (whole / "config.yaml").read_bytes():
        found.append(f"{run / 'config.yaml'} differs")
    return found


def metrics_of(run: Path) -> list[dict[str, Any]]:
    """Read metrics.jsonl without the times."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key not in TIMES} for line in lines]
