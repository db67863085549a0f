"""The header of an array in the .npy format, read without trusting it.

NumPy's own reader writes warnings, raises a dozen kinds of exception, and takes any size for granted
(`numpy.lib.format` describes the format).
"""

from __future__ import annotations

import ast
import struct
import warnings
from dataclasses import dataclass
from io import BufferedIOBase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cnncli.data.source import ArrayHeader
from cnncli.data.streams import describe_start, read_array

MAGIC = b"\x93NUMPY"

# np.save pads the header of any array of numbers to 128 bytes or little more
_MAX_HEADER_BYTES = 10_000
# NumPy 2 has no arrays of more axes, and no machine one of more items along one
_MAX_RANK = 64
_MAX_LENGTH = 2**63 - 1
_MAX_SHOWN = 80
_UNREADABLE = "is damaged: its header cannot be read"


class NpyHeaderError(Exception):
    """The bytes are not the header of an array; the message goes on after the name of its place."""


@dataclass(frozen=True)
class NpyHeader(ArrayHeader):
    """Type and shape of an array as it is stored, and what stands before its items.

    Attributes
    ----------
    fortran_order : whether the first axis varies fastest
    n_bytes : length of the header itself
    """

    fortran_order: bool
    n_bytes: int


def read_npy_header(stream: BufferedIOBase) -> NpyHeader:
    """Read the header of an array and leave the stream behind it.

    The type may still be one of Python objects (``dtype.hasobject``), whose items are pickled.

    Raises
    ------
    NpyHeaderError : it is not one that NumPy writes
    """
    start = stream.read(8)
    if not start.startswith(MAGIC):
        raise NpyHeaderError(f"expected an array as numpy.savez writes it, got {describe_start(start)}")
    if len(start) < 8 or start[6] not in (1, 2, 3) or start[7] != 0:
        raise NpyHeaderError(_UNREADABLE)
    length_bytes = stream.read(2 if start[6] == 1 else 4).ljust(4, b"\0")
    length: int = struct.unpack("<I", length_bytes)[0]
    text = stream.read(length) if length <= _MAX_HEADER_BYTES else b""
    entries = _entries(text) if len(text) == length else None
    if entries is None:
        raise NpyHeaderError(_UNREADABLE)
    dtype, shape, fortran_order = entries
    if not _is_shape(shape):
        raise NpyHeaderError(f"is damaged: its header promises the shape {_shown(shape)}")
    return NpyHeader(dtype, shape, fortran_order, (10 if start[6] == 1 else 12) + length)


def read_npy_items(stream: BufferedIOBase, header: NpyHeader, where: str) -> NDArray[Any]:
    """Read what follows a header into a fresh, writable array of native byte order.

    Raises
    ------
    DataError : the stream ends before
    """
    if not header.fortran_order:
        return read_array(stream, header, where)
    reversed_axes: NDArray[Any] = read_array(stream, ArrayHeader(header.dtype, header.shape[::-1]), where)
    return np.transpose(reversed_axes)


def _entries(text: bytes) -> tuple[np.dtype[Any], Any, bool] | None:
    """Take the text of a header apart; None where it is not one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            entries = ast.literal_eval(text.decode("utf-8"))
            descr, fortran_order = entries["descr"], entries["fortran_order"]
            is_known = entries.keys() == {"descr", "fortran_order", "shape"}
            if not is_known or not isinstance(descr, (str, list)) or not isinstance(fortran_order, bool):
                return None
            dtype = np.dtype(descr)
            # a type such as "(2,3)f4" would add axes to those in the shape
            return None if dtype.subdtype else (dtype, entries["shape"], fortran_order)
    except Exception:  # Python and NumPy have many ways to complain of nonsense
        return None


def _is_shape(shape: object) -> bool:
    return (
        isinstance(shape, tuple)
        and len(shape) <= _MAX_RANK
        and all(type(length) is int and 0 <= length <= _MAX_LENGTH for length in shape)
    )


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python does not write out integers of thousands of digits
        return "of numbers beyond all bounds"
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}..."
