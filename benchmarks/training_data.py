"""What is trained on: the same images in the same batches for every program."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.networks import BATCH_SIZES, CONFIGS
from cnncli.config import Choice, Config, load_config
from cnncli.data import Normalization, Split, batch_slices, epoch_order, load_split
from cnncli.data.catalog import Part

MNIST_SHAPE = (1, 28, 28)
CLASS_COUNT = 10

# Training goes round these batches again and again. One batch alone would be learnt by heart, and
# the gradients would become so small that the processor takes longer for them.
MAX_BATCHES = 64
# The rate is not what is measured, and a peak rate kept up for minutes can end in NaN.
LEARNING_RATE = 0.001
MANY_EPOCHS = 1_000_000


def benchmark_config(network: str) -> Config:
    """Load the configuration of a network, with its batch and a learning rate that can be kept for ever."""
    config = load_config(CONFIGS / f"{network}.yaml")
    return replace(
        config,
        optimizer=Choice(config.optimizer.name, {**config.optimizer.options, "learning_rate": LEARNING_RATE}),
        schedule=Choice("constant", {"warmup": 0.0}),
        training=replace(config.training, batch_size=BATCH_SIZES[network], epochs=MANY_EPOCHS),
    )


def mnist_images(config: Config, part: Part) -> Split:
    """Load a part of the data set that a configuration names."""
    return load_split(config.data.dataset, config.data.directory, part)


def batches(n_images: int, batch_size: int) -> list[NDArray[np.int64]]:
    """Choose the first batches of an epoch; each is full."""
    order = epoch_order(n_images, 0, 0)[: MAX_BATCHES * batch_size]
    parts = batch_slices(len(order), batch_size)
    return [order[part] for part in parts if part.stop - part.start == batch_size]


def normalized(split: Split, normalization: Normalization) -> NDArray[np.float32]:
    """Normalise images and keep the batch first: (N, C, H, W), without a second copy of them all."""
    images = split.images.astype(np.float32)
    for channel, (mean, std) in enumerate(zip(normalization.mean, normalization.std, strict=True)):
        images[:, channel] -= mean
        images[:, channel] /= std
    return images
