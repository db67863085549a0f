"""Let PyTorch compute the golden arrays that the tests here compare with.

    python -m tests.golden.make_golden

from the root of the repository; needs torch. The arrays that go in come from `cases.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.golden import cases
from tests.golden.numbers import numbers
from tests.nn.networks import FIVE_NETWORKS, MNIST_SHAPE, make_network
from tests.parity import in_torch


def convolutions() -> dict[str, Any]:
    arrays: dict[str, Any] = {}
    for name, case in cases.CONVOLUTIONS.items():
        sides = in_torch.four_sides(
            case.padding, (case.shape[2], case.shape[3]), case.kernel_size, case.stride
        )
        output, arguments = in_torch.convolve(case.images, case.weight, case.bias, case.stride, sides)
        grads = in_torch.gradients(output, arguments, case.grad_output(tuple(output.shape)))
        arrays[f"{name}/output"] = in_torch.to_array(output)
        for what, grad in zip(("grad_images", "grad_weight", "grad_bias"), grads, strict=True):
            arrays[f"{name}/{what}"] = grad
    return arrays


def pools() -> dict[str, Any]:
    arrays: dict[str, Any] = {}
    for name, case in cases.POOLS.items():
        sides = in_torch.four_sides(
            case.padding, (case.shape[2], case.shape[3]), case.kernel_size, case.stride
        )
        output, arguments = in_torch.max_pool(case.images, case.kernel_size, case.stride, sides)
        (grad,) = in_torch.gradients(output, arguments, case.grad_output(tuple(output.shape)))
        arrays |= {f"{name}/output": in_torch.to_array(output), f"{name}/grad_images": grad}
    return arrays


def average_pools() -> dict[str, Any]:
    arrays: dict[str, Any] = {}
    for name, case in cases.POOLS.items():
        sides = in_torch.four_sides(
            case.padding, (case.shape[2], case.shape[3]), case.kernel_size, case.stride
        )
        output, arguments = in_torch.average_pool(case.images, case.kernel_size, case.stride, sides)
        (grad,) = in_torch.gradients(output, arguments, case.grad_output(tuple(output.shape)))
        arrays |= {f"{name}/output": in_torch.to_array(output), f"{name}/grad_images": grad}
    return arrays


def batch_norms() -> dict[str, Any]:
    """The output, gradients and averages of every batch in training, then of the last one in evaluation."""
    arrays: dict[str, Any] = {}
    for name, shapes in cases.BATCH_NORMS.items():
        layer = in_torch.batch_norm(shapes[0][1:], cases.MOMENTUM, cases.EPSILON)
        layer.weight.data[...] = in_torch.tensor(numbers(2, shapes[0][1]))
        layer.bias.data[...] = in_torch.tensor(numbers(3, shapes[0][1]))
        for step, shape in enumerate([*shapes, shapes[-1]]):
            layer.train(step < len(shapes))
            layer.zero_grad()
            x = in_torch.tensor(3 * numbers(10 + step, *shape) + 1, requires_grad=True)
            output = layer(x)
            grads = in_torch.gradients(output, [x, layer.weight, layer.bias], numbers(20 + step, *shape))
            arrays |= {
                f"{name}/{step}/output": in_torch.to_array(output),
                f"{name}/{step}/running_mean": in_torch.to_array(layer.running_mean).copy(),
                f"{name}/{step}/running_var": in_torch.to_array(layer.running_var).copy(),
            }
            for what, grad in zip(("input", "weight", "bias"), grads, strict=True):
                arrays[f"{name}/{step}/grad_{what}"] = grad.copy()
    return arrays


def dense_and_loss() -> dict[str, Any]:
    N, D, K = cases.DENSE
    output, arguments = in_torch.dense(numbers(1, N, D), numbers(2, K, D), numbers(3, K))
    grads = in_torch.gradients(output, arguments, numbers(4, N, K))
    arrays: dict[str, Any] = {"dense/output": in_torch.to_array(output)}
    for what, grad in zip(("grad_features", "grad_weight", "grad_bias"), grads, strict=True):
        arrays[f"dense/{what}"] = grad
    for smoothing in cases.SMOOTHINGS:
        loss, arguments = in_torch.cross_entropy(4 * numbers(1, *cases.LOGITS), cases.LABELS, smoothing)
        (grad,) = in_torch.gradients(loss, arguments)
        arrays |= {f"loss/{smoothing}": in_torch.to_array(loss), f"loss/{smoothing}/grad_logits": grad}
    return arrays


def optimizers() -> dict[str, Any]:
    """The concatenated parameters after every step."""
    arrays: dict[str, Any] = {}
    for name, (kind, options) in cases.OPTIMIZER_CASES.items():
        tensors = {key: in_torch.tensor(value, True) for key, value in cases.parameter_values().items()}
        optimizer = in_torch.optimizer(kind, options, list(tensors.values()))
        rows = []
        for step in range(cases.N_STEPS):
            for key, grad in cases.parameter_gradients(step).items():
                tensors[key].grad = in_torch.tensor(grad)
            optimizer.step()
            rows.append(np.concatenate([in_torch.to_array(t).ravel() for t in tensors.values()]))
        arrays[name] = np.array(rows)
    return arrays


def schedules() -> dict[str, Any]:
    return {name: np.array(in_torch.learning_rates(*case)) for name, case in cases.SCHEDULE_CASES.items()}


def networks() -> dict[str, Any]:
    arrays: dict[str, Any] = {}
    for name, specs in FIVE_NETWORKS.items():
        shapes = {key: p.value.shape for key, p in make_network(specs, MNIST_SHAPE).parameters.items()}
        values = cases.network_parameters(shapes)
        parameters = {key: in_torch.tensor(value, True) for key, value in values.items()}
        images = in_torch.tensor(cases.network_images(), True)
        logits = in_torch.network(specs, parameters, images)
        loss = in_torch.functional.cross_entropy(
            logits, in_torch.tensor(cases.NETWORK_LABELS), label_smoothing=cases.NETWORK_SMOOTHING
        )
        grads = in_torch.gradients(loss, [images, *parameters.values()])
        arrays |= {f"{name}/logits": in_torch.to_array(logits), f"{name}/loss": in_torch.to_array(loss)}
        arrays[f"{name}/gradients"] = cases.condense(grads)
    return arrays


def main() -> None:
    made = convolutions, pools, average_pools, batch_norms, dense_and_loss, optimizers, schedules, networks
    for make in made:
        np.savez_compressed(cases.DIRECTORY / f"{make.__name__}.npz", **make())


if __name__ == "__main__":
    main()
