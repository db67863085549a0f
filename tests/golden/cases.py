"""The cases that PyTorch has computed for the golden arrays, and the numbers that go into them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tests.golden.numbers import numbers

DIRECTORY = Path(__file__).parent


class WindowCase(NamedTuple):
    """Windows over images (N, C, H, W); F kernels for a convolution, 0 for a pool."""

    shape: tuple[int, int, int, int]
    F: int
    kernel_size: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int] | str
    ties: bool = False

    @property
    def images(self) -> NDArray[Any]:
        drawn = numbers(1, *self.shape)
        return np.round(2 * drawn) if self.ties else drawn

    @property
    def weight(self) -> NDArray[Any]:
        return numbers(2, self.F, self.shape[1], *self.kernel_size)

    @property
    def bias(self) -> NDArray[Any]:
        return numbers(3, self.F)

    def grad_output(self, output_shape: tuple[int, ...]) -> NDArray[Any]:
        """The upstream gradient (N, F, OH, OW)."""
        return numbers(4, *output_shape)


CONVOLUTIONS = {
    "plain": WindowCase((2, 3, 6, 5), 4, (3, 2), (1, 1), (0, 0)),
    "padded": WindowCase((3, 2, 5, 7), 3, (3, 3), (1, 1), (1, 2)),
    "strided": WindowCase((2, 2, 9, 8), 3, (3, 2), (2, 3), (0, 0)),
    "strided and padded": WindowCase((2, 3, 8, 5), 2, (4, 3), (3, 2), (2, 1)),
    "gaps": WindowCase((2, 2, 8, 9), 3, (2, 1), (3, 4), (0, 0)),
    "pointwise": WindowCase((2, 5, 4, 3), 6, (1, 1), (1, 1), (0, 0)),
    "whole image": WindowCase((4, 3, 4, 5), 2, (4, 5), (1, 1), (0, 0)),
    "padding above the kernel": WindowCase((2, 2, 3, 4), 2, (2, 1), (1, 1), (3, 2)),
    "same": WindowCase((2, 2, 5, 6), 3, (3, 5), (1, 1), "same"),
    "same with an even kernel": WindowCase((2, 2, 5, 6), 3, (2, 4), (1, 1), "same"),
    "same with a stride": WindowCase((2, 2, 7, 6), 3, (3, 4), (2, 3), "same"),
}
POOLS = {
    "tiles": WindowCase((2, 3, 6, 8), 0, (2, 2), (2, 2), (0, 0)),
    "leftover": WindowCase((2, 2, 7, 5), 0, (2, 3), (2, 3), (0, 0)),
    "overlap": WindowCase((2, 2, 6, 7), 0, (3, 3), (1, 2), (0, 0)),
    "gaps": WindowCase((2, 2, 8, 9), 0, (2, 1), (3, 4), (0, 0)),
    "padded": WindowCase((2, 2, 6, 5), 0, (3, 2), (2, 1), (1, 1)),
    "ties": WindowCase((2, 3, 6, 8), 0, (2, 2), (2, 2), (0, 0), ties=True),
    "ties in overlaps": WindowCase((2, 2, 6, 7), 0, (3, 3), (1, 2), (0, 0), ties=True),
    "ties at the border": WindowCase((2, 2, 6, 5), 0, (3, 2), (2, 1), (1, 1), ties=True),
    "same": WindowCase((2, 2, 7, 6), 0, (3, 4), (2, 3), "same"),
}

# batches of images (N, C, H, W), or of features (N, D), of one batch norm after the other
BATCH_NORMS: dict[str, list[tuple[int, ...]]] = {
    "images": [(4, 3, 2, 5), (2, 3, 2, 5), (3, 3, 2, 5)],
    "features": [(6, 4), (2, 4), (5, 4)],
}
MOMENTUM, EPSILON = 0.2, 1e-3

# batch, features, outputs
DENSE = (4, 5, 3)
# images, classes
LOGITS = (6, 7)
LABELS = np.array([0, 6, 3, 3, 1, 5])
SMOOTHINGS = (0.0, 0.1, 0.5)

N_STEPS = 20
PARAMETER_SHAPES = {"weight": (3, 2), "bias": (4,)}
OPTIMIZER_CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "sgd": ("sgd", {"learning_rate": 0.1}),
    "sgd with decay": ("sgd", {"learning_rate": 0.1, "weight_decay": 0.05}),
    "sgd with momentum": ("sgd", {"learning_rate": 0.05, "momentum": 0.9, "weight_decay": 0.01}),
    "sgd with nesterov": (
        "sgd",
        {"learning_rate": 0.05, "momentum": 0.8, "nesterov": True, "weight_decay": 0.01},
    ),
    "adam": ("adam", {}),
    "adam with decay": (
        "adam",
        {"learning_rate": 0.02, "betas": (0.7, 0.9), "epsilon": 1e-3, "weight_decay": 0.1},
    ),
    "adamw": ("adamw", {"learning_rate": 0.01}),
    "adamw with decay": ("adamw", {"learning_rate": 0.02, "betas": (0.5, 0.99), "weight_decay": 0.3}),
}


def parameter_values() -> dict[str, NDArray[Any]]:
    """Give the parameters that every optimizer starts from."""
    return {name: numbers(5, *shape) for name, shape in PARAMETER_SHAPES.items()}


def parameter_gradients(step: int) -> dict[str, NDArray[Any]]:
    """Give the gradients of one step, of sizes from 0.01 to 100."""
    return {
        name: numbers(100 + step, *shape) * 10.0 ** (2 * numbers(200 + step, *shape))
        for name, shape in PARAMETER_SHAPES.items()
    }


class ScheduleCase(NamedTuple):
    name: str
    peak: float
    total_steps: int
    steps_per_epoch: int
    options: dict[str, Any]


SCHEDULE_CASES = {
    "step": ScheduleCase("step", 0.5, 30, 5, {}),
    "step of two epochs": ScheduleCase("step", 0.1, 40, 4, {"every": 2, "factor": 0.1}),
    "cosine": ScheduleCase("cosine", 0.3, 50, 10, {}),
    "cosine to a tenth": ScheduleCase("cosine", 2.0, 33, 11, {"final": 0.1}),
    "one cycle": ScheduleCase("one_cycle", 0.01, 60, 60, {}),
    "one cycle of another form": ScheduleCase(
        "one_cycle", 1.5, 47, 47, {"warmup": 0.45, "initial": 0.2, "final": 0.01}
    ),
}

NETWORK_BATCH = 2
NETWORK_LABELS = np.array([3, 7])
NETWORK_SMOOTHING = 0.1
N_PROJECTIONS = 4


def network_images() -> NDArray[Any]:
    return numbers(6, NETWORK_BATCH, 1, 28, 28)


def network_parameters(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, NDArray[Any]]:
    """Give every parameter of a network: weights of variance 2 / fan-in, small biases."""
    parameters = {}
    for index, (name, shape) in enumerate(shapes.items()):
        fan_in = int(np.prod(shape[1:])) if len(shape) > 1 else 100
        parameters[name] = numbers(300 + index, *shape) * np.sqrt(6 / fan_in)
    return parameters


def condense(arrays: Iterable[NDArray[Any]]) -> NDArray[Any]:
    """Reduce each array to its norm and a few projections onto random directions: (arrays, 1 + projections).

    So the golden file of 1.2 million gradients has a few hundred bytes, and a wrong one still shows.
    """
    return np.array(
        [
            [
                np.linalg.norm(array),
                *(np.vdot(numbers(400 + i, *array.shape), array) for i in range(N_PROJECTIONS)),
            ]
            for array in arrays
        ]
    )
