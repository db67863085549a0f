"""Mistakes that many make, computed on purpose, to be shown beside the right numbers."""

from __future__ import annotations

import numpy as np

from cnncli.explain.textbook import Slide, crop, output_size, pad, pool_rows, window_indices
from cnncli.explain.walkthrough import Array


def col2im_that_stores(cols: Array, shape: tuple[int, ...], slide: Slide) -> Array:
    """Write ``=`` where ``+=`` belongs: of the cells of a pixel the last one stays."""
    N, C, H, W = shape
    (KH, KW), (SH, SW), sides = slide
    OH, OW = output_size((H, W), slide)
    cells = cols.reshape(C, KH, KW, OH, OW, N)
    padded = pad(np.zeros(shape), sides)
    for i in range(KH):
        for j in range(KW):
            window_cells = cells[:, i, j].transpose(3, 0, 1, 2)
            padded[:, :, i : i + SH * OH : SH, j : j + SW * OW : SW] = window_cells
    return crop(padded, sides)


def col2im_that_adds_once(cols: Array, shape: tuple[int, ...], slide: Slide) -> Array:
    """Add through an index that names a pixel several times: NumPy adds once for each distinct index."""
    c, h, w = window_indices(shape, slide)
    padded = pad(np.zeros(shape), slide.sides)
    padded[:, c, h, w] += cols.reshape(cols.shape[0], -1, shape[0]).transpose(2, 0, 1)
    return crop(padded, slide.sides)


def pool_that_pays_ties(x: Array, dout: Array, slide: Slide) -> Array:
    """Give the gradient to every cell that equals the maximum, as rows (N*OH*OW*C, KH*KW)."""
    rows = pool_rows(x, slide)
    paid: Array = (rows == rows.max(axis=1, keepdims=True)) * dout.transpose(0, 2, 3, 1).reshape(-1, 1)
    return paid


def pool_that_stores(winners: Array, dout: Array, shape: tuple[int, ...], slide: Slide) -> Array:
    """Write the gradient of each window (N, C, OH, OW) onto the pixel that won it: the last one stays."""
    (_, KW), (SH, SW), (top, _, left, _) = slide
    n, c, oh, ow = np.indices(dout.shape)
    i, j = np.divmod(winners, KW)
    dx = np.zeros(shape)
    dx[n, c, oh * SH + i - top, ow * SW + j - left] = dout
    return dx
