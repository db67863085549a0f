"""What is known of a training step after it was timed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cnncli.training.profiling.plan_work import Work
from cnncli.training.profiling.reference_rates import Bound, ReferenceRates


@dataclass(frozen=True)
class PassProfile:
    """A pass through one layer, forward or backward, for one shard on one thread."""

    seconds: float
    work: Work
    bound: Bound

    @property
    def flops_per_second(self) -> float:
        return 2 * self.work.multiply_adds / self.seconds


@dataclass(frozen=True)
class LayerProfile:
    """Both passes through one layer of the plan.

    Attributes
    ----------
    name, indices : of the layers in the configuration that it stands for
    backward : gradients of parameters and input; None before the first layer with parameters. That
        layer needs no gradient of its input.
    """

    name: str
    indices: tuple[int, ...]
    forward: PassProfile
    backward: PassProfile | None

    @property
    def passes(self) -> dict[str, PassProfile]:
        return {"forward": self.forward} | ({} if self.backward is None else {"backward": self.backward})


@dataclass(frozen=True)
class Profile:
    """Times of one training step and its parts, medians in seconds.

    Attributes
    ----------
    shard_size : images of the largest shard, which the layers are timed with
    n_shards : of a batch
    input_seconds : choosing, augmenting and normalising the images of a shard
    layers : in the order in which they are computed
    loss_seconds : of a shard
    optimizer_seconds : of a step, on one thread
    step_seconds : the whole step on all threads
    """

    dtype: str
    rates: ReferenceRates
    batch_size: int
    shard_size: int
    n_shards: int
    n_threads: int
    n_parameters: int
    input_seconds: float
    layers: tuple[LayerProfile, ...]
    loss_seconds: float
    optimizer_seconds: float
    step_seconds: float

    @property
    def shard_seconds(self) -> float:
        """One shard from its images to its gradients, on one thread."""
        layers = sum(one.seconds for layer in self.layers for one in layer.passes.values())
        return self.input_seconds + layers + self.loss_seconds

    @property
    def one_thread_seconds(self) -> float:
        """A step on one thread: its shards one after the other, and the optimizer."""
        return self.n_shards * self.shard_seconds + self.optimizer_seconds

    @property
    def speed_up(self) -> float:
        """How many times faster the step is on all threads than its parts on one."""
        return self.one_thread_seconds / self.step_seconds

    @property
    def images_per_second(self) -> float:
        return self.batch_size / self.step_seconds

    def to_dict(self) -> dict[str, Any]:
        """Give plain numbers, ready for JSON; times in milliseconds, for a shard unless they say step."""
        return {
            "dtype": self.dtype,
            "batch_size": self.batch_size,
            "shard_size": self.shard_size,
            "n_shards": self.n_shards,
            "threads": self.n_threads,
            "reference": {
                "gflops": self.rates.flops_per_second / 1e9,
                "gigabytes_per_second": self.rates.bytes_per_second / 1e9,
                "microseconds_per_call": self.rates.seconds_per_call * 1e6,
            },
            "input_milliseconds": self.input_seconds * 1e3,
            "layers": [self._layer_dict(layer) for layer in self.layers],
            "loss_milliseconds": self.loss_seconds * 1e3,
            "shard_milliseconds": self.shard_seconds * 1e3,
            "optimizer_step_milliseconds": self.optimizer_seconds * 1e3,
            "step_milliseconds": self.step_seconds * 1e3,
            "speed_up": self.speed_up,
            "images_per_second": self.images_per_second,
        }

    def _layer_dict(self, layer: LayerProfile) -> dict[str, Any]:
        return {
            "name": layer.name,
            "layers": list(layer.indices),
            "forward": self._pass_dict(layer.forward),
            "backward": None if layer.backward is None else self._pass_dict(layer.backward),
        }

    def _pass_dict(self, one: PassProfile) -> dict[str, Any]:
        return {
            "milliseconds": one.seconds * 1e3,
            "share": one.seconds / self.shard_seconds,
            "multiply_adds": one.work.multiply_adds,
            "gflops": one.flops_per_second / 1e9 if one.work.multiply_adds else None,
            "estimated_bytes_moved": one.work.bytes_moved,
            "bound": one.bound,
        }
