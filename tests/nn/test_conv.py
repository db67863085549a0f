"""Convolution, forward and backward."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view

from cnncli.nn import Conv2D, batch_first, batch_last, im2col
from tests.nn import references
from tests.nn.geometries import Geometry, geometries


def convolution(
    weight: Any, input_shape: tuple[int, int, int], bias: Any = None, dtype: Any = np.float64, **options: Any
) -> Conv2D:
    """A convolution with these weights (F, C, KH, KW), or (KH, KW) for one kernel and one channel."""
    weight = np.array(weight, dtype)
    if weight.ndim == 2:
        weight = weight[None, None]
    F, _, KH, KW = weight.shape
    layer = Conv2D(
        input_shape,
        out_channels=F,
        kernel_size=(KH, KW),
        bias=bias is not None,
        rng=np.random.default_rng(0),
        dtype=dtype,
        **options,
    )
    layer.parameters["weight"].value[...] = weight
    if bias is not None:
        layer.parameters["bias"].value[...] = bias
    return layer


@given(geometry=geometries(), F=st.integers(1, 4), bias=st.booleans())
def test_matches_the_reference(geometry: Geometry, F: int, bias: bool) -> None:
    rng = geometry.rng
    images = geometry.images(rng)
    weight = rng.standard_normal((F, geometry.C, *geometry.kernel_size))
    biases = rng.standard_normal(F) if bias else np.zeros(F)
    layer = convolution(
        weight,
        geometry.input_shape,
        biases if bias else None,
        stride=geometry.stride,
        padding=geometry.padding,
    )
    y = layer.forward(batch_last(images))
    assert layer.output_shape == (F, *geometry.output_size)
    assert y.shape == (*layer.output_shape, geometry.N)
    expected = references.convolve(images, weight, biases, geometry.stride, geometry.sides)
    np.testing.assert_allclose(batch_first(y), expected, rtol=0, atol=1e-12)

    grad = rng.standard_normal(expected.shape)
    grad_input = layer.backward(batch_last(grad))
    grad_images, grad_weight, grad_bias = references.convolve_backward(
        images, weight, geometry.stride, geometry.sides, grad
    )
    np.testing.assert_allclose(batch_first(grad_input), grad_images, rtol=0, atol=1e-12)
    np.testing.assert_allclose(layer.parameters["weight"].grad, grad_weight, rtol=0, atol=1e-12)
    if bias:
        np.testing.assert_allclose(layer.parameters["bias"].grad, grad_bias, rtol=0, atol=1e-12)


# (C, H, W, N), F, kernel size, stride, padding: matrices from 0.3 to 20 MB in float64
LARGE = [
    ((1, 28, 28, 50), 6, (5, 5), (1, 1), (2, 2)),
    ((6, 14, 14, 33), 16, (5, 5), (1, 1), (0, 0)),
    ((3, 41, 37, 17), 4, (5, 3), (1, 1), (0, 1)),
    ((2, 64, 9, 50), 5, (3, 4), (2, 1), (3, 1)),
    ((2, 9, 64, 50), 3, (4, 3), (1, 3), (1, 2)),
    ((1, 30, 30, 128), 2, (2, 2), (3, 3), (0, 0)),
    ((32, 13, 13, 20), 64, (3, 3), (1, 1), (0, 0)),
    ((1, 1, 500, 31), 3, (1, 7), (1, 1), (0, 3)),
    ((1, 500, 1, 31), 3, (7, 1), (1, 1), (3, 0)),
    ((2, 5, 6, 2000), 3, (3, 3), (1, 1), (1, 1)),
]


@pytest.mark.parametrize(("shape", "F", "kernel_size", "stride", "padding"), LARGE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_batches(
    shape: tuple[int, int, int, int],
    F: int,
    kernel_size: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[int, int],
    dtype: Any,
) -> None:
    C, H, W, _ = shape
    rng = np.random.default_rng(0)
    x, weight, bias = rng.standard_normal(shape), rng.standard_normal((F, C, *kernel_size)), np.arange(F)
    layer = convolution(weight, (C, H, W), bias, dtype, stride=stride, padding=padding)
    y = layer.forward(x.astype(dtype))
    grad = rng.standard_normal(y.shape)
    grad_input = layer.backward(grad.astype(dtype))

    sides = [(0, 0), *((side, side) for side in padding), (0, 0)]
    views = sliding_window_view(np.pad(x, sides), kernel_size, (1, 2))[:, :: stride[0], :: stride[1]]
    # (C, OH, OW, N, KH, KW)
    expected = np.tensordot(weight, views, ((1, 2, 3), (0, 4, 5))) + bias[:, None, None, None]
    grad_weight = np.tensordot(grad, views, ((1, 2, 3), (1, 2, 3)))
    relative = 1e-12 if dtype is np.float64 else 1e-4
    for actual, right in (
        (y, expected),
        (layer.parameters["weight"].grad, grad_weight),
        (layer.parameters["bias"].grad, grad.sum((1, 2, 3))),
    ):
        assert actual.dtype == dtype
        np.testing.assert_allclose(actual, right, rtol=0, atol=relative * np.abs(right).max())
    # the convolution without its bias is linear in the image: <conv(u), grad> = <u, dx>
    for u in (x, rng.standard_normal(shape)):
        along = np.tensordot(
            weight,
            sliding_window_view(np.pad(u, sides), kernel_size, (1, 2))[:, :: stride[0], :: stride[1]],
            ((1, 2, 3), (0, 4, 5)),
        )
        scale = np.linalg.norm(along) * np.linalg.norm(grad)
        assert abs(np.vdot(u, grad_input) - np.vdot(along, grad)) < relative * scale / 100
    # and every pixel of dx by itself, for one image
    single = convolution(weight, (C, H, W), bias, stride=stride, padding=padding)
    single.forward(x[..., -1:])
    np.testing.assert_allclose(
        grad_input[..., -1:],
        single.backward(grad[..., -1:]),
        rtol=0,
        atol=relative * np.abs(grad_input).max(),
    )


def test_is_weight_times_im2col() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 6, 5, 3))
    layer = Conv2D((2, 6, 5), out_channels=4, kernel_size=(3, 2), stride=2, padding=1, rng=rng, dtype=x.dtype)
    cols = im2col(x, (3, 2), 2, 1)
    assert layer.im2col_shape == (cols.shape[0], cols.shape[1] // 3)
    product = layer.parameters["weight"].value.reshape(4, -1) @ cols
    np.testing.assert_allclose(layer.forward(x), product.reshape(4, 3, 3, 3), rtol=0, atol=1e-13)


def test_stride_that_does_not_divide() -> None:
    layer = convolution(np.ones((3, 3)), (1, 6, 6), stride=2)
    x = np.arange(36.0).reshape(1, 6, 6, 1)
    layer.forward(x)
    grad_input = layer.backward(np.ones((1, 2, 2, 1)))
    v = [1, 1, 2, 1, 1, 0]
    np.testing.assert_array_equal(grad_input[0, :, :, 0], np.outer(v, v))
    assert layer.parameters["weight"].grad.shape == (1, 1, 3, 3)
    # each weight meets the four pixels at its offset, its offset + 2, and so on
    expected = [[x[0, i : i + 3 : 2, j : j + 3 : 2, 0].sum() for j in range(3)] for i in range(3)]
    np.testing.assert_array_equal(layer.parameters["weight"].grad[0, 0], expected)


@pytest.mark.parametrize(
    ("input_shape", "kernel_size", "stride", "padding", "output_shape"),
    [
        pytest.param((1, 10, 10), (6, 1), 1, 0, (1, 5, 10), id="case"),
        pytest.param((1, 28, 28), 2, 1, "same", (1, 28, 28), id="case"),
        pytest.param((1, 28, 28), 5, 2, 0, (1, 12, 12), id="case"),
        pytest.param((2, 3, 7), (1, 7), (2, 1), (0, 0), (1, 2, 1), id="row"),
    ],
)
def test_output_shape(
    input_shape: tuple[int, ...], kernel_size: Any, stride: Any, padding: Any, output_shape: tuple[int, ...]
) -> None:
    layer = Conv2D(input_shape, out_channels=1, kernel_size=kernel_size, stride=stride, padding=padding)
    assert layer.output_shape == output_shape
    assert layer.forward(np.zeros((*input_shape, 2), np.float32)).shape == (*output_shape, 2)


def test_same_with_stride() -> None:
    layer = convolution(np.ones((1, 3)), (1, 1, 6), stride=(1, 2), padding="same")
    assert layer.forward(np.arange(6.0).reshape(1, 1, 6, 1)).ravel().tolist() == [3, 9, 9]


@pytest.mark.parametrize("padding", [0, 2, "same"])
def test_padding_reads_as_zero(padding: Any) -> None:
    layer = convolution(np.ones((3, 3)), (1, 4, 3), bias=[0.25], padding=padding)
    y = layer.forward(np.ones((1, 4, 3, 1)))[0, :, :, 0]
    inner = {
        0: [[9], [9]],
        2: [[1, 2, 3, 2, 1], [2, 4, 6, 4, 2], *[[3, 6, 9, 6, 3]] * 2, [2, 4, 6, 4, 2], [1, 2, 3, 2, 1]],
        "same": [[4, 6, 4], [6, 9, 6], [6, 9, 6], [4, 6, 4]],
    }
    assert y.tolist() == (np.array(inner[padding]) + 0.25).tolist()


def test_windows_that_see_only_padding_give_the_bias() -> None:
    layer = convolution([[2.0]], (1, 1, 1), bias=[0.5], padding=2)
    y = layer.forward(np.full((1, 1, 1, 1), 3.0))
    expected = np.full((5, 5), 0.5)
    expected[2, 2] = 6.5
    np.testing.assert_array_equal(y[0, :, :, 0], expected)
    assert layer.backward(np.ones_like(y)).item() == 2.0
    assert layer.parameters["weight"].grad.item() == 3.0
    assert layer.parameters["bias"].grad.item() == 25.0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_bad_pixel_spoils_only_the_windows_that_see_it(bad: float) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 6, 5, 3))
    layer = Conv2D((2, 6, 5), out_channels=2, kernel_size=(2, 3), padding=1, rng=rng, dtype=x.dtype)
    clean = layer.forward(x).copy()
    x[1, 3, 2, 1] = bad
    y = layer.forward(x)
    spoiled = np.zeros(y.shape, bool)
    spoiled[:, 3:5, 1:4, 1] = True
    assert not np.isfinite(y[spoiled]).any()
    np.testing.assert_allclose(y[~spoiled], clean[~spoiled], rtol=0, atol=1e-13)


def test_parameters() -> None:
    layer = Conv2D((3, 5, 7), out_channels=4, kernel_size=(2, 3))
    assert {name: p.value.shape for name, p in layer.parameters.items()} == {
        "weight": (4, 3, 2, 3),
        "bias": (4,),
    }
    assert not layer.parameters["bias"].value.any()
    unbiased = Conv2D((3, 5, 7), out_channels=4, kernel_size=(2, 3), bias=False)
    assert unbiased.parameters.keys() == {"weight"}


@pytest.mark.parametrize("sizes", [(2, 20, 60, 20, 2), (60, 2, 60)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_batches_leave_no_trace_in_small_ones(sizes: tuple[int, ...], dtype: Any) -> None:
    def results(layer: Conv2D, N: int) -> list[Any]:
        rng = np.random.default_rng(N)
        y = layer.forward(rng.standard_normal((3, 20, 20, N)).astype(dtype)).copy()
        grad_input = layer.backward(rng.standard_normal(y.shape).astype(dtype)).copy()
        return [y, grad_input, *(parameter.grad.copy() for parameter in layer.parameters.values())]

    def new() -> Conv2D:
        rng = np.random.default_rng(0)
        return Conv2D((3, 20, 20), out_channels=4, kernel_size=5, padding=(2, 0), rng=rng, dtype=dtype)

    used = new()
    for N in sizes:
        for result, right in zip(results(used, N), results(new(), N), strict=True):
            np.testing.assert_array_equal(result, right)


def test_more_outputs_than_memory_fail_before_anything_is_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(*arguments: object) -> None:
        pytest.fail("200,000 rows of 2 * 10**9 outputs are more than a program can address")

    monkeypatch.setattr("cnncli.nn.layers.conv.cut_into_blocks", cut)
    layer = Conv2D((1, 5, 5), out_channels=1, kernel_size=3, padding=(10**5, 10**9))
    with pytest.raises(MemoryError):
        layer.forward(np.zeros((1, 5, 5, 1), dtype=np.float32))
