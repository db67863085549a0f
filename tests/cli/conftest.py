"""A directory with a small data set and its configuration; the command line in this process."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from cnncli.cli.interrupts import SIGNALS
from cnncli.cli.main import run
from tests.cli.program import Cnncli, Finished, make_workspace


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a directory that holds tiny.npz and tiny.yaml."""
    make_workspace(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cnncli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cnncli:
    """Run one command line in this process."""
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments: str | Path) -> Finished:
        capsys.readouterr()
        handlers = {number: signal.getsignal(number) for number in SIGNALS}
        try:
            code = run([str(argument) for argument in arguments])
        finally:
            # an interrupted program ignores them to its end
            for number, handler in handlers.items():
                signal.signal(number, handler)
        captured = capsys.readouterr()
        return Finished(code, captured.out, captured.err)

    return call
