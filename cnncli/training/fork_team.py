"""Worker processes, forked from the calling one."""

from __future__ import annotations

import os
import pickle
import signal
import struct
from collections.abc import Callable, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, NoReturn

import numpy as np

from cnncli.errors import TrainingError

_SIGNALS = {signal.SIGINT, signal.SIGTERM}
_TICKET = struct.Struct("<i")
_NO_MORE = -1
# A pipe holds at least 4096 bytes before a writer has to wait for a reader.
_TICKETS_AT_ONCE = 4096 // _TICKET.size


class ForkTeam:
    """A fixed number of processes; the calling one is worker 0.

    Tasks are handed out through one pipe that all workers read: whoever is free takes the next
    ticket. Each other worker has a link of its own for what to do and how it went. A worker whose
    link or ticket pipe is closed ends, so none outlives the calling process, however that ends.
    """

    def __init__(self, n_workers: int, operations: Sequence[Callable[..., None]]) -> None:
        self._operations = list(operations)
        self._tickets, self._ticket_office = os.pipe()
        self._links: list[Connection] = []
        self._pids: list[int] = []
        for worker in range(1, n_workers):
            self._fork(worker)

    def _fork(self, worker: int) -> None:
        ours, theirs = Pipe()
        # a signal must not reach the child before it ignores it: the calling process decides
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
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
            for number in _SIGNALS:
                signal.signal(number, signal.SIG_IGN)
            # else the link of another worker would stay open after the calling process has gone
            for link in [*self._links, ours]:
                link.close()
            os.close(self._ticket_office)
            while True:
                operation, arguments = theirs.recv()
                theirs.send(self._work(worker, operation, arguments))
        except BaseException:  # the calling process has gone
            pass
        finally:
            os._exit(0)  # no clean-up of what belongs to the calling process

    def run(self, operation: int, n_tasks: int, arguments: tuple[Any, ...]) -> None:
        """Run tasks on all workers.

        Raises
        ------
        TrainingError : a worker process has gone
        """
        for start in range(0, n_tasks, _TICKETS_AT_ONCE // 2):
            stop = min(start + _TICKETS_AT_ONCE // 2, n_tasks)
            self._run_some(operation, range(start, stop), arguments)

    def _run_some(self, operation: int, indices: range, arguments: tuple[Any, ...]) -> None:
        called = self._links[: max(len(indices) - 1, 0)]
        tickets = [*indices, *[_NO_MORE] * (len(called) + 1)]
        os.write(self._ticket_office, b"".join(map(_TICKET.pack, tickets)))
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
        """Take tickets until there are no more; return what failed."""
        function = self._operations[operation]
        failures: dict[int, BaseException] = {}
        # an overflow shows as a loss that is not finite, with epoch and step; a warning would not
        with np.errstate(all="ignore"):
            while (index := self._take()) != _NO_MORE:
                try:
                    function(worker, index, *arguments)
                except Exception as error:
                    failures[index] = _portable(error)
        return failures

    def _take(self) -> int:
        ticket = os.read(self._tickets, _TICKET.size)
        if not ticket:
            raise EOFError
        index: int = _TICKET.unpack(ticket)[0]
        return index

    def close(self) -> None:
        """Let the workers end and wait for them."""
        os.close(self._ticket_office)
        os.close(self._tickets)
        for link in self._links:
            link.close()
        for pid in self._pids:
            os.waitpid(pid, 0)


def _portable(error: Exception) -> Exception:
    """Return the error if it can be sent to another process, else its text."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return TrainingError(f"{type(error).__name__}: {error}")
    return error
