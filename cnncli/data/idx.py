"""The IDX format of the MNIST files, raw or gzipped.

An IDX file is two zero bytes, a byte for the item type, a byte for the rank, one big-endian uint32
per dimension, and the items in row-major order, big-endian
(described at the end of http://yann.lecun.com/exdb/mnist/).
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cnncli.data.reading import ArrayHeader, check_size, describe_start, read_array, reading
from cnncli.errors import DataError

_ITEM_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_MAX_RANK = 4
_GZIP_START = b"\x1f\x8b"


@dataclass(frozen=True, eq=False)
class IdxFile:
    """Content of an IDX file.

    Attributes
    ----------
    array : fresh, writable, in native byte order
    sha256 : hexadecimal digest of the whole uncompressed file, header included
    """

    array: NDArray[Any]
    sha256: str


@dataclass(frozen=True)
class _Content:
    """Uncompressed bytes as a stream, and the number of bytes that are stored."""

    stream: io.BufferedIOBase
    stored_bytes: int
    compressed: bool
    where: str


def read_idx(path: Path) -> IdxFile:
    """Read an IDX file; whether it is gzipped is told by its first bytes, not by its name.

    Raises
    ------
    DataError : it is missing, damaged, or does not hold exactly what its header declares
    """
    with reading(str(path)), path.open("rb") as file, _opened(file, str(path)) as content:
        return _read(content)


def read_idx_header(path: Path) -> ArrayHeader:
    """Read type and shape of an IDX file, checked as far as that goes without reading the items.

    Raises
    ------
    DataError : it is missing, or its beginning is not that of an IDX file of its size
    """
    with reading(str(path)), path.open("rb") as file, _opened(file, str(path)) as content:
        header, _ = _read_header(content)
        return header


def parse_idx(data: bytes, where: str) -> NDArray[Any]:
    """Read the bytes of an IDX file, raw or gzipped; `where` names them in an error message.

    Raises
    ------
    DataError : they are damaged, or not exactly what their header declares
    """
    with reading(where), _opened(io.BytesIO(data), where) as content:
        return _read(content).array


@contextmanager
def _opened(file: io.BufferedIOBase, where: str) -> Iterator[_Content]:
    stored_bytes = file.seek(0, os.SEEK_END)
    file.seek(0)
    compressed = file.read(2) == _GZIP_START
    file.seek(0)
    if not compressed:
        yield _Content(file, stored_bytes, compressed, where)
        return
    with gzip.GzipFile(fileobj=file, mode="rb") as stream:
        yield _Content(stream, stored_bytes, compressed, where)


def _read(content: _Content) -> IdxFile:
    header, header_bytes = _read_header(content)
    digest = hashlib.sha256(header_bytes)
    array = read_array(content.stream, header, content.where, watch=digest.update)
    # at the end of a gzip this also compares its checksum
    if content.stream.read(1):
        raise DataError(
            f"{content.where}: goes on after the {header.nbytes} bytes of data that its header "
            f"declares (shape {header.shape}, {header.dtype.name}); put a good copy in its place"
        )
    return IdxFile(array, digest.hexdigest())


def _read_header(content: _Content) -> tuple[ArrayHeader, bytes]:
    """Read and check the header; return it with its bytes."""
    where = content.where
    magic = content.stream.read(4)
    dtype = _item_type(magic, content)
    rank = magic[3]
    if not 1 <= rank <= _MAX_RANK:
        raise DataError(f"{where}: expected an IDX file of rank 1 to {_MAX_RANK}, got rank {rank}")
    dimensions = content.stream.read(4 * rank)
    if len(dimensions) < 4 * rank:
        raise DataError(
            f"{where}: ends inside its header, after {4 + len(dimensions)} of {4 + 4 * rank} bytes; "
            "put a complete copy in its place"
        )
    header = ArrayHeader(dtype, struct.unpack(f">{rank}I", dimensions))
    if 0 in header.shape:
        raise DataError(f"{where}: holds nothing, its shape is {header.shape}")
    _check_declared_size(header, 4 + 4 * rank + header.nbytes, content)
    return header, magic + dimensions


def _item_type(magic: bytes, content: _Content) -> np.dtype[Any]:
    if len(magic) < 4 or magic[:2] != b"\0\0":
        start = magic + content.stream.read(60)
        inside = " inside the gzip" if content.compressed else ""
        raise DataError(
            f"{content.where}: expected an IDX file, raw or gzipped, got {describe_start(start)}{inside}; "
            "put a good copy in its place"
        )
    if magic[2] not in _ITEM_TYPES:
        codes = ", ".join(f"0x{code:02x}" for code in _ITEM_TYPES)
        raise DataError(f"{content.where}: expected an IDX item type ({codes}), got 0x{magic[2]:02x}")
    return np.dtype(_ITEM_TYPES[magic[2]])


def _check_declared_size(header: ArrayHeader, declared_bytes: int, content: _Content) -> None:
    if content.compressed:
        check_size(content.where, declared_bytes, compressed=content.stored_bytes)
        return
    if content.stored_bytes != declared_bytes:
        relation = "ends early" if content.stored_bytes < declared_bytes else "is too long"
        raise DataError(
            f"{content.where}: {relation}: its header declares {declared_bytes} bytes "
            f"(shape {header.shape}, {header.dtype.name}), it has {content.stored_bytes}; "
            "put a good copy in its place"
        )
    check_size(content.where, declared_bytes)
