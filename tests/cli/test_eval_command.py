"""``cnncli eval``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cnncli.training import load_checkpoint
from tests.cli.program import MNIST, Cnncli, make_tiny_dataset, run_program

MNIST_CONFIG = """\
data: {{dataset: mnist, directory: {directory}, validation_size: 59000}}
network: [flatten, dense: {{out_features: 10}}]
"""


@pytest.fixture
def tiny_run(workspace: Path, cnncli: Cnncli) -> Path:
    assert cnncli("train", "--config", "tiny.yaml").code == 0
    return workspace / "runs" / "tiny"


def test_the_same_figures_as_at_the_end_of_training(workspace: Path, cnncli: Cnncli) -> None:
    trained = cnncli("train", "--config", "tiny.yaml", "--json").json["test"]
    for threads in ("1", "2", "3"):
        assert cnncli("eval", "runs/tiny", "--json", "--threads", threads).json == trained
    assert cnncli("eval", "runs/tiny/best.npz", "--json").json == trained


def test_json_has_the_pinned_keys(tiny_run: Path, cnncli: Cnncli) -> None:
    result = cnncli("eval", tiny_run, "--json")
    assert (result.code, result.err) == (0, "")
    document = result.json
    assert document.keys() == {"examples", "loss", "accuracy", "confusion_matrix", "per_class"}
    matrix = np.array(document["confusion_matrix"])
    assert matrix.sum(axis=1).tolist() == [20, 20, 20]
    assert document["accuracy"] == np.trace(matrix) / 60
    assert [scores.keys() for scores in document["per_class"]] == [
        {"label", "precision", "recall", "f1", "support"}
    ] * 3


def test_weights_that_overflow_name_the_checkpoint_and_the_layer(tiny_run: Path, cnncli: Cnncli) -> None:
    with np.load(tiny_run / "best.npz") as archive:
        arrays = {name: archive[name] for name in archive.files}
    for name in arrays:
        if name.startswith("parameters/") and name.endswith("/weight"):
            arrays[name] *= np.float32(1e30)
    np.savez(tiny_run / "spoiled.npz", **arrays)
    result = cnncli("eval", tiny_run / "spoiled.npz", "--json")
    assert (result.code, result.out) == (1, "")
    assert f"{tiny_run / 'spoiled.npz'}: the loss on the images is " in result.err
    assert "layer network[" in result.err


def test_every_split_is_that_of_the_run(tiny_run: Path, cnncli: Cnncli) -> None:
    sizes = {
        split: cnncli("eval", tiny_run, "--split", split, "--json").json["examples"]
        for split in ("test", "validation", "train")
    }
    assert sizes == {"test": 60, "validation": 60, "train": 240}
    best = load_checkpoint(tiny_run / "best.npz").metrics[-1]
    validation = cnncli("eval", tiny_run, "--split", "validation", "--json").json
    assert validation["accuracy"] == best["validation_accuracy"]
    assert validation["loss"] == best["validation_loss"]


def test_without_a_validation_set_there_is_none_to_evaluate(workspace: Path, cnncli: Cnncli) -> None:
    cnncli("train", "--config", "tiny.yaml", "--set", "data.validation_size=0")
    result = cnncli("eval", "runs/tiny", "--split", "validation")
    assert (result.code, result.out) == (2, "")
    assert "data.validation_size: 0" in result.err


def test_from_another_directory_in_another_process(tiny_run: Path, cnncli: Cnncli, tmp_path: Path) -> None:
    here = cnncli("eval", tiny_run, "--json").json
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = run_program("eval", tiny_run / "best.npz", "--json", cwd=elsewhere)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == here


def test_the_checkpoint_alone_is_enough(tiny_run: Path, cnncli: Cnncli) -> None:
    before = cnncli("eval", tiny_run).out
    moved = tiny_run.parent.parent / "alone.npz"
    (tiny_run / "best.npz").rename(moved)
    for path in [*tiny_run.iterdir(), Path("tiny.yaml")]:
        path.unlink()
    assert cnncli("eval", moved).out == before


def test_data_that_has_moved(tiny_run: Path, cnncli: Cnncli) -> None:
    before = cnncli("eval", tiny_run).out
    Path("moved").mkdir()
    Path("tiny.npz").rename("moved/tiny.npz")
    lost = cnncli("eval", tiny_run)
    assert (lost.code, lost.out) == (1, "")
    assert "tiny.npz: the data set of the run is not here; say where it is with --data-dir" in lost.err
    assert cnncli("eval", tiny_run, "--data-dir", "moved").out == before
    assert cnncli("eval", tiny_run, "--data-dir", "moved/tiny.npz").out == before
    assert cnncli("eval", tiny_run, "--data-dir", "nowhere").code == 1


def test_images_of_another_shape(tiny_run: Path, cnncli: Cnncli) -> None:
    make_tiny_dataset(Path("tiny.npz"), shape=(9, 8))
    result = cnncli("eval", tiny_run)
    assert (result.code, result.out) == (1, "")
    assert "expected images of shape (C, H, W) = (1, 8, 8), as the network was trained on" in result.err
    assert "got (1, 9, 8)" in result.err


def test_labels_that_the_network_does_not_know(tiny_run: Path, cnncli: Cnncli) -> None:
    make_tiny_dataset(Path("tiny.npz"), n_classes=4)
    result = cnncli("eval", tiny_run)
    assert (result.code, result.out) == (1, "")
    assert "expected labels from 0 to 2, as the network was trained on, got 3" in result.err


def mnist_run(cnncli: Cnncli, directory: Path) -> None:
    Path("mnist.yaml").write_text(MNIST_CONFIG.format(directory=directory))
    result = cnncli("train", "--config", "mnist.yaml", "--set", "training.batch_size=1000")
    assert result.code == 0, result.err


def link_files(directory: Path) -> None:
    directory.mkdir(parents=True)
    for path in MNIST.glob("*.gz"):
        (directory / path.name).symlink_to(path)


def test_known_data_is_looked_for_where_the_run_found_it_then_in_the_cache(
    workspace: Path, cnncli: Cnncli, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = workspace / "cache"
    monkeypatch.setattr("cnncli.data.dataset.cache_directory", lambda name: cache / name)
    link_files(workspace / "recorded")
    mnist_run(cnncli, workspace / "recorded")
    first = cnncli("eval", "runs/mnist")
    assert first.code == 0
    (workspace / "recorded").rename(workspace / "moved")
    lost = cnncli("eval", "runs/mnist")
    assert (lost.code, lost.out) == (1, "")
    assert str(cache / "mnist") in lost.err and str(workspace / "recorded") in lost.err
    assert "--data-dir" in lost.err
    assert cnncli("eval", "runs/mnist", "--data-dir", "moved").out == first.out
    link_files(cache / "mnist")
    assert cnncli("eval", "runs/mnist").out == first.out
    # a directory that was named is the one that is meant
    assert cnncli("eval", "runs/mnist", "--data-dir", "nowhere").code == 1


def test_dropout_rests(tiny_run: Path, cnncli: Cnncli) -> None:
    outputs = {cnncli("eval", tiny_run, "--json").out for _ in range(2)}
    assert len(outputs) == 1
