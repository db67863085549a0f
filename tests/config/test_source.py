"""Files: encodings, locales, and what is not a configuration file at all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cnncli.config import load_config
from cnncli.errors import ConfigError
from tests.config.texts import NETWORK


def message_of(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    return str(caught.value)


def test_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "none.yaml"
    assert message_of(path) == f"{path}: no such file; expected a configuration in YAML"


def test_directory(tmp_path: Path) -> None:
    assert message_of(tmp_path) == f"{tmp_path}: expected a configuration file in YAML, got a directory"


def test_file_as_directory(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(NETWORK)
    assert message_of(path / "d.yaml") == f"{path}/d.yaml: cannot be read: Not a directory"


@pytest.mark.parametrize("content", [b"", b"\n\n", b"# a comment\n", b"\xef\xbb\xbf"])
def test_empty_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes(content)
    assert message_of(path) == f"{path}:1: a configuration must be a mapping of keys to values, got nothing"


def test_too_large_file(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes(b"# comment\n" * 200_000)
    assert message_of(path) == f"{path}: expected a configuration of at most 1 MiB, got a larger file"


@pytest.mark.parametrize(
    ("content", "line", "byte"),
    [(b"seed: 1\n# caf\xe9\n", 2, "0xe9"), ("seed: 1".encode("utf-16"), 1, "0xff")],
)
def test_other_encodings(tmp_path: Path, content: bytes, line: int, byte: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes(content)
    assert message_of(path) == (
        f"{path}:{line}: expected UTF-8 text, got the byte {byte}; save the file as UTF-8"
    )


def test_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + NETWORK.replace("\n", "\r\n").encode() + b"seed: 4\r\n")
    assert load_config(path).seed == 4


def test_non_latin_comment_in_the_c_locale(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes(f"# эпохи, 学習\n{NETWORK}seed: 4\n".encode())
    program = "import sys; from cnncli.config import load_config; print(load_config(sys.argv[1]).seed)"
    # without UTF-8 mode and coercion, which newer Pythons turn on by themselves in this locale
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        env=environment,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "4\n", "")


def test_relative_directory_follows_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "elsewhere").mkdir()
    path = tmp_path / "configs" / "c.yaml"
    path.write_text(NETWORK + "data: {directory: ../data/mnist}\n")
    found = set()
    for directory, name in ((tmp_path, "configs/c.yaml"), (tmp_path / "elsewhere", "../configs/c.yaml")):
        monkeypatch.chdir(directory)
        found.add(load_config(name).data.directory)
    assert found == {tmp_path.resolve() / "data" / "mnist"}


def test_relative_dataset_follows_the_file(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(NETWORK + "data: {dataset: digits, directory: ../data/mnist}\n")
    (tmp_path / "digits").mkdir()
    data = load_config(path).data
    # a directory of files to look a known data set up in means nothing for a path
    assert (data.dataset, data.directory) == (str(tmp_path.resolve() / "digits"), None)


def test_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / "c.yaml"
    path.write_text(NETWORK + "data: {directory: ~/mnist}\n")
    assert load_config(path).data.directory == tmp_path.resolve() / "mnist"


def test_messages_name_the_file_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text(NETWORK + "seed: -1\n")
    assert message_of(Path("c.yaml")) == "c.yaml:2: seed: expected an integer of at least 0, or null, got -1"
