"""Arrays in one .npz file: written all or not at all, read without trusting the file."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from cnncli.data import atomic_files
from cnncli.data.npy import NpyHeaderError, read_npy_header
from cnncli.data.streams import briefly
from cnncli.data.zip_names import fault_of_names, shown_name


class ArchiveError(Exception):
    """The file is not an archive that `write_arrays` wrote; the message is the reason alone."""


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write named arrays as an uncompressed .npz; equal arrays give equal bytes."""

    def write(file: IO[bytes]) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, array in arrays.items():
                # ZipInfo's own date is fixed, so the time of day never enters the file
                with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry:
                    npy_format.write_array(entry, np.asarray(array), allow_pickle=False)

    atomic_files.write_atomically(path, write)


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
        raise ArchiveError(f"damaged or not a zip file: {briefly(error)}") from None
    except (ValueError, TypeError, SyntaxError, OverflowError, KeyError) as error:
        raise ArchiveError(f"an array in it cannot be read: {briefly(error)}") from None


def _check_entries(entries: list[zipfile.ZipInfo], file_size: int) -> None:
    fault = fault_of_names([entry.filename for entry in entries])
    if fault is not None:
        raise ArchiveError(fault)
    for entry in entries:
        if not entry.filename.endswith(".npy"):
            raise ArchiveError(f"unexpected entry {shown_name(entry.filename)}")
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 0x1:
            raise ArchiveError(f"entry {shown_name(entry.filename)} is compressed or encrypted")
        if entry.file_size != entry.compress_size or entry.file_size > file_size:
            raise ArchiveError(f"entry {shown_name(entry.filename)} has an impossible size")
    # entries that overlap would give the same bytes many times over
    if sum(entry.file_size for entry in entries) > file_size:
        raise ArchiveError("its entries are said to be longer than the file")


def _read_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> NDArray[Any]:
    content = archive.read(entry)  # checks the CRC
    where = f"entry {shown_name(entry.filename)}"
    try:
        header = read_npy_header(io.BytesIO(content))
    except NpyHeaderError as error:
        raise ArchiveError(f"{where} {error}") from None
    if header.dtype.hasobject:
        raise ArchiveError(f"{where} holds Python objects, which could run code")
    data = content[header.n_bytes :]
    if header.nbytes != len(data):
        raise ArchiveError(f"{where} is not as long as its header says")
    order: Literal["C", "F"] = "F" if header.fortran_order else "C"
    array = np.frombuffer(data, dtype=header.dtype).reshape(header.shape, order=order)
    return array.astype(header.dtype.newbyteorder("="), order="C", copy=True)
