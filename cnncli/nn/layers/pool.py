"""Max pooling: the largest value of each window forward, its gradient to that one cell backward."""

from __future__ import annotations

from typing import Any

import numpy as np

from cnncli.errors import OptionError
from cnncli.nn.arrays import FloatArray, IntArray
from cnncli.nn.layers.base import Layer, image_shape
from cnncli.nn.options import OptionalPair, Padding, PaddingLike, Pair, PairLike
from cnncli.nn.windows import Offset, Windows, windows_over


class MaxPool2D(Layer):
    """Take the maximum of each window: (C, H, W, N) -> (C, OH, OW, N).

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

    _winner: IntArray

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
        KH, KW = self.windows.kernel_size
        super().__init__((C, H, W), (C, *self.windows.output_size))
        # the winner of a window that holds nothing above minus infinity
        cell_number = np.min_scalar_type(KH * KW - 1)
        self._first_inside = self.windows.first_inside()[:, :, None].astype(cell_number)  # (OH, OW, 1)

    def forward(
        self, x: FloatArray, training: bool = False, rng: np.random.Generator | None = None
    ) -> FloatArray:
        self.check_input(x)
        y = self._scratch.array("output", (*self.output_shape, x.shape[-1]), x.dtype)
        y.fill(-np.inf)
        winner = self._scratch.array("winner", y.shape, self._first_inside.dtype)
        winner[...] = self._first_inside
        for o in self.windows.offsets:
            best, value = y[:, o.out_rows, o.out_cols], x[:, o.in_rows, o.in_cols]
            # cells come in rising order, so the maximum of their numbers is the last that was better
            candidate = (value > best) * self._number(o)
            np.maximum(winner[:, o.out_rows, o.out_cols], candidate, out=winner[:, o.out_rows, o.out_cols])
            np.maximum(best, value, out=best)
        self._winner = winner
        if np.isnan(y).any():
            self._give_nan_windows_to_their_first_nan(x)
        return y

    def input_gradient(self, grad_output: FloatArray) -> FloatArray:
        grad_input = self._scratch.array(
            "grad_input", (*self.input_shape, grad_output.shape[-1]), grad_output.dtype
        )
        grad_input.fill(0)
        for o in self.windows.offsets:
            outputs = (slice(None), o.out_rows, o.out_cols)
            won = self._winner[outputs] == self._number(o)
            grad_input[:, o.in_rows, o.in_cols] += grad_output[outputs] * won
        return grad_input

    def _number(self, offset: Offset) -> np.integer[Any]:
        """Number the cells of the kernel in row-major order."""
        number: np.integer[Any] = self._first_inside.dtype.type(
            offset.i * self.windows.kernel_size[1] + offset.j
        )
        return number

    def _give_nan_windows_to_their_first_nan(self, x: FloatArray) -> None:
        for o in reversed(self.windows.offsets):
            winner = self._winner[:, o.out_rows, o.out_cols]
            winner[np.isnan(x[:, o.in_rows, o.in_cols])] = self._number(o)

    def _start_afresh(self) -> None:
        super()._start_afresh()
        self._winner = np.empty(0, dtype=np.uint8)

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
