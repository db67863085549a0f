"""``cnncli profile``, and what it advises."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cnncli.cli.profile import advice
from cnncli.training.step_profile import Bound, LayerProfile, PassProfile, Profile, ReferenceRates
from tests.cli.program import CONFIGS, Cnncli

KEYS = {
    "dtype",
    "batch_size",
    "shard_size",
    "n_shards",
    "threads",
    "reference",
    "input_milliseconds",
    "layers",
    "loss_milliseconds",
    "shard_milliseconds",
    "optimizer_step_milliseconds",
    "step_milliseconds",
    "speed_up",
    "images_per_second",
    "advice",
}


def profiled(cnncli: Cnncli, *options: str) -> Any:
    result = cnncli("profile", "--config", CONFIGS / "lenet.yaml", "--repeat", "1", "--json", *options)
    assert (result.code, result.err) == (0, "")
    return result.json


def test_the_layers_of_lenet(cnncli: Cnncli) -> None:
    document = profiled(cnncli, "--threads", "1", "--set", "training.shard_size=32")
    assert document.keys() == KEYS
    assert (document["batch_size"], document["n_shards"], document["shard_size"]) == (128, 4, 32)
    assert [(layer["name"], layer["index"]) for layer in document["layers"][:4]] == [
        ("conv2d", 0),
        ("max_pool2d", 2),
        ("relu", 1),
        ("conv2d", 3),
    ]
    first = document["layers"][0]
    assert first["forward"]["multiply_adds"] == first["backward"]["multiply_adds"] == 32 * 117_600
    milliseconds = first["forward"]["milliseconds"]
    assert first["forward"]["gflops"] == pytest.approx(2 * 32 * 117_600 / milliseconds / 1e6)


def test_options_choose_batch_threads_and_values(cnncli: Cnncli) -> None:
    document = profiled(
        cnncli, "--batch-size", "20", "--threads", "2", "--set", "training.shard_size=5",
        "--set", "network.0.conv2d.out_channels=7",
    )  # fmt: skip
    assert (document["batch_size"], document["n_shards"], document["shard_size"]) == (20, 4, 5)
    assert document["threads"] == 2
    assert document["layers"][0]["forward"]["multiply_adds"] == 5 * 7 * 25 * 28 * 28


def test_a_batch_is_no_larger_than_the_training_set(workspace: Path, cnncli: Cnncli) -> None:
    arguments = ("--config", "tiny.yaml", "--batch-size", "5000", "--repeat", "1", "--json")
    assert cnncli("profile", *arguments).json["batch_size"] == 300


def test_the_table_fits_80_columns_and_adds_up(cnncli: Cnncli) -> None:
    result = cnncli("profile", "--config", CONFIGS / "lenet.yaml", "--repeat", "1", "--batch-size", "8")
    assert (result.code, result.err) == (0, "")
    title, empty, heads, *rest = result.out.splitlines()
    assert title.startswith(str(CONFIGS / "lenet.yaml")) and empty == ""
    assert max(map(len, [heads, *rest])) <= 80
    rows = rest[: rest.index("")]
    shares = [float(row.split(" %")[0].split()[-1]) for row in rows]
    assert shares[-1] == 100.0
    assert sum(shares[:-1]) == pytest.approx(100, abs=1.5)
    assert [line.split()[0] for line in rest[rest.index("") + 1 :] if not line.startswith(" ")] == [
        "optimizer",
        "step",
        "machine",
        "advice",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give --config FILE"),
        (("--config", "none.yaml"), "none.yaml"),
        (("--config", "tiny.yaml", "--repeat", "0"), "--repeat: expected an integer from 1 to 10000, got 0"),
        (("--config", "tiny.yaml", "--batch-size", "0"), "--batch-size: expected an integer of at least 1"),
        (("--config", "tiny.yaml", "--set", "network.0.conv2d.kernel_size=9"), "kernel_size"),
    ],
)
def test_what_cannot_be_profiled(
    workspace: Path, cnncli: Cnncli, arguments: tuple[str, ...], message: str
) -> None:
    result = cnncli("profile", *arguments)
    assert (result.code, result.out) == (2, "")
    assert message in result.err


def a_pass(milliseconds: float, bound: Bound) -> PassProfile:
    """Make a pass that all of the time goes into what it is bound by."""
    seconds = milliseconds / 1e3
    work = {"compute": (round(seconds * 50e9), 0), "memory": (0, round(seconds * 10e9)), "calls": (0, 0)}
    return PassProfile(seconds, *work[bound])


def a_profile(**changes: Any) -> Profile:
    """Make a profile of two layers whose parts fit together: 4 shards of 10 ms on 2 threads."""
    layers = (
        LayerProfile(0, "conv2d", a_pass(1, "memory"), a_pass(6, "memory")),
        LayerProfile(3, "dense", a_pass(1, "compute"), a_pass(1, "compute")),
    )
    profile = Profile(
        dtype="float32",
        rates=ReferenceRates(100e9, 10e9, 1e-6),
        batch_size=128,
        shard_size=32,
        n_shards=4,
        n_threads=2,
        n_parameters=1,
        input_seconds=0.0005,
        layers=layers,
        loss_seconds=0.0005,
        optimizer_seconds=0.001,
        step_seconds=0.022,
    )
    return replace(profile, **changes)


def test_the_advice_begins_with_the_longest_pass() -> None:
    assert advice(a_profile()).startswith(
        "60 % of a shard is spent in conv2d (network[0]), backward, bound by memory. Fewer"
    )


@pytest.mark.parametrize(
    ("name", "bound", "remedy"),
    [
        ("conv2d", "compute", "Fewer channels, a smaller kernel"),
        ("conv2d", "memory", "lower training.shard_size"),
        ("dense", "compute", "fewer out_features"),
        ("dense", "memory", "make its weight smaller"),
        ("relu", "memory", "make its arrays smaller"),
        ("relu", "calls", "larger training.shard_size"),
    ],
)
def test_what_is_advised_for_a_layer(name: str, bound: Bound, remedy: str) -> None:
    layer = LayerProfile(2, name, a_pass(9, bound), None)
    assert remedy in advice(a_profile(layers=(layer,)))


def test_what_holds_back_the_whole_step_is_mended_first() -> None:
    assert "1 shard for 2 threads" in advice(a_profile(n_shards=1))
    assert "The optimizer takes 33 % of a step" in advice(a_profile(optimizer_seconds=0.020))
    assert "2 threads do the work of 0.8" in advice(a_profile(step_seconds=0.050))
