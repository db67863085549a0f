"""The same computations in PyTorch: batch-first float64 arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.nn.networks import LayerSpec
from tests.nn.references import FourSides, same_sides

# By name and not by an import, so that the types are checked alike with and without PyTorch.
torch: Any = pytest.importorskip("torch", reason="comparing with PyTorch needs torch")
functional: Any = torch.nn.functional

Array: TypeAlias = NDArray[Any]
Tensor: TypeAlias = Any


def tensor(array: Any, requires_grad: bool = False) -> Tensor:
    """Copy an array into a tensor."""
    return torch.tensor(np.array(array), requires_grad=requires_grad)


def four_sides(
    padding: Any, image_size: tuple[int, int], kernel_size: tuple[int, int], stride: tuple[int, int]
) -> FourSides:
    """Turn every form of padding into (top, bottom, left, right)."""
    if padding == "same":
        return same_sides(image_size, kernel_size, stride)
    height, width = (padding, padding) if isinstance(padding, int) else padding
    return height, height, width, width


def pad(images: Tensor, sides: FourSides, value: float = 0.0) -> Tensor:
    top, bottom, left, right = sides
    return functional.pad(images, (left, right, top, bottom), value=value)


def convolve(
    images: Array, weight: Array, bias: Array, stride: tuple[int, int], sides: FourSides
) -> tuple[Tensor, list[Tensor]]:
    """Return the output and the three tensors that it depends on."""
    arguments = [tensor(array, requires_grad=True) for array in (images, weight, bias)]
    x, w, b = arguments
    return functional.conv2d(pad(x, sides), w, b, stride=stride), arguments


def max_pool(
    images: Array, kernel_size: tuple[int, int], stride: tuple[int, int], sides: FourSides
) -> tuple[Tensor, list[Tensor]]:
    x = tensor(images, requires_grad=True)
    return functional.max_pool2d(pad(x, sides, -np.inf), kernel_size, stride), [x]


def average_pool(
    images: Array, kernel_size: tuple[int, int], stride: tuple[int, int], sides: FourSides
) -> tuple[Tensor, list[Tensor]]:
    """Average over zero-padded images."""
    x = tensor(images, requires_grad=True)
    return functional.avg_pool2d(pad(x, sides), kernel_size, stride), [x]


def batch_norm(shape: tuple[int, ...], momentum: float, epsilon: float) -> Any:
    """Make PyTorch's batch norm of images (C, H, W) or features (D,), in float64."""
    cls = torch.nn.BatchNorm2d if len(shape) == 3 else torch.nn.BatchNorm1d
    return cls(shape[0], momentum=momentum, eps=epsilon, dtype=torch.float64)


def dense(features: Array, weight: Array, bias: Array) -> tuple[Tensor, list[Tensor]]:
    """Features (N, D) to outputs (N, K)."""
    arguments = [tensor(array, requires_grad=True) for array in (features, weight, bias)]
    return functional.linear(*arguments), arguments


def cross_entropy(logits: Array, labels: Array, smoothing: float) -> tuple[Tensor, list[Tensor]]:
    """Logits (N, K)."""
    z = tensor(logits, requires_grad=True)
    return functional.cross_entropy(z, tensor(labels), label_smoothing=smoothing), [z]


def gradients(output: Tensor, arguments: Sequence[Tensor], grad_output: Array | None = None) -> list[Array]:
    """Run backward; return the gradient of every argument."""
    output.backward(None if grad_output is None else tensor(grad_output))
    return [argument.grad.numpy() for argument in arguments]


def to_array(value: Tensor) -> Array:
    array: Array = value.detach().numpy()
    return array


def network(specs: Sequence[LayerSpec], parameters: Mapping[str, Tensor], x: Tensor) -> Tensor:
    """Run layers in evaluation: images (N, C, H, W) to outputs (N, K)."""
    for index, (name, options) in enumerate(specs):
        weight, bias = parameters.get(f"{index}/weight"), parameters.get(f"{index}/bias")
        if name in ("conv2d", "max_pool2d"):
            x = _windows(name, options, x, weight, bias)
        elif name == "dense":
            x = functional.linear(x, weight, bias)
        elif name == "relu":
            x = functional.relu(x)
        elif name == "flatten":
            x = torch.flatten(x, 1)
        else:
            assert name == "dropout", name
    return x


def _windows(name: str, options: dict[str, Any], x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    kernel, stride = (
        (side, side) if isinstance(side, int) else side
        for side in (
            options["kernel_size"],
            options.get("stride", options["kernel_size"] if weight is None else 1),
        )
    )
    sides = four_sides(options.get("padding", 0), (x.shape[2], x.shape[3]), kernel, stride)
    if name == "max_pool2d":
        return functional.max_pool2d(pad(x, sides, -np.inf), kernel, stride)
    return functional.conv2d(pad(x, sides), weight, bias, stride=stride)


def optimizer(name: str, options: Mapping[str, Any], parameters: Sequence[Tensor]) -> Any:
    """Make PyTorch's optimizer of the same name and options; the defaults are spelled out."""
    options = dict(options)
    rate = {"lr": options.pop("learning_rate", 0.01 if name == "sgd" else 1e-3)}
    if "epsilon" in options:
        rate["eps"] = options.pop("epsilon")
    cls = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[name]
    if name == "adamw":
        options.setdefault("weight_decay", 0.01)
    return cls(parameters, **rate, **options)


def learning_rates(
    name: str, peak: float, total_steps: int, steps_per_epoch: int, options: Mapping[str, Any]
) -> list[float]:
    """Let PyTorch's scheduler give the rate of every step."""
    steps = torch.optim.SGD([torch.zeros(1)], lr=peak)
    schedulers = torch.optim.lr_scheduler
    if name == "step":
        scheduler = schedulers.StepLR(
            steps, step_size=options.get("every", 1) * steps_per_epoch, gamma=options.get("factor", 0.7)
        )
    elif name == "cosine":
        scheduler = schedulers.CosineAnnealingLR(
            steps, T_max=total_steps, eta_min=peak * options.get("final", 0.0)
        )
    else:
        initial, final = options.get("initial", 0.04), options.get("final", 0.0001)
        scheduler = schedulers.OneCycleLR(
            steps,
            max_lr=peak,
            total_steps=total_steps,
            pct_start=options.get("warmup", 0.3),
            div_factor=1 / initial,
            final_div_factor=initial / final,
            cycle_momentum=False,
        )
    rates = []
    for step in range(total_steps):
        rates.append(float(steps.param_groups[0]["lr"]))
        steps.step()
        if step + 1 < total_steps:
            scheduler.step()
    return rates
