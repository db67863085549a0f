"""The algorithms as textbooks write them, to compare with: batch first, and nothing shared with `cnncli.nn`.

Rows of windows as in "Deep Learning from Scratch" (chapter 7), and columns by arrays of indices as
in the assignments of CS231n. Images are (N, C, H, W), ``sides`` is (top, bottom, left, right).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cnncli.explain.walkthrough import Array

Pair = tuple[int, int]
FourSides = tuple[int, int, int, int]


class Slide(NamedTuple):
    """How a window slides over an image."""

    kernel_size: Pair
    stride: Pair
    sides: FourSides


class ConvGradients(NamedTuple):
    """The gradients of a convolution, each in the shape of what it belongs to."""

    x: Array
    weight: Array
    bias: Array


def output_size(image_size: Pair, slide: Slide) -> Pair:
    """Count the windows down and across; those that do not fit whole are left out."""
    (KH, KW), (SH, SW), (top, bottom, left, right) = slide
    return (image_size[0] + top + bottom - KH) // SH + 1, (image_size[1] + left + right - KW) // SW + 1


def pad(x: Array, sides: FourSides, value: float = 0.0) -> Array:
    """Put cells around every image."""
    top, bottom, left, right = sides
    return np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=value)


def crop(padded: Array, sides: FourSides) -> Array:
    """Take the padding away; counted from the start, as ``[0:-0]`` would be empty."""
    top, bottom, left, right = sides
    _, _, H, W = padded.shape
    return padded[:, :, top : H - bottom, left : W - right]


def im2col(x: Array, slide: Slide, value: float = 0.0) -> Array:
    """Lay every window out as a row: (N*OH*OW, C*KH*KW)."""
    N, C, H, W = x.shape
    (KH, KW), (SH, SW), sides = slide
    OH, OW = output_size((H, W), slide)
    padded = pad(x, sides, value)
    cells = np.zeros((N, C, KH, KW, OH, OW))
    for i in range(KH):
        for j in range(KW):
            cells[:, :, i, j] = padded[:, :, i : i + SH * OH : SH, j : j + SW * OW : SW]
    rows: Array = cells.transpose(0, 4, 5, 1, 2, 3).reshape((N * OH * OW, C * KH * KW))
    return rows


def col2im(rows: Array, shape: tuple[int, ...], slide: Slide) -> Array:
    """Add every cell of (N*OH*OW, C*KH*KW) onto the pixel it came from."""
    N, C, H, W = shape
    (KH, KW), (SH, SW), sides = slide
    OH, OW = output_size((H, W), slide)
    cells = rows.reshape(N, OH, OW, C, KH, KW).transpose(0, 3, 4, 5, 1, 2)
    padded = pad(np.zeros(shape), sides)
    for i in range(KH):
        for j in range(KW):
            padded[:, :, i : i + SH * OH : SH, j : j + SW * OW : SW] += cells[:, :, i, j]
    return crop(padded, sides)


def window_indices(shape: tuple[int, ...], slide: Slide) -> tuple[Array, Array, Array]:
    """Give channel, row and column in the padded image for each cell of (C*KH*KW, OH*OW)."""
    _, C, H, W = shape
    (KH, KW), (SH, SW), _ = slide
    OH, OW = output_size((H, W), slide)
    c, i, j = (axis.reshape(-1, 1) for axis in np.indices((C, KH, KW)))
    oh, ow = (axis.reshape(1, -1) for axis in np.indices((OH, OW)))
    return c, i + SH * oh, j + SW * ow


def im2col_by_index(x: Array, slide: Slide) -> Array:
    """Lay every window out as a column, the batch running fastest: (C*KH*KW, OH*OW*N)."""
    c, h, w = window_indices(x.shape, slide)
    cells = pad(x, slide.sides)[:, c, h, w]  # (N, C*KH*KW, OH*OW)
    cols: Array = cells.transpose(1, 2, 0).reshape((cells.shape[1], -1))
    return cols


def col2im_by_index(cols: Array, shape: tuple[int, ...], slide: Slide) -> Array:
    """Add every cell of (C*KH*KW, OH*OW*N) onto its pixel with ``np.add.at``."""
    c, h, w = window_indices(shape, slide)
    padded = pad(np.zeros(shape), slide.sides)
    by_image = cols.reshape(cols.shape[0], -1, shape[0]).transpose(2, 0, 1)
    for image, cells in zip(padded, by_image, strict=True):
        np.add.at(image, (c, h, w), cells)
    return crop(padded, slide.sides)


def conv(x: Array, weight: Array, bias: Array, slide: Slide) -> Array:
    """Multiply the rows of windows by the kernels: (N, F, OH, OW)."""
    N, _, H, W = x.shape
    F = len(weight)
    OH, OW = output_size((H, W), slide)
    out = np.dot(im2col(x, slide), weight.reshape(F, -1).T) + bias
    y: Array = out.reshape(N, OH, OW, F).transpose(0, 3, 1, 2)
    return y


def conv_backward(x: Array, weight: Array, dout: Array, slide: Slide) -> ConvGradients:
    """Give the three gradients for an upstream gradient (N, F, OH, OW)."""
    F = len(weight)
    rows = dout.transpose(0, 2, 3, 1).reshape(-1, F)  # (N*OH*OW, F)
    grad_weight = np.dot(im2col(x, slide).T, rows)  # (C*KH*KW, F)
    grad_x = col2im(np.dot(rows, weight.reshape(F, -1)), x.shape, slide)
    return ConvGradients(grad_x, grad_weight.T.reshape(weight.shape), rows.sum(axis=0))


def pool_rows(x: Array, slide: Slide) -> Array:
    """Lay every window of every channel out as a row, padding as minus infinity: (N*OH*OW*C, KH*KW)."""
    KH, KW = slide.kernel_size
    return im2col(x, slide, value=-np.inf).reshape(-1, KH * KW)


def max_pool(x: Array, slide: Slide) -> Array:
    """Take the largest number of each row of windows: (N, C, OH, OW)."""
    N, C, H, W = x.shape
    OH, OW = output_size((H, W), slide)
    y: Array = pool_rows(x, slide).max(axis=1).reshape(N, OH, OW, C).transpose(0, 3, 1, 2)
    return y


def max_pool_backward(x: Array, dout: Array, slide: Slide) -> Array:
    """Scatter an upstream gradient (N, C, OH, OW) to the winners of the rows, and add them up."""
    N, _, OH, OW = dout.shape
    arg_max = pool_rows(x, slide).argmax(axis=1)
    dout_t = dout.transpose(0, 2, 3, 1)
    dmax = np.zeros((dout.size, slide.kernel_size[0] * slide.kernel_size[1]))
    dmax[np.arange(arg_max.size), arg_max] = dout_t.flatten()
    return col2im(dmax.reshape(N * OH * OW, -1), x.shape, slide)
