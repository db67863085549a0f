"""Max pooling: compare the cells of every window, and hand the gradient back to the winner."""

from __future__ import annotations

import copy
import math

import numpy as np

from cnncli.errors import OptionError
from cnncli.nn.arrays import FloatArray
from cnncli.nn.layers.base import Layer, image_shape
from cnncli.nn.layout import cells_of, keep_where
from cnncli.nn.options import OptionalPair, Padding, PaddingLike, Pair, PairLike
from cnncli.nn.windows import Windows, windows_over


class MaxPool2D(Layer):
    """Take the maximum of each window: (C, H, W, N) -> (C, OH, OW, N).

    A window of KH x KW has as many cells. What stands in cell (i, j) of all windows is one array
    (C, OH, OW, N), a view of the image with the stride as its step, so the pool compares KH*KW arrays.

    Backward gives the whole gradient of a window to its first maximum in row-major order, so the
    sum of the input's gradient is the sum of grad_output whatever the ties; where windows overlap,
    gradients add. Windows that do not fit whole are left out. Padding stands for minus infinity and
    never wins, not even against minus infinity. NaN in a window comes out as NaN, and its gradient
    goes to the first NaN.

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
        C, H, W = image_shape("MaxPool2D", input_shape)
        self.windows = pooling_windows((H, W), kernel_size, stride, padding)
        super().__init__((C, H, W), (C, *self.windows.output_size))

    def forward(
        self, x: FloatArray, training: bool = False, rng: np.random.Generator | None = None
    ) -> FloatArray:
        self.check_input(x)
        best, *others = cells = self._cells(x)  # each (C, OH, OW, N)
        y = self.scratch.array("output", best.shape, x.dtype)
        self._won = self.scratch.array("won", (len(others), *y.shape), np.bool_)
        for cell, won in zip(others, self._won, strict=True):
            np.greater(cell, best, out=won)  # a tie stays with the earlier cell
            best = np.maximum(best, cell, out=y)
        if not others:
            y[...] = best
        for number, rows, columns in self.windows.first_inside():
            self._won[number - 1][:, rows, columns] = True  # all before it is padding
        if np.isnan(y.max(initial=-np.inf)):
            self._let_first_nan_win(cells)
        return y

    def input_gradient(self, grad_output: FloatArray) -> FloatArray:
        grad_cells = self.scratch.array(
            "grad_cells", (1 + len(self._won), *grad_output.shape), grad_output.dtype
        )
        rest = grad_cells[0]  # what no later cell has won
        rest[...] = grad_output
        for grad, won in zip(grad_cells[:0:-1], self._won[::-1], strict=True):
            keep_where(won, rest, out=grad)  # the last cell that was larger than all before it
            rest -= grad
        return grad_cells if self._is_by_cell else self._add_cells(grad_cells)

    def by_cell(self) -> MaxPool2D:
        """Return this layer for images that a convolution has laid out for it: (cells, C, OH, OW, N)."""
        twin = copy.copy(self)
        twin.input_shape = (math.prod(self.windows.kernel_size), *self.output_shape)
        twin.reset()
        return twin

    @property
    def _is_by_cell(self) -> bool:
        return len(self.input_shape) == 4

    def _cells(self, x: FloatArray) -> list[FloatArray]:
        """Return what each cell of the windows holds: KH*KW arrays (C, OH, OW, N)."""
        if self._is_by_cell:
            return list(x)
        if not self.windows.is_padded:
            return cells_of(x, self.windows)
        padded = self.scratch.array("padded", self._padded_shape(x.shape[-1]), x.dtype)
        padded.fill(-np.inf)
        self.windows.inside(padded)[...] = x
        return cells_of(padded, self.windows)

    def _add_cells(self, grad_cells: FloatArray) -> FloatArray:
        """Add the gradient of every cell onto the pixels that it holds."""
        shape = self._padded_shape(grad_cells.shape[-1])
        grad_input = self.scratch.array("grad_input", shape, grad_cells.dtype)
        grad_input.fill(0)
        for pixels, grad in zip(cells_of(grad_input, self.windows), grad_cells, strict=True):
            pixels += grad
        return self.windows.inside(grad_input)

    def _padded_shape(self, N: int) -> tuple[int, ...]:
        (C, H, W), (top, bottom, left, right) = self.input_shape, self.windows.sides
        return C, H + top + bottom, W + left + right, N

    def _let_first_nan_win(self, cells: list[FloatArray]) -> None:
        has_nan = np.isnan(cells[0])
        for cell, won in zip(cells[1:], self._won, strict=True):
            won |= np.isnan(cell) & ~has_nan
            has_nan |= np.isnan(cell)

    def reset(self) -> None:
        super().reset()
        self._won = np.empty(0, dtype=np.bool_)

    def _options(self) -> dict[str, object]:
        return {
            "kernel_size": self.windows.kernel_size,
            "stride": self.windows.stride,
            "padding": tuple(self.windows.sides),
        }


def pooling_windows(
    image_size: tuple[int, int], kernel_size: PairLike, stride: PairLike | None, padding: PaddingLike
) -> Windows:
    """Work out the geometry of a pool, whose stride is the kernel unless it says otherwise.

    Raises
    ------
    OptionError : see `windows_over`; or the padding is more than half the kernel, so that a window could
        see nothing else
    """
    windows = windows_over(image_size, kernel_size, kernel_size if stride is None else stride, padding)
    KH, KW = windows.kernel_size
    top, bottom, left, right = windows.sides
    if max(top, bottom) > KH // 2 or max(left, right) > KW // 2:
        raise OptionError(
            "padding",
            f"at most half the kernel, {KH // 2}x{KW // 2} for {KH}x{KW}",
            f"{max(top, bottom)}x{max(left, right)}",
        )
    return windows
