"""The files in `configs/`: their parameters, the shape after every layer, and the first loss."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from cnncli.config import Config, build_network, load_config
from cnncli.data import Normalization, Split, load_split
from cnncli.nn import Network, softmax_cross_entropy

ROOT = Path(__file__).resolve().parents[2]
N_PARAMETERS = {
    "quickstart": 215_194,
    "simple_convnet": 433_890,
    "lenet": 61_706,
    "keras_mnist": 34_826,
    "pytorch_mnist": 1_199_882,
}
# where dropout and ReLU keep a shape, it stands again
OUTPUT_SHAPES: dict[str, list[tuple[int, ...]]] = {
    "quickstart": [
        *[(24, 24, 24), (24, 12, 12), (24, 12, 12), (32, 10, 10), (32, 5, 5), (32, 5, 5)],
        *[(800,), (256,), (256,), (10,)],
    ],
    "simple_convnet": [(30, 24, 24), (30, 24, 24), (30, 12, 12), (4320,), (100,), (100,), (10,)],
    "lenet": [
        *[(6, 28, 28), (6, 28, 28), (6, 14, 14), (16, 10, 10), (16, 10, 10), (16, 5, 5)],
        *[(400,), (120,), (120,), (84,), (84,), (10,)],
    ],
    "keras_mnist": [
        *[(32, 26, 26), (32, 26, 26), (32, 13, 13), (64, 11, 11), (64, 11, 11), (64, 5, 5)],
        *[(1600,), (1600,), (10,)],
    ],
    "pytorch_mnist": [
        *[(32, 26, 26), (32, 26, 26), (64, 24, 24), (64, 24, 24), (64, 12, 12), (64, 12, 12)],
        *[(9216,), (128,), (128,), (128,), (10,)],
    ],
}


def config_named(name: str) -> Config:
    return load_config(ROOT / "configs" / f"{name}.yaml")


def built(config: Config) -> Network:
    return build_network(config, (1, 28, 28), 10, np.random.default_rng(config.seed))


@cache
def mnist_test_split() -> Split:
    return load_split("mnist", ROOT / "data" / "mnist", "test")


def test_these_are_all() -> None:
    assert {path.name for path in (ROOT / "configs").iterdir()} == {f"{name}.yaml" for name in N_PARAMETERS}


@pytest.mark.parametrize("name", N_PARAMETERS)
def test_parameters_and_shapes(name: str) -> None:
    network = built(config_named(name))
    assert sum(parameter.value.size for parameter in network.parameters.values()) == N_PARAMETERS[name]
    assert [layer.output_shape for layer in network.layers] == OUTPUT_SHAPES[name]


@pytest.mark.parametrize("name", N_PARAMETERS)
def test_data_are_those_of_the_repository_and_the_optimizer_adapts(name: str) -> None:
    config = config_named(name)
    assert (config.data.dataset, config.data.directory) == ("mnist", ROOT / "data" / "mnist")
    assert config.optimizer.name in ("adam", "adamw")


@pytest.mark.parametrize("name", N_PARAMETERS)
def test_only_the_last_layer_starts_small(name: str) -> None:
    with_weights = [layer.options for layer in config_named(name).network if "initializer" in layer.options]
    assert [options["initializer"] for options in with_weights] == ["he"] * (len(with_weights) - 1) + [
        "small"
    ]


@pytest.mark.parametrize("name", N_PARAMETERS)
def test_first_loss_on_digits_is_near_ln_10(name: str) -> None:
    split = mnist_test_split()
    images, labels = split.images[:128], split.labels[:128]
    x = Normalization.from_images(split.images).apply(images, np.float32)
    loss, _ = softmax_cross_entropy(built(config_named(name)).forward(x), labels)
    assert loss == pytest.approx(math.log(10), abs=0.3)
