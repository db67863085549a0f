"""A small sample of the kills of every day, and that the program of kills would find what is lost."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.stress.attack import strike, survivors
from tests.stress.kills import Stress
from tests.stress.victim import FILES, differences, examine

pytestmark = [
    pytest.mark.stress,
    pytest.mark.skipif(sys.platform != "linux", reason="looks processes up as Linux lists them"),
]


def test_killed_and_interrupted_runs_end_as_if_nothing_had_happened(tmp_path: Path) -> None:
    stress = Stress(tmp_path, seed=5)
    for number, interrupt in enumerate((False, False, True)):
        stress.attack(number, interrupt=interrupt)
    report = stress.report
    assert report.faults == []
    assert sum(report.runs.values()) == 3
    assert sum(report.phases.values()) >= 3
    assert not list(tmp_path.glob("run-*"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing happened to."""
    directory = tmp_path_factory.mktemp("whole")
    Stress(directory, seed=0)
    assert sorted(path.name for path in (directory / "early_stopping").iterdir()) == FILES
    return directory / "early_stopping"


def change_one_bit(run: Path) -> None:
    with np.load(run / "last.npz") as file:
        arrays = {name: file[name] for name in file.files}
    arrays["parameters/0/weight"].view(np.uint8).reshape(-1)[0] ^= 1
    np.savez(run / "last.npz", **arrays)


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (change_one_bit, "parameters/0/weight differs"),
        (lambda run: shutil.copy(run / "last.npz", run / "best.npz"), "best.npz: another epoch"),
        (lambda run: (run / ".last.npz.1-2.tmp").touch(), ".last.npz.1-2.tmp"),
        (lambda run: (run / "metrics.jsonl").write_text(""), "metrics.jsonl differs"),
        (lambda run: (run / "best.npz").unlink(), "holds ['config.yaml', "),
    ],
    ids=["bit", "best", "temporary", "metrics", "missing"],
)
def test_what_is_lost_is_found(whole: Path, tmp_path: Path, damage: object, fault: str) -> None:
    assert callable(damage)
    run = shutil.copytree(whole, tmp_path / "run")
    assert differences(run, whole) == []
    damage(run)
    assert any(fault in found for found in differences(run, whole))


def test_a_file_that_cannot_be_read_is_found(whole: Path, tmp_path: Path) -> None:
    run = shutil.copytree(whole, tmp_path / "run")
    assert examine(run).faults == []
    (run / "last.npz").write_bytes((run / "last.npz").read_bytes()[:1000])
    assert any("last.npz" in fault for fault in examine(run).faults)


def test_processes_of_a_session_are_found(whole: Path) -> None:
    assert os.getpid() in survivors(os.getsid(0), patience=0)
    victim = strike(["list"], whole, None)
    assert (victim.code, survivors(victim.pid)) == (0, [])
