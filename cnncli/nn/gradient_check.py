"""Check a backward pass against differences of the forward pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cnncli.errors import ShapeError
from cnncli.nn.arrays import FloatArray
from cnncli.nn.layers.base import Parameter


class Differentiable(Protocol):
    """A layer or a whole network."""

    @property
    def parameters(self) -> dict[str, Parameter]: ...

    def forward(self, x: FloatArray) -> FloatArray: ...

    def backward(self, grad_output: FloatArray) -> FloatArray: ...


@dataclass(frozen=True)
class GradientCheck:
    """The result for one array: `name` is "input" or a parameter's name."""

    name: str
    relative_error: float


def check_gradients(
    subject: Differentiable, x: FloatArray, rng: np.random.Generator, *, step: float = 1e-6
) -> list[GradientCheck]:
    """Compare backward with central differences along random directions.

    For a random upstream gradient v and a random direction u, <v, J u> is taken from
    ``(forward(x + step*u) - forward(x - step*u)) / (2*step)`` and <J^T v, u> from backward. Random v
    matters: a backward pass with height and width exchanged passes with ones.

    One number for each array, for tests. `examine_gradients`, which `cnncli gradcheck` shows, keeps clear of
    kinks by itself and names the numbers that are wrong.

    Parameters
    ----------
    subject : layer or network, its parameters float64, without randomness in forward
    x : float64 input (*input_shape, N), away from kinks and ties
    rng : source of v and u
    step : length of the step along u, whose entries are of order 1

    Raises
    ------
    ShapeError : `x` is not float64; differences of float32 are mostly rounding
    """
    if x.dtype != np.float64:
        raise ShapeError(f"check_gradients: expected an input of float64, got {x.dtype}")
    upstream = rng.standard_normal(subject.forward(x).shape)
    grad_input = subject.backward(upstream).copy()
    gradients = {"input": (x.copy(), grad_input)}
    for name, parameter in subject.parameters.items():
        gradients[name] = (parameter.value, parameter.grad.copy())
    x = gradients["input"][0]

    def objective() -> float:
        return float(np.vdot(upstream, subject.forward(x)))

    return [
        GradientCheck(name, _directional_error(objective, array, grad, rng, step))
        for name, (array, grad) in gradients.items()
    ]


def _directional_error(
    objective: Callable[[], float], array: FloatArray, grad: FloatArray, rng: np.random.Generator, step: float
) -> float:
    direction = rng.standard_normal(array.shape)
    original = array.copy()
    array[...] = original + step * direction
    above = objective()
    array[...] = original - step * direction
    below = objective()
    array[...] = original
    numeric = (above - below) / (2 * step)
    analytic = float(np.vdot(grad, direction))
    return abs(numeric - analytic) / max(abs(numeric), abs(analytic), 1e-12)
