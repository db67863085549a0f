"""Workers that share out numbered tasks: processes where the system can fork, threads elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol, TypeAlias

from cnncli.training.fork_team import ForkTeam
from cnncli.training.thread_team import ThreadTeam

# (worker, index of the task, arguments of the call)
Operation: TypeAlias = Callable[..., None]


class Team(Protocol):
    """Some workers that know a fixed list of operations."""

    def run(self, operation: int, n_tasks: int, arguments: tuple[Any, ...]) -> None:
        """Call the operation for every index below `n_tasks`, each by whichever worker is free."""

    def close(self) -> None:
        """End the workers."""


def available_cores() -> int:
    """Count the processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Workers:
    """A number of workers; the caller is worker 0, so one worker starts nothing.

    On Linux the others are forked processes: threads would hand the interpreter lock to each other
    around every NumPy call, which costs more than the calls. What a task writes for others to see
    must therefore lie in shared memory (`shared_array`), and its arguments must be picklable. The
    processes start with the first call and see everything that was there by then.
    """

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers
        self._operations: list[Operation] = []
        self._team: Team | None = None

    def operation(self, function: Operation) -> Callable[..., None]:
        """Make a function parallel: ``function(worker, index, *args)`` -> ``run(n_tasks, *args)``.

        If a task fails the others still end, and the failure of the lowest index is raised.
        """
        self.close()  # workers know the operations that were there when they started
        self._operations.append(function)
        number = len(self._operations) - 1

        def run(n_tasks: int, *arguments: Any) -> None:
            if self._team is None:
                self._team = self._start()
            try:
                self._team.run(number, n_tasks, arguments)
            except BaseException:
                self.close()
                raise

        return run

    def _start(self) -> Team:
        # Forking is safe here because no thread of ours or of the BLAS is running; Apple's BLAS
        # has some, and Windows cannot fork.
        if self.n_workers > 1 and sys.platform == "linux":
            return ForkTeam(self.n_workers, self._operations)
        return ThreadTeam(self.n_workers, self._operations)

    def close(self) -> None:
        """End the workers; a later call starts them again."""
        if self._team is not None:
            self._team.close()
            self._team = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
