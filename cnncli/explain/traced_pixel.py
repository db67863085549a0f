"""One pixel to follow through a walk-through: of those that lie in most windows."""

from __future__ import annotations

import numpy as np

from cnncli.explain.case import Case
from cnncli.explain.im2col import origins
from cnncli.explain.walkthrough import Array


def cells_of_one_pixel(case: Case, cols: Array) -> tuple[int, int, Array]:
    """Choose a pixel of the first image and channel that lies in most windows; give its cells."""
    h, w, _ = windows_of_one_pixel(case)
    KH, KW = case.windows.kernel_size
    N, W = case.shape[0], case.shape[3]
    is_there = origins(case)[: KH * KW, ::N] == h * W + w
    return h, w, cols[: KH * KW, ::N][is_there]


def windows_of_one_pixel(case: Case) -> tuple[int, int, list[int]]:
    """Choose a pixel that lies in most windows; give the columns of these windows for the first image."""
    plane, coverage = case.x.values[0, 0], case.windows.coverage()
    most_covered = np.argwhere(coverage == coverage.max())
    h, w = (int(i) for i in most_covered[len(most_covered) // 2])
    if plane[h, w] == 0:  # as most of a digit is, and zeros show nothing
        h, w = (int(i) for i in max(most_covered, key=lambda place: abs(plane[tuple(place)])))
    KH, KW = case.windows.kernel_size
    N, W = case.shape[0], case.shape[3]
    is_there = (origins(case)[: KH * KW] == h * W + w).any(axis=0)
    is_there[np.arange(len(is_there)) % N != 0] = False
    return h, w, [int(column) for column in np.flatnonzero(is_there)]


def surroundings(case: Case, columns: list[int]) -> tuple[slice, slice]:
    """Give the rows and columns of the image that some windows of the first image cover."""
    W = case.shape[3]
    KH, KW = case.windows.kernel_size
    pixels = origins(case)[: KH * KW, columns]
    h, w = np.divmod(pixels[pixels >= 0].astype(int), W)
    return slice(int(h.min()), int(h.max()) + 1), slice(int(w.min()), int(w.max()) + 1)
