"""Pipes without a reader, full disks, encodings without the letters, terminals."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cnncli.cli.terminal import Stream
from tests.cli.program import command, environment, make_workspace, run_program


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_reader_that_has_gone_is_141_and_no_word(workspace: Path, stream: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    arguments = ["list"] if stream == "stdout" else ["train", "--config", "tiny.yaml"]
    other = subprocess.PIPE
    process = subprocess.Popen(
        command(*arguments),
        cwd=workspace,
        env=environment(),
        stdout=writing if stream == "stdout" else other,
        stderr=writing if stream == "stderr" else other,
    )
    os.close(writing)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 141
    assert not out and not err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_under_standard_output_is_an_error(workspace: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command("list"), cwd=workspace, env=environment(), stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 1
    assert done.stderr == "error: standard output: No space left on device\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_result_that_cannot_be_written_says_where_the_run_is(workspace: Path, options: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command("train", "--config", "tiny.yaml", *options),
            cwd=workspace,
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert done.returncode == 1
    assert done.stderr.endswith(
        "error: standard output: No space left on device\n"
        "  training is done, the best epoch is kept in runs/tiny/best.npz\n"
        "  evaluate with: cnncli eval runs/tiny\n"
    )


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_a_trained_run_is_kept_where_nobody_reads_the_result(workspace: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        command("train", "--config", "tiny.yaml", "--quiet"),
        cwd=workspace,
        env=environment(),
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=60,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")
    assert (workspace / "runs/tiny/best.npz").exists()


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
def test_a_limit_of_open_files_is_named_as_such(workspace: Path) -> None:
    script = (
        "import resource; from cnncli.__main__ import main; "
        "resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8)); main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "train", "--config", "tiny.yaml", "--threads", "8"],
        cwd=workspace,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "error: Too many open files; allow the program more open files (ulimit -n)\n" in done.stderr
    assert "--threads" not in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="closes descriptors as a shell of POSIX does")
def test_closed_streams_are_no_error(workspace: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", '"$@" >&- 2>&-', "sh", *command("train", "--config", "tiny.yaml")],
        cwd=workspace,
        env=environment(),
        check=False,
    )
    assert done.returncode == 0
    assert (workspace / "runs/tiny/best.npz").exists()


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_poor_encodings_escape_what_they_lack(tmp_path: Path, encoding: str) -> None:
    home = tmp_path / "läufe-数"
    home.mkdir()
    make_workspace(home)
    variables = {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    commands: tuple[list[str | Path], ...] = (
        ["train", "--config", home / "tiny.yaml", "--run-dir", home / "run"],
        ["eval", home / "run"],
        ["inspect-shapes", "--checkpoint", home / "run"],
        ["train", "--resume", home / "run"],
    )
    for arguments in commands:
        done = subprocess.run(
            command(*arguments),
            cwd=tmp_path,
            env=environment(**variables),
            capture_output=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        text = done.stdout.decode(encoding) + done.stderr.decode(encoding)
        assert "\\u6570" in text
        assert "\r" not in text and "\x1b" not in text


def test_without_a_terminal_there_is_one_plain_line_for_each_epoch(workspace: Path) -> None:
    done = run_program("train", "--config", "tiny.yaml", cwd=workspace)
    assert done.returncode == 0
    assert done.stderr.isascii()
    assert "\r" not in done.stderr and "\x1b" not in done.stderr
    rows = [line.split()[0] for line in done.stderr.splitlines() if "/2 " in line]
    assert rows == ["1/2", "2/2"]
    assert done.stderr.count("train loss") == 1


TERMINAL_SCRIPT = """
import fcntl, os, pty, struct, subprocess, sys, termios
parent, child = pty.openpty()
fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(os.environ.get("WIDTH", "80")), 0, 0))
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=child)
os.close(child)
seen = b""
while True:
    try:
        part = os.read(parent, 65536)
    except OSError:
        break
    if not part:
        break
    seen += part
