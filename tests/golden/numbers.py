"""Numbers that are the same on every machine, with every release of NumPy."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def numbers(seed: int, *shape: int) -> NDArray[np.float64]:
    """Draw float64 numbers from -1 to 1.

    SplitMix64 (Steele, Lea and Flood 2014) on a counter: NumPy may change the streams of its own
    generators, and then every golden array would be wrong.
    """
    counter = np.arange(1, math.prod(shape) + 1, dtype=np.uint64) + np.uint64(seed << 32)
    z = counter * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    drawn: NDArray[np.float64] = (z >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1
    return drawn.reshape(shape)
