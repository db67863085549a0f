"""Matrix products in pieces of the size that the BLAS is fastest at."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cnncli.nn.arrays import FloatArray

# Up to this many multiply-adds OpenBLAS multiplies matrices where they lie; above, it first copies
# them into a packed form. With the few rows of a first layer (24 x 25 weights) the copies take
# longer than the products: pieces are 1.4 to 2.8 times faster.
_UNPACKED_LIMIT = 1_000_000
# Narrower pieces would lose more in calls than they gain.
_NARROWEST = 256


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
    """Sum each row of (M, L): a product with ones is several times faster than ``sum(axis=1)``."""
    sums: FloatArray = matrix @ np.ones(matrix.shape[1], dtype=matrix.dtype)
    return sums


def row_dots(left: FloatArray, right: FloatArray) -> FloatArray:
    """Multiply row by row: (M, L), (M, L) -> (M,), the sums of ``left * right``, which is never made."""
    dots: FloatArray = np.vecdot(left, right)
    return dots


@lru_cache(maxsize=1024)
def n_pieces(area: int, length: int) -> int:
    """Choose into how many equal pieces to cut the long axis of a product of area x length multiply-adds."""
    for n in range(-(-area * length // _UNPACKED_LIMIT), length // _NARROWEST + 1):
        if n and length % n == 0:
            return n
    return 1


def _by_columns(matrix: FloatArray, n: int) -> FloatArray:
    """View (R, L) as n matrices (R, L / n): np.matmul multiplies all of them in one call."""
    pieces: FloatArray = matrix.reshape(matrix.shape[0], n, -1).transpose(1, 0, 2)
    return pieces
