"""Full, read-only, failing, vanishing disks: the cause is told, the last checkpoint stays, a run goes on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from cnncli.config import Config
from cnncli.errors import CheckpointError, CnncliError, TrainingError
from cnncli.training import RunDirectory, RunLock, Trainer, Workers, load_checkpoint, run_epochs
from tests.cli.program import Cnncli, assert_same_arrays, command, environment
from tests.training.faulty_disk import FaultyDisk
from tests.training.runs import make_config, make_data

pytestmark = pytest.mark.stress

CONFIG = make_config("data.validation_size=40", epochs=2)
SHORT = make_config("data.validation_size=10", epochs=1)


def train(path: Path, config: Config = CONFIG) -> RunDirectory:
    """Start a run, or go on with it where there is one, to the end."""
    data = make_data() if config is CONFIG else make_data(32, 10)
    with RunLock() as lock, Workers(1) as workers:
        if (path / "config.yaml").exists():
            run = RunDirectory(path)
            lock.take(path)
        else:
            run = RunDirectory.create(path, config, lock=lock)
        run.remove_leftovers()
        trainer = Trainer(config, data, workers)
        last = run.load_last()
        if last is not None:
            run.require_best(last.metrics)
            trainer.restore(last)
            run.rebuild_metrics(last)
        for _ in run_epochs(trainer, run):
            pass
    return run


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A run that nothing happened to."""
    return train(tmp_path_factory.mktemp("whole") / "run")


def assert_ends_as(run: RunDirectory, whole: RunDirectory) -> None:
    assert_same_arrays(run.last, whole.last)
    assert_same_arrays(run.best, whole.best)
    assert sorted(path.name for path in run.path.iterdir()) == sorted(p.name for p in whole.path.iterdir())


