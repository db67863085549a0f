"""Worker threads, for systems that cannot fork."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

import numpy as np


class _Job:
    """One call of `ThreadTeam.run`: which task is next, what failed, who is done."""

    def __init__(self, n_tasks: int, task: Callable[[int, int], None], n_workers: int) -> None:
        self._n_tasks = n_tasks
        self._task = task
        self._n_workers = n_workers
        self._lock = threading.Lock()
        self._next = 0
        self._failures: dict[int, BaseException] = {}
        self._done = threading.Semaphore(0)

    def work(self, worker: int) -> None:
        """Take tasks until none is left."""
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
            if self._next >= self._n_tasks:
                return None
            self._next += 1
            return self._next - 1

    def wait(self) -> None:
        """Wait for every worker, then raise the failure of the lowest task if there was one."""
        for _ in range(self._n_workers):
            self._done.acquire()
        if self._failures:
            raise self._failures[min(self._failures)]


class ThreadTeam:
    """A fixed number of threads; the calling thread is worker 0."""

    def __init__(self, n_workers: int, operations: Sequence[Callable[..., None]]) -> None:
        self._operations = list(operations)
        self._queues: list[SimpleQueue[_Job | None]] = [SimpleQueue() for _ in range(n_workers - 1)]
        self._threads = [
            threading.Thread(target=_serve, args=(queue, worker), daemon=True)
            for worker, queue in enumerate(self._queues, start=1)
        ]
        for thread in self._threads:
            thread.start()

    def run(self, operation: int, n_tasks: int, arguments: tuple[Any, ...]) -> None:
        function = self._operations[operation]
        called = self._queues[: max(n_tasks - 1, 0)]
        job = _Job(n_tasks, lambda worker, index: function(worker, index, *arguments), len(called) + 1)
        for queue in called:
            queue.put(job)
        job.work(0)
        job.wait()

    def close(self) -> None:
        for queue in self._queues:
            queue.put(None)
        for thread in self._threads:
            thread.join()


def _serve(queue: SimpleQueue[_Job | None], worker: int) -> None:
    while (job := queue.get()) is not None:
        job.work(worker)
