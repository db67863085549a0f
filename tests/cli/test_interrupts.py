"""SIGINT and SIGTERM: nothing is cut in half, and the message names what to go on from."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cnncli.cli.interrupts import SIGNALS, deferred_interrupts, interrupts
from cnncli.training import load_checkpoint
from tests.cli.program import Cnncli, command, environment

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


def start_training(workspace: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command("train", "--config", "tiny.yaml", "--set", "training.epochs=100000", *options),
        cwd=workspace,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(process: subprocess.Popen[str], text: str) -> str:
    assert process.stderr is not None
    seen = ""
    for line in process.stderr:
        seen += line
        if text in line:
            return seen
    raise AssertionError(f"the program ended without {text!r}: {seen}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_names_a_checkpoint_that_loads(workspace: Path, number: signal.Signals) -> None:
    process = start_training(workspace)
    wait_for(process, " 1/100000 ")
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    named = re.search(r"interrupted: epoch (\d+) of 100000 is kept in (\S+)\n", err)
    assert named is not None, err
    checkpoint = load_checkpoint(workspace / named[2])
    assert checkpoint.epoch == int(named[1]) >= 1
    assert "resume with: cnncli train --resume runs/tiny\n" in err
    assert "Traceback" not in err
    assert not list((workspace / "runs/tiny").glob(".*"))


def test_before_training_an_interrupt_is_at_once(workspace: Path) -> None:
    os.mkfifo(workspace / "pipe.yaml")
    process = subprocess.Popen(
        command("train", "--config", "pipe.yaml"),
        cwd=workspace,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # opening the pipe for writing waits until the program opens it for reading
    with (workspace / "pipe.yaml").open("w"):
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")


def test_signals_during_every_write_cut_nothing_in_half(
    workspace: Path, cnncli: Cnncli, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync, written = os.fsync, []

    def interrupted_fsync(descriptor: int) -> None:
        written.append(descriptor)
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", interrupted_fsync)
    assert cnncli("train", "--config", "tiny.yaml").code == 130
    assert not (workspace / "runs/tiny/last.npz").exists()
    result = cnncli("train", "--resume", "runs/tiny")
    # the three files of epoch 0 are written whole before the first step ends the run
    assert result.code == 130
    assert "no epoch was finished; " in result.err
    assert len(written) > 6
    assert load_checkpoint(workspace / "runs/tiny/last.npz").epoch == 0
    assert load_checkpoint(workspace / "runs/tiny/best.npz").epoch == 0
    assert not list((workspace / "runs/tiny").glob(".*"))


@pytest.fixture
def handlers() -> Iterator[None]:
    """Give the signals back to the tests, as a program that is interrupted does not."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("handlers")
def test_deferred_interrupts_come_at_the_check() -> None:
    reached = 0
    with pytest.raises(KeyboardInterrupt), interrupts(), deferred_interrupts() as check:
        check()
        for _ in range(3):
            signal.raise_signal(signal.SIGTERM)
            reached += 1
        check()
        reached += 1
    assert reached == 3


@pytest.mark.usefixtures("handlers")
def test_deferred_interrupts_come_at_the_end_at_the_latest() -> None:
    with pytest.raises(KeyboardInterrupt), deferred_interrupts():
        signal.raise_signal(signal.SIGINT)


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("is_deferred", [False, True])
def test_further_signals_do_not_cut_the_way_out_short(is_deferred: bool) -> None:
    words = []
    with pytest.raises(KeyboardInterrupt), interrupts():
        try:
            if is_deferred:
                with deferred_interrupts():
                    signal.raise_signal(signal.SIGTERM)
            else:
                signal.raise_signal(signal.SIGINT)
        finally:
            for number in SIGNALS:
                signal.raise_signal(number)
            words.append("last")
    signal.raise_signal(signal.SIGTERM)
    assert words == ["last"]


def test_without_a_signal_the_handlers_are_given_back() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    with interrupts(), deferred_interrupts():
        assert [signal.getsignal(number) for number in SIGNALS] != before
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_an_error_is_not_hidden_by_an_interrupt() -> None:
    with pytest.raises(ZeroDivisionError), deferred_interrupts():
        signal.raise_signal(signal.SIGINT)
        raise ZeroDivisionError


@pytest.mark.usefixtures("handlers")
def test_a_signal_counts_also_where_a_script_had_it_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with pytest.raises(KeyboardInterrupt), interrupts():
        signal.raise_signal(signal.SIGINT)
