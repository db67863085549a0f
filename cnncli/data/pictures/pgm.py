"""PGM, the grey pictures of Netpbm: plain (P2) and raw (P5), of 8 or 16 bits.

After the magic number stand width, height and the value of white as decimal numbers with white space
between them, one white space more, and the rows from the top (https://netpbm.sourceforge.net/doc/pgm.html).
"""

from __future__ import annotations

import re
from io import BufferedIOBase
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cnncli.data.pictures.limits import MAX_PIXELS, check_pixels
from cnncli.data.source import ArrayHeader
from cnncli.data.streams import read_array, reading
from cnncli.errors import DataError

MAX_WHITE = 65535

_KINDS = {b"1": "a bitmap (PBM)", b"3": "a colour picture (PPM)", b"4": "a bitmap (PBM)"}
_KINDS |= {b"6": "a colour picture (PPM)", b"7": "a PAM picture"}
_WHITE_SPACE = b" \t\n\v\f\r"
_MAX_HEADER_BYTES = 10_000
_COMMENT = re.compile(rb"#[^\n\r]*")
_NO_NUMBERS = re.compile(rb"[^0-9 \t\n\v\f\r]|[0-9]{6}")


def is_netpbm(start: bytes) -> bool:
    """Tell from the first bytes whether a file is one of Netpbm's formats."""
    return re.match(rb"P[1-7][ \t\n\v\f\r#]", start) is not None


def read_pgm(path: Path) -> tuple[NDArray[Any], float]:
    """Read a PGM picture.

    Returns
    -------
    plane : ndarray of shape (H, W), uint8 or uint16
    white : the value of white, from 1 to 65535

    Raises
    ------
    DataError : it is missing, damaged, no PGM, or goes on behind its pixels
    """
    where = str(path)
    with reading(where), path.open("rb") as file:
        kind = file.read(2)[1:]
        if kind not in (b"2", b"5"):
            raise DataError(
                f"{where}: expected a grey PGM (P2 or P5), got P{kind.decode('latin1')}, "
                f"{_KINDS.get(kind, 'no PGM')}; convert it to PGM or PNG"
            )
        W, H, white = (_header_number(file, name, where) for name in ("width", "height", "value of white"))
        check_pixels(W, H, where)
        if not 1 <= white <= MAX_WHITE:
            raise DataError(f"{where}: expected a value of white from 1 to {MAX_WHITE}, got {white}")
        plane = _raw(file, (H, W), white, where) if kind == b"5" else _plain(file, (H, W), where)
    highest = int(plane.max())
    if highest > white:
        raise DataError(f"{where}: is damaged: it says that white is {white}, and holds a pixel of {highest}")
    return plane.astype(np.uint16 if white > 255 else np.uint8, copy=False), float(white)


def _header_number(file: BufferedIOBase, name: str, where: str) -> int:
    """Read one number of the header and the white space behind it."""
    digits = b""
    for _ in range(_MAX_HEADER_BYTES):
        byte = file.read(1)
        if byte == b"#" and not digits:
            file.readline(_MAX_HEADER_BYTES)
        elif byte and byte in _WHITE_SPACE:
            if digits:
                return int(digits)
        elif byte.isdigit() and len(digits) < 10:
            digits += byte
        else:
            break
    raise DataError(f"{where}: is damaged: the header of a PGM has no {name} where it should stand")


def _raw(file: BufferedIOBase, shape: tuple[int, int], white: int, where: str) -> NDArray[Any]:
    plane = read_array(file, ArrayHeader(np.dtype(">u2" if white > 255 else "u1"), shape), where)
    if file.read(1):
        raise DataError(f"{where}: goes on behind its {shape[1]} x {shape[0]} pixels; save one picture alone")
    return plane


def _plain(file: BufferedIOBase, shape: tuple[int, int], where: str) -> NDArray[Any]:
    # a number of at most five digits and one white space for each pixel, and room for comments
    most = 6 * MAX_PIXELS
    text = file.read(most + 1)
    if len(text) > most:
        raise DataError(f"{where}: expected at most {most:,} bytes of pixels; save it as a raw PGM (P5)")
    text = _COMMENT.sub(b"", text)
    wrong = _NO_NUMBERS.search(text)
    if wrong is not None:
        raise DataError(
            f"{where}: is damaged: expected pixels as numbers of at most {MAX_WHITE}, got {wrong[0]!r}"
        )
    pixels = np.fromstring(text, np.int64, sep=" ") if text.strip() else np.zeros(0, np.int64)
    H, W = shape
    if len(pixels) != H * W:
        raise DataError(f"{where}: expected {H * W} pixels, {W} x {H}, got {len(pixels)}")
    return pixels.reshape(shape)
