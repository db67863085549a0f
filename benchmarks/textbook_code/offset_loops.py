"""im2col by a loop over the cells of the kernel, as in "Deep Learning from Scratch", chapter 7.

The matrix has one row for each window, so it is transposed on the way in and on the way out.
"""

from __future__ import annotations

import numpy as np

from benchmarks.textbook_code import Array, Convolved, Implementation, Pooled


def im2col(images: Array, KH: int, KW: int, stride: int) -> Array:
    """Lay windows out as rows: (N, C, H, W) -> (N*OH*OW, C*KH*KW)."""
    N, C, H, W = images.shape
    OH, OW = (H - KH) // stride + 1, (W - KW) // stride + 1
    cells = np.zeros((N, C, KH, KW, OH, OW))
    for i in range(KH):
        for j in range(KW):
            cells[:, :, i, j] = images[:, :, i : i + stride * OH : stride, j : j + stride * OW : stride]
    rows: Array = cells.transpose(0, 4, 5, 1, 2, 3).reshape(N * OH * OW, -1)
    return rows


def col2im(rows: Array, shape: tuple[int, ...], KH: int, KW: int, stride: int) -> Array:
    """Add every cell of the matrix back onto its pixel."""
    N, C, H, W = shape
    OH, OW = (H - KH) // stride + 1, (W - KW) // stride + 1
    cells = rows.reshape(N, OH, OW, C, KH, KW).transpose(0, 3, 4, 5, 1, 2)
    images = np.zeros(shape)
    for i in range(KH):
        for j in range(KW):
            images[:, :, i : i + stride * OH : stride, j : j + stride * OW : stride] += cells[:, :, i, j]
    return images


def convolve(images: Array, weight: Array, bias: Array) -> Convolved:
    """Multiply the windows by the kernels."""
    N, _, H, W = images.shape
    F, _, KH, KW = weight.shape
    OH, OW = H - KH + 1, W - KW + 1
    rows = im2col(images, KH, KW, stride=1)
    kernels = weight.reshape(F, -1).T
    output = (np.dot(rows, kernels) + bias).reshape(N, OH, OW, F).transpose(0, 3, 1, 2)

    def backward(grad_output: Array) -> tuple[Array, Array, Array]:
        grad = grad_output.transpose(0, 2, 3, 1).reshape(-1, F)
        grad_weight = np.dot(rows.T, grad).transpose(1, 0).reshape(weight.shape)
        grad_input = col2im(np.dot(grad, kernels.T), images.shape, KH, KW, stride=1)
        return grad_input, grad_weight, grad.sum(axis=0)

    return Convolved(output, backward)


def max_pool(images: Array, size: int) -> Pooled:
    """Take the maximum of each row of windows, and scatter its gradient into a matrix of zeros."""
    N, C, H, W = images.shape
    OH, OW = H // size, W // size
    rows = im2col(images, size, size, stride=size).reshape(-1, size * size)
    winner = rows.argmax(axis=1)
    output = rows.max(axis=1).reshape(N, OH, OW, C).transpose(0, 3, 1, 2)

    def backward(grad_output: Array) -> Array:
        grad = grad_output.transpose(0, 2, 3, 1)
        scattered = np.zeros((grad.size, size * size))
        scattered[np.arange(winner.size), winner] = grad.flatten()
        return col2im(scattered.reshape(N * OH * OW, -1), images.shape, size, size, stride=size)

    return Pooled(output, backward)


OFFSET_LOOPS = Implementation(convolve, max_pool)
