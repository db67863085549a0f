"""Batch normalisation: numbers by hand, statistics, running averages, gradients through mean and variance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cnncli.errors import ShapeError
from cnncli.nn import BatchNorm, BatchNorm1D, BatchNorm2D, check_gradients
from cnncli.nn.layers import batch_norm as normalization
from cnncli.nn.layers.batch_norm import BatchStatistics, combined

RNG = np.random.default_rng


def batch_norm(*shape: int, dtype: Any = np.float64, **options: Any) -> BatchNorm:
    """Make a layer with random weight, bias and running averages."""
    cls = BatchNorm2D if len(shape) == 3 else BatchNorm1D
    layer = cls(shape, dtype=dtype, **options)
    rng = RNG(7)
    for parameter in layer.parameters.values():
        parameter.value[...] = rng.standard_normal(shape[0])
    layer.buffers["running_mean"][...] = rng.standard_normal(shape[0])
    layer.buffers["running_var"][...] = rng.uniform(0.5, 2, shape[0])
    return layer


def test_worked_by_hand() -> None:
    # mean 2 and variance 1, so (x - 2) / 1; mean 0 and variance 4, so x / 2
    layer = BatchNorm1D((2,), epsilon=1e-300, dtype=np.float64)
    layer.parameters["weight"].value[...] = 3, 4
    layer.parameters["bias"].value[...] = 10, 0
    y = layer.forward(np.array([[1.0, 3.0], [-2.0, 2.0]]), training=True)
    assert y.tolist() == [[7, 13], [-4, 4]]
    # a tenth of mean and of unbiased variance (2 and 8), nine tenths of 0 and 1
    np.testing.assert_allclose(layer.buffers["running_mean"], [0.2, 0])
    np.testing.assert_allclose(layer.buffers["running_var"], [1.1, 1.7])
    # two numbers always become -1 and 1: nothing that comes in moves them
    assert layer.backward(np.array([[1.0, 5.0], [2.0, 2.0]])).tolist() == [[0, 0], [0, 0]]
    assert layer.parameters["weight"].grad.tolist() == [4, 0]
    assert layer.parameters["bias"].grad.tolist() == [6, 4]


@pytest.mark.parametrize("shape", [(3, 5, 4), (6,)])
def test_the_gradient_goes_through_mean_and_variance(shape: tuple[int, ...]) -> None:
    for seed in range(3):
        checks = check_gradients(batch_norm(*shape), shape, RNG(seed), n_elements=50)
        assert [check.name for check in checks] == ["input", "weight", "bias"]
        for check in checks:
            assert check.verdict == "right"
            assert check.relative_error is not None
            assert check.relative_error < 1e-6


@pytest.mark.parametrize("shape", [(3, 5, 4), (6,)])
def test_the_gradient_of_evaluation(shape: tuple[int, ...]) -> None:
    """There the mean and the variance are constants."""
    for seed in range(3):
        rng = RNG(seed)
        checks = check_gradients(batch_norm(*shape), shape, rng, training=False)
        assert {check.verdict for check in checks} == {"right"}


def formula(layer: BatchNorm, x: Any, mean: Any, variance: Any) -> Any:
    def column(values: Any) -> Any:
        return values.reshape(-1, *[1] * (x.ndim - 1))

    weight, bias = (column(layer.parameters[name].value) for name in ("weight", "bias"))
    return (x - column(mean)) / np.sqrt(column(variance) + layer.epsilon) * weight + bias


@pytest.mark.parametrize("shape", [(3, 5, 4), (6,)])
@pytest.mark.parametrize("N", [2, 7, 40])
def test_training_normalises_by_the_batch(shape: tuple[int, ...], N: int) -> None:
    layer = batch_norm(*shape, epsilon=1e-3)
    x = RNG(N).standard_normal((*shape, N)) * 3 + 1
    rest = tuple(range(1, x.ndim))
    expected = formula(layer, x, x.mean(axis=rest), x.var(axis=rest))
    np.testing.assert_allclose(layer.forward(x, training=True), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", [(3, 5, 4), (6,)])
def test_evaluation_normalises_by_the_running_averages_and_leaves_them(shape: tuple[int, ...]) -> None:
    layer = batch_norm(*shape)
    before = {name: array.copy() for name, array in layer.buffers.items()}
    x = RNG(0).standard_normal((*shape, 5))
    expected = formula(layer, x, before["running_mean"], before["running_var"])
    np.testing.assert_allclose(layer.forward(x), expected, rtol=0, atol=1e-12)
    for name, array in layer.buffers.items():
        np.testing.assert_array_equal(array, before[name])


def test_the_averages_of_several_batches() -> None:
    layer, rng = BatchNorm2D((2, 3, 2), momentum=0.25, dtype=np.float64), RNG(0)
    mean, variance = np.zeros(2), np.ones(2)
    for N in (4, 1, 6):
        x = rng.standard_normal((2, 3, 2, N)) + np.array([1, -2]).reshape(2, 1, 1, 1)
        layer.forward(x, training=True)
        mean = 0.75 * mean + 0.25 * x.mean(axis=(1, 2, 3))
        variance = 0.75 * variance + 0.25 * x.var(axis=(1, 2, 3), ddof=1)
    np.testing.assert_allclose(layer.buffers["running_mean"], mean)
    np.testing.assert_allclose(layer.buffers["running_var"], variance)


def test_one_number_comes_out_as_the_bias() -> None:
    layer = batch_norm(3, momentum=0.5)
    mean, variance = (layer.buffers[name].copy() for name in ("running_mean", "running_var"))
    x = np.array([[5.0], [-1.0], [0.25]])
    np.testing.assert_array_equal(layer.forward(x, training=True)[:, 0], layer.parameters["bias"].value)
    assert not layer.backward(np.ones((3, 1))).any()
    assert not layer.parameters["weight"].grad.any()
    assert layer.parameters["bias"].grad.tolist() == [1, 1, 1]
    # a single number has a mean, and says nothing of a variance
    np.testing.assert_allclose(layer.buffers["running_mean"], (mean + x[:, 0]) / 2)
    np.testing.assert_array_equal(layer.buffers["running_var"], variance)


def test_no_images_leave_the_averages() -> None:
    layer = batch_norm(2, 3, 3)
    before = {name: array.copy() for name, array in layer.buffers.items()}
    layer.forward(np.zeros((2, 3, 3, 0)), training=True)
    for name, array in layer.buffers.items():
        np.testing.assert_array_equal(array, before[name])


def test_a_channel_without_variance_is_finite() -> None:
    layer = batch_norm(2, 4, 4, dtype=np.float32)
    x = np.full((2, 4, 4, 3), 1e4, np.float32)
    y = layer.forward(x, training=True)
    np.testing.assert_array_equal(y[:, 0, 0, 0], layer.parameters["bias"].value)
    grad = RNG(0).standard_normal(x.shape).astype(np.float32)
    assert np.isfinite(layer.backward(grad)).all()


def test_a_mean_far_from_zero_does_not_drown_the_variance() -> None:
    """The mean of the squares less the squared mean would leave nothing of it in float32."""
    x = RNG(0).standard_normal((2, 8, 8, 30)) + 3000
    layer = BatchNorm2D((2, 8, 8))
    y = layer.forward(x.astype(np.float32), training=True)
    np.testing.assert_allclose(y.std(axis=(1, 2, 3)), 1, atol=2e-3)
    assert layer.statistics is not None
    np.testing.assert_allclose(layer.statistics.variance, x.var(axis=(1, 2, 3)), rtol=2e-3)


def test_a_replica_reads_the_averages_and_leaves_them_to_their_owner() -> None:
    layer = batch_norm(3, 4, 4)
    replica = layer.replica().replica()
    before = {name: array.copy() for name, array in layer.buffers.items()}
    x = RNG(0).standard_normal((3, 4, 4, 6))
    replica.forward(x, training=True)
    for name, array in layer.buffers.items():
        np.testing.assert_array_equal(array, before[name])
    assert layer.statistics is None
    assert replica.statistics is not None
    layer.update_averages(replica.statistics)
    alone = batch_norm(3, 4, 4)
    alone.forward(x, training=True)
    for name, array in layer.buffers.items():
        np.testing.assert_array_equal(array, alone.buffers[name])
    np.testing.assert_array_equal(replica.forward(x), alone.forward(x))


@given(
    sizes=st.lists(st.integers(0, 9), min_size=1, max_size=6),
    offset=st.sampled_from([0.0, 5.0, 1e6]),
    seed=st.integers(0, 2**32),
)
def test_statistics_of_parts_make_those_of_the_whole(sizes: list[int], offset: float, seed: int) -> None:
    numbers = RNG(seed).standard_normal((3, sum(sizes))) + offset
    parts = np.split(numbers, np.cumsum(sizes)[:-1], axis=1)
    total = BatchStatistics(0, np.zeros(3), np.zeros(3))
    for part in parts:
        if part.shape[1]:
            total = combined(total, BatchStatistics(part.shape[1], part.mean(axis=1), part.var(axis=1)))
        else:
            total = combined(total, BatchStatistics(0, np.zeros(3), np.zeros(3)))
    assert total.count == sum(sizes)
    if total.count:
        np.testing.assert_allclose(total.mean, numbers.mean(axis=1), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(total.variance, numbers.var(axis=1), rtol=1e-7, atol=1e-12)


def test_blocks_of_channels_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def results() -> list[Any]:
        layer = batch_norm(7, 3, 4)
        y = layer.forward(RNG(1).standard_normal((7, 3, 4, 5)), training=True).copy()
        grad_input = layer.backward(RNG(2).standard_normal(y.shape)).copy()
        evaluated = layer.forward(RNG(3).standard_normal(y.shape)).copy()
        return [y, grad_input, evaluated, *(p.grad.copy() for p in layer.parameters.values())]

    expected = results()
    for size in (1, 130, 10**9):
        monkeypatch.setattr(normalization, "_BLOCK_SIZE", size)
        for result, right in zip(results(), expected, strict=True):
            np.testing.assert_allclose(result, right, rtol=0, atol=1e-13)


def test_images_and_features_are_told_apart() -> None:
    with pytest.raises(ShapeError, match=r"^BatchNorm1D: .* got \(3, 4, 4\); images take BatchNorm2D"):
        BatchNorm1D((3, 4, 4))
    with pytest.raises(ShapeError, match=r"^BatchNorm2D: expected an input shape \(C, H, W\), got \(3,\)$"):
        BatchNorm2D((3,))
