"""Layers and the loss against PyTorch, on random shapes, strides, paddings and upstream gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cnncli.nn import (
    AveragePool2D,
    BatchNorm,
    BatchNorm1D,
    BatchNorm2D,
    Conv2D,
    Dense,
    GlobalAveragePool2D,
    MaxPool2D,
    ReLU,
    Sigmoid,
    Tanh,
    batch_first,
    batch_last,
    softmax,
    softmax_cross_entropy,
)
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


@given(geometry=geometries(pooling=True))
def test_average_pool(geometry: Geometry) -> None:
    images = geometry.images(geometry.rng)
    layer = AveragePool2D(
        geometry.input_shape,
        kernel_size=geometry.kernel_size,
        stride=geometry.stride,
        padding=geometry.padding,
    )
    output, arguments = in_torch.average_pool(images, geometry.kernel_size, geometry.stride, geometry.sides)
    assert_close(batch_first(layer.forward(batch_last(images))), in_torch.to_array(output))
    grad = geometry.rng.standard_normal(tuple(output.shape))
    (grad_images,) = in_torch.gradients(output, arguments, grad)
    assert_close(batch_first(layer.backward(batch_last(grad))), grad_images)


def test_padded_averages_are_those_of_torchs_defaults() -> None:
    images = np.random.default_rng(0).standard_normal((2, 3, 7, 6))
    layer = AveragePool2D((3, 7, 6), kernel_size=3, stride=2, padding=1)
    expected = in_torch.functional.avg_pool2d(in_torch.tensor(images), 3, 2, 1)
    assert_close(batch_first(layer.forward(batch_last(images))), in_torch.to_array(expected))


@given(geometry=geometries())
def test_global_average_pool(geometry: Geometry) -> None:
    images = geometry.images(geometry.rng)
    layer, argument = GlobalAveragePool2D(geometry.input_shape), in_torch.tensor(images, requires_grad=True)
    output = in_torch.functional.adaptive_avg_pool2d(argument, 1).flatten(1)
    assert_close(layer.forward(batch_last(images)).T, in_torch.to_array(output))
    grad = geometry.rng.standard_normal(tuple(output.shape))
    grad_input = layer.backward(grad.T.copy())
    assert_close(batch_first(grad_input), in_torch.gradients(output, [argument], grad)[0])


def features_or_images(array: Any) -> Any:
    """Turn (N, ...) into (..., N), and back if called with the result's transpose."""
    return batch_last(array) if array.ndim == 4 else array.T.copy()


@given(
    shape=st.sampled_from([(3, 4, 2), (2, 1, 1), (5,), (1,)]),
    N=st.integers(2, 9),
    momentum=st.sampled_from([0.0, 0.1, 0.7, 1.0]),
    epsilon=st.sampled_from([1e-5, 0.1]),
    training=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_batch_norm(
    shape: tuple[int, ...], N: int, momentum: float, epsilon: float, training: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    cls = BatchNorm2D if len(shape) == 3 else BatchNorm1D
    layer: BatchNorm = cls(shape, momentum=momentum, epsilon=epsilon, dtype=np.float64)
    twin = in_torch.batch_norm(shape, momentum, epsilon)
    for name, parameter in layer.parameters.items():
        parameter.value[...] = rng.standard_normal(shape[0])
        getattr(twin, name).data[...] = in_torch.tensor(parameter.value)
    # two steps of training, so that the averages are no longer those of the start, then either mode
    for is_training in (True, True, training):
        twin.train(is_training)
        x = rng.standard_normal((N, *shape)) * 2 + 1
        argument = in_torch.tensor(x, requires_grad=True)
        output = twin(argument)
        y = layer.forward(features_or_images(x), training=is_training)
        assert_close(y, features_or_images(in_torch.to_array(output)))
        for name, buffer in layer.buffers.items():
            assert_close(buffer, in_torch.to_array(getattr(twin, name)))
    grad = rng.standard_normal(output.shape)
    twin.zero_grad()
    grads = in_torch.gradients(output, [argument, twin.weight, twin.bias], grad)
    assert_close(layer.backward(features_or_images(grad)), features_or_images(grads[0]))
    assert_close(layer.parameters["weight"].grad, grads[1])
    assert_close(layer.parameters["bias"].grad, grads[2])


def test_the_defaults_of_batch_norm_are_torchs() -> None:
    layer, twin = BatchNorm1D((2,)), in_torch.torch.nn.BatchNorm1d(2)
    assert (layer.momentum, layer.epsilon) == (twin.momentum, twin.eps)


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


@pytest.mark.parametrize(("cls", "name"), [(Sigmoid, "sigmoid"), (Tanh, "tanh")])
@pytest.mark.parametrize("scale", [1, 30, 1000])
def test_sigmoid_and_tanh(cls: type[Sigmoid | Tanh], name: str, scale: float) -> None:
    rng = np.random.default_rng(0)
    x, grad = scale * rng.standard_normal((40, 5)), rng.standard_normal((40, 5))
    layer, argument = cls((40,)), in_torch.tensor(x, requires_grad=True)
    output = getattr(in_torch.torch, name)(argument)
    assert_close(layer.forward(x), in_torch.to_array(output), 1e-15)
    assert_close(layer.backward(grad), in_torch.gradients(output, [argument], grad)[0], 1e-14)


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
