"""Arrays as pictures: one, or many in a row."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cnncli.data.npy import NpyHeaderError, read_npy_header, read_npy_items
from cnncli.data.pictures.limits import check_pixels
from cnncli.data.pictures.pgm import MAX_WHITE
from cnncli.data.streams import check_size, reading
from cnncli.errors import DataError


def read_npy_images(path: Path, image_shape: tuple[int, int, int]) -> NDArray[Any]:
    """Read the images (N, C, H, W) of an .npy file.

    Raises
    ------
    DataError : it is missing or damaged, not of numbers, or of a shape that holds no images
    """
    where = str(path)
    with reading(where), path.open("rb") as file:
        try:
            header = read_npy_header(file)
        except NpyHeaderError as error:
            raise DataError(f"{where}: {error}; save it again") from error
        if header.dtype.hasobject or header.dtype.kind not in "biuf":
            raise DataError(f"{where}: expected images of numbers, got an array of {_named(header.dtype)}")
        n_there = path.stat().st_size - header.n_bytes
        if n_there != header.nbytes:
            raise DataError(
                f"{where}: is damaged: its header promises {header.nbytes} bytes of data (shape "
                f"{_shown(header.shape)}, {header.dtype.name}), {n_there} follow; put a good copy in its "
                "place"
            )
        check_size(where, header.nbytes)
        _check_axes(header.shape, image_shape, where)
        return array_as_images(read_npy_items(file, header, where), image_shape, where)


def array_as_images(array: NDArray[Any], image_shape: tuple[int, int, int], where: str) -> NDArray[Any]:
    """Return images (N, C, H, W) of an array (H, W), (N, H, W), (C, H, W) or (N, C, H, W).

    Three axes are those of one image if they are `image_shape`.

    Raises
    ------
    DataError : it has other axes, no pixels, or too many of them
    """
    shape = array.shape
    _check_axes(shape, image_shape, where)
    if len(shape) == 3:
        array = array[None] if shape == image_shape else array[:, None]
    elif len(shape) == 2:
        array = array[None, None]
    if 0 in shape:
        raise DataError(f"{where}: holds no pixels, its shape is {_shown(shape)}")
    check_pixels(shape[-1], shape[-2], where)
    return array


def white_of(images: NDArray[Any]) -> float | None:
    """Tell the value of white from the values: 1, 255 or 65535; None where it can be none of these."""
    if images.dtype.kind == "b":
        return 1.0
    with np.errstate(invalid="ignore"):  # a signalling NaN
        lowest, highest = float(images.min()), float(images.max())
    if not (lowest >= 0 and highest <= MAX_WHITE):  # NaN is neither
        return None
    if images.dtype.kind == "f" and highest <= 1:
        return 1.0
    return 255.0 if highest <= 255 else float(MAX_WHITE)


def _check_axes(shape: tuple[int, ...], image_shape: tuple[int, int, int], where: str) -> None:
    if len(shape) not in (2, 3, 4):
        raise DataError(
            f"{where}: expected images of shape (H, W), (N, H, W), (C, H, W) or (N, C, H, W), "
            f"got {_shown(shape)}"
        )
    fits = shape[-2:] == image_shape[-2:]
    if not fits and len(shape) > 2 and shape[-1] in (3, 4) and math.prod(shape[-3:-1]) > 256:
        raise DataError(
            f"{where}: the shape {_shown(shape)} looks like (H, W, C), with the colours last; expected "
            "(C, H, W), as np.moveaxis(x, -1, -3) gives, or for grey the mean of the colours, "
            "x[..., :3].mean(axis=-1)"
        )


def _named(dtype: np.dtype[Any]) -> str:
    text = "Python objects" if dtype.hasobject else str(dtype)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _shown(shape: tuple[int, ...]) -> str:
    text = str(shape)
    return text if len(text) <= 80 else f"{text[:77]}..."
