"""The matrix products of a step: what is recorded is what the plan multiplies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import products
from benchmarks.engine import built
from benchmarks.networks import BATCH_SIZES
from benchmarks.products import (
    Layout,
    MissedProductsError,
    Product,
    Replay,
    evenly,
    needed_multiply_adds,
    record_products,
)
from benchmarks.training_data import benchmark_config
from cnncli.config import Config
from cnncli.nn import Dense
from cnncli.nn.arrays import FloatArray
from cnncli.training import Workers

# by hand, for one image: forward, parameters, and every input but the first layer's; windows that a
# pool leaves out are not needed
MULTIPLY_ADDS = {
    "simple_convnet": 2 * 30 * 24 * 24 * 25 + 3 * (4320 * 100 + 1000),
    "lenet": 2 * 6 * 28 * 28 * 25 + 3 * (16 * 10 * 10 * 150 + 400 * 120 + 120 * 84 + 840),
    "keras_mnist": 2 * 32 * 26 * 26 * 9 + 3 * (64 * 10 * 10 * 288 + 16000),
    "pytorch_mnist": 2 * 32 * 26 * 26 * 9 + 3 * (64 * 24 * 24 * 288 + 9216 * 128 + 1280),
    "quickstart": 2 * 24 * 24 * 24 * 25 + 3 * (32 * 10 * 10 * 216 + 800 * 256 + 2560),
}


def small_batch(network: str, batch_size: int, shard_size: int) -> Config:
    config = benchmark_config(network)
    return replace(config, training=replace(config.training, batch_size=batch_size, shard_size=shard_size))


@pytest.mark.parametrize("network", BATCH_SIZES)
def test_the_products_of_a_step_are_those_that_the_network_needs(network: str) -> None:
    config = small_batch(network, 6, shard_size=3)
    net = built(config)
    assert needed_multiply_adds(net, 6) == 6 * MULTIPLY_ADDS[network]
    recorded = sum(product.multiply_adds for product in record_products(config, net))
    # the gradient of a convolution's input may go through windows that the pool leaves out
    assert 6 * MULTIPLY_ADDS[network] <= recorded <= 1.15 * 6 * MULTIPLY_ADDS[network]


def test_the_dense_products_have_the_shapes_of_a_shard() -> None:
    config = small_batch("lenet", 8, shard_size=4)
    shapes = [(p.left.shape, p.right.shape) for p in record_products(config, built(config))]
    assert shapes.count(((84, 120), (120, 4))) == 2  # forward, in each of two shards
    assert shapes.count(((120, 84), (84, 4))) == 2  # the gradient of the input


def test_products_that_are_not_seen_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    def forward(self: Dense, x: FloatArray, training: bool = False, rng: object = None) -> FloatArray:
        self.check_input(x)
        self._x = x
        y: FloatArray = self.parameters["weight"].value @ x
        return y

    monkeypatch.setattr(Dense, "forward", forward)
    config = small_batch("lenet", 4, shard_size=4)
    with pytest.raises(MissedProductsError, match="multiply-adds"):
        record_products(config, built(config))


def test_a_replay_runs_the_same_products() -> None:
    config = small_batch("lenet", 4, shard_size=2)
    recorded = record_products(config, built(config))
    with Workers(1) as workers:
        replay = Replay(recorded, workers)
        with products._recorded_products() as again:
            replay.run()
    assert again == recorded


def test_a_layout_lies_in_memory_as_the_array_did() -> None:
    array = np.zeros((6, 8), dtype=np.float32).reshape(6, 2, 4).transpose(1, 0, 2)
    twin = Layout.of(array).allocate()
    assert (twin.shape, twin.strides, twin.dtype) == (array.shape, array.strides, array.dtype)
    assert twin.sum() == 48


def test_shares_are_even_and_complete() -> None:
    def square(n: int) -> Product:
        layout = Layout.of(np.zeros((n, n), dtype=np.float32))
        return Product(layout, layout, layout)

    many = [square(n) for n in (4, 1, 1, 3, 2, 4, 4, 1)]
    shares = evenly(many, 2)
    assert [product for share in shares for product in share] == many
    first, second = (sum(product.multiply_adds for product in share) for share in shares)
    assert (first, second) == (101, 129)
