"""The order of the images in an epoch, and where it is cut: into batches, and these into shards."""

from __future__ import annotations

from itertools import pairwise

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


def shard_slices(n: int, shard_size: int) -> list[slice]:
    """Cut a batch of n images into shards of about `shard_size` whose lengths differ by one at most.

    One for n up to `shard_size`, else the even number nearest to ``n / shard_size``: of three shards, one of
    two workers would take two. So a shard has at most half as many images again as `shard_size`.
    """
    n_shards = 1 if n <= shard_size else max((n + shard_size) // (2 * shard_size) * 2, 2)
    edges = [n * index // min(n_shards, n) for index in range(min(n_shards, n) + 1)]
    return [slice(start, stop) for start, stop in pairwise(edges)]
