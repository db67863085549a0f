"""Activations: one function applied to every number."""

from __future__ import annotations

import numpy as np

from cnncli.nn.arrays import FloatArray
from cnncli.nn.layers.base import Layer, positive_shape
from cnncli.nn.layout import keep_where


class ReLU(Layer):
    """``max(x, 0)``, any shape. Its derivative at 0 is 0; NaN stays NaN.

    Parameters
    ----------
    input_shape : any
    """

    def __init__(self, input_shape: tuple[int, ...]) -> None:
        shape = positive_shape("ReLU", input_shape)
        super().__init__(shape, shape)
        self._y: FloatArray | None = None

    def forward(
        self, x: FloatArray, training: bool = False, rng: np.random.Generator | None = None
    ) -> FloatArray:
        self.check_input(x)
        self._y = self.scratch.array("output", x.shape, x.dtype)
        return np.maximum(x, 0, out=self._y)

    def input_gradient(self, grad_output: FloatArray) -> FloatArray:
        assert self._y is not None
        active = self.scratch.array("active", self._y.shape, np.bool_)
        np.greater(self._y, 0, out=active)
        grad_input = self.scratch.array("grad_input", self._y.shape, grad_output.dtype)
        return keep_where(active, grad_output, out=grad_input)


class Sigmoid(Layer):
    """``1 / (1 + exp(-x))``, any shape, between 0 and 1.

    Parameters
    ----------
    input_shape : any
    """

    def __init__(self, input_shape: tuple[int, ...]) -> None:
        shape = positive_shape("Sigmoid", input_shape)
        super().__init__(shape, shape)
        self._y: FloatArray | None = None

    def forward(
        self, x: FloatArray, training: bool = False, rng: np.random.Generator | None = None
    ) -> FloatArray:
        self.check_input(x)
        y = self._y = self.scratch.array("output", x.shape, x.dtype)
        # the exponential of a larger number would overflow; the result is 0 but for a denormal number
        np.maximum(x, -np.floor(np.log(np.finfo(x.dtype).max)), out=y)
        np.negative(y, out=y)
        np.exp(y, out=y)
        y += 1
        return np.reciprocal(y, out=y)

    def input_gradient(self, grad_output: FloatArray) -> FloatArray:
        """Multiply by the derivative, ``y * (1 - y)``."""
        assert self._y is not None
        grad_input = self.scratch.array("grad_input", self._y.shape, grad_output.dtype)
        np.subtract(1, self._y, out=grad_input)
        grad_input *= self._y
        grad_input *= grad_output
        return grad_input


class Tanh(Layer):
    """Hyperbolic tangent, any shape, between -1 and 1.

    Parameters
    ----------
    input_shape : any
    """

    def __init__(self, input_shape: tuple[int, ...]) -> None:
        shape = positive_shape("Tanh", input_shape)
        super().__init__(shape, shape)
        self._y: FloatArray | None = None

    def forward(
        self, x: FloatArray, training: bool = False, rng: np.random.Generator | None = None
    ) -> FloatArray:
        self.check_input(x)
        self._y = self.scratch.array("output", x.shape, x.dtype)
        return np.tanh(x, out=self._y)

    def input_gradient(self, grad_output: FloatArray) -> FloatArray:
        """Multiply by the derivative, ``1 - y**2``."""
        assert self._y is not None
        grad_input = self.scratch.array("grad_input", self._y.shape, grad_output.dtype)
        np.multiply(self._y, self._y, out=grad_input)
        np.subtract(1, grad_input, out=grad_input)
        grad_input *= grad_output
        return grad_input
