"""Whatever a user can cause is one message on standard error and the right exit code."""

from __future__ import annotations

import errno
import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

from cnncli.cli import main
from cnncli.cli.main import COMMANDS
from cnncli.cli.run_plan import make_workers, thread_count
from cnncli.config import load_config
from cnncli.errors import CheckpointError, ConfigError, UsageError
from tests.cli.program import Cnncli, environment, run_program


def test_a_run_from_the_shell_and_back(workspace: Path) -> None:
    trained = run_program("train", "--config", "tiny.yaml", cwd=workspace)
    assert (trained.returncode, trained.stdout.count("\n")) == (0, 1)
    evaluated = run_program("eval", "runs/tiny", cwd=workspace)
    assert evaluated.returncode == 0
    assert evaluated.stdout.splitlines()[0] == trained.stdout.strip()


def test_a_run_that_diverges_is_an_error(workspace: Path, cnncli: Cnncli) -> None:
    result = cnncli("train", "--config", "tiny.yaml", "--set", "optimizer.adam.learning_rate=1e30")
    assert (result.code, result.out) == (1, "")
    assert "\nerror: epoch 1, step 2 of 15: the loss is nan\n" in result.err


def test_a_batch_may_be_larger_than_the_training_set(workspace: Path, cnncli: Cnncli) -> None:
    larger = ("--set", "training.batch_size=1000000000", "--set", "training.epochs=1")
    result = cnncli("train", "--config", "tiny.yaml", *larger)
    assert result.code == 0
    assert "1 epoch of 1 step of " in result.err


@pytest.mark.parametrize(("asked", "started"), [("3", 3), ("16", 16), ("300", 16)])
def test_no_more_threads_are_started_than_can_be_busy(
    workspace: Path, cnncli: Cnncli, monkeypatch: pytest.MonkeyPatch, asked: str, started: int
) -> None:
    configured = load_config("tiny.yaml", [f"training.threads={asked}"])
    assert thread_count(int(asked), load_config("tiny.yaml")) == thread_count(None, configured) == started
    assert thread_count(2, configured) == 2
    assert make_workers(int(asked), configured).n_workers == started
    result = cnncli("train", "--config", "tiny.yaml", "--dry-run", "--threads", asked)
    assert f"on {started} threads" in result.out
    monkeypatch.setattr("cnncli.cli.run_plan.available_cores", lambda: int(asked))
    assert thread_count(None, load_config("tiny.yaml")) == started


def test_no_command_is_a_usage_error_that_helps(cnncli: Cnncli) -> None:
    result = cnncli()
    assert (result.code, result.out) == (2, "")
    assert "inspect-shapes" in result.err


def test_help_and_version_are_results(cnncli: Cnncli) -> None:
    for arguments in (["--help"], ["-h"], ["train", "-h"], ["--version"]):
        result = cnncli(*arguments)
        assert (result.code, result.err) == (0, "")
        assert "cnncli" in result.out


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ConfigError("one\ntwo"), 2, "error: one\nerror: two\n"),
        (UsageError("no"), 2, "error: no\n"),
        (CheckpointError("differs:\n  a\n  b"), 1, "error: differs:\n  a\n  b\n"),
        (
            OSError(errno.ENOSPC, "No space left on device", "runs/x"),
            1,
            "error: runs/x: No space left on device\n",
        ),
        (OSError("plain"), 1, "error: plain\n"),
        (MemoryError(), 1, "error: out of memory\n"),
        (np.exceptions.AxisError("a defect"), None, ""),
        (BrokenPipeError(), 141, ""),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (KeyboardInterrupt("interrupted: at epoch 2"), 130, "interrupted: at epoch 2\n"),
    ],
    ids=repr,
)
def test_kinds_of_errors(
    cnncli: Cnncli, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int | None, message: str
) -> None:
    def fail(ctx: click.Context) -> None:
        raise error

    monkeypatch.setattr(main.cli, "invoke", fail)
    monkeypatch.setattr(main, "discard_streams", lambda: None)
    if code is None:
        # a defect of the program keeps its traceback
        with pytest.raises(type(error)):
            cnncli("list")
        return
    result = cnncli("list")
    assert (result.code, result.out) == (code, "")
    assert result.err.startswith(message)
    assert bool(result.err) == bool(message)


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["train", "--config", "eval"], "lower training.batch_size or training.shard_size"),
        (["eval", "train"], "use fewer --threads"),
        (["explain", "conv"], "ask for fewer or smaller images"),
        (["inspect-shapes"], "make the network or its images smaller"),
    ],
)
def test_advice_against_a_lack_of_memory_fits_the_command(
    cnncli: Cnncli, monkeypatch: pytest.MonkeyPatch, arguments: list[str], advice: str
) -> None:
    def fail(ctx: click.Context) -> None:
        raise MemoryError

    monkeypatch.setattr(main.cli, "invoke", fail)
    assert cnncli(*arguments).err.startswith(f"error: out of memory; {advice}")
    assert main.MEMORY_ADVICE.keys() <= COMMANDS.keys()


