"""The connected parts of a mask; pixels that touch at a corner are connected."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def label_parts(mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Number the connected parts of a mask (H, W) from 1; 0 stands for what is not in it.

    Runs of pixels in a row are joined with those that they touch in the row before.
    """
    H, W = mask.shape
    edges = np.diff(np.pad(mask, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    rows, starts = np.nonzero(edges == 1)
    stops = np.nonzero(edges == -1)[1]
    first_of_row = np.searchsorted(rows, np.arange(H + 1)).tolist()
    parents = _joined(first_of_row, starts.tolist(), stops.tolist())
    roots = np.array([_root(parents, run) for run in range(len(parents))], np.int64)
    _, numbers = np.unique(roots, return_inverse=True)
    labels = np.zeros(H * W, np.int64)
    # in row-major order the pixels of the mask are those of the runs
    labels[mask.ravel()] = np.repeat(numbers.ravel() + 1, stops - starts)
    return labels.reshape(H, W)


def _joined(first_of_row: list[int], starts: list[int], stops: list[int]) -> list[int]:
    """Return a parent for every run; runs of one part have the same root."""
    parents = list(range(len(starts)))
    for row in range(1, len(first_of_row) - 1):
        above, end_above = first_of_row[row - 1], first_of_row[row]
        run, end = end_above, first_of_row[row + 1]
        while above < end_above and run < end:
            if starts[above] <= stops[run] and starts[run] <= stops[above]:
                parents[_root(parents, run)] = _root(parents, above)
            if stops[above] < stops[run]:
                above += 1
            else:
                run += 1
    return parents


def _root(parents: list[int], run: int) -> int:
    while parents[run] != run:
        # halving the path keeps it short
        parents[run] = parents[parents[run]]
        run = parents[run]
    return run
