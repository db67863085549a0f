"""What every layer promises, checked on every layer: one line each in the table."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pytest

from cnncli.errors import ShapeError
from cnncli.nn import LAYERS, Layer, check_gradients
from tests.nn.networks import make_layer


class Case(NamedTuple):
    input_shape: tuple[int, ...]
    options: dict[str, Any]
    output_shape: tuple[int, ...]


WINDOW = {"kernel_size": (3, 2), "stride": (2, 1), "padding": (1, 0)}
CASES = {
    "conv2d": Case((2, 6, 5), {"out_channels": 3, **WINDOW}, (3, 3, 4)),
    "max_pool2d": Case((2, 6, 5), WINDOW, (2, 3, 4)),
    "average_pool2d": Case((2, 6, 5), WINDOW, (2, 3, 4)),
    "global_average_pool2d": Case((2, 6, 5), {}, (2,)),
    "dense": Case((7,), {"out_features": 4}, (4,)),
    "batch_norm2d": Case((2, 6, 5), {"momentum": 0.3}, (2, 6, 5)),
    "batch_norm1d": Case((7,), {"epsilon": 1e-3}, (7,)),
    "relu": Case((2, 6, 5), {}, (2, 6, 5)),
    "sigmoid": Case((2, 6, 5), {}, (2, 6, 5)),
    "tanh": Case((7,), {}, (7,)),
    "flatten": Case((2, 6, 5), {}, (60,)),
    "dropout": Case((2, 6, 5), {"drop_probability": 0.4}, (2, 6, 5)),
}

every_layer = pytest.mark.parametrize("name", CASES)
both_modes = pytest.mark.parametrize("training", [False, True])
both_dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def build(name: str, dtype: Any = np.float64) -> Layer:
    """Make the layer of the table, with random parameters (biases too)."""
    case = CASES[name]
    layer = make_layer((name, case.options), case.input_shape, dtype=dtype)
    rng = np.random.default_rng(1)
    for parameter in layer.parameters.values():
        parameter.value[...] = rng.standard_normal(parameter.value.shape)
    return layer


def draw(shape: tuple[int, ...], N: int, seed: int, dtype: Any = np.float64) -> Any:
    return np.random.default_rng(seed).standard_normal((*shape, N)).astype(dtype)


def run(layer: Layer, N: int, seed: int = 2, training: bool = False, dtype: Any = np.float64) -> list[Any]:
    """Copy what a forward and a backward give: output, gradient of the input, gradients of parameters."""
    x, grad = draw(layer.input_shape, N, seed, dtype), draw(layer.output_shape, N, seed + 1, dtype)
    y = layer.forward(x, training=training, rng=np.random.default_rng(seed)).copy()
    grad_input = layer.backward(grad).copy()
    return [y, grad_input, *(parameter.grad.copy() for parameter in layer.parameters.values())]


def assert_same_bits(results: list[Any], expected: list[Any]) -> None:
    for result, right in zip(results, expected, strict=True):
        assert result.dtype == right.dtype
        np.testing.assert_array_equal(result, right)


def test_every_layer_is_in_the_table() -> None:
    assert CASES.keys() == LAYERS.keys()


@every_layer
def test_shapes(name: str) -> None:
    layer, case = build(name), CASES[name]
    assert layer.input_shape == case.input_shape
    assert layer.output_shape == case.output_shape
    for N in (1, 4):
        y, grad_input, *grads = run(layer, N)
        assert y.shape == (*case.output_shape, N)
        assert grad_input.shape == (*case.input_shape, N)
        assert [g.shape for g in grads] == [p.value.shape for p in layer.parameters.values()]


@every_layer
@both_modes
@both_dtypes
def test_dtype_is_kept(name: str, training: bool, dtype: Any) -> None:
    layer = build(name, dtype)
    assert all(p.value.dtype == p.grad.dtype == dtype for p in layer.parameters.values())
    assert {array.dtype for array in run(layer, 4, training=training, dtype=dtype)} == {np.dtype(dtype)}


@every_layer
def test_float32_agrees_with_float64(name: str) -> None:
    single, double = build(name, np.float32), build(name)
    for key, parameter in double.parameters.items():
        parameter.value[...] = single.parameters[key].value
    for N in (1, 33):
        for rough, fine in zip(run(single, N, dtype=np.float32), run(double, N), strict=True):
            np.testing.assert_allclose(rough, fine, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", [name for name in CASES if not build(name).parameters])
def test_layers_without_parameters_take_either_dtype(name: str) -> None:
    layer = build(name)
    for dtype in (np.float64, np.float32, np.float64):
        assert {array.dtype for array in run(layer, 3, dtype=dtype)} == {np.dtype(dtype)}


@every_layer
@both_modes
def test_arguments_are_untouched(name: str, training: bool) -> None:
    layer = build(name)
    x, grad = draw(layer.input_shape, 4, 2), draw(layer.output_shape, 4, 3)
    before = x.copy(), grad.copy()
    x.flags.writeable = grad.flags.writeable = False
    layer.forward(x, training=training, rng=np.random.default_rng(0))
    layer.backward(grad)
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(grad, before[1])


@every_layer
@both_modes
def test_gradients_are_overwritten(name: str, training: bool) -> None:
    layer = build(name)
    once = run(layer, 4, training=training)
    for parameter in layer.parameters.values():
        parameter.grad[...] = np.nan
    assert_same_bits(run(layer, 4, training=training), once)
    # and a second backward of the same forward writes them again
    layer.backward(draw(layer.output_shape, 4, 9))
    layer.backward(draw(layer.output_shape, 4, 3))
    assert_same_bits([parameter.grad for parameter in layer.parameters.values()], once[2:])


@every_layer
@both_modes
def test_parameters_are_neither_changed_nor_rebound(name: str, training: bool) -> None:
    layer = build(name)
    arrays = {key: p.value for key, p in layer.parameters.items()}
    before = {key: array.copy() for key, array in arrays.items()}
    run(layer, 4, training=training)
    for key, parameter in layer.parameters.items():
        assert parameter.value is arrays[key]
        np.testing.assert_array_equal(parameter.value, before[key])


@every_layer
@both_modes
def test_results_stay_valid_until_the_same_method_is_called_again(name: str, training: bool) -> None:
    layer, rng = build(name), np.random.default_rng(0)
    x, grad = draw(layer.input_shape, 4, 2), draw(layer.output_shape, 4, 3)
    y = layer.forward(x, training=training, rng=rng)
    kept = y.copy()
    grad_input = layer.backward(grad)
    np.testing.assert_array_equal(y, kept)
    kept = grad_input.copy()
    layer.forward(draw(layer.input_shape, 4, 5), training=training, rng=rng)
    np.testing.assert_array_equal(grad_input, kept)
    layer.forward(draw(layer.input_shape, 9, 6), training=training, rng=rng)
    np.testing.assert_array_equal(grad_input, kept)


@every_layer
@both_modes
@both_dtypes
@pytest.mark.parametrize("sizes", [(9, 4, 9), (1, 9, 1), (4, 5, 3, 4)])
def test_scratch_of_other_batches_leaves_no_trace(
    name: str, training: bool, dtype: Any, sizes: tuple[int, ...]
) -> None:
    used = build(name, dtype)
    for seed, N in enumerate(sizes):
        expected = run(build(name, dtype), N, seed, training, dtype)
        assert_same_bits(run(used, N, seed, training, dtype), expected)


@every_layer
@both_modes
def test_memory_layout_of_the_arguments_does_not_matter(name: str, training: bool) -> None:
    layer = build(name)
    expected = run(layer, 4, training=training)
    x, grad = draw(layer.input_shape, 4, 2), draw(layer.output_shape, 4, 3)
    # the same numbers as a view of a batch-first array
    x, grad = (np.moveaxis(np.moveaxis(array, -1, 0).copy(), 0, -1) for array in (x, grad))
    y = layer.forward(x, training=training, rng=np.random.default_rng(2))
    grad_input = layer.backward(grad)
    grads = [parameter.grad for parameter in layer.parameters.values()]
    for result, right in zip([y, grad_input, *grads], expected, strict=True):
        np.testing.assert_allclose(result, right, rtol=0, atol=1e-12)


@every_layer
def test_images_of_a_batch_do_not_mix_in_evaluation(name: str) -> None:
    layer = build(name)
    x, grad = draw(layer.input_shape, 7, 2), draw(layer.output_shape, 7, 3)
    y, grad_input = layer.forward(x).copy(), layer.backward(grad).copy()
    grads = [parameter.grad.copy() for parameter in layer.parameters.values()]
    sums = [np.zeros_like(g) for g in grads]
    for part in (slice(0, 1), slice(1, 4), slice(4, 7)):
        np.testing.assert_allclose(layer.forward(x[..., part]), y[..., part], rtol=0, atol=1e-12)
        np.testing.assert_allclose(layer.backward(grad[..., part]), grad_input[..., part], rtol=0, atol=1e-12)
        for total, parameter in zip(sums, layer.parameters.values(), strict=True):
            total += parameter.grad
    for total, right in zip(sums, grads, strict=True):
        np.testing.assert_allclose(total, right, rtol=0, atol=1e-11)


@every_layer
def test_a_batch_without_images(name: str) -> None:
    layer = build(name)
    y, grad_input, *grads = run(layer, 0, training=True)
    assert y.shape == (*layer.output_shape, 0)
    assert grad_input.shape == (*layer.input_shape, 0)
    assert not any(grad.any() for grad in grads)


@every_layer
@both_modes
def test_gradients_match_differences(name: str, training: bool) -> None:
    layer = build(name)
    for seed in range(3):
        checks = check_gradients(layer, layer.input_shape, np.random.default_rng(seed), training=training)
        assert [check.name for check in checks] == ["input", *layer.parameters]
        assert {check.verdict for check in checks} == {"right"}, checks


@every_layer
@both_modes
def test_training_depends_on_the_generator_alone(name: str, training: bool) -> None:
    layer = build(name)
    first = run(layer, 4, training=training)
    run(layer, 4, seed=8, training=training)
    assert_same_bits(run(layer, 4, training=training), first)


@every_layer
def test_replica_shares_values(name: str) -> None:
    layer = build(name)
    replica = layer.replica()
    assert type(replica) is type(layer)
    assert (replica.input_shape, replica.output_shape) == (layer.input_shape, layer.output_shape)
    assert replica.parameters.keys() == layer.parameters.keys()
    for key, parameter in layer.parameters.items():
        parameter.value[...] = np.random.default_rng(5).standard_normal(parameter.value.shape)
        assert np.shares_memory(replica.parameters[key].value, parameter.value)
        np.testing.assert_array_equal(replica.parameters[key].value, parameter.value)
    assert_same_bits(run(replica, 4), run(layer, 4))


@every_layer
@both_modes
def test_replica_owns_gradients_and_scratch(name: str, training: bool) -> None:
    layer, rng = build(name), np.random.default_rng(0)
    # replicas of a used layer and of a replica are as independent as those of a new one
    run(layer, 4, training=training)
    replica = layer.replica()
    second = replica.replica()
    x, grad = draw(layer.input_shape, 4, 2), draw(layer.output_shape, 4, 3)
    y = layer.forward(x, training=training, rng=np.random.default_rng(2))
    kept_y = y.copy()
    for other in (replica, second):
        other.forward(draw(layer.input_shape, 4, 5), training=training, rng=rng)
    grad_input = layer.backward(grad)
    kept = [grad_input.copy(), *(p.grad.copy() for p in layer.parameters.values())]
    for other in (replica, second):
        other.backward(draw(layer.output_shape, 4, 6))
        for key, parameter in layer.parameters.items():
            assert not np.shares_memory(other.parameters[key].grad, parameter.grad)
    np.testing.assert_array_equal(y, kept_y)
    assert_same_bits([grad_input, *(p.grad for p in layer.parameters.values())], kept)
    assert_same_bits([kept_y, *kept], run(build(name), 4, training=training))


@every_layer
def test_replicas_run_on_threads_of_their_own(name: str) -> None:
    layer = build(name)
    expected = [run(build(name), 40, seed, training=True) for seed in range(8)]

    def work(replica: Layer) -> list[list[Any]]:
        return [run(replica, 40, seed, training=True) for seed in range(8)]

    with ThreadPoolExecutor(4) as pool:
        for results in pool.map(work, [layer, *(layer.replica() for _ in range(3))]):
            for result, right in zip(results, expected, strict=True):
                assert_same_bits(result, right)


@every_layer
def test_what_is_no_array_is_refused(name: str) -> None:
    layer = build(name)
    with pytest.raises(ShapeError, match="expected a NumPy array, got list"):
        layer.forward([[1.0]])  # type: ignore[arg-type]
    layer.forward(draw(layer.input_shape, 2, 0))
    with pytest.raises(ShapeError, match="expected a NumPy array, got list"):
        layer.backward([[1.0]])  # type: ignore[arg-type]
