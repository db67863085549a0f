"""How arrays lie in memory: the one page about speed below the layers.

A layer says what is computed; in which pieces, and where the numbers stand meanwhile, is decided here.

Scratch
    A fresh large array costs a page fault for every 4 KiB. A layer keeps its arrays and takes them
    again for the next shard.
Blocks
    The im2col matrix of a shard is larger than any cache. A convolution takes some rows of windows at
    a time, so that the product reads the matrix from the cache that im2col wrote it to.
Cell by cell
    A 2x2 max-pool compares four outputs of the convolution before it. Read from an image, every other
    number of every other row is one of them. So a convolution before a pool writes its outputs as the
    pool reads them: first pixel (0, 0) of every window, then (0, 1), and so on. Each cell is a convolution
    of PH, PW times the stride; the pool then compares whole arrays, and an output that lies in no
    window of the pool is never computed.
Pieces
    Products of few rows are faster in pieces that the BLAS does not copy first.
Masks, short buffers
    Two habits of NumPy that cost more than the arithmetic, and the way around them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cnncli.nn.arrays import DType, FloatArray
from cnncli.nn.windows import Windows, im2col

# The matrix of one block: the second-level cache should still hold it when it is read.
BLOCK_BYTES = 1024 * 1024
# Up to this size the matrices of all blocks are kept for backward; beyond, laying them out again is
# cheaper than fetching them from memory.
KEPT_BYTES = 4 * 1024 * 1024
# Up to this many multiply-adds OpenBLAS multiplies matrices where they lie; above, it first copies them
# into a packed form. With the few rows of a first layer (24 x 25 weights) the copies take longer than
# the products: pieces are 1.4 to 2.8 times as fast.
UNPACKED_LIMIT = 1_000_000
# Narrower pieces would lose more in calls than they gain.
NARROWEST = 256
# Where the last axes that can be walked in one go hold fewer numbers than its buffer (8192 numbers),
# NumPy copies every operand through the buffer. With a short one it works in place: adding a
# (24, 10, 10, 32) part of an array onto a part of another is about three times as fast.
BUFFER_SIZE = 512


class Scratch:
    """Uninitialised arrays by name, reused from call to call.

    One flat buffer for each name serves every batch size; a smaller batch takes its first part.
    """

    def __init__(self) -> None:
        self._recent: dict[str, FloatArray] = {}
        self._buffers: dict[str, FloatArray] = {}

    def recent(self) -> dict[str, FloatArray]:
        """Return the arrays that were asked for since the last call of this method."""
        recent, self._recent = self._recent, {}
        return recent

    @property
    def nbytes(self) -> int:
        """Memory that is kept for the next call."""
        return sum(flat.nbytes for flat in self._buffers.values())

    def array(self, name: str, shape: tuple[int, ...], dtype: DType) -> FloatArray:
        """Return an array of this shape; its contents are whatever was there."""
        size = math.prod(shape)
        flat = self._buffers.get(name)
        if flat is None or flat.size < size or flat.dtype != dtype:
            flat = self._buffers[name] = np.empty(size, dtype=dtype)
        array = self._recent[name] = flat[:size].reshape(shape)
        return array


class Block(NamedTuple):
    """Some windows of a convolution: the part of the image that they read, and the place of their outputs.

    Attributes
    ----------
    rows, columns : that part of the image
    windows : their geometry over it
    cell : the cell of the pool's window that their outputs are compared in; 0 without a pool
    place : these windows among those of the cell
    """

    rows: slice
    columns: slice
    windows: Windows
    cell: int
    place: slice

    def pixels(self, x: FloatArray) -> FloatArray:
        """View the part of images (C, H, W, N) that these windows read."""
        return x[:, self.rows, self.columns]

    def outputs(self, y: FloatArray) -> FloatArray:
        """View the outputs of these windows in (cells, F, windows, N): as a matrix (F, n*N)."""
        part: FloatArray = y[self.cell, :, self.place]
        return part.reshape(part.shape[0], -1)


@lru_cache(maxsize=1024)
def cut_into_blocks(windows: Windows, window_bytes: int, pool: Windows | None = None) -> tuple[Block, ...]:
    """Cut the windows of a convolution into blocks of whole rows, about BLOCK_BYTES of im2col each.

    Parameters
    ----------
    window_bytes : size of one window's column for the whole batch
    pool : a max-pool for whose windows the outputs are laid out cell by cell; None for row by row
    """
    (PH, PW), (OH, OW) = (1, 1), windows.output_size
    if pool is not None:
        (PH, PW), (OH, OW) = pool.kernel_size, pool.output_size
    # at least one, for a batch without images too
    n_bands = min(max(-(-OH * OW * window_bytes // BLOCK_BYTES), 1), OH)
    edges = [OH * band // n_bands for band in range(n_bands + 1)]
    return tuple(
        Block(
            *windows.subset((PH * first + i, j), (PH, PW), (end - first, OW)),
            cell=PW * i + j,
            place=slice(first * OW, end * OW),
        )
        for i in range(PH)
        for j in range(PW)
        for first, end in pairwise(edges)
    )


class Columns:
    """The im2col matrices of a convolution, block by block, and once more for backward.

    Parameters
    ----------
    windows, pool : see `cut_into_blocks`
    scratch : where the matrices are kept
    """

    def __init__(self, windows: Windows, pool: Windows | None, scratch: Scratch) -> None:
        self._windows, self._pool, self._scratch = windows, pool, scratch
        self._x: FloatArray = np.empty((0, 0, 0, 0))
        self._kept: list[tuple[Block, FloatArray]] = []

    def lay_out(self, x: FloatArray) -> Iterator[tuple[Block, FloatArray]]:
        """Yield each block of images (C, H, W, N) with its matrix (C*KH*KW, n*N), valid for one iteration."""
        self._x, self._kept = x, []
        blocks = self._blocks()
        keep = sum(math.prod(self._shape(block)) for block in blocks) * x.itemsize <= KEPT_BYTES
        for number, block in enumerate(blocks):
            cols = self._matrix(block, f"cols {number}" if keep else "cols")
            if keep:
                self._kept.append((block, cols))
            yield block, cols

    def again(self) -> Iterator[tuple[Block, FloatArray]]:
        """Yield the same once more."""
        if self._kept:
            yield from self._kept
        else:
            yield from ((block, self._matrix(block, "cols")) for block in self._blocks())

    def _blocks(self) -> tuple[Block, ...]:
        return cut_into_blocks(self._windows, self._n_rows * self._x.shape[3] * self._x.itemsize, self._pool)

    @property
    def _n_rows(self) -> int:
        n_rows: int = self._x.shape[0] * math.prod(self._windows.kernel_size)
        return n_rows

    def _shape(self, block: Block) -> tuple[int, int]:
        n_windows: int = block.place.stop - block.place.start
        return self._n_rows, n_windows * self._x.shape[3]

    def _matrix(self, block: Block, name: str) -> FloatArray:
        out = self._scratch.array(name, self._shape(block), self._x.dtype)
        return im2col(block.pixels(self._x), block.windows, out=out)


def cells_of(images: FloatArray, windows: Windows) -> list[FloatArray]:
    """View images (C, H, W, N), padding included, cell by cell: KH*KW arrays (C, OH, OW, N)."""
    (KH, KW), (SH, SW), (OH, OW) = windows.kernel_size, windows.stride, windows.output_size
    return [
        images[:, i : i + SH * (OH - 1) + 1 : SH, j : j + SW * (OW - 1) + 1 : SW]
        for i in range(KH)
        for j in range(KW)
    ]


def multiply(left: FloatArray, right: FloatArray, out: FloatArray) -> None:
    """Write ``left @ right`` to `out`: (M, K) @ (K, L) -> (M, L)."""
    n = n_pieces(left.shape[0] * left.shape[1], right.shape[1])
    np.matmul(left, _by_columns(right, n), out=_by_columns(out, n))


def multiply_transposed(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return ``left @ right.T``: (M, L), (K, L) -> (M, K), summed over pieces of the long axis L."""
    n = n_pieces(left.shape[0] * right.shape[0], left.shape[1])
    pieces: FloatArray = np.matmul(_by_columns(left, n), _by_columns(right, n).transpose(0, 2, 1))
    total: FloatArray = pieces.sum(axis=0)
    return total


