"""Run directories: refused where taken, whole at every moment, resumed to the same bits."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest

from cnncli.config import Config, load_config
from cnncli.errors import CheckpointError, TrainingError, UsageError
from cnncli.training import Checkpoint, RunDirectory, Trainer, Workers, load_checkpoint, run_epochs
from tests.training.runs import make_config, make_data


def run_to_the_end(run: RunDirectory, config: Config) -> None:
    with Workers(1) as workers:
        trainer = Trainer(config, make_data(), workers)
        last = run.load_last()
        if last is not None:
            trainer.restore(last)
        for _ in run_epochs(trainer, run):
            pass


def arrays_of(path: Path) -> dict[str, bytes]:
    with np.load(path) as file:
        return {name: file[name].tobytes() for name in file.files if name != "metadata"}


def test_a_run_leaves_the_four_files(tmp_path: Path) -> None:
    config = make_config("data.validation_size=40", epochs=3)
    run = RunDirectory.create(tmp_path / "run", config)
    run_to_the_end(run, config)
    assert sorted(path.name for path in run.path.iterdir()) == [
        "best.npz",
        "config.yaml",
        "last.npz",
        "metrics.jsonl",
    ]
    assert load_config(run.config) == config
    lines = [json.loads(text) for text in run.metrics.read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2, 3]
    assert set(lines[0]) >= {
        "epoch",
        "train_loss",
        "train_accuracy",
        "validation_loss",
        "validation_accuracy",
        "learning_rate",
        "seconds",
        "images_per_second",
    }
    best = max(lines, key=lambda line: (line["validation_accuracy"], -line["validation_loss"]))
    assert load_checkpoint(run.best).epoch == best["epoch"]
    assert load_checkpoint(run.last).epoch == 3


@pytest.mark.parametrize("stop_after", [0, 1, 2, 4])
def test_a_stopped_run_ends_with_the_bits_of_the_uninterrupted_one(tmp_path: Path, stop_after: int) -> None:
    config = make_config("data.validation_size=40", epochs=5)
    whole = RunDirectory.create(tmp_path / "whole", config)
    run_to_the_end(whole, config)

    stopped = RunDirectory.create(tmp_path / "stopped", config)
    with Workers(2) as workers:
        epochs = run_epochs(Trainer(config, make_data(), workers), stopped)
        for _ in range(stop_after):
            next(epochs)
    run_to_the_end(stopped, config)

    assert arrays_of(stopped.last) == arrays_of(whole.last)
    assert arrays_of(stopped.best) == arrays_of(whole.best)
    assert load_checkpoint(stopped.best).epoch == load_checkpoint(whole.best).epoch
    assert len(stopped.metrics.read_text().splitlines()) == 5


def test_without_a_validation_set_the_last_epoch_is_best(tmp_path: Path) -> None:
    config = make_config(epochs=2)
    run = RunDirectory.create(tmp_path / "run", config)
    with Workers(1) as workers:
        for _ in run_epochs(Trainer(config, make_data(n_validation=0), workers), run):
            pass
    assert arrays_of(run.best) == arrays_of(run.last)
    assert not run.best.is_symlink()
    assert run.best.stat().st_ino != run.last.stat().st_ino


def test_a_taken_directory_is_refused_unless_told_otherwise(tmp_path: Path) -> None:
    config = make_config(epochs=1)
    run = RunDirectory.create(tmp_path / "run", config)
    run_to_the_end(run, config)
    kept = run.best.read_bytes()
    with pytest.raises(UsageError, match=r"run.*taken.*--overwrite"):
        RunDirectory.create(tmp_path / "run", config)
    assert run.best.read_bytes() == kept
    (run.path / "notes.txt").write_text("mine")
    RunDirectory.create(tmp_path / "run", config, overwrite=True)
    assert sorted(path.name for path in run.path.iterdir()) == ["config.yaml", "notes.txt"]


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(UsageError, match="is a file"):
            RunDirectory.create(tmp_path / "run", make_config(), overwrite=overwrite)
    assert (tmp_path / "run").read_text() == "mine"


def test_runs_of_one_configuration_are_numbered(tmp_path: Path) -> None:
    names = [RunDirectory.create_numbered(tmp_path, "lenet", make_config()).path.name for _ in range(3)]
    assert names == ["lenet", "lenet-2", "lenet-3"]


def test_a_directory_without_a_run_cannot_be_resumed(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="holds no run"):
        RunDirectory(tmp_path).load_last()


def test_a_run_that_died_before_its_first_checkpoint_starts_anew(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", make_config())
    assert run.load_last() is None
    assert run.load_config() == make_config()


def test_a_full_disk_leaves_no_empty_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full_disk)
        with pytest.raises(TrainingError, match="No space left on device"):
            RunDirectory.create(tmp_path / "run", make_config())
    assert list((tmp_path / "run").iterdir()) == []
    RunDirectory.create(tmp_path / "run", make_config())


def test_of_two_runs_that_found_a_directory_free_one_gets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    RunDirectory.create(tmp_path / "run", make_config(seed=1))
    before = (tmp_path / "run" / "config.yaml").read_bytes()
    monkeypatch.setattr(RunDirectory, "require_free", lambda run: None)
    with pytest.raises(UsageError, match="taken"):
        RunDirectory.create(tmp_path / "run", make_config(seed=2))
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["config.yaml"]
    assert (tmp_path / "run" / "config.yaml").read_bytes() == before


def test_a_file_system_without_hard_links_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(source: Path, target: Path) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    run = RunDirectory.create(tmp_path / "run", make_config())
    assert load_config(run.config) == make_config()
    assert [path.name for path in run.path.iterdir()] == ["config.yaml"]


def test_best_may_be_one_epoch_ahead_as_after_a_kill_between_best_and_last(tmp_path: Path) -> None:
    """The best epoch so far is overwritten by then: only the epoch after the last can take its place."""
    config = make_config("data.validation_size=40", epochs=3)
    run = RunDirectory.create(tmp_path / "run", config)
    run_to_the_end(run, config)
    last = load_checkpoint(run.last)

    def with_accuracies(*accuracies: float) -> Checkpoint:
        lines = zip(last.metrics, accuracies, strict=False)
        metrics = tuple({**line, "validation_accuracy": accuracy} for line, accuracy in lines)
        return dataclasses.replace(last, metrics=metrics, epoch=len(metrics))

    so_far = with_accuracies(0.5, 0.4).metrics
    with_accuracies(0.5, 0.4, 0.6).save(run.best)
    run.require_best(so_far)
    for other in (with_accuracies(0.5, 0.4, 0.3), with_accuracies(0.5, 0.3, 0.6), with_accuracies(0.6)):
        other.save(run.best)
        with pytest.raises(CheckpointError, match="expected epoch 1, the best of this run, got epoch"):
            run.require_best(so_far)
    with_accuracies(0.5).save(run.best)
    run.require_best(so_far)
