"""Array types, and the two orders of axes: batch last inside the network, batch first outside."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cnncli.errors import ShapeError

# float32 in training, float64 in gradient checks; layers never cast between the two
FloatArray: TypeAlias = NDArray[Any]
FLOAT_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))
IntArray: TypeAlias = NDArray[np.integer[Any]]
DType: TypeAlias = np.dtype[Any] | type[np.floating[Any]] | type[np.bool_]


def batch_last(images: NDArray[Any]) -> NDArray[Any]:
    """Turn images (N, C, H, W) into a contiguous array (C, H, W, N)."""
    return np.ascontiguousarray(np.moveaxis(_of_rank_4(images, "(N, C, H, W)"), 0, -1))


def batch_first(images: NDArray[Any]) -> NDArray[Any]:
    """Turn images (C, H, W, N) into a contiguous array (N, C, H, W)."""
    return np.ascontiguousarray(np.moveaxis(_of_rank_4(images, "(C, H, W, N)"), -1, 0))


def _of_rank_4(images: NDArray[Any], axes: str) -> NDArray[Any]:
    images = np.asarray(images)
    if images.ndim != 4:
        raise ShapeError(f"expected images of shape {axes}, got an array of shape {images.shape}")
    return images
