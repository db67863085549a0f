"""Mean and variance of the numbers of each channel, and how those of several shards become one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cnncli.nn.arrays import FloatArray


@dataclass(frozen=True)
class BatchStatistics:
    """What a batch norm has seen of each channel.

    Attributes
    ----------
    count : numbers of one channel, N*H*W
    mean : ndarray of shape (C,)
    variance : ndarray of shape (C,), biased: the mean of the squared distances from `mean`
    """

    count: int
    mean: FloatArray
    variance: FloatArray

    def unbiased_variance(self) -> FloatArray:
        """Estimate the variance of what the numbers were drawn from; needs a count of at least 2."""
        estimate: FloatArray = self.variance * (self.count / (self.count - 1))
        return estimate


def combined(a: BatchStatistics, b: BatchStatistics) -> BatchStatistics:
    """Return the statistics of two sets of numbers together, float64.

    Exact but for rounding (Chan, Golub and LeVeque 1979, "Updating formulae and a pairwise algorithm
    for computing sample variances", eq. 2.1). Rounding depends on the order of the shards, so it
    must be theirs and not that in which they are done.
    """
    count = a.count + b.count
    if count == 0:
        return a
    share = b.count / count
    distance = np.subtract(b.mean, a.mean, dtype=np.float64)
    mean = a.mean + share * distance
    variance = (1 - share) * a.variance + share * b.variance + share * (1 - share) * distance**2
    return BatchStatistics(count, mean, variance)
