"""Layers and the loss against PyTorch, on random shapes, strides, paddings and upstream gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cnncli.nn import Conv2D, Dense, MaxPool2D, ReLU, batch_first, batch_last, softmax, softmax_cross_entropy
from tests.nn.geometries import Geometry, geometries
from tests.parity import in_torch


def assert_close(actual: Any, expected: Any, tolerance: float = 1e-10) -> None:
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance)


@given(geometry=geometries(), F=st.integers(1, 4), bias=st.booleans())
def test_convolution(geometry: Geometry, F: int, bias: bool) -> None:
    rng = geometry.rng
    images = geometry.images(rng)
    weight = rng.standard_normal((F, geometry.C, *geometry.kernel_size))
    biases = rng.standard_normal(F) if bias else np.zeros(F)
    layer = Conv2D(
        geometry.input_shape,
        out_channels=F,
        kernel_size=geometry.kernel_size,
        stride=geometry.stride,
        padding=geometry.padding,
        bias=bias,
        dtype=np.float64,
    )
    layer.parameters["weight"].value[...] = weight
    if bias:
        layer.parameters["bias"].value[...] = biases
    output, arguments = in_torch.convolve(images, weight, biases, geometry.stride, geometry.sides)
    assert_close(batch_first(layer.forward(batch_last(images))), in_torch.to_array(output))
    grad = rng.standard_normal(tuple(output.shape))
    grad_input = layer.backward(batch_last(grad))
    grad_images, grad_weight, grad_bias = in_torch.gradients(output, arguments, grad)
    assert_close(batch_first(grad_input), grad_images)
    assert_close(layer.parameters["weight"].grad, grad_weight)
    if bias:
        assert_close(layer.parameters["bias"].grad, grad_bias)


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths:UserWarning")
@given(
    size=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    kernel=st.tuples(st.integers(1, 5), st.integers(1, 5)),
)
def test_same_padding_of_stride_one_is_that_of_torch(size: tuple[int, int], kernel: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    images, weight = rng.standard_normal((2, 2, *size)), rng.standard_normal((3, 2, *kernel))
    layer = Conv2D((2, *size), out_channels=3, kernel_size=kernel, padding="same", dtype=np.float64)
    layer.parameters["weight"].value[...] = weight
    expected = in_torch.functional.conv2d(in_torch.tensor(images), in_torch.tensor(weight), padding="same")
    assert_close(batch_first(layer.forward(batch_last(images))), in_torch.to_array(expected))


@given(geometry=geometries(pooling=True), ties=st.booleans())
def test_max_pool(geometry: Geometry, ties: bool) -> None:
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
    output, arguments = in_torch.max_pool(images, geometry.kernel_size, geometry.stride, geometry.sides)
    assert_close(batch_first(layer.forward(batch_last(images))), in_torch.to_array(output))
    grad = rng.standard_normal(tuple(output.shape))
    (grad_images,) = in_torch.gradients(output, arguments, grad)
    assert_close(batch_first(layer.backward(batch_last(grad))), grad_images)


@given(N=st.integers(1, 9), D=st.integers(1, 9), K=st.integers(1, 9), seed=st.integers(0, 2**32))
def test_dense(N: int, D: int, K: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    features, weight, bias = (rng.standard_normal(shape) for shape in ((N, D), (K, D), (K,)))
    layer = Dense((D,), out_features=K, dtype=np.float64)
    layer.parameters["weight"].value[...] = weight
    layer.parameters["bias"].value[...] = bias
    output, arguments = in_torch.dense(features, weight, bias)
    assert_close(layer.forward(features.T).T, in_torch.to_array(output))
    grad = rng.standard_normal((N, K))
    grad_input = layer.backward(grad.T.copy())
    grads = in_torch.gradients(output, arguments, grad)
    assert_close(grad_input.T, grads[0])
    assert_close(layer.parameters["weight"].grad, grads[1])
    assert_close(layer.parameters["bias"].grad, grads[2])


@given(seed=st.integers(0, 2**32))
def test_relu(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, grad = np.round(rng.standard_normal((4, 5)), 1), rng.standard_normal((4, 5))
    layer, argument = ReLU((4,)), in_torch.tensor(x, requires_grad=True)
    output = in_torch.functional.relu(argument)
    assert_close(layer.forward(x), in_torch.to_array(output), 0)
    assert_close(layer.backward(grad), in_torch.gradients(output, [argument], grad)[0], 0)


@given(
    N=st.integers(1, 6),
    K=st.integers(1, 12),
    scale=st.sampled_from([0.1, 3.0, 300.0]),
    smoothing=st.sampled_from([0.0, 0.1, 0.9]),
    seed=st.integers(0, 2**32),
)
def test_softmax_cross_entropy(N: int, K: int, scale: float, smoothing: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    logits, labels = scale * rng.standard_normal((N, K)), rng.integers(0, K, N)
    loss, grad = softmax_cross_entropy(logits.T, labels, label_smoothing=smoothing)
    expected, arguments = in_torch.cross_entropy(logits, labels, smoothing)
    assert loss == pytest.approx(expected.item(), rel=1e-12, abs=1e-12)
    assert_close(grad.T, in_torch.gradients(expected, arguments)[0], 1e-12)
    assert_close(
        softmax(logits.T).T, in_torch.to_array(in_torch.torch.softmax(in_torch.tensor(logits), 1)), 1e-14
    )
