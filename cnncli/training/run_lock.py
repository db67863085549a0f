"""A run directory is one process's alone while a run writes to it."""

from __future__ import annotations

import errno
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from cnncli.errors import UsageError

# a process that was killed may take moments to be gone
_PATIENCE = 1.0  # seconds
_PAUSE = 0.02

_BUSY = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES}
# what file systems say that know no locks, or none of directories
_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EBADF, errno.EINVAL}

if sys.platform == "win32":
    import msvcrt

    def _open(directory: Path) -> int:
        # a directory cannot be locked; the system removes the file when the process ends, however it does
        return os.open(directory / ".lock", os.O_RDWR | os.O_CREAT | os.O_TEMPORARY)

    def _try_to_lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _open(directory: Path) -> int:
        return os.open(directory, os.O_RDONLY | os.O_DIRECTORY)

    def _try_to_lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class RunLock:
    """Keeps every other process out of one run directory, until it is released or the process ends.

    The kernel gives the lock back however the process ends, and nothing of it stays on the disk. A
    forked worker has no part in it. Where the file system knows no locks, nothing is locked.
    """

    def __init__(self) -> None:
        self._descriptor: int | None = None

    def take(self, directory: Path) -> None:
        """Lock a directory; one that was locked before is given back.

        Raises
        ------
        UsageError : it is locked
        OSError : it cannot be opened
        """
        self.release()
        descriptor = _open(directory)
        try:
            if not _lock_in_time(descriptor):
                raise UsageError(_in_use(directory, _holder(descriptor)))
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        _held.add(descriptor)

    def release(self) -> None:
        """Give back what was locked."""
        if self._descriptor is not None:
            _held.discard(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> RunLock:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()


def _lock_in_time(descriptor: int) -> bool:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            _try_to_lock(descriptor)
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return True
            if error.errno not in _BUSY:
                raise
        else:
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(_PAUSE)


def _in_use(directory: Path, pid: int | None) -> str:
    if pid is None:
        return f"{directory}: another process is training a run in it; wait for its end, or stop it"
    return (
        f"{directory}: process {pid} is training a run in it; wait for its end, or stop it with: kill {pid}"
    )


def _holder(descriptor: int) -> int | None:
    """Look up which process has locked a directory, where the system tells."""
    if sys.platform != "linux":
        return None
    status = os.fstat(descriptor)
    file = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    with suppress(OSError, ValueError):
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            # 3: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF
            entry = line.split()
            if len(entry) > 5 and entry[1] == "FLOCK" and entry[5] == file and int(entry[4]) > 0:
                return int(entry[4])
    return None


_held = set[int]()


def _leave_to_the_parent() -> None:
    # a worker that lives a moment longer than a killed program would keep its lock as long
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_the_parent)
