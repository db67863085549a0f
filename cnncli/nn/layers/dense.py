"""Fully connected layer."""

from __future__ import annotations

import numpy as np

from cnncli.errors import ShapeError
from cnncli.nn.arrays import DType, FloatArray
from cnncli.nn.initializers import Initializer, initialize
from cnncli.nn.layers.base import Layer, Parameter, positive_shape
from cnncli.nn.layout import row_sums
from cnncli.nn.options import PositiveInt


class Dense(Layer):
    """Multiply features by a matrix: (D, N) -> (out_features, N), ``y = weight @ x + bias``.

    Parameters
    ----------
    input_shape : (D,)
    out_features : number of outputs
    bias : add one number per output
    initializer : see `initialize`; "small" suits the last layer of a classifier
    rng, dtype : source and type of the initial weights; weight has shape (out_features, D)
    """

    def __init__(
        self,
        input_shape: tuple[int, ...],
        *,
        out_features: PositiveInt,
        bias: bool = True,
        initializer: Initializer = "he",
        rng: np.random.Generator | None = None,
        dtype: DType = np.float32,
    ) -> None:
        shape = positive_shape("Dense", input_shape)
        if len(shape) != 1:
            raise ShapeError(
                f"Dense: expected an input shape (D,), got {shape}; add a flatten layer before it"
            )
        D, K = shape[0], out_features
        super().__init__((D,), (K,))
        weight = initialize(initializer, (K, D), fan_in=D, fan_out=K, rng=rng, dtype=dtype)
        self.parameters["weight"] = Parameter(weight)
        if bias:
            self.parameters["bias"] = Parameter(np.zeros(K, dtype=dtype))
        self._x: FloatArray | None = None

    @property
    def macs(self) -> int:
        return self.input_shape[0] * self.output_shape[0]

    def forward(
        self, x: FloatArray, training: bool = False, rng: np.random.Generator | None = None
    ) -> FloatArray:
        self.check_input(x)
        self._x = x
        y = self.scratch.array("output", (*self.output_shape, x.shape[-1]), x.dtype)
        np.matmul(self.parameters["weight"].value, x, out=y)
        if "bias" in self.parameters:
            y += self.parameters["bias"].value[:, None]
        return y

    def parameter_gradients(self, grad_output: FloatArray) -> None:
        assert self._x is not None
        np.matmul(grad_output, self._x.T, out=self.parameters["weight"].grad)
        if "bias" in self.parameters:
            self.parameters["bias"].grad[...] = row_sums(grad_output)

    def input_gradient(self, grad_output: FloatArray) -> FloatArray:
        grad_input = self.scratch.array(
            "grad_input", (*self.input_shape, grad_output.shape[-1]), grad_output.dtype
        )
        return np.matmul(self.parameters["weight"].value.T, grad_output, out=grad_input)

    def _options(self) -> dict[str, object]:
        return {"out_features": self.output_shape[0]}
