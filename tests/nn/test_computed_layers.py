"""What a network computes gives what its layers give one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cnncli.nn import AveragePool2D, BatchNorm2D, Conv2D, Flatten, Layer, MaxPool2D, Network, ReLU, layout
from cnncli.nn.network import computed_layers

SHAPE = (2, 11, 9)


def conv(shape: tuple[int, ...] = SHAPE, **options: object) -> Conv2D:
    chosen: dict[str, object] = {"out_channels": 3, "kernel_size": (3, 2)} | options
    layer = Conv2D(shape, rng=np.random.default_rng(0), dtype=np.float64, **chosen)  # type: ignore[arg-type]
    if "bias" in layer.parameters:
        layer.parameters["bias"].value[...] = np.random.default_rng(1).standard_normal(layer.out_channels)
    return layer


def one_by_one(layers: list[Layer], x: np.ndarray, grad: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    for layer in layers:
        x = layer.forward(x)
    for layer in reversed(layers):
        grad = layer.backward(grad)
    return x, grad


def assert_agrees(layers: list[Layer], N: int = 3, *, rounded: bool = False) -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((*layers[0].input_shape, N))
    if rounded:
        x = np.round(x)
    network = Network(layers)
    y = network.forward(x).copy()
    grad = rng.standard_normal(y.shape)
    dx = network.backward(grad).copy()
    grads = {name: parameter.grad.copy() for name, parameter in network.parameters.items()}
    expected_y, expected_dx = one_by_one(layers, x, grad)
    np.testing.assert_allclose(y, expected_y, rtol=0, atol=1e-12)
    np.testing.assert_allclose(dx, expected_dx, rtol=0, atol=1e-12)
    for name, parameter in network.parameters.items():
        np.testing.assert_allclose(grads[name], parameter.grad, rtol=1e-12, atol=1e-12, err_msg=name)
    network.forward(x)
    for parameter in network.parameters.values():
        parameter.grad[...] = np.nan
    network.backward(grad, to_input=False)
    for name, parameter in network.parameters.items():
        np.testing.assert_array_equal(grads[name], parameter.grad, err_msg=name)


def computed(layers: list[Layer]) -> str:
    """Name what is computed: the index of each layer, with a star where it is laid out otherwise."""
    return " ".join(
        f"{index}{'*' if layer.output_shape != layers[index].output_shape else ''}"
        f"{'*' if layer.input_shape != layers[index].input_shape else ''}"
        for index, layer in computed_layers(layers)
    )


def test_relu_moves_behind_the_pool_for_which_the_convolution_lays_its_outputs_out() -> None:
    first = conv()
    relu = ReLU(first.output_shape)
    pool = MaxPool2D(first.output_shape, kernel_size=2)
    assert computed([first, relu, pool]) == "0* 2* 1**"
    assert_agrees([first, relu, pool])


@pytest.mark.parametrize(
    "options",
    [
        {"kernel_size": 3, "stride": 2},
        {"kernel_size": 2, "stride": 3},
        {"kernel_size": 3, "stride": 3, "padding": 1},
        {"kernel_size": 2, "stride": (2, 1)},
    ],
)
def test_other_pools_are_left_alone(options: dict[str, object]) -> None:
    first = conv()
    pool = MaxPool2D(first.output_shape, **options)  # type: ignore[arg-type]
    assert computed([first, pool]) == "0 1"
    assert_agrees([first, pool])


def test_a_relu_after_the_pool_stays_and_one_without_a_pool_too() -> None:
    first = conv()
    pool = MaxPool2D(first.output_shape, kernel_size=2)
    layers: list[Layer] = [first, pool, ReLU(pool.output_shape), Flatten(pool.output_shape)]
    assert computed(layers) == "0* 1* 2 3"
    assert_agrees(layers)
    assert computed([first, ReLU(first.output_shape)]) == "0 1"


def test_a_pool_after_a_pool_and_a_relu_between_two_pools() -> None:
    first = conv()
    pool = MaxPool2D(first.output_shape, kernel_size=2)
    relu = ReLU(pool.output_shape)
    second = MaxPool2D(pool.output_shape, kernel_size=2)
    assert_agrees([first, pool, relu, second])


def test_two_convolutions_with_pools() -> None:
    first = conv(padding=1)
    pool = MaxPool2D(first.output_shape, kernel_size=2)
    second = conv(pool.output_shape, out_channels=4, bias=False)
    relu = ReLU(second.output_shape)
    third = MaxPool2D(second.output_shape, kernel_size=(1, 2))
    assert_agrees([first, pool, second, relu, third])


@given(
    kernel=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    padding=st.one_of(st.tuples(st.integers(0, 3), st.integers(0, 3)), st.just("same")),
    pool=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    N=st.integers(1, 4),
)
def test_pooled_convolutions_of_any_geometry(
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[int, int] | str,
    pool: tuple[int, int],
    N: int,
) -> None:
    first = conv(kernel_size=kernel, stride=stride, padding=padding)
    height, width = first.output_shape[1:]
    if pool[0] > height or pool[1] > width:
        return
    layers: list[Layer] = [first, MaxPool2D(first.output_shape, kernel_size=pool)]
    assert computed(layers) == "0* 1*"
    assert_agrees(layers, N)


def test_blocks_of_one_row_and_columns_that_are_not_kept_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for block_bytes, kept_bytes in [(1, 0), (1, 10**9), (3000, 0)]:
        layout.cut_into_blocks.cache_clear()
        monkeypatch.setattr(layout, "BLOCK_BYTES", block_bytes)
        monkeypatch.setattr(layout, "KEPT_BYTES", kept_bytes)
        first = conv(padding="same")
        second = conv(first.output_shape, stride=(2, 1), padding=(1, 0))
        pool = MaxPool2D(second.output_shape, kernel_size=2)
        assert_agrees([first, ReLU(first.output_shape), second, pool])
    layout.cut_into_blocks.cache_clear()


def test_ties_go_to_the_first_cell_in_row_major_order() -> None:
    # all four outputs of the pooling window are equal, so the first gets the gradient
    layer = Conv2D((1, 2, 2), out_channels=1, kernel_size=1, bias=False, dtype=np.float64)
    layer.parameters["weight"].value[...] = 1
    pool = MaxPool2D((1, 2, 2), kernel_size=2)
    network = Network([layer, pool])
    for values, winner in [
        ([[1, 1], [1, 1]], (0, 0)),
        ([[0, 2], [2, 2]], (0, 1)),
        ([[0, 1], [2, 2]], (1, 0)),
    ]:
        network.forward(np.array(values, dtype=np.float64).reshape(1, 2, 2, 1))
        dx = network.backward(np.full((1, 1, 1, 1), 5.0))
        expected = np.zeros((2, 2))
        expected[winner] = 5
        np.testing.assert_array_equal(dx[0, :, :, 0], expected)


def test_replicas_share_values_and_own_gradients() -> None:
    first = conv()
    pool = MaxPool2D(first.output_shape, kernel_size=2)
    network = Network([first, pool])
    replica = network.replica()
    rng = np.random.default_rng(0)
    x = rng.standard_normal((*SHAPE, 2))
    y = network.forward(x).copy()
    replica.forward(rng.standard_normal((*SHAPE, 4)))
    network.backward(np.ones_like(y))
    assert replica.parameters["0/weight"].value is network.parameters["0/weight"].value
    assert not np.shares_memory(replica.parameters["0/weight"].grad, network.parameters["0/weight"].grad)
    assert not replica.parameters["0/weight"].grad.any()
    np.testing.assert_array_equal(network.forward(x), y)


def normalized(*kinds: str) -> list[Layer]:
    """Put layers behind a convolution; the batch norm's weights have either sign."""
    layers: list[Layer] = [conv()]
    for kind in kinds:
        shape = layers[-1].output_shape
        if kind == "norm":
            norm = BatchNorm2D(shape, dtype=np.float64)
            norm.parameters["weight"].value[...] = -2, 0.5, 1
            norm.parameters["bias"].value[...] = 0.3, -0.2, 0.1
            layers.append(norm)
        elif kind == "relu":
            layers.append(ReLU(shape))
        else:
            layers.append({"max": MaxPool2D, "average": AveragePool2D}[kind](shape, kernel_size=2))
    return layers


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["norm", "relu", "max"], "0 1 3 2**"),
        (["norm", "max", "relu"], "0 1 2 3"),
        (["relu", "norm", "max"], "0 1 2 3"),
        (["relu", "max", "norm"], "0* 2* 1** 3"),
        (["max", "norm", "relu"], "0* 1* 2 3"),
        (["relu", "average"], "0 1 2"),
        (["average", "relu"], "0 1 2"),
    ],
)
def test_nothing_moves_across_a_batch_norm_or_an_average(names: list[str], expected: str) -> None:
    assert computed(normalized(*names)) == expected
    network, layers = Network(normalized(*names)), normalized(*names)
    rng = np.random.default_rng(3)
    x = rng.standard_normal((*SHAPE, 4))
    y = network.forward(x, training=True)
    grad = rng.standard_normal(y.shape)
    grad_input = network.backward(grad)
    expected_y = x
    for layer in layers:
        expected_y = layer.forward(expected_y, training=True)
    for layer in reversed(layers):
        grad = layer.backward(grad)
    np.testing.assert_allclose(y, expected_y, rtol=0, atol=1e-12)
    np.testing.assert_allclose(grad_input, grad, rtol=0, atol=1e-12)
    other = Network(layers)
    for name, parameter in network.parameters.items():
        np.testing.assert_allclose(parameter.grad, other.parameters[name].grad, rtol=0, atol=1e-12)
    for name, buffer in network.buffers.items():
        np.testing.assert_allclose(buffer, other.buffers[name], rtol=0, atol=1e-12)
