"""A data set as one .npz file with x_train, y_train, x_test and y_test.

Images are (N, H, W), (N, C, H, W), or (N, H, W, C). Channels count as last only where nothing else
is likely: the last axis has length 1, 3 or 4, and the second axis has not.

NumPy's own reader trusts what a file says about its sizes; here the directory of the zip file and
the header of each array are held against each other before anything large is read.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from numpy.typing import NDArray

from cnncli.data.npy import NpyHeader, NpyHeaderError, read_npy_header, read_npy_items
from cnncli.data.source import KINDS, ArrayHeader, Kind, Part
from cnncli.data.streams import briefly, check_size, describe_start, reading
from cnncli.data.zip_names import fault_of_names, shown_name
from cnncli.errors import DataError

_CHANNEL_COUNTS = (1, 3, 4)
_ENCRYPTED = 0x1


class NpzFile:
    """Reads a data set from an .npz file.

    Parameters
    ----------
    path : the file
    parts : which of them are needed

    Raises
    ------
    DataError : it is not an .npz file, or entries are missing; all of them are named
    """

    def __init__(self, path: Path, parts: Sequence[Part]) -> None:
        self._path = path
        with _zip_file(path) as archive:
            names = archive.namelist()
        fault = fault_of_names(names)
        if fault is not None:
            raise DataError(f"{path}: {fault}; put a good copy in its place")
        present = [name.removesuffix(".npy") for name in names if name.endswith(".npy")]
        needed = [_entry_name(part, kind) for part in parts for kind in KINDS]
        missing = [name for name in needed if name not in present]
        if missing:
            raise DataError(
                f"{path}: has no {', '.join(missing)}; expected the arrays x_train, y_train, x_test and "
                f"y_test, it holds {_some(present)}"
            )

    def header(self, part: Part, kind: Kind) -> ArrayHeader:
        """Read type and shape of one array, channels first."""
        with self._entry(part, kind) as (_, header):
            dtype, shape = header.dtype, header.shape
        if kind == "images" and _channels_are_last(shape):
            N, H, W, C = shape
            shape = (N, C, H, W)
        return ArrayHeader(dtype, shape)

    def read(self, part: Part, kind: Kind) -> NDArray[Any]:
        """Read one array, channels first."""
        with self._entry(part, kind) as (stream, header):
            array = read_npy_items(stream, header, self.where(part, kind))
        if kind == "images" and _channels_are_last(array.shape):
            array = array.transpose(0, 3, 1, 2)
        return array

    def where(self, part: Part, kind: Kind) -> str:
        """Name the file and the array."""
        return f"{self._path}: {_entry_name(part, kind)}"

    @contextmanager
    def _entry(self, part: Part, kind: Kind) -> Iterator[tuple[io.BufferedIOBase, NpyHeader]]:
        """Open one array behind its header, the sizes checked."""
        where = self.where(part, kind)
        with _zip_file(self._path) as archive, _zip_errors(where):
            info = archive.getinfo(f"{_entry_name(part, kind)}.npy")
            _check_entry(info, self._path.stat().st_size, where)
            with cast(zipfile.ZipExtFile, archive.open(info)) as stream:
                header = _read_header(stream, where)
                if header.n_bytes + header.nbytes != info.file_size:
                    raise DataError(
                        f"{where}: is damaged: its header promises {header.nbytes} bytes of data (shape "
                        f"{header.shape}, {header.dtype.name}), {info.file_size - header.n_bytes} follow; "
                        "put a good copy in its place"
                    )
                yield stream, header


def _entry_name(part: Part, kind: Kind) -> str:
    return f"{'x' if kind == 'images' else 'y'}_{part}"


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(shown_name(name).strip("'") for name in names[:10])
    return f"{shown}, ..." if len(names) > 10 else shown or "none"


def _channels_are_last(shape: tuple[int, ...]) -> bool:
    return len(shape) == 4 and shape[3] in _CHANNEL_COUNTS and shape[1] not in _CHANNEL_COUNTS


@contextmanager
def _zip_errors(where: str) -> Iterator[None]:
    """Turn what a damaged zip file can raise into `DataError`."""
    with reading(where):
        try:
            yield
        except (RuntimeError, ValueError, OverflowError) as error:
            # offsets before the start, names in no encoding, methods from the future
            raise DataError(
                f"{where}: is damaged ({briefly(error)}); put a good copy in its place"
            ) from error


@contextmanager
def _zip_file(path: Path) -> Iterator[zipfile.ZipFile]:
    with _zip_errors(str(path)), path.open("rb") as file:
        start = file.read(64)
        if not start.startswith(b"PK"):
            raise DataError(f"{path}: expected an .npz file, got {describe_start(start)}")
        try:
            archive = zipfile.ZipFile(file)
        except zipfile.BadZipFile as error:
            raise DataError(
                f"{path}: is an incomplete or damaged .npz file ({briefly(error)}); "
                "put a good copy in its place"
            ) from error
        with archive:
            yield archive


def _check_entry(info: zipfile.ZipInfo, stored_bytes: int, where: str) -> None:
    """Check what the zip file's directory says about an entry, before it is opened."""
    if info.flag_bits & _ENCRYPTED:
        raise DataError(f"{where}: is encrypted; numpy.savez writes files that can be read")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataError(
            f"{where}: is compressed by zip method {info.compress_type}; expected a file of numpy.savez or "
            "numpy.savez_compressed"
        )
    compressed = info.compress_type == zipfile.ZIP_DEFLATED
    if info.compress_size > stored_bytes or (not compressed and info.compress_size != info.file_size):
        raise DataError(
            f"{where}: is damaged: {info.file_size} bytes are said to be stored as {info.compress_size} in a "
            f"file of {stored_bytes}; put a good copy in its place"
        )
    check_size(where, info.file_size, compressed=info.compress_size if compressed else None)


def _read_header(stream: io.BufferedIOBase, where: str) -> NpyHeader:
    try:
        header = read_npy_header(stream)
    except NpyHeaderError as error:
        raise DataError(f"{where}: {error}") from error
    if header.dtype.hasobject:
        raise DataError(
            f"{where}: holds Python objects, expected numbers; save it with a numeric dtype "
            "(images of different sizes cannot be one array)"
        )
    return header
