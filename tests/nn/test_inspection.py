"""The facts of a network: shapes, parameters, multiply-adds, memory, receptive field."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cnncli.nn import Conv2D, im2col
from cnncli.nn.inspection import inspect_network
from tests.nn.networks import (
    BATCH_NORM,
    FIVE_NETWORKS,
    FLATTEN,
    MNIST_SHAPE,
    POOL,
    LayerSpec,
    conv,
    dense,
    make_network,
)

LENET = [
    # name, output shape, parameters, multiply-adds, im2col matrix, receptive field
    ("conv2d", (6, 28, 28), 156, 6 * 25 * 784, (25, 784), (5, 5)),
    ("relu", (6, 28, 28), 0, 0, None, (5, 5)),
    ("max_pool2d", (6, 14, 14), 0, 0, None, (6, 6)),
    ("conv2d", (16, 10, 10), 2416, 16 * 150 * 100, (150, 100), (14, 14)),
    ("relu", (16, 10, 10), 0, 0, None, (14, 14)),
    ("max_pool2d", (16, 5, 5), 0, 0, None, (16, 16)),
    ("flatten", (400,), 0, 0, None, (16, 16)),
    ("dense", (120,), 48120, 48000, None, (28, 28)),
    ("relu", (120,), 0, 0, None, (28, 28)),
    ("dense", (84,), 10164, 10080, None, (28, 28)),
    ("relu", (84,), 0, 0, None, (28, 28)),
    ("dense", (10,), 850, 840, None, (28, 28)),
]


@pytest.mark.parametrize(
    ("name", "parameters", "image_shapes"),
    [
        (
            "quickstart",
            215_194,
            [(24, 24, 24), (24, 12, 12), (24, 12, 12), (32, 10, 10), (32, 5, 5), (32, 5, 5)],
        ),
        ("simple_convnet", 433_890, [(30, 24, 24), (30, 24, 24), (30, 12, 12)]),
        ("lenet", 61_706, [shape for _, shape, *_ in LENET[:6]]),
        (
            "keras_mnist",
            34_826,
            [(32, 26, 26), (32, 26, 26), (32, 13, 13), (64, 11, 11), (64, 11, 11), (64, 5, 5)],
        ),
        (
            "pytorch_mnist",
            1_199_882,
            [(32, 26, 26), (32, 26, 26), (64, 24, 24), (64, 24, 24), (64, 12, 12), (64, 12, 12)],
        ),
    ],
)
def test_five_networks(name: str, parameters: int, image_shapes: list[tuple[int, ...]]) -> None:
    network = make_network(FIVE_NETWORKS[name], MNIST_SHAPE)
    facts = inspect_network(network)
    assert facts.total_parameters == parameters
    assert [f.output_shape for f in facts.layers if len(f.output_shape) == 3] == image_shapes
    assert facts.layers[-1].output_shape == (10,)
    # what is told is what runs
    x: Any = np.zeros((*MNIST_SHAPE, 1))
    for layer, fact in zip(network.layers, facts.layers, strict=True):
        if fact.name == "conv2d":
            assert isinstance(layer, Conv2D)
            windows = layer.windows
            cols = im2col(x, windows.kernel_size, windows.stride, windows.sides)
            assert cols.shape == fact.im2col_shape
        x = layer.forward(x)
        assert x.shape == (*fact.output_shape, 1)
        assert x.nbytes == fact.activation_bytes


def test_batch() -> None:
    network = make_network([conv(3, 2), POOL, FLATTEN, dense(4)], (2, 5, 6), dtype=np.float64)
    one, many = inspect_network(network), inspect_network(network, 7)
    assert many.input_shape == (2, 5, 6, 7)
    assert many.total_macs == 7 * one.total_macs
    assert many.total_activation_bytes == 7 * one.total_activation_bytes
    assert many.total_parameters == one.total_parameters
    assert many.layers[0].im2col_shape == (8, 20 * 7)
    assert [f.output_shape for f in many.layers] == [(*f.output_shape, 7) for f in one.layers]


def test_receptive_field_of_strides_and_oblong_kernels() -> None:
    specs: list[LayerSpec] = [
        ("conv2d", {"out_channels": 1, "kernel_size": (3, 1), "stride": (2, 1)}),
        ("max_pool2d", {"kernel_size": (2, 3), "stride": (1, 2)}),
        ("conv2d", {"out_channels": 1, "kernel_size": 2}),
    ]
    network = make_network(specs, (1, 20, 20))
    assert [f.receptive_field for f in inspect_network(network).layers] == [(3, 1), (5, 3), (7, 5)]
    # one output feels exactly those pixels
    network.layers[0].parameters["weight"].value[...] = 1
    network.layers[2].parameters["weight"].value[...] = 1
    touched = np.zeros((20, 20), bool)
    for h in range(20):
        for w in range(20):
            x = np.zeros((1, 20, 20, 1))
            x[0, h, w] = 1
            touched[h, w] = network.forward(x)[0, 0, 0, 0] != 0
    assert np.argwhere(touched).max(axis=0).tolist() == [6, 4]


def test_average_pools_and_batch_norms() -> None:
    specs: list[LayerSpec] = [
        conv(4, 3),
        BATCH_NORM,
        ("average_pool2d", {"kernel_size": (2, 3), "stride": 2}),
        conv(5, 2),
        ("tanh", {}),
        ("global_average_pool2d", {}),
        ("batch_norm1d", {}),
        dense(3),
    ]
    facts = inspect_network(make_network(specs, (1, 13, 12))).layers
    assert [f.output_shape for f in facts[-4:]] == [(5, 4, 3), (5,), (5,), (3,)]
    assert [f.parameters for f in facts] == [40, 8, 0, 85, 0, 0, 10, 18]
    assert [f.macs for f in facts if f.name not in ("conv2d", "dense")] == [0] * 5
    fields = [(3, 3), (3, 3), (4, 5), (6, 7), (6, 7), (13, 12), (13, 12), (13, 12)]
    assert [f.receptive_field for f in facts] == fields