def save_with_labels(path: Path, train: object, test: object) -> None:
    """Write images of 8 x 8 with some labels."""
    y_train, y_test = np.array(train), np.array(test)
    images = np.zeros((len(y_train) + len(y_test), 8, 8), np.uint8)
    np.savez(
        path,
        x_train=images[: len(y_train)],
        y_train=y_train,
        x_test=images[len(y_train) :],
        y_test=y_test,
    )


@pytest.mark.parametrize(
    ("train", "test", "code", "message"),
    [
        ([0, 1, 2, 10**9] * 5, [0, 1], 1, "labels.npz: y_train: expected labels below 10000"),
        ([0, 1, 2] * 5, [0, 1, 10**9], 1, "labels.npz: y_test: expected labels below 10000"),
        ([0, 1, 2] * 5, [0, 1, 3], 1, "labels.npz: y_test: label 2 is 3, a class that "),
        ([0, 2, 2] * 5, [0, 1], 1, "labels.npz: y_test: label 1 is 1, a class that "),
        (
            [1, 2, 3] * 5,
            [1, 2],
            2,
            "set it to 4\n  labels are 1 to 3, and classes are counted from 0: subtract 1 from",
        ),
        ([3, 13] * 5, [3], 2, "\n  labels are 0 to 13; no image has 0, 1, 2, 4, 5 and 7 more\n"),
    ],
)
def test_labels_are_faults_of_the_data(
    workspace: Path, cnncli: Cnncli, train: list[int], test: list[int], code: int, message: str
) -> None:
    save_with_labels(workspace / "labels.npz", train, test)
    own = ("--set", "data={dataset: ./labels.npz, validation_size: 0}")
    result = cnncli("train", "--config", "tiny.yaml", *own)
    assert result.code == code
    assert message in result.err
    assert result.err.count("error: ") == 1


class NoReader(io.StringIO):
    """A stream whose reader goes before what is buffered is written."""

    def flush(self) -> None:
        raise BrokenPipeError


def test_a_reader_that_goes_before_the_last_flush(cnncli: Cnncli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main.cli, "invoke", lambda ctx: None)
    monkeypatch.setattr(main, "discard_streams", lambda: None)
    monkeypatch.setattr(sys, "stdout", NoReader())
    assert cnncli("list").code == 141


def test_numpys_out_of_memory_says_what_did_not_fit(cnncli: Cnncli, monkeypatch: pytest.MonkeyPatch) -> None:
    def allocate(ctx: click.Context) -> Any:
        return np.empty((2**40, 2**10), dtype=np.float64)

    monkeypatch.setattr(main.cli, "invoke", allocate)
    result = cnncli("list")
    assert result.code == 1
    assert result.err.startswith("error: out of memory: Unable to allocate 8.00 PiB")


def test_blas_is_held_to_one_thread_before_numpy_is_imported(tmp_path: Path) -> None:
    script = (
        "import os, sys\n"
        "from cnncli.__main__ import BLAS_THREADS, main\n"
        "assert 'numpy' not in sys.modules\n"
        "class Watch:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'numpy':\n"
        "            print([os.environ[variable] for variable in BLAS_THREADS], file=sys.stderr)\n"
        "sys.meta_path.insert(0, Watch())\n"
        "sys.argv = ['cnncli', 'list']\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=environment(OPENBLAS_NUM_THREADS="8"),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "['1', '1', '1', '1', '1']\n")
