"""Average pooling: the mean of each window, or of the whole image."""

from __future__ import annotations

import math

import numpy as np

from cnncli.nn.arrays import FloatArray
from cnncli.nn.layers.base import Layer, image_shape
from cnncli.nn.layers.pool import pooling_windows
from cnncli.nn.options import OptionalPair, Padding, Pair


class AveragePool2D(Layer):
    """Take the mean of each window: (C, H, W, N) -> (C, OH, OW, N).

    Padding counts as zeros, in the sum and in the number of cells (PyTorch's ``count_include_pad``), so every
    window is divided by KH*KW. Windows that do not fit whole are left out; where windows overlap,
    gradients add.

    Parameters
    ----------
    input_shape : (C, H, W)
    kernel_size : int or (height, width)
    stride : int or (height, width); None means kernel_size
    padding : int, (height, width), each at most half the kernel, or "same"
    """

    def __init__(
        self,
        input_shape: tuple[int, ...],
        *,
        kernel_size: Pair,
        stride: OptionalPair = None,
        padding: Padding = 0,
    ) -> None:
        C, H, W = image_shape("AveragePool2D", input_shape)
        self.windows = pooling_windows((H, W), kernel_size, stride, padding)
        super().__init__((C, H, W), (C, *self.windows.output_size))
        self._share = 1 / math.prod(self.windows.kernel_size)

    def forward(
        self, x: FloatArray, training: bool = False, rng: np.random.Generator | None = None
    ) -> FloatArray:
        self.check_input(x)
        y = self.scratch.array("output", (*self.output_shape, x.shape[-1]), x.dtype)
        y.fill(0)
        for o in self.windows.offsets:
            y[:, o.out_rows, o.out_cols] += x[:, o.in_rows, o.in_cols]
        y *= self._share
        return y

    def input_gradient(self, grad_output: FloatArray) -> FloatArray:
        N = grad_output.shape[-1]
        share = self.scratch.array("share", grad_output.shape, grad_output.dtype)
        np.multiply(grad_output, self._share, out=share)
        grad_input = self.scratch.array("grad_input", (*self.input_shape, N), grad_output.dtype)
        grad_input.fill(0)
        for o in self.windows.offsets:
            grad_input[:, o.in_rows, o.in_cols] += share[:, o.out_rows, o.out_cols]
        return grad_input

    def _options(self) -> dict[str, object]:
        return {
            "kernel_size": self.windows.kernel_size,
            "stride": self.windows.stride,
            "padding": tuple(self.windows.sides),
        }


class GlobalAveragePool2D(Layer):
    """Take the mean of each channel of an image: (C, H, W, N) -> (C, N).

    What comes out are features, so no flatten layer is needed (Lin et al. 2013, section 3.2).

    Parameters
    ----------
    input_shape : (C, H, W)
    """

    def __init__(self, input_shape: tuple[int, ...]) -> None:
        C, H, W = image_shape("GlobalAveragePool2D", input_shape)
        super().__init__((C, H, W), (C,))
        self._n_pixels = H * W

    def forward(
        self, x: FloatArray, training: bool = False, rng: np.random.Generator | None = None
    ) -> FloatArray:
        self.check_input(x)
        C, N = self.input_shape[0], x.shape[-1]
        y = self.scratch.array("output", (C, N), x.dtype)
        # a product is faster than a sum along an axis in the middle
        shares = np.full(self._n_pixels, 1 / self._n_pixels, dtype=x.dtype)
        return np.matmul(shares, x.reshape(C, self._n_pixels, N), out=y)

    def input_gradient(self, grad_output: FloatArray) -> FloatArray:
        C, N = grad_output.shape
        grad_input = self.scratch.array("grad_input", (*self.input_shape, N), grad_output.dtype)
        pixels = grad_input.reshape(C, self._n_pixels, N)
        np.multiply(grad_output[:, None], 1 / self._n_pixels, out=pixels)
        return grad_input
