"""A network computes what its layers compute one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cnncli.errors import ShapeError
from cnncli.nn import Dense, Flatten, Layer, MaxPool2D, Network, ReLU
from tests.nn.networks import (
    FIVE_NETWORKS,
    FLATTEN,
    MNIST_SHAPE,
    POOL,
    RELU,
    STACK_SHAPE,
    LayerSpec,
    conv,
    dense,
    dropout,
    make_network,
    stacks,
)

SMALL: list[LayerSpec] = [conv(3, 3), RELU, POOL, dropout(0.5), FLATTEN, dense(6), RELU, dense(4)]
SMALL_SHAPE = (2, 9, 8)


def draw(shape: Sequence[int], N: int, seed: int = 2, dtype: Any = np.float64) -> Any:
    return np.random.default_rng(seed).standard_normal((*shape, N)).astype(dtype)


def run(network: Network, x: Any, grad: Any, training: bool = False) -> list[Any]:
    """Copy the output, the gradient of the input and those of the parameters."""
    y = network.forward(x, training=training, rng=np.random.default_rng(0)).copy()
    grad_input = network.backward(grad).copy()
    return [y, grad_input, *(parameter.grad.copy() for parameter in network.parameters.values())]


def run_layer_by_layer(layers: Sequence[Layer], x: Any, grad: Any, training: bool = False) -> list[Any]:
    """Compute the same by calling every layer itself."""
    rng = np.random.default_rng(0)
    for layer in layers:
        x = layer.forward(x, training=training, rng=rng)
    y = x.copy()
    for layer in reversed(layers):
        grad = layer.backward(grad)
    return [y, grad.copy(), *(p.grad.copy() for layer in layers for p in layer.parameters.values())]


def randomize(network: Network, seed: int, integers: bool = False) -> None:
    """Draw new parameters, biases too."""
    rng = np.random.default_rng(seed)
    for parameter in network.parameters.values():
        if integers:
            parameter.value[...] = rng.integers(-2, 3, parameter.value.shape)
        else:
            parameter.value[...] = rng.standard_normal(parameter.value.shape)


@settings(max_examples=60)
@given(specs=stacks(every_kind=True), N=st.integers(1, 5), training=st.booleans(), seed=st.integers(0, 99))
def test_matches_its_layers(specs: list[LayerSpec], N: int, training: bool, seed: int) -> None:
    network, other = make_network(specs, STACK_SHAPE), make_network(specs, STACK_SHAPE)
    randomize(network, seed)
    randomize(other, seed)
    x, grad = draw(STACK_SHAPE, N, seed), draw(network.output_shape, N, seed + 1)
    expected = run_layer_by_layer(other.layers, x, grad, training)
    for result, right in zip(run(network, x, grad, training), expected, strict=True):
        # a batch norm makes rounding errors larger where a channel hardly varies
        np.testing.assert_allclose(result, right, rtol=0, atol=1e-10 * max(np.abs(right).max(), 1))


@settings(max_examples=60)
@given(specs=stacks(), N=st.integers(1, 5), training=st.booleans(), seed=st.integers(0, 99))
def test_ties_go_the_same_way(specs: list[LayerSpec], N: int, training: bool, seed: int) -> None:
    # whole numbers: sums are exact, and equal values are equal in whatever order they are summed
    # (dropout of 0.5 doubles; the factor of another probability is no whole number)
    specs = [spec if spec[0] != "dropout" else dropout(0.5) for spec in specs]
    network, other = make_network(specs, STACK_SHAPE), make_network(specs, STACK_SHAPE)
    randomize(network, seed, integers=True)
    randomize(other, seed, integers=True)
    rng = np.random.default_rng(seed)
    x = rng.integers(-1, 2, (*STACK_SHAPE, N)).astype(np.float64)
    grad = rng.integers(-3, 4, (*network.output_shape, N)).astype(np.float64)
    expected = run_layer_by_layer(other.layers, x, grad, training)
    for result, right in zip(run(network, x, grad, training), expected, strict=True):
        np.testing.assert_array_equal(result, right)


@settings(max_examples=40)
@given(specs=stacks(), bad=st.sampled_from([np.nan, np.inf, -np.inf]), seed=st.integers(0, 99))
def test_bad_pixels_come_out_in_the_same_places(specs: list[LayerSpec], bad: float, seed: int) -> None:
    network, other = make_network(specs, STACK_SHAPE), make_network(specs, STACK_SHAPE)
    x = draw(STACK_SHAPE, 4, seed)
    x[1, 6, 9, 2] = bad
    with np.errstate(invalid="ignore"):
        y = network.forward(x)
        expected = x
        for layer in other.layers:
            expected = layer.forward(expected)
    np.testing.assert_array_equal(np.isfinite(y), np.isfinite(expected))
    np.testing.assert_allclose(y, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", FIVE_NETWORKS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("training", [False, True])
def test_five_networks_match_their_layers(name: str, dtype: Any, training: bool) -> None:
    network, other = (make_network(FIVE_NETWORKS[name], MNIST_SHAPE, dtype=dtype) for _ in range(2))
    x, grad = draw(MNIST_SHAPE, 7, 0, dtype), draw((10,), 7, 1, dtype)
    tolerance = 1e-12 if dtype is np.float64 else 1e-4
    expected = run_layer_by_layer(other.layers, x, grad, training)
    for result, right in zip(run(network, x, grad, training), expected, strict=True):
        assert result.dtype == dtype
        np.testing.assert_allclose(result, right, rtol=0, atol=tolerance * np.abs(right).max())


def test_shapes_and_names() -> None:
    network = make_network(SMALL, SMALL_SHAPE)
    assert network.input_shape == SMALL_SHAPE
    assert network.output_shape == (4,)
    assert [type(layer).__name__ for layer in network.layers] == [
        *("Conv2D", "ReLU", "MaxPool2D", "Dropout", "Flatten", "Dense", "ReLU", "Dense")
    ]
    assert {name: p.value.shape for name, p in network.parameters.items()} == {
        "0/weight": (3, 2, 3, 3),
        "0/bias": (3,),
        "5/weight": (6, 27),
        "5/bias": (6,),
        "7/weight": (4, 6),
        "7/bias": (4,),
    }
    assert network.buffers == {}
    assert network.parameters["5/weight"] is network.layers[5].parameters["weight"]


def test_dropout_is_active_in_training_alone() -> None:
    network = make_network(SMALL, SMALL_SHAPE)
    x = draw(SMALL_SHAPE, 5)
    evaluated = network.forward(x).copy()
    np.testing.assert_array_equal(network.forward(x, rng=np.random.default_rng(0)), evaluated)
    trained = [network.forward(x, training=True, rng=np.random.default_rng(s)).copy() for s in (0, 0, 1)]
    np.testing.assert_array_equal(trained[0], trained[1])
    assert not np.array_equal(trained[0], trained[2])
    assert not np.array_equal(trained[0], evaluated)


@pytest.mark.parametrize("training", [False, True])
def test_other_batches_leave_no_trace(training: bool) -> None:
    used = make_network(SMALL, SMALL_SHAPE)
    for N in (7, 3, 40, 7, 1):
        x, grad = draw(SMALL_SHAPE, N, N), draw((4,), N, N + 1)
        expected = run(make_network(SMALL, SMALL_SHAPE), x, grad, training)
        for result, right in zip(run(used, x, grad, training), expected, strict=True):
            np.testing.assert_array_equal(result, right)


def test_arguments_are_untouched_and_results_stay_valid() -> None:
    network = make_network(SMALL, SMALL_SHAPE)
    x, grad = draw(SMALL_SHAPE, 5), draw((4,), 5)
    before = x.copy(), grad.copy()
    x.flags.writeable = grad.flags.writeable = False
    y = network.forward(x, training=True, rng=np.random.default_rng(0))
    kept = y.copy()
    grad_input = network.backward(grad)
    np.testing.assert_array_equal(y, kept)
    kept = grad_input.copy()
    network.forward(draw(SMALL_SHAPE, 6), training=True, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(grad_input, kept)
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(grad, before[1])


@pytest.mark.parametrize(
    "specs",
    [
        SMALL,
        [conv(3, 3), POOL, RELU, FLATTEN, dense(4)],
        [POOL, RELU, conv(3, 2), FLATTEN, dense(4)],
        [RELU, FLATTEN, dense(4), RELU],
        [FLATTEN, RELU],
    ],
)
def test_parameter_gradients_are_those_of_backward(specs: list[LayerSpec]) -> None:
    network = make_network(specs, SMALL_SHAPE)
    x, grad = draw(SMALL_SHAPE, 5), draw(network.output_shape, 5)
    expected = run(network, x, grad)[2:]
    for parameter in network.parameters.values():
        parameter.grad[...] = np.nan
    network.forward(x)
    network.backward(grad, to_input=False)
    for parameter, right in zip(network.parameters.values(), expected, strict=True):
        np.testing.assert_array_equal(parameter.grad, right)


def test_replica_shares_values_and_owns_gradients() -> None:
    network = make_network(SMALL, SMALL_SHAPE)
    replica = network.replica()
    assert replica.parameters.keys() == network.parameters.keys()
    randomize(network, 5)
    x, grad = draw(SMALL_SHAPE, 5), draw((4,), 5)
    expected = run(network, x, grad)
    for result, right in zip(run(replica, x, grad), expected, strict=True):
        np.testing.assert_array_equal(result, right)
    run(replica, draw(SMALL_SHAPE, 5, 8), draw((4,), 5, 9))
    for key, right in zip(network.parameters, expected[2:], strict=True):
        assert replica.parameters[key].value is network.parameters[key].value
        np.testing.assert_array_equal(network.parameters[key].grad, right)


@pytest.mark.parametrize("name", ["quickstart", "lenet"])
def test_replicas_run_on_threads_of_their_own(name: str) -> None:
    network = make_network(FIVE_NETWORKS[name], MNIST_SHAPE, dtype=np.float32)
    batches = [(draw(MNIST_SHAPE, N, N, np.float32), draw((10,), N, N + 1, np.float32)) for N in (9, 20, 13)]
    expected = [run(network, x, grad, training=True) for x, grad in batches]

    def work(replica: Network) -> list[list[Any]]:
        return [run(replica, x, grad, training=True) for x, grad in batches]

    with ThreadPoolExecutor(3) as pool:
        for results in pool.map(work, [network.replica() for _ in range(3)]):
            for result, right in zip(results, expected, strict=True):
                for array, right_array in zip(result, right, strict=True):
                    # a BLAS with threads of its own may round otherwise while others use it too
                    scale = np.abs(right_array).max()
                    np.testing.assert_allclose(array, right_array, rtol=0, atol=1e-5 * scale)


def test_neighbours_that_do_not_fit() -> None:
    flatten = Flatten((2, 3, 3))
    with pytest.raises(
        ShapeError, match=r"layer 1, Dense\(.*takes \(17,\), but layer 0, Flatten.*gives \(18,\)"
    ):
        Network([flatten, Dense((17,), out_features=2)])
    with pytest.raises(ShapeError, match=r"layer 1, MaxPool2D.* takes \(18, 1, 1\)"):
        Network([flatten, MaxPool2D((18, 1, 1), kernel_size=1)])


def test_no_layers() -> None:
    with pytest.raises(ShapeError, match="Network: expected at least one layer, got none"):
        Network([])


@pytest.mark.parametrize(
    "specs", [SMALL, [conv(3, 3), POOL, FLATTEN], [RELU, POOL, FLATTEN], [FLATTEN, dense(4)], [dropout(0.5)]]
)
def test_wrong_arrays_are_refused(specs: list[LayerSpec]) -> None:
    network = make_network(specs, SMALL_SHAPE)
    with pytest.raises(ShapeError, match="backward needs a forward before it"):
        network.backward(np.zeros((*network.output_shape, 4)))
    for shape in ((3, *SMALL_SHAPE), SMALL_SHAPE, (2, 8, 9, 3)):
        with pytest.raises(ShapeError, match=r"expected an input of shape \(2, 9, 8, N\), got \("):
            network.forward(np.zeros(shape))
    with pytest.raises(ShapeError, match=r"expected an input of float.*, got uint8"):
        network.forward(np.zeros((*SMALL_SHAPE, 3), np.uint8))
    network.forward(np.zeros((*SMALL_SHAPE, 3)))
    with pytest.raises(ShapeError, match="expected a grad_output of shape"):
        network.backward(np.zeros((*network.output_shape, 4)))
    with pytest.raises(ShapeError, match="expected a grad_output of float64"):
        network.backward(np.zeros((*network.output_shape, 3), np.float32))


def test_numpy_keeps_its_buffer_size_whatever_happens() -> None:
    seen = list[int]()

    class Looking(ReLU):
        def forward(
            self, x: np.ndarray, training: bool = False, rng: np.random.Generator | None = None
        ) -> np.ndarray:
            seen.append(np.getbufsize())
            return super().forward(x, training, rng)

    network = Network([Looking((3,))])
    network.backward(network.forward(np.ones((3, 2))))
    with pytest.raises(ShapeError):
        network.forward(np.ones((4, 2)))
    assert max(seen) < np.getbufsize() == 8192
