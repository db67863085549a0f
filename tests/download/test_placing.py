"""Telling what a content is, and putting it in its place all or not at all."""

from __future__ import annotations

import errno
import gzip
import os
import stat
from collections.abc import Callable
from pathlib import Path
from threading import Barrier, Thread

import pytest

from cnncli.data.catalog import KnownFile
from cnncli.data.mirrors import fault_of_content, place
from tests.download.small_dataset import SmallDataset


@pytest.fixture
def expected(mnist: SmallDataset) -> KnownFile:
    return mnist.known.files["test", "images"]


@pytest.fixture
def raw(mnist: SmallDataset, expected: KnownFile) -> bytes:
    return mnist.raw[expected.name]


def flipped(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


def test_two_gzips_behind_one_another_are_one_content(raw: bytes, expected: KnownFile) -> None:
    assert fault_of_content(gzip.compress(raw[:100]) + gzip.compress(raw[100:]), expected) is None


WRONG: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "html": (lambda raw: b"<!doctype html><title>Sign in</title>", "this is an HTML or XML page"),
    "html in a gzip": (
        lambda raw: gzip.compress(b"<html>"),
        "it has 6 bytes, uncompressed, instead of 15696",
    ),
    "empty": (lambda raw: b"", "this is an empty file"),
    "zip": (lambda raw: b"PK\3\4" + raw, "this is a zip archive"),
    "flipped byte": (lambda raw: flipped(raw, 9000), "it is damaged: the SHA-256"),
    "flipped byte in the gzip": (lambda raw: flipped(gzip.compress(raw), 9000), "it is damaged"),
    "flipped checksum": (lambda raw: flipped(gzip.compress(raw), -5), "it is damaged (CRC"),
    "first half": (lambda raw: raw[:5000], "it has 5000 bytes, uncompressed, instead of 15696"),
    "first half of the gzip": (lambda raw: gzip.compress(raw)[:5000], "its compressed data ends early"),
    "one byte more": (lambda raw: raw + b"\0", "it has 15697 bytes, uncompressed, instead of 15696"),
    "bomb": (lambda raw: gzip.compress(bytes(50_000_000)), "it has more than 31376 bytes, uncompressed"),
}


def test_a_bomb_is_not_unpacked(expected: KnownFile, monkeypatch: pytest.MonkeyPatch) -> None:
    n_read = 0
    read = gzip.GzipFile.read

    def counting(self: gzip.GzipFile, size: int | None = -1) -> bytes:
        nonlocal n_read
        piece = read(self, size)
        n_read += len(piece)
        return piece

    monkeypatch.setattr(gzip.GzipFile, "read", counting)
    assert fault_of_content(gzip.compress(bytes(50_000_000)), expected) is not None
    assert n_read < 2_000_000


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", ["os.fsync", "pathlib.Path.replace"])
def test_whatever_goes_wrong_nothing_is_left_and_nothing_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, step: str
) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(step, fail)
    with pytest.raises(type(error)):
        place(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_it_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    seen: list[tuple[int, bool]] = []
    monkeypatch.setattr(os, "fsync", lambda file: seen.append((os.fstat(file).st_size, path.exists())))
    place(path, b"new")
    assert seen[0] == (3, False)  # then the directory


def test_two_threads_do_not_write_into_one_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, both = tmp_path / "a", Barrier(2, timeout=30)
    names: list[set[str]] = []

    def meet(file: int) -> None:
        if stat.S_ISDIR(os.fstat(file).st_mode):
            return
        both.wait()
        names.append({found.name for found in tmp_path.iterdir()})
        both.wait()

    monkeypatch.setattr(os, "fsync", meet)
    contents = [bytes(1000), b"\1" * 1000]
    threads = [Thread(target=place, args=(path, content)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(seen) for seen in names] == [2, 2]
    assert all(str(os.getpid()) in name for name in names[0])
    assert path.read_bytes() in contents
    assert list(tmp_path.iterdir()) == [path]
