"""The definition itself, one number at a time."""

from __future__ import annotations

from itertools import product

import numpy as np

from benchmarks.textbook_code import Array, Convolved, Implementation, Pooled


def convolve(images: Array, weight: Array, bias: Array) -> Convolved:
    """Add up the products of every window with every kernel."""
    N, C, H, W = images.shape
    F, _, KH, KW = weight.shape
    OH, OW = H - KH + 1, W - KW + 1
    output = np.zeros((N, F, OH, OW))
    for n, f, oh, ow in product(range(N), range(F), range(OH), range(OW)):
        total = bias[f]
        for c, i, j in product(range(C), range(KH), range(KW)):
            total += images[n, c, oh + i, ow + j] * weight[f, c, i, j]
        output[n, f, oh, ow] = total

    def backward(grad_output: Array) -> tuple[Array, Array, Array]:
        grad_input, grad_weight, grad_bias = np.zeros(images.shape), np.zeros(weight.shape), np.zeros(F)
        for n, f, oh, ow in product(range(N), range(F), range(OH), range(OW)):
            grad = grad_output[n, f, oh, ow]
            grad_bias[f] += grad
            for c, i, j in product(range(C), range(KH), range(KW)):
                grad_weight[f, c, i, j] += grad * images[n, c, oh + i, ow + j]
                grad_input[n, c, oh + i, ow + j] += grad * weight[f, c, i, j]
        return grad_input, grad_weight, grad_bias

    return Convolved(output, backward)


def max_pool(images: Array, size: int) -> Pooled:
    """Look through every window; the first of equal numbers wins."""
    N, C, H, W = images.shape
    output = np.full((N, C, H // size, W // size), -np.inf)
    winner = np.zeros((*output.shape, 2), dtype=np.int64)
    for place in np.ndindex(output.shape):
        n, c, oh, ow = place
        for i, j in product(range(size), range(size)):
            value = images[n, c, oh * size + i, ow * size + j]
            if value > output[place]:
                output[place], winner[place] = value, (oh * size + i, ow * size + j)

    def backward(grad_output: Array) -> Array:
        grad_input = np.zeros(images.shape)
        for n, c, oh, ow in np.ndindex(output.shape):
            row, col = winner[n, c, oh, ow]
            grad_input[n, c, row, col] += grad_output[n, c, oh, ow]
        return grad_input

    return Pooled(output, backward)


PLAIN_LOOPS = Implementation(convolve, max_pool)
