"""Workers that share out numbered tasks: processes where the system can fork, threads elsewhere.

docs/adr/0006-processes-on-linux.md says why there are both.
"""

from __future__ import annotations

import errno
import mmap
import os
import pickle
import signal
import struct
import sys
import threading
from collections.abc import Callable, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from queue import SimpleQueue
from types import TracebackType
from typing import Any, NoReturn, Protocol, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cnncli.errors import TrainingError

# (worker, number of the task, arguments of the call)
Operation: TypeAlias = Callable[..., None]

SIGNALS = {signal.SIGINT, signal.SIGTERM}
TASK = struct.Struct("<i")
NO_MORE_TASKS = -1
# A pipe holds at least 4096 bytes before a writer has to wait for a reader; half of them are for tasks.
TASKS_AT_ONCE = 2048 // TASK.size


class Team(Protocol):
    """Some workers that know a fixed list of operations; the calling one is worker 0."""

    def run(self, operation: int, n_tasks: int, arguments: tuple[Any, ...]) -> None:
        """Call the operation for every number below `n_tasks`, each by whichever worker is free."""

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
        """Make a function parallel: ``function(worker, number, *args)`` -> ``run(n_tasks, *args)``.

        If a task fails the others still end, and the failure of the lowest number is raised. Where the
        system does not start the workers, or one of them is killed, `run` raises `TrainingError`.
        """
        self.close()  # workers know the operations that were there when they started
        self._operations.append(function)
        operation = len(self._operations) - 1

        def run(n_tasks: int, *arguments: Any) -> None:
            if self._team is None:
                self._team = self._start()
            try:
                self._team.run(operation, n_tasks, arguments)
            except BaseException:
                self.close()
                raise

        return run

    def _start(self) -> Team:
        # Forking is safe here because no thread of ours or of the BLAS is running; Apple's BLAS
        # has some, and Windows cannot fork.
        team = ForkTeam if self.n_workers > 1 and sys.platform == "linux" else ThreadTeam
        try:
            return team(self.n_workers, self._operations)
        except (RuntimeError, BlockingIOError) as error:  # what Python says of a thread, and of a process
            reason = error.strerror if isinstance(error, OSError) else error
            raise TrainingError(
                f"cannot start {self.n_workers} workers: {reason}; "
                "use fewer --threads, or allow the user more processes (ulimit -u)"
            ) from None

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


class ForkTeam:
    """Worker processes, forked from the calling one.

    The numbers of tasks go through one pipe that all workers read: whoever is free takes the next. Each
    other worker has a link of its own for what to do and how it went. A worker whose link or pipe is
    closed ends, so none outlives the calling process, however that ends.
    """

    def __init__(self, n_workers: int, operations: Sequence[Operation]) -> None:
        self._operations = list(operations)
        self._tasks, self._task_writer = os.pipe()
        self._links: list[Connection] = []
        self._pids: list[int] = []
        try:
            for worker in range(1, n_workers):
                self._fork(worker)
        except BaseException:
            self.close()
            raise

    def _fork(self, worker: int) -> None:
        ours, theirs = Pipe()
        # a signal must not reach the child before it ignores it: the calling process decides
        before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            pid = os.fork()
            if pid == 0:
                self._be_worker(worker, ours, theirs)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        self._links.append(ours)
        self._pids.append(pid)

    def _be_worker(self, worker: int, ours: Connection, theirs: Connection) -> NoReturn:
        try:
            for number in SIGNALS:
                signal.signal(number, signal.SIG_IGN)
            # else the link of another worker would stay open after the calling process has gone
            for link in [*self._links, ours]:
                link.close()
            os.close(self._task_writer)
            while True:
                operation, arguments = theirs.recv()
                theirs.send(self._work(worker, operation, arguments))
        except BaseException:  # the calling process has gone
            pass
        finally:
            os._exit(0)  # no clean-up of what belongs to the calling process

    def run(self, operation: int, n_tasks: int, arguments: tuple[Any, ...]) -> None:
        """Run tasks on all workers, see `Team.run`; a worker that has gone is a `TrainingError`."""
        for start in range(0, n_tasks, TASKS_AT_ONCE):
            self._run_some(operation, range(start, min(start + TASKS_AT_ONCE, n_tasks)), arguments)

    def _run_some(self, operation: int, tasks: range, arguments: tuple[Any, ...]) -> None:
        called = self._links[: max(len(tasks) - 1, 0)]
        numbers = [*tasks, *[NO_MORE_TASKS] * (len(called) + 1)]
        os.write(self._task_writer, b"".join(map(TASK.pack, numbers)))
        try:
            for link in called:
                link.send((operation, arguments))
            failures = self._work(0, operation, arguments)
            for link in called:
                failures |= link.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise TrainingError("a worker process has ended by itself; was the memory used up?") from None
        if failures:
            raise failures[min(failures)]

    def _work(self, worker: int, operation: int, arguments: tuple[Any, ...]) -> dict[int, BaseException]:
        """Take tasks until there are no more; return what failed."""
        function = self._operations[operation]
        failures: dict[int, BaseException] = {}
        # an overflow shows as a loss that is not finite, with epoch and step; a warning would not
        with np.errstate(all="ignore"):
            while (number := self._take()) != NO_MORE_TASKS:
                try:
                    function(worker, number, *arguments)
                except Exception as error:
                    failures[number] = _picklable(error)
        return failures

    def _take(self) -> int:
        content = os.read(self._tasks, TASK.size)
        if not content:
            raise EOFError
        number: int = TASK.unpack(content)[0]
        return number

    def close(self) -> None:
        """Let the workers end and wait for them."""
        os.close(self._task_writer)
        os.close(self._tasks)
        for link in self._links:
            link.close()
        for pid in self._pids:
            os.waitpid(pid, 0)


