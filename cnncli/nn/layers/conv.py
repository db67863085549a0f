"""Convolution as one matrix product over im2col."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from cnncli.nn.arrays import DType, FloatArray
from cnncli.nn.initializers import Initializer, initialize, initializer_name
from cnncli.nn.layers.base import Layer, Parameter, image_shape
from cnncli.nn.layers.blocks import Block, BlockColumns, bands, cut_into_blocks
from cnncli.nn.options import Padding, Pair, PositiveInt, boolean, positive_int
from cnncli.nn.products import multiply, multiply_transposed, row_sums
from cnncli.nn.windows import Sides, col2im, windows_over


class Conv2D(Layer):
    """Slide F kernels over images: (C, H, W, N) -> (F, OH, OW, N).

    Cross-correlation, as in every framework: the kernel is not flipped. With
    ``cols = im2col(x)`` of shape (C*KH*KW, OH*OW*N) the three passes are three matrix products::

        y     = weight @ cols                 # already the next layer's (F, OH, OW, N)
        dW    = grad_output @ cols.T
        dx    = col2im(weight.T @ grad_output)

    They are computed in blocks of windows, and dx for one row of the kernel at a time, so that the
    matrices stay in the processor's cache; the sums are the same.

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

    _blocks: list[Block]

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
        F = positive_int("out_channels", out_channels)
        self.windows = windows_over((H, W), kernel_size, stride, padding)
        super().__init__((C, H, W), (F, *self.windows.output_size))
        KH, KW = self.windows.kernel_size
        weight = initialize(
            initializer_name("initializer", initializer),
            (F, C, KH, KW),
            fan_in=C * KH * KW,
            fan_out=F * KH * KW,
            rng=rng,
            dtype=dtype,
        )
        self.parameters["weight"] = Parameter(weight)
        if boolean("bias", bias):
            self.parameters["bias"] = Parameter(np.zeros(F, dtype=dtype))

    @property
    def out_channels(self) -> int:
        return self.output_shape[0]

    @property
    def weight_matrix(self) -> FloatArray:
        """The weight as (F, C*KH*KW)."""
        return self.parameters["weight"].value.reshape(self.out_channels, -1)

    @property
    def im2col_shape(self) -> tuple[int, int]:
        """Shape of the im2col matrix for one image: (C*KH*KW, OH*OW)."""
        (KH, KW), (OH, OW) = self.windows.kernel_size, self.windows.output_size
        return self.input_shape[0] * KH * KW, OH * OW

    @property
    def macs(self) -> int:
        rows, n_windows = self.im2col_shape
        return self.out_channels * rows * n_windows

    def forward(
        self, x: FloatArray, training: bool = False, rng: np.random.Generator | None = None
    ) -> FloatArray:
        self.check_input(x)
        (F, OH, OW), N = self.output_shape, x.shape[-1]
        # before the blocks, whose number grows with the outputs: it fails at once where these cannot fit
        y = self._scratch.array("output", (F, OH * OW * N), x.dtype)
        self._blocks = cut_into_blocks(self.windows, self.im2col_shape[0] * N * x.itemsize)
        for block, cols in zip(self._blocks, self._columns.lay_out(x, self._blocks), strict=True):
            multiply(self.weight_matrix, cols, out=y[:, block.first * N : block.end * N])
        if "bias" in self.parameters:
            y += self.parameters["bias"].value[:, None]
        return y.reshape(F, OH, OW, N)

    def parameter_gradients(self, grad_output: FloatArray) -> None:
        N = grad_output.shape[-1]
        grad = grad_output.reshape(self.out_channels, -1)  # (F, OH*OW*N)
        parts = (grad[:, block.first * N : block.end * N] for block in self._blocks)
        self.add_up_gradients(zip(self._columns.again(), parts, strict=True), grad)

    def add_up_gradients(self, blocks: Iterable[tuple[FloatArray, FloatArray]], grad: FloatArray) -> None:
        """Write the gradient of the weight, the sum over blocks, and that of the bias.

        Parameters
        ----------
        blocks : for each block its im2col matrix (C*KH*KW, windows*N) and the gradient with respect to
            its outputs (F, windows*N)
        grad : ndarray of shape (F, any), whose rows add up to the gradient of the bias
        """
        # the gradient of weight.T, because the BLAS is faster with the longer side first
        total = np.zeros(self.weight_matrix.T.shape, dtype=grad.dtype)
        for cols, grad_outputs in blocks:
            total += multiply_transposed(cols, grad_outputs)
        self.parameters["weight"].grad.reshape(self.out_channels, -1)[...] = total.T
        if "bias" in self.parameters:
            self.parameters["bias"].grad[...] = row_sums(grad)

    def input_gradient(self, grad_output: FloatArray) -> FloatArray:
        """Return ``col2im(weight.T @ grad_output)``, one row of the kernel and one band at a time.

        So the matrix that the product writes and col2im reads stays in the cache.
        """
        (F, OH, OW), (C, H, W), N = self.output_shape, self.input_shape, grad_output.shape[-1]
        (KH, KW), (_, SW), (_, _, left, right) = self.windows.geometry
        grad = grad_output.reshape(F, OH * OW * N)
        weight = self.parameters["weight"].value.transpose(2, 1, 3, 0).reshape(KH, C * KW, F)
        grad_input = self._scratch.array("grad_input", (C, H, W, N), grad.dtype)
        grad_input.fill(0)
        for first, end in bands(OH, C * KW * OW * N * grad.itemsize):
            for i in range(KH):
                outputs, inputs = self.windows.kernel_row(i, first, end)
                n_columns = (outputs.stop - outputs.start) * OW * N
                if n_columns == 0:
                    continue
                grad_cols = self._scratch.array("grad_cols", (C * KW, n_columns), grad.dtype)
                multiply(weight[i], grad[:, outputs.start * OW * N : outputs.stop * OW * N], out=grad_cols)
                rows = grad_input[:, inputs]  # (C, output rows, W, N)
                col2im(grad_cols, rows.shape, (1, KW), (1, SW), Sides(0, 0, left, right), out=rows)
        return grad_input

    def _start_afresh(self) -> None:
        super()._start_afresh()
        self._columns = BlockColumns()
        self._blocks = []

    def _options(self) -> dict[str, object]:
        return {
            "out_channels": self.out_channels,
            "kernel_size": self.windows.kernel_size,
            "stride": self.windows.stride,
            "padding": tuple(self.windows.sides),
        }
