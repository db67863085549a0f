"""Numbers and tables as they are written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cnncli.cli import formats
from cnncli.cli.terminal import labelled
from tests.cli.program import Cnncli


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (59.94, "59.9 s"),
        (59.97, "1 min 00 s"),
        (185, "3 min 05 s"),
        (3599.6, "1 h 00 min"),
        (3725, "1 h 02 min"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert formats.duration(seconds) == text


@pytest.mark.parametrize("width", [40, 60, 100])
def test_no_word_is_broken_at_the_edge(cnncli: Cnncli, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    lines = labelled("label", "some words of text that do not fit one line", label_width=30, width=width)
    assert max(map(len, lines)) <= width
    monkeypatch.setattr("shutil.get_terminal_size", lambda: __import__("os").terminal_size((width, 24)))
    assert max(map(len, cnncli("list").out.splitlines())) <= max(width, 42)


def test_a_page_is_not_overwritten_unless_told(cnncli: Cnncli, tmp_path: Path) -> None:
    page = tmp_path / "im2col.html"
    arguments = ("explain", "im2col", "--html", page)
    assert cnncli(*arguments).code == 0
    page.write_text("mine")
    refused = cnncli(*arguments)
    assert refused.code == 2
    assert f"{page}: exists already" in refused.err
    assert page.read_text() == "mine"
    assert cnncli(*arguments, "--overwrite").code == 0
    assert page.read_text() != "mine"


def test_one_picture_of_many_is_not_called_the_first(cnncli: Cnncli, workspace: Path) -> None:
    assert cnncli("train", "--config", "tiny.yaml", "--quiet").code == 0
    np.save("ten.npy", np.load("tiny.npz")["x_test"][:10])
    one = cnncli("predict", "runs/tiny", "ten.npy:7", "--limit", "1")
    assert (one.code, one.err) == (0, "")
    some = cnncli("predict", "runs/tiny", "ten.npy", "--limit", "3")
    assert "ten.npy: the first 3 of 10 pictures" in some.err


def test_images_that_are_all_equal_are_warned_of(cnncli: Cnncli, workspace: Path) -> None:
    with np.load("tiny.npz") as arrays:
        changed = {
            name: np.full_like(arrays[name], 7) if name == "x_train" else arrays[name] for name in arrays
        }
    np.savez("tiny.npz", **changed)
    result = cnncli("train", "--config", "tiny.yaml")
    assert result.code == 0
    assert "warning: all training images are equal" in result.err


def test_times_of_a_resumed_run_say_what_they_include(cnncli: Cnncli, workspace: Path) -> None:
    more = ("--set", "schedule=constant")
    assert "time        " in cnncli("train", "--config", "tiny.yaml", *more).err
    resumed = cnncli("train", "--resume", "runs/tiny", "--set", "training.epochs=3")
    assert "for all 3 epochs," in resumed.err