def _picklable(error: Exception) -> Exception:
    """Return the error if it can be sent to another process, else its text."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return TrainingError(f"{type(error).__name__}: {error}")
    return error


class ThreadTeam:
    """Worker threads, for systems that cannot fork."""

    def __init__(self, n_workers: int, operations: Sequence[Operation]) -> None:
        self._operations = list(operations)
        self._queues: list[SimpleQueue[_Call | None]] = []
        self._threads: list[threading.Thread] = []
        try:
            for worker in range(1, n_workers):
                queue = SimpleQueue[_Call | None]()
                thread = threading.Thread(target=_serve, args=(queue, worker), daemon=True)
                thread.start()
                self._queues.append(queue)
                self._threads.append(thread)
        except BaseException:
            self.close()
            raise

    def run(self, operation: int, n_tasks: int, arguments: tuple[Any, ...]) -> None:
        """Run tasks on all workers, see `Team.run`."""
        function = self._operations[operation]
        called = self._queues[: max(n_tasks - 1, 0)]
        call = _Call(n_tasks, lambda worker, number: function(worker, number, *arguments), len(called) + 1)
        for queue in called:
            queue.put(call)
        call.work(0)
        call.wait()

    def close(self) -> None:
        """Let the workers end and wait for them."""
        for queue in self._queues:
            queue.put(None)
        for thread in self._threads:
            thread.join()


class _Call:
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
        with np.errstate(all="ignore"):
            while (number := self._take()) is not None:
                try:
                    self._task(worker, number)
                except BaseException as error:
                    self._failures[number] = error
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


def _serve(queue: SimpleQueue[_Call | None], worker: int) -> None:
    while (call := queue.get()) is not None:
        call.work(worker)


def shared_array(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an array of zeros in memory that a fork shares instead of copying.

    Raises
    ------
    MemoryError : there is not that much
    """
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    try:
        memory = mmap.mmap(-1, max(size, 1))  # lives as long as the array that refers to it
    except (OSError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            raise  # some systems open a file for it: it is not memory that is short
        raise MemoryError(f"cannot share {size:,} bytes between the workers ({error})") from None
    return np.frombuffer(memory, dtype=dtype, count=size // np.dtype(dtype).itemsize).reshape(shape)


def shared_copy(array: NDArray[Any]) -> NDArray[Any]:
    """Return a copy in shared memory."""
    copy = shared_array(array.shape, array.dtype)
    copy[...] = array
    return copy
