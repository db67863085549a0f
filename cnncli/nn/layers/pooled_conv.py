"""A convolution and the max-pool after it, computed together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cnncli.nn.arrays import FloatArray
from cnncli.nn.layers.base import Layer
from cnncli.nn.layers.blocks import Block, BlockColumns, cut_into_blocks
from cnncli.nn.layers.conv import Conv2D
from cnncli.nn.layers.pool import MaxPool2D
from cnncli.nn.masks import keep_where
from cnncli.nn.products import multiply


class PooledConv2D(Layer):
    """``max_pool2d(conv2d(x))`` for pooling windows side by side: (C, H, W, N) -> (F, OH, OW, N).

    A pool of PH x PW compares PH*PW outputs of the convolution. Each comes from the same convolution
    with a stride PH, PW times as large, started at another pixel. So this layer runs PH*PW
    convolutions of OH x OW outputs, one for each cell of the pooling window, and the pool is the
    maximum of PH*PW whole arrays: nothing is read with a stride, and nothing is convolved where the
    pool does not look.

    The bias is added after the maximum, where there are PH*PW times fewer numbers: rounding keeps
    the order of numbers, so the values are the same to the last bit. (Two outputs that only the rounding
    of the bias would make equal are no tie here: the larger one gets the gradient.)

    Parameters
    ----------
    conv, pool : the two layers; the parameters are conv's own
    """

    _blocks: list[tuple[int, Block]]
    _cell_grads: FloatArray

    def __init__(self, conv: Conv2D, pool: MaxPool2D) -> None:
        super().__init__(conv.input_shape, pool.output_shape)
        self.parameters = conv.parameters
        self._conv = conv
        self._pool = pool
        PH, PW = pool.windows.kernel_size
        self._cells = [(i, j) for i in range(PH) for j in range(PW)]

    @staticmethod
    def fits(pool: MaxPool2D) -> bool:
        """Tell whether the windows of a pool lie side by side, unpadded."""
        return pool.windows.stride == pool.windows.kernel_size and not pool.windows.is_padded

    def forward(
        self, x: FloatArray, training: bool = False, rng: np.random.Generator | None = None
    ) -> FloatArray:
        self.check_input(x)
        (F, OH, OW), N = self.output_shape, x.shape[-1]
        self._blocks = self._cut(self._conv.im2col_shape[0] * N * x.itemsize)
        cells = self._scratch.array("cells", (len(self._cells), F, OH * OW * N), x.dtype)
        columns = self._columns.lay_out(x, [block for _, block in self._blocks])
        for (cell, block), cols in zip(self._blocks, columns, strict=True):
            multiply(self._conv.weight_matrix, cols, out=cells[cell, :, block.first * N : block.end * N])
        best = self._knock_out(cells)
        if "bias" in self.parameters:
            best += self.parameters["bias"].value[:, None]
        return best.reshape(F, OH, OW, N)

    def parameter_gradients(self, grad_output: FloatArray) -> None:
        N = grad_output.shape[-1]
        grad = grad_output.reshape(self.output_shape[0], -1)
        self._cell_grads = self._hand_back(grad)  # (PH*PW, F, OH*OW*N)
        parts = (self._cell_grads[cell, :, block.first * N : block.end * N] for cell, block in self._blocks)
        # a bias is added to the maximum, so its gradient needs no cells
        self._conv.add_up_gradients(zip(self._columns.again(), parts, strict=True), grad)

    def input_gradient(self, grad_output: FloatArray) -> FloatArray:
        (F, OH, OW), N = self.output_shape, grad_output.shape[-1]
        PH, PW = self._pool.windows.kernel_size
        grad_conv = self._scratch.array("grad_conv", (*self._conv.output_shape, N), grad_output.dtype)
        if self._conv.windows.output_size != (OH * PH, OW * PW):
            grad_conv.fill(0)  # the pool leaves out the last rows or columns
        for (i, j), grad in zip(self._cells, self._cell_grads, strict=True):
            grad_conv[:, i : OH * PH : PH, j : OW * PW : PW] = grad.reshape(F, OH, OW, N)
        return self._conv.input_gradient(grad_conv)

    def _cut(self, window_bytes: int) -> list[tuple[int, Block]]:
        """Cut the convolution of each cell into blocks: [(number of the cell, block), ...]."""
        pool = self._pool.windows
        return [
            (number, block)
            for number, cell in enumerate(self._cells)
            for block in cut_into_blocks(
                self._conv.windows, window_bytes, cell, pool.kernel_size, pool.output_size
            )
        ]

    def _knock_out(self, cells: FloatArray) -> FloatArray:
        """Find the maximum over the cells in a knock-out tournament, in place, and note who won.

        The earlier cell wins a tie, so that the first maximum in row-major order gets the gradient.
        """
        for (a, b), b_won in zip(self._matches(), self._outcomes(cells.shape), strict=True):
            np.greater(cells[b], cells[a], out=b_won)
            np.maximum(cells[a], cells[b], out=cells[a])
        best: FloatArray = cells[0]
        return best

    def _hand_back(self, grad: FloatArray) -> FloatArray:
        """Hand the gradient back through the tournament to the cell that won: (PH*PW, *grad.shape)."""
        cells = self._scratch.array("grad_cells", (len(self._cells), *grad.shape), grad.dtype)
        cells[0] = grad
        matches, outcomes = self._matches(), self._outcomes(cells.shape)
        for (a, b), b_won in zip(reversed(matches), reversed(outcomes), strict=True):
            keep_where(b_won, cells[a], out=cells[b])
            cells[a] -= cells[b]
        return cells

    def _matches(self) -> list[tuple[int, int]]:
        """Pair the cells round by round; who wins goes on in the place of the first of the two."""
        matches, distance = [], 1
        while distance < len(self._cells):
            matches += [(a, a + distance) for a in range(0, len(self._cells) - distance, 2 * distance)]
            distance *= 2
        return matches

    def _outcomes(self, shape: tuple[int, ...]) -> list[NDArray[np.bool_]]:
        return list(self._scratch.array("outcomes", (shape[0] - 1, *shape[1:]), np.bool_))

    def _start_afresh(self) -> None:
        super()._start_afresh()
        self._columns = BlockColumns()
        self._blocks = []
        self._cell_grads = np.empty(0)

    def replica(self) -> PooledConv2D:
        return PooledConv2D(self._conv.replica(), self._pool.replica())

    def __repr__(self) -> str:
        return f"{self._conv!r} with {self._pool!r}"
