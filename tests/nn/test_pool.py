"""Max pooling: ties, overlaps, gaps, padding, NaN and infinity."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cnncli.errors import OptionError
from cnncli.nn import MaxPool2D, batch_first, batch_last
from tests.nn import references
from tests.nn.geometries import Geometry, geometries

NAN, INF = math.nan, math.inf


def pool_image(rows: Any, grad: Any = None, **options: Any) -> tuple[Any, Any]:
    """Pool one image (H, W); return the output and, for an upstream gradient (OH, OW), that of the image."""
    x = np.array(rows, np.float64)[None, :, :, None]
    layer = MaxPool2D(x.shape[:-1], **options)
    y = layer.forward(x)
    grad = np.ones(y.shape) if grad is None else np.array(grad, np.float64).reshape(y.shape)
    return y[0, :, :, 0].copy(), layer.backward(grad)[0, :, :, 0]


@given(geometry=geometries(pooling=True), ties=st.booleans())
def test_matches_the_reference(geometry: Geometry, ties: bool) -> None:
    rng = geometry.rng
    images = geometry.images(rng)
    if ties:
        images = np.round(images)
    layer = MaxPool2D(
        geometry.input_shape,
        kernel_size=geometry.kernel_size,
        stride=geometry.stride,
        padding=geometry.padding,
    )
    arguments = (geometry.kernel_size, geometry.stride, geometry.sides)
    y = layer.forward(batch_last(images))
    assert layer.output_shape == (geometry.C, *geometry.output_size)
    np.testing.assert_array_equal(batch_first(y), references.max_pool(images, *arguments))

    grad = rng.standard_normal((geometry.N, *layer.output_shape))
    grad_input = batch_first(layer.backward(batch_last(grad)))
    expected = references.max_pool_backward(images, *arguments, grad)
    np.testing.assert_allclose(grad_input, expected, rtol=0, atol=1e-13)
    assert grad_input.sum() == pytest.approx(grad.sum(), abs=1e-11)


@given(geometry=geometries(pooling=True))
def test_special_values_match_the_reference(geometry: Geometry) -> None:
    rng = geometry.rng
    images = rng.choice([-INF, -1.0, 0.0, 2.0, INF, NAN], (geometry.N, *geometry.input_shape))
    layer = MaxPool2D(
        geometry.input_shape,
        kernel_size=geometry.kernel_size,
        stride=geometry.stride,
        padding=geometry.padding,
    )
    arguments = (geometry.kernel_size, geometry.stride, geometry.sides)
    y = layer.forward(batch_last(images))
    np.testing.assert_array_equal(batch_first(y), references.max_pool(images, *arguments))
    grad = rng.standard_normal((geometry.N, *layer.output_shape))
    np.testing.assert_allclose(
        batch_first(layer.backward(batch_last(grad))),
        references.max_pool_backward(images, *arguments, grad),
        rtol=0,
        atol=1e-13,
    )


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((30, 24, 24, 50), {"kernel_size": 2}),
        ((4, 61, 47, 33), {"kernel_size": (3, 2), "stride": (2, 3), "padding": (1, 0)}),
        ((2, 9, 500, 17), {"kernel_size": 3, "stride": 1, "padding": "same"}),
    ],
)
def test_large_batches(shape: tuple[int, int, int, int], options: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    x = rng.permutation(math.prod(shape)).reshape(shape).astype(np.float64)  # no ties
    whole, single = MaxPool2D(shape[:-1], **options), MaxPool2D(shape[:-1], **options)
    y = whole.forward(x)
    grad = rng.standard_normal(y.shape)
    grad_input = whole.backward(grad)
    for n in range(0, shape[-1], 16):
        one = slice(n, n + 1)
        np.testing.assert_array_equal(y[..., one], single.forward(x[..., one]))
        np.testing.assert_array_equal(grad_input[..., one], single.backward(grad[..., one]))
    assert grad_input.sum() == pytest.approx(grad.sum())


@pytest.mark.parametrize(
    ("rows", "grad_input"),
    [([[1, 2], [2, 2]], [[0, 1], [0, 0]]), ([[0, 0], [0, 0]], [[1, 0], [0, 0]])],
)
def test_first_maximum_takes_the_gradient(rows: Any, grad_input: Any) -> None:
    assert pool_image(rows, kernel_size=2)[1].tolist() == grad_input


def test_overlapping_windows_add() -> None:
    output, grad_input = pool_image([[1, 2, 3], [4, 9, 5], [6, 7, 8]], kernel_size=2, stride=1)
    assert output.tolist() == [[9, 9], [9, 9]]
    assert grad_input.tolist() == [[0, 0, 0], [0, 4, 0], [0, 0, 0]]


def test_windows_that_do_not_tile() -> None:
    assert MaxPool2D((1, 510, 510), kernel_size=2, stride=2).output_shape == (1, 255, 255)
    output, grad_input = pool_image(np.arange(25).reshape(5, 5), kernel_size=2, stride=2)
    assert output.tolist() == [[6, 8], [16, 18]]
    assert not grad_input[-1].any()
    assert not grad_input[:, -1].any()
    assert np.argwhere(grad_input).tolist() == [[1, 1], [1, 3], [3, 1], [3, 3]]


def test_gaps_between_windows_get_no_gradient() -> None:
    output, grad_input = pool_image([[9, 1, 5, 7]], [[1, 10]], kernel_size=1, stride=(1, 2))
    assert output.tolist() == [[9, 5]]
    assert grad_input.tolist() == [[1, 0, 10, 0]]


def test_padding_never_beats_a_negative_number() -> None:
    rows = [[-1, -2, -3], [-3, -4, -5], [-2, -3, -6]]
    output, grad_input = pool_image(rows, [[1, 10], [100, 1000]], kernel_size=3, stride=2, padding=1)
    assert output.tolist() == [[-1, -2], [-2, -3]]
    assert grad_input.tolist() == [[1, 10, 0], [0, 0, 0], [100, 1000, 0]]


@pytest.mark.parametrize(
    ("rows", "output", "grad_input"),
    [
        pytest.param([[1, NAN], [5, 6]], NAN, [[0, 1], [0, 0]], id="case"),
        pytest.param([[6, 5], [NAN, 1]], NAN, [[0, 0], [1, 0]], id="late"),
        pytest.param([[NAN, NAN], [NAN, NAN]], NAN, [[1, 0], [0, 0]], id="all"),
        pytest.param([[-INF, -INF], [-INF, -INF]], -INF, [[1, 0], [0, 0]], id="minus-infinity"),
        pytest.param([[-INF, NAN], [INF, 0]], NAN, [[0, 1], [0, 0]], id="nan-and-infinity"),
        pytest.param([[0, INF], [INF, 0]], INF, [[0, 1], [0, 0]], id="infinity"),
    ],
)
def test_special_values(rows: Any, output: float, grad_input: Any) -> None:
    y, dx = pool_image(rows, kernel_size=2)
    np.testing.assert_array_equal(y, [[output]])
    assert dx.tolist() == grad_input


def test_padding_never_beats_minus_infinity() -> None:
    output, grad_input = pool_image(
        np.full((3, 3), -INF), [[1, 10], [100, 1000]], kernel_size=3, stride=2, padding=1
    )
    np.testing.assert_array_equal(output, np.full((2, 2), -INF))
    assert grad_input.tolist() == [[1, 10, 0], [100, 1000, 0], [0, 0, 0]]


def test_nan_spoils_no_other_image_or_channel() -> None:
    x = np.arange(2 * 4 * 4 * 3, dtype=np.float64).reshape(2, 4, 4, 3)
    x[1, 0, 0, 2] = NAN
    y = MaxPool2D((2, 4, 4), kernel_size=2).forward(x)
    assert np.argwhere(np.isnan(y)).tolist() == [[1, 0, 0, 2]]


@pytest.mark.parametrize("kernel_size", [(16, 16), (17, 16), (1, 300)])
def test_kernels_of_hundreds_of_cells(kernel_size: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    images = rng.standard_normal((4, 2, *(2 * side + 1 for side in kernel_size)))
    layer = MaxPool2D(images.shape[1:], kernel_size=kernel_size, stride=kernel_size)
    y = batch_first(layer.forward(batch_last(images)))
    arguments = (kernel_size, kernel_size, (0, 0, 0, 0))
    np.testing.assert_array_equal(y, references.max_pool(images, *arguments))
    grad = rng.standard_normal(y.shape)
    np.testing.assert_array_equal(
        batch_first(layer.backward(batch_last(grad))), references.max_pool_backward(images, *arguments, grad)
    )


def test_stride_is_the_kernel_size_unless_given() -> None:
    assert MaxPool2D((2, 7, 9), kernel_size=(3, 2)).output_shape == (2, 2, 4)
    assert MaxPool2D((2, 7, 9), kernel_size=(3, 2), stride=1).output_shape == (2, 5, 8)


def test_height_and_width_are_not_exchanged() -> None:
    layer = MaxPool2D((1, 2, 4), kernel_size=2, stride=2)
    y = batch_first(layer.forward(batch_last(np.arange(32.0).reshape(4, 1, 2, 4))))
    assert y.shape == (4, 1, 1, 2)
    assert y[:, 0, 0].tolist() == [[5, 7], [13, 15], [21, 23], [29, 31]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel_size": 2, "padding": 2}, "padding: expected at most half the kernel, 1x1 for 2x2, got 2x2"),
        ({"kernel_size": (4, 1), "padding": (2, 1)}, "padding: .* 2x0 for 4x1, got 2x1"),
        ({"kernel_size": 4}, "kernel_size: expected at most 3x3, .* got 4x4"),
        ({"kernel_size": 0}, "kernel_size: expected int >= 1"),
        ({"kernel_size": 2, "stride": 0}, "stride: expected int >= 1.* got 0"),
    ],
)
def test_impossible_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        MaxPool2D((1, 3, 3), **options)
