"""Reading arrays from files that may lie about their size, or end early."""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from gzip import BadGzipFile
from io import BufferedIOBase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cnncli.errors import DataError

MAX_BYTES = 8 * 2**30
# the most that deflate can give (zlib's technical notes); a file that declares more is damaged
MAX_DEFLATE_RATIO = 1032
# a bomb of less does no harm
HARMLESS_BYTES = 256 * 2**20
# MNIST packs to a fifth; black images with ten lit pixels of 784, to a thirtieth
MAX_IMAGE_RATIO = 100
# of what a library writes into an exception, which may quote the whole file
MAX_REASON = 200
_CHUNK_BYTES = 2**20

# How files begin that people meet where they expected data.
_KNOWN_STARTS = (
    (b"version https://git-lfs", "a Git LFS pointer, not the file itself (git lfs pull fetches it)"),
    (b"\x93NUMPY", "a single .npy array"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x89PNG", "a PNG picture"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ", "xz data"),
)


@dataclass(frozen=True)
class ArrayHeader:
    """Type and shape that a file declares for one array."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Size of the array's items in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


@contextmanager
def reading(where: str) -> Iterator[None]:
    """Turn whatever goes wrong while a file is read into a `DataError` that names it."""
    try:
        yield
    except (BadGzipFile, zipfile.BadZipFile, zlib.error, struct.error) as error:
        raise DataError(f"{where}: is damaged ({briefly(error)}); put a good copy in its place") from error
    except EOFError as error:
        raise DataError(
            f"{where}: its compressed data ends early, as after an interrupted download or copy; "
            "put a complete copy in its place"
        ) from error
    except OSError as error:
        raise DataError(f"{where}: cannot be read: {error.strerror or error}") from error
    except MemoryError as error:
        raise DataError(f"{where}: does not fit into memory") from error


def briefly(error: Exception) -> str:
    """Return the message of an exception on one short line."""
    text = "".join(c if c.isprintable() else " " for c in str(error)[: MAX_REASON + 1])
    return text if len(text) <= MAX_REASON else f"{text[: MAX_REASON - 3]}..."


def describe_start(start: bytes) -> str:
    """Say in words what a file is that begins with these bytes."""
    if not start:
        return "an empty file"
    for known, description in _KNOWN_STARTS:
        if start.startswith(known):
            return description
    if start.lstrip().startswith(b"<"):
        return "an HTML or XML page, as a failed download leaves it"
    return f"a file that begins with the bytes {start[:8].hex(' ')}"


def check_size(where: str, declared: int, *, compressed: int | None = None) -> None:
    """Refuse a size before anything of it is read or allocated.

    Parameters
    ----------
    declared : bytes that the content is said to have
    compressed : bytes that are there, if they are deflated; None if they are not
    """
    if declared > MAX_BYTES:
        raise DataError(f"{where}: declares {declared} bytes; more than {MAX_BYTES} (8 GiB) are refused")
    if compressed is not None and declared > compressed * MAX_DEFLATE_RATIO:
        raise DataError(
            f"{where}: declares {declared} bytes, more than {compressed} compressed bytes can hold; "
            "it is damaged or incomplete, put a good copy in its place"
        )
    if compressed is not None and declared > HARMLESS_BYTES and declared > compressed * MAX_IMAGE_RATIO:
        raise DataError(
            f"{where}: would unpack {compressed} bytes to {declared}, more than images do; if they are what "
            "you want, store them uncompressed"
        )


def read_array(
    stream: BufferedIOBase,
    header: ArrayHeader,
    where: str,
    watch: Callable[[memoryview], None] | None = None,
) -> NDArray[Any]:
    """Read the items that a header declares into a fresh, writable array of native byte order.

    Parameters
    ----------
    watch : called with each piece of the bytes as they stand in the file, e.g. to hash them

    Raises
    ------
    DataError : the stream ends before
    """
    buffer = np.empty(header.nbytes, np.uint8)
    pieces = buffer.data
    filled = 0
    while filled < header.nbytes:
        n_read = stream.readinto(pieces[filled : filled + _CHUNK_BYTES])
        if not n_read:
            raise DataError(
                f"{where}: ends after {filled} of the {header.nbytes} bytes of data that its header "
                f"declares (shape {header.shape}, {header.dtype.name}); put a complete copy in its place"
            )
        if watch is not None:
            watch(pieces[filled : filled + n_read])
        filled += n_read
    array: NDArray[Any] = buffer.view(header.dtype).reshape(header.shape)
    if not array.dtype.isnative:
        array = array.byteswap(inplace=True).view(header.dtype.newbyteorder("="))
    return array
