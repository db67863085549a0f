"""The same in PyTorch, one figure for each process: ``python -m benchmarks.in_torch step ...``."""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from itertools import cycle
from typing import Any, TypeAlias

import numpy as np

from benchmarks.networks import BATCH_SIZES, CONFIGS
from benchmarks.timing import median_seconds
from benchmarks.training_data import (
    CLASS_COUNT,
    MNIST_SHAPE,
    batches,
    benchmark_config,
    mnist_images,
    normalized,
)
from cnncli.config import Choice, Config, build_network, build_schedule, load_config
from cnncli.data import Normalization, Split, batch_slices, epoch_order

# By name and not by an import, so that the types are checked alike with and without PyTorch.
torch: Any = import_module("torch")

Tensor: TypeAlias = Any
Model: TypeAlias = Any

LAYOUTS: Mapping[str, Any] = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}
# an evaluation takes the fastest of these chunks
CHUNK_SIZES = (64, 256, 1000)
TRIAL_IMAGES = 2000


def build_model(config: Config) -> Model:
    """Build the network of a configuration, layer for layer."""
    # for the sizes of the inputs, which PyTorch asks for
    layers = build_network(config, MNIST_SHAPE, CLASS_COUNT).layers
    return torch.nn.Sequential(
        *(
            _build_layer(choice, layer.input_shape)
            for choice, layer in zip(config.network, layers, strict=True)
        )
    )


def _build_layer(choice: Choice, input_shape: tuple[int, ...]) -> Model:
    nn, options = torch.nn, choice.options
    if choice.name == "conv2d":
        return nn.Conv2d(
            input_shape[0],
            options["out_channels"],
            options["kernel_size"],
            stride=options["stride"],
            padding=options["padding"],
            bias=options["bias"],
        )
    if choice.name == "max_pool2d":
        return nn.MaxPool2d(options["kernel_size"], stride=options["stride"], padding=options["padding"])
    if choice.name == "dense":
        return nn.Linear(input_shape[0], options["out_features"], bias=options["bias"])
    if choice.name == "dropout":
        return nn.Dropout(options["drop_probability"])
    return {"relu": nn.ReLU, "flatten": nn.Flatten}[choice.name]()


def build_torch_optimizer(config: Config, model: Model) -> Any:
    """Build the optimizer of a configuration."""
    options = dict(config.optimizer.options)
    options["lr"] = options.pop("learning_rate")
    if "epsilon" in options:
        options["eps"] = options.pop("epsilon")
    classes = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    return classes[config.optimizer.name](model.parameters(), **options)


class Training:
    """A network, its loss and its optimizer."""

    def __init__(self, config: Config, layout: str) -> None:
        torch.manual_seed(config.seed)
        self.model = build_model(config).to(memory_format=LAYOUTS[layout])
        self.optimizer = build_torch_optimizer(config, self.model)
        self._loss = torch.nn.CrossEntropyLoss(label_smoothing=config.loss.label_smoothing)

    def step(self, images: Tensor, labels: Tensor) -> Tensor:
        """Take one step; the loss is returned as it is, since reading it would cost time."""
        self.optimizer.zero_grad()
        loss = self._loss(self.model(images), labels)
        loss.backward()
        self.optimizer.step()
        return loss


def step_seconds(network: str, layout: str, seconds: float) -> dict[str, float]:
    """Time a training step on batches that are there already, normalised and in the right layout."""
    config = benchmark_config(network)
    training, split = Training(config, layout), mnist_images(config, "train")
    normalization = Normalization.from_images(split.images)
    prepared = cycle(
        [
            tensors(split.take(indices), normalization, layout)
            for indices in batches(len(split), config.training.batch_size)
        ]
    )

    def step() -> None:
        training.step(*next(prepared))

    result = median_seconds(step, seconds)
    loss = training.step(*next(prepared)).item()
    if not math.isfinite(loss):
        raise ArithmeticError(f"the loss is {loss}: these are not the numbers of a training step")
    return {"seconds": result}


def evaluation_seconds(network: str, layout: str, seconds: float) -> dict[str, float]:
    """Time loss and accuracy over the test set, without gradients, in the fastest size of chunk."""
    config = benchmark_config(network)
    model, test = Training(config, layout).model.eval(), mnist_images(config, "test")
    images, labels = tensors(test, Normalization.from_images(test.images), layout)

    def evaluate(chunk_size: int, n: int) -> tuple[float, int]:
        loss, n_correct = 0.0, 0
        with torch.no_grad():
            for part in batch_slices(n, chunk_size):
                logits = model(images[part])
                loss += float(torch.nn.functional.cross_entropy(logits, labels[part], reduction="sum"))
                n_correct += int((logits.argmax(1) == labels[part]).sum())
        return loss, n_correct

    trials = {
        size: median_seconds(partial(evaluate, size, TRIAL_IMAGES), seconds / 10) for size in CHUNK_SIZES
    }
    best = min(trials, key=lambda size: trials[size])
    run = median_seconds(partial(evaluate, best, len(test)), seconds)
    return {"seconds": run, "chunk_size": best}


def epoch_seconds(network: str, layout: str, seconds: float) -> dict[str, float]:
    """Time the bare loop of the configuration's first epoch, on normalised images in memory."""
    config = load_config(CONFIGS / f"{network}.yaml")
    training, split = Training(config, layout), mnist_images(config, "train")
    images, labels = tensors(split, Normalization.from_images(split.images), layout)
    parts = batch_slices(len(split), config.training.batch_size)
    schedule = build_schedule(config, len(parts) * config.training.epochs, len(parts))
    del split

    started = time.perf_counter()
    order = torch.from_numpy(epoch_order(len(labels), config.seed, 0))
    for index, part in enumerate(parts):
        for group in training.optimizer.param_groups:
            group["lr"] = schedule.learning_rate(index)
        loss = training.step(images[order[part]], labels[order[part]])
    return {"seconds": time.perf_counter() - started, "last_loss": loss.item()}


def tensors(split: Split, normalization: Normalization, layout: str) -> tuple[Tensor, Tensor]:
    """Give images and labels as PyTorch takes them."""
    images = torch.from_numpy(normalized(split, normalization)).contiguous(memory_format=LAYOUTS[layout])
    return images, torch.from_numpy(np.ascontiguousarray(split.labels))


MEASUREMENTS: Mapping[str, Callable[[str, str, float], dict[str, float]]] = {
    "step": step_seconds,
    "evaluation": evaluation_seconds,
    "epoch": epoch_seconds,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.in_torch", description=__doc__)
    parser.add_argument("measurement", choices=MEASUREMENTS)
    parser.add_argument("network", choices=BATCH_SIZES)
    parser.add_argument("layout", choices=LAYOUTS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1.0)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    result = MEASUREMENTS[arguments.measurement](arguments.network, arguments.layout, arguments.seconds)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
