"""Worker threads that share out numbered tasks."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from types import TracebackType
from typing import TypeAlias

import numpy as np

Task: TypeAlias = "Callable[[int, int], None]"


def available_cores() -> int:
    """Count the processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Job:
    """One call of `Workers.run`: which task is next, what failed, who is done."""

    def __init__(self, n_tasks: int, task: Task, n_workers: int) -> None:
        self._n_tasks = n_tasks
        self._task = task
        self._lock = threading.Lock()
        self._next = 0
        self._failures: dict[int, BaseException] = {}
        self._done = threading.Semaphore(0)
        self._n_workers = n_workers

    def work(self, worker: int) -> None:
        """Take tasks until none is left or one has failed."""
        # an overflow shows as a loss that is not finite, with epoch and step; a warning would not
        with np.errstate(all="ignore"):
            while (index := self._take()) is not None:
                try:
                    self._task(worker, index)
                except BaseException as error:
                    self._failures[index] = error
        self._done.release()

    def _take(self) -> int | None:
        with self._lock:
            if self._next >= self._n_tasks or self._failures:
                return None
            self._next += 1
            return self._next - 1

    def wait(self) -> None:
        """Wait for every worker, then raise the failure of the lowest task if there was one."""
        for _ in range(self._n_workers):
            self._done.acquire()
        if self._failures:
            raise self._failures[min(self._failures)]


class Workers:
    """A fixed number of threads; the calling thread is worker 0, so one worker starts no thread.

    NumPy releases the interpreter lock in its large operations, so threads run side by side.
    """

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers
        self._queues: list[SimpleQueue[_Job | None]] = [SimpleQueue() for _ in range(n_workers - 1)]
        self._threads = [
            threading.Thread(target=_serve, args=(queue, worker), daemon=True)
            for worker, queue in enumerate(self._queues, start=1)
        ]
        for thread in self._threads:
            thread.start()

    def run(self, n_tasks: int, task: Task) -> None:
        """Call ``task(worker, index)`` for every index below `n_tasks`, each by whichever worker is free."""
        helpers = self._queues[: max(n_tasks - 1, 0)]
        job = _Job(n_tasks, task, len(helpers) + 1)
        for queue in helpers:
            queue.put(job)
        job.work(0)
        job.wait()

    def close(self) -> None:
        """End the threads."""
        for queue in self._queues:
            queue.put(None)
        for thread in self._threads:
            thread.join()
        self._queues, self._threads = [], []

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _serve(queue: SimpleQueue[_Job | None], worker: int) -> None:
    while (job := queue.get()) is not None:
        job.work(worker)
