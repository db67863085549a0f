"""The facts of a network, and ``cnncli inspect-shapes``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cnncli.config import build_network, load_config, parse_config
from cnncli.nn import LAYERS, Conv2D, Dense, Flatten, MaxPool2D, Network, ReLU
from cnncli.nn.inspection import inspect_network
from tests.cli.program import CONFIGS, Cnncli

KEYS = {
    "name",
    "output_shape",
    "parameters",
    "macs",
    "im2col_shape",
    "activation_bytes",
    "receptive_field",
}

PARAMETERS = {
    "quickstart": 215_194,
    "simple_convnet": 433_890,
    "lenet": 61_706,
    "keras_mnist": 34_826,
    "pytorch_mnist": 1_199_882,
}

# counted by hand: outputs times inputs of one output
MACS = {
    "quickstart": 24 * 24 * 24 * 25 + 32 * 10 * 10 * 24 * 9 + 800 * 256 + 2560,
    "simple_convnet": 30 * 24 * 24 * 25 + 4320 * 100 + 1000,
    "lenet": 6 * 28 * 28 * 25 + 16 * 10 * 10 * 150 + 400 * 120 + 120 * 84 + 840,
    "keras_mnist": 32 * 26 * 26 * 9 + 64 * 11 * 11 * 288 + 16000,
    "pytorch_mnist": 32 * 26 * 26 * 9 + 64 * 24 * 24 * 288 + 9216 * 128 + 1280,
}


def inspected(cnncli: Cnncli, name: str, *options: str) -> Any:
    result = cnncli("inspect-shapes", "--config", CONFIGS / f"{name}.yaml", "--json", *options)
    assert (result.code, result.err) == (0, "")
    return result.json


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_five_networks(cnncli: Cnncli, name: str) -> None:
    document = inspected(cnncli, name)
    assert document.keys() == {"input_shape", "layers", "total_parameters", "total_macs"}
    assert document["input_shape"] == [1, 28, 28]
    assert document["total_parameters"] == PARAMETERS[name]
    assert document["total_macs"] == MACS[name]
    assert all(layer.keys() == KEYS for layer in document["layers"])
    config = load_config(CONFIGS / f"{name}.yaml")
    assert [layer["name"] for layer in document["layers"]] == [choice.name for choice in config.network]


def test_a_batch_has_its_axis_last_and_scales_what_grows_with_it(cnncli: Cnncli) -> None:
    one, batch = inspected(cnncli, "quickstart"), inspected(cnncli, "quickstart", "--batch-size", "50")
    assert batch["input_shape"] == [1, 28, 28, 50]
    assert batch["total_macs"] == 50 * one["total_macs"]
    assert batch["total_parameters"] == one["total_parameters"]
    for single, many in zip(one["layers"], batch["layers"], strict=True):
        assert many["output_shape"] == [*single["output_shape"], 50]
        assert many["macs"] == 50 * single["macs"]
        assert many["activation_bytes"] == 50 * single["activation_bytes"]
        assert many["receptive_field"] == single["receptive_field"]
    assert batch["layers"][0]["im2col_shape"] == [25, 24 * 24 * 50]


def test_a_batch_of_one_has_the_axis_too(cnncli: Cnncli) -> None:
    assert inspected(cnncli, "lenet", "--batch-size", "1")["input_shape"] == [1, 28, 28, 1]


def test_set_changes_what_is_shown(cnncli: Cnncli) -> None:
    document = inspected(cnncli, "lenet", "--set", "network[0].conv2d.out_channels=7")
    assert document["layers"][0]["output_shape"] == [7, 28, 28]


def test_a_checkpoint_shows_what_its_configuration_does(workspace: Path, cnncli: Cnncli) -> None:
    cnncli("train", "--config", "tiny.yaml")
    of_config = cnncli("inspect-shapes", "--config", "tiny.yaml", "--json").json
    for path in ("runs/tiny", "runs/tiny/last.npz"):
        assert cnncli("inspect-shapes", "--checkpoint", path, "--json").json == of_config
    assert of_config["input_shape"] == [1, 8, 8]


def test_the_table_adds_up(cnncli: Cnncli) -> None:
    lines = cnncli("inspect-shapes", "--config", CONFIGS / "pytorch_mnist.yaml").out.splitlines()
    assert all(len(line) <= 80 for line in lines[1:])
    assert lines[-1].split()[:3] == ["total", "1,199,882", f"{MACS['pytorch_mnist']:,}"]


def test_backward_adds_the_step_and_changes_nothing_else(cnncli: Cnncli) -> None:
    document = inspected(cnncli, "pytorch_mnist", "--backward", "--threads", "2")
    step = document.pop("step")
    assert document == inspected(cnncli, "pytorch_mnist")
    assert (step["batch_size"], step["shard_size"], step["n_in_flight"]) == (64, 32, 2)
    forward = [one["index"] for one in step["passes"] if one["kind"] == "forward"]
    assert forward[:4] == [0, 1, 2, 4]
    assert step["total_bytes"] == step["once_bytes"] + 2 * step["worker_bytes"]


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_listing_of_a_step_fits_every_terminal(cnncli: Cnncli, name: str) -> None:
    result = cnncli("inspect-shapes", "--config", CONFIGS / f"{name}.yaml", "--backward")
    assert (result.code, result.err) == (0, "")
    assert result.out.isascii()
    assert all(len(line) <= 80 for line in result.out.splitlines()[1:])


def test_the_step_of_a_checkpoint_is_that_of_its_configuration(workspace: Path, cnncli: Cnncli) -> None:
    cnncli("train", "--config", "tiny.yaml")
    backward = ("--backward", "--threads", "1", "--json")
    of_config = cnncli("inspect-shapes", "--config", "tiny.yaml", *backward).json
    assert cnncli("inspect-shapes", "--checkpoint", "runs/tiny", *backward).json == of_config
    assert of_config["step"]["batch_size"] == 16


def test_a_batch_is_no_larger_than_the_training_set(workspace: Path, cnncli: Cnncli) -> None:
    options = ("--backward", "--json", "--set", "training.batch_size=100000")
    step = cnncli("inspect-shapes", "--config", "tiny.yaml", *options).json["step"]
    with np.load(workspace / "tiny.npz") as arrays:
        assert step["batch_size"] == len(arrays["x_train"]) - 60


def receptive_field_by_touch(network: Network) -> list[tuple[int, int]]:
    """Find what the first output of each layer depends on, by changing every pixel in turn."""
    _, H, W = network.input_shape
    fields = []
    for depth in range(1, len(network.layers) + 1):
        part = Network(network.layers[:depth])
        quiet = np.zeros((1, H, W, 1))
        base = part.forward(quiet).reshape(-1)[0]
        touched = np.zeros((H, W), dtype=bool)
        for row in range(H):
            for col in range(W):
                x = quiet.copy()
                x[0, row, col, 0] = 1.0
                touched[row, col] = part.forward(x).reshape(-1)[0] != base
        fields.append((int(touched.any(axis=1).sum()), int(touched.any(axis=0).sum())))
    return fields


def test_the_receptive_field_is_what_an_output_depends_on() -> None:
    layers: list[Any] = [
        Conv2D((1, 17, 19), out_channels=2, kernel_size=(3, 2), stride=(2, 1), dtype=np.float64)
    ]
    layers.append(ReLU(layers[-1].output_shape))
    layers.append(MaxPool2D(layers[-1].output_shape, kernel_size=(2, 3), stride=(1, 2)))
    layers.append(
        Conv2D(layers[-1].output_shape, out_channels=1, kernel_size=(2, 2), stride=2, dtype=np.float64)
    )
    layers.append(Flatten(layers[-1].output_shape))
    layers.append(Dense(layers[-1].output_shape, out_features=1, dtype=np.float64))
    for layer in layers:
        for parameter in layer.parameters.values():
            parameter.value[...] = 1.0  # so that no effect cancels
    facts = inspect_network(Network(layers))
    found = receptive_field_by_touch(Network(layers))
    assert [layer.receptive_field for layer in facts.layers[:-1]] == found[:-1]
    assert [layer.receptive_field for layer in facts.layers[:3]] == [(3, 2), (3, 2), (5, 4)]
    assert facts.layers[-1].receptive_field == (17, 19)


def test_bytes_follow_the_type_of_the_parameters() -> None:
    network = Network([Dense((4,), out_features=3, dtype=np.float64)])
    assert inspect_network(network, batch_size=5).layers[0].activation_bytes == 3 * 5 * 8


def test_multiply_adds_are_those_of_the_matrix_product() -> None:
    layer = Conv2D((3, 9, 8), out_channels=5, kernel_size=(2, 3), stride=2, padding="same")
    rows, n_windows = layer.im2col_shape
    assert layer.macs == math.prod(layer.output_shape) * rows == 5 * rows * n_windows
    assert MaxPool2D((1, 4, 4), kernel_size=2).macs == 0


EVERY_LAYER = """\
network:
  - conv2d: {out_channels: 4, kernel_size: 3}
  - batch_norm2d
  - relu
  - max_pool2d: {kernel_size: 2}
  - average_pool2d: {kernel_size: 2}
  - sigmoid
  - global_average_pool2d
  - flatten
  - batch_norm1d
  - tanh
  - dropout
  - dense: {out_features: 10}
"""


def test_every_layer_of_the_registry_has_a_name(cnncli: Cnncli) -> None:
    config = parse_config(EVERY_LAYER, "every.yaml", ".")
    facts = inspect_network(build_network(config, (1, 28, 28), 10))
    assert {layer.name for layer in facts.layers} == set(LAYERS)
