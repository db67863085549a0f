"""What one thread of this machine can do: the yardstick of a profile."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from cnncli.training.profiling.plan_work import Work

Bound: TypeAlias = Literal["compute", "memory", "calls"]

# large enough for the full speed of the BLAS, and done in a few milliseconds
_PRODUCT_SIDE = 512
# the arrays of a shard together are about this large: beyond the second-level cache, within the third
_COPY_BYTES = 2 * 1024 * 1024
_N_CALLS = 1000
# a pass through a layer makes about as many calls at most
_CALLS_OF_A_PASS = 10
_REPEAT = 7


@dataclass(frozen=True)
class ReferenceRates:
    """Speeds of one thread.

    Attributes
    ----------
    flops_per_second : of a large matrix product; a multiply-add is two operations
    bytes_per_second : of a copy, read and written bytes together
    seconds_per_call : of a NumPy operation on a single number
    """

    flops_per_second: float
    bytes_per_second: float
    seconds_per_call: float

    def bound_of(self, work: Work, seconds: float) -> Bound:
        """Tell what takes most of the time of some work.

        Its multiply-adds at the speed of a product, its bytes at the speed of a copy, or the calls:
        what neither explains, up to the cost of ten calls.
        """
        compute = 2 * work.multiply_adds / self.flops_per_second
        memory = work.bytes_moved / self.bytes_per_second
        calls = min(seconds - compute - memory, _CALLS_OF_A_PASS * self.seconds_per_call)
        costs: dict[Bound, float] = {"compute": compute, "memory": memory, "calls": calls}
        return max(costs, key=lambda bound: costs[bound])


def measure_rates(dtype: np.dtype[Any]) -> ReferenceRates:
    """Measure a matrix product, a copy and a call; takes some milliseconds."""
    square = np.ones((_PRODUCT_SIDE, _PRODUCT_SIDE), dtype=dtype)
    product = np.empty_like(square)
    source = np.ones(_COPY_BYTES // dtype.itemsize, dtype=dtype)
    target = np.empty_like(source)
    number = np.ones(1, dtype=dtype)

    def call() -> None:
        for _ in range(_N_CALLS):
            np.multiply(number, number, out=number)

    return ReferenceRates(
        flops_per_second=2 * _PRODUCT_SIDE**3 / _fastest(lambda: np.matmul(square, square, out=product)),
        bytes_per_second=2 * source.nbytes / _fastest(lambda: np.copyto(target, source)),
        seconds_per_call=_fastest(call) / _N_CALLS,
    )


def _fastest(work: Callable[[], object]) -> float:
    """Time some work: the fastest of a few runs is what the machine can do."""
    seconds = []
    for _ in range(_REPEAT):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return min(seconds)
