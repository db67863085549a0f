"""Dropout: zero random numbers in training, do nothing otherwise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cnncli.errors import OptionError
from cnncli.nn.arrays import FloatArray
from cnncli.nn.layers.base import Layer, positive_shape
from cnncli.nn.options import FractionBelowOne


class Dropout(Layer):
    """Zero each number with a probability and scale the rest, so that the expectation stays.

    Inverted dropout (Srivastava et al. 2014, section 10): kept numbers are divided by the
    probability of keeping, so evaluation needs no scaling.

    Parameters
    ----------
    input_shape : any
    drop_probability : at least 0, below 1; realised to the nearest 2**-32
    """

    def __init__(self, input_shape: tuple[int, ...], *, drop_probability: FractionBelowOne = 0.5) -> None:
        shape = positive_shape("Dropout", input_shape)
        super().__init__(shape, shape)
        self.drop_probability = drop_probability
        self._keep: FloatArray | None = None

    def forward(
        self, x: FloatArray, training: bool = False, rng: np.random.Generator | None = None
    ) -> FloatArray:
        """Drop in training, which takes `rng`; return `x` itself otherwise."""
        self.check_input(x)
        self._keep = None
        if not training or self.drop_probability == 0:
            return x
        if rng is None:
            raise OptionError("rng", f"a numpy.random.Generator for {self} in training", "None")
        self._keep = self._draw(rng, x)
        return np.multiply(x, self._keep, out=self.scratch.array("output", x.shape, x.dtype))

    def input_gradient(self, grad_output: FloatArray) -> FloatArray:
        if self._keep is None:
            return grad_output
        grad_input = self.scratch.array("grad_input", grad_output.shape, grad_output.dtype)
        return np.multiply(grad_output, self._keep, out=grad_input)

    def _draw(self, rng: np.random.Generator, x: FloatArray) -> FloatArray:
        """Draw the factor of each number: 0, or 1 / (probability of keeping)."""
        # Sixteen random bits decide on one number where they can express the probability, as for 0.5
        # and 0.25, else 32 bits: several times cheaper than one float each.
        keep_probability = 1 - self.drop_probability
        dtype: type[np.unsignedinteger[Any]] = (
            np.uint16 if (keep_probability * 2**16).is_integer() else np.uint32
        )
        n_bits = 8 * np.dtype(dtype).itemsize
        n_kept = min(max(round(keep_probability * 2**n_bits), 1), 2**n_bits - 1)
        size = math.prod(x.shape)
        words = rng.integers(0, 2**64, size=-(-size * n_bits // 64), dtype=np.uint64)
        bits = words.view(dtype)[:size].reshape(x.shape)
        kept = self.scratch.array("kept", x.shape, np.bool_)
        np.less(bits, n_kept, out=kept)
        keep = self.scratch.array("keep", x.shape, x.dtype)
        np.copyto(keep, kept)  # a product with booleans would convert them through a small buffer
        keep *= x.dtype.type(1 / keep_probability)
        return keep

    def _options(self) -> dict[str, object]:
        return {"drop_probability": self.drop_probability}
