"""The profile of a step: whose time is whose, what each pass has to do, what bounds it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cnncli.config import Config, build_network, load_config, parse_config
from cnncli.data import Normalization
from cnncli.nn import Adam, Conv2D, Dense, Flatten, MaxPool2D, Network, ReLU
from cnncli.nn.layers.pooled_conv import PooledConv2D
from cnncli.training import Workers
from cnncli.training.profiling import step as step_module
from cnncli.training.profiling.plan_work import Work, plan_work
from cnncli.training.profiling.reference_rates import ReferenceRates, measure_rates
from cnncli.training.profiling.report import LayerProfile, PassProfile, Profile
from cnncli.training.profiling.step import profile_step

CONFIGS = Path(__file__).parents[3] / "configs"

SMALL = """\
network:
  - conv2d: {out_channels: 3, kernel_size: 3}
  - relu
  - max_pool2d: {kernel_size: 2}
  - flatten
  - dense: {out_features: 4}
  - relu
  - dense: {out_features: 2}
training: {batch_size: 10, shard_size: 4}
"""


def config_of(text: str = SMALL) -> Config:
    return parse_config(text, "small.yaml", Path())


def profiled(config: Config, *, n_workers: int = 1, batch_size: int = 10, repeat: int = 1) -> Profile:
    with Workers(n_workers) as workers:
        return profile_step(config, (2, 8, 7), 2, workers, batch_size=batch_size, repeat=repeat)


def network_of(name: str) -> Network:
    return build_network(load_config(CONFIGS / f"{name}.yaml"), (1, 28, 28), 10)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "lenet",
            [
                ("conv2d + max_pool2d", (0, 2)),
                ("relu", (1,)),
                ("conv2d + max_pool2d", (3, 5)),
                ("relu", (4,)),
                ("flatten", (6,)),
                ("dense", (7,)),
                ("relu", (8,)),
                ("dense", (9,)),
                ("relu", (10,)),
                ("dense", (11,)),
            ],
        ),
        (
            "pytorch_mnist",
            [
                ("conv2d", (0,)),
                ("relu", (1,)),
                ("conv2d + max_pool2d", (2, 4)),
                ("relu", (3,)),
                ("dropout", (5,)),
                ("flatten", (6,)),
                ("dense", (7,)),
                ("relu", (8,)),
                ("dropout", (9,)),
                ("dense", (10,)),
            ],
        ),
    ],
)
def test_layers_are_named_as_in_the_configuration(name: str, expected: list[tuple[str, Any]]) -> None:
    assert [(step.name, step.indices) for step in plan_work(network_of(name))] == expected


@pytest.mark.parametrize("name", ["quickstart", "simple_convnet", "lenet", "keras_mnist", "pytorch_mnist"])
def test_every_layer_is_in_the_plan_once_with_its_parameters(name: str) -> None:
    network = network_of(name)
    steps = plan_work(network)
    assert sorted(index for step in steps for index in step.indices) == list(range(len(network.layers)))
    for step in steps:
        parameters = [parameter for part in step.parts for parameter in part.parameters.values()]
        assert parameters == list(step.layer.parameters.values())


def test_the_work_of_a_convolution() -> None:
    (step,) = plan_work(Network([Conv2D((2, 5, 4), out_channels=3, kernel_size=(3, 2))]))
    N, columns, inputs, outputs, parameters = 10, 12 * 9 * 10, 40 * 10, 27 * 10, 3 * 12 + 3
    assert step.forward_work(N, 4) == Work(3 * columns, 4 * (inputs + outputs + parameters + 2 * columns))
    assert step.backward_work(N, 4, with_input=False) == Work(
        3 * columns, 4 * (outputs + parameters + columns)
    )
    both = step.backward_work(N, 4, with_input=True)
    assert both.multiply_adds == 2 * 3 * columns
    # the gradient of the matrix is written and read, that of the input written
    assert both.bytes_moved == 4 * (outputs + parameters + columns) + 4 * (
        outputs + parameters + 2 * columns + inputs
    )


def test_the_work_of_a_pooled_convolution_leaves_out_what_the_pool_does() -> None:
    conv = Conv2D((1, 7, 7), out_channels=2, kernel_size=3)  # 5x5 outputs, of which the pool sees 4x4
    network = Network([conv, MaxPool2D(conv.output_shape, kernel_size=2)])
    (step,) = plan_work(network)
    assert isinstance(step.layer, PooledConv2D)
    assert step.forward_work(3, 4).multiply_adds == 2 * 9 * 16 * 3


def test_the_work_of_the_other_layers() -> None:
    (pool,) = plan_work(Network([MaxPool2D((2, 7, 7), kernel_size=3, stride=2)]))
    assert pool.forward_work(1, 4) == Work(0, 4 * 3 * 9 * 2 * 3 * 3)
    (relu,) = plan_work(Network([ReLU((6,))]))
    assert relu.forward_work(5, 8) == Work(0, 8 * 2 * 30)
    assert relu.backward_work(5, 8, with_input=True) == Work(0, 8 * 3 * 30)
    (flatten,) = plan_work(Network([Flatten((2, 3))]))
    assert flatten.forward_work(5, 4) == flatten.backward_work(5, 4, with_input=True) == Work(0, 0)
    (dense,) = plan_work(Network([Dense((6,), out_features=4)]))
    assert dense.forward_work(5, 4) == Work(120, 4 * (30 + 20 + 28))
    assert dense.backward_work(5, 4, with_input=False) == Work(120, 4 * (20 + 28 + 30))


RATES = ReferenceRates(flops_per_second=100e9, bytes_per_second=10e9, seconds_per_call=1e-6)


@pytest.mark.parametrize(
    ("multiply_adds", "bytes_moved", "seconds", "bound"),
    [
        (50_000_000, 1_000_000, 2e-3, "compute"),  # 1 ms of products, 0.1 ms of copies
        (5_000_000, 10_000_000, 2e-3, "memory"),  # 0.1 ms of products, 1 ms of copies
        (0, 1000, 5e-6, "calls"),  # 0.1 us of copies
        (0, 1_000_000, 1e-3, "memory"),  # a slow pass over 0.1 ms of copies: no ten calls explain it
        (0, 0, 1e-6, "calls"),
    ],
)
def test_what_bounds_a_pass(multiply_adds: int, bytes_moved: int, seconds: float, bound: str) -> None:
    assert RATES.bound_of(Work(multiply_adds, bytes_moved), seconds) == bound


def test_rates_are_work_over_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # each piece of work is timed seven times, between two looks at the clock: the fastest run counts
    durations = iter([*[2.0, 1.0, 3.0, 3.0, 3.0, 3.0, 3.0], *[0.5] * 7, *[4.0] * 7])
    marks = iter([mark for duration in durations for mark in (0.0, duration)])
    monkeypatch.setattr("cnncli.training.profiling.reference_rates.time.perf_counter", lambda: next(marks))
    rates = measure_rates(np.dtype(np.float32))
    assert rates.flops_per_second == 2 * 512**3
    assert rates.bytes_per_second == 2 * 2 * 1024 * 1024 / 0.5  # read and written
    assert rates.seconds_per_call == 0.004


class Clock:
    """Time that passes only where a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self._monkeypatch = monkeypatch
        monkeypatch.setattr("cnncli.training.profiling.step.time.perf_counter", lambda: self.now)
        monkeypatch.setattr(step_module, "measure_rates", lambda dtype: RATES)

    def charge(self, owner: Any, method: str, seconds: float) -> None:
        """Let a method take some time."""
        original: Callable[..., Any] = getattr(owner, method)

        def charged(*arguments: Any, **options: Any) -> Any:
            self.now += seconds
            return original(*arguments, **options)

        self._monkeypatch.setattr(owner, method, charged)


