"""A profile says how much work each layer is, and what bounds it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cnncli.config import load_config
from cnncli.nn import Conv2D, Dense, Flatten, LayerPass, MaxPool2D, Network, ReLU
from cnncli.training import Workers
from cnncli.training.step_profile import PassProfile, Profile, ReferenceRates, multiply_adds, profile_step

CONFIGS = Path(__file__).parents[2] / "configs"


@pytest.fixture(scope="module")
def profile() -> Profile:
    config = load_config(CONFIGS / "lenet.yaml")
    with Workers(2) as workers:
        return profile_step(config, (1, 28, 28), 10, workers, batch_size=20, repeat=2)


def test_layers_stand_in_the_order_of_computing(profile: Profile) -> None:
    assert [layer.index for layer in profile.layers] == [0, 2, 1, 3, 5, 4, 6, 7, 8, 9, 10, 11]
    assert [layer.name for layer in profile.layers[:3]] == ["conv2d", "max_pool2d", "relu"]
    assert all(layer.backward is not None for layer in profile.layers)


def test_work_of_lenet(profile: Profile) -> None:
    layers = {layer.index: layer for layer in profile.layers}
    N = profile.shard_size
    assert N == 20
    assert layers[0].forward.multiply_adds == 25 * 6 * 28 * 28 * N
    assert layers[7].forward.multiply_adds == 400 * 120 * N
    first, second = layers[0].backward, layers[3].backward
    assert first is not None
    assert second is not None
    assert first.multiply_adds == layers[0].forward.multiply_adds  # its input needs no gradient
    assert second.multiply_adds == 2 * layers[3].forward.multiply_adds
    assert layers[6].forward.bytes_moved == 0
    # a ReLU reads its input and writes its output
    assert layers[8].forward.bytes_moved == 2 * 120 * N * 4


def test_outputs_that_no_window_of_the_pool_holds_are_not_counted() -> None:
    conv = Conv2D((2, 6, 6), out_channels=3, kernel_size=2)
    network, found = Network([conv, MaxPool2D((3, 5, 5), kernel_size=2)]), list[int]()
    network.forward(
        np.zeros((2, 6, 6, 4), np.float32), observe=lambda done: found.append(multiply_adds(done))
    )
    assert found == [8 * 3 * 4 * 4 * 4, 0]


@pytest.mark.parametrize("layer", [ReLU((6,)), Flatten((2, 3)), Dense((6,), out_features=4)])
def test_multiply_adds_of_one_layer(layer: ReLU | Flatten | Dense) -> None:
    x = np.zeros((*layer.input_shape, 5), np.float32)
    done = LayerPass("forward", 0, layer, x, layer.forward(x))
    assert multiply_adds(done) == (6 * 4 * 5 if isinstance(layer, Dense) else 0)


def test_sums_agree_with_their_parts(profile: Profile) -> None:
    document = profile.to_dict()
    parts = [one for layer in document["layers"] for one in (layer["forward"], layer["backward"])]
    total = document["input_milliseconds"] + document["loss_milliseconds"]
    total += sum(one["milliseconds"] for one in parts)
    assert document["shard_milliseconds"] == pytest.approx(total)
    assert sum(one["share"] for one in parts) < 1
    assert document["images_per_second"] == pytest.approx(20 / profile.step_seconds)
    assert profile.one_thread_seconds == pytest.approx(
        profile.n_shards * profile.shard_seconds + profile.optimizer_seconds
    )


@pytest.mark.parametrize(
    ("seconds", "multiply_adds", "bytes_moved", "bound"),
    [
        (1.0, 500_000_000, 0, "compute"),
        (1.0, 0, 1_000_000_000, "memory"),
        (1e-5, 0, 100, "calls"),
        (1.0, 0, 100_000_000, "memory"),  # calls explain ten of them at most
    ],
)
def test_what_bounds_a_pass(seconds: float, multiply_adds: int, bytes_moved: int, bound: str) -> None:
    rates = ReferenceRates(flops_per_second=1e9, bytes_per_second=1e9, seconds_per_call=1e-6)
    assert rates.bound_of(PassProfile(seconds, multiply_adds, bytes_moved)) == bound
