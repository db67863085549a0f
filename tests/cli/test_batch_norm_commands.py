"""Every command with a network of batch norms, average pools, sigmoid and tanh."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.program import Cnncli, assert_same_arrays

CONFIG = """\
data: {dataset: tiny.npz, validation_size: 60}
network:
  - conv2d: {out_channels: 4, kernel_size: 3}
  - batch_norm2d
  - relu
  - average_pool2d: {kernel_size: 2}
  - conv2d: {out_channels: 6, kernel_size: 2}
  - batch_norm2d
  - tanh
  - global_average_pool2d
  - dense: {out_features: 8}
  - batch_norm1d: {momentum: 0.2}
  - sigmoid
  - dense: {out_features: 3}
optimizer: {adam: {learning_rate: 0.02}}
training: {epochs: 4, batch_size: 32, shard_size: 10}
schedule: constant
"""


@pytest.fixture(autouse=True)
def config(workspace: Path) -> None:
    (workspace / "norm.yaml").write_text(CONFIG)


def test_train_and_eval_give_the_same_figures(cnncli: Cnncli) -> None:
    trained = cnncli("train", "--config", "norm.yaml", "--json", "--threads", "3").json["test"]
    assert trained["accuracy"] > 0.5  # a third are right by chance
    for threads in ("1", "2"):
        assert cnncli("eval", "runs/norm", "--json", "--threads", threads).json == trained


def test_a_run_that_is_gone_on_with_ends_where_it_would_have(cnncli: Cnncli) -> None:
    assert cnncli("train", "--config", "norm.yaml", "--run-dir", "whole").code == 0
    short = ("--set", "training.epochs=2", "--run-dir", "parts")
    assert cnncli("train", "--config", "norm.yaml", *short).code == 0
    assert cnncli("train", "--resume", "parts", "--set", "training.epochs=4", "--threads", "2").code == 0
    for name in ("last.npz", "best.npz"):
        assert_same_arrays(Path("whole") / name, Path("parts") / name)


@pytest.mark.parametrize("seed", ["0", "1"])
def test_every_gradient_is_right(cnncli: Cnncli, seed: str) -> None:
    result = cnncli("gradcheck", "--config", "norm.yaml", "--seed", seed, "--json")
    assert (result.code, result.err) == (0, "")


def test_inspect_shapes_lists_the_averages(cnncli: Cnncli) -> None:
    step = cnncli("inspect-shapes", "--config", "norm.yaml", "--backward", "--json").json["step"]
    (averages,) = (array for array in step["once"] if array["name"] == "running averages")
    assert averages["nbytes"] == 4 * 2 * (4 + 6 + 8)
    norm = next(one for one in step["passes"] if one["name"] == "batch_norm2d")
    assert [array["name"] for array in norm["arrays"]] == ["output", "centred"]
    assert "of the shard" in norm["note"]


def test_profile_times_every_layer(cnncli: Cnncli) -> None:
    profile = cnncli("profile", "--config", "norm.yaml", "--repeat", "1", "--json").json
    layers = {layer["name"]: layer for layer in profile["layers"]}
    # 4 channels of 6x6, pooled to 3x3: the input, twice what is kept for backward, the output, the parameters
    numbers = 4 * 36 * profile["shard_size"]
    assert layers["average_pool2d"]["forward"]["estimated_bytes_moved"] == 4 * (numbers + numbers // 4)
    first = next(layer for layer in profile["layers"] if layer["name"] == "batch_norm2d")
    assert first["forward"]["estimated_bytes_moved"] == 4 * (4 * numbers + 8)
    assert first["forward"]["multiply_adds"] == 0