def test_every_part_is_charged_with_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    clock.charge(PooledConv2D, "forward", 1)
    clock.charge(PooledConv2D, "parameter_gradients", 2)
    clock.charge(PooledConv2D, "input_gradient", 1000)  # the first layer needs none
    clock.charge(ReLU, "forward", 4)
    clock.charge(ReLU, "input_gradient", 8)
    clock.charge(Dense, "forward", 16)
    clock.charge(Dense, "parameter_gradients", 32)
    clock.charge(Dense, "input_gradient", 64)
    profile = profiled(config_of())
    times = [
        (layer.name, layer.forward.seconds, layer.backward and layer.backward.seconds)
        for layer in profile.layers
    ]
    assert times == [
        ("conv2d + max_pool2d", 1, 2),
        ("relu", 4, 8),
        ("flatten", 0, 0),
        ("dense", 16, 96),
        ("relu", 4, 8),
        ("dense", 16, 96),
    ]
    assert profile.shard_seconds == 1 + 2 + 2 * (4 + 8) + 2 * (16 + 96)
    # nothing but the layers of the shards takes time
    assert profile.step_seconds == profile.n_shards * profile.shard_seconds == profile.one_thread_seconds
    assert profile.speed_up == 1
    assert profile.optimizer_seconds == profile.loss_seconds == profile.input_seconds == 0


