"""What every layer promises, checked on every layer: one line each in the table."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pytest

from cnncli.errors import OptionError, ShapeError
from cnncli.nn import LAYERS, Layer, check_gradients
from tests.nn.networks import make_layer
from tests.nn.signatures import options_of, refused_values


class Case(NamedTuple):
    input_shape: tuple[int, ...]
    options: dict[str, Any]
    output_shape: tuple[int, ...]


WINDOW = {"kernel_size": (3, 2), "stride": (2, 1), "padding": (1, 0)}
CASES = {
    "conv2d": Case((2, 6, 5), {"out_channels": 3, **WINDOW}, (3, 3, 4)),
    "max_pool2d": Case((2, 6, 5), WINDOW, (2, 3, 4)),
    "dense": Case((7,), {"out_features": 4}, (4,)),
    "relu": Case((2, 6, 5), {}, (2, 6, 5)),
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


@every_layer
def test_layers_without_parameters_take_either_dtype(name: str) -> None:
    layer = build(name)
    if layer.parameters:
        pytest.skip("the parameters set the dtype")
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
def test_images_of_a_batch_do_not_mix_in_evaluation(name: str) -> None:  # B69
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
def test_gradients_match_differences(name: str) -> None:
    layer = build(name)
    for seed in range(3):
        checks = check_gradients(layer, draw(layer.input_shape, 4, seed), np.random.default_rng(seed))
        assert [check.name for check in checks] == ["input", *layer.parameters]
        assert max(check.relative_error for check in checks) < 1e-7


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
def test_backward_needs_a_forward(name: str) -> None:
    layer = build(name)
    grad = draw(layer.output_shape, 4, 0)
    message = rf"^{type(layer).__name__}\(.*backward needs a forward before it"
    with pytest.raises(ShapeError, match=message):
        layer.backward(grad)
    run(layer, 4)
    with pytest.raises(ShapeError, match=message):
        layer.replica().backward(grad)


def wrong_shapes(shape: tuple[int, ...], N: int) -> Iterator[tuple[int, ...]]:
    """Batch first, no batch axis, one axis too many, and every size one too large or too small."""
    yield N, *shape
    yield shape
    yield *shape, N, 1
    yield ()
    for axis in range(len(shape)):
        for change in (-1, 1):
            yield *shape[:axis], shape[axis] + change, *shape[axis + 1 :], N


@every_layer
def test_inputs_of_the_wrong_shape(name: str) -> None:
    layer = build(name)
    expected = ", ".join([*map(str, layer.input_shape), "N"])
    for shape in wrong_shapes(layer.input_shape, 3):
        message = f"expected an input of shape ({expected}), got {shape}"
        with pytest.raises(ShapeError, match=rf"^{type(layer).__name__}\(.*{re.escape(message)}"):
            layer.forward(np.zeros(shape))


@every_layer
def test_gradients_of_the_wrong_shape(name: str) -> None:
    layer = build(name)
    layer.forward(np.zeros((*layer.input_shape, 3)))
    expected = (*layer.output_shape, 3)
    for shape in [*wrong_shapes(layer.output_shape, 3), (*layer.output_shape, 2), (*layer.output_shape, 1)]:
        message = f"expected a grad_output of shape {expected}, got {shape}"
        with pytest.raises(ShapeError, match=rf"^{type(layer).__name__}\(.*{re.escape(message)}"):
            layer.backward(np.zeros(shape))


@every_layer
@both_dtypes
@pytest.mark.parametrize("wrong", ["uint8", "int64", "float16", "longdouble", "complex128", "bool", "object"])
def test_arrays_that_are_no_floats(name: str, dtype: Any, wrong: str) -> None:  # B09
    layer, got = build(name, dtype), np.dtype(wrong)
    floats = f"{np.dtype(dtype)} as the parameters" if layer.parameters else "float32 or float64"
    with pytest.raises(ShapeError, match=f"expected an input of {floats}, got {got}"):
        layer.forward(np.zeros((*layer.input_shape, 2), got))
    layer.forward(np.zeros((*layer.input_shape, 2), dtype))
    with pytest.raises(ShapeError, match=f"expected a grad_output of {np.dtype(dtype)} .*, got {got}"):
        layer.backward(np.zeros((*layer.output_shape, 2), got))


@every_layer
def test_bytes_in_foreign_order_are_refused(name: str) -> None:  # B50
    layer = build(name)
    foreign = np.dtype(np.float64).newbyteorder()
    with pytest.raises(ShapeError, match=f"expected an input of float.*, got {foreign}"):
        layer.forward(np.zeros((*layer.input_shape, 2), foreign))


@every_layer
def test_precisions_do_not_mix(name: str) -> None:
    layer = build(name, np.float32)
    if layer.parameters:
        with pytest.raises(ShapeError, match="expected an input of float32 as the parameters, got float64"):
            layer.forward(np.zeros((*layer.input_shape, 2)))
    layer.forward(np.zeros((*layer.input_shape, 2), np.float32))
    with pytest.raises(ShapeError, match="expected a grad_output of float32 as the input, got float64"):
        layer.backward(np.zeros((*layer.output_shape, 2)))


@every_layer
def test_a_refused_input_does_not_count_as_a_forward(name: str) -> None:
    layer = build(name)
    with pytest.raises(ShapeError):
        layer.forward(np.zeros((*layer.input_shape, 2), int))
    with pytest.raises(ShapeError, match="backward needs a forward"):
        layer.backward(np.zeros((*layer.output_shape, 2)))


@every_layer
def test_constructor_takes_the_input_shape_and_named_options(name: str) -> None:
    parameters = list(inspect.signature(LAYERS[name]).parameters.values())
    assert parameters[0].name == "input_shape"
    assert parameters[0].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert {parameter.kind for parameter in parameters[1:]} <= {inspect.Parameter.KEYWORD_ONLY}
    assert options_of(LAYERS[name]).keys() == {p.name for p in parameters[1:]} - {"rng", "dtype"}
    assert CASES[name].options.keys() <= options_of(LAYERS[name]).keys()


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [(name, *refusal) for name in CASES for refusal in refused_values(LAYERS[name])],
)
def test_constructor_refuses_what_its_annotations_refuse(name: str, option: str, value: Any) -> None:
    case = CASES[name]
    with pytest.raises(OptionError) as caught:
        make_layer((name, {**case.options, option: value}), case.input_shape)
    assert caught.value.option == option
    # the words are the same, but for "or null" where null stands for another option's value
    assert options_of(LAYERS[name])[option].expected.startswith(caught.value.expected)


@every_layer
@pytest.mark.parametrize("shape", [(), (0, 4, 4), (-1,), (2.0,), ("a",)])
def test_impossible_input_shapes(name: str, shape: Any) -> None:
    with pytest.raises(ShapeError, match=f"^{LAYERS[name].__name__}: expected an input shape"):
        make_layer((name, CASES[name].options), shape)
