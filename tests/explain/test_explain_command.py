"""``cnncli explain`` as its reader runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cnncli.explain import TOPICS
from tests.cli.program import MNIST, Cnncli, environment


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("topic", TOPICS)
def test_without_options(cnncli: Cnncli, topic: str) -> None:
    done = cnncli("explain", topic)
    assert done.code == 0 and done.err == ""
    assert done.out.splitlines()[-1] == "They agree: the largest difference is 0."
    assert max(map(len, done.out.splitlines())) <= 80


def test_the_question_what_col2im_does(cnncli: Cnncli) -> None:
    out = words(cnncli("explain", "col2im").out)
    assert "why col2im(im2col(x)) is not x" in out
    assert "0 2 2 6 16 10 6 14 8" in out
    assert "1 2 1 2 4 2 1 2 1" in out


def test_a_wide_terminal_shows_more_of_a_matrix(cnncli: Cnncli) -> None:
    arguments = ("explain", "im2col", "--shape", "1,1,5,9", "--kernel-size", "2")
    assert "columns 0 to 15\n" in cnncli(*arguments).out
    done = subprocess.run(
        [sys.executable, "-m", "cnncli", *arguments],
        env=environment(COLUMNS="140"),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "columns 0 to" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 140


def test_sizes_as_python_writes_them(cnncli: Cnncli) -> None:
    assert cnncli("explain", "im2col", "--shape", "(2, 1, 3, 3)").out == (
        cnncli("explain", "im2col", "--shape", "2,1,3,3").out
    )
    one = cnncli("explain", "im2col", "--shape", "1,1,5,5", "--kernel-size", "3", "--stride", "2")
    two = cnncli("explain", "im2col", "--shape", "1,1,5,5", "--kernel-size", "3,3", "--stride", "2,2")
    assert one.out == two.out


def test_padding_of_all_forms(cnncli: Cnncli) -> None:
    out = cnncli("explain", "conv", "--shape", "1,1,4,4", "--kernel-size", "3,2", "--padding", "same").out
    assert "padding  (top, bottom, left, right) = (1, 1, 0, 1)" in out
    out = cnncli("explain", "conv", "--shape", "1,1,4,4", "--padding", "1,0").out
    assert "padding  (top, bottom, left, right) = (1, 1, 0, 0)" in out


def test_the_reader_s_own_images(cnncli: Cnncli) -> None:
    np.save("four.npy", np.full((1, 1, 2, 2), 200, np.uint8))
    out = words(cnncli("explain", "conv", "--input", "four.npy", "--out-channels", "1").out)
    assert "The file holds uint8; everything below is computed in float64." in out
    assert "y (1, 4) (1, 1, 1, 1) 1 2 3 4 2001" in out


def test_the_reader_s_own_filters(cnncli: Cnncli) -> None:
    np.save("edge.npy", np.array([[1.0, -1.0]]).reshape(1, 1, 1, 2))
    out = words(cnncli("explain", "conv", "--weight", "edge.npy", "--shape", "1,1,2,3").out)
    assert "kernel (KH, KW) = (1, 2)" in out
    assert "-1 -1 -1 -1" in out


def test_a_digit_is_drawn(cnncli: Cnncli) -> None:
    done = cnncli("explain", "im2col", "--values", "digit", "--data-dir", MNIST)
    assert done.code == 0
    assert "From MNIST's test images: number 8506, a 9." in words(done.out)
    assert "@@@@@@" in done.out


def test_a_digit_from_the_directory_below(cnncli: Cnncli, elsewhere: Path) -> None:
    (elsewhere / "data").symlink_to(MNIST.parent)
    assert cnncli("explain", "max-pool", "--values", "digit", "--shape", "2,1,28,28").code == 0


def test_a_digit_that_is_nowhere(cnncli: Cnncli) -> None:
    done = cnncli("explain", "im2col", "--values", "digit")
    assert done.code == 1 and done.out == ""
    assert "t10k-images-idx3-ubyte" in done.err and "Traceback" not in done.err


def test_the_wiki_s_gradient(cnncli: Cnncli) -> None:
    out = words(cnncli("explain", "max-pool", "--upstream-shape", "12,12,30,100").out)
    for numbers in (
        "0,0,0 0 3000 6000 ... 27000 30000 33000",
        "398999 401999 404999 ... 425999 428999 431999",
        "0 3000 6000 ... 425999 428999 431999",
        "(432000, 4)",
        "HWCN (R) 100 30 12x12 (3, 0, 1, 2) 0 100 200 ... 2900",
    ):
        assert numbers in out


def test_other_orders_of_axes(cnncli: Cnncli) -> None:
    out = words(cnncli("explain", "im2col", "--shape", "2,3,4,5", "--axes", "HWCN").out)
    assert "HWCN R (4, 5, 3, 2) [2, 4, 1, 1] 87" in out
    assert "NCHW PyTorch, the book (2, 3, 4, 5) [1, 1, 2, 4] 94" in out
    assert "x_hwcn (H, W, C, N) = (4, 5, 3, 2)" in out


def test_seeds_change_what_is_drawn(cnncli: Cnncli) -> None:
    first = cnncli("explain", "max-pool").out
    assert cnncli("explain", "max-pool", "--seed", "0").out == first
    assert cnncli("explain", "max-pool", "--seed", "1").out != first


@pytest.mark.parametrize("topic", TOPICS)
def test_a_page_for_the_browser(cnncli: Cnncli, topic: str, elsewhere: Path) -> None:
    done = cnncli("explain", topic, "--shape", "1,2,4,4", "--html", "page.html")
    assert done.code == 0 and done.out == ""
    assert done.err == "wrote page.html; open it in a browser\n"
    assert f"cnncli explain {topic}" in (elsewhere / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "missing argument"),
        ("conv2", "no such topic conv2; did you mean conv?"),
        ("max_pool", "no such topic max_pool; did you mean max-pool?"),
        ("fft", "no such topic fft; there are im2col, col2im, conv, max-pool"),
        ("im2col --shape 1,1,3", "--shape: expected four integers of at least 1, N,C,H,W, got 1,1,3"),
        ("im2col --shape 1,1,0,3", "--shape: expected four integers of at least 1"),
        ("im2col --shape 1x1x3x3", "--shape: expected four integers of at least 1"),
        ("im2col --shape 1,1,3,9999999999", "--shape: expected four integers of at least 1"),
        ("im2col --kernel-size 0", "--kernel-size: expected an integer of at least 1, or two"),
        ("im2col --kernel-size 2,2,2", "--kernel-size: expected an integer of at least 1, or two"),
        ("im2col --stride 1.5", "--stride: expected an integer of at least 1, or two"),
        (
            "im2col --padding valid",
            "--padding: expected an integer of at least 0, or two, height,width, or same",
        ),
        (
            "im2col --shape 1,1,3,3 --kernel-size 4",
            "--kernel-size: expected at most 3x3, the height and width of the padded input, got 4x4",
        ),
        ("max-pool --padding 2", "--padding: expected at most half the kernel, 1x1 for 2x2, got 2x2"),
        ("im2col --shape 1000,3,224,224", "--shape: expected at most 5,000,000 numbers"),
        ("im2col --upstream-shape 1,1,2,2", "--upstream-shape: does not go with im2col"),
        ("col2im --weight w.npy", "--weight: does not go with col2im"),
        ("im2col --input x.npy --shape 1,1,3,3", "--shape: does not go with --input"),
        ("im2col --input x.npy --values random", "--values: does not go with --input"),
        ("conv --weight w.npy --kernel-size 3", "--kernel-size: does not go with --weight"),
        ("conv --out-channels 0", "--out-channels: expected an integer of at least 1, got 0"),
        ("conv --shape 1,1,5,5 --upstream-shape 1,1,9,9", "--upstream-shape: expected 1,1,4,4"),
        ("im2col --values digit --shape 1,1,9,9", "--shape: expected N,1,28,28 with --values digit"),
        ("im2col --data-dir here", "--data-dir: goes with --values digit"),
        ("im2col --axes ABCD", "--axes: "),
        ("im2col --seed -1", "--seed: expected an integer of at least 0, got -1"),
    ],
)
def test_what_cannot_be_is_one_line(cnncli: Cnncli, arguments: str, message: str) -> None:
    done = cnncli("explain", *arguments.split())
    assert done.code == 2 and done.out == ""
    assert done.err.startswith(f"error: {message}")
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("option", ["--input", "--weight"])
def test_a_file_that_is_no_array(cnncli: Cnncli, option: str) -> None:
    Path("x.npy").write_text("hello")
    done = cnncli("explain", "conv", option, "x.npy")
    assert done.code == 1 and done.out == ""
    assert done.err.startswith("error: x.npy: expected an array as numpy.save writes it")


def test_disagreement_is_exit_code_1(cnncli: Cnncli, monkeypatch: pytest.MonkeyPatch) -> None:
    from cnncli.explain import textbook

    def wrong(*arguments: Any) -> Any:
        return textbook.im2col_by_index(*arguments) + 1

    monkeypatch.setattr("cnncli.explain.im2col.textbook", type("Wrong", (), {**vars(textbook)}))
    monkeypatch.setattr("cnncli.explain.im2col.textbook.im2col_by_index", staticmethod(wrong))
    done = cnncli("explain", "im2col")
    assert done.code == 1
    assert done.out.splitlines()[-1] == "They DISAGREE: the largest difference is 1.0e+00."
    assert "please report" in done.err
