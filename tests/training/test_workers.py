"""Every task runs once, on processes and on threads; failures surface; no worker is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cnncli.errors import LabelError, TrainingError
from cnncli.training import Workers
from cnncli.training.workers import shared_array, shared_copy
from tests.training.runs import arrays_after, make_config, same_bits

linux = pytest.mark.skipif(sys.platform != "linux", reason="workers are processes on Linux only")


@pytest.fixture(params=["processes", "threads"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test with the workers of Linux and with those of other systems."""
    if request.param == "processes" and sys.platform != "linux":
        pytest.skip("workers are processes on Linux only")
    if request.param == "threads":
        monkeypatch.setattr(sys, "platform", "darwin")
    return str(request.param)


@pytest.mark.parametrize("n_workers", [1, 2, 5])
@pytest.mark.parametrize("n_tasks", [0, 1, 2, 7, 3000])
def test_every_task_runs_exactly_once(kind: str, n_workers: int, n_tasks: int) -> None:
    counts = shared_array((n_tasks + 1,), np.int64)

    def count(worker: int, index: int, step: int) -> None:
        assert 0 <= worker < n_workers
        counts[index] += step

    with Workers(n_workers) as workers:
        run = workers.operation(count)
        run(n_tasks, 1)
        run(n_tasks, 10)
    assert counts[:n_tasks].tolist() == [11] * n_tasks
    assert counts[n_tasks] == 0


def test_tasks_run_side_by_side(kind: str) -> None:
    seen = shared_array((3,), np.int64)

    def wait_for_the_others(worker: int, index: int) -> None:
        seen[worker] = 1
        deadline = time.monotonic() + 30
        while seen.sum() < 3 and time.monotonic() < deadline:
            time.sleep(0.001)

    with Workers(3) as workers:
        workers.operation(wait_for_the_others)(3)
    assert seen.tolist() == [1, 1, 1]


@pytest.mark.parametrize("n_workers", [1, 3])
def test_the_failure_of_the_lowest_task_is_raised_and_the_workers_go_on(kind: str, n_workers: int) -> None:
    counts = shared_array((10,), np.int64)

    def fail(worker: int, index: int, first: int) -> None:
        counts[index] += 1
        if index >= first:
            raise LabelError(f"task {index}")

    with Workers(n_workers) as workers:
        run = workers.operation(fail)
        with pytest.raises(LabelError, match="task 4"):
            run(10, 4)
        assert counts.tolist() == [1] * 10
        run(10, 10)
    assert counts.tolist() == [2] * 10


def test_an_operation_added_later_is_known_too(kind: str) -> None:
    result = shared_array((2,), np.int64)

    def write(worker: int, index: int, value: int) -> None:
        result[index] = value

    with Workers(2) as workers:
        first = workers.operation(write)
        first(2, 1)
        second = workers.operation(lambda worker, index: write(worker, index, 2 * int(result[index])))
        second(2)
        assert result.tolist() == [2, 2]
        first(2, 5)
    assert result.tolist() == [5, 5]


def test_training_gives_the_same_bits_on_processes_and_on_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on_this_system = arrays_after(make_config(), n_threads=2)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert same_bits(on_this_system, arrays_after(make_config(), n_threads=2))


def test_closing_ends_threads_and_processes(kind: str) -> None:
    n_threads = threading.active_count()
    pids = shared_array((4,), np.int64)

    def note(worker: int, index: int) -> None:
        pids[worker] = os.getpid()
        time.sleep(0.02)

    with Workers(4) as workers:
        workers.operation(note)(8)
        assert threading.active_count() == n_threads + (3 if kind == "threads" else 0)
    assert threading.active_count() == n_threads
    for pid in set(pids.tolist()) - {os.getpid(), 0}:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@linux
def test_a_worker_that_is_killed_is_an_error_and_not_a_wait_for_ever() -> None:
    def die(worker: int, index: int) -> None:
        if worker == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.2)

    with Workers(2) as workers:
        run = workers.operation(die)
        with pytest.raises(TrainingError, match="ended by itself"):
            run(4)


@linux
def test_an_error_that_cannot_travel_arrives_as_text() -> None:
    class LocalError(Exception):
        pass

    def fail(worker: int, index: int) -> None:
        time.sleep(0.05)
        raise LocalError(f"worker {worker}")

    with Workers(2) as workers, pytest.raises((TrainingError, LocalError), match="worker"):
        workers.operation(fail)(2)


SCRIPT = """
import os, sys, time
from cnncli.training import Workers

def report(worker, index):
    if worker == 1:
        open(sys.argv[1], "w").write(str(os.getpid()))
    time.sleep(0.05)

workers = Workers(2)
workers.operation(report)(20)
print("ready", flush=True)
time.sleep(60)
"""


@linux
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_do_not_outlive_a_killed_program(tmp_path: Path, number: int) -> None:
    note = tmp_path / "pid"
    command = [sys.executable, "-c", SCRIPT, str(note)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        program.send_signal(number)
    pid = int(note.read_text())
    assert wait_until(lambda: not is_running(pid))


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"  # an orphan that nobody reaps has ended all the same


def wait_until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 20
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def test_shared_arrays_start_as_zeros_or_as_the_copy() -> None:
    assert not shared_array((2, 3), np.float32).any()
    original = np.arange(6, dtype=np.float64).reshape(2, 3)
    copy = shared_copy(original)
    np.testing.assert_array_equal(copy, original)
    assert not np.shares_memory(copy, original)
    assert shared_array((0, 3), np.float32).shape == (0, 3)


@pytest.mark.parametrize("team", ["fork", "threads"])
def test_workers_that_the_system_does_not_start(team: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        if team == "fork":
            raise BlockingIOError(11, "Resource temporarily unavailable")
        raise RuntimeError("can't start new thread")

    if team == "fork":
        monkeypatch.setattr(os, "fork", refuse)
    else:
        monkeypatch.setattr("cnncli.training.workers.sys.platform", "darwin")
        monkeypatch.setattr(threading.Thread, "start", refuse)
    with Workers(3) as workers:
        run = workers.operation(lambda worker, number: None)
        with pytest.raises(TrainingError, match=r"cannot start 3 workers: .*; use fewer --threads"):
            run(3)
