"""One textbook implementation, or cnncli, in a process of its own: checked, then timed.

``python -m benchmarks.textbook_run layers|step IMPLEMENTATION``
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.engine import step_seconds
from benchmarks.networks import BATCH_SIZES
from benchmarks.textbook_code import Array, Implementation
from benchmarks.textbook_code.fancy_indexing import FANCY_INDEXING
from benchmarks.textbook_code.offset_loops import OFFSET_LOOPS
from benchmarks.textbook_code.plain_loops import PLAIN_LOOPS
from benchmarks.textbook_code.simple_convnet import POOL_SIZE, SimpleConvNet
from benchmarks.timing import median_seconds
from benchmarks.training_data import CLASS_COUNT, MNIST_SHAPE, benchmark_config, mnist_images, normalized
from cnncli.config import build_network, build_optimizer
from cnncli.data import Normalization, shard_slices
from cnncli.nn import Conv2D, MaxPool2D, Network, batch_first, batch_last, softmax_cross_entropy
from cnncli.training import Workers

NETWORK = "simple_convnet"
BATCH_SIZE = BATCH_SIZES[NETWORK]
# nested loops take half a minute for a whole batch
LOOPED_IMAGES = 1
TOLERANCE = 1e-6

IMPLEMENTATIONS: Mapping[str, Implementation] = {
    "offset_loops": OFFSET_LOOPS,
    "fancy_indexing": FANCY_INDEXING,
    "plain_loops": PLAIN_LOOPS,
}
OURS: Mapping[str, type[np.floating[Any]]] = {"cnncli_float32": np.float32, "cnncli_float64": np.float64}


class DisagreementError(Exception):
    """An implementation gives other numbers than cnncli."""


def convolution_and_pool(dtype: type[np.floating[Any]]) -> Network:
    """Build the first two kinds of layer of simple_convnet: 30 kernels 5x5, then a pool of 2x2."""
    conv = Conv2D(MNIST_SHAPE, out_channels=30, kernel_size=5, rng=np.random.default_rng(0), dtype=dtype)
    return Network([conv, MaxPool2D(conv.output_shape, kernel_size=POOL_SIZE)])


def example(n: int) -> tuple[Array, Array]:
    """Make images (n, 1, 28, 28) and a gradient of the pool's output."""
    rng = np.random.default_rng(1)
    return rng.standard_normal((n, *MNIST_SHAPE)), rng.standard_normal((n, 30, 12, 12))


def check_layers(implementation: Implementation, n: int) -> None:
    """Hold both layers against ours, forward and backward.

    Raises
    ------
    DisagreementError : a number differs by more than the tolerance
    """
    images, grad_output = example(n)
    ours = convolution_and_pool(np.float64)
    y = ours.forward(batch_last(images))
    grad_input = ours.backward(batch_last(grad_output))
    weight, bias = (ours.parameters[name] for name in ("0/weight", "0/bias"))

    output, gradients = run_layers(implementation, images, grad_output, weight.value, bias.value)
    _compare("output", output, batch_first(y))
    for name, theirs, own in zip(
        ("grad_input", "grad_weight", "grad_bias"),
        gradients,
        (batch_first(grad_input), weight.grad, bias.grad),
        strict=True,
    ):
        _compare(name, theirs, own)


def run_layers(
    implementation: Implementation, images: Array, grad_output: Array, weight: Array, bias: Array
) -> tuple[Array, tuple[Array, Array, Array]]:
    """Run both layers forward and backward: the output, and the gradients of images, weight and bias."""
    convolved = implementation.convolve(images, weight, bias)
    pooled = implementation.max_pool(convolved.output, POOL_SIZE)
    return pooled.output, convolved.backward(pooled.backward(grad_output))


def check_step(implementation: Implementation, images: Array, labels: NDArray[np.int64]) -> None:
    """Hold two training steps against ours: losses and all parameters.

    Raises
    ------
    DisagreementError : a number differs by more than the tolerance
    """
    config = benchmark_config(NETWORK)
    ours = build_network(config, MNIST_SHAPE, CLASS_COUNT, np.random.default_rng(0), np.float64)
    optimizer = build_optimizer(config, ours.parameters)
    theirs = SimpleConvNet(implementation, _copied_parameters(ours))
    for _ in range(2):
        loss, grad_logits = softmax_cross_entropy(ours.forward(batch_last(images)), labels)
        ours.backward(grad_logits, to_input=False)
        optimizer.step()
        _compare("loss", np.array(theirs.step(images, labels)), np.array(loss))
        for name, parameter in ours.parameters.items():
            _compare(name, theirs.parameters[name], parameter.value)


