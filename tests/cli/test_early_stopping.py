"""Early stopping: the best epoch is kept, tested and named, and going on changes nothing of it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from cnncli.training import load_checkpoint
from tests.cli.program import Cnncli, arrays_of
from tests.stress.victim import make_workspace


@pytest.fixture
def stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cnncli: Cnncli) -> tuple[Path, str, str]:
    """A run that has stopped early, and what it wrote to both streams."""
    make_workspace(tmp_path)
    monkeypatch.chdir(tmp_path)
    result = cnncli("train", "--config", "early_stopping.yaml", "--run-dir", "run")
    assert result.code == 0
    return Path("run"), result.out, result.err


def test_the_best_epoch_is_kept_and_named(stopped: tuple[Path, str, str], cnncli: Cnncli) -> None:
    run, out, err = stopped
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    best = min(lines, key=lambda line: (-line["validation_accuracy"], line["validation_loss"]))["epoch"]
    assert len(lines) == best + 3 < 40  # patience: 3
    named = re.search(r"best epoch +(\d+) of (\d+), validation accuracy ([\d.]+) %; stopped early", err)
    assert named is not None
    assert (int(named[1]), int(named[2])) == (best, len(lines))
    assert float(named[3]) == pytest.approx(100 * lines[best - 1]["validation_accuracy"], abs=0.005)
    assert (load_checkpoint(run / "best.npz").epoch, load_checkpoint(run / "last.npz").epoch) == (
        best,
        len(lines),
    )
    assert cnncli("eval", "run/best.npz").out.startswith(out.strip())
    assert cnncli("eval", "run").out == cnncli("eval", "run/best.npz").out
    measured = cnncli("eval", "run", "--split", "validation", "--json").json
    assert measured["accuracy"] == lines[best - 1]["validation_accuracy"]
    assert measured["loss"] == pytest.approx(lines[best - 1]["validation_loss"], rel=1e-12)


def test_best_is_a_file_of_its_own(stopped: tuple[Path, str, str]) -> None:
    run, _, _ = stopped
    best, last = run / "best.npz", run / "last.npz"
    assert (best.stat().st_nlink, last.stat().st_nlink) == (1, 1)
    assert not best.is_symlink() and not os.path.samefile(best, last)  # noqa: PTH121
    ours, theirs = arrays_of(best), arrays_of(last)
    assert any((ours[name] != theirs[name]).any() for name in ours)


def test_a_run_that_has_stopped_early_is_finished(stopped: tuple[Path, str, str], cnncli: Cnncli) -> None:
    run, out, _ = stopped
    before = {path: path.read_bytes() for path in run.iterdir()}
    again = cnncli("train", "--resume", "run")
    assert (again.code, again.out) == (0, out)
    assert "finished before: nothing is trained" in again.err
    assert {path: path.read_bytes() for path in run.iterdir()} == before
