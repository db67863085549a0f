"""Run the program as a user does, and make small data sets and configurations for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

REPOSITORY = Path(__file__).parents[2]
CONFIGS = REPOSITORY / "configs"
MNIST = REPOSITORY / "data" / "mnist"

TINY_CONFIG = """\
data: {dataset: tiny.npz, validation_size: 60}
network:
  - conv2d: {out_channels: 4, kernel_size: 3}
  - relu
  - max_pool2d: {kernel_size: 2}
  - flatten
  - dropout: {drop_probability: 0.2}
  - dense: {out_features: 3}
optimizer:
  adam: {learning_rate: 0.003}
training: {epochs: 2, batch_size: 16}
"""


@dataclass(frozen=True)
class Finished:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Cnncli = Callable[..., Finished]


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "cnncli", *map(str, arguments)]


def environment(**variables: str) -> dict[str, str]:
    """Return the environment of a plain user: no terminal, 80 columns."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    return {**kept, "PYTHONPATH": str(REPOSITORY), "COLUMNS": "80", **variables}


def run_program(
    *arguments: str | Path, cwd: Path, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    return subprocess.run(
        command(*arguments),
        cwd=cwd,
        env=environment(**(variables or {})),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
    )


def make_tiny_dataset(
    path: Path, *, shape: Sequence[int] = (8, 8), n_classes: int = 3, seed: int = 0
) -> None:
    """Write images whose class shows as a bright band, 300 to train on and 60 to test."""
    rng = np.random.default_rng(seed)

    def images(n: int) -> tuple[NDArray[Any], NDArray[Any]]:
        labels = np.arange(n) % n_classes
        pixels = rng.integers(0, 150, (n, *shape)).astype(np.uint8)
        for image, label in zip(pixels, labels, strict=True):
            image[..., 2 * label : 2 * label + 2, :] += 60
        return pixels, labels

    (x_train, y_train), (x_test, y_test) = images(300), images(60)
    np.savez(path, x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)


def make_workspace(directory: Path) -> None:
    """Write tiny.npz and tiny.yaml into a directory."""
    make_tiny_dataset(directory / "tiny.npz")
    (directory / "tiny.yaml").write_text(TINY_CONFIG)


def arrays_of(path: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays of a checkpoint, without the metadata, which holds times."""
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files if name != "metadata"}


def assert_same_arrays(a: Path, b: Path) -> None:
    first, second = arrays_of(a), arrays_of(b)
    assert first.keys() == second.keys()
    for name, array in first.items():
        assert array.tobytes() == second[name].tobytes(), name
