"""Slow, obvious versions of what the package does fast: plain loops over batch-first arrays.

Images are (N, C, H, W), outputs (N, F, OH, OW); `sides` is the padding (top, bottom, left, right).
Nothing here knows how the package works.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Size: TypeAlias = tuple[int, int]
FourSides: TypeAlias = tuple[int, int, int, int]


class Window(NamedTuple):
    """One window: its place in the output, and its first row and column in the padded image."""

    oh: int
    ow: int
    top: int
    left: int


def starts(size: int, kernel: int, stride: int) -> list[int]:
    """List where the windows along one axis start, as long as they fit whole."""
    found = []
    start = 0
    while start + kernel <= size:
        found.append(start)
        start += stride
    return found


def same_sides(image_size: Size, kernel_size: Size, stride: Size) -> FourSides:
    """Find the least padding that gives ceil(size / stride) windows, the smaller half before."""
    halves: list[int] = []
    for size, kernel, step in zip(image_size, kernel_size, stride, strict=True):
        total = 0
        while len(starts(size + total, kernel, step)) < math.ceil(size / step):
            total += 1
        halves += [total // 2, total - total // 2]
    return halves[0], halves[1], halves[2], halves[3]


def windows(image_size: Size, kernel_size: Size, stride: Size, sides: FourSides) -> Iterator[Window]:
    """Yield every window in row-major order."""
    top, bottom, left, right = sides
    for oh, row in enumerate(starts(image_size[0] + top + bottom, kernel_size[0], stride[0])):
        for ow, col in enumerate(starts(image_size[1] + left + right, kernel_size[1], stride[1])):
            yield Window(oh, ow, row, col)


def output_size(image_size: Size, kernel_size: Size, stride: Size, sides: FourSides) -> Size:
    """Count the windows down and across."""
    last = list(windows(image_size, kernel_size, stride, sides))[-1]
    return last.oh + 1, last.ow + 1


def pad(images: Array, sides: FourSides) -> Array:
    """Put zeros around every image."""
    top, bottom, left, right = sides
    N, C, H, W = images.shape
    padded = np.zeros((N, C, H + top + bottom, W + left + right), images.dtype)
    padded[:, :, top : top + H, left : left + W] = images
    return padded


def crop(padded: Array, image_size: Size, sides: FourSides) -> Array:
    """Take the images out of their padding."""
    top, _, left, _ = sides
    return padded[:, :, top : top + image_size[0], left : left + image_size[1]]


def im2col(images: Array, kernel_size: Size, stride: Size, sides: FourSides) -> Array:
    """Write each cell of each window into row (c, i, j), column (oh, ow, n)."""
    N, C, H, W = images.shape
    KH, KW = kernel_size
    OH, OW = output_size((H, W), kernel_size, stride, sides)
    padded = pad(images, sides)
    cols = np.zeros((C * KH * KW, OH * OW * N), images.dtype)
    for window in windows((H, W), kernel_size, stride, sides):
        for n in range(N):
            for c in range(C):
                for i in range(KH):
                    for j in range(KW):
                        row = c * KH * KW + i * KW + j
                        column = (window.oh * OW + window.ow) * N + n
                        cols[row, column] = padded[n, c, window.top + i, window.left + j]
    return cols


def col2im(
    cols: Array, shape: tuple[int, int, int, int], kernel_size: Size, stride: Size, sides: FourSides
) -> Array:
    """Add each cell of the matrix onto the pixel it came from; `shape` is (N, C, H, W)."""
    N, C, H, W = shape
    KH, KW = kernel_size
    _, OW = output_size((H, W), kernel_size, stride, sides)
    padded = pad(np.zeros(shape, cols.dtype), sides)
    for window in windows((H, W), kernel_size, stride, sides):
        for n in range(N):
            for c in range(C):
                for i in range(KH):
                    for j in range(KW):
                        row = c * KH * KW + i * KW + j
                        column = (window.oh * OW + window.ow) * N + n
                        padded[n, c, window.top + i, window.left + j] += cols[row, column]
    return crop(padded, (H, W), sides)


def convolve(images: Array, weight: Array, bias: Array, stride: Size, sides: FourSides) -> Array:
    """Multiply every window by every kernel (F, C, KH, KW), sum, and add the bias (F,)."""
    N, _, H, W = images.shape
    F, _, KH, KW = weight.shape
    padded = pad(images, sides)
    output = np.zeros((N, F, *output_size((H, W), (KH, KW), stride, sides)), images.dtype)
    for window in windows((H, W), (KH, KW), stride, sides):
        for n in range(N):
            cells = padded[n, :, window.top : window.top + KH, window.left : window.left + KW]
            for f in range(F):
                output[n, f, window.oh, window.ow] = (cells * weight[f]).sum() + bias[f]
    return output


def convolve_backward(
    images: Array, weight: Array, stride: Size, sides: FourSides, grad_output: Array
) -> tuple[Array, Array, Array]:
    """Return the gradients of images, weight and bias.

    ``output = (cells * weight).sum() + bias`` gives each cell the weight, the weight each cell, and
    the bias 1, times the gradient of that output.
    """
    N, _, H, W = images.shape
    F, _, KH, KW = weight.shape
    padded = pad(images, sides)
    grad_padded = np.zeros_like(padded)
    grad_weight, grad_bias = np.zeros_like(weight), np.zeros(F, weight.dtype)
    for window in windows((H, W), (KH, KW), stride, sides):
        rows = slice(window.top, window.top + KH)
        cols = slice(window.left, window.left + KW)
        for n in range(N):
            for f in range(F):
                grad = grad_output[n, f, window.oh, window.ow]
                grad_padded[n, :, rows, cols] += weight[f] * grad
                grad_weight[f] += padded[n, :, rows, cols] * grad
                grad_bias[f] += grad
    return crop(grad_padded, (H, W), sides), grad_weight, grad_bias


def winner(image: Array, window: Window, kernel_size: Size, sides: FourSides) -> Size:
    """Find the first maximum of one window in an image (H, W), row by row, padding left out.

    A NaN counts as larger than every number.
    """
    H, W = image.shape
    best: Size | None = None
    for i in range(kernel_size[0]):
        for j in range(kernel_size[1]):
            h, w = window.top + i - sides[0], window.left + j - sides[2]
            if not (0 <= h < H and 0 <= w < W):
                continue
            if best is None:
                best = (h, w)
            elif math.isnan(image[best]):
                continue
            elif math.isnan(image[h, w]) or image[h, w] > image[best]:
                best = (h, w)
    assert best is not None
    return best


def max_pool(images: Array, kernel_size: Size, stride: Size, sides: FourSides) -> Array:
    """Take the maximum of every window."""
    N, C, H, W = images.shape
    output = np.zeros((N, C, *output_size((H, W), kernel_size, stride, sides)), images.dtype)
    for window in windows((H, W), kernel_size, stride, sides):
        for n in range(N):
            for c in range(C):
                image = images[n, c]
                output[n, c, window.oh, window.ow] = image[winner(image, window, kernel_size, sides)]
    return output


def max_pool_backward(
    images: Array, kernel_size: Size, stride: Size, sides: FourSides, grad_output: Array
) -> Array:
    """Add the gradient of every window onto its first maximum."""
    N, C, H, W = images.shape
    grad_images = np.zeros_like(images)
    for window in windows((H, W), kernel_size, stride, sides):
        for n in range(N):
            for c in range(C):
                h, w = winner(images[n, c], window, kernel_size, sides)
                grad_images[n, c, h, w] += grad_output[n, c, window.oh, window.ow]
    return grad_images


def cross_entropy(logits: Sequence[Sequence[float]], labels: Sequence[int], smoothing: float = 0.0) -> float:
    """Average ``-sum(target * log(probability))`` over the rows of logits, one row per image.

    Plain floats; only for logits whose exponentials do not overflow.
    """
    total = 0.0
    for row, label in zip(logits, labels, strict=True):
        K = len(row)
        normalizer = math.fsum(math.exp(logit) for logit in row)
        for k, logit in enumerate(row):
            target = smoothing / K + (1 - smoothing) * (k == label)
            total -= target * math.log(math.exp(logit) / normalizer)
    return total / len(labels)
