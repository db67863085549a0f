"""Whole networks against PyTorch: outputs, gradients, and parameters after some steps of training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cnncli.nn import OPTIMIZERS, Network, batch_first, batch_last, softmax_cross_entropy
from tests.nn.networks import FIVE_NETWORKS, MNIST_SHAPE, STACK_SHAPE, LayerSpec, make_network, stacks
from tests.parity import in_torch


def randomize_biases(network: Network, rng: np.random.Generator) -> None:
    for name, parameter in network.parameters.items():
        if name.endswith("bias"):
            parameter.value[...] = 0.1 * rng.standard_normal(parameter.value.shape)


def tensors_of(network: Network) -> dict[str, Any]:
    return {name: in_torch.tensor(p.value, requires_grad=True) for name, p in network.parameters.items()}


def assert_close(actual: Any, expected: Any, tolerance: float) -> None:
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", FIVE_NETWORKS)
@pytest.mark.parametrize("N", [1, 18])
def test_five_networks(name: str, N: int) -> None:
    rng = np.random.default_rng(N)
    network = make_network(FIVE_NETWORKS[name], MNIST_SHAPE)
    randomize_biases(network, rng)
    images, labels = rng.standard_normal((N, *MNIST_SHAPE)), rng.integers(0, 10, N)
    logits = network.forward(batch_last(images))
    loss, grad = softmax_cross_entropy(logits, labels, label_smoothing=0.1)

    parameters, argument = tensors_of(network), in_torch.tensor(images, requires_grad=True)
    expected = in_torch.network(FIVE_NETWORKS[name], parameters, argument)
    assert_close(logits.T, in_torch.to_array(expected), 1e-9)
    expected_loss = in_torch.functional.cross_entropy(expected, in_torch.tensor(labels), label_smoothing=0.1)
    assert loss == pytest.approx(expected_loss.item(), abs=1e-9)
    grad_images, *grads = in_torch.gradients(expected_loss, [argument, *parameters.values()])
    assert_close(batch_first(network.backward(grad)), grad_images, 1e-9)
    for parameter, right in zip(network.parameters.values(), grads, strict=True):
        assert_close(parameter.grad, right, 1e-9)


@settings(max_examples=60)
@given(specs=stacks(), N=st.integers(1, 4), seed=st.integers(0, 2**32))
def test_random_networks(specs: list[LayerSpec], N: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    network = make_network(specs, STACK_SHAPE)
    randomize_biases(network, rng)
    images, grad = rng.standard_normal((N, *STACK_SHAPE)), rng.standard_normal((N, 3))
    output = network.forward(batch_last(images)).T
    grad_input = network.backward(np.ascontiguousarray(grad.T))
    parameters, argument = tensors_of(network), in_torch.tensor(images, requires_grad=True)
    expected = in_torch.network(specs, parameters, argument)
    assert_close(output, in_torch.to_array(expected), 1e-9)
    grad_images, *grads = in_torch.gradients(expected, [argument, *parameters.values()], grad)
    assert_close(batch_first(grad_input), grad_images, 1e-9)
    for parameter, right in zip(network.parameters.values(), grads, strict=True):
        assert_close(parameter.grad, right, 1e-9)


@pytest.mark.parametrize(
    ("name", "optimizer", "options"),
    [
        ("lenet", "adam", {"learning_rate": 0.002}),
        ("quickstart", "adamw", {"learning_rate": 0.01, "betas": (0.7, 0.9)}),
        ("simple_convnet", "sgd", {"learning_rate": 0.05, "momentum": 0.9, "nesterov": True}),
    ],
)
def test_training(name: str, optimizer: str, options: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    network = make_network(FIVE_NETWORKS[name], MNIST_SHAPE)
    tensors = tensors_of(network)
    ours = OPTIMIZERS[optimizer](network.parameters, **options)
    theirs = in_torch.optimizer(optimizer, options, list(tensors.values()))
    for _ in range(5):
        images, labels = rng.standard_normal((8, *MNIST_SHAPE)), rng.integers(0, 10, 8)
        loss, grad = softmax_cross_entropy(network.forward(batch_last(images)), labels)
        network.backward(grad)
        ours.step()
        theirs.zero_grad()
        logits = in_torch.network(FIVE_NETWORKS[name], tensors, in_torch.tensor(images))
        expected = in_torch.functional.cross_entropy(logits, in_torch.tensor(labels))
        expected.backward()
        theirs.step()
        assert loss == pytest.approx(expected.item(), abs=1e-9)
    for key, parameter in network.parameters.items():
        assert_close(parameter.value, in_torch.to_array(tensors[key]), 1e-9)
