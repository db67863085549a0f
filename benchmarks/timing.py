"""Timing one piece of work within a process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

# enough for allocations, caches and clock rates to resolve_sizes
WARM_UP_SECONDS = 0.5
WARM_UP_RUNS = 3
MIN_RUNS = 3


def median_seconds(work: Callable[[], object], seconds: float) -> float:
    """Run some work for about `seconds`, after a warm-up; return the median of its runs."""
    _runs_for(work, min(WARM_UP_SECONDS, seconds), WARM_UP_RUNS)
    return statistics.median(_runs_for(work, seconds, MIN_RUNS))


def timed_runs(work: Callable[[], object], n: int) -> list[float]:
    """Run some work `n` times; return the seconds of each."""
    times: list[float] = []
    for _ in range(n):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return times


def _runs_for(work: Callable[[], object], seconds: float, at_least: int) -> list[float]:
    end = time.perf_counter() + seconds
    times = timed_runs(work, at_least)
    while time.perf_counter() < end:
        times += timed_runs(work, 1)
    return times
