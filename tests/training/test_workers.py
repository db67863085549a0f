"""Every task runs once, failures surface, and threads end."""

from __future__ import annotations

import threading

import pytest

from cnncli.training import Workers


@pytest.mark.parametrize("n_workers", [1, 2, 5])
@pytest.mark.parametrize("n_tasks", [0, 1, 2, 7, 100])
def test_every_task_runs_exactly_once(n_workers: int, n_tasks: int) -> None:
    done: list[int] = []
    with Workers(n_workers) as workers:
        workers.run(n_tasks, lambda worker, index: done.append(index))
    assert sorted(done) == list(range(n_tasks))


def test_workers_are_numbered_below_their_count() -> None:
    seen: set[int] = set()
    barrier = threading.Barrier(3)

    def task(worker: int, index: int) -> None:
        seen.add(worker)
        barrier.wait(timeout=30)

    with Workers(3) as workers:
        workers.run(3, task)
    assert seen == {0, 1, 2}


@pytest.mark.parametrize("n_workers", [1, 3])
def test_the_failure_of_the_lowest_task_is_raised_and_the_workers_go_on(n_workers: int) -> None:
    def fail(worker: int, index: int) -> None:
        raise ValueError(f"task {index}")

    done: list[int] = []
    with Workers(n_workers) as workers:
        with pytest.raises(ValueError, match="task 0"):
            workers.run(10, fail)
        workers.run(4, lambda worker, index: done.append(index))
    assert sorted(done) == [0, 1, 2, 3]


def test_closing_ends_the_threads() -> None:
    before = threading.active_count()
    with Workers(4):
        assert threading.active_count() == before + 3
    assert threading.active_count() == before
