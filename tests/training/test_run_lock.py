"""One process at a time writes to a run directory, and a killed one leaves it at once."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cnncli.errors import UsageError
from cnncli.training import RunDirectory, RunLock, Workers, run_lock
from tests.cli.program import Cnncli, environment
from tests.training.runs import make_config

linux = pytest.mark.skipif(sys.platform != "linux", reason="workers are processes on Linux only")

HOLDER = """
import sys, time
from pathlib import Path
from cnncli.training import RunLock, Workers

lock = RunLock()
lock.take(Path(sys.argv[1]))
workers = Workers(3)
workers.operation(lambda worker, index: time.sleep(0.01))(6)
print("ready", flush=True)
time.sleep(60)
"""


@contextmanager
def holder_of(directory: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a process with workers that has locked a directory."""
    command = [sys.executable, "-c", HOLDER, str(directory)]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_lock, "_PATIENCE", 0.0)


@pytest.mark.usefixtures("impatient")
def test_a_locked_directory_is_refused_and_its_process_named(tmp_path: Path) -> None:
    with holder_of(tmp_path) as holder, RunLock() as lock:
        with pytest.raises(UsageError) as caught:
            lock.take(tmp_path)
        assert str(tmp_path) in str(caught.value)
        if sys.platform == "linux":
            assert f"process {holder.pid} is training a run in it" in str(caught.value)
            assert str(caught.value).endswith(f"stop it with: kill {holder.pid}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("impatient")
def test_two_locks_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    with RunLock() as first, RunLock() as second:
        first.take(tmp_path)
        with pytest.raises(UsageError):
            second.take(tmp_path)
        first.release()
        second.take(tmp_path)


def test_a_killed_process_gives_its_lock_back(tmp_path: Path) -> None:
    with holder_of(tmp_path) as holder, RunLock() as lock:
        holder.send_signal(signal.SIGKILL)
        lock.take(tmp_path)  # at once: it may still be dying


@linux
@pytest.mark.usefixtures("impatient")
def test_forked_workers_have_no_part_in_a_lock(tmp_path: Path) -> None:
    with RunLock() as lock, Workers(2) as workers:
        lock.take(tmp_path)
        workers.operation(lambda worker, index: None)(4)
        lock.release()
        with RunLock() as second:
            second.take(tmp_path)  # though the worker still lives


def test_where_there_are_no_locks_runs_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(descriptor: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(run_lock, "_try_to_lock", no_locks)
    with RunLock() as lock:
        lock.take(tmp_path)


def test_another_failure_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(run_lock, "_try_to_lock", fail)
    n_open = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0  # noqa: PTH208
    with RunLock() as lock, pytest.raises(OSError, match="Input/output error"):
        lock.take(tmp_path)
    if sys.platform == "linux":
        assert len(os.listdir("/proc/self/fd")) == n_open  # noqa: PTH208


@pytest.mark.usefixtures("impatient")
def test_a_directory_that_another_run_is_just_taking_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "lenet").mkdir()
    with RunLock() as other, RunLock() as lock:
        other.take(tmp_path / "lenet")
        run = RunDirectory.create_numbered(tmp_path, "lenet", make_config(), lock)
    assert run.path.name == "lenet-2"
    assert list((tmp_path / "lenet").iterdir()) == []


def test_what_was_left_by_a_run_that_died_at_its_start_takes_no_directory(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".config.yaml.1-2.tmp").write_text("half")
    with RunLock() as lock:
        RunDirectory.create(tmp_path / "run", make_config(), lock=lock)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["config.yaml"]


@pytest.mark.usefixtures("impatient")
def test_the_command_refuses_a_run_that_is_being_trained(workspace: Path, cnncli: Cnncli) -> None:
    assert cnncli("train", "--config", "tiny.yaml", "--run-dir", "run").code == 0
    before = {path: path.read_bytes() for path in Path("run").iterdir()}
    with holder_of(workspace / "run"):
        for options in (
            ("--resume", "run"),
            ("--config", "tiny.yaml", "--run-dir", "run"),
            ("--config", "tiny.yaml", "--run-dir", "run", "--overwrite"),
        ):
            result = cnncli("train", *options)
            assert (result.code, result.out) == (2, "")
            assert "is training a run in it" in result.err or "taken" in result.err
        # reading does no harm
        assert cnncli("train", "--resume", "run", "--dry-run").code == 0
        assert cnncli("eval", "run").code == 0
    assert {path: path.read_bytes() for path in Path("run").iterdir()} == before
    assert cnncli("train", "--resume", "run").code == 0


def test_runs_that_start_at_once_get_directories_of_their_own(workspace: Path) -> None:
    command = [sys.executable, "-m", "cnncli", "train", "--config", "tiny.yaml", "--quiet", "--threads", "1"]
    runs = [subprocess.Popen(command, cwd=workspace, env=environment()) for _ in range(4)]
    assert [run.wait(timeout=60) for run in runs] == [0, 0, 0, 0]
    names = sorted(path.name for path in (workspace / "runs").iterdir())
    assert names == ["tiny", "tiny-2", "tiny-3", "tiny-4"]
    for name in names:
        found = sorted(path.name for path in (workspace / "runs" / name).iterdir())
        assert found == ["best.npz", "config.yaml", "last.npz", "metrics.jsonl"]
