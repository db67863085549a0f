"""The matrix products of a training step by themselves: a bound for what the step can reach."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias
from unittest import mock

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from cnncli.config import Config
from cnncli.data import Normalization, Split
from cnncli.nn import LayerPass, Network
from cnncli.training import Workers
from cnncli.training.gradients import BatchGradients
from cnncli.training.step_profile import multiply_adds

Array: TypeAlias = NDArray[Any]


class Layout(NamedTuple):
    """How an array lies in memory: what the speed of a product depends on."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, array: Array) -> Layout:
        return cls(array.shape, array.strides, array.dtype)

    def allocate(self) -> Array:
        """Make an array that lies in memory like this, filled with ones."""
        extent = sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))
        flat = np.ones(extent // self.dtype.itemsize + 1, dtype=self.dtype)
        return as_strided(flat, self.shape, self.strides)


class Product(NamedTuple):
    """One call of ``np.matmul``, of two matrices or of two stacks of them."""

    left: Layout
    right: Layout
    out: Layout

    @property
    def multiply_adds(self) -> int:
        return math.prod(self.out.shape) * self.left.shape[-1]


class MissedProductsError(Exception):
    """The engine multiplies matrices in a way that is not seen here."""


def record_products(config: Config, network: Network) -> list[Product]:
    """Note every matrix product of one training step, in the order in which one worker computes them.

    Products with a vector, which add up rows, are not among them.

    Raises
    ------
    MissedProductsError : there are fewer multiply-adds than the network needs
    """
    batch_size = config.training.batch_size
    images = np.random.default_rng(0).integers(0, 256, (batch_size, *network.input_shape), dtype=np.uint8)
    with Workers(1) as worker, _recorded_products() as products:
        gradients = BatchGradients(
            network,
            worker,
            Split(images, np.zeros(batch_size, dtype=np.int64)),
            Normalization.from_images(images),
            shard_size=config.training.shard_size,
            label_smoothing=config.loss.label_smoothing,
            seed=config.seed,
        )
        gradients.compute(np.arange(batch_size), 0)
    recorded = sum(product.multiply_adds for product in products)
    needed = needed_multiply_adds(network, batch_size)
    if recorded < needed:
        raise MissedProductsError(f"recorded {recorded:,} multiply-adds where a step needs {needed:,}")
    return products


def needed_multiply_adds(network: Network, N: int) -> int:
    """Count what a step needs: forward, parameters, and every input but the first layer's."""
    needed = 0

    def observe(done: LayerPass) -> None:
        nonlocal needed
        needed += multiply_adds(done)

    logits = network.forward(
        np.zeros((*network.input_shape, 1), network.dtype),
        training=True,
        rng=np.random.default_rng(0),
        observe=observe,
    )
    network.backward(np.zeros_like(logits), to_input=False, observe=observe)
    return needed * N


class Replay:
    """Runs recorded products, shared out evenly among workers.

    Each worker has memory of its own, once for each layout: what is measured is the products, and
    not where their operands come from.
    """

    def __init__(self, products: Sequence[Product], workers: Workers) -> None:
        self._shares = evenly(products, workers.n_workers)
        self._arrays = [
            {product: [layout.allocate() for layout in product] for product in share}
            for share in self._shares
        ]
        self._n_workers = workers.n_workers
        self._run_shares = workers.operation(self._run_share)

    def run(self) -> None:
        self._run_shares(self._n_workers)

    def _run_share(self, worker: int, index: int) -> None:
        arrays = self._arrays[index]
        for product in self._shares[index]:
            left, right, out = arrays[product]
            np.matmul(left, right, out=out)


def evenly(products: Sequence[Product], n: int) -> list[list[Product]]:
    """Cut a list of products into n parts with nearly as many multiply-adds each."""
    total, done = sum(product.multiply_adds for product in products), 0
    shares: list[list[Product]] = [[] for _ in range(n)]
    for product in products:
        middle = 2 * done + product.multiply_adds  # twice, to stay with integers
        shares[middle * n // (2 * total)].append(product)
        done += product.multiply_adds
    return shares


@contextmanager
def _recorded_products() -> Iterator[list[Product]]:
    """Note the calls of ``np.matmul`` that are made inside."""
    products: list[Product] = []
    matmul = np.matmul

    def record(left: Array, right: Array, out: Array | None = None) -> Array:
        result: Array = matmul(left, right, out=out)
        products.append(Product(Layout.of(left), Layout.of(right), Layout.of(result)))
        return result

    with mock.patch.object(np, "matmul", record):
        yield products
