"""From images to features."""

from __future__ import annotations

import math

import numpy as np

from cnncli.nn.arrays import FloatArray
from cnncli.nn.layers.base import Layer, positive_shape


class Flatten(Layer):
    """Read (C, H, W, N) as (C*H*W, N): features in C, H, W order, no copy.

    Parameters
    ----------
    input_shape : any
    """

    def __init__(self, input_shape: tuple[int, ...]) -> None:
        shape = positive_shape("Flatten", input_shape)
        super().__init__(shape, (math.prod(shape),))

    def forward(
        self, x: FloatArray, training: bool = False, rng: np.random.Generator | None = None
    ) -> FloatArray:
        self.check_input(x)
        return x.reshape(*self.output_shape, x.shape[-1])

    def input_gradient(self, grad_output: FloatArray) -> FloatArray:
        return grad_output.reshape(*self.input_shape, grad_output.shape[-1])
