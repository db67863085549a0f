"""The gradient check passes right backward passes and finds wrong ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cnncli.errors import ShapeError
from cnncli.nn import Conv2D, Dense, GradientCheck, MaxPool2D, Network, ReLU, check_gradients
from cnncli.nn.gradient_check import Differentiable
from tests.nn.networks import FIVE_NETWORKS, MNIST_SHAPE, make_network

TOLERANCE = 1e-6


def errors(subject: Differentiable, x: np.ndarray, **options: Any) -> dict[str, float]:
    found = check_gradients(subject, x, np.random.default_rng(0), **options)
    assert all(isinstance(check, GradientCheck) for check in found)
    return {check.name: check.relative_error for check in found}


def conv() -> Conv2D:
    rng = np.random.default_rng(1)
    layer = Conv2D((2, 5, 4), out_channels=3, kernel_size=(3, 2), padding=1, rng=rng, dtype=np.float64)
    layer.parameters["bias"].value[...] = rng.standard_normal(3)
    return layer


def images(*shape: int) -> np.ndarray:
    return np.random.default_rng(2).standard_normal(shape)


def test_right_gradients_pass() -> None:
    found = errors(conv(), images(2, 5, 4, 3))
    assert found.keys() == {"input", "weight", "bias"}
    assert max(found.values()) < TOLERANCE


class _ExchangedSides(Conv2D):
    """Writes the weight gradient with rows and columns exchanged in a square kernel."""

    def backward(self, grad_output: Any) -> Any:
        grad_input = super().backward(grad_output)
        grad = self.parameters["weight"].grad
        grad[...] = grad.transpose(0, 1, 3, 2).copy()
        return grad_input


class _ExchangedUpstream(Conv2D):
    """Takes the gradient of its square output with rows and columns exchanged: right if that is all ones."""

    def backward(self, grad_output: Any) -> Any:
        return super().backward(grad_output.swapaxes(1, 2).copy())


class _NoInputGradient(Dense):
    def backward(self, grad_output: Any) -> Any:
        return 0 * super().backward(grad_output)


class _ForgottenBias(Dense):
    def backward(self, grad_output: Any) -> Any:
        grad_input = super().backward(grad_output)
        self.parameters["bias"].grad[...] = 0
        return grad_input


class _AveragedBias(Dense):
    def backward(self, grad_output: Any) -> Any:
        grad_input = super().backward(grad_output)
        self.parameters["bias"].grad /= grad_output.shape[1]
        return grad_input


class _Accumulating(Dense):
    def backward(self, grad_output: Any) -> Any:
        before = self.parameters["weight"].grad.copy()
        grad_input = super().backward(grad_output)
        self.parameters["weight"].grad[...] += before + 1
        return grad_input


class _StraightThrough(ReLU):
    def backward(self, grad_output: Any) -> Any:
        return grad_output


def test_exchanged_sides_are_found() -> None:
    layer = _ExchangedSides((2, 5, 4), out_channels=3, kernel_size=3, dtype=np.float64)
    found = errors(layer, images(2, 5, 4, 3))
    assert found["weight"] > 0.01
    assert max(found["input"], found["bias"]) < TOLERANCE


def test_what_ones_upstream_would_hide_is_found() -> None:
    layer = _ExchangedUpstream((2, 5, 4), out_channels=3, kernel_size=(3, 2), dtype=np.float64)
    found = errors(layer, images(2, 5, 4, 3))
    assert min(found["input"], found["weight"]) > 0.01


@pytest.mark.parametrize(
    ("cls", "wrong"),
    [
        (_NoInputGradient, "input"),
        (_ForgottenBias, "bias"),
        (_AveragedBias, "bias"),
        (_Accumulating, "weight"),
    ],
)
def test_wrong_dense_layers_are_found(cls: type[Dense], wrong: str) -> None:
    found = errors(cls((5,), out_features=3, dtype=np.float64), images(5, 4))
    assert found.pop(wrong) > 0.01
    assert max(found.values()) < TOLERANCE


def test_wrong_activation_is_found() -> None:
    assert errors(_StraightThrough((20,)), images(20, 4))["input"] > 0.01


@pytest.mark.parametrize("name", FIVE_NETWORKS)
def test_whole_networks_pass(name: str) -> None:
    network = make_network(FIVE_NETWORKS[name], MNIST_SHAPE)
    # a step along all of 800,000 weights at once moves some number over a kink unless it is short
    found = errors(network, images(*MNIST_SHAPE, 2), step=1e-8)
    assert found.keys() == {"input", *network.parameters}
    assert max(found.values()) < 1e-4


def test_float32_is_refused() -> None:  # B28
    with pytest.raises(ShapeError, match="expected an input of float64, got float32"):
        check_gradients(
            Dense((5,), out_features=3), images(5, 4).astype(np.float32), np.random.default_rng(0)
        )


def test_away_from_kinks_and_ties_the_check_is_exact() -> None:  # B29
    x = np.array([[-1.0], [1.0]]) * np.arange(1, 5)
    assert errors(ReLU((2,)), x)["input"] < TOLERANCE
    assert errors(MaxPool2D((1, 1, 2), kernel_size=(1, 2)), x.reshape(1, 1, 2, 4))["input"] < TOLERANCE
    # at a kink the two sides differ, whatever backward says
    assert errors(ReLU((1,)), np.zeros((1, 1)))["input"] > 0.1
    assert errors(MaxPool2D((1, 1, 2), kernel_size=(1, 2)), np.ones((1, 1, 2, 1)))["input"] > 0.1


def test_nothing_is_changed() -> None:
    layer = conv()
    x = images(2, 5, 4, 3)
    before = {name: p.value.copy() for name, p in layer.parameters.items()}
    arrays = {name: p.value for name, p in layer.parameters.items()}
    x.flags.writeable = False
    check_gradients(layer, x, np.random.default_rng(0))
    for name, parameter in layer.parameters.items():
        assert parameter.value is arrays[name]
        np.testing.assert_array_equal(parameter.value, before[name])


def test_step_is_used() -> None:
    # a linear layer has no curvature: any step gives the same
    assert max(errors(Dense((5,), out_features=3, dtype=np.float64), images(5, 4), step=1.0).values()) < 1e-12
    # across the kink of a ReLU a long step does not
    assert errors(Network([ReLU((20,))]), images(20, 4), step=1.0)["input"] > 1e-3
