"""What a figure was measured on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from pathlib import Path

# other programs that take a core now and then cost PyTorch's spinning threads the most
BUSY = 0.5


def load_average() -> float:
    """Count the processes that wanted a core, on average over the last minute; say so if that is many."""
    load = os.getloadavg()[0]
    if load > BUSY:
        print(
            f"the machine is busy (load {load:.2f}): wait until it is quiet, "
            "for such figures are wrong, and in favour of cnncli",
            file=sys.stderr,
        )
    return load


def machine_line(load: float) -> str:
    """Name processor, cores, and the versions of everything that computes."""
    return (
        f"{_processor()}, {_cores()} cores, {platform.system()}; "
        f"Python {platform.python_version()}, NumPy {_version('numpy')} with {_blas()}, "
        f"PyTorch {_version('torch')}; load before the start {load:.2f}"
    )


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _blas() -> str:
    # at the end and not at the top: what is measured starts from a process without NumPy
    import numpy as np

    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{blas['name']} {blas['version']}"
