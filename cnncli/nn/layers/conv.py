"""Convolution as matrix products over im2col."""

from __future__ import annotations

import copy
import math

import numpy as np

from cnncli.nn.arrays import DType, FloatArray
from cnncli.nn.initializers import Initializer, initialize
from cnncli.nn.layers.base import Layer, Parameter, image_shape
from cnncli.nn.layout import Columns, cells_of, cut_into_blocks, multiply, multiply_transposed, row_sums
from cnncli.nn.options import Padding, Pair, PositiveInt
from cnncli.nn.windows import Windows, col2im, windows_over


class Conv2D(Layer):
    """Slide F kernels over images: (C, H, W, N) -> (F, OH, OW, N).

    Cross-correlation, as in every framework: the kernel is not flipped. With
    ``cols = im2col(x)`` of shape (C*KH*KW, OH*OW*N) the three passes are three matrix products::

        y           = weight @ cols                 # already the next layer's (F, OH, OW, N)
        grad_weight = grad_output @ cols.T
        grad_input  = col2im(weight.T @ grad_output)

    They are computed for a block of windows at a time; `cnncli.nn.layout` says why.

    Parameters
    ----------
    input_shape : (C, H, W)
    out_channels : number of kernels F
    kernel_size, stride : int or (height, width)
    padding : zeros around the image: int, (height, width), or "same" for ceil(size / stride) outputs
    bias : add one number per kernel
    initializer : see `initialize`
    rng, dtype : source and type of the initial weights; weight has shape (F, C, KH, KW)
    """

    def __init__(
        self,
        input_shape: tuple[int, ...],
        *,
        out_channels: PositiveInt,
        kernel_size: Pair,
        stride: Pair = 1,
        padding: Padding = 0,
        bias: bool = True,
        initializer: Initializer = "he",
        rng: np.random.Generator | None = None,
        dtype: DType = np.float32,
    ) -> None:
        C, H, W = image_shape("Conv2D", input_shape)
        self.out_channels = F = out_channels
        self.windows = windows_over((H, W), kernel_size, stride, padding)
        self._pool: Windows | None = None
        super().__init__((C, H, W), (F, *self.windows.output_size))
        KH, KW = self.windows.kernel_size
        weight = initialize(
            initializer,
            (F, C, KH, KW),
            fan_in=C * KH * KW,
            fan_out=F * KH * KW,
            rng=rng,
            dtype=dtype,
        )
        self.parameters["weight"] = Parameter(weight)
        if bias:
            self.parameters["bias"] = Parameter(np.zeros(F, dtype=dtype))

    @property
    def weight_matrix(self) -> FloatArray:
        """The weight as (F, C*KH*KW)."""
        return self.parameters["weight"].value.reshape(self.out_channels, -1)

    @property
    def im2col_shape(self) -> tuple[int, int]:
        """Shape of the im2col matrix for one image: (C*KH*KW, OH*OW)."""
        return self.input_shape[0] * math.prod(self.windows.kernel_size), math.prod(self.windows.output_size)

    @property
    def macs(self) -> int:
        return self.out_channels * math.prod(self.im2col_shape)

    def forward(
        self, x: FloatArray, training: bool = False, rng: np.random.Generator | None = None
    ) -> FloatArray:
        self.check_input(x)
        y = self.scratch.array("output", (*self.output_shape, x.shape[-1]), x.dtype)
        outputs = self._by_windows(y)
        for block, cols in self._columns.lay_out(x):  # cols (C*KH*KW, n*N) of n windows
            part = block.outputs(outputs)  # (F, n*N)
            multiply(self.weight_matrix, cols, out=part)
            if "bias" in self.parameters:
                part += self.parameters["bias"].value[:, None]
        return y

    def parameter_gradients(self, grad_output: FloatArray) -> None:
        grads = self._by_windows(grad_output)
        # the gradient of weight.T, because the BLAS is faster with the longer side first
        grad_weight = np.zeros(self.weight_matrix.T.shape, dtype=grads.dtype)
        grad_bias = np.zeros(self.out_channels, dtype=grads.dtype)
        for block, cols in self._columns.again():
            grad = block.outputs(grads)  # (F, n*N)
            grad_weight += multiply_transposed(cols, grad)
            grad_bias += row_sums(grad)
        self.parameters["weight"].grad.reshape(self.out_channels, -1)[...] = grad_weight.T
        if "bias" in self.parameters:
            self.parameters["bias"].grad[...] = grad_bias

    def input_gradient(self, grad_output: FloatArray) -> FloatArray:
        grads, N = self._by_rows(grad_output), grad_output.shape[-1]  # (1, F, OH*OW, N)
        grad_input = self.scratch.array("grad_input", (*self.input_shape, N), grads.dtype)
        grad_input.fill(0)
        n_rows = self.weight_matrix.shape[1]
        for block in cut_into_blocks(self.windows, n_rows * N * grads.itemsize):
            grad = block.outputs(grads)  # (F, n*N)
            grad_cols = self.scratch.array("grad_cols", (n_rows, grad.shape[1]), grads.dtype)
            multiply(self.weight_matrix.T, grad, out=grad_cols)
            pixels = block.pixels(grad_input)
            col2im(grad_cols, pixels.shape, block.windows, out=pixels)
        return grad_input

    def before_pool(self, pool: Windows) -> Conv2D:
        """Return this layer with its outputs laid out cell by cell for a max-pool: (cells, F, OH, OW, N)."""
        twin = copy.copy(self)
        twin._pool = pool
        twin.output_shape = (math.prod(pool.kernel_size), self.out_channels, *pool.output_size)
        twin.reset()
        return twin

    def reset(self) -> None:
        super().reset()
        self._columns = Columns(self.windows, self._pool, self.scratch)

    def _by_windows(self, y: FloatArray) -> FloatArray:
        """View outputs, or their gradients, as (cells, F, windows, N); without a pool there is one cell."""
        *cells, F, OH, OW, N = y.shape
        return y.reshape(math.prod(cells), F, OH * OW, N)

    def _by_rows(self, grad_output: FloatArray) -> FloatArray:
        """Return the gradient of the outputs row by row: (1, F, OH*OW, N)."""
        if self._pool is None:
            return self._by_windows(grad_output)
        shape = (self.out_channels, *self.windows.output_size, grad_output.shape[-1])
        rows = self.scratch.array("grad_rows", shape, grad_output.dtype)
        if not self._pool.cover_image:
            rows.fill(0)
        for cell, grad in zip(cells_of(rows, self._pool), grad_output, strict=True):
            cell[...] = grad
        return self._by_windows(rows)

    def _options(self) -> dict[str, object]:
        return {
            "out_channels": self.out_channels,
            "kernel_size": self.windows.kernel_size,
            "stride": self.windows.stride,
            "padding": tuple(self.windows.sides),
        }
