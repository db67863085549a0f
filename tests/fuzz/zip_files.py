"""Zip files written field by field, so that any of them can lie."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from numpy.lib.format import read_array
from numpy.typing import NDArray

from tests.fuzz.mutation import EDGES, mutate_bytes
from tests.fuzz.npy_files import header_bytes, mutate_npy

STORED, DEFLATED = 0, 8
BOMB_BYTES = 300 * 2**20


@dataclass(frozen=True)
class Entry:
    """One file in the zip file; what is None is as it should be.

    Attributes
    ----------
    data : as it is stored, compressed already
    crc, compressed_size, size : what both headers say
    local_name : the name in front of the data, where it is not that in the directory
    offset : where the directory says that it is
    """

    name: bytes
    data: bytes
    crc: int
    size: int
    method: int = STORED
    flags: int = 0
    compressed_size: int | None = None
    local_name: bytes | None = None
    extra: bytes = b""
    offset: int | None = None


def stored(name: bytes, content: bytes) -> Entry:
    return Entry(name, content, zlib.crc32(content), len(content))


def deflated(name: bytes, content: bytes) -> Entry:
    squeezer = zlib.compressobj(wbits=-15)
    data = squeezer.compress(content) + squeezer.flush()
    return Entry(name, data, zlib.crc32(content), len(content), DEFLATED)


def zip_bytes(
    entries: list[Entry], comment: bytes = b"", count: int | None = None, before: bytes = b""
) -> bytes:
    """Write entries, their directory, and its end."""
    content, directory = bytearray(before), bytearray()
    for entry in entries:
        compressed_size = len(entry.data) if entry.compressed_size is None else entry.compressed_size
        fields = struct.pack(
            "<HHHHHIII",
            *(20, entry.flags, entry.method, 0, 33, entry.crc),
            *(compressed_size % 2**32, entry.size % 2**32),
        )
        offset = len(content) - len(before) if entry.offset is None else entry.offset
        local_name = entry.name if entry.local_name is None else entry.local_name
        content += b"PK\x03\x04" + fields + struct.pack("<HH", len(local_name), 0) + local_name + entry.data
        directory += b"PK\x01\x02\x14\x00" + fields
        directory += struct.pack("<HHHHHII", len(entry.name), len(entry.extra), 0, 0, 0, 0, offset % 2**32)
        directory += entry.name + entry.extra
    n = len(entries) if count is None else count
    end = struct.pack(
        "<HHHHIIH", 0, 0, n % 2**16, n % 2**16, len(directory), len(content) - len(before), len(comment)
    )
    return bytes(content + directory + b"PK\x05\x06" + end + comment)


def mutate_zip(arrays: Mapping[str, bytes], rng: Random) -> bytes:
    """Write the arrays of an .npz file with a few things wrong: with arrays, entries, the file."""
    make = rng.choice((stored, stored, deflated))
    contents = dict(arrays)
    entries = []
    damaged = rng.choice([*contents]) if rng.random() < 0.6 else None
    for name, content in contents.items():
        if name == damaged:
            content = mutate_npy(content, rng)
        entries.append(make(f"{name}.npy".encode(), content))
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        rng.choice(ENTRY_CHANGES)(entries, rng)
    comment = rng.choice((b"", b"", b"", b"PK\x05\x06", bytes(65_535)))
    count = rng.choice((None, None, None, None, rng.choice(EDGES)))
    before = rng.choice((b"", b"", b"", b"", b"PK", b"#!/bin/sh\n"))
    content = zip_bytes(entries, comment, count, before)
    return mutate_bytes(content, rng) if rng.random() < 0.3 else content


@cache
def bomb() -> Entry:
    """Pack an array of zeros to less than a hundredth, all of it right and true."""
    squeezer, piece = zlib.compressobj(level=1, wbits=-15), bytes(2**20)
    header = header_bytes(f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({BOMB_BYTES},), }}")
    data, crc = squeezer.compress(header), zlib.crc32(header)
    for _ in range(BOMB_BYTES // len(piece)):
        data += squeezer.compress(piece)
        crc = zlib.crc32(piece, crc)
    return Entry(b"x_train.npy", data + squeezer.flush(), crc, len(header) + BOMB_BYTES, DEFLATED)


NAMES = (
    *(b"/metadata.npy", b"/etc/passwd", b"../x_train.npy", b"a/../../b.npy", b"C:\\x.npy", b"\\x.npy", b""),
    *(
        b".npy",
        b"x_train.npy\0.txt",
        b"\x1b[31m.npy",
        b"\xff\xfe.npy",
        b"a" * 60_000 + b".npy",
        b"a/",
        b"\n.npy",
    ),
    *(
        b"metadata.npy",
        b"x_train.npy",
        b"y_test.npy",
        b"parameters/2/weight.npy",
        b"pickle.pkl",
        b"METADATA.NPY",
    ),
)
ZIP64_EXTRAS = (
    struct.pack("<HHQQQ", 1, 24, 2**40, 2**40, 0),
    struct.pack("<HHQ", 1, 8, 2**63),
    struct.pack("<HHQQ", 1, 16, 0, 0),
    struct.pack("<HHI", 1, 4, 7),
    struct.pack("<HH", 1, 0xFFFF),
    b"\x01\x00\x08",
    struct.pack("<HH", 0x7075, 60_000) + bytes(100),
)


def _some(entries: list[Entry], rng: Random) -> int:
    return rng.randrange(len(entries)) if entries else 0


def _change(entries: list[Entry], rng: Random, change: Callable[[Entry], Entry]) -> None:
    if entries:
        index = _some(entries, rng)
        entries[index] = change(entries[index])


def _double(entries: list[Entry], rng: Random) -> None:
    entries.extend(entries[_some(entries, rng) :][:1] * rng.choice((1, 1, 1, 500)))


def _remove(entries: list[Entry], rng: Random) -> None:
    del entries[_some(entries, rng) :][rng.choice((0, 1)) :]


def _rename(entries: list[Entry], rng: Random) -> None:
    name = rng.choice((*NAMES, entries[_some(entries, rng)].name if entries else b"a"))
    _change(entries, rng, lambda entry: replace(entry, name=name))


def _rename_locally(entries: list[Entry], rng: Random) -> None:
    _change(entries, rng, lambda entry: replace(entry, local_name=rng.choice(NAMES)))


def _exchange_names(entries: list[Entry], rng: Random) -> None:
    if entries:
        a, b = _some(entries, rng), _some(entries, rng)
        first, second = entries[a], entries[b]
        entries[a] = replace(first, name=second.name)
        entries[b] = replace(second, name=first.name)


def _flag(entries: list[Entry], rng: Random) -> None:
    flags = rng.choice((0x1, 0x8, 0x20, 0x40, 0x800, 0x2000, 0xFFFF))
    _change(entries, rng, lambda entry: replace(entry, flags=flags))


def _relabel_method(entries: list[Entry], rng: Random) -> None:
    _change(entries, rng, lambda entry: replace(entry, method=rng.choice((0, 8, 9, 12, 14, 93, 99, 65535))))


def _lie_about_sizes(entries: list[Entry], rng: Random) -> None:
    def change(entry: Entry) -> Entry:
        lie = rng.choice((*EDGES, entry.size + 1, max(entry.size - 1, 0)))
        kind = rng.randrange(3)
        size = entry.size if kind == 1 else lie
        return replace(entry, size=size, compressed_size=None if kind == 0 else lie)

    _change(entries, rng, change)


def _lie_about_place(entries: list[Entry], rng: Random) -> None:
    _change(entries, rng, lambda entry: replace(entry, offset=rng.choice((*EDGES, 40, 100))))


def _spoil_checksum(entries: list[Entry], rng: Random) -> None:
    _change(entries, rng, lambda entry: replace(entry, crc=entry.crc ^ 1))


def _spoil_data(entries: list[Entry], rng: Random) -> None:
    _change(entries, rng, lambda entry: replace(entry, data=mutate_bytes(entry.data, rng)))


def _speak_zip64(entries: list[Entry], rng: Random) -> None:
    def change(entry: Entry) -> Entry:
        large = 2**32 - 1
        size = rng.choice((entry.size, large))
        compressed_size = rng.choice((None, large))
        return replace(entry, extra=rng.choice(ZIP64_EXTRAS), size=size, compressed_size=compressed_size)

    _change(entries, rng, change)


def _put_bomb(entries: list[Entry], rng: Random) -> None:
    _change(entries, rng, lambda entry: replace(bomb(), name=entry.name))


def _overlap(entries: list[Entry], rng: Random) -> None:
    _change(
        entries,
        rng,
        lambda entry: replace(entry, compressed_size=len(entry.data) + 3000, size=entry.size + 3000),
    )


ENTRY_CHANGES: tuple[Callable[[list[Entry], Random], None], ...] = (
    *(_double, _remove, _rename, _rename, _rename_locally, _exchange_names, _flag, _relabel_method),
    *(_lie_about_sizes, _lie_about_sizes, _lie_about_place, _spoil_checksum, _spoil_data, _speak_zip64),
    *(_put_bomb, _overlap),
)


def arrays_in(path: Path) -> dict[str, NDArray[Any]]:
    """Read every array with NumPy's own reader, which has its faults, but not the same ones."""
    with zipfile.ZipFile(path) as archive:
        arrays = {}
        for name in archive.namelist():
            if name.endswith(".npy"):
                with archive.open(name) as file:
                    arrays[name.removesuffix(".npy")] = read_array(file, allow_pickle=False)
        return arrays
