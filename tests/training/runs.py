"""Small training runs for the tests: a few hundred made-up images, a network with every kind of layer."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cnncli.config import Config, parse_config
from cnncli.data import Normalization, Split
from cnncli.training import Trainer, TrainingData, Workers

CONFIG = """
seed: {seed}
data: {{dataset: mnist, validation_size: 0}}
network:
  - conv2d: {{out_channels: 3, kernel_size: 3, padding: same}}
  - relu
  - max_pool2d: {{kernel_size: 2}}
  - conv2d: {{out_channels: 4, kernel_size: [2, 3]}}
  - relu
  - flatten
  - dropout: {{drop_probability: 0.3}}
  - dense: {{out_features: 8}}
  - relu
  - dense: {{out_features: 4}}
optimizer: {{adam: {{learning_rate: 0.01}}}}
schedule: {schedule}
training: {{epochs: {epochs}, batch_size: 32, shard_size: 10}}
"""


def make_config(*overrides: str, seed: int = 0, epochs: int = 2, schedule: str = "cosine") -> Config:
    text = CONFIG.format(seed=seed, epochs=epochs, schedule=schedule)
    return parse_config(text, "made.yaml", Path.cwd(), overrides)


def make_split(n: int, seed: int) -> Split:
    """Make noisy images of 8x7 whose class is the quarter that is bright."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, n)
    images = rng.integers(0, 120, (n, 1, 8, 7))
    for image, label in zip(images, labels, strict=True):
        row, column = divmod(int(label), 2)
        image[0, 4 * row : 4 * row + 4, 3 * column : 3 * column + 4] += 100
    return Split(images.astype(np.uint8), labels.astype(np.int64))


def make_data(n: int = 100, n_validation: int = 40) -> TrainingData:
    train = make_split(n, seed=1)
    validation = make_split(n_validation, seed=2) if n_validation else None
    return TrainingData(train, validation, Normalization.from_images(train.images), (1, 8, 7), 4)


Arrays: TypeAlias = dict[str, NDArray[Any]]


def arrays_after(config: Config, n_threads: int = 1, data: TrainingData | None = None) -> Arrays:
    """Train to the end and return every array of the last checkpoint."""
    with Workers(n_threads) as workers:
        trainer = Trainer(config, data or make_data(), workers)
        for _ in trainer.epochs():
            pass
        return all_arrays(trainer)


def all_arrays(trainer: Trainer) -> Arrays:
    checkpoint = trainer.checkpoint()
    arrays = {f"parameters/{name}": array.copy() for name, array in checkpoint.parameters.items()}
    arrays |= {f"buffers/{name}": array.copy() for name, array in checkpoint.buffers.items()}
    return arrays | {f"optimizer/{name}": array.copy() for name, array in checkpoint.optimizer_state.items()}


def same_bits(a: Arrays, b: Arrays) -> bool:
    return a.keys() == b.keys() and all(a[name].tobytes() == b[name].tobytes() for name in a)


def arrays_in(path: Path) -> dict[str, NDArray[Any]]:
    """Read every array of a checkpoint."""
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}
