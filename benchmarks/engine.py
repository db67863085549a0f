"""What is measured of cnncli, one figure for each process: ``python -m benchmarks.engine step ...``."""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from itertools import cycle

import numpy as np

from benchmarks.networks import BATCH_SIZES
from benchmarks.products import Replay, record_products
from benchmarks.timing import MIN_RUNS, WARM_UP_SECONDS, median_seconds, timed_runs
from benchmarks.training_data import CLASS_COUNT, MNIST_SHAPE, batches, benchmark_config, mnist_images
from cnncli.config import Config, build_network
from cnncli.data import Normalization
from cnncli.data.randomness import WEIGHTS, stream
from cnncli.nn import Network
from cnncli.training import StepReport, Trainer, TrainingData, Workers
from cnncli.training.evaluation import Evaluator
from cnncli.training.gradients import BatchGradients

GROWTH_BATCHES = (128, 256, 512, 1024, 2048, 4096)
GROWTH_IMAGES = 1024


class _TimeIsUpError(Exception):
    """Ends a training that has been measured for long enough."""


def built(config: Config) -> Network:
    return build_network(config, MNIST_SHAPE, CLASS_COUNT, stream(config.seed, WEIGHTS))


def step_seconds(network: str, workers: Workers, seconds: float) -> dict[str, float]:
    """Time the steps of a `Trainer`, from the end of one to the end of the next."""
    config = benchmark_config(network)
    images = mnist_images(config, "train")
    first = batches(len(images), config.training.batch_size)
    images = images.take(np.concatenate(first))
    normalization = Normalization.from_images(images.images)
    trainer = Trainer(config, TrainingData(images, None, normalization, MNIST_SHAPE, CLASS_COUNT), workers)
    times, ended = list[float](), 0.0
    start = time.perf_counter() + min(WARM_UP_SECONDS, seconds)

    def note(report: StepReport) -> None:
        nonlocal ended
        now = time.perf_counter()
        if report.step > 1 and now > start:  # what comes before the first step of an epoch is no part of it
            times.append(now - ended)
        ended = now
        if now > start + seconds and len(times) >= MIN_RUNS:
            raise _TimeIsUpError

    with contextlib.suppress(_TimeIsUpError):
        for _ in trainer.epochs(note):
            pass
    return {"seconds": statistics.median(times)}


def products_seconds(network: str, workers: Workers, seconds: float) -> dict[str, float]:
    """Time the matrix products of a training step."""
    config = benchmark_config(network)
    products = record_products(config, built(config))
    return {"seconds": median_seconds(Replay(products, workers).run, seconds)}


def evaluation_seconds(network: str, workers: Workers, seconds: float) -> dict[str, float]:
    """Time an evaluation of the test set."""
    config = benchmark_config(network)
    test = mnist_images(config, "test")
    evaluator = Evaluator(built(config), test, Normalization.from_images(test.images), workers)
    return {"seconds": median_seconds(evaluator.evaluate, seconds)}


def growth(network: str, workers: Workers, seconds: float) -> dict[str, float]:
    """Time the gradients of one image in batches of several sizes, in turn, within one process."""
    config = benchmark_config(network)
    images = mnist_images(config, "train")
    gradients = BatchGradients(
        built(config),
        workers,
        images,
        Normalization.from_images(images.images),
        shard_size=config.training.shard_size,
        label_smoothing=config.loss.label_smoothing,
        seed=config.seed,
    )
    order = {size: cycle(batches(len(images), size)) for size in GROWTH_BATCHES}

    def compute(size: int) -> None:
        gradients.compute(next(order[size]), 0)

    times: dict[int, list[float]] = {size: [] for size in GROWTH_BATCHES}
    end, n_rounds = time.perf_counter() + seconds, 0
    while n_rounds < 1 + MIN_RUNS or time.perf_counter() < end:
        n_rounds += 1
        for size in GROWTH_BATCHES:
            # as many images of every size, but for the largest
            runs = timed_runs(partial(compute, size), max(GROWTH_IMAGES // size, 1))
            if n_rounds > 1:
                times[size] += [run / size for run in runs]
    return {str(size): statistics.median(values) for size, values in times.items()}


MEASUREMENTS: dict[str, Callable[[str, Workers, float], dict[str, float]]] = {
    "step": step_seconds,
    "products": products_seconds,
    "evaluation": evaluation_seconds,
    "growth": growth,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine", description=__doc__)
    parser.add_argument("measurement", choices=MEASUREMENTS)
    parser.add_argument("network", choices=BATCH_SIZES)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1.0)
    arguments = parser.parse_args()
    with Workers(arguments.threads) as workers:
        result = MEASUREMENTS[arguments.measurement](arguments.network, workers, arguments.seconds)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
