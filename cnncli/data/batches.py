"""The order of the images in an epoch, and where it is cut into batches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cnncli.data.randomness import EPOCH_ORDER, stream
from cnncli.errors import OptionError


def epoch_order(n: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """Return the permutation of n images for one epoch; it depends on the arguments alone."""
    return stream(seed, EPOCH_ORDER, epoch).permutation(n)


def batch_slices(n: int, batch_size: int) -> list[slice]:
    """Cut n images into batches; the last one is shorter where `batch_size` does not divide n.

    Raises
    ------
    OptionError : `batch_size` is below 1
    """
    if batch_size < 1:
        raise OptionError("batch_size", "an integer of at least 1", repr(batch_size))
    return [slice(start, min(start + batch_size, n)) for start in range(0, n, batch_size)]
