"""Everything that a max-pool computes for a case, forward and backward."""

from __future__ import annotations

from typing import cast

import numpy as np

from cnncli.explain.case import Case, rows_of_columns
from cnncli.explain.walkthrough import Array, Index
from cnncli.nn import MaxPool2D, batch_first, batch_last
from cnncli.nn.options import PaddingLike

ROW_AXES = ("n", "oh", "ow", "c")


class Pooled:
    """Everything that pooling computes for a case, batch first.

    Attributes
    ----------
    dout : (N, C, OH, OW), the upstream gradient
    rows : (N*OH*OW*C, KH*KW), the windows, padding as minus infinity
    arg_max : (N*OH*OW*C,), the cell of each window that is its maximum
    dmax : like rows, the gradient of each cell
    out, dx : what the layer that trains returns
    """

    def __init__(self, case: Case) -> None:
        assert case.upstream is not None
        self.case = case
        self.dout = case.upstream.values
        self.rows = _pool_rows(case)
        self.arg_max = self.rows.argmax(axis=1)
        self.layer = _layer(case)
        self.out = batch_first(self.layer.forward(batch_last(case.x.values))).copy()
        self.dx = self.backward(self.dout)
        self.dout_t = self.dout.transpose(0, 2, 3, 1)
        self.dmax = np.zeros(self.rows.shape)
        self.dmax[np.arange(self.arg_max.size), self.arg_max] = self.dout_t.ravel()

    def backward(self, dout: Array) -> Array:
        """Give the gradient of the images for another upstream gradient."""
        # a layer reuses the memory that it returns
        dx: Array = batch_first(self.layer.backward(batch_last(dout))).copy()
        return dx

    @property
    def pool_size(self) -> int:
        return int(self.rows.shape[1])

    @property
    def row_index(self) -> Index:
        """What the rows run over."""
        (N, C, _, _), (OH, OW) = self.case.shape, self.case.windows.output_size
        return Index(ROW_AXES, (N, OH, OW, C))

    @property
    def winners(self) -> Array:
        """The cell of each window that is its maximum, as images (N, C, OH, OW)."""
        winners: Array = self.arg_max.reshape(self.dout_t.shape).transpose(0, 3, 1, 2)
        return winners


def _pool_rows(case: Case) -> Array:
    """Lay the windows of every channel out as rows with the im2col that trains."""
    KH, KW = case.windows.kernel_size
    # im2col pads with 0, which may be a maximum; what is padding is told by an image of ones
    cols = np.where(case.im2col(np.ones(case.shape)) > 0, case.cols, -np.inf)
    return rows_of_columns(cols, case).reshape((-1, KH * KW))


def _layer(case: Case) -> MaxPool2D:
    kernel_size, stride, sides = case.windows.geometry
    # a layer takes the four sides too
    padding = cast(PaddingLike, sides)
    return MaxPool2D(case.shape[1:], kernel_size=kernel_size, stride=stride, padding=padding)
