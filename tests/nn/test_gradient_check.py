"""The examination passes what is right, and finds each of the ways in which layers are wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cnncli.errors import ShapeError
from cnncli.nn import Conv2D, Dense, Layer, MaxPool2D, Network, ReLU
from cnncli.nn.gradient_check import TOLERANCE, ArrayCheck, check_gradients, spaced_numbers
from tests.nn import wrong_layers as wrong
from tests.nn.networks import FIVE_NETWORKS, MNIST_SHAPE, STACK_SHAPE, LayerSpec, make_network, stacks
from tests.nn.test_layer_contract import CASES, build

F64: dict[str, Any] = {"dtype": np.float64}
CONV: dict[str, Any] = {"out_channels": 3, "kernel_size": 3, "dtype": np.float64}


def examined(subject: Any, seed: int = 0, **options: Any) -> dict[str, ArrayCheck]:
    checks = check_gradients(subject, subject.input_shape, np.random.default_rng(seed), **options)
    return {check.name: check for check in checks}


def verdicts(subject: Any, seed: int = 0) -> dict[str, str]:
    return {name: check.verdict for name, check in examined(subject, seed).items()}


@pytest.mark.parametrize("name", CASES)
def test_right_layers_pass(name: str) -> None:
    layer = build(name)
    for seed in range(5):
        found = examined(layer, seed)
        assert list(found) == ["input", *layer.parameters]
        assert {check.verdict for check in found.values()} == {"right"}
        assert max(check.relative_error or 0.0 for check in found.values()) < TOLERANCE / 10


@pytest.mark.parametrize("name", ["quickstart", "simple_convnet", "lenet", "keras_mnist"])
def test_whole_networks_pass(name: str) -> None:
    network = make_network(FIVE_NETWORKS[name], MNIST_SHAPE)
    found = examined(network)
    assert found.keys() == {"input", *network.parameters}
    assert {check.verdict for check in found.values()} == {"right"}


@settings(max_examples=25, deadline=None)
@given(stacks(), st.integers(0, 1000))
def test_nothing_right_is_called_wrong(specs: list[LayerSpec], seed: int) -> None:
    network = make_network(specs, STACK_SHAPE, seed=seed)
    assert set(verdicts(network, seed).values()) == {"right"}


@pytest.mark.parametrize(
    ("layer", "array", "others"),
    [
        (wrong.DoubledWeight((5,), out_features=3, **F64), "weight", {"input", "bias"}),
        (wrong.TransposedWeight((4,), out_features=4, **F64), "weight", {"input", "bias"}),
        (wrong.ForgottenBias((5,), out_features=3, **F64), "bias", {"input", "weight"}),
        (wrong.WrongAxisBias((2, 5, 4), **CONV), "bias", {"input", "weight"}),
        (wrong.LostBorder((2, 5, 4), **CONV), "input", {"weight", "bias"}),
        (wrong.ExchangedSides((2, 5, 5), **CONV), "input", {"bias"}),
        (wrong.ExchangedSides((2, 5, 5), **CONV), "weight", {"bias"}),
        (wrong.StraightThrough((20,)), "input", set[str]()),
        (wrong.UnscaledDropout((30,)), "input", set[str]()),
        (wrong.OverlapsOverwritten((2, 6, 5), kernel_size=3, stride=1), "input", set[str]()),
        (wrong.BatchNormWithoutMean((4,)), "input", {"gamma", "beta"}),
        (wrong.BatchNormWithoutGamma((4,)), "input", {"gamma", "beta"}),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Layer) else "",
)
def test_wrong_gradients_are_found(layer: Layer, array: str, others: set[str]) -> None:
    for seed in range(3):
        found = examined(layer, seed)
        assert found[array].verdict == "wrong"
        assert (found[array].relative_error or 0.0) > 0.01
        assert found[array].elements[0].relative_error > 0.01
        assert {found[name].verdict for name in others} <= {"right"}


@pytest.mark.parametrize(
    ("layer", "array", "fault"),
    [
        (wrong.Accumulating((5,), out_features=3, **F64), "weight", "backward adds to the gradient"),
        (wrong.MovingWeight((5,), out_features=3, **F64), "weight", "changes the parameter"),
        (wrong.InPlace((20,)), "input", "forward changes its input in place"),
        (wrong.UpstreamInPlace((20,)), "input", "backward changes grad_output in place"),
        (wrong.OneBuffer((20,)), "input", "backward writes over the array that forward returned"),
        (wrong.SharedBuffer((20,)), "input", "forward writes over the array that backward returned"),
        (wrong.Noisy((20,)), "input", "forward gives other numbers the second time"),
        (wrong.SinglePrecision((20,)), "input", "float64 went in, but forward gave float64 and backward"),
        (wrong.NotANumber((20,)), "input", "numbers that are not finite"),
        (wrong.WithoutGradient((2, 5, 4), **CONV), "weight", "of shape (3, 2, 3, 3), got None"),
        (wrong.WrongShape((2, 5, 4), **CONV), "input", "of shape (2, 5, 4, 3), got (2, 4, 4, 3)"),
        (wrong.TiesCountedOften((2, 6, 5), kernel_size=2), "input", "a tie counts once"),
        (wrong.DoubledWeight((5,), out_features=3, **F64), "weight", "it is 2 times the slope in every"),
        (wrong.ForgottenBias((5,), out_features=3, **F64), "bias", "it is 0 in every"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Layer) else "",
)
def test_faults_are_named(layer: Layer, array: str, fault: str) -> None:
    check = examined(layer)[array]
    assert check.verdict == "wrong"
    assert [words for words in check.faults if fault in words]


def test_a_plain_pool_is_right_with_ties_and_overlaps() -> None:
    for options in ({"kernel_size": 2}, {"kernel_size": 3, "stride": 1}):
        assert verdicts(wrong.RightPool((2, 6, 5), **options)) == {"input": "right"}


def test_a_tie_is_not_blamed_for_other_faults() -> None:
    assert not [words for words in examined(wrong.StraightThrough((20,)))["input"].faults if "tie" in words]


def test_ties_are_found_through_the_tie_alone() -> None:
    check = examined(wrong.TiesCountedOften((2, 6, 5), kernel_size=2))["input"]
    assert check.relative_error is not None and check.relative_error < TOLERANCE


def test_one_wrong_number_in_a_large_array_is_found_and_named() -> None:
    layer = wrong.OneWrongNumber((400,), out_features=300, rng=np.random.default_rng(1), **F64)
    for seed in range(3):
        check = examined(layer, seed)["weight"]
        assert check.verdict == "wrong"
        worst = check.elements[0]
        assert worst.index == (17, 5)
        assert worst.analytic == pytest.approx(1.5 * worst.numeric, rel=1e-6)
        assert all(element.relative_error < TOLERANCE for element in check.elements[1:])


def test_all_of_a_small_array_is_compared() -> None:
    layer = Dense((5,), out_features=3, **F64)
    weight = examined(layer, n_elements=15)["weight"]
    assert sorted(element.index for element in weight.elements) == list(np.ndindex(3, 5))
    assert len(examined(layer, n_elements=4)["weight"].elements) == 4


def test_batch_normalisation_fits_in_and_keeps_its_buffers() -> None:
    layer = wrong.BatchNorm((4,))
    assert verdicts(layer) == {"input": "right", "gamma": "right", "beta": "right"}
    assert not layer.buffers["mean"].any()
    # a bias before it changes nothing: its gradient is 0, and so is the slope
    network = Network([Dense((5,), out_features=4, **F64), layer])
    for seed in range(5):
        assert set(verdicts(network, seed).values()) == {"right"}


def test_what_a_network_computes_is_what_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Conv2D._by_rows
    monkeypatch.setattr(
        Conv2D, "_by_rows", lambda self, grad: right(self, grad) * (1 if self._pool is None else 2)
    )
    network = make_network(FIVE_NETWORKS["lenet"], MNIST_SHAPE)
    for layer in network.layers[:4]:
        assert set(verdicts(layer).values()) == {"right"}
    found = verdicts(network)
    assert found["input"] == found["0/weight"] == "wrong"
    assert found["3/weight"] == found["11/bias"] == "right"


class Plain:
    """Two methods and nothing else."""

    input_shape = (4, 3)

    def forward(self, x: Any) -> Any:
        self._x = x
        return np.tanh(x).sum(axis=0)

    def backward(self, grad_output: Any) -> Any:
        return grad_output * (1 - np.tanh(self._x) ** 2)


def test_two_methods_are_enough() -> None:
    assert verdicts(Plain()) == {"input": "right"}


def test_what_cannot_be_compared_is_unclear() -> None:
    class Rough(Plain):
        def forward(self, x: Any) -> Any:
            self._x = x
            return np.tanh(x) + np.sin(1e13 * x)

    assert verdicts(Rough()) == {"input": "unclear"}


def test_single_precision_parameters_are_made_double() -> None:
    layer = Dense((5,), out_features=3)
    assert set(verdicts(layer).values()) == {"right"}
    assert layer.parameters["weight"].value.dtype == np.float64


def test_nothing_is_changed() -> None:
    layer = build("conv2d")
    before = {name: p.value.copy() for name, p in layer.parameters.items()}
    examined(layer)
    for name, parameter in layer.parameters.items():
        np.testing.assert_array_equal(parameter.value, before[name])


def test_the_same_generator_gives_the_same_numbers() -> None:
    layer = build("max_pool2d")
    assert examined(layer, 3) == examined(layer, 3)
    assert examined(layer, 3) != examined(layer, 4)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (lambda x: [1.0], "forward returned list"),
        (lambda x: x[:-1], r"forward returned the shape \(3, 3\), but output_shape \(4,\)"),
        (lambda x: np.log(x), "not finite"),
    ],
)
def test_a_forward_that_gives_nothing_to_compare(output: Any, message: str) -> None:
    layer = ReLU((4,))
    layer.forward = lambda x: output(x)  # type: ignore[method-assign, assignment, misc]
    with pytest.raises(ShapeError, match=message):
        examined(layer)


def test_parameters_without_a_gradient_are_refused() -> None:
    layer = ReLU((4,))
    layer.parameters["slope"] = np.ones(4)  # type: ignore[assignment]
    with pytest.raises(ShapeError, match=r"parameters\['slope'\] to have value and grad"):
        examined(layer)


def test_drawn_inputs_have_no_ties_and_are_not_near_zero() -> None:
    x = np.sort(np.abs(spaced_numbers((7, 5, 3), np.random.default_rng(0))).ravel())
    assert x[0] > 0.1
    assert np.diff(x).min() > 0.01
    assert examined(MaxPool2D((1, 9, 9), kernel_size=3))["input"].verdict == "right"