def test_loss_optimizer_and_input_are_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    clock.charge(ReLU, "forward", 1)
    clock.charge(Normalization, "apply", 2)
    clock.charge(Adam, "step", 4)
    clock.charge(step_module, "softmax_cross_entropy", 8)
    profile = profiled(config_of(SMALL + "optimizer: adam\n"))
    assert (profile.input_seconds, profile.loss_seconds, profile.optimizer_seconds) == (2, 8, 4)
    assert profile.shard_seconds == 2 + 2 * 1 + 8


def test_the_work_is_that_of_the_largest_shard() -> None:
    profile = profiled(config_of())
    assert (profile.batch_size, profile.n_shards, profile.shard_size) == (10, 2, 5)
    conv, *_, last = profile.layers
    one = 3 * 18 * 6 * 4 * 5  # out_channels, C*KH*KW, the windows that the pool sees, images
    assert conv.forward.work.multiply_adds == one
    assert conv.backward is not None and last.backward is not None
    assert conv.backward.work.multiply_adds == one  # no gradient of the images
    assert last.forward.work.multiply_adds == 4 * 2 * 5
    assert last.backward.work.multiply_adds == 2 * 4 * 2 * 5


def test_layers_before_the_first_parameters_have_no_backward() -> None:
    config = config_of(
        "network:\n  - max_pool2d: {kernel_size: 2}\n  - flatten\n  - dense: {out_features: 2}\n"
    )
    profile = profiled(config)
    assert [(layer.name, layer.backward is None) for layer in profile.layers] == [
        ("max_pool2d", True),
        ("flatten", True),
        ("dense", False),
    ]


@pytest.mark.parametrize("n_workers", [1, 2])
def test_a_step_takes_as_long_as_it_takes(n_workers: int) -> None:
    config = load_config(CONFIGS / "lenet.yaml", ["training.clip_norm=1", "training.early_stopping={}"])
    with Workers(n_workers) as workers:
        profile = profile_step(config, (1, 28, 28), 10, workers, batch_size=9, repeat=3)
    assert (profile.n_threads, profile.n_shards, profile.n_parameters) == (n_workers, 1, 61_706)
    assert profile.images_per_second == 9 / profile.step_seconds
    document = profile.to_dict()
    shares = sum(
        one["share"] for layer in document["layers"] for one in (layer["forward"], layer["backward"])
    )
    rest = (document["input_milliseconds"] + document["loss_milliseconds"]) / document["shard_milliseconds"]
    assert shares + rest == pytest.approx(1)


def test_a_profile_in_plain_numbers() -> None:
    work = Work(multiply_adds=1_000_000, bytes_moved=5000)
    forward = PassProfile(0.001, work, "compute")
    profile = Profile(
        dtype="float32",
        rates=RATES,
        batch_size=64,
        shard_size=32,
        n_shards=2,
        n_threads=2,
        n_parameters=7,
        input_seconds=0.0005,
        layers=(LayerProfile("dense", (3,), forward, dataclasses.replace(forward, seconds=0.002)),),
        loss_seconds=0.0005,
        optimizer_seconds=0.002,
        step_seconds=0.005,
    )
    assert profile.shard_seconds == pytest.approx(0.004)
    assert profile.one_thread_seconds == pytest.approx(0.010)
    document = profile.to_dict()
    assert document["speed_up"] == pytest.approx(2)
    assert document["images_per_second"] == pytest.approx(12_800)
    assert document["reference"] == {
        "gflops": 100,
        "gigabytes_per_second": 10,
        "microseconds_per_call": 1,
    }
    (layer,) = document["layers"]
    assert (layer["name"], layer["layers"]) == ("dense", [3])
    assert layer["forward"] == {
        "milliseconds": 1.0,
        "share": pytest.approx(0.25),
        "multiply_adds": 1_000_000,
        "gflops": pytest.approx(2.0),
        "estimated_bytes_moved": 5000,
        "bound": "compute",
    }
    assert layer["backward"]["gflops"] == pytest.approx(1.0)
