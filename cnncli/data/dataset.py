"""Images and labels: loading them, describing them, setting some aside for validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cnncli.data.catalog import CATALOG, KINDS, PARTS, KnownDataset, Part, unknown_dataset
from cnncli.data.randomness import VALIDATION_SPLIT, stream
from cnncli.data.reading import ArrayHeader, reading
from cnncli.data.sources import (
    CachedDirectory,
    DownloadListener,
    IdxDirectory,
    NpzDataset,
    Source,
    cache_directory,
    find_file,
)
from cnncli.errors import DataError, LabelError, ShapeError


@dataclass(frozen=True, eq=False)
class Split:
    """Images and their labels; image i has label i.

    Parameters
    ----------
    images : ndarray of shape (N, C, H, W), uint8 or float32
    labels : ndarray of shape (N,), int64

    Raises
    ------
    ShapeError : images are not of rank 4
    LabelError : labels are not one integer per image
    """

    images: NDArray[Any]
    labels: NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.images.ndim != 4:
            raise ShapeError(f"expected images of shape (N, C, H, W), got {self.images.shape}")
        if self.labels.shape != (len(self.images),) or self.labels.dtype != np.int64:
            raise LabelError(
                f"expected one int64 label for each of {len(self.images)} images, "
                f"got {self.labels.dtype} of shape {self.labels.shape}"
            )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def is_constant(self) -> bool:
        """Whether all images are equal, so that none can be distinguished from another."""
        return bool((self.images[0] == self.images[-1]).all()) and bool(
            (self.images == self.images[:1]).all()
        )

    def take(self, indices: NDArray[np.int64]) -> Split:
        """Copy the images of some indices, in their order, with their labels."""
        return Split(self.images[indices], self.labels[indices])


@dataclass(frozen=True, eq=False)
class Dataset:
    """A training set and a test set; the test set is for nothing but the final figures.

    Attributes
    ----------
    name : as known by name, or the last part of its path
    class_count : the highest label, plus one; the test set has none that the training set lacks
    """

    name: str
    train: Split
    test: Split
    class_count: int

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Shape (C, H, W) of every image."""
        C, H, W = self.train.images.shape[1:]
        return C, H, W


@dataclass(frozen=True)
class DatasetDescription:
    """What a network must know of a data set before it is loaded.

    Attributes
    ----------
    unused_labels : those below `class_count` that no training image has
    """

    image_shape: tuple[int, int, int]
    class_count: int
    train_size: int
    unused_labels: tuple[int, ...] = ()


def load_dataset(
    dataset: str, directory: Path | None = None, listener: DownloadListener | None = None
) -> Dataset:
    """Load a data set.

    Parameters
    ----------
    dataset : ``mnist`` or ``fashion-mnist``, which are verified by their SHA-256; or the path of a
        directory of four IDX files, or of an .npz file with x_train, y_train, x_test and y_test
    directory : where the files of a data set known by name are; None: the per-user cache directory,
        and what is missing or damaged there is downloaded
    listener : is notified of a download; None notifies no one

    Raises
    ------
    DataError : anything is missing, damaged, does not fit together, or cannot be downloaded
    """
    source = _open_source(dataset, directory, PARTS, listener)
    train, test = _read_split(source, "train"), _read_split(source, "test")
    if dataset in CATALOG:
        return Dataset(dataset, train, test, CATALOG[dataset].class_count)
    return Dataset(Path(dataset).resolve().name, train, test, _class_count(source, train.labels, test.labels))


def load_split(
    dataset: str, directory: Path | None, part: Part, listener: DownloadListener | None = None
) -> Split:
    """Load only the training set or the test set of what `load_dataset` takes."""
    return _read_split(_open_source(dataset, directory, [part], listener), part)


def describe_dataset(dataset: str, directory: Path | None = None) -> DatasetDescription:
    """Describe a data set: without touching a file where it is known by name, else from headers and labels.

    Raises
    ------
    DataError : as far as that shows, `load_dataset` would raise it
    """
    if dataset in CATALOG:
        known = CATALOG[dataset]
        return DatasetDescription(known.image_shape, known.class_count, known.train_size)
    source = _open_source(dataset, directory, PARTS, None)
    shape = image_shape(source.header("train", "images"), source.where("train", "images"))
    train_labels, test_labels = (
        as_labels(source.read(part, "labels"), source.where(part, "labels")) for part in PARTS
    )
    class_count = _class_count(source, train_labels, test_labels)
    unused = np.setdiff1d(np.arange(class_count), train_labels)
    return DatasetDescription(shape, class_count, len(train_labels), tuple(unused.tolist()))


