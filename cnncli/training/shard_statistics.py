"""What batch norms have seen of a batch, gathered from its shards."""

from __future__ import annotations

import numpy as np

from cnncli.nn import Network
from cnncli.nn.batch_statistics import BatchStatistics, combined
from cnncli.training.shared_memory import shared_array, shared_copy


class ShardStatistics:
    """Carries the statistics of the shards to the running averages, which take one update per batch.

    Each shard writes to a slot of its own in shared memory, and the slots are put together in the order of
    the shards, so the result does not depend on who computed which.

    Parameters
    ----------
    network : owns the running averages, which move to shared memory, where all workers read them
    n_slots : shards in flight at once
    """

    def __init__(self, network: Network, n_slots: int) -> None:
        self._norms = network.batch_norms
        for norm in self._norms:
            for name, buffer in norm.buffers.items():
                norm.buffers[name] = shared_copy(buffer)
        # (slot, mean and variance, C) for each layer
        self._moments = [shared_array((n_slots, 2, norm.input_shape[0]), np.float64) for norm in self._norms]
        self._counts = shared_array((n_slots, len(self._norms)), np.int64)
        self._batch: list[BatchStatistics] = []

    def note(self, slot: int, replica: Network) -> None:
        """Write down what the last forward of a replica has seen."""
        for index, norm in enumerate(replica.batch_norms):
            seen = norm.statistics
            assert seen is not None
            self._counts[slot, index] = seen.count
            self._moments[index][slot] = seen.mean, seen.variance

    def gather(self, n_slots: int, *, first: bool) -> None:
        """Put the first slots together, and with those of the batch's earlier calls."""
        for slot in range(n_slots):
            shard = [self._slot(slot, index) for index in range(len(self._norms))]
            if first and slot == 0:
                self._batch = shard
            else:
                self._batch = [combined(*pair) for pair in zip(self._batch, shard, strict=True)]

    def update_averages(self) -> None:
        """Move the running averages towards what was gathered."""
        for norm, statistics in zip(self._norms, self._batch, strict=True):
            norm.update_averages(statistics)

    def _slot(self, slot: int, index: int) -> BatchStatistics:
        mean, variance = self._moments[index][slot].copy()  # the next shards overwrite it
        return BatchStatistics(int(self._counts[slot, index]), mean, variance)
