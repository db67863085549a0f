"""Average pooling: overlaps, gaps, padding, and the mean of whole images."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cnncli.errors import OptionError
from cnncli.nn import AveragePool2D, GlobalAveragePool2D, batch_first, batch_last
from tests.nn import references
from tests.nn.geometries import Geometry, geometries


def reference(images: Any, geometry: Geometry) -> Any:
    """Average every window of zero-padded images, one by one."""
    KH, KW = geometry.kernel_size
    padded = references.pad(images, geometry.sides)
    y = np.zeros((geometry.N, geometry.C, *geometry.output_size))
    for w in references.windows(geometry.image_size, geometry.kernel_size, geometry.stride, geometry.sides):
        window = padded[:, :, w.top : w.top + KH, w.left : w.left + KW]
        y[:, :, w.oh, w.ow] = window.sum(axis=(2, 3)) / (KH * KW)
    return y


def make_layer(geometry: Geometry) -> AveragePool2D:
    return AveragePool2D(
        geometry.input_shape,
        kernel_size=geometry.kernel_size,
        stride=geometry.stride,
        padding=geometry.padding,
    )


@given(geometry=geometries(pooling=True))
def test_matches_the_reference(geometry: Geometry) -> None:
    images, layer = geometry.images(geometry.rng), make_layer(geometry)
    y = batch_first(layer.forward(batch_last(images)))
    np.testing.assert_allclose(y, reference(images, geometry), rtol=0, atol=1e-13)


@given(geometry=geometries(pooling=True))
def test_backward_is_the_adjoint(geometry: Geometry) -> None:
    rng, layer = geometry.rng, make_layer(geometry)
    images = geometry.images(rng)
    grad = rng.standard_normal((geometry.N, *layer.output_shape))
    y = layer.forward(batch_last(images))
    # linear, so <grad, pool(x)> is <backward(grad), x>
    forward = float(np.vdot(batch_last(grad), y))
    backward = float(np.vdot(layer.backward(batch_last(grad)), batch_last(images)))
    assert backward == pytest.approx(forward, abs=1e-11)


def test_padding_counts_as_zeros() -> None:
    x = np.full((1, 2, 2, 1), 12.0)
    y = AveragePool2D((1, 2, 2), kernel_size=2, stride=1, padding=1).forward(x)
    assert y[0, :, :, 0].tolist() == [[3, 6, 3], [6, 12, 6], [3, 6, 3]]


def test_stride_is_the_kernel_and_what_does_not_fit_is_left_out() -> None:
    layer = AveragePool2D((1, 3, 5), kernel_size=2)
    x = np.arange(15.0).reshape(1, 3, 5, 1)
    assert layer.forward(x)[0, :, :, 0].tolist() == [[3, 5]]
    grad_input = layer.backward(np.array([4.0, 8.0]).reshape(1, 1, 2, 1))
    assert grad_input[0, :, :, 0].tolist() == [[1, 1, 2, 2, 0], [1, 1, 2, 2, 0], [0, 0, 0, 0, 0]]


def test_padding_of_more_than_half_the_kernel_is_refused() -> None:
    with pytest.raises(OptionError) as caught:
        AveragePool2D((1, 8, 8), kernel_size=3, padding=2)
    assert (caught.value.option, caught.value.got) == ("padding", "2x2")


@given(
    shape=st.tuples(st.integers(1, 4), st.integers(1, 6), st.integers(1, 6), st.integers(1, 5)),
    seed=st.integers(0, 2**32),
)
def test_the_mean_of_whole_images(shape: tuple[int, int, int, int], seed: int) -> None:
    C, H, W, N = shape
    rng = np.random.default_rng(seed)
    x, grad = rng.standard_normal(shape), rng.standard_normal((C, N))
    layer = GlobalAveragePool2D((C, H, W))
    np.testing.assert_allclose(layer.forward(x), x.mean(axis=(1, 2)), rtol=0, atol=1e-14)
    for h in range(H):
        for w in range(W):
            np.testing.assert_allclose(layer.backward(grad)[:, h, w], grad / (H * W), rtol=0, atol=1e-14)