sys.stdout.buffer.write(seen)
sys.exit(process.wait())
"""


def on_a_terminal(workspace: Path, *, width: int = 80, **variables: str) -> str:
    """Train with standard error on a terminal, and return what it showed."""
    done = subprocess.run(
        [sys.executable, "-c", TERMINAL_SCRIPT, *command("train", "--config", "tiny.yaml")],
        cwd=workspace,
        env=environment(**{"TERM": "xterm", "PYTHONUTF8": "1", "WIDTH": str(width), **variables}),
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def screen(shown: str) -> list[str]:
    """Return what stays on the screen: of parts that are drawn over one another, the last."""
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown).split("\r\n")
    return [line.rsplit("\r", 1)[-1].rstrip() for line in lines]


@pytest.mark.skipif(os.name != "posix", reason="terminals of POSIX")
def test_a_terminal_shows_a_bar_and_headings(workspace: Path) -> None:
    shown = on_a_terminal(workspace)
    assert "\x1b[1m" in shown
    bars = [part for part in shown.split("\r") if "images/s" in part and "|" in part]
    assert any("1/2" in bar and "loss" in bar and " %" in bar and "left" in bar for bar in bars)
    assert {len(bar.rstrip("\x1b[A\n")) for bar in bars} == {76}
    # the bar is taken away: what stays in its place is the row of the epoch
    assert [line.split()[0] for line in screen(shown) if "/2 " in line] == ["1/2", "2/2"]
    assert not any("left" in line for line in screen(shown))


@pytest.mark.skipif(os.name != "posix", reason="terminals of POSIX")
@pytest.mark.parametrize("width", [10, 30, 200])
def test_the_bar_fits_any_width(workspace: Path, width: int) -> None:
    shown = re.sub(r"\x1b\[[0-9;]*[mA]", "", on_a_terminal(workspace, width=width))
    bars = [part for part in re.split("[\r\n]", shown) if re.match(r"  1/2 +\d+ ?%?|  1/2 $", part)]
    drawn = [bar for bar in bars if bar not in screen(shown)]
    assert drawn
    assert max(map(len, drawn)) <= width
    assert "test accuracy" not in shown  # that is for standard output
    assert "best epoch" in shown


@pytest.mark.skipif(os.name != "posix", reason="terminals of POSIX")
def test_no_color_leaves_the_bar_and_takes_the_color(workspace: Path) -> None:
    shown = on_a_terminal(workspace, NO_COLOR="1")
    assert "\x1b[1m" not in shown and "\x1b[2m" not in shown
    assert "left" in shown


@pytest.mark.skipif(os.name != "posix", reason="terminals of POSIX")
def test_a_terminal_without_utf8_gets_an_ascii_bar(workspace: Path) -> None:
    shown = on_a_terminal(workspace, PYTHONIOENCODING="ascii")
    assert "left" in shown
    assert shown.isascii()


@pytest.mark.skipif(os.name != "posix", reason="terminals of POSIX")
def test_a_dumb_terminal_gets_plain_lines(workspace: Path) -> None:
    shown = on_a_terminal(workspace, TERM="dumb")
    assert "\x1b" not in shown
    assert "left" not in shown
    assert "\r" not in shown.replace("\r\n", "\n")


def test_a_stream_that_is_no_terminal_has_no_color() -> None:
    stream = Stream(io.StringIO())
    stream.write(stream.bold("a") + stream.dim("b") + stream.red("c"))
    assert isinstance(stream.file, io.StringIO)
    assert stream.file.getvalue() == "abc\n"
    assert not stream.can_redraw


def test_a_closed_stream_takes_everything() -> None:
    Stream(None).write("lost")


@pytest.mark.parametrize(("encoding", "has_unicode"), [("utf-8", True), ("UTF8", True), ("ascii", False)])
def test_unicode_is_told_by_the_encoding(encoding: str, has_unicode: bool) -> None:
    assert Stream(io.TextIOWrapper(io.BytesIO(), encoding=encoding)).has_unicode is has_unicode
