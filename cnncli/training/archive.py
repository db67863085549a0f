"""Arrays in one .npz file: written all or not at all, read without trusting the file."""

from __future__ import annotations

import errno
import glob
import io
import math
import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

# what file systems say that have no hard links
_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


class ArchiveError(Exception):
    """The file is not an archive that `write_arrays` wrote; the message is the reason alone."""


def write_atomically(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    """Write a file beside its place, flush it to the disk, and rename it: old or new, never half.

    Raises
    ------
    OSError : the file cannot be written; what stood at `path` is untouched
    """
    temporary = _temporary_beside(path)
    try:
        _write_through(temporary, write)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


def write_text_exclusively(path: Path, text: str) -> None:
    """Write a UTF-8 text where nothing stands yet: the whole file appears at once, or none.

    Raises
    ------
    FileExistsError : something stands there; of several programs at once only one succeeds
    OSError : the file cannot be written; nothing is left behind
    """
    temporary = _temporary_beside(path)
    try:
        _write_through(temporary, lambda file: _write_utf8(file, text))
        try:
            os.link(temporary, path)  # unlike a rename, it never replaces anything
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            _write_new(path, text)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_directory(path.parent)


def remove_temporaries(path: Path) -> None:
    """Remove what a program that was killed while it wrote `path` left beside it."""
    for temporary in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        temporary.unlink(missing_ok=True)


def _temporary_beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


def _write_through(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    """Write a file and wait until it is on the disk."""
    with path.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())


def _write_new(path: Path, text: str) -> None:
    with path.open("xb") as file:
        try:
            _write_utf8(file, text)
            file.flush()
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def _write_utf8(file: IO[bytes], text: str) -> None:
    file.write(text.encode("utf-8"))


def write_text_atomically(path: Path, text: str) -> None:
    """Write a UTF-8 text as `write_atomically` does."""
    write_atomically(path, lambda file: _write_utf8(file, text))


def _sync_directory(directory: Path) -> None:
    # without this a power cut may undo the rename; Windows has no such call
    if os.name == "posix":
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write named arrays as an uncompressed .npz; equal arrays give equal bytes."""

    def write(file: IO[bytes]) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, array in arrays.items():
                # ZipInfo's own date is fixed, so the time of day never enters the file
                with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry:
                    npy_format.write_array(entry, np.asarray(array), allow_pickle=False)

    write_atomically(path, write)


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read an .npz that `write_arrays` wrote.

    Entries must be stored uncompressed and as long as their headers say, so nothing can unpack to
    more than the file's own size; object arrays are refused unread.

    Raises
    ------
    ArchiveError : it is another kind of file, or damaged
    OSError : it cannot be opened
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            _check_entries(entries, path.stat().st_size)
            return {entry.filename[: -len(".npy")]: _read_entry(archive, entry) for entry in entries}
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise ArchiveError(f"damaged or not a zip file: {error}") from None
    except (ValueError, TypeError, SyntaxError, OverflowError, KeyError) as error:
        raise ArchiveError(f"an array in it cannot be read: {error}") from None


def _check_entries(entries: list[zipfile.ZipInfo], file_size: int) -> None:
    names = [entry.filename for entry in entries]
    if len(set(names)) != len(names):
        raise ArchiveError("two entries have the same name")
    for entry in entries:
        if not entry.filename.endswith(".npy"):
            raise ArchiveError(f"unexpected entry {entry.filename!r}")
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 0x1:
            raise ArchiveError(f"entry {entry.filename!r} is compressed or encrypted")
        if entry.file_size != entry.compress_size or entry.file_size > file_size:
            raise ArchiveError(f"entry {entry.filename!r} has an impossible size")


def _read_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> NDArray[Any]:
    content = archive.read(entry)  # checks the CRC
    file = io.BytesIO(content)
    version = npy_format.read_magic(file)
    read_header = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}
    if version not in read_header:
        raise ArchiveError(f"entry {entry.filename!r} has an unknown format version")
    shape, fortran_order, dtype = read_header[version](file)
    if dtype.hasobject:
        raise ArchiveError(f"entry {entry.filename!r} holds Python objects, which could run code")
    data = content[file.tell() :]
    if math.prod(shape) * dtype.itemsize != len(data):
        raise ArchiveError(f"entry {entry.filename!r} is not as long as its header says")
    array = np.frombuffer(data, dtype=dtype).reshape(shape, order="F" if fortran_order else "C")
    return array.astype(dtype.newbyteorder("="), order="C", copy=True)