def layers_seconds(implementation: Implementation, seconds: float) -> float:
    """Time both layers over a batch, forward and backward."""
    n = LOOPED_IMAGES if implementation is PLAIN_LOOPS else BATCH_SIZE
    check_layers(implementation, n)
    images, grad_output = example(n)
    ours = convolution_and_pool(np.float64)
    weight, bias = (ours.parameters[name].value for name in ("0/weight", "0/bias"))
    run = median_seconds(lambda: run_layers(implementation, images, grad_output, weight, bias), seconds)
    return run * BATCH_SIZE / n


def our_layers_seconds(dtype: type[np.floating[Any]], workers: Workers, seconds: float) -> float:
    """Time our two layers over a batch in shards, as in training but with the gradient of the input."""
    images, grad_output = (batch_last(array.astype(dtype)) for array in example(BATCH_SIZE))
    network, shard_size = convolution_and_pool(dtype), benchmark_config(NETWORK).training.shard_size
    replicas = [network.replica() for _ in range(workers.n_workers)]
    shards = [
        tuple(np.ascontiguousarray(array[..., part]) for array in (images, grad_output))
        for part in shard_slices(BATCH_SIZE, shard_size)
    ]

    def run_shard(worker: int, index: int) -> None:
        x, grad = shards[index]
        replicas[worker].forward(x, training=True)
        replicas[worker].backward(grad)

    run_shards = workers.operation(run_shard)
    return median_seconds(lambda: run_shards(len(shards)), seconds)


def textbook_step_seconds(implementation: Implementation, seconds: float) -> float:
    """Time a training step of the whole network, on one batch after the other."""
    split = mnist_images(benchmark_config(NETWORK), "train").take(np.arange(20 * BATCH_SIZE))
    images = normalized(split, Normalization.from_images(split.images)).astype(np.float64)
    check_step(implementation, images[:BATCH_SIZE], split.labels[:BATCH_SIZE])
    ours = build_network(
        benchmark_config(NETWORK), MNIST_SHAPE, CLASS_COUNT, np.random.default_rng(0), np.float64
    )
    network = SimpleConvNet(implementation, _copied_parameters(ours))
    parts = _cycle(len(split), BATCH_SIZE)

    def step() -> None:
        part = next(parts)
        network.step(images[part], split.labels[part])

    return median_seconds(step, seconds)


def _cycle(n: int, batch_size: int) -> Iterator[slice]:
    while True:
        yield from (slice(start, start + batch_size) for start in range(0, n, batch_size))


def _copied_parameters(network: Network) -> dict[str, Array]:
    return {name: parameter.value.copy() for name, parameter in network.parameters.items()}


def _compare(name: str, theirs: Array, ours: Array) -> None:
    difference = float(np.abs(theirs - ours).max()) / max(float(np.abs(ours).max()), 1.0)
    if not difference <= TOLERANCE:
        raise DisagreementError(f"{name} differs from cnncli's by {difference:.2g}, more than {TOLERANCE:g}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.textbook_run", description=__doc__)
    parser.add_argument("measurement", choices=["layers", "step"])
    parser.add_argument("implementation", choices=[*OURS, *IMPLEMENTATIONS])
    parser.add_argument(
        "--threads", type=int, default=2, help="of cnncli; the others have those of their BLAS"
    )
    parser.add_argument("--seconds", type=float, default=1.0)
    arguments = parser.parse_args()
    print(json.dumps({"seconds": _measured(arguments.measurement, arguments)}))


def _measured(measurement: str, arguments: argparse.Namespace) -> float:
    name, seconds = arguments.implementation, arguments.seconds
    if name in IMPLEMENTATIONS:
        run: Callable[[Implementation, float], float] = (
            layers_seconds if measurement == "layers" else textbook_step_seconds
        )
        return run(IMPLEMENTATIONS[name], seconds)
    with Workers(arguments.threads) as workers:
        if measurement == "layers":
            return our_layers_seconds(OURS[name], workers, seconds)
        return step_seconds(NETWORK, workers, seconds)["seconds"]


if __name__ == "__main__":
    main()
