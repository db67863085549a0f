"""Programs that are measured, each in a process of its own, one after the other in turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from benchmarks.memory import MemoryWatch
from benchmarks.networks import ROOT
from cnncli.__main__ import BLAS_THREADS

T = TypeVar("T")


class ChildError(Exception):
    """A program that was to be measured has failed."""


@dataclass(frozen=True)
class Child:
    """A program that has ended.

    Attributes
    ----------
    output : what it wrote to standard output
    seconds : from its start to its exit
    """

    output: str
    seconds: float

    @property
    def result(self) -> Any:
        """The JSON document that it wrote."""
        return json.loads(self.output)


def run(arguments: Sequence[str], blas_threads: int | None) -> Child:
    """Run Python with some arguments to its end.

    Parameters
    ----------
    blas_threads : threads of NumPy's BLAS, which reads them when NumPy is first imported; None leaves
        that to the program

    Raises
    ------
    ChildError : it failed; its message is on standard error
    """
    started = time.perf_counter()
    with _started(arguments, blas_threads) as process:
        output, _ = process.communicate()
    seconds = time.perf_counter() - started
    _check(process)
    return Child(output, seconds)


def peak_bytes(arguments: Sequence[str], blas_threads: int | None) -> int:
    """Run Python as `run` does; return the most memory that it and its processes had at once.

    Apart from `run`, because watching takes time.
    """
    with _started(arguments, blas_threads) as process:
        watch = MemoryWatch(process.pid)
        process.communicate()
        peak = watch.stop()
    _check(process)
    return peak


def run_module(module: str, *arguments: object, blas_threads: int | None = None) -> Child:
    """Run ``python -m benchmarks.MODULE``."""
    return run(module_arguments(module, *arguments), blas_threads)


def module_arguments(module: str, *arguments: object) -> list[str]:
    return ["-m", f"benchmarks.{module}", *map(str, arguments)]


def in_turn(title: str, rounds: int, programs: Mapping[str, Callable[[], T]]) -> dict[str, list[T]]:
    """Run A, B, C, A, B, C, ...: a slower minute of the machine meets them all."""
    results: dict[str, list[T]] = {name: [] for name in programs}
    for number in range(1, rounds + 1):
        print(f"{title}: round {number} of {rounds}", file=sys.stderr)
        for name, program in programs.items():
            results[name].append(program())
    return results


def _started(arguments: Sequence[str], blas_threads: int | None) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if name not in BLAS_THREADS}
    if blas_threads is not None:
        environment |= dict.fromkeys(BLAS_THREADS, str(blas_threads))
    return subprocess.Popen(
        [sys.executable, *arguments], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    )


def _check(process: subprocess.Popen[str]) -> None:
    if process.returncode != 0:
        raise ChildError(f"{process.args!r} ended with exit code {process.returncode}")
