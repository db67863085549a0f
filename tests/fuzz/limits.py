"""What one input may cost: seconds of the processor, and memory."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

SECONDS = 2.0
# beyond what the process has when the fuzzing begins
MEMORY_BYTES = 512 * 2**20


class TimeLimitError(BaseException):
    """An input has taken longer than `SECONDS`; no handler of exceptions can swallow it."""


@contextmanager
def limited_time() -> Iterator[None]:
    """Raise `TimeLimitError` in what takes too long, whatever else the machine is doing meanwhile."""
    previous = signal.signal(signal.SIGPROF, _out_of_time)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)


def limit_memory() -> None:
    """Let this process have little more than it has now, for good; only Linux can."""
    if sys.platform == "linux":
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _out_of_time(number: int, frame: FrameType | None) -> None:
    raise TimeLimitError
