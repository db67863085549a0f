"""Layers from their names in the registry, the five networks of `configs/`, and random stacks."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st

from cnncli.nn import LAYERS, Layer, Network

LayerSpec: TypeAlias = tuple[str, dict[str, Any]]

RELU: LayerSpec = ("relu", {})
FLATTEN: LayerSpec = ("flatten", {})
BATCH_NORM: LayerSpec = ("batch_norm2d", {})
POOL: LayerSpec = ("max_pool2d", {"kernel_size": 2})


def conv(out_channels: int, kernel_size: int, padding: int = 0) -> LayerSpec:
    return "conv2d", {"out_channels": out_channels, "kernel_size": kernel_size, "padding": padding}


def dense(out_features: int, initializer: str = "he") -> LayerSpec:
    return "dense", {"out_features": out_features, "initializer": initializer}


def dropout(drop_probability: float) -> LayerSpec:
    return "dropout", {"drop_probability": drop_probability}


MNIST_SHAPE = (1, 28, 28)
LAST = dense(10, "small")
FIVE_NETWORKS: dict[str, list[LayerSpec]] = {
    "quickstart": [
        *(conv(24, 5), POOL, RELU, conv(32, 3), POOL, RELU, FLATTEN),
        *(dense(256), RELU, LAST),
    ],
    "simple_convnet": [conv(30, 5), RELU, POOL, FLATTEN, dense(100), RELU, LAST],
    "lenet": [
        *(conv(6, 5, padding=2), RELU, POOL, conv(16, 5), RELU, POOL, FLATTEN),
        *(dense(120), RELU, dense(84), RELU, LAST),
    ],
    "keras_mnist": [conv(32, 3), RELU, POOL, conv(64, 3), RELU, POOL, FLATTEN, dropout(0.5), LAST],
    "pytorch_mnist": [
        *(conv(32, 3), RELU, conv(64, 3), RELU, POOL, dropout(0.25), FLATTEN),
        *(dense(128), RELU, dropout(0.5), LAST),
    ],
}


def make_layer(
    spec: LayerSpec,
    input_shape: tuple[int, ...],
    *,
    seed: int | np.random.Generator = 0,
    dtype: Any = np.float64,
) -> Layer:
    """Build one layer by its name; `rng` and `dtype` go to those that take them."""
    name, options = spec
    offered = {"rng": np.random.default_rng(seed), "dtype": dtype}
    taken = inspect.signature(LAYERS[name]).parameters.keys() & offered.keys()
    return LAYERS[name](input_shape, **options, **{key: offered[key] for key in taken})


def make_network(
    specs: Sequence[LayerSpec], input_shape: tuple[int, ...], *, seed: int = 0, dtype: Any = np.float64
) -> Network:
    """Build layers that each take what the one before gives."""
    rng = np.random.default_rng(seed)
    layers: list[Layer] = []
    for spec in specs:
        shape = layers[-1].output_shape if layers else input_shape
        layers.append(make_layer(spec, shape, seed=rng, dtype=dtype))
    return Network(layers)


# at least 3x3 of it is left before the last convolution
STACK_SHAPE = (2, 15, 26)


@st.composite
def stacks(draw: st.DrawFn, every_kind: bool = False) -> list[LayerSpec]:
    """Draw layers that fit images of STACK_SHAPE: convolutions, pools and ReLUs in any order.

    With `every_kind` also those of which PyTorch's twin is not made here, or sums are not exact.
    """
    convolution = st.builds(
        lambda F, k, s, p, bias: (
            "conv2d",
            {"out_channels": F, "kernel_size": k, "stride": s, "padding": p, "bias": bias},
        ),
        st.integers(1, 4),
        st.tuples(st.integers(1, 3), st.integers(1, 3)),
        st.sampled_from([1, 1, (1, 2)]),
        st.sampled_from([0, 1, (0, 2), "same"]),
        st.booleans(),
    )
    tiles = st.sampled_from([1, 2, 2, 3, (2, 3), (3, 1)])
    pool = st.builds(lambda k: ("max_pool2d", {"kernel_size": k}), tiles) | st.sampled_from(
        [
            ("max_pool2d", {"kernel_size": 3, "stride": 2, "padding": 1}),
            ("max_pool2d", {"kernel_size": 3, "stride": (2, 1)}),
            ("max_pool2d", {"kernel_size": 2, "stride": 3}),
            ("max_pool2d", {"kernel_size": 2, "padding": 1}),
            ("max_pool2d", {"kernel_size": 3, "padding": "same"}),
        ]
    )
    average = st.sampled_from(
        [
            ("average_pool2d", {"kernel_size": 2}),
            ("average_pool2d", {"kernel_size": 3, "stride": 2, "padding": 1}),
            ("average_pool2d", {"kernel_size": (2, 3), "stride": 1, "padding": "same"}),
        ]
    )
    between = [RELU, dropout(0.5)]
    if every_kind:
        pool, between = pool | average, [*between, *[BATCH_NORM] * 2, ("tanh", {}), ("sigmoid", {})]
    block = st.permutations([draw(convolution), draw(pool), RELU, draw(st.sampled_from(between))])
    images = draw(block) + draw(st.lists(convolution, max_size=1)) + draw(st.sampled_from([[], [RELU]]))
    features: list[list[LayerSpec]] = [[], [dense(5), RELU], [RELU, dense(4), dropout(0.3)]]
    if every_kind:
        features.append([dense(5), ("batch_norm1d", {}), ("tanh", {})])
    flat = ("global_average_pool2d", {}) if every_kind and draw(st.booleans()) else FLATTEN
    return [*images, flat, *draw(st.sampled_from(features)), dense(3)]
