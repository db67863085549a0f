"""The memory of a program with all its processes, while it runs (Linux)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

INTERVAL_SECONDS = 0.02
PROC = Path("/proc")


class MemoryWatch:
    """Samples the resident memory of a process and of those that it has started.

    A page that several of them share counts once (proportional set size): the sum of their resident
    sizes would count it for each, the size of the largest alone would leave the others out.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._peak_bytes = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        """End the sampling and return the largest sample in bytes."""
        self._stopped.set()
        self._thread.join()
        return self._peak_bytes

    def _watch(self) -> None:
        while not self._stopped.wait(INTERVAL_SECONDS):
            self._peak_bytes = max(self._peak_bytes, tree_bytes(self._pid))


def tree_bytes(pid: int) -> int:
    """Add up the memory of a process and of all that descend from it, as they are now."""
    return sum(map(_bytes, _tree(pid)))


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for thread in _threads(pid):
        for child in _read(thread / "children").split():
            yield from _tree(int(child))


def _threads(pid: int) -> list[Path]:
    try:
        return list((PROC / str(pid) / "task").iterdir())
    except OSError:  # the process has ended
        return []


def _bytes(pid: int) -> int:
    for line in _read(PROC / str(pid) / "smaps_rollup").splitlines():
        name, _, value = line.partition(":")
        if name == "Pss":
            return int(value.split()[0]) * 1024
    return 0


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:  # the process has ended
        return ""
