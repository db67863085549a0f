"""Arrays in the files of NumPy, .npy and .npz, read without trusting what they say of their size.

NumPy reads the arrays, and never a pickle. Before it does, the directory of the zip file and the header of
the array are held against each other: whatever a file declares, no more is allocated than it can hold.
"""

from __future__ import annotations

import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from cnncli.data import atomic_files
from cnncli.data.reading import ArrayHeader, briefly, check_size, describe_start, reading
from cnncli.errors import DataError

NPY_START = b"\x93NUMPY"
ENCRYPTED = 0x1
# np.save pads the header of any array of numbers to 128 bytes or little more
MAX_HEADER_BYTES = 10_000
# NumPy 2 has no arrays of more axes
MAX_RANK = 64


def read_npy_header(path: Path) -> ArrayHeader:
    """Read type and shape of the array in an .npy file.

    Raises
    ------
    DataError : it is missing, damaged, or another kind of file
    """
    with reading(str(path)), path.open("rb") as file:
        return _read_header(file, path.stat().st_size, str(path))


def read_npy(path: Path) -> NDArray[Any]:
    """Read an .npy file; see `read_npy_header` for errors."""
    with reading(str(path)), path.open("rb") as file:
        return _read_array(file, path.stat().st_size, str(path))


class Npz:
    """The arrays of an .npz file.

    Attributes
    ----------
    names : of the arrays, as they were given to ``np.savez``
    is_compressed : whether any array is
    """

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self._path, self._archive = path, archive
        self._entries = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        self.names = list(self._entries)
        self.is_compressed = any(info.compress_type for info in archive.infolist())

    def listing(self) -> str:
        """List the first names, for a message."""
        return ", ".join(map(_shown, self.names[:10])) + (", ..." if len(self.names) > 10 else "") or "none"

    def where(self, name: str) -> str:
        """Name the file and the array, for a message."""
        return f"{self._path}: {_shown(name)}"

    def header(self, name: str) -> ArrayHeader:
        """Read type and shape of one array."""
        with self._opened(name) as (stream, size):
            return _read_header(stream, size, self.where(name))

    def read(self, name: str) -> NDArray[Any]:
        """Read one array: fresh, writable, in native byte order."""
        with self._opened(name) as (stream, size):
            array = _read_array(stream, size, self.where(name))
            stream.read(1)  # compares the checksum of the entry
            return array

    @contextmanager
    def _opened(self, name: str) -> Iterator[tuple[IO[bytes], int]]:
        info = self._entries[name]
        with _zip_errors(self.where(name)):
            _check_entry(info, self._path.stat().st_size, self.where(name))
            with self._archive.open(info) as stream:
                yield stream, info.file_size


@contextmanager
def open_npz(path: Path) -> Iterator[Npz]:
    """Open an .npz file.

    Raises
    ------
    DataError : it cannot be opened, is another kind of file, or damaged; so may whatever is read of it
    """
    with _zip_errors(str(path)), path.open("rb") as file:
        start = file.read(64)
        if not start.startswith(b"PK"):
            raise DataError(f"{path}: expected an .npz file, got {describe_start(start)}")
        with zipfile.ZipFile(file) as archive:
            _check_names(archive.namelist(), str(path))
            # entries that overlap would give the same bytes many times over
            if sum(info.compress_size for info in archive.infolist()) > path.stat().st_size:
                raise DataError(f"{path}: is damaged: its entries are said to be longer than the file")
            yield Npz(path, archive)


