"""Resampling by area: every new pixel is the mean of what it covers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Plane = NDArray[np.float32]


def resized(plane: Plane, shape: tuple[int, int]) -> Plane:
    """Resample a plane (H, W) to another shape, larger or smaller along each axis."""
    rows, columns = (_coverage(n, n_new) for n, n_new in zip(plane.shape, shape, strict=True))
    result: Plane = rows @ plane @ columns.T
    return result


def shrunk(plane: NDArray[np.number], longest: int) -> Plane:
    """Take the means of square blocks, so that no side is longer than about `longest`; or the plane itself.

    Up to a block less one pixel is cut off at the right and at the bottom.
    """
    block = -(-max(plane.shape) // longest)
    # a side shorter than a block is one block
    height, width = (min(block, size) for size in plane.shape)
    n_rows, n_columns = plane.shape[0] // height, plane.shape[1] // width
    kept = plane[: n_rows * height, : n_columns * width]
    means: Plane = kept.reshape(n_rows, height, n_columns, width).mean(axis=(1, 3), dtype=np.float32)
    return means


def blurred(plane: Plane, times: int) -> Plane:
    """Weigh every pixel with its neighbours by 1, 2, 1 along both axes, several times; edges are repeated."""
    for _ in range(times):
        for axis in (0, 1):
            padding = [(1, 1) if a == axis else (0, 0) for a in (0, 1)]
            padded = np.moveaxis(np.pad(plane, padding, mode="edge"), axis, 0)
            mixed = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / np.float32(4)
            plane = np.moveaxis(mixed, 0, axis)
    return plane


def _coverage(n: int, n_new: int) -> Plane:
    """Return the matrix (n_new, n) of the share that each old pixel has in each new one."""
    step = n / n_new
    starts = np.arange(n_new)[:, np.newaxis] * step
    pixels = np.arange(n)
    overlap = np.minimum(starts + step, pixels + 1) - np.maximum(starts, pixels)
    shares: Plane = (np.maximum(overlap, 0) / step).astype(np.float32)
    return shares
