"""The files in `configs/` build the five networks that are tested here, and start near ln K."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from cnncli.config import build_network, load_config
from cnncli.nn import softmax_cross_entropy
from tests.nn.networks import FIVE_NETWORKS, MNIST_SHAPE, make_network

CONFIGS = Path(__file__).resolve().parents[2] / "configs"


@pytest.mark.parametrize("name", FIVE_NETWORKS)
def test_config_builds_the_network_that_is_tested(name: str) -> None:
    config = load_config(CONFIGS / f"{name}.yaml")
    expected = make_network(FIVE_NETWORKS[name], MNIST_SHAPE, seed=3)
    network = build_network(config, MNIST_SHAPE, 10, np.random.default_rng(3), np.float64)
    assert list(map(repr, network.layers)) == list(map(repr, expected.layers))
    # the same generator gives the same weights: initializers agree too
    for key, parameter in expected.parameters.items():
        np.testing.assert_array_equal(network.parameters[key].value, parameter.value)


@pytest.mark.parametrize("name", FIVE_NETWORKS)
def test_first_loss_is_near_ln_10(name: str) -> None:
    config = load_config(CONFIGS / f"{name}.yaml")
    rng = np.random.default_rng(0)
    network = build_network(config, MNIST_SHAPE, 10, rng, np.float32)
    x = rng.standard_normal((*MNIST_SHAPE, 32)).astype(np.float32)
    loss, _ = softmax_cross_entropy(network.forward(x), rng.integers(0, 10, 32))
    assert loss == pytest.approx(math.log(10), abs=0.3)
