"""im2col in blocks of windows whose matrix stays in the processor's cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from cnncli.nn.arrays import FloatArray
from cnncli.nn.scratch import Scratch
from cnncli.nn.windows import Windows, im2col

# The matrix of one block. The product reads it right after it was written, so it should still be in
# the second-level cache.
BLOCK_BYTES = 1024 * 1024
# Up to this size the matrices of all blocks are kept for backward; beyond, laying them out again is
# cheaper than fetching them from memory.
KEPT_BYTES = 4 * 1024 * 1024


class Block(NamedTuple):
    """Some rows of windows: the part of the image they read, their geometry over it, their place.

    `rows` and `columns` choose that part of the image. `first` and `end` count windows: for a batch of N
    the matrix of outputs holds those of the block in its columns first*N to end*N.
    """

    rows: slice
    columns: slice
    windows: Windows
    first: int
    end: int


def bands(n_rows: int, row_bytes: int) -> list[tuple[int, int]]:
    """Cut rows into nearly equal bands of about BLOCK_BYTES: [(first, end), ...]."""
    # at least one, for a batch without images too
    n_bands = min(max(-(-n_rows * row_bytes // BLOCK_BYTES), 1), n_rows)
    return [(n_rows * band // n_bands, n_rows * (band + 1) // n_bands) for band in range(n_bands)]


def cut_into_blocks(
    windows: Windows,
    window_bytes: int,
    start: tuple[int, int] = (0, 0),
    step: tuple[int, int] = (1, 1),
    count: tuple[int, int] | None = None,
) -> list[Block]:
    """Cut windows into blocks; `start`, `step` and `count` choose some of them as in `Windows.subset`.

    `window_bytes` is the size of one window's column for the whole batch.
    """
    OH, OW = windows.output_size if count is None else count
    return [
        Block(
            *windows.subset((start[0] + first * step[0], start[1]), step, (end - first, OW)),
            first * OW,
            end * OW,
        )
        for first, end in bands(OH, OW * window_bytes)
    ]


class BlockColumns:
    """The im2col matrices of a list of blocks, laid out one after the other, and again for backward."""

    def __init__(self) -> None:
        self._scratch = Scratch()
        self._x: FloatArray = np.empty(0)
        self._blocks: Sequence[Block] = ()
        self._kept: list[FloatArray] = []

    def lay_out(self, x: FloatArray, blocks: Sequence[Block]) -> Iterator[FloatArray]:
        """Yield the matrix (C*KH*KW, windows*N) of each block of x (C, H, W, N), valid for one iteration."""
        self._x, self._blocks, self._kept = x, blocks, []
        keep = (
            sum(self._shape(block)[1] for block in blocks) * self._shape(blocks[0])[0]
            <= KEPT_BYTES // x.itemsize
        )
        for index, block in enumerate(blocks):
            cols = self._matrix(block, f"block {index}" if keep else "block")
            if keep:
                self._kept.append(cols)
            yield cols

    def again(self) -> Iterator[FloatArray]:
        """Yield the matrices of the last `lay_out` once more."""
        if self._kept:
            yield from self._kept
        else:
            yield from (self._matrix(block, "block") for block in self._blocks)

    def _shape(self, block: Block) -> tuple[int, int]:
        KH, KW = block.windows.kernel_size
        return self._x.shape[0] * KH * KW, (block.end - block.first) * self._x.shape[-1]

    def _matrix(self, block: Block, name: str) -> FloatArray:
        out = self._scratch.array(name, self._shape(block), self._x.dtype)
        return im2col(self._x[:, block.rows, block.columns], *block.windows.geometry, out=out)
