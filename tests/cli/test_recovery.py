"""A run that ends before its time says what is kept of it and how to go on."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path

import pytest

from cnncli.training import load_checkpoint
from tests.cli.program import Cnncli
from tests.cli.test_interrupts import start_training, wait_for


def children_of(pid: int) -> list[int]:
    """Find the worker processes of a program."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue  # it has ended meanwhile
        if parent == pid:
            found.append(int(status.parent.name))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="workers are processes on Linux only")
def test_a_worker_that_is_killed_ends_the_run_with_the_command_to_go_on_with(
    workspace: Path, cnncli: Cnncli
) -> None:
    process = start_training(workspace, "--threads", "3")
    wait_for(process, " 1/100000 ")
    workers = children_of(process.pid)
    assert len(workers) == 2
    os.kill(workers[0], signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, "")
    told = re.search(
        r"error: a worker process has ended by itself; was the memory used up\?\n"
        r"  epoch (\d+) of 100000 is kept in runs/tiny/last.npz\n"
        r"  resume with: cnncli train --resume runs/tiny\n$",
        err,
    )
    assert told is not None, err
    assert load_checkpoint(workspace / "runs/tiny/last.npz").epoch == int(told[1])
    assert not any(pid in children_of(process.pid) for pid in workers)


def interrupt_at(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let a signal come where a function of the run is called."""

    def interrupted(*rest: object, **options: object) -> None:
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(f"cnncli.cli.train.{name}", interrupted)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("load_dataset", "interrupted\n"),
        (
            "write_summary",
            "interrupted: no epoch was finished; runs/tiny/last.npz is the start\n"
            "resume with: cnncli train --resume runs/tiny\n",
        ),
        (
            "_evaluate_best",
            "interrupted: training is done, the best epoch is kept in runs/tiny/best.npz\n"
            "evaluate with: cnncli eval runs/tiny\n",
        ),
    ],
)
def test_an_interrupt_names_what_is_kept_at_its_time(
    workspace: Path, cnncli: Cnncli, monkeypatch: pytest.MonkeyPatch, function: str, words: str
) -> None:
    interrupt_at(monkeypatch, function)
    result = cnncli("train", "--config", "tiny.yaml")
    assert (result.code, result.out) == (130, "")
    assert result.err.endswith(words)
    for named in re.findall(r"\S+\.npz", words):
        load_checkpoint(workspace / named)


def test_an_interrupt_of_a_resumed_run_names_it_before_its_first_step(
    workspace: Path, cnncli: Cnncli, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cnncli("train", "--config", "tiny.yaml", "--run-dir", "run").code == 0
    interrupt_at(monkeypatch, "_record_changes")
    result = cnncli("train", "--resume", "run", "--set", "training.epochs=3")
    assert result.code == 130
    assert result.err.endswith(
        "interrupted: epoch 2 of 3 is kept in run/last.npz\nresume with: cnncli train --resume run\n"
    )
