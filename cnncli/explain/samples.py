"""The arrays that a walk-through starts from, each with the lines of NumPy that make it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cnncli.data import DownloadListener, load_split
from cnncli.data.numpy_files import read_npy, read_npy_header
from cnncli.data.reading import ArrayHeader
from cnncli.errors import DataError
from cnncli.explain.walkthrough import Array

# of an array or of an im2col matrix: 40 MB in float64, and a page has several of them
MOST_NUMBERS = 5_000_000
# sums and products of a few millions of these are still finite
LARGEST = 1e100
RANDOM_BELOW = 10


class Sample(NamedTuple):
    """An array, the code that makes it, and what there is to say of it.

    Attributes
    ----------
    values : float64
    code : may use ``np``; sets the variable that it is given for
    remark : a sentence, or empty
    is_picture : whether it is drawn as well
    """

    values: Array
    code: tuple[str, ...]
    remark: str = ""
    is_picture: bool = False


def count_from(start: int, name: str, shape: tuple[int, ...]) -> Sample:
    """Count in row-major order, so that every number tells its place."""
    stop = start + math.prod(shape)
    bounds = f"{stop}.0" if start == 0 else f"{start}.0, {stop}"
    values = np.arange(start, stop, dtype=np.float64).reshape(shape)
    return Sample(values, (f"{name} = np.arange({bounds}).reshape{shape}",))


def zeros(name: str, shape: tuple[int, ...]) -> Sample:
    """Take zeros."""
    return Sample(np.zeros(shape), (f"{name} = np.zeros({shape})",))


def draw(name: str, shape: tuple[int, ...], seed: int) -> Sample:
    """Draw whole numbers from 0 to 9."""
    drawn = np.random.default_rng(seed).integers(0, RANDOM_BELOW, shape)
    return Sample(
        drawn.astype(np.float64),
        (
            f"rng = np.random.default_rng({seed})",
            f"{name} = rng.integers(0, {RANDOM_BELOW}, {shape}).astype(float)",
        ),
    )


def take_digits(
    name: str, n_images: int, seed: int, directory: Path | None, listener: DownloadListener | None
) -> Sample:
    """Choose digits of MNIST's test set.

    Parameters
    ----------
    directory : where MNIST's files are; None: the cache, where they are downloaded to

    Raises
    ------
    DataError : the files are missing or damaged
    """
    test = load_split("mnist", directory, "test", listener)
    chosen = np.random.default_rng(seed).choice(len(test), n_images, replace=False)
    where = "None" if directory is None else f"Path({str(directory)!r})"
    shown = ", ".join(f"number {i}, a {test.labels[i]}" for i in chosen[:3].tolist())
    return Sample(
        test.images[chosen].astype(np.float64),
        (
            "from pathlib import Path",
            "from cnncli.data import load_split",
            f'test = load_split("mnist", {where}, "test")',
            f"chosen = np.random.default_rng({seed}).choice(10000, {n_images}, replace=False)",
            f"{name} = test.images[chosen].astype(float)",
        ),
        f"From MNIST's test images: {shown}{', ...' if n_images > 3 else ''}. 0 is paper, 255 is ink.",
        is_picture=True,
    )


def read_array(name: str, path: Path, axes: str) -> Sample:
    """Read an array of rank 4 from an .npy file.

    Raises
    ------
    DataError : it is missing, damaged, not of rank 4, not of finite real numbers, or too large
    """
    where = str(path)
    _check_header(read_npy_header(path), path, axes)
    stored = read_npy(path)
    with np.errstate(over="ignore", invalid="ignore"):  # found below
        values = stored.astype(np.float64)
    _check_values(values, where)
    code, remark = f"np.load({str(path)!r})", ""
    if stored.dtype != np.float64:
        code += ".astype(float)"
        remark = f"The file holds {stored.dtype.name}; everything below is computed in float64."
    return Sample(values, (f"{name} = {code}",), remark)


def _check_header(header: ArrayHeader, path: Path, axes: str) -> None:
    dtype, shape = header.dtype, header.shape
    if dtype.kind not in "biuf":
        raise DataError(f"{path}: expected real numbers, got {_short(dtype)}; save a part of it with np.save")
    if len(shape) != 4:
        raise DataError(f"{path}: expected an array of shape {axes}, got {_short(shape)}{_fix(shape)}")
    if 0 in shape:
        raise DataError(f"{path}: holds no numbers, its shape is {shape}")
    if math.prod(shape) > MOST_NUMBERS:
        raise DataError(
            f"{path}: expected at most {MOST_NUMBERS:,} numbers for a page, got {math.prod(shape):,} of "
            f"shape {shape}; save a part of it, such as x[:2]"
        )


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _fix(shape: tuple[int, ...]) -> str:
    if len(shape) == 2:
        return f"; one image of one channel is x.reshape{(1, 1, *shape)}"
    if len(shape) == 3:
        return (
            f"; images of one channel are x.reshape{(shape[0], 1, *shape[1:])}, channels of one image "
            f"x.reshape{(1, *shape)}"
        )
    return ""


def _check_values(values: Array, where: str) -> None:
    bad = ~(np.abs(values) <= LARGEST)
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        raise DataError(
            f"{where}: expected finite numbers of at most {LARGEST:g}, the one at {list(index)} is "
            f"{values[index]}"
        )
