"""The gradient of one mini-batch, computed in shards by worker threads.

Which images form a shard, what each shard draws, and the order in which the shards' gradients are
added depend on the batch alone. So the result is the same, bit for bit, for every number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cnncli.data import Normalization, Split
from cnncli.data.randomness import DROPOUT, stream
from cnncli.nn import Network, softmax_cross_entropy
from cnncli.nn.arrays import FloatArray
from cnncli.nn.optimizers import parameter_pieces
from cnncli.training.workers import Workers

# Shards in flight at once: each needs memory for a gradient of its own, so this bounds the memory
# of a large batch; it also bounds how many threads can be busy.
SHARDS_IN_FLIGHT = 16


@dataclass(frozen=True)
class BatchResult:
    """Mean loss over the batch in nats, and how many images were classified correctly."""

    loss: float
    n_correct: int


def shard_slices(n: int, shard_size: int) -> list[slice]:
    """Cut n images into ceil(n / shard_size) runs whose lengths differ by one at most."""
    n_shards = -(-n // shard_size)
    edges = [n * index // n_shards for index in range(n_shards + 1)]
    return [slice(start, stop) for start, stop in pairwise(edges)]


class BatchGradients:
    """Computes the gradient of a mini-batch into ``network.parameters``.

    Parameters
    ----------
    network : its parameters' gradients receive the result
    workers : threads; each owns a replica of the network
    shard_size : most images that one replica takes at once
    label_smoothing : see `softmax_cross_entropy`
    seed : of the run; dropout draws from (seed, step, shard)
    """

    def __init__(
        self, network: Network, workers: Workers, *, shard_size: int, label_smoothing: float, seed: int
    ) -> None:
        self._network = network
        self._workers = workers
        self._shard_size = shard_size
        self._label_smoothing = label_smoothing
        self._seed = seed
        self._replicas = [network.replica() for _ in range(workers.n_workers)]
        self._slots: list[dict[str, FloatArray]] = []
        self._parameters = network.parameters
        self._pieces = parameter_pieces(self._parameters)

    def compute(
        self, split: Split, normalization: Normalization, indices: NDArray[np.int64], step: int
    ) -> BatchResult:
        """Compute the gradient of the mean loss over ``split[indices]``, as step number `step`."""
        shards = shard_slices(len(indices), self._shard_size)
        losses = [0.0] * len(shards)
        correct = [0] * len(shards)

        for block_start in range(0, len(shards), SHARDS_IN_FLIGHT):
            block = shards[block_start : block_start + SHARDS_IN_FLIGHT]
            self._allocate_slots(len(block))

            def run_shard(
                worker: int, slot: int, block: list[slice] = block, start: int = block_start
            ) -> None:
                chosen = indices[block[slot]]
                shard = start + slot
                images = normalization.apply(split.images[chosen], self._network.dtype)  # (C, H, W, N)
                losses[shard], correct[shard] = self._run_shard(
                    worker, slot, images, split.labels[chosen], len(indices), (step, shard)
                )

            self._workers.run(len(block), run_shard)
            self._add_up(len(block), first=block_start == 0)
        return BatchResult(sum(losses), sum(correct))

    def _run_shard(
        self,
        worker: int,
        slot: int,
        images: FloatArray,
        labels: NDArray[np.int64],
        batch_size: int,
        place: tuple[int, int],
    ) -> tuple[float, int]:
        """Forward, loss and backward of one shard, its gradients into its slot."""
        replica = self._replicas[worker]
        for name, parameter in replica.parameters.items():
            parameter.grad = self._slots[slot][name]
        logits = replica.forward(images, training=True, rng=stream(self._seed, DROPOUT, *place))
        loss, grad_logits = softmax_cross_entropy(
            logits, labels, label_smoothing=self._label_smoothing, divisor=batch_size
        )
        replica.parameter_gradients(grad_logits)
        return loss, int(np.count_nonzero(logits.argmax(axis=0) == labels))

    def _allocate_slots(self, n_slots: int) -> None:
        while len(self._slots) < n_slots:
            self._slots.append({name: np.empty_like(p.value) for name, p in self._network.parameters.items()})

    def _add_up(self, n_slots: int, *, first: bool) -> None:
        """Add the slots' gradients in shard order, onto those of earlier blocks."""

        def add_piece(worker: int, index: int) -> None:
            name, part = self._pieces[index]
            total = self._parameters[name].grad.reshape(-1)[part]
            grads = [slot[name].reshape(-1)[part] for slot in self._slots[:n_slots]]
            if first:
                total[...] = grads.pop(0)
            for grad in grads:
                total += grad

        self._workers.run(len(self._pieces), add_piece)
