"""float32 stays float32 and float64 stays float64, from the images to the optimizer's state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cnncli.nn import (
    OPTIMIZERS,
    SCHEDULES,
    batch_first,
    batch_last,
    clip_gradient_norm,
    softmax,
    softmax_cross_entropy,
)
from tests.nn.networks import FLATTEN, POOL, RELU, conv, dense, dropout, make_network

EVERY_LAYER = [
    *(conv(3, 3, padding=1), RELU, POOL, conv(2, 3), POOL, RELU),
    *(("max_pool2d", {"kernel_size": 3, "stride": 1, "padding": 1}), dropout(0.3), FLATTEN),
    *(dense(6, "glorot"), RELU, dropout(0.5), dense(4, "small")),
]
DECAY = {"weight_decay": 0.1}
EVERY_TERM: dict[str, dict[str, Any]] = {
    "sgd": {"momentum": 0.9, "nesterov": True, **DECAY},
    "adam": DECAY,
    "adamw": DECAY,
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("optimizer_name", OPTIMIZERS)
@pytest.mark.parametrize("schedule_name", SCHEDULES)
def test_dtype_from_end_to_end(dtype: Any, optimizer_name: str, schedule_name: str) -> None:
    network = make_network(EVERY_LAYER, (1, 9, 9), dtype=dtype)
    optimizer = OPTIMIZERS[optimizer_name](network.parameters, **EVERY_TERM[optimizer_name])
    schedule = SCHEDULES[schedule_name](0.1, 3, 1, warmup=0.5)
    rng = np.random.default_rng(0)
    images = batch_last(rng.standard_normal((5, 1, 9, 9)).astype(dtype))
    followed = {"images": images, "batch first": batch_first(images)}
    for step in range(schedule.total_steps):
        optimizer.learning_rate = schedule.learning_rate(step)
        logits = network.forward(images, training=True, rng=rng)
        loss, grad = softmax_cross_entropy(logits, np.arange(5) % 4, label_smoothing=0.1, divisor=6)
        followed |= {"logits": logits, "probabilities": softmax(logits), "gradient of the logits": grad}
        followed["gradient of the images"] = network.backward(grad)
        norm = clip_gradient_norm(network.parameters, 1e-3)
        optimizer.step()
        assert (type(loss), type(norm)) == (float, float)
    for name, parameter in network.parameters.items():
        followed |= {name: parameter.value, f"gradient of {name}": parameter.grad}
    followed |= optimizer.state
    assert {name: array.dtype for name, array in followed.items() if array.dtype != dtype} == {}
    # the arrays between the layers as well
    x: Any = images
    for layer in network.layers:
        x = layer.forward(x, training=True, rng=rng)
        assert x.dtype == dtype, layer
    for layer in reversed(network.layers):
        x = layer.backward(x)
        assert x.dtype == dtype, layer


def test_float32_and_float64_start_with_the_same_numbers() -> None:
    single, double = (make_network(EVERY_LAYER, (1, 9, 9), dtype=dtype) for dtype in (np.float32, np.float64))
    for name, parameter in double.parameters.items():
        np.testing.assert_array_equal(single.parameters[name].value, parameter.value.astype(np.float32))
