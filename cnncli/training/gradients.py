"""The gradient of one mini-batch, computed in shards by several workers.

Which images form a shard, what each shard draws, and the order in which the shards' gradients are
added depend on the batch alone. So the result is the same, bit for bit, for every number of workers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cnncli.data import Augmentation, Normalization, Split, shard_slices
from cnncli.data.randomness import AUGMENTATION, DROPOUT, stream
from cnncli.nn import Network, softmax_cross_entropy
from cnncli.nn.layers.batch_norm import BatchStatistics, combined
from cnncli.nn.optimizers import parameter_pieces
from cnncli.training.divergence import Shard, all_finite, first_not_finite, origin_in_batch
from cnncli.training.workers import Workers, shared_array, shared_copy

# Shards in flight at once: each needs memory for a gradient of its own, so this bounds the memory
# of a large batch; it also bounds how many threads can be busy.
SHARDS_IN_FLIGHT = 16


@dataclass(frozen=True)
class BatchResult:
    """Mean loss over the batch in nats, images classified correctly, whether all gradients are finite."""

    loss: float
    n_correct: int
    has_finite_gradients: bool


class BatchGradients:
    """Computes the gradient of a mini-batch into ``network.parameters``.

    Parameters
    ----------
    network : its parameters' gradients receive the result; values, gradients and buffers move to
        shared memory
    workers : each owns a replica of the network
    split, normalization : what batches are taken from
    shard_size : see `shard_slices`
    label_smoothing : see `softmax_cross_entropy`
    seed : of the run; dropout and augmentation draw from (seed, step, shard)
    augmentation : changes the images; None leaves them as they are
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
        augmentation: Augmentation | None = None,
    ) -> None:
        self._network = network
        self._parameters = network.parameters
        for parameter in self._parameters.values():
            parameter.value, parameter.grad = shared_copy(parameter.value), shared_copy(parameter.grad)
        self._statistics = _BatchNormStatistics(network)
        self._split, self._normalization = split, normalization
        self._shard_size = shard_size
        self._label_smoothing = label_smoothing
        self._seed = seed
        self._augmentation = augmentation
        self._replicas = [network.replica() for _ in range(workers.n_workers)]
        # memory of slots that are never used is never touched, so it costs nothing
        self._slots = [
            {name: shared_array(p.value.shape, p.value.dtype) for name, p in self._parameters.items()}
            for _ in range(SHARDS_IN_FLIGHT)
        ]
        self._losses = shared_array((SHARDS_IN_FLIGHT,), np.float64)
        self._n_correct = shared_array((SHARDS_IN_FLIGHT,), np.int64)
        self._pieces = parameter_pieces(self._parameters)
        self._are_finite = shared_array((len(self._pieces),), np.bool_)
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
            self._statistics.gather(len(block), first=first == 0)
            self._add_pieces(len(self._pieces), len(block), first == 0)
        return BatchResult(loss, n_correct, bool(self._are_finite.all()))

    def update_averages(self) -> None:
        """Move the running averages of batch norms once, by what the batch computed last has shown."""
        self._statistics.update_averages()

    def origin_of_failure(self, indices: NDArray[np.int64], step: int) -> str:
        """Compute a batch whose loss or gradient was not finite again, and name the layer to blame."""
        shards = shard_slices(len(indices), self._shard_size)
        origin = origin_in_batch(
            self._network,
            (self._load(indices[part], step, number) for number, part in enumerate(shards)),
            batch_size=len(indices),
            label_smoothing=self._label_smoothing,
        )
        if origin is not None:
            return origin
        name, value = first_not_finite(self._network, {name: p.grad for name, p in self._parameters.items()})
        return f"the gradient of the {name} is {value}, though that of every shard is finite"

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
        replica, shard = self._replicas[worker], self._load(block[slot], step, first_shard + slot)
        for name, parameter in replica.parameters.items():
            parameter.grad = self._slots[slot][name]
        logits = replica.forward(shard.images, training=True, rng=shard.rng)
        self._statistics.note(slot, replica)
        self._losses[slot], grad_logits = softmax_cross_entropy(
            logits, shard.labels, label_smoothing=self._label_smoothing, divisor=batch_size
        )
        replica.backward(grad_logits, to_input=False)
        self._n_correct[slot] = np.count_nonzero(logits.argmax(axis=0) == shard.labels)

    def _load(self, indices: NDArray[np.int64], step: int, number: int) -> Shard:
        images = self._split.images[indices]  # (N, C, H, W)
        if self._augmentation is not None:
            images = self._augmentation.apply(images, stream(self._seed, AUGMENTATION, step, number))
        images = self._normalization.apply(images, self._network.dtype)  # (C, H, W, N)
        return Shard(images, self._split.labels[indices], stream(self._seed, DROPOUT, step, number))

    def _add_piece(self, worker: int, index: int, n_slots: int, first: bool) -> None:
        """Add the slots' gradients in shard order, onto those of earlier blocks."""
        name, part = self._pieces[index]
        total = self._parameters[name].grad.reshape(-1)[part]
        grads = [self._slots[slot][name].reshape(-1)[part] for slot in range(n_slots)]
        # the first sum is written where the total goes: a copy would be a pass through memory more
        if first and len(grads) > 1:
            np.add(grads.pop(0), grads.pop(0), out=total)
        elif first:
            total[...] = grads.pop(0)
        for grad in grads:
            total += grad
        self._are_finite[index] = all_finite(total)


class _BatchNormStatistics:
    """Carries what the batch norms see of each shard to the running averages: one update for each batch.

    Each shard writes to a slot of its own in shared memory, and the slots are put together in the order of
    the shards, so the result does not depend on who computed which.
    """

    def __init__(self, network: Network) -> None:
        self._norms = network.batch_norms
        for norm in self._norms:
            for name, buffer in norm.buffers.items():
                norm.buffers[name] = shared_copy(buffer)
        # (slot, mean and variance, C) for each layer
        self._moments = [
            shared_array((SHARDS_IN_FLIGHT, 2, norm.input_shape[0]), np.float64) for norm in self._norms
        ]
        self._counts = shared_array((SHARDS_IN_FLIGHT, len(self._norms)), np.int64)
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
