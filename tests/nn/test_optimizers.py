"""Optimizers against formulas written out number by number, their state, and clipping."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cnncli.errors import CheckpointError, OptionError
from cnncli.nn import OPTIMIZERS, SGD, Adam, AdamW, Optimizer, Parameter, clip_gradient_norm
from tests.nn.signatures import options_of, refused_values

rates = st.floats(1e-4, 0.5)
fractions = st.floats(0, 0.99)
decays = st.sampled_from([0.0, 0.1])
gradient_lists = st.lists(st.floats(-10, 10), min_size=1, max_size=8)


def one_number(start: float = 0.0, dtype: Any = np.float64) -> dict[str, Parameter]:
    return {"0/weight": Parameter(np.array([start], dtype))}


def walk(optimizer: Optimizer, gradients: list[float]) -> list[float]:
    """Take one step for each gradient; return the number after each."""
    (parameter,) = optimizer.parameters.values()
    values = []
    for gradient in gradients:
        parameter.grad[...] = gradient
        optimizer.step()
        values.append(parameter.value.item())
    return values


@given(
    gradients=gradient_lists,
    start=st.floats(-2, 2),
    rate=rates,
    momentum=st.floats(0.01, 0.99),
    nesterov=st.booleans(),
    decay=decays,
)
def test_sgd_with_momentum(
    gradients: list[float], start: float, rate: float, momentum: float, nesterov: bool, decay: float
) -> None:
    optimizer = SGD(
        one_number(start), learning_rate=rate, momentum=momentum, nesterov=nesterov, weight_decay=decay
    )
    w, velocity, expected = start, 0.0, []
    for gradient in gradients:
        g = gradient + decay * w
        velocity = momentum * velocity + g
        w = w - rate * (g + momentum * velocity if nesterov else velocity)
        expected.append(w)
    assert walk(optimizer, gradients) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(gradients=gradient_lists, start=st.floats(-2, 2), rate=rates, decay=decays)
def test_plain_sgd(gradients: list[float], start: float, rate: float, decay: float) -> None:
    w, expected = start, []
    for gradient in gradients:
        w = w - rate * (gradient + decay * w)
        expected.append(w)
    optimizer = SGD(one_number(start), learning_rate=rate, weight_decay=decay)
    assert walk(optimizer, gradients) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(
    gradients=gradient_lists,
    start=st.floats(-2, 2),
    rate=rates,
    betas=st.tuples(fractions, fractions),
    epsilon=st.sampled_from([1e-8, 1e-3]),
    decay=decays,
    decoupled=st.booleans(),
)
def test_adam_and_adamw(
    gradients: list[float],
    start: float,
    rate: float,
    betas: tuple[float, float],
    epsilon: float,
    decay: float,
    decoupled: bool,
) -> None:
    cls = AdamW if decoupled else Adam
    optimizer = cls(one_number(start), learning_rate=rate, betas=betas, epsilon=epsilon, weight_decay=decay)
    w, m, v, expected = start, 0.0, 0.0, []
    for t, gradient in enumerate(gradients, start=1):
        g = gradient if decoupled else gradient + decay * w
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        corrected_m, corrected_v = m / (1 - betas[0] ** t), v / (1 - betas[1] ** t)
        shrunk = w - rate * decay * w if decoupled else w
        w = shrunk - rate * corrected_m / (math.sqrt(corrected_v) + epsilon)
        expected.append(w)
    assert walk(optimizer, gradients) == pytest.approx(expected, rel=1e-10, abs=1e-10)


def test_state_goes_on_where_it_was_saved() -> None:
    first = Adam(one_number(), learning_rate=1e-3)
    (before,) = walk(first, [1.0])
    second = Adam(one_number(before), learning_rate=1e-3)
    second.load_state({key: array.copy() for key, array in first.state.items()}, first.step_count)
    (after,) = walk(second, [-0.5])
    assert after - before == pytest.approx(-2.6634e-4, abs=1e-8)
    assert walk(first, [-0.5]) == [after]


def test_defaults() -> None:
    sgd, adam, adamw = SGD(one_number()), Adam(one_number()), AdamW(one_number())
    assert (sgd.learning_rate, sgd.momentum, sgd.nesterov, sgd.weight_decay) == (0.01, 0, False, 0)
    for optimizer, decay in ((adam, 0), (adamw, 0.01)):
        assert optimizer.learning_rate == 1e-3
        assert optimizer.betas == (0.9, 0.999)
        assert (optimizer.epsilon, optimizer.weight_decay) == (1e-8, decay)


def several_parameters(dtype: Any, seed: int = 0) -> dict[str, Parameter]:
    """Parameters of several shapes, one of them longer than a cache; with gradients."""
    rng = np.random.default_rng(seed)
    parameters = {}
    for index, shape in enumerate([(3, 2, 2, 1), (7,), (130, 700), ()]):
        parameters[f"{index}/weight"] = parameter = Parameter(np.array(rng.standard_normal(shape), dtype))
        parameter.grad[...] = rng.standard_normal(shape)
    return parameters


EVERY_TERM: dict[str, dict[str, Any]] = {
    "sgd": {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    "adam": {"learning_rate": 0.1, "weight_decay": 0.01},
    "adamw": {"learning_rate": 0.1, "weight_decay": 0.1},
}


def test_every_optimizer_is_tested() -> None:
    assert EVERY_TERM.keys() == OPTIMIZERS.keys()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_number_moves_by_itself(name: str) -> None:
    parameters = several_parameters(np.float64)
    optimizer = OPTIMIZERS[name](parameters, **EVERY_TERM[name])
    starts = {key: p.value.copy() for key, p in parameters.items()}
    grads = [{key: p.grad * (1 - 2 * t) for key, p in parameters.items()} for t in range(2)]
    for grad in grads:
        for key, p in parameters.items():
            p.grad[...] = grad[key]
        optimizer.step()
    rng = np.random.default_rng(0)
    for key, p in parameters.items():
        for flat in {0, p.value.size - 1, *rng.integers(0, p.value.size, 5).tolist()}:
            alone = OPTIMIZERS[name](one_number(starts[key].flat[flat]), **EVERY_TERM[name])
            values = walk(alone, [grad[key].flat[flat] for grad in grads])
            assert p.value.flat[flat] == pytest.approx(values[-1], rel=1e-13)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_change_in_place_and_gradients_do_not(name: str, dtype: Any) -> None:
    parameters = several_parameters(dtype)
    arrays = {key: p.value for key, p in parameters.items()}
    values = {key: p.value.copy() for key, p in parameters.items()}
    grads = {key: p.grad.copy() for key, p in parameters.items()}
    optimizer = OPTIMIZERS[name](parameters, **EVERY_TERM[name])
    for _ in range(3):
        optimizer.step()
    assert optimizer.step_count == 3
    for key, p in parameters.items():
        assert p.value is arrays[key]
        assert p.value.dtype == dtype
        assert (p.value != values[key]).all()
        np.testing.assert_array_equal(p.grad, grads[key])
    assert {array.dtype for array in optimizer.state.values()} == {np.dtype(dtype)}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_memory_layout_of_a_parameter_does_not_matter(name: str) -> None:
    value = np.arange(1.0, 7).reshape(2, 3)
    results = []
    for layout in (value.copy(), np.asfortranarray(value)):
        parameter = Parameter(layout)
        parameter.grad[...] = value - 3.5
        OPTIMIZERS[name]({"0/weight": parameter}, **EVERY_TERM[name]).step()
        results.append(parameter.value)
    assert (results[0] != value).all()
    np.testing.assert_array_equal(results[0], results[1])


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_loaded_state_goes_on_to_the_same_bits(name: str, dtype: Any) -> None:
    def steps(optimizer: Optimizer, seeds: range) -> None:
        for seed in seeds:
            rng = np.random.default_rng(seed)
            for p in optimizer.parameters.values():
                p.grad[...] = rng.standard_normal(p.grad.shape)
            optimizer.step()

    straight = OPTIMIZERS[name](several_parameters(dtype), **EVERY_TERM[name])
    steps(straight, range(7))
    stopped = OPTIMIZERS[name](several_parameters(dtype), **EVERY_TERM[name])
    steps(stopped, range(3))
    resumed = OPTIMIZERS[name](several_parameters(dtype, seed=1), **EVERY_TERM[name])
    for key, p in resumed.parameters.items():
        p.value[...] = stopped.parameters[key].value
    resumed.load_state({key: array.copy() for key, array in stopped.state.items()}, stopped.step_count)
    steps(resumed, range(3, 7))
    for key, p in straight.parameters.items():
        np.testing.assert_array_equal(resumed.parameters[key].value, p.value)


def test_loading_copies_the_state() -> None:
    optimizer = SGD(one_number(), momentum=0.5)
    state = {key: np.ones_like(array) for key, array in optimizer.state.items()}
    optimizer.load_state(state, 1)
    walk(optimizer, [5.0])
    assert all((array == 1).all() for array in state.values())


@pytest.mark.parametrize("fault", ["missing", "extra", "shape"])
def test_state_that_does_not_fit_changes_nothing(fault: str) -> None:
    optimizer = Adam(one_number())
    walk(optimizer, [1.0])
    before = {key: array.copy() for key, array in optimizer.state.items()}
    state = {key: array + 1 for key, array in before.items()}
    last = list(state)[-1]
    if fault == "missing":
        del state[last]
    elif fault == "extra":
        state["0/weight/third_moment"] = np.zeros(1)
    else:
        state[last] = np.zeros((1, 1))
    with pytest.raises(CheckpointError, match="optimizer's state belongs to another"):
        optimizer.load_state(state, 17)
    assert optimizer.step_count == 1
    for key, array in optimizer.state.items():
        np.testing.assert_array_equal(array, before[key])


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_learning_rate_can_be_set_between_steps(name: str) -> None:
    parameters = one_number(1.0)
    optimizer = OPTIMIZERS[name](parameters, learning_rate=0.1)
    walk(optimizer, [1.0])
    before = parameters["0/weight"].value.item()
    optimizer.learning_rate = 0.0
    assert walk(optimizer, [1.0]) == [before]
    optimizer.learning_rate = 0.2
    (after,) = walk(optimizer, [1.0])
    assert after < before - 0.1


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [(name, *refusal) for name, cls in OPTIMIZERS.items() for refusal in refused_values(cls)],
)
def test_constructor_refuses_what_its_annotations_refuse(name: str, option: str, value: Any) -> None:
    with pytest.raises(OptionError) as caught:
        OPTIMIZERS[name](one_number(), **{option: value})
    assert caught.value.option == option
    assert caught.value.expected == options_of(OPTIMIZERS[name])[option].expected


def test_nesterov_needs_momentum() -> None:
    with pytest.raises(OptionError, match="nesterov: expected false where momentum is 0, got true"):
        SGD(one_number(), nesterov=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_clipping(dtype: Any) -> None:
    parameters = {"a": Parameter(np.zeros(2, dtype)), "b": Parameter(np.zeros((1, 1), dtype))}
    parameters["a"].grad[...] = [2, 3]
    parameters["b"].grad[...] = 6
    assert clip_gradient_norm(parameters, 8.0) == 7.0
    assert parameters["a"].grad.tolist() == [2, 3]
    assert clip_gradient_norm(parameters, 3.5) == 7.0
    np.testing.assert_allclose(parameters["a"].grad, [1, 1.5], rtol=1e-6)
    np.testing.assert_allclose(parameters["b"].grad, [[3]], rtol=1e-6)
    assert parameters["a"].grad.dtype == dtype


def test_clipping_sums_in_float64() -> None:
    # the square of each overflows float32, that of their norm too
    parameters = {"a": Parameter(np.zeros(4, np.float32))}
    parameters["a"].grad[...] = 1e30
    assert clip_gradient_norm(parameters, 1.0) == pytest.approx(2e30, rel=1e-6)
    np.testing.assert_allclose(parameters["a"].grad, 0.5, rtol=1e-6)