@pytest.mark.parametrize(("goes_on", "every"), [(False, 1), (True, 5)], ids=["once", "for_good"])
def test_a_disk_that_fails_at_any_operation_costs_no_finished_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, goes_on: bool, every: int
) -> None:
    disk = FaultyDisk(monkeypatch, tmp_path)
    whole = train(tmp_path / "whole", SHORT)
    operations, n_failures = range(0, disk.count, every), 0
    assert disk.count > 50
    for operation in operations:
        path, seen = tmp_path / str(operation), 0
        disk.fail_at(operation, go_on=goes_on)
        try:
            train(path, SHORT)
        except (TrainingError, CheckpointError) as error:
            n_failures += 1
            assert str(path) in str(error)
            assert any(reason in str(error) for reason in ("No space left", "Read-only", "Input/output"))
        disk.mend()
        for name in ("best.npz", "last.npz"):
            if (path / name).exists():
                seen = max(seen, load_checkpoint(path / name).epoch)
        run = RunDirectory(path)
        if run.last.exists():
            assert load_checkpoint(run.last).epoch >= seen - 1
        assert_ends_as(train(path, SHORT), whole)
        shutil.rmtree(path)
    # of a temporary file that could not be removed nothing is told
    assert n_failures > 0.8 * len(operations)


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
@pytest.mark.parametrize("limit", [0, 100, 2000, 4000])
def test_a_file_that_may_not_grow_ends_with_the_cause_and_the_place(workspace: Path, limit: int) -> None:
    script = (
        "import resource, sys; from cnncli.__main__ import main; "
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit})); "
        "sys.argv[0] = 'cnncli'; main()"
    )
    train_tiny = ["train", "--config", "tiny.yaml", "--run-dir", "run"]
    done = subprocess.run(
        [sys.executable, "-c", script, *train_tiny],
        cwd=workspace,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (1, "")
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert errors[0].startswith("error: run") and errors[0].endswith(": File too large")
    assert not list((workspace / "run").glob(".*"))


# 0: before the first step; 1 and 2: after the first and the second epoch
@pytest.mark.parametrize("epoch", [1, 2])
def test_a_directory_that_vanishes_is_an_error_that_names_it(
    workspace: Path, cnncli: Cnncli, monkeypatch: pytest.MonkeyPatch, epoch: int
) -> None:
    run_epoch = Trainer._run_epoch

    def remove_and_run(trainer: Trainer, *rest: object) -> object:
        if trainer.epoch + 1 == epoch:
            shutil.rmtree(workspace / "run")
        return run_epoch(trainer, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Trainer, "_run_epoch", remove_and_run)
    result = cnncli("train", "--config", "tiny.yaml", "--run-dir", "run")
    assert (result.code, result.out) == (1, "")
    errors = [line for line in result.err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert errors[0].endswith(": cannot write the checkpoint: No such file or directory")
    assert "go on with" not in result.err  # there is nothing to go on with
    assert not (workspace / "run").exists()


def test_a_failing_disk_names_the_epoch_that_is_kept(
    workspace: Path, cnncli: Cnncli, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_epoch = Trainer._run_epoch

    def fill_and_run(trainer: Trainer, *rest: object) -> object:
        if trainer.epoch == 1:
            FaultyDisk(monkeypatch, workspace).fail_at(0, go_on=True)
        return run_epoch(trainer, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_run_epoch", fill_and_run)
        result = cnncli("train", "--config", "tiny.yaml", "--run-dir", "run")
    assert (result.code, result.out) == (1, "")
    assert result.err.endswith(
        "best.npz: cannot write the checkpoint: No space left on device\n"
        "  epoch 1 of 2 is kept in run/last.npz\n"
        "  resume with: cnncli train --resume run\n"
    )


@pytest.fixture
def small_disk(workspace: Path) -> Iterator[Path]:
    """Mount a file system of 64 KiB, which takes the right to."""
    place = workspace / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(place)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("cannot mount a tmpfs here: it takes Linux, root and the capability")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(place: Path) -> Path:
    """Take all the space that is left."""
    filler = place / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(512))
    return filler


def test_a_full_tmpfs_keeps_the_epoch_before(small_disk: Path, whole: RunDirectory) -> None:
    with Workers(1) as workers:
        run = RunDirectory.create(small_disk / "run", CONFIG)
        epochs = run_epochs(Trainer(CONFIG, make_data(), workers), run)
        next(epochs)
        filler = fill(small_disk)
        with pytest.raises(CnncliError, match=r"run/.*: No space left on device"):
            next(epochs)
    assert load_checkpoint(run.last).epoch == 1
    assert not list(run.path.glob(".*"))
    filler.unlink()
    assert_ends_as(train(run.path), whole)


def test_a_tmpfs_that_becomes_read_only_keeps_the_epoch_before(small_disk: Path, whole: RunDirectory) -> None:
    remount = ["mount", "-o", "remount,{}", str(small_disk)]
    with Workers(1) as workers:
        run = RunDirectory.create(small_disk / "run", CONFIG)
        epochs = run_epochs(Trainer(CONFIG, make_data(), workers), run)
        next(epochs)
        subprocess.run([part.format("ro") for part in remount], check=True)
        with pytest.raises(CnncliError, match=r"run/.*: Read-only file system"):
            next(epochs)
    assert load_checkpoint(run.last).epoch == 1
    subprocess.run([part.format("rw") for part in remount], check=True)
    assert_ends_as(train(run.path), whole)


def test_the_command_on_a_read_only_and_on_a_full_disk(small_disk: Path, workspace: Path) -> None:
    def attempt() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command("train", "--config", "tiny.yaml", "--run-dir", "disk/run"),
            cwd=workspace,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=60,
        )

    filler = fill(small_disk)
    full = attempt()
    assert (full.returncode, full.stdout) == (1, "")
    assert full.stderr.endswith("error: disk/run: cannot write: No space left on device\n")
    filler.unlink()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    read_only = attempt()
    assert (read_only.returncode, read_only.stdout) == (1, "")
    assert read_only.stderr.endswith("error: disk/run: cannot write: Read-only file system\n")
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert attempt().returncode == 0


def test_a_directory_that_cannot_be_made_is_named(workspace: Path, cnncli: Cnncli) -> None:
    (workspace / "file").write_text("no directory")
    result = cnncli("train", "--config", "tiny.yaml", "--run-dir", "file/run")
    assert (result.code, result.out) == (1, "")
    assert result.err.endswith("error: file/run: cannot write: Not a directory\n")
