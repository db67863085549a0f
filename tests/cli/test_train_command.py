"""``cnncli train``: new runs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from cnncli.config import load_config
from cnncli.training import load_checkpoint
from tests.cli.program import TINY_CONFIG, Cnncli, assert_same_arrays, make_tiny_dataset

METRICS = {
    "epoch",
    "train_loss",
    "train_accuracy",
    "validation_loss",
    "validation_accuracy",
    "learning_rate",
    "seconds",
    "images_per_second",
}


def files_below(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


def test_a_run_leaves_its_four_files(workspace: Path, cnncli: Cnncli) -> None:
    result = cnncli("train", "--config", "tiny.yaml", "--json")
    assert result.code == 0
    run = workspace / "runs" / "tiny"
    assert sorted(path.name for path in run.iterdir()) == [
        "best.npz",
        "config.yaml",
        "last.npz",
        "metrics.jsonl",
    ]
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2]
    assert all(line.keys() >= METRICS for line in lines)
    document = result.json
    assert document["epochs"] == lines
    assert document["run_dir"] == "runs/tiny"
    assert document["config"] == load_checkpoint(run / "last.npz").config.to_dict()
    assert document["best_epoch"] == load_checkpoint(run / "best.npz").epoch
    assert document["test"]["examples"] == 60


def test_config_yaml_trains_again_to_the_same_bits(workspace: Path, cnncli: Cnncli) -> None:
    cnncli("train", "--config", "tiny.yaml", "--set", "seed=7")
    cnncli("train", "--config", "runs/tiny/config.yaml", "--run-dir", "again")
    assert load_config("again/config.yaml") == load_config("runs/tiny/config.yaml")
    assert_same_arrays(workspace / "runs/tiny/last.npz", workspace / "again/last.npz")


def test_threads_change_no_bit_and_are_not_recorded(workspace: Path, cnncli: Cnncli) -> None:
    documents = []
    for threads in ("1", "2", "3"):
        documents.append(
            cnncli(
                "train", "--config", "tiny.yaml", "--run-dir", threads, "--threads", threads, "--json"
            ).json
        )
        assert load_config(f"{threads}/config.yaml").training.threads is None
        assert_same_arrays(workspace / "1/last.npz", workspace / threads / "last.npz")
    assert documents[0]["test"] == documents[1]["test"] == documents[2]["test"]


def test_the_same_configuration_twice_takes_the_next_number(workspace: Path, cnncli: Cnncli) -> None:
    cnncli("train", "--config", "tiny.yaml")
    before = files_below(workspace / "runs")
    assert cnncli("train", "--config", "tiny.yaml").code == 0
    assert cnncli("train", "--config", "tiny.yaml", "--dry-run", "--json").json["run_dir"] == "runs/tiny-3"
    after = files_below(workspace / "runs")
    assert {path: after[path] for path in before} == before
    assert sorted(path.name for path in (workspace / "runs").iterdir()) == ["tiny", "tiny-2"]


def test_a_taken_run_directory_is_refused_unless_overwritten(workspace: Path, cnncli: Cnncli) -> None:
    arguments = ["train", "--config", "tiny.yaml", "--run-dir", "mine"]
    cnncli(*arguments)
    (workspace / "mine" / "notes.txt").write_text("keep me")
    before = files_below(workspace / "mine")
    refused = cnncli(*arguments, "--set", "seed=1")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("error: mine: the run directory is taken")
    assert files_below(workspace / "mine") == before
    assert cnncli(*arguments, "--set", "seed=1", "--overwrite").code == 0
    assert load_checkpoint(workspace / "mine/best.npz").config.seed == 1
    assert (workspace / "mine" / "notes.txt").read_text() == "keep me"


def test_overwrite_without_a_directory_replaces_the_first_run(workspace: Path, cnncli: Cnncli) -> None:
    cnncli("train", "--config", "tiny.yaml")
    assert cnncli("train", "--config", "tiny.yaml", "--set", "seed=1", "--overwrite").code == 0
    assert [path.name for path in (workspace / "runs").iterdir()] == ["tiny"]
    assert load_checkpoint(workspace / "runs/tiny/best.npz").config.seed == 1


def test_an_empty_directory_may_be_given(workspace: Path, cnncli: Cnncli) -> None:
    (workspace / "mine").mkdir()
    assert cnncli("train", "--config", "tiny.yaml", "--run-dir", "mine").code == 0


def test_a_failed_start_takes_no_directory(workspace: Path, cnncli: Cnncli) -> None:
    (workspace / "tiny.npz").write_bytes(b"damaged")
    assert cnncli("train", "--config", "tiny.yaml", "--run-dir", "mine").code == 1
    assert not (workspace / "mine").exists()


def test_quiet_writes_the_result_alone(workspace: Path, cnncli: Cnncli) -> None:
    loud = cnncli("train", "--config", "tiny.yaml")
    quiet = cnncli("train", "--config", "tiny.yaml", "--quiet")
    assert quiet.err == ""
    assert quiet.out == loud.out
    assert quiet.out.startswith("test accuracy ")
    assert quiet.out.count("\n") == 1


def test_the_head_and_the_end_say_what_matters(workspace: Path, cnncli: Cnncli) -> None:
    err = cnncli("train", "--config", "tiny.yaml", "--threads", "1").err
    assert "240 images to train on, 60 for validation\n" in err
    assert "network     151 parameters: conv2d 4 3x3, relu, max_pool2d 2x2, flatten,\n" in err
    assert "            dropout, dense 3\n" in err
    assert "optimizer   adam, learning rate 0.003, schedule constant\n" in err
    assert "training    2 epochs of 15 steps of 16 images, on 1 thread\n" in err
    assert "run         runs/tiny\n" in err
    assert err.endswith("next        cnncli eval runs/tiny\n")


def test_stars_mark_the_epochs_that_were_the_best_so_far(workspace: Path, cnncli: Cnncli) -> None:
    result = cnncli("train", "--config", "tiny.yaml", "--set", "training.epochs=8", "--json")
    rows = [line for line in result.err.splitlines() if "/8 " in line]
    best = (-1.0, 0.0)
    for row, metrics in zip(rows, result.json["epochs"], strict=True):
        key = (metrics["validation_accuracy"], -metrics["validation_loss"])
        assert ("*" in row) == (key > best)
        best = max(best, key)


def test_without_a_validation_set_there_is_no_star_and_no_column(workspace: Path, cnncli: Cnncli) -> None:
    result = cnncli("train", "--config", "tiny.yaml", "--set", "data.validation_size=0")
    assert "val loss" not in result.err and "*" not in result.err
    assert "best epoch  2 of 2, the last\n" in result.err


def test_early_stopping_is_told(workspace: Path, cnncli: Cnncli) -> None:
    result = cnncli(
        *("train", "--config", "tiny.yaml", "--set", "optimizer.adam.learning_rate=1e-30"),
        *("--set", "training.epochs=9", "--set", "training.early_stopping.patience=2"),
    )
    assert "best epoch  1 of 3, " in result.err
    assert "stopped early" in result.err


def test_a_dry_run_touches_nothing(workspace: Path, cnncli: Cnncli) -> None:
    before = files_below(workspace)
    result = cnncli("train", "--config", "tiny.yaml", "--dry-run")
    assert (result.code, result.err) == (0, "")
    assert "run         runs/tiny\n" in result.out
    assert "max_pool2d  (4, 3, 3)" in result.out
    assert files_below(workspace) == before


def test_a_dry_run_needs_no_data_that_is_known_by_name(workspace: Path, cnncli: Cnncli) -> None:
    (workspace / "mnist.yaml").write_text(
        "data: {dataset: mnist, directory: nowhere}\nnetwork: [flatten, dense: {out_features: 10}]\n"
    )
    result = cnncli("train", "--config", "mnist.yaml", "--dry-run", "--json")
    assert result.code == 0
    assert result.json["network"]["total_parameters"] == 7850
    assert result.json["config"]["data"]["directory"] == str(workspace / "nowhere")
    text = cnncli("train", "--config", "mnist.yaml", "--dry-run").out
    assert f"the files of mnist are not in {workspace / 'nowhere'}: the run would stop" in text
    assert cnncli("train", "--config", "mnist.yaml").code == 1


def test_a_dry_run_refuses_what_a_run_would(workspace: Path, cnncli: Cnncli) -> None:
    arguments = ["train", "--config", "tiny.yaml", "--dry-run"]
    assert cnncli(*arguments, "--run-dir", ".").code == 2
    assert cnncli(*arguments, "--set", "network[5].dense.out_features=2").code == 2


@pytest.mark.parametrize("shape", [(7, 9), (3, 8, 6)], ids=["not-square", "three-channels"])
def test_images_of_any_shape(workspace: Path, cnncli: Cnncli, shape: tuple[int, ...]) -> None:
    make_tiny_dataset(workspace / "tiny.npz", shape=shape)
    result = cnncli("train", "--config", "tiny.yaml", "--json")
    assert result.code == 0
    assert np.sum(result.json["test"]["confusion_matrix"]) == 60


def test_small_batches_and_small_data(workspace: Path, cnncli: Cnncli) -> None:
    for batch_size, steps in (("1000", "1 step of 240"), ("7", "35 steps of 7")):
        result = cnncli("train", "--config", "tiny.yaml", "--set", f"training.batch_size={batch_size}")
        assert result.code == 0
        assert f"{steps} images" in result.err


def test_the_configuration_may_be_anywhere(workspace: Path, cnncli: Cnncli) -> None:
    (workspace / "elsewhere").mkdir()
    (workspace / "elsewhere" / "other.yaml").write_text(TINY_CONFIG.replace("tiny.npz", "../tiny.npz"))
    assert cnncli("train", "--config", "elsewhere/other.yaml").code == 0
    assert (workspace / "runs" / "other" / "best.npz").exists()


def test_the_best_epoch_is_the_one_that_is_tested(workspace: Path, cnncli: Cnncli) -> None:
    """With a rate that grows a thousandfold, the first epoch is the best."""
    settings = ("--set", "schedule.step.factor=1000", "--set", "training.epochs=3")
    document = cnncli("train", "--config", "tiny.yaml", *settings, "--json").json
    assert document["best_epoch"] == 1
    assert load_checkpoint(workspace / "runs/tiny/best.npz").epoch == 1
    assert cnncli("eval", "runs/tiny", "--json").json == document["test"]
    assert cnncli("eval", "runs/tiny/last.npz", "--json").json != document["test"]


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
def test_a_link_to_nothing_is_taken(workspace: Path, cnncli: Cnncli) -> None:
    (workspace / "runs").mkdir()
    (workspace / "runs" / "tiny").symlink_to("nowhere")
    assert cnncli("train", "--config", "tiny.yaml").code == 0
    assert (workspace / "runs" / "tiny-2" / "best.npz").exists()
    assert cnncli("train", "--config", "tiny.yaml", "--run-dir", "runs/tiny").code == 2
