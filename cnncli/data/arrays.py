"""From the arrays of a source to images and labels as training wants them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cnncli.data.source import ArrayHeader
from cnncli.errors import DataError

# The confusion matrix of so many classes takes 800 MB; most labels beyond are no class numbers at all.
MAX_CLASSES = 10_000


def image_shape(header: ArrayHeader, where: str) -> tuple[int, int, int]:
    """Return (C, H, W) of an array of images (N, H, W) or (N, C, H, W).

    Raises
    ------
    DataError : it holds no images: of another rank, not of numbers, or empty
    """
    if header.dtype.kind not in "iuf":
        raise DataError(
            f"{where}: expected images of integers or floats, got {header.dtype.name}; "
            "save them as uint8 from 0 to 255"
        )
    if len(header.shape) not in (3, 4):
        raise DataError(
            f"{where}: expected images of shape (N, H, W) or (N, C, H, W), got shape {header.shape}; "
            "reshape them before saving"
        )
    if 0 in header.shape:
        raise DataError(f"{where}: holds no images, its shape is {header.shape}")
    C = header.shape[1] if len(header.shape) == 4 else 1
    H, W = header.shape[-2:]
    return C, H, W


def label_count(header: ArrayHeader, where: str) -> int:
    """Return the length of an array of labels (N,).

    Raises
    ------
    DataError : it is not one integer per image, or empty
    """
    shape = header.shape
    if len(shape) != 1:
        advice = "one integer from 0 for each image"
        if len(shape) == 2 and 1 in shape:
            advice = "flatten them with labels.reshape(-1)"
        elif len(shape) == 2:
            advice = "turn one-hot rows into class numbers with labels.argmax(axis=1)"
        raise DataError(f"{where}: expected labels of shape (N,), got shape {shape}; {advice}")
    if header.dtype.kind not in "iu":
        raise DataError(
            f"{where}: expected integer labels, got {header.dtype.name}; "
            "save them as integers, one class number from 0 for each image"
        )
    if shape[0] == 0:
        raise DataError(f"{where}: holds no labels")
    return shape[0]


def as_images(array: NDArray[Any], where: str) -> NDArray[Any]:
    """Return images (N, C, H, W), contiguous: uint8 as they are, all others as float32.

    Raises
    ------
    DataError : a value is not finite, or beyond the range of float32
    """
    if array.ndim == 3:
        array = array[:, np.newaxis]
    if array.dtype == np.uint8:
        return np.ascontiguousarray(array)
    with np.errstate(over="ignore", invalid="ignore"):  # found below
        images = np.ascontiguousarray(array, dtype=np.float32)
    # extremes are NaN if anything is, and cost no array of booleans
    if not (np.isfinite(images.min()) and np.isfinite(images.max())):
        index = int(np.argmin(np.isfinite(images).all(axis=(1, 2, 3))))
        raise DataError(f"{where}: expected finite float32 values, image {index} holds NaN or infinity")
    return images


def as_labels(array: NDArray[Any], where: str) -> NDArray[np.int64]:
    """Return labels (N,) as int64.

    Raises
    ------
    DataError : a label is negative, or too large for the number of a class
    """
    for wrong, expected in (
        (array < 0, "labels of at least 0"),
        (array >= MAX_CLASSES, f"labels below {MAX_CLASSES}, as classes are numbered from 0"),
    ):
        if wrong.any():
            index = int(np.argmax(wrong))
            raise DataError(f"{where}: expected {expected}, label {index} is {array[index]}")
    return array.astype(np.int64)


def count_classes(
    train: NDArray[np.int64], test: NDArray[np.int64], where_train: str, where_test: str
) -> int:
    """Return the highest label of the training part, plus one.

    Raises
    ------
    DataError : the test part has a class that the training part lacks
    """
    unseen = ~np.isin(test, train)
    if unseen.any():
        index = int(np.argmax(unseen))
        raise DataError(
            f"{where_test}: label {index} is {test[index]}, a class that {where_train} does not have, so it "
            "cannot be learnt; put images of it into the training part, or take them out of the test part"
        )
    return 1 + int(train.max())
