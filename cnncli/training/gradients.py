"""The gradient of one mini-batch, computed in shards by several workers.

Which images form a shard, what each shard draws, and the order in which the shards' gradients are
added depend on the batch alone. So the result is the same, bit for bit, for every number of workers.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cnncli.data import Normalization, Split
from cnncli.data.randomness import DROPOUT, stream
from cnncli.nn import Network, softmax_cross_entropy
from cnncli.nn.optimizers import parameter_pieces
from cnncli.training.shared_memory import shared_array, shared_copy
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
    network : its parameters' gradients receive the result; values and gradients move to shared memory
    workers : each owns a replica of the network
    split, normalization : what batches are taken from
    shard_size : most images that one replica takes at once
    label_smoothing : see `softmax_cross_entropy`
    seed : of the run; dropout draws from (seed, step, shard)
    """

    def __init__(
        self,
        network: Network,
        workers: Workers,
        split: Split,
        normalization: Normalization,
        *,
        shard_size: int,
        label_smoothing: float,
        seed: int,
    ) -> None:
        self._network = network
        self._parameters = network.parameters
        for parameter in self._parameters.values():
            parameter.value, parameter.grad = shared_copy(parameter.value), shared_copy(parameter.grad)
        self._split, self._normalization = split, normalization
        self._shard_size = shard_size
        self._label_smoothing = label_smoothing
        self._seed = seed
        self._replicas = [network.replica() for _ in range(workers.n_workers)]
        # memory of slots that are never used is never touched, so it costs nothing
        self._slots = [
            {name: shared_array(p.value.shape, p.value.dtype) for name, p in self._parameters.items()}
            for _ in range(SHARDS_IN_FLIGHT)
        ]
        self._losses = shared_array((SHARDS_IN_FLIGHT,), np.float64)
        self._n_correct = shared_array((SHARDS_IN_FLIGHT,), np.int64)
        self._pieces = parameter_pieces(self._parameters)
        self._run_shards = workers.operation(self._run_shard)
        self._add_pieces = workers.operation(self._add_piece)

    def compute(self, indices: NDArray[np.int64], step: int) -> BatchResult:
        """Compute the gradient of the mean loss over the images of `indices`, as step number `step`."""
        shards = shard_slices(len(indices), self._shard_size)
        loss, n_correct = 0.0, 0
        for first in range(0, len(shards), SHARDS_IN_FLIGHT):
            block = [indices[part] for part in shards[first : first + SHARDS_IN_FLIGHT]]
            self._run_shards(len(block), block, len(indices), step, first)
            for slot in range(len(block)):
                loss += float(self._losses[slot])
                n_correct += int(self._n_correct[slot])
            self._add_pieces(len(self._pieces), len(block), first == 0)
        return BatchResult(loss, n_correct)

    def _run_shard(
        self,
        worker: int,
        slot: int,
        block: list[NDArray[np.int64]],
        batch_size: int,
        step: int,
        first_shard: int,
    ) -> None:
        """Forward, loss and backward of one shard, its gradients into its slot."""
        replica, indices = self._replicas[worker], block[slot]
        for name, parameter in replica.parameters.items():
            parameter.grad = self._slots[slot][name]
        images = self._normalization.apply(self._split.images[indices], self._network.dtype)  # (C, H, W, N)
        labels = self._split.labels[indices]
        rng = stream(self._seed, DROPOUT, step, first_shard + slot)
        logits = replica.forward(images, training=True, rng=rng)
        self._losses[slot], grad_logits = softmax_cross_entropy(
            logits, labels, label_smoothing=self._label_smoothing, divisor=batch_size
        )
        replica.parameter_gradients(grad_logits)
        self._n_correct[slot] = np.count_nonzero(logits.argmax(axis=0) == labels)

    def _add_piece(self, worker: int, index: int, n_slots: int, first: bool) -> None:
        """Add the slots' gradients in shard order, onto those of earlier blocks."""
        name, part = self._pieces[index]
        total = self._parameters[name].grad.reshape(-1)[part]
        grads = [self._slots[slot][name].reshape(-1)[part] for slot in range(n_slots)]
        if first:
            total[...] = grads.pop(0)
        for grad in grads:
            total += grad
