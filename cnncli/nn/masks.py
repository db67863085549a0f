"""Keeping some numbers and zeroing the others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cnncli.nn.arrays import FloatArray


def keep_where(mask: NDArray[np.bool_], x: FloatArray, out: FloatArray) -> FloatArray:
    """Write x where the mask is true and 0 elsewhere.

    The mask is turned into floats first: multiplying by booleans makes NumPy convert them through
    a small buffer, which is slower, and ``np.where`` is slower by far.
    """
    np.copyto(out, mask)
    np.multiply(out, x, out=out)
    return out
