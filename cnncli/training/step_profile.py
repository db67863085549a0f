"""Where the time of a training step goes: each layer's time beside its work and the machine's rates."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cnncli.config import Choice, Config, build_augmentation, build_network, build_optimizer
from cnncli.data import Normalization, Split, shard_slices
from cnncli.data.randomness import AUGMENTATION, DROPOUT, WEIGHTS, stream
from cnncli.nn import LayerPass, Network, softmax_cross_entropy
from cnncli.nn.layers import LAYER_NAMES
from cnncli.training.metrics import StepReport
from cnncli.training.trainer import Trainer, TrainingData
from cnncli.training.workers import Workers

# large enough for the full speed of the BLAS, and done in a few milliseconds
PRODUCT_SIDE = 512
# the arrays of a shard together are about this large: beyond the second-level cache, within the third
COPY_BYTES = 2 * 1024 * 1024
N_CALLS = 1000
# a pass through a layer makes about as many calls at most
CALLS_OF_A_PASS = 10
RATE_RUNS = 7
# first runs allocate scratch memory and warm the caches
WARM_UP = 2
# of several batches; a large batch needs two of its size all the same
MAX_IMAGES = 4096
# too low to change the weights: the times shall not depend on how training goes on random images
LEARNING_RATE = 1e-12

Bound: TypeAlias = Literal["compute", "memory", "calls"]


@dataclass(frozen=True)
class PassProfile:
    """Forward or backward through one layer, for one shard on one thread.

    Attributes
    ----------
    multiply_adds : those of its matrix products
    bytes_moved : of the arrays that it reads and writes; an estimate, because how much of it goes to
        memory depends on what is in the cache
    """

    seconds: float
    multiply_adds: int
    bytes_moved: int

    @property
    def flops_per_second(self) -> float:
        return 2 * self.multiply_adds / self.seconds


@dataclass(frozen=True)
class LayerProfile:
    """Both passes through one layer, in the order in which layers are computed.

    Attributes
    ----------
    index, name : place in the network, and name in the configuration
    backward : gradients of parameters and input; None before the first layer with parameters. That
        layer needs no gradient of its input.
    """

    index: int
    name: str
    forward: PassProfile
    backward: PassProfile | None

    @property
    def passes(self) -> dict[str, PassProfile]:
        return {"forward": self.forward} | ({} if self.backward is None else {"backward": self.backward})


@dataclass(frozen=True)
class ReferenceRates:
    """Speeds of one thread: the yardstick of a profile.

    Attributes
    ----------
    flops_per_second : of a large matrix product; a multiply-add is two operations
    bytes_per_second : of a copy, read and written bytes together
    seconds_per_call : of a NumPy operation on a single number
    """

    flops_per_second: float
    bytes_per_second: float
    seconds_per_call: float

    def bound_of(self, one: PassProfile) -> Bound:
        """Tell what takes most of the time of a pass.

        Its multiply-adds at the speed of a product, its bytes at the speed of a copy, or the calls:
        what neither explains, up to the cost of ten calls.
        """
        compute = 2 * one.multiply_adds / self.flops_per_second
        memory = one.bytes_moved / self.bytes_per_second
        calls = min(one.seconds - compute - memory, CALLS_OF_A_PASS * self.seconds_per_call)
        costs: dict[Bound, float] = {"compute": compute, "memory": memory, "calls": calls}
        return max(costs, key=lambda bound: costs[bound])


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
            "layers": [
                {"index": layer.index, "name": layer.name, "backward": None}
                | {name: self._pass_dict(one) for name, one in layer.passes.items()}
                for layer in self.layers
            ],
            "loss_milliseconds": self.loss_seconds * 1e3,
            "shard_milliseconds": self.shard_seconds * 1e3,
            "optimizer_step_milliseconds": self.optimizer_seconds * 1e3,
            "step_milliseconds": self.step_seconds * 1e3,
            "speed_up": self.speed_up,
            "images_per_second": self.images_per_second,
        }

    def _pass_dict(self, one: PassProfile) -> dict[str, Any]:
        return {
            "milliseconds": one.seconds * 1e3,
            "share": one.seconds / self.shard_seconds,
            "multiply_adds": one.multiply_adds,
            "gflops": one.flops_per_second / 1e9 if one.multiply_adds else None,
            "estimated_bytes_moved": one.bytes_moved,
            "bound": self.rates.bound_of(one),
        }


def profile_step(
    config: Config,
    image_shape: tuple[int, int, int],
    class_count: int,
    workers: Workers,
    *,
    batch_size: int,
    repeat: int,
) -> Profile:
    """Time a training step on random images.

    The layers, the loss and the optimizer are timed one by one on the calling thread, then the whole
    step on the workers. Every time is the median of `repeat` runs.

    Raises
    ------
    ConfigError : the network does not fit the images or the number of classes
    """
    network = build_network(config, image_shape, class_count, stream(config.seed, WEIGHTS))
    shards = shard_slices(batch_size, config.training.shard_size)
    N = shards[-1].stop - shards[-1].start  # the last one is never shorter than another
    with np.errstate(all="ignore"):
        rates = measure_rates(network.dtype)
        shard = _time_shard(config, network, _random_images(image_shape, class_count, N), batch_size, repeat)
        optimizer = build_optimizer(config, network.parameters)
        optimizer.learning_rate = LEARNING_RATE
        optimizer_seconds = statistics.median(_times(optimizer.step, repeat))
    return Profile(
        dtype=str(network.dtype),
        rates=rates,
        batch_size=batch_size,
        shard_size=N,
        n_shards=len(shards),
        n_threads=workers.n_workers,
        n_parameters=sum(parameter.value.size for parameter in network.parameters.values()),
        input_seconds=shard.seconds("input"),
        layers=shard.layers(network),
        loss_seconds=shard.seconds("loss"),
        optimizer_seconds=optimizer_seconds,
        step_seconds=_step_seconds(config, network, workers, batch_size, repeat),
    )


def multiply_adds(done: LayerPass) -> int:
    """Count the multiply-adds of a pass: the weight once for each output and image."""
    weight = done.layer.parameters.get("weight")
    outputs = done.result if done.kind == "forward" else done.given
    if weight is None or weight.value.ndim < 2 or outputs is None:
        return 0
    return int(weight.value.size) * (outputs.size // int(weight.value.shape[0]))


class _ShardTimes:
    """An observer that notes when each pass has ended, and what it had to do."""

    def __init__(self) -> None:
        self._times: dict[tuple[str, int], list[float]] = {}
        self._work: dict[tuple[str, int], tuple[int, int]] = {}
        self._ended = 0.0

    def start(self) -> None:
        self._ended = time.perf_counter()

    def note(self, what: str, index: int = -1) -> None:
        """Note that a part has ended that began where the last one ended."""
        now = time.perf_counter()
        self._times.setdefault((what, index), []).append(now - self._ended)
        self._ended = now

    def observe(self, done: LayerPass) -> None:
        self.note(done.kind, done.index)
        if (done.kind, done.index) not in self._work:
            self._work[done.kind, done.index] = multiply_adds(done), _bytes_moved(done)
        self.start()

    def seconds(self, what: str, index: int = -1) -> float:
        """Return the median time of a part, without the first runs; 0 for one that there was not."""
        return statistics.median(self._times.get((what, index), [0.0] * (WARM_UP + 1))[WARM_UP:])

    def layers(self, network: Network) -> tuple[LayerProfile, ...]:
        return tuple(
            LayerProfile(
                index,
                LAYER_NAMES[type(network.layers[index])],
                self._profile("forward", index=index),
                self._profile("parameters", "input", index=index)
                if ("parameters", index) in self._times
                else None,
            )
            for kind, index in self._times
            if kind == "forward"
        )

    def _profile(self, *kinds: str, index: int) -> PassProfile:
        work = [self._work.get((kind, index), (0, 0)) for kind in kinds]
        seconds = sum(self.seconds(kind, index) for kind in kinds)
        return PassProfile(seconds, sum(n for n, _ in work), sum(n for _, n in work))


def _bytes_moved(done: LayerPass) -> int:
    """Estimate what a pass reads and writes: its argument and result, and twice what it keeps in between."""
    arrays = done.layer.scratch.recent()
    is_view = done.result is not None and np.may_share_memory(done.given, done.result)
    if is_view or (done.kind == "parameters" and not done.layer.parameters):
        return 0
    between = sum(array.nbytes for name, array in arrays.items() if name not in ("output", "grad_input"))
    parameters = sum(parameter.value.nbytes for parameter in done.layer.parameters.values())
    ends = done.given.nbytes + (0 if done.result is None else done.result.nbytes)
    return ends + parameters + 2 * between


def _time_shard(config: Config, network: Network, images: Split, batch_size: int, repeat: int) -> _ShardTimes:
    """Send a shard through the network again and again."""
    augmentation, normalization = build_augmentation(config), Normalization.from_images(images.images)
    chosen, times = np.arange(len(images)), _ShardTimes()
    for _ in range(WARM_UP + repeat):
        times.start()
        pixels = images.images[chosen]
        if augmentation is not None:
            pixels = augmentation.apply(pixels, stream(config.seed, AUGMENTATION, 0, 0))
        x = normalization.apply(pixels, network.dtype)
        times.note("input")
        rng = stream(config.seed, DROPOUT, 0, 0)
        times.start()
        logits = network.forward(x, training=True, rng=rng, observe=times.observe)
        times.start()
        _, grad = softmax_cross_entropy(
            logits, images.labels, label_smoothing=config.loss.label_smoothing, divisor=batch_size
        )
        times.note("loss")
        network.backward(grad, to_input=False, observe=times.observe)
    return times


def _step_seconds(config: Config, network: Network, workers: Workers, batch_size: int, repeat: int) -> float:
    """Train on random images; return the median time from the end of one step to the end of the next."""
    C, H, W = network.input_shape
    (K,) = network.output_shape
    steps_per_epoch = min(max(MAX_IMAGES // batch_size, 2), 1 + repeat)
    n_epochs = -(-(WARM_UP + repeat) // (steps_per_epoch - 1))
    images = _random_images((C, H, W), K, steps_per_epoch * batch_size)
    data = TrainingData(images, None, Normalization.from_images(images.images), (C, H, W), K)
    times, ended = list[float](), 0.0

    def note(report: StepReport) -> None:
        nonlocal ended
        now = time.perf_counter()
        if report.step > 1:  # what comes before the first step of an epoch is no part of it
            times.append(now - ended)
        ended = now

    config = _without_effect(config, batch_size, n_epochs)
    for _ in Trainer(config, data, workers, network).epochs(note):
        pass
    return statistics.median(times[WARM_UP:])


def _without_effect(config: Config, batch_size: int, n_epochs: int) -> Config:
    """Make a configuration whose training changes nothing, so that it cannot diverge, nor stop early."""
    options = {**config.optimizer.options, "learning_rate": LEARNING_RATE}
    training = replace(config.training, batch_size=batch_size, epochs=n_epochs, early_stopping=None)
    return replace(config, optimizer=Choice(config.optimizer.name, options), training=training)


def measure_rates(dtype: np.dtype[Any]) -> ReferenceRates:
    """Measure a matrix product, a copy and a call; takes some milliseconds."""
    square = np.ones((PRODUCT_SIDE, PRODUCT_SIDE), dtype=dtype)
    product = np.empty_like(square)
    source = np.ones(COPY_BYTES // dtype.itemsize, dtype=dtype)
    target = np.empty_like(source)
    number = np.ones(1, dtype=dtype)

    def call() -> None:
        for _ in range(N_CALLS):
            np.multiply(number, number, out=number)

    # the fastest of a few runs is what the machine can do
    return ReferenceRates(
        flops_per_second=2 * PRODUCT_SIDE**3 / min(_times(lambda: np.matmul(square, square, out=product))),
        bytes_per_second=2 * source.nbytes / min(_times(lambda: np.copyto(target, source))),
        seconds_per_call=min(_times(call)) / N_CALLS,
    )


def _times(work: Callable[[], object], repeat: int = RATE_RUNS) -> list[float]:
    """Do some work again and again; return the times without those of the first runs."""
    times = []
    for _ in range(WARM_UP + repeat):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return times[WARM_UP:]


def _random_images(image_shape: tuple[int, int, int], class_count: int, n: int) -> Split:
    rng = np.random.default_rng(0)
    images: NDArray[np.uint8] = rng.integers(0, 256, (n, *image_shape), dtype=np.uint8)
    return Split(images, rng.integers(0, class_count, n))
