"""What every layer refuses, and in which words; the layers are those of the contract's table."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from cnncli.errors import OptionError, ShapeError
from cnncli.nn import LAYERS
from tests.nn.networks import make_layer
from tests.nn.signatures import options_of, refused_values
from tests.nn.test_layer_contract import CASES, both_dtypes, build, draw, every_layer, run


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
def test_arrays_that_are_no_floats(name: str, dtype: Any, wrong: str) -> None:
    layer, got = build(name, dtype), np.dtype(wrong)
    floats = f"{np.dtype(dtype)} as the parameters" if layer.parameters else "float32 or float64"
    with pytest.raises(ShapeError, match=f"expected an input of {floats}, got {got}"):
        layer.forward(np.zeros((*layer.input_shape, 2), got))
    layer.forward(np.zeros((*layer.input_shape, 2), dtype))
    with pytest.raises(ShapeError, match=f"expected a grad_output of {np.dtype(dtype)} .*, got {got}"):
        layer.backward(np.zeros((*layer.output_shape, 2), got))


@every_layer
def test_bytes_in_foreign_order_are_refused(name: str) -> None:
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
