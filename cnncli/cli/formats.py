"""Numbers as a reader wants them."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

PROGRAM = "cnncli"


def count(number: int) -> str:
    """Write 60000 as ``60,000``."""
    return f"{number:,}"


def counted(number: int, noun: str) -> str:
    """Write ``1 epoch``, ``2 epochs``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def percent(fraction: float) -> str:
    """Write 0.98912 as ``98.91 %``."""
    return f"{100 * fraction:.2f} %"


def loss(value: float) -> str:
    """Write a loss with four decimals, or four digits where it is huge."""
    return f"{value:.4f}" if abs(value) < 1000 else f"{value:.4g}"


def size(n_bytes: int) -> str:
    """Write bytes in the largest of B, KiB, MiB and GiB of which there is one at least."""
    for exponent, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if n_bytes >= 1024**exponent:
            number = n_bytes / 1024**exponent
            return f"{number:,.{1 if number < 100 else 0}f} {unit}"
    return f"{n_bytes} B"


def duration(seconds: float) -> str:
    """Write ``2.1 s``, ``3 min 05 s``, ``1 h 02 min``."""
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def command(*words: str | Path) -> str:
    """Write a command line of this program that can be pasted into a shell."""
    return shlex.join([_program(), *(str(word) for word in words)])


def _program() -> str:
    """Name this program as the shell finds it: by its path where it is not on PATH."""
    called = Path(sys.argv[0])
    if called.stem == PROGRAM and shutil.which(PROGRAM) is None:
        return str(called)
    return PROGRAM
