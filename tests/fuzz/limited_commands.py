"""Runs command lines in a process whose time and memory the system limits.

``python -m tests.fuzz.limited_commands`` reads a JSON list of command lines from standard input and
writes a JSON list of exit codes with what was said on each of the two streams. One process runs many:
starting it takes longer than a refusal.
"""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cnncli.cli.main import run
from tests.cli.program import environment

SECONDS = 60
# for the whole process; Python, NumPy and cnncli take about a third of it
MEMORY_BYTES = 768 * 2**20


class Outcome(NamedTuple):
    """What a command line came to."""

    code: int
    out: str
    err: str


def run_limited(directory: Path, command_lines: Sequence[Sequence[str]]) -> list[Outcome]:
    """Run command lines one after the other, in a process of their own in a directory."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.limited_commands"],
        cwd=directory,
        env=environment(OPENBLAS_NUM_THREADS="1"),
        input=json.dumps(command_lines),
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return [Outcome(*outcome) for outcome in json.loads(done.stdout)]


def _run_all() -> None:
    import resource  # not there on Windows

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    outcomes = []
    for command_line in json.load(sys.stdin):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(command_line)
        outcomes.append(Outcome(code, out.getvalue(), err.getvalue()))
    json.dump(outcomes, sys.stdout)


if __name__ == "__main__":
    _run_all()
