"""Layers, optimizers, schedules and networks against arrays that PyTorch has computed."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cnncli.nn import (
    OPTIMIZERS,
    SCHEDULES,
    AveragePool2D,
    BatchNorm1D,
    BatchNorm2D,
    Conv2D,
    Dense,
    MaxPool2D,
    Parameter,
    batch_first,
    batch_last,
    softmax_cross_entropy,
)
from tests.golden import cases
from tests.golden.numbers import numbers
from tests.nn.networks import FIVE_NETWORKS, MNIST_SHAPE, make_network


@lru_cache
def golden(file: str) -> dict[str, NDArray[Any]]:
    with np.load(cases.DIRECTORY / f"{file}.npz", allow_pickle=False) as archive:
        return dict(archive)


def assert_close(actual: Any, expected: Any, tolerance: float = 1e-10) -> None:
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance)


def test_numbers_are_the_same_everywhere() -> None:
    # the first outputs of SplitMix64 started at 0
    words = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert numbers(0, 3).tolist() == [(word >> 11) / 2**52 - 1 for word in words]


def test_files_are_small() -> None:
    assert sum(file.stat().st_size for file in cases.DIRECTORY.glob("*.npz")) < 200_000


@pytest.mark.parametrize("name", cases.CONVOLUTIONS)
def test_convolution(name: str) -> None:
    case, arrays = cases.CONVOLUTIONS[name], golden("convolutions")
    layer = Conv2D(
        case.shape[1:],
        out_channels=case.F,
        kernel_size=case.kernel_size,
        stride=case.stride,
        padding=case.padding,  # type: ignore[arg-type]
        dtype=np.float64,
    )
    layer.parameters["weight"].value[...] = case.weight
    layer.parameters["bias"].value[...] = case.bias
    y = batch_first(layer.forward(batch_last(case.images)))
    assert_close(y, arrays[f"{name}/output"])
    assert_close(
        batch_first(layer.backward(batch_last(case.grad_output(y.shape)))), arrays[f"{name}/grad_images"]
    )
    assert_close(layer.parameters["weight"].grad, arrays[f"{name}/grad_weight"])
    assert_close(layer.parameters["bias"].grad, arrays[f"{name}/grad_bias"])


@pytest.mark.parametrize("name", cases.POOLS)
def test_max_pool(name: str) -> None:
    case, arrays = cases.POOLS[name], golden("pools")
    layer = MaxPool2D(
        case.shape[1:],
        kernel_size=case.kernel_size,
        stride=case.stride,
        padding=case.padding,  # type: ignore[arg-type]
    )
    y = batch_first(layer.forward(batch_last(case.images)))
    assert_close(y, arrays[f"{name}/output"])
    assert_close(
        batch_first(layer.backward(batch_last(case.grad_output(y.shape)))), arrays[f"{name}/grad_images"]
    )


@pytest.mark.parametrize("name", cases.POOLS)
def test_average_pool(name: str) -> None:
    case, arrays = cases.POOLS[name], golden("average_pools")
    layer = AveragePool2D(
        case.shape[1:],
        kernel_size=case.kernel_size,
        stride=case.stride,
        padding=case.padding,  # type: ignore[arg-type]
    )
    y = batch_first(layer.forward(batch_last(case.images)))
    assert_close(y, arrays[f"{name}/output"])
    assert_close(
        batch_first(layer.backward(batch_last(case.grad_output(y.shape)))), arrays[f"{name}/grad_images"]
    )


@pytest.mark.parametrize("name", cases.BATCH_NORMS)
def test_batch_norm(name: str) -> None:
    arrays, shapes = golden("batch_norms"), cases.BATCH_NORMS[name]
    cls = BatchNorm2D if name == "images" else BatchNorm1D
    layer = cls(shapes[0][1:], momentum=cases.MOMENTUM, epsilon=cases.EPSILON, dtype=np.float64)
    for seed, parameter in zip((2, 3), layer.parameters.values(), strict=True):
        parameter.value[...] = numbers(seed, shapes[0][1])
    for step, shape in enumerate([*shapes, shapes[-1]]):
        x = np.moveaxis(3 * numbers(10 + step, *shape) + 1, 0, -1)
        y = layer.forward(x, training=step < len(shapes))
        assert_close(np.moveaxis(y, -1, 0), arrays[f"{name}/{step}/output"])
        for what, buffer in layer.buffers.items():
            assert_close(buffer, arrays[f"{name}/{step}/{what}"])
        grad_input = layer.backward(np.moveaxis(numbers(20 + step, *shape), 0, -1))
        assert_close(np.moveaxis(grad_input, -1, 0), arrays[f"{name}/{step}/grad_input"])
        for what, parameter in layer.parameters.items():
            assert_close(parameter.grad, arrays[f"{name}/{step}/grad_{what}"])


def test_dense() -> None:
    arrays, (N, D, K) = golden("dense_and_loss"), cases.DENSE
    layer = Dense((D,), out_features=K, dtype=np.float64)
    layer.parameters["weight"].value[...] = numbers(2, K, D)
    layer.parameters["bias"].value[...] = numbers(3, K)
    assert_close(layer.forward(numbers(1, N, D).T).T, arrays["dense/output"])
    assert_close(layer.backward(numbers(4, N, K).T).T, arrays["dense/grad_features"])
    assert_close(layer.parameters["weight"].grad, arrays["dense/grad_weight"])
    assert_close(layer.parameters["bias"].grad, arrays["dense/grad_bias"])


@pytest.mark.parametrize("smoothing", cases.SMOOTHINGS)
def test_softmax_cross_entropy(smoothing: float) -> None:
    arrays = golden("dense_and_loss")
    logits = 4 * numbers(1, *cases.LOGITS)
    loss, grad = softmax_cross_entropy(logits.T, cases.LABELS, label_smoothing=smoothing)
    assert loss == pytest.approx(arrays[f"loss/{smoothing}"].item(), abs=1e-12)
    assert_close(grad.T, arrays[f"loss/{smoothing}/grad_logits"], 1e-12)


@pytest.mark.parametrize("name", cases.OPTIMIZER_CASES)
def test_optimizer(name: str) -> None:
    kind, options = cases.OPTIMIZER_CASES[name]
    parameters = {key: Parameter(value) for key, value in cases.parameter_values().items()}
    optimizer = OPTIMIZERS[kind](parameters, **options)
    expected = golden("optimizers")[name]
    assert len(expected) == cases.N_STEPS
    for step, row in enumerate(expected):
        for key, grad in cases.parameter_gradients(step).items():
            parameters[key].grad[...] = grad
        optimizer.step()
        assert_close(np.concatenate([p.value.ravel() for p in parameters.values()]), row)


@pytest.mark.parametrize("name", cases.SCHEDULE_CASES)
def test_schedule(name: str) -> None:
    kind, peak, total_steps, steps_per_epoch, options = cases.SCHEDULE_CASES[name]
    schedule = SCHEDULES[kind](peak, total_steps, steps_per_epoch, **options)
    rates = np.array([schedule.learning_rate(step) for step in range(total_steps)])
    assert_close(rates, golden("schedules")[name], 1e-12)


@pytest.mark.parametrize("name", FIVE_NETWORKS)
def test_network(name: str) -> None:
    arrays = golden("networks")
    network = make_network(FIVE_NETWORKS[name], MNIST_SHAPE)
    shapes = {key: parameter.value.shape for key, parameter in network.parameters.items()}
    for key, value in cases.network_parameters(shapes).items():
        network.parameters[key].value[...] = value
    logits = network.forward(batch_last(cases.network_images()))
    loss, grad = softmax_cross_entropy(logits, cases.NETWORK_LABELS, label_smoothing=cases.NETWORK_SMOOTHING)
    assert_close(logits.T, arrays[f"{name}/logits"], 1e-9)
    assert loss == pytest.approx(arrays[f"{name}/loss"].item(), abs=1e-9)
    grad_images = batch_first(network.backward(grad))
    grads = [grad_images, *(parameter.grad for parameter in network.parameters.values())]
    assert_close(cases.condense(grads), arrays[f"{name}/gradients"], 1e-9)
