"""The pictures of a file, whatever its format is; the content tells it, not the name."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from cnncli.data.idx import read_idx
from cnncli.data.pictures.pgm import is_netpbm, read_pgm
from cnncli.data.pictures.photo import PHOTO_STARTS, read_photo
from cnncli.data.pictures.stack import array_as_images, read_npy_images, white_of
from cnncli.data.streams import describe_start, reading
from cnncli.errors import DataError

FORMATS = "PNG, JPEG, PGM, .npy or IDX"

_NPY_START = b"\x93NUMPY"
_GZIP_START = b"\x1f\x8b"
_IDX_START = b"\0\0"
_INDEXED = re.compile(r"(.+):([0-9]{1,12})", re.DOTALL)


@dataclass(frozen=True, eq=False)
class Pictures:
    """Some or all pictures of a file.

    Attributes
    ----------
    path : of the file
    images : ndarray of shape (N, C, H, W), integers or floats as they are stored
    white : the value that stands for white; None where an array holds other things than 0 to white
    is_array : whether the file is an array of numbers in units of its own, and no picture format
    first : index in the file of the first of them
    n_stored : number of pictures in the file
    """

    path: Path
    images: NDArray[Any]
    white: float | None
    is_array: bool
    first: int = 0
    n_stored: int = 1

    def where(self, place: int) -> str:
        """Name one of the pictures: by the file, and by its index where there are several."""
        return str(self.path) if self.n_stored == 1 else f"{self.path}:{self.first + place}"


def read_pictures(name: str, image_shape: tuple[int, int, int], limit: int) -> Pictures:
    """Read the pictures of a file.

    Parameters
    ----------
    name : path of a file, or ``FILE:INDEX`` for one picture of a file that holds several
    image_shape : (C, H, W) that the network takes. Arrays of three axes are (C, H, W) or (N, H, W)
        by it, and photos become grey or RGB
    limit : most pictures to take, unless one is named

    Raises
    ------
    DataError : the file is missing, damaged, of another format, too large, or has no such picture
    """
    path, index = _split_index(name)
    pictures = _read_all(path, image_shape)
    n_stored = len(pictures.images)
    if index is None:
        return replace(pictures, images=pictures.images[:limit], n_stored=n_stored)
    if index >= n_stored:
        raise DataError(f"{name}: expected an index below {n_stored}, the number of pictures in the file")
    return replace(pictures, images=pictures.images[index : index + 1], first=index, n_stored=n_stored)


def _split_index(name: str) -> tuple[Path, int | None]:
    indexed = _INDEXED.fullmatch(name)
    with reading(name):
        # a name may end in a colon and digits
        if indexed is None or Path(name).exists():
            return Path(name), None
    return Path(indexed[1]), int(indexed[2])


def _read_all(path: Path, image_shape: tuple[int, int, int]) -> Pictures:
    where = str(path)
    with reading(where), path.open("rb") as file:
        start = file.read(64)
    if start.startswith(PHOTO_STARTS):
        image, white = read_photo(path, image_shape[0])
        return Pictures(path, image[None], white, is_array=False)
    if is_netpbm(start):
        plane, white = read_pgm(path)
        return Pictures(path, plane[None, None], white, is_array=False)
    if start.startswith(_NPY_START):
        images = read_npy_images(path, image_shape)
    elif start.startswith((_IDX_START, _GZIP_START)):
        images = array_as_images(read_idx(path).array, image_shape, where)
    else:
        raise DataError(f"{where}: expected a picture, {FORMATS}, got {describe_start(start)}")
    return Pictures(path, images, white_of(images), is_array=True)
