"""Timing a training step and its parts."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cnncli.config import Choice, Config, build_augmentation, build_network, build_optimizer
from cnncli.data import Normalization, Split
from cnncli.data.randomness import AUGMENTATION, DROPOUT, WEIGHTS, stream
from cnncli.nn import Network, softmax_cross_entropy
from cnncli.nn.buffers import short_buffers
from cnncli.training.gradients import shard_slices
from cnncli.training.profiling.plan_work import PlanWork, plan_work
from cnncli.training.profiling.reference_rates import ReferenceRates, measure_rates
from cnncli.training.profiling.report import LayerProfile, PassProfile, Profile
from cnncli.training.reports import StepReport
from cnncli.training.trainer import Trainer, TrainingData
from cnncli.training.workers import Workers

# first runs allocate scratch memory and warm the caches
_WARM_UP = 2
# of several batches; a large batch needs two of its size all the same
_MAX_IMAGES = 4096
# too low to change the weights: the times shall not depend on how training goes on random images
_LEARNING_RATE = 1e-12


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
    images = _random_images(image_shape, class_count, N)
    measurement = _Measurement(config, network, images)
    with np.errstate(all="ignore"), short_buffers():
        rates = measure_rates(network.dtype)
        shard = _medians(lambda: measurement.shard_seconds(batch_size), repeat)
        (optimizer_seconds,) = _medians(measurement.optimizer_seconds, repeat)
    steps = _step_seconds(config, image_shape, class_count, workers, batch_size, repeat)
    n_layers = len(network.plan)
    return Profile(
        dtype=str(network.dtype),
        rates=rates,
        batch_size=batch_size,
        shard_size=N,
        n_shards=len(shards),
        n_threads=workers.n_workers,
        n_parameters=sum(parameter.value.size for parameter in network.parameters.values()),
        input_seconds=shard[0],
        layers=_layer_profiles(network, N, rates, shard[1 : n_layers + 1], shard[n_layers + 2 :]),
        loss_seconds=shard[n_layers + 1],
        optimizer_seconds=optimizer_seconds,
        step_seconds=statistics.median(steps),
    )


class _Measurement:
    """The parts of a step, each as a function that runs it once and returns its times."""

    def __init__(self, config: Config, network: Network, images: Split) -> None:
        self._config = config
        self._network = network
        self._images = images
        self._augmentation = build_augmentation(config)
        self._normalization = Normalization.from_images(images.images)
        self._optimizer = build_optimizer(config, network.parameters)
        self._optimizer.learning_rate = _LEARNING_RATE

    def shard_seconds(self, batch_size: int) -> list[float]:
        """Time the input, forward of every layer, the loss, and backward of the last layer to the first."""
        plan, first = self._network.plan, self._network.first_trained
        rng = stream(self._config.seed, DROPOUT, 0, 0)
        chosen = np.arange(len(self._images))
        marks = [time.perf_counter()]
        images = self._images.images[chosen]
        if self._augmentation is not None:
            images = self._augmentation.apply(images, stream(self._config.seed, AUGMENTATION, 0, 0))
        x = self._normalization.apply(images, self._network.dtype)
        labels = self._images.labels[chosen]
        marks.append(time.perf_counter())
        for layer, _ in plan:
            x = layer.forward(x, training=True, rng=rng)
            marks.append(time.perf_counter())
        _, grad = softmax_cross_entropy(
            x, labels, label_smoothing=self._config.loss.label_smoothing, divisor=batch_size
        )
        marks.append(time.perf_counter())
        for layer, _ in reversed(plan[first:]):
            layer.parameter_gradients(grad)
            if layer is not plan[first].layer:
                grad = layer.input_gradient(grad)
            marks.append(time.perf_counter())
        return [end - start for start, end in pairwise(marks)]

    def optimizer_seconds(self) -> list[float]:
        started = time.perf_counter()
        self._optimizer.step()
        return [time.perf_counter() - started]


def _step_seconds(
    config: Config,
    image_shape: tuple[int, int, int],
    class_count: int,
    workers: Workers,
    batch_size: int,
    repeat: int,
) -> list[float]:
    """Train on random images; return the times from the end of one step to the end of the next."""
    steps_per_epoch = min(max(_MAX_IMAGES // batch_size, 2), 1 + repeat)
    n_epochs = -(-(_WARM_UP + repeat) // (steps_per_epoch - 1))
    images = _random_images(image_shape, class_count, steps_per_epoch * batch_size)
    normalization = Normalization.from_images(images.images)
    data = TrainingData(images, None, normalization, image_shape, class_count)
    times, ended = list[float](), 0.0

    def note(report: StepReport) -> None:
        nonlocal ended
        now = time.perf_counter()
        if report.step > 1:  # what comes before the first step of an epoch is no part of it
            times.append(now - ended)
        ended = now

    for _ in Trainer(_endless(config, batch_size, n_epochs), data, workers).epochs(note):
        pass
    return times[_WARM_UP:]


def _endless(config: Config, batch_size: int, n_epochs: int) -> Config:
    """Make a configuration whose training changes nothing, so that it cannot diverge, nor stop early."""
    options = {**config.optimizer.options, "learning_rate": _LEARNING_RATE}
    training = replace(config.training, batch_size=batch_size, epochs=n_epochs, early_stopping=None)
    return replace(config, optimizer=Choice(config.optimizer.name, options), training=training)


def _layer_profiles(
    network: Network,
    N: int,
    rates: ReferenceRates,
    forward: Sequence[float],
    backward: Sequence[float],
) -> tuple[LayerProfile, ...]:
    """Put times and work together; `backward` runs from the last layer to the first with parameters."""
    first, itemsize = network.first_trained, network.dtype.itemsize

    def profile(step: PlanWork, index: int) -> LayerProfile:
        work = step.forward_work(N, itemsize)
        forward_pass = PassProfile(forward[index], work, rates.bound_of(work, forward[index]))
        backward_pass = None
        if index >= first:
            seconds = backward[len(network.plan) - 1 - index]
            work = step.backward_work(N, itemsize, with_input=index > first)
            backward_pass = PassProfile(seconds, work, rates.bound_of(work, seconds))
        return LayerProfile(step.name, step.indices, forward_pass, backward_pass)

    return tuple(profile(step, index) for index, step in enumerate(plan_work(network)))


def _random_images(image_shape: tuple[int, int, int], class_count: int, n: int) -> Split:
    rng = np.random.default_rng(0)
    images: NDArray[np.uint8] = rng.integers(0, 256, (n, *image_shape), dtype=np.uint8)
    return Split(images, rng.integers(0, class_count, n))


def _medians(run: Callable[[], list[float]], repeat: int) -> list[float]:
    """Run something again and again; return the median of each of its times."""
    for _ in range(_WARM_UP):
        run()
    medians: list[float] = np.median([run() for _ in range(repeat)], axis=0).tolist()
    return medians
