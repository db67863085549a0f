"""A sample of the fuzzing, and the fuzzer itself: it must see what it is there to see."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from cnncli.errors import DataError, ShapeError
from tests.cli.program import REPOSITORY
from tests.fuzz.campaign import feed
from tests.fuzz.target import Case, WrongSuccessError, require

pytestmark = pytest.mark.fuzz

TARGETS = ("idx", "checkpoint", "config", "npz", "picture", "predict")


@pytest.mark.skipif(os.name != "posix", reason="needs the timers of POSIX")
@pytest.mark.parametrize("target", TARGETS)
def test_a_sample_finds_no_fault(target: str) -> None:
    """In a process of its own, whose memory is limited."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", "--target", target, "--inputs", "300", "--seed", "1"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"{target}: 300 inputs of seed 1: ") and ", 0 faults; " in done.stdout
    assert ": 0 read rightly" not in done.stdout and " 0 refused" not in done.stdout


class MadeTarget:
    """A target that does what the test says."""

    def __init__(self, path: Path, act: Callable[[Path], None]) -> None:
        self.path = path
        self._act = act

    def make(self, rng: Random) -> Case:
        return Case(rng.randbytes(4))

    def read(self, case: Case) -> None:
        self._act(self.path)


def crash(path: Path) -> None:
    raise KeyError("x")


def warn(path: Path) -> None:
    warnings.warn("this came from NumPy", UserWarning, stacklevel=1)


def refuse_as_another_kind(path: Path) -> None:
    raise ShapeError(f"{path}: is damaged")


def refuse_without_a_name(path: Path) -> None:
    raise DataError("is damaged")


def refuse_at_length(path: Path) -> None:
    raise DataError(f"{path}: {'x' * 2000}")


def refuse_with_an_escape(path: Path) -> None:
    raise DataError(f"{path}: \x1b[31m")


def refuse_after_a_huge_allocation(path: Path) -> None:
    try:
        raise MemoryError
    except MemoryError:
        raise DataError(f"{path}: does not fit into memory") from None


def succeed_wrongly(path: Path) -> None:
    require(False, "the shape")


def hang(path: Path) -> None:
    while True:
        pass


@pytest.mark.skipif(os.name != "posix", reason="needs the timers of POSIX")
@pytest.mark.parametrize(
    ("act", "words"),
    [
        (crash, "KeyError: 'x'"),
        (warn, "UserWarning: this came from NumPy"),
        (refuse_as_another_kind, "refused as ShapeError"),
        (refuse_without_a_name, "does not name the file: is damaged"),
        (refuse_at_length, "a message of 1 lines, the longest of 2"),
        (refuse_with_an_escape, "control characters"),
        (refuse_after_a_huge_allocation, "a huge allocation"),
        (succeed_wrongly, "wrong success: the shape"),
        (hang, "longer than 0.05 s"),
    ],
)
def test_every_kind_of_fault_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[Path], None], words: str
) -> None:
    monkeypatch.setattr("tests.fuzz.limits.SECONDS", 0.05)
    monkeypatch.setattr("tests.fuzz.campaign.SECONDS", 0.05)
    tally = feed(MadeTarget(tmp_path / "a", act), "made", 0, range(1))
    assert (tally.n_read, tally.n_refused, tally.n_inputs) == (0, 0, 1)
    assert words in tally.faults[0].what


def test_what_is_right_is_no_fault(tmp_path: Path) -> None:
    def refuse_half(path: Path) -> None:
        if path.read_bytes()[0] % 2:
            raise DataError(f"{path}: is damaged")

    tally = feed(MadeTarget(tmp_path / "a", refuse_half), "made", 0, range(50))
    assert tally.faults == [] and tally.n_inputs == 50
    assert tally.n_read > 10 and tally.n_refused > 10


def test_the_same_number_gives_the_same_input(tmp_path: Path) -> None:
    seen: list[bytes] = []
    target = MadeTarget(tmp_path / "a", lambda path: seen.append(path.read_bytes()))
    feed(target, "made", 0, range(5))
    feed(target, "made", 0, range(3, 4))
    assert seen[3] == seen[5] and len(set(seen)) == 5
    with pytest.raises(WrongSuccessError):
        require(seen[0] == seen[1], "different")
