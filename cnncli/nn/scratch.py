"""Memory that is kept between calls."""

from __future__ import annotations

import math

import numpy as np

from cnncli.nn.arrays import DType, FloatArray


class Scratch:
    """Uninitialised arrays by name, reused from call to call: fresh large arrays cost page faults.

    One flat buffer for each name serves every batch size; a smaller batch takes its first part.
    """

    def __init__(self) -> None:
        self._buffers: dict[str, FloatArray] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: DType) -> FloatArray:
        """Return an array of this shape; its contents are whatever was there."""
        size = math.prod(shape)
        flat = self._buffers.get(name)
        if flat is None or flat.size < size or flat.dtype != dtype:
            flat = self._buffers[name] = np.empty(size, dtype=dtype)
        return flat[:size].reshape(shape)
