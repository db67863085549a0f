"""One attack: a command is started, and at a random moment of its life it gets signals."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.cli.program import command, environment

TIMEOUT = 60.0


@dataclass(frozen=True)
class Attack:
    """When and how a process is struck.

    Attributes
    ----------
    delay : seconds after its start, or None to strike while it writes a file
    write : which of the writes, from 0
    signals : sent one after the other
    gap : seconds between them
    to_group : whether the workers get them too, as from a terminal
    """

    delay: float | None
    write: int
    signals: tuple[signal.Signals, ...]
    gap: float = 0.0
    to_group: bool = False


@dataclass(frozen=True)
class Victim:
    """A process after an attack; `was_struck` is false where it ended before."""

    pid: int
    code: int
    out: str
    err: str
    was_struck: bool


def draw_kill(rng: Random, life: float) -> Attack:
    """Draw a kill -9 anywhere in a life of so many seconds: a third at its start, a third during a write."""
    kind = rng.randrange(3)
    delay = None if kind == 0 else rng.uniform(0, life if kind == 1 else life / 2)
    return Attack(delay, rng.randrange(16), (signal.SIGKILL,))


def draw_interrupt(rng: Random, life: float) -> Attack:
    """Draw one or two of SIGINT and SIGTERM, the second close behind the first."""
    kill = draw_kill(rng, life)
    signals = tuple(rng.choice((signal.SIGINT, signal.SIGTERM)) for _ in range(rng.choice((1, 2))))
    gap = rng.choice((0.0, rng.uniform(0, 0.003)))
    return Attack(kill.delay, kill.write, signals, gap, to_group=rng.random() < 0.5)


def strike(arguments: Sequence[str], run: Path, attack: Attack | None) -> Victim:
    """Start a command in a session of its own, strike it, and wait for its end."""
    process = subprocess.Popen(
        command(*arguments),
        cwd=run.parent,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    was_struck = attack is not None and _wait_for(attack, process, run)
    if attack is not None and was_struck:
        for number in attack.signals:
            (os.killpg if attack.to_group else os.kill)(process.pid, number)
            time.sleep(attack.gap)
    # a worker that lives on would keep the pipes open, and this would not come to an end
    out, err = process.communicate(timeout=TIMEOUT)
    return Victim(process.pid, process.returncode, out, err, was_struck)


def _wait_for(attack: Attack, process: subprocess.Popen[str], run: Path) -> bool:
    """Wait for the moment of an attack; tell whether the process is still there."""
    if attack.delay is not None:
        time.sleep(attack.delay)
        return process.poll() is None
    n_writes, was_writing = 0, False
    while process.poll() is None:
        is_writing = _is_writing(run)
        n_writes += is_writing and not was_writing
        if n_writes > attack.write:
            return True
        was_writing = is_writing
    return False


def _is_writing(run: Path) -> bool:
    try:
        return any(name.endswith(".tmp") for name in os.listdir(run))  # noqa: PTH208 - the fastest way
    except FileNotFoundError:
        return False


def survivors(session: int, patience: float = 10.0) -> list[int]:
    """Find the processes of a session that are still running, after a moment to end in."""
    deadline = time.monotonic() + patience
    while (pids := _running(session)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return pids


def _running(session: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, its_session = status.read_text().rsplit(")", 1)[1].split()[:4]
        except (OSError, ValueError):
            continue  # it has ended meanwhile
        if int(its_session) == session and state != "Z":
            found.append(int(status.parent.name))
    return found
