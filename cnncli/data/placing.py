"""Verified files of a data set: telling whether a content is the right one, and putting it in place."""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from pathlib import Path

from cnncli.data.atomic_files import write_atomically
from cnncli.data.catalog import CATALOG, KnownFile, identify
from cnncli.data.streams import describe_start

GZIP_START = b"\x1f\x8b"

_IDX_START = b"\0\0\x08"
_PIECE_BYTES = 2**20


def fault_of_file(path: Path, expected: KnownFile) -> str | None:
    """Say in words what is wrong with a file; None if it is the expected one, gzipped or not."""
    try:
        with path.open("rb") as file:
            return _fault(file, expected)
    except OSError as error:
        return f"it cannot be read: {error.strerror or error}"


def fault_of_content(content: bytes, expected: KnownFile) -> str | None:
    """Say in words what is wrong with a content; None if it is the expected one, gzipped or not."""
    return _fault(io.BytesIO(content), expected)


def place(path: Path, content: bytes) -> None:
    """Write a file beside its place, flush it to the disk, and rename it: all of it or nothing.

    Raises
    ------
    OSError : it cannot be written; nothing is left of it
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, lambda file: file.write(content))


def _fault(file: io.BufferedIOBase, expected: KnownFile) -> str | None:
    start = file.read(64)
    file.seek(0)
    try:
        if start.startswith(GZIP_START):
            with gzip.GzipFile(fileobj=file, mode="rb") as unpacked:
                return _content_fault(unpacked, expected)
        if start.startswith(_IDX_START):
            return _content_fault(file, expected)
    except EOFError:
        return "its compressed data ends early, as after an interrupted download or copy"
    except (gzip.BadGzipFile, zlib.error) as error:
        return f"it is damaged ({error})"
    return f"this is {describe_start(start)}"


def _content_fault(stream: io.BufferedIOBase, expected: KnownFile) -> str | None:
    # as far as the largest file goes: a swapped one can be told, a bomb does not go off
    limit = max(file.size for known in CATALOG.values() for file in known.files.values())
    digest, n_bytes = hashlib.sha256(), 0
    while n_bytes <= limit and (piece := stream.read(_PIECE_BYTES)):
        digest.update(piece)
        n_bytes += len(piece)
    sha256 = digest.hexdigest()
    if sha256 == expected.sha256:
        return None
    actual = identify(sha256)
    if actual is not None:
        dataset, file = actual
        return f"this is {dataset.title}'s {file.label} file"
    if n_bytes != expected.size:
        length = f"more than {limit}" if n_bytes > limit else f"{n_bytes}"
        return f"it has {length} bytes, uncompressed, instead of {expected.size}"
    return f"it is damaged: the SHA-256 of its uncompressed content is {sha256}, expected {expected.sha256}"