def row_sums(matrix: FloatArray) -> FloatArray:
    """Sum each row of (M, L): a product with ones is several times as fast as ``sum(axis=1)``."""
    sums: FloatArray = matrix @ np.ones(matrix.shape[1], dtype=matrix.dtype)
    return sums


@lru_cache(maxsize=1024)
def n_pieces(area: int, length: int) -> int:
    """Choose into how many equal pieces to cut the long axis of a product of area x length multiply-adds."""
    for n in range(-(-area * length // UNPACKED_LIMIT), length // NARROWEST + 1):
        if n and length % n == 0:
            return n
    return 1


def _by_columns(matrix: FloatArray, n: int) -> FloatArray:
    """View (R, L) as n matrices (R, L / n): np.matmul multiplies all of them in one call."""
    pieces: FloatArray = matrix.reshape(matrix.shape[0], n, -1).transpose(1, 0, 2)
    return pieces


def keep_where(mask: NDArray[np.bool_], x: FloatArray, out: FloatArray) -> FloatArray:
    """Write x where the mask is true and 0 elsewhere.

    The mask is turned into floats first: multiplying by booleans makes NumPy convert them through
    a small buffer, which is slower, and ``np.where`` is slower by far.
    """
    np.copyto(out, mask)
    return np.multiply(out, x, out=out)


@contextmanager
def short_buffers() -> Iterator[None]:
    """Let NumPy combine parts of arrays in place, in the calling thread; also a decorator."""
    before = np.setbufsize(BUFFER_SIZE)
    try:
        yield
    finally:
        np.setbufsize(before)
