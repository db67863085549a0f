"""The arrays of one training step as data: what `cnncli inspect-shapes --backward` shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["kept", "shard", "temporary", "slot", "view", "batch"]


@dataclass(frozen=True)
class StepArray:
    """One array, or several that take turns.

    Attributes
    ----------
    name : as in the text of the program
    shape_words : its axes in letters, ``(C*KH*KW, OH*OW*N)``
    shape : the same in numbers; of the largest where `count` arrays differ
    dtype : of the numbers
    count : arrays of this name that the pass makes
    nbytes : memory that they need at once, beyond what is there already: 0 where an array is a view of
        another, or is written where an earlier one of the same layer was
    kind : how long it lives.
        kept: as long as the run, for the next shard of the worker to write to;
        shard: until the shard is done;
        temporary: a moment;
        slot: part of the gradients that the shards of a batch are added up from, see ``StepFacts.batch``;
        view: it is another array, seen in another shape;
        batch: as long as the run, once for all workers
    """

    name: str
    shape_words: str
    shape: tuple[int, ...]
    dtype: str
    count: int
    nbytes: int
    kind: Kind

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "shape": list(self.shape)}


@dataclass(frozen=True)
class PassArrays:
    """The arrays of one pass through a layer, in the order in which they come to be.

    Attributes
    ----------
    temporary_bytes : of the temporary arrays that exist at the same moment, at most
    note : what a reader of a textbook would not expect; empty where there is nothing
    """

    arrays: tuple[StepArray, ...]
    temporary_bytes: int = 0
    note: str = ""

    def bytes_of(self, kind: Kind) -> int:
        """Sum up the arrays of one kind."""
        return sum(array.nbytes for array in self.arrays if array.kind == kind)

    def to_dict(self) -> dict[str, Any]:
        return {
            "arrays": [array.to_dict() for array in self.arrays],
            "temporary_bytes": self.temporary_bytes,
            "note": self.note,
        }


@dataclass(frozen=True)
class LayerArrays:
    """The arrays of one layer of ``Network.plan``.

    Attributes
    ----------
    name : as in a configuration: ``dense``, ``conv2d + max_pool2d``
    indices : places in the configuration of the layers that it stands for
    note : what is computed otherwise than the configuration says; empty where nothing is
    backward : None below the first layer that has parameters, where no gradient is needed
    """

    name: str
    indices: tuple[int, ...]
    note: str
    forward: PassArrays
    backward: PassArrays | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "indices": list(self.indices),
            "note": self.note,
            "forward": self.forward.to_dict(),
            "backward": None if self.backward is None else self.backward.to_dict(),
        }


@dataclass(frozen=True)
class StepFacts:
    """The arrays of one training step.

    Attributes
    ----------
    batch_size : images of the step
    shard_size : images of the largest shard; the arrays are those of such a shard
    n_shards : shards that the batch is cut into
    n_in_flight : shards that are computed side by side
    batch : what is needed once, by whatever many workers
    input, layers, loss : a shard's arrays, in the order of forward
    update : of the optimizer's step
    """

    dtype: str
    batch_size: int
    shard_size: int
    n_shards: int
    n_threads: int
    n_in_flight: int
    batch: PassArrays
    input: PassArrays
    layers: tuple[LayerArrays, ...]
    loss: PassArrays
    update: PassArrays

    @property
    def backward(self) -> tuple[LayerArrays, ...]:
        """The layers that go backward, in that order."""
        return tuple(layer for layer in reversed(self.layers) if layer.backward is not None)

    @property
    def batch_bytes(self) -> int:
        """Memory that the step needs once."""
        return self.batch.bytes_of("batch")

    @property
    def shard_kept_bytes(self) -> int:
        """Memory that each worker keeps from one shard to the next."""
        return sum(one.bytes_of("kept") for one in self._passes)

    @property
    def shard_passing_bytes(self) -> int:
        """Memory that a shard needs besides, at its worst moment, and gives back."""
        images, loss = self.input.bytes_of("shard"), self.loss.bytes_of("shard")
        forward = max(layer.forward.temporary_bytes for layer in self.layers)
        backward = max(
            (layer.backward.temporary_bytes for layer in self.layers if layer.backward is not None), default=0
        )
        return images + max(
            self.input.temporary_bytes,
            forward,
            loss + max(self.loss.temporary_bytes, backward),
        )

    @property
    def shard_peak_bytes(self) -> int:
        """Largest sum of a shard's arrays that exist at the same moment."""
        return self.shard_kept_bytes + self.shard_passing_bytes

    @property
    def peak_bytes(self) -> int:
        """Largest sum of all arrays of the step that exist at the same moment, over all workers."""
        kept = self.batch_bytes + self.n_in_flight * self.shard_kept_bytes
        return kept + max(self.n_in_flight * self.shard_passing_bytes, self.update.temporary_bytes)

    @property
    def _passes(self) -> list[PassArrays]:
        backward = [layer.backward for layer in self.layers if layer.backward is not None]
        return [*(layer.forward for layer in self.layers), *backward]

    def to_dict(self) -> dict[str, Any]:
        """Give everything under the names of the attributes, ready for JSON."""
        return {
            "dtype": self.dtype,
            "batch_size": self.batch_size,
            "shard_size": self.shard_size,
            "n_shards": self.n_shards,
            "n_threads": self.n_threads,
            "n_in_flight": self.n_in_flight,
            "batch": self.batch.to_dict(),
            "input": self.input.to_dict(),
            "layers": [layer.to_dict() for layer in self.layers],
            "loss": self.loss.to_dict(),
            "update": self.update.to_dict(),
            "batch_bytes": self.batch_bytes,
            "shard_kept_bytes": self.shard_kept_bytes,
            "shard_peak_bytes": self.shard_peak_bytes,
            "peak_bytes": self.peak_bytes,
        }
