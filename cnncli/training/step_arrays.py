"""Every array of one training step, recorded while a shard really goes forward and backward.

A description of the blocks and of the exchanged layers could become wrong without anybody noticing;
docs/adr/0007-recorded-step.md says more. What NumPy makes and frees within a pass leaves no trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cnncli.config import Config, build_optimizer
from cnncli.data import shard_slices
from cnncli.errors import UsageError
from cnncli.nn import LayerPass, Network, softmax_cross_entropy
from cnncli.nn.arrays import FloatArray
from cnncli.nn.inspection import inspect_network
from cnncli.nn.layers import LAYER_NAMES, BatchNorm, Conv2D, Layer, ReLU
from cnncli.training.gradients import SHARDS_IN_FLIGHT

# far more than there are images; the shards of a batch are counted one by one
MAX_BATCH_SIZE = 1_000_000
# a shard with more than that is refused: its arrays are really made
MAX_ACTIVATION_BYTES = 4 * 2**30


@dataclass(frozen=True)
class StepArray:
    """One array, or several of one name: `shape` is that of the largest, `nbytes` their sum."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    count: int
    nbytes: int


@dataclass(frozen=True)
class PassArrays:
    """The arrays that one pass through a layer writes, in the order in which it asks for them.

    Attributes
    ----------
    kind : "forward"; of backward "parameters" or "input"
    index, name : place of the layer in the network, and its name in the configuration
    note : how the layer that is computed differs from the one in the configuration; mostly empty
    """

    kind: str
    index: int
    name: str
    note: str
    arrays: tuple[StepArray, ...]


@dataclass(frozen=True)
class StepRecord:
    """The arrays of one training step.

    Attributes
    ----------
    batch_size : images of the step
    shard_size : images of the largest shard, which the passes are those of
    n_shards : shards that the batch is cut into
    n_in_flight : shards that are computed side by side
    once : parameters, and what has their size, however many workers there are
    passes : of a shard, forward and backward, in the order in which they are computed
    worker_bytes : memory that each worker keeps from one shard to the next
    """

    dtype: str
    batch_size: int
    shard_size: int
    n_shards: int
    n_threads: int
    n_in_flight: int
    once: tuple[StepArray, ...]
    passes: tuple[PassArrays, ...]
    worker_bytes: int

    @property
    def once_bytes(self) -> int:
        return sum(array.nbytes for array in self.once)

    @property
    def total_bytes(self) -> int:
        """Memory that the step keeps, over all workers."""
        return self.once_bytes + self.n_in_flight * self.worker_bytes

    def to_dict(self) -> dict[str, Any]:
        """Give everything under the names of the attributes, ready for JSON."""
        return {**asdict(self), "once_bytes": self.once_bytes, "total_bytes": self.total_bytes}


def record_step(config: Config, network: Network, *, batch_size: int, n_threads: int) -> StepRecord:
    """Send one shard of zeros through a replica of the network, and list the arrays of a whole step.

    Parameters
    ----------
    batch_size : images of the step
    n_threads : how many shards are computed side by side at most

    Raises
    ------
    UsageError : the batch, or a shard, is too large
    """
    if batch_size > MAX_BATCH_SIZE:
        raise UsageError(f"expected a batch of at most {MAX_BATCH_SIZE:,} images, got {batch_size:,}")
    shards = shard_slices(batch_size, config.training.shard_size)
    N = max(shard.stop - shard.start for shard in shards)
    activation_bytes = inspect_network(network, N).total_activation_bytes
    if activation_bytes > MAX_ACTIVATION_BYTES:
        raise UsageError(
            f"a shard of {N:,} images gives {activation_bytes / 2**30:,.1f} GiB of activations, too many to "
            "list its arrays; lower training.shard_size or the batch size"
        )
    n_slots = min(len(shards), SHARDS_IN_FLIGHT)
    passes, worker_bytes = _record_shard(network, N)
    return StepRecord(
        dtype=str(network.dtype),
        batch_size=batch_size,
        shard_size=N,
        n_shards=len(shards),
        n_threads=n_threads,
        n_in_flight=min(n_threads, n_slots),
        once=tuple(_once(config, network, n_slots)),
        passes=passes,
        worker_bytes=worker_bytes,
    )


def _record_shard(network: Network, N: int) -> tuple[tuple[PassArrays, ...], int]:
    replica, passes = network.replica(), list[PassArrays]()
    computed = set[Layer]()

    def observe(done: LayerPass) -> None:
        computed.add(done.layer)
        arrays = done.layer.scratch.recent()
        if done.kind == "parameters":
            arrays |= {f"{name}.grad": parameter.grad for name, parameter in done.layer.parameters.items()}
        original = network.layers[done.index]
        note = _note(done.layer, original) if done.kind == "forward" else ""
        passes.append(PassArrays(done.kind, done.index, LAYER_NAMES[type(original)], note, _grouped(arrays)))

    with np.errstate(all="ignore"):
        x = np.zeros((*network.input_shape, N), network.dtype)
        logits = replica.forward(x, training=True, rng=np.random.default_rng(0), observe=observe)
        _, grad_logits = softmax_cross_entropy(logits, np.zeros(N, np.int64))
        replica.backward(grad_logits, to_input=False, observe=observe)
    return tuple(passes), sum(layer.scratch.nbytes for layer in computed)


def _note(computed: Layer, layer: Layer) -> str:
    if isinstance(computed, Conv2D) and computed.output_shape != layer.output_shape:
        return "outputs laid out cell by cell for the pool behind it"
    if isinstance(computed, ReLU) and computed.output_shape != layer.output_shape:
        return "computed behind the pool, where there are fewer numbers"
    if isinstance(computed, BatchNorm):
        return "mean and variance of the shard, not of the batch"
    return ""


def _grouped(arrays: Mapping[str, FloatArray]) -> tuple[StepArray, ...]:
    """Put together the arrays of one name, and those of one name and a number, such as ``cols 2``."""
    groups: dict[str, list[FloatArray]] = {}
    for name, array in arrays.items():
        groups.setdefault(name.partition(" ")[0], []).append(array)
    return tuple(
        StepArray(
            name,
            max((array.shape for array in group), key=np.prod),
            str(group[0].dtype),
            len(group),
            sum(array.nbytes for array in group),
        )
        for name, group in groups.items()
    )


def _once(config: Config, network: Network, n_slots: int) -> Iterable[StepArray]:
    """List the parameters, and what has their size, each in one row."""
    dtype, size = network.dtype, sum(parameter.value.size for parameter in network.parameters.values())

    def row(name: str, size: int, count: int = 1) -> StepArray:
        return StepArray(name, (size,), str(dtype), count, count * size * dtype.itemsize)

    yield row("parameters", size)
    yield row("gradient", size)
    yield row("gradients of shards", size, n_slots)
    if network.buffers:
        yield row("running averages", sum(buffer.size for buffer in network.buffers.values()))
    sizes: dict[str, int] = {}
    for name, array in build_optimizer(config, network.parameters).state.items():
        moment = name.rpartition("/")[2].replace("_", " ")
        sizes[moment] = sizes.get(moment, 0) + array.size
    yield from (row(moment, size) for moment, size in sizes.items())
