"""``cnncli download``, and what train and eval fetch by themselves."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Barrier

import pytest

from tests.cli.program import MNIST, Cnncli, command, environment
from tests.cli.test_streams import TERMINAL_SCRIPT, screen
from tests.download.conftest import with_mirrors
from tests.download.server import Handler, LocalServer, content, drip, status
from tests.download.small_dataset import SmallDataset

IMAGES = "train-images-idx3-ubyte"
FILES = sorted(path.name for path in MNIST.glob("*.gz"))

CONFIG = """\
data: {dataset: mnist, validation_size: 10}
network: [flatten, dense: {out_features: 10}]
training: {epochs: 1, batch_size: 10}
"""


def serve_real_files(server: LocalServer) -> None:
    for name in FILES:
        server.answers[f"/{name}"] = [content((MNIST / name).read_bytes())]


def test_what_it_says(mnist: SmallDataset, server: LocalServer, cache: Path, cnncli: Cnncli) -> None:
    mirror = mnist.serve(server)
    result = cnncli("download", "mnist", "--mirror", mirror)
    assert result.code == 0
    assert result.out == f"MNIST: 4 files verified in {cache} (4 downloaded, 0 there before)\n"
    first, *lines = result.err.splitlines()
    assert first.endswith(f"to {cache}")
    pattern = r"([\w-]+\.gz) +[\d.]+ (?:B|KiB) in [\d.]+ s, [\d,.]+ (?:B|KiB|MiB)/s"
    matches = [re.fullmatch(pattern, line) for line in lines]
    assert [match and match[1] for match in matches] == [f"{name}.gz" for name in mnist.names]
    assert "\r" not in result.err and "\x1b" not in result.err
    again = cnncli("download", "mnist", "--mirror", mirror)
    assert again.out == f"MNIST: 4 files verified in {cache} (0 downloaded, 4 there before)\n"
    assert again.err == "" and len(server.requests) == 4


def test_json_and_quiet(mnist: SmallDataset, server: LocalServer, tmp_path: Path, cnncli: Cnncli) -> None:
    mirror, directory = mnist.serve(server), tmp_path / "mine"
    directory.mkdir()
    (directory / IMAGES).write_bytes(mnist.raw[IMAGES])
    arguments = ["download", "mnist", "--directory", directory, "--mirror", mirror, "--json", "--quiet"]
    result = cnncli(*arguments)
    assert (result.code, result.err) == (0, "")
    assert (result.json["dataset"], result.json["directory"]) == ("mnist", str(directory))
    known = list(mnist.known.files.values())
    names = [IMAGES, *(f"{name}.gz" for name in mnist.names[1:])]
    assert result.json["files"] == [
        {
            "path": str(directory / name),
            "sha256": file.sha256,
            "downloaded_from": None if name == IMAGES else f"{mirror}/{name}",
        }
        for name, file in zip(names, known, strict=True)
    ]


def test_a_failure_is_exit_code_1_and_nothing_on_standard_output(
    mnist: SmallDataset, server: LocalServer, cache: Path, cnncli: Cnncli
) -> None:
    """and a mirror that was named is the only one."""
    server.answers[f"/{IMAGES}.gz"] = [status(503)]
    result = cnncli("download", "mnist", "--mirror", server.url, "--quiet")
    assert (result.code, result.out) == (1, "")
    lines = result.err.splitlines()
    assert lines[0] == f"error: {cache}: MNIST's {IMAGES} cannot be downloaded:"
    assert lines[1] == f"  {server.url}/{IMAGES}.gz: it answers 503 Service Unavailable (3 attempts)"
    assert [line.split()[0] for line in lines[2:]] == ["by", "offline:"]
    assert not cache.exists()


def test_fashion_mnist_has_a_place_of_its_own(
    fashion: SmallDataset, server: LocalServer, cache: Path, cnncli: Cnncli
) -> None:
    result = cnncli("download", "fashion-mnist", "--mirror", fashion.serve(server), "--quiet")
    place = cache.with_name("fashion-mnist")
    assert result.out == f"Fashion-MNIST: 4 files verified in {place} (4 downloaded, 0 there before)\n"
    assert {path.name: path.read_bytes() for path in place.iterdir()} == {
        f"{name}.gz": fashion.gzipped(name) for name in fashion.names
    }
    assert not cache.exists()


def test_what_a_killed_download_has_left_is_not_taken_for_data(
    mnist: SmallDataset, server: LocalServer, cache: Path, cnncli: Cnncli
) -> None:
    """kill -9 leaves a file under a temporary name."""
    cache.mkdir(parents=True)
    (cache / f".{IMAGES}.gz.4711-4711.tmp").write_bytes(mnist.gzipped(IMAGES)[:100])
    assert cnncli("download", "mnist", "--mirror", mnist.serve(server), "--quiet").code == 0
    assert len(server.requests) == 4
    assert (cache / f"{IMAGES}.gz").read_bytes() == mnist.gzipped(IMAGES)


@pytest.fixture
def served(
    mnist: SmallDataset, server: LocalServer, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> SmallDataset:
    """Change to a directory with mnist.yaml, whose data the second mirror has."""
    monkeypatch.chdir(tmp_path)
    Path("mnist.yaml").write_text(CONFIG)
    return with_mirrors(mnist, monkeypatch, f"{server.url}/none", mnist.serve(server, "/mnist"))


def test_train_and_eval_fetch_what_they_lack(
    served: SmallDataset, server: LocalServer, cache: Path, cnncli: Cnncli
) -> None:
    trained = cnncli("train", "--config", "mnist.yaml")
    assert trained.code == 0, trained.err
    notice, warning, *files = trained.err.splitlines()[:6]
    names = "train-images, train-labels, t10k-images, t10k-labels"
    assert notice == f"downloading MNIST ({names}) to {cache}"
    url = f"{server.url}/none/{IMAGES}.gz"
    assert warning == f"{url}: it answers 404 Not Found; trying another address"
    assert [line.split()[0] for line in files] == [f"{name}.gz" for name in served.names]
    (cache / "t10k-images-idx3-ubyte.gz").write_bytes(b"<html>")
    evaluated = cnncli("eval", "runs/mnist")
    assert evaluated.code == 0
    assert "t10k-images-idx3-ubyte.gz: this is an HTML or XML page" in evaluated.err
    again = cnncli("eval", "runs/mnist")
    assert "downloading" not in again.err and again.out == evaluated.out


def test_train_is_quiet_about_it_when_told_so(served: SmallDataset, cnncli: Cnncli) -> None:
    result = cnncli("train", "--config", "mnist.yaml", "--quiet")
    assert (result.code, result.err) == (0, "")


def test_a_dry_run_fetches_nothing(served: SmallDataset, server: LocalServer, cnncli: Cnncli) -> None:
    assert cnncli("train", "--config", "mnist.yaml", "--dry-run").code == 0
    assert server.requests == []


def test_train_offline_fails_before_it_takes_a_run_directory(
    served: SmallDataset, server: LocalServer, cnncli: Cnncli
) -> None:
    server.answers.clear()
    result = cnncli("train", "--config", "mnist.yaml")
    assert (result.code, result.out) == (1, "")
    for path in ("none", "mnist"):
        assert f"  {server.url}/{path}/{IMAGES}.gz: it answers 404 Not Found\n" in result.err
    assert not Path("runs").exists()


def test_eval_offline_names_every_place_that_was_tried(
    served: SmallDataset, server: LocalServer, cache: Path, tmp_path: Path, cnncli: Cnncli
) -> None:
    directory = served.write(tmp_path / "recorded")
    setting = f"data.directory={directory}"
    assert cnncli("train", "--config", "mnist.yaml", "--set", setting).code == 0
    directory.rename(tmp_path / "moved")
    found = cnncli("eval", "runs/mnist")
    assert found.code == 0 and f"to {cache}\n" in found.err
    for path in cache.iterdir():
        path.unlink()
    server.answers.clear()
    lost = cnncli("eval", "runs/mnist")
    assert (lost.code, lost.out) == (1, "")
    assert f"error: {directory}: " in lost.err and "--data-dir" in lost.err
    assert f"error: {cache}: MNIST's t10k-images-idx3-ubyte cannot be downloaded:\n" in lost.err


def start(*arguments: str | Path, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(*arguments),
        cwd=cwd,
        env=environment(no_proxy="*"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def test_two_processes_at_once(server: LocalServer, tmp_path: Path) -> None:
    """each waits for the other with the first file half way."""
    serve_real_files(server)
    both = Barrier(2, timeout=60)
    data = (MNIST / FILES[2]).read_bytes()

    def meet(handler: Handler) -> None:
        handler.begin(200, {"Content-Length": str(len(data))})
        handler.wfile.write(data[:1_000_000])
        both.wait()
        handler.wfile.write(data[1_000_000:])

    assert FILES[2] == f"{IMAGES}.gz"
    server.answers[f"/{FILES[2]}"] = [meet]
    arguments = ["download", "mnist", "--directory", "data", "--mirror", server.url]
    processes = [start(*arguments, cwd=tmp_path) for _ in range(2)]
    for process in processes:
        out, err = process.communicate(timeout=100)
        assert (process.returncode, out) == (
            0,
            "MNIST: 4 files verified in data (4 downloaded, 0 there before)\n",
        ), err
    assert server.requests.count(f"/{IMAGES}.gz") == 2
    found = {path.name: path.read_bytes() for path in (tmp_path / "data").iterdir()}
    assert found == {name: (MNIST / name).read_bytes() for name in FILES}


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_download_leaves_nothing(server: LocalServer, tmp_path: Path, number: int) -> None:
    begun = (MNIST / f"{IMAGES}.gz").read_bytes()[:500_000]
    server.answers[f"/{IMAGES}.gz"] = [drip(b"HTTP/1.0 200 OK\r\n\r\n" + begun, b"x")]
    process = start("download", "mnist", "--directory", "data", "--mirror", server.url, cwd=tmp_path)
    end = time.monotonic() + 60
    while not server.requests and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, ""), err
    assert err.endswith("interrupted\n")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def all_but_labels(tmp_path: Path) -> Iterator[Path]:
    """Make a directory with MNIST but for the labels of the training images."""
    directory = tmp_path / "data"
    directory.mkdir()
    for name in FILES:
        if not name.startswith("train-labels"):
            (directory / name).symlink_to(MNIST / name)
    yield directory


def on_a_terminal(directory: Path, server: LocalServer, **variables: str) -> str:
    """Fetch the labels with standard error on a terminal, and return what it showed."""
    arguments: list[str | Path] = ["download", "mnist", "--directory", directory, "--mirror", server.url]
    done = subprocess.run(
        [sys.executable, "-c", TERMINAL_SCRIPT, *command(*arguments)],
        env=environment(**{"TERM": "xterm", "PYTHONUTF8": "1", "no_proxy": "*", **variables}),
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def slowly(name: str, *, says_length: bool) -> Callable[[Handler], None]:
    data = (MNIST / name).read_bytes()

    def answer(handler: Handler) -> None:
        handler.begin(200, {"Content-Length": str(len(data))} if says_length else {})
        for start, end in ((0, 7_168), (7_168, 14_336), (14_336, len(data))):
            handler.wfile.write(data[start:end])
            time.sleep(0.3)  # longer than the bar rests between two drawings

    return answer


@pytest.mark.skipif(os.name != "posix", reason="terminals of POSIX")
@pytest.mark.parametrize("says_length", [True, False])
def test_a_terminal_shows_a_bar_with_bytes_and_rate(
    all_but_labels: Path, server: LocalServer, says_length: bool
) -> None:
    name = "train-labels-idx1-ubyte.gz"
    server.answers[f"/{name}"] = [slowly(name, says_length=says_length)]
    shown = on_a_terminal(all_but_labels, server)
    bars = [part for part in shown.split("\r") if part.startswith(name) and " in " not in part]
    assert any("14.0 KiB, " in bar and bar.rstrip().endswith("/s") for bar in bars)
    assert all(
        ("%" in bar and "|" in bar) == says_length and len(bar.rstrip("\x1b[A\n")) <= 76 for bar in bars
    )
    # the bar is taken away: what stays in its place is the line of the file
    (line,) = [line for line in screen(shown) if line.startswith(name)]
    assert re.match(rf"{name} +28.2 KiB in ", line)


@pytest.mark.skipif(os.name != "posix", reason="terminals of POSIX")
def test_a_dumb_terminal_gets_plain_lines(all_but_labels: Path, server: LocalServer) -> None:
    serve_real_files(server)
    shown = on_a_terminal(all_but_labels, server, TERM="dumb")
    assert "|" not in shown and "\x1b" not in shown
    assert "\r" not in shown.replace("\r\n", "\n")


def test_a_poor_encoding_is_no_hindrance(server: LocalServer, tmp_path: Path) -> None:
    serve_real_files(server)
    directory = tmp_path / "zahlen-数"
    directory.mkdir()
    for name in FILES[:3]:
        (directory / name).symlink_to(MNIST / name)
    arguments: list[str | Path] = ["download", "mnist", "--directory", directory, "--mirror", server.url]
    variables = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "no_proxy": "*"}
    done = subprocess.run(
        command(*arguments), env=environment(**variables), capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert b"zahlen-\\u6570" in done.stdout