def write_npz(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write named arrays as an uncompressed .npz, whole or not at all; equal arrays give equal bytes."""

    def write(file: IO[bytes]) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, array in arrays.items():
                # ZipInfo's own date is fixed, so the time of day never enters the file
                with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry:
                    npy_format.write_array(entry, np.asarray(array), allow_pickle=False)

    atomic_files.write_atomically(path, write)


def _read_header(stream: IO[bytes], size: int, where: str) -> ArrayHeader:
    """Read the header of an array that is stored in `size` bytes, and compare the two."""
    start = stream.read(64)
    if not start.startswith(NPY_START):
        raise DataError(f"{where}: expected an array as numpy.save writes it, got {describe_start(start)}")
    stream.seek(0)
    with _format_errors(where):
        if int.from_bytes(start[8 : 10 if start[6] == 1 else 12], "little") > MAX_HEADER_BYTES:
            raise ValueError("it is too long")
        version = npy_format.read_magic(stream)
        read = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}
        shape, _, dtype = read[version](stream)
        # a type such as "(2,3)f4" would add axes to those in the shape
        if dtype.subdtype or len(shape) > MAX_RANK or not all(0 <= n < 2**63 for n in shape):
            raise ValueError("it describes no array")
        header = ArrayHeader(dtype, shape)
    if dtype.hasobject:
        raise DataError(f"{where}: holds Python objects, expected numbers; save it with a numeric dtype")
    follow = size - stream.tell()
    if header.nbytes != follow:
        raise DataError(
            f"{where}: is damaged: its header declares {header.nbytes} bytes of data (shape "
            f"{_shown(shape)}, {dtype.name}), {follow} follow; put a good copy in its place"
        )
    check_size(where, header.nbytes)
    return header


def _read_array(stream: IO[bytes], size: int, where: str) -> NDArray[Any]:
    _read_header(stream, size, where)
    stream.seek(0)
    with _format_errors(where):
        array: NDArray[Any] = npy_format.read_array(stream, allow_pickle=False)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


@contextmanager
def _format_errors(where: str) -> Iterator[None]:
    """Turn what NumPy says of an array that is none into `DataError`; it also warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            yield
        except (OSError, MemoryError, EOFError, zipfile.BadZipFile):
            raise  # `reading` knows these
        except Exception as error:
            raise DataError(f"{where}: is damaged: its header cannot be read") from error


@contextmanager
def _zip_errors(where: str) -> Iterator[None]:
    """Turn what a damaged zip file can raise into `DataError`."""
    with reading(where):
        try:
            yield
        except (RuntimeError, ValueError, OverflowError, NotImplementedError) as error:
            # offsets before the start, names in no encoding, methods from the future
            if isinstance(error, DataError):
                raise
            raise DataError(
                f"{where}: is damaged ({briefly(error)}); put a good copy in its place"
            ) from error


def _check_entry(info: zipfile.ZipInfo, file_size: int, where: str) -> None:
    """Check what the zip file's directory says about an entry, before it is opened."""
    if info.flag_bits & ENCRYPTED:
        raise DataError(f"{where}: is encrypted; numpy.savez writes files that can be read")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataError(
            f"{where}: is compressed by zip method {info.compress_type}; expected a file of numpy.savez or "
            "numpy.savez_compressed"
        )
    is_compressed = info.compress_type == zipfile.ZIP_DEFLATED
    if info.compress_size > file_size or (not is_compressed and info.compress_size != info.file_size):
        raise DataError(
            f"{where}: is damaged: {info.file_size} bytes are said to be stored as {info.compress_size} in a "
            f"file of {file_size}; put a good copy in its place"
        )
    check_size(where, info.file_size, compressed=info.compress_size if is_compressed else None)


def _check_names(names: list[str], where: str) -> None:
    """Refuse names that were made to mislead, or are damaged.

    Nothing is ever unpacked to a path of that name, and of two entries with one name every reader takes
    another.
    """
    for name, count in Counter(names).items():
        parts = name.replace("\\", "/").split("/")
        if not name.isprintable() or parts[0] == "" or ".." in parts or parts[0].endswith(":"):
            raise DataError(f"{where}: is damaged: an entry has the name {_shown(name)!r}")
        if count > 1:
            raise DataError(f"{where}: is damaged: two entries have the same name, {_shown(name)!r}")


def _shown(value: object) -> str:
    try:
        text = str(value)
    except ValueError:  # Python does not write out integers of thousands of digits
        return "beyond all bounds"
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:80])
    return text if len(text) <= 60 else f"{text[:57]}..."
