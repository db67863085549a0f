"""Initial weights: their spread, their precision, and the first loss that they lead to."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest

from cnncli.nn import Conv2D, Dense
from cnncli.nn.initializers import initialize


def weight_of(kind: str, **options: Any) -> np.ndarray:
    """Weights of a large layer: fan-in 400 and fan-out 2500 for either kind."""
    rng = np.random.default_rng(0)
    if kind == "conv2d":
        conv = Conv2D((16, 5, 5), out_channels=100, kernel_size=5, rng=rng, **options)
        return conv.parameters["weight"].value
    return Dense((400,), out_features=2500, rng=rng, **options).parameters["weight"].value


@pytest.mark.parametrize("kind", ["conv2d", "dense"])
@pytest.mark.parametrize(
    ("initializer", "variance"), [("he", 2 / 400), ("glorot", 2 / (400 + 2500)), ("small", 0.01 / 400)]
)
def test_spread(kind: str, initializer: str, variance: float) -> None:
    weight = weight_of(kind, initializer=initializer)
    # the relative error of a variance over n numbers is at most sqrt(2 / n)
    assert weight.var() == pytest.approx(variance, rel=5 * math.sqrt(2 / weight.size))
    assert abs(weight.mean()) < 5 * math.sqrt(variance / weight.size)


def test_shapes_of_the_distributions() -> None:
    glorot = weight_of("dense", initializer="glorot")
    limit = math.sqrt(6 / (400 + 2500))
    assert 0.999 * limit < np.abs(glorot).max() <= limit
    he = weight_of("dense", initializer="he")
    assert np.abs(he).max() > 4 * math.sqrt(2 / 400)


def test_he_is_the_default() -> None:
    for kind in ("conv2d", "dense"):
        np.testing.assert_array_equal(weight_of(kind), weight_of(kind, initializer="he"))


@pytest.mark.parametrize("initializer", ["he", "glorot", "small"])
@pytest.mark.parametrize("kind", ["conv2d", "dense"])
def test_float32_is_float64_rounded(kind: str, initializer: str) -> None:
    double = weight_of(kind, initializer=initializer, dtype=np.float64)
    single = weight_of(kind, initializer=initializer, dtype=np.float32)
    assert double.dtype == np.float64
    assert single.dtype == np.float32
    np.testing.assert_array_equal(double.astype(np.float32), single)


def test_layers_take_turns_at_one_generator() -> None:
    rng = np.random.default_rng(0)
    first, second = (Dense((5,), out_features=4, rng=rng) for _ in range(2))
    assert not np.array_equal(first.parameters["weight"].value, second.parameters["weight"].value)


def test_without_a_generator_every_layer_is_another() -> None:
    first, second = (Dense((5,), out_features=4).parameters["weight"].value for _ in range(2))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize(
    ("initializer", "draw"), [("he", "normal"), ("small", "normal"), ("glorot", "uniform")]
)
def test_a_large_layer_gets_the_numbers_of_one_draw(initializer: str, draw: str) -> None:
    shape, fan_in, fan_out = (700, 300), 300, 700  # 3 pieces and a part of one
    weight = initialize(
        initializer,
        shape,
        fan_in=fan_in,
        fan_out=fan_out,
        rng=np.random.default_rng(5),
        dtype=np.float64,
    )
    rng = np.random.default_rng(5)
    if draw == "normal":
        variance = (2.0 if initializer == "he" else 0.01) / fan_in
        expected = rng.normal(0.0, math.sqrt(variance), shape)
    else:
        limit = math.sqrt(6 / (fan_in + fan_out))
        expected = rng.uniform(-limit, limit, shape)
    np.testing.assert_array_equal(weight, expected)


def test_drawing_takes_little_more_memory_than_the_weights() -> None:
    tracemalloc.start()
    try:
        weight = initialize("he", (1000, 1000), fan_in=1000, fan_out=1000, rng=None, dtype=np.float32)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1.5 * weight.nbytes
