"""Networks, optimizers and schedules from configurations, and the faults that only shapes show."""

from __future__ import annotations

import numpy as np
import pytest

from cnncli.config import build_network, build_optimizer, build_schedule
from cnncli.errors import ConfigError
from cnncli.nn import Adam, Cosine, Network
from tests.config.texts import NETWORK, read


def build(layers: list[str], input_shape: tuple[int, ...] = (1, 28, 28), class_count: int = 10) -> Network:
    text = "network:\n" + "".join(f"  - {layer}\n" for layer in layers)
    return build_network(read(text), input_shape, class_count, np.random.default_rng(0))


def test_shapes_are_threaded_through_the_layers() -> None:
    network = build(
        [
            "conv2d: {out_channels: 4, kernel_size: [3, 5], stride: 2}",
            "max_pool2d: {kernel_size: 2}",
            "flatten",
            "dense: {out_features: 7}",
        ],
        input_shape=(3, 20, 31),
        class_count=7,
    )
    assert [layer.output_shape for layer in network.layers] == [(4, 9, 14), (4, 4, 7), (112,), (7,)]


def test_generator_and_type_reach_the_parameters() -> None:
    config = read(NETWORK)
    networks = [
        build_network(config, (1, 4, 4), 10, np.random.default_rng(seed), np.float64) for seed in (1, 1, 2)
    ]
    first, same, other = (network.parameters["1/weight"].value for network in networks)
    assert first.dtype == np.float64
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("size", [10**15, 10**20, 10**28])
@pytest.mark.parametrize(
    "layer",
    [
        "conv2d: {out_channels: SIZE, kernel_size: 3}",
        "conv2d: {out_channels: 2, kernel_size: SIZE, padding: SIZE}",
        "conv2d: {out_channels: 2, kernel_size: SIZE, padding: same}",
        "conv2d: {out_channels: 2, kernel_size: [1, SIZE], padding: [0, SIZE]}",
    ],
)
def test_layer_that_no_memory_holds(layer: str, size: int) -> None:
    with pytest.raises(ConfigError) as caught:
        build([layer.replace("SIZE", str(size)), "flatten", "dense: {out_features: 10}"])
    assert str(caught.value) == (
        "c.yaml:2: network[0].conv2d: too large to fit in memory for an input of (1, 28, 28); "
        "make the layer or its input smaller"
    )


@pytest.mark.parametrize("padding", [20_000, 10**9, 10**20])
def test_output_that_no_memory_holds(padding: int) -> None:
    side = 28 + 2 * padding - 2
    with pytest.raises(ConfigError) as caught:
        # what comes after it would be small again
        build(
            [
                f"conv2d: {{out_channels: 2, kernel_size: 3, padding: {padding}}}",
                f"max_pool2d: {{kernel_size: 2, stride: {side}}}",
                "flatten",
                "dense: {out_features: 10}",
            ]
        )
    assert str(caught.value) == (
        f"c.yaml:2: network[0].conv2d: gives (2, {side}, {side}) for one image, which is too large; "
        "make the layer smaller"
    )


def test_dense_layer_that_no_memory_holds() -> None:
    with pytest.raises(ConfigError) as caught:
        build(["flatten", f"dense: {{out_features: {10**15}}}"])
    assert str(caught.value) == (
        "c.yaml:3: network[1].dense: too large to fit in memory for an input of (784,); "
        "make the layer or its input smaller"
    )


@pytest.mark.parametrize("layer", ["conv2d: {out_channels: 2, ", "max_pool2d: {"])
@pytest.mark.parametrize("size", [29, 10**9, 10**20])
def test_window_larger_than_the_image(layer: str, size: int) -> None:
    with pytest.raises(ConfigError) as caught:
        build([f"{layer}kernel_size: {size}}}", "flatten", "dense: {out_features: 10}"])
    assert str(caught.value) == (
        f"c.yaml:2: network[0].{layer.partition(':')[0]}.kernel_size: expected at most 28x28, "
        f"the height and width of the padded input, got {size}x{size}; the layer's input is (1, 28, 28); "
        "make the kernel smaller or the padding larger"
    )


@pytest.mark.parametrize(
    ("options", "output_shape"),
    [
        ("kernel_size: 1000000000, padding: same", (1, 1, 1)),
        ("kernel_size: 1000000000, padding: same, stride: 1", (1, 28, 28)),
        ("kernel_size: 1000000000, padding: 500000000", (1, 1, 1)),
        ("kernel_size: [1, 1000000000], padding: [0, 500000000], stride: 1", (1, 28, 29)),
        ("kernel_size: 2, stride: 100000000000000000000", (1, 1, 1)),
    ],
)
def test_window_that_is_mostly_padding_is_built_at_once(options: str, output_shape: tuple[int, ...]) -> None:
    network = build([f"max_pool2d: {{{options}}}", "flatten", "dense: {out_features: 10}"])
    assert network.layers[0].output_shape == output_shape


def test_fault_is_located_in_the_override_that_caused_it() -> None:
    config = read(NETWORK, ["network[1].dense.out_features=4"])
    with pytest.raises(
        ConfigError, match=r"^--set network\[1\]\.dense\.out_features=4: network\[1\]\.dense\.out_f"
    ):
        build_network(config, (1, 28, 28), 10)


def test_more_outputs_than_classes_are_allowed() -> None:
    assert build(["flatten", "dense: {out_features: 12}"]).output_shape == (12,)


def test_optimizer_and_schedule() -> None:
    config = read(
        NETWORK
        + "optimizer: {adam: {learning_rate: 0.5, betas: [0.7, 0.9]}}\nschedule: {cosine: {final: 0.1}}"
    )
    network = build_network(config, (1, 4, 4), 10)
    optimizer = build_optimizer(config, network.parameters)
    assert type(optimizer) is Adam
    assert (optimizer.learning_rate, optimizer.betas, optimizer.epsilon) == (0.5, (0.7, 0.9), 1e-8)
    assert optimizer.parameters.keys() == network.parameters.keys()
    schedule = build_schedule(config, total_steps=40, steps_per_epoch=10)
    assert type(schedule) is Cosine
    assert (schedule.total_steps, schedule.steps_per_epoch, schedule.final) == (40, 10, 0.1)
    # the learning rate of the optimizer is the peak
    assert schedule.learning_rate(0) == 0.5