def is_at_hand(dataset: str, directory: Path | None = None) -> bool:
    """Tell whether all files of a data set are there, under their names."""
    if dataset not in CATALOG:
        return True
    place = cache_directory(dataset) if directory is None else directory
    return all(find_file(place, part, kind) for part in PARTS for kind in KINDS)


def split_validation(train: Split, validation_size: int, seed: int) -> tuple[Split, Split | None]:
    """Set images aside for validation, chosen by a permutation that depends on the seed alone.

    Parameters
    ----------
    validation_size : how many; 0 sets none aside

    Returns
    -------
    training, validation : each in the order of the file; validation is None if there is none

    Raises
    ------
    DataError : there are not enough images to leave one for training
    """
    if validation_size == 0:
        return train, None
    if not 0 < validation_size < len(train):
        raise DataError(
            f"data.validation_size: expected from 0 to {len(train) - 1}, as the training set has "
            f"{len(train)} images, got {validation_size}"
        )
    order = stream(seed, VALIDATION_SPLIT).permutation(len(train))
    validation, training = np.sort(order[:validation_size]), np.sort(order[validation_size:])
    return train.take(training), train.take(validation)


def _open_source(
    dataset: str, directory: Path | None, parts: Sequence[Part], listener: DownloadListener | None
) -> Source:
    """Open a data set whose content is verified by its hash, or else check that its arrays fit together."""
    if dataset in CATALOG:
        return _open_known(CATALOG[dataset], directory, parts, listener)
    source = _open_path(dataset, parts)
    if directory is not None:
        raise DataError(
            f"data.directory: expected none with the path of a data set ({dataset}), got {directory}; it is "
            f"where the files of {' and '.join(CATALOG)} are"
        )
    _check_headers(source, parts)
    return source


def _open_known(
    known: KnownDataset, directory: Path | None, parts: Sequence[Part], listener: DownloadListener | None
) -> Source:
    # a directory that the user named is only read, the cache is the program's own
    if directory is not None:
        return IdxDirectory(directory, parts, known)
    return CachedDirectory(cache_directory(known.name), parts, known, listener)


def _open_path(dataset: str, parts: Sequence[Part]) -> Source:
    path = Path(dataset)
    with reading(dataset):
        if path.is_dir():
            return IdxDirectory(path, parts)
        if not path.is_file():
            raise DataError(unknown_dataset(dataset))
    return NpzDataset(path, parts)


def _check_headers(source: Source, parts: Sequence[Part]) -> None:
    """Check that all arrays fit together, before any is read."""
    for part in parts:
        _check_counts(source, part)
    if set(parts) == set(PARTS):
        _check_same_kind(source)


def _check_counts(source: Source, part: Part) -> None:
    """Check that there is one label for each image."""
    images, labels = (source.header(part, kind) for kind in KINDS)
    where_images, where_labels = (source.where(part, kind) for kind in KINDS)
    image_shape(images, where_images)
    n_images, n_labels = images.shape[0], label_count(labels, where_labels)
    if n_images != n_labels:
        raise DataError(
            f"{where_images}: holds {n_images} images, but {where_labels} holds {n_labels} labels; "
            "expected one label for each image"
        )


def _check_same_kind(source: Source) -> None:
    """Check that a network for the training images can take the test images."""
    train, test = (source.header(part, "images") for part in PARTS)
    where_train, where_test = (source.where(part, "images") for part in PARTS)
    train_shape, test_shape = image_shape(train, where_train), image_shape(test, where_test)
    if train_shape != test_shape:
        raise DataError(
            f"{where_test}: expected images of shape (C, H, W) = {train_shape} as in {where_train}, "
            f"got {test_shape}"
        )
    # 0 to 255 here and 0 to 1 there would pass for a bad network
    if (train.dtype.kind == "f") != (test.dtype.kind == "f"):
        raise DataError(
            f"{where_test}: expected {train.dtype.name} images as in {where_train}, got {test.dtype.name}; "
            "save both as integers or both as floats, in the same units"
        )


def _read_split(source: Source, part: Part) -> Split:
    images = as_images(source.read(part, "images"), source.where(part, "images"))
    return Split(images, as_labels(source.read(part, "labels"), source.where(part, "labels")))


def _class_count(source: Source, train: NDArray[np.int64], test: NDArray[np.int64]) -> int:
    where_train, where_test = (source.where(part, "labels") for part in PARTS)
    return count_classes(train, test, where_train, where_test)


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
