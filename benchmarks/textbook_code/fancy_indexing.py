"""im2col by arrays of indices, and back by ``np.add.at``, as in the assignments of CS231n.

``images[index] += cells`` would add once for each distinct index; ``np.add.at`` adds them all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from benchmarks.textbook_code import Array, Convolved, Implementation, Pooled


class Indices(NamedTuple):
    """Where each cell of the matrix (C*KH*KW, OH*OW) lies in the image."""

    channel: Array
    row: Array
    col: Array


def window_indices(shape: tuple[int, ...], KH: int, KW: int, stride: int) -> Indices:
    """Index the windows of images (N, C, H, W)."""
    _, C, H, W = shape
    channel, i, j = (axis.reshape(-1, 1) for axis in np.indices((C, KH, KW)))
    top, left = (axis.reshape(1, -1) for axis in np.indices(((H - KH) // stride + 1, (W - KW) // stride + 1)))
    return Indices(channel, i + stride * top, j + stride * left)


def im2col(images: Array, indices: Indices) -> Array:
    """Lay windows out as columns, the batch running fastest: (N, C, H, W) -> (C*KH*KW, OH*OW*N)."""
    cells = images[:, indices.channel, indices.row, indices.col]  # (N, C*KH*KW, OH*OW)
    cols: Array = cells.transpose(1, 2, 0).reshape(cells.shape[1], -1)
    return cols


def col2im(cols: Array, shape: tuple[int, ...], indices: Indices) -> Array:
    """Add every cell of the matrix back onto its pixel."""
    images = np.zeros(shape)
    cells = cols.reshape(cols.shape[0], -1, shape[0]).transpose(2, 0, 1)
    index: Any = (slice(None), indices.channel, indices.row, indices.col)
    np.add.at(images, index, cells)
    return images


def convolve(images: Array, weight: Array, bias: Array) -> Convolved:
    """Multiply the kernels by the windows."""
    N, _, H, W = images.shape
    F, _, KH, KW = weight.shape
    indices = window_indices(images.shape, KH, KW, stride=1)
    cols = im2col(images, indices)
    kernels = weight.reshape(F, -1)
    output = (
        (kernels @ cols + bias.reshape(-1, 1)).reshape(F, H - KH + 1, W - KW + 1, N).transpose(3, 0, 1, 2)
    )

    def backward(grad_output: Array) -> tuple[Array, Array, Array]:
        grad = grad_output.transpose(1, 2, 3, 0).reshape(F, -1)
        grad_weight = (grad @ cols.T).reshape(weight.shape)
        return col2im(kernels.T @ grad, images.shape, indices), grad_weight, grad.sum(axis=1)

    return Convolved(output, backward)


def max_pool(images: Array, size: int) -> Pooled:
    """Pool every channel as an image of its own, so that a column is one window."""
    N, C, H, W = images.shape
    single = (N * C, 1, H, W)
    indices = window_indices(single, size, size, stride=size)
    cols = im2col(images.reshape(single), indices)  # (size*size, OH*OW*N*C)
    winner, windows = cols.argmax(axis=0), np.arange(cols.shape[1])
    output = cols[winner, windows].reshape(H // size, W // size, N, C).transpose(2, 3, 0, 1)

    def backward(grad_output: Array) -> Array:
        scattered = np.zeros_like(cols)
        scattered[winner, windows] = grad_output.transpose(2, 3, 0, 1).ravel()
        return col2im(scattered, single, indices).reshape(images.shape)

    return Pooled(output, backward)


FANCY_INDEXING = Implementation(convolve, max_pool)
