"""Optimizers, clipping and schedules against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cnncli.nn import OPTIMIZERS, SCHEDULES, OneCycle, Parameter, clip_gradient_norm
from tests.parity import in_torch

N_STEPS = 20
SHAPES = {"weight": (3, 2, 2), "bias": (5,)}


@st.composite
def choices(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """Draw an optimizer and its options."""
    name = draw(st.sampled_from(list(OPTIMIZERS)))
    options: dict[str, Any] = {"learning_rate": draw(st.floats(1e-4, 0.3))}
    if draw(st.booleans()):
        options["weight_decay"] = draw(st.floats(0, 0.5))
    if name == "sgd" and draw(st.booleans()):
        options |= {"momentum": draw(st.floats(0.01, 0.95)), "nesterov": draw(st.booleans())}
    if name != "sgd" and draw(st.booleans()):
        options["betas"] = draw(st.tuples(st.floats(0, 0.99), st.floats(0, 0.999)))
        options["epsilon"] = draw(st.sampled_from([1e-10, 1e-8, 1e-3]))
    return name, options


@settings(max_examples=60)
@given(choice=choices(), seed=st.integers(0, 2**32))
def test_optimizers(choice: tuple[str, dict[str, Any]], seed: int) -> None:
    name, options = choice
    rng = np.random.default_rng(seed)
    parameters = {key: Parameter(rng.standard_normal(shape)) for key, shape in SHAPES.items()}
    tensors = {key: in_torch.tensor(p.value, requires_grad=True) for key, p in parameters.items()}
    ours = OPTIMIZERS[name](parameters, **options)
    theirs = in_torch.optimizer(name, options, list(tensors.values()))
    for _ in range(N_STEPS):
        for key, parameter in parameters.items():
            parameter.grad[...] = rng.standard_normal(parameter.grad.shape)
            tensors[key].grad = in_torch.tensor(parameter.grad)
        # a schedule sets the rate before each step
        rate = options["learning_rate"] * rng.uniform(0.5, 2)
        ours.learning_rate = theirs.param_groups[0]["lr"] = rate
        ours.step()
        theirs.step()
        for key, parameter in parameters.items():
            np.testing.assert_allclose(parameter.value, in_torch.to_array(tensors[key]), rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_default_options(name: str) -> None:
    parameter = Parameter(np.array([1.0, -2.0]))
    tensor = in_torch.tensor(parameter.value, requires_grad=True)
    options: dict[str, Any] = {}
    ours = OPTIMIZERS[name]({"weight": parameter}, **options)
    theirs = in_torch.optimizer(name, options, [tensor])
    for step in range(N_STEPS):
        parameter.grad[...] = [np.sin(step), np.cos(step)]
        tensor.grad = in_torch.tensor(parameter.grad)
        ours.step()
        theirs.step()
        np.testing.assert_allclose(parameter.value, in_torch.to_array(tensor), rtol=0, atol=1e-12)


@given(max_norm=st.floats(0.01, 10), seed=st.integers(0, 2**32))
def test_clipping(max_norm: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    parameters = {key: Parameter(np.zeros(shape)) for key, shape in SHAPES.items()}
    tensors = []
    for parameter in parameters.values():
        parameter.grad[...] = rng.standard_normal(parameter.grad.shape)
        tensors.append(in_torch.tensor(parameter.value, requires_grad=True))
        tensors[-1].grad = in_torch.tensor(parameter.grad)
    expected = in_torch.torch.nn.utils.clip_grad_norm_(tensors, max_norm)
    assert clip_gradient_norm(parameters, max_norm) == pytest.approx(expected.item(), rel=1e-12)
    for parameter, tensor in zip(parameters.values(), tensors, strict=True):
        np.testing.assert_allclose(parameter.grad, tensor.grad.numpy(), rtol=1e-12, atol=0)


@st.composite
def schedule_choices(draw: st.DrawFn) -> tuple[str, float, int, int, dict[str, Any]]:
    name = draw(st.sampled_from(["step", "cosine", "one_cycle"]))
    steps_per_epoch, epochs = draw(st.integers(1, 20)), draw(st.integers(1, 8))
    options: dict[str, Any] = {}
    if name == "step":
        options = {"every": draw(st.integers(1, 3)), "factor": draw(st.floats(0.05, 1))}
    elif name == "cosine":
        options = {"final": draw(st.floats(0, 1))}
    else:
        # PyTorch needs at least two steps of warm-up, and a fall of at least one
        epochs = max(epochs, -(-10 // steps_per_epoch))
        options = {
            "warmup": draw(st.floats(0.25, 0.8)),
            "initial": draw(st.floats(0.01, 1)),
            "final": draw(st.floats(1e-6, 0.5)),
        }
    return name, draw(st.floats(1e-4, 3)), epochs * steps_per_epoch, steps_per_epoch, options


@given(choice=schedule_choices())
def test_schedules(choice: tuple[str, float, int, int, dict[str, Any]]) -> None:
    name, peak, total_steps, steps_per_epoch, options = choice
    schedule = SCHEDULES[name](peak, total_steps, steps_per_epoch, **options)
    rates = [schedule.learning_rate(step) for step in range(total_steps)]
    np.testing.assert_allclose(rates, in_torch.learning_rates(*choice), rtol=0, atol=1e-12 * max(peak, 1))


def test_one_cycle_with_its_defaults() -> None:
    schedule = OneCycle(0.01, 235, 235)
    rates = [schedule.learning_rate(step) for step in range(235)]
    np.testing.assert_allclose(
        rates, in_torch.learning_rates("one_cycle", 0.01, 235, 235, {}), rtol=0, atol=1e-12
    )
