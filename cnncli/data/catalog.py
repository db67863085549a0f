"""The data sets that are known by name: their files, and how to tell them apart."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Part: TypeAlias = Literal["train", "test"]
Kind: TypeAlias = Literal["images", "labels"]

PARTS: tuple[Part, ...] = ("train", "test")
KINDS: tuple[Kind, ...] = ("images", "labels")


@dataclass(frozen=True)
class KnownFile:
    """One file of a known data set.

    Attributes
    ----------
    name : e.g. ``train-images-idx3-ubyte``; mirrors offer it with ``.gz`` added
    size : bytes, uncompressed
    sha256 : hexadecimal digest of the uncompressed content
    """

    name: str
    size: int
    sha256: str

    @property
    def label(self) -> str:
        """Short name for messages, e.g. ``train-images``."""
        return self.name.partition("-idx")[0]


@dataclass(frozen=True)
class KnownDataset:
    """A data set known by name.

    Attributes
    ----------
    name : as in a configuration
    title : as in a message
    mirrors : addresses of directories that offer the gzipped files, best first
    image_shape : (C, H, W)
    """

    name: str
    title: str
    mirrors: tuple[str, ...]
    image_shape: tuple[int, int, int]
    class_count: int
    train_size: int
    test_size: int
    files: Mapping[tuple[Part, Kind], KnownFile]


MNIST = KnownDataset(
    name="mnist",
    title="MNIST",
    mirrors=(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    ),
    image_shape=(1, 28, 28),
    class_count=10,
    train_size=60_000,
    test_size=10_000,
    files={
        ("train", "images"): KnownFile(
            "train-images-idx3-ubyte",
            47_040_016,
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        ),
        ("train", "labels"): KnownFile(
            "train-labels-idx1-ubyte",
            60_008,
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        ),
        ("test", "images"): KnownFile(
            "t10k-images-idx3-ubyte",
            7_840_016,
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        ),
        ("test", "labels"): KnownFile(
            "t10k-labels-idx1-ubyte",
            10_008,
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
    },
)

FASHION_MNIST = KnownDataset(
    name="fashion-mnist",
    title="Fashion-MNIST",
    mirrors=("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",),
    image_shape=(1, 28, 28),
    class_count=10,
    train_size=60_000,
    test_size=10_000,
    files={
        ("train", "images"): KnownFile(
            "train-images-idx3-ubyte",
            47_040_016,
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        ),
        ("train", "labels"): KnownFile(
            "train-labels-idx1-ubyte",
            60_008,
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        ),
        ("test", "images"): KnownFile(
            "t10k-images-idx3-ubyte",
            7_840_016,
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        ),
        ("test", "labels"): KnownFile(
            "t10k-labels-idx1-ubyte",
            10_008,
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        ),
    },
)

CATALOG: Mapping[str, KnownDataset] = {known.name: known for known in (MNIST, FASHION_MNIST)}


def file_names(part: Part, kind: Kind) -> tuple[str, ...]:
    """Return the names that one of the four files of a data set may have, the first ones preferred.

    The rank in the name of the images is 3, or 4 where they have an axis of channels. Every name is
    met with a hyphen or a dot before ``idx`` (unpackers on Windows make a dot of it), raw or gzipped.
    """
    prefix = "train" if part == "train" else "t10k"
    ranks = (3, 4) if kind == "images" else (1,)
    return tuple(
        f"{prefix}-{kind}{separator}idx{rank}-ubyte{suffix}"
        for rank in ranks
        for separator in "-."
        for suffix in ("", ".gz")
    )


def identify(sha256: str) -> tuple[KnownDataset, KnownFile] | None:
    """Return the known file with this digest of its uncompressed content, if there is one."""
    for known in CATALOG.values():
        for part in PARTS:
            for kind in KINDS:
                file = known.files[part, kind]
                if file.sha256 == sha256:
                    return known, file
    return None


def unknown_dataset(name: str) -> str:
    """Word the message about a data set that is neither known by name nor found as a path."""
    near = difflib.get_close_matches(name.lower().replace("_", "-"), CATALOG, n=1)
    suggestion = f" (did you mean {near[0]}?)" if near else ""
    return (
        f"unknown data set {name!r}: known by name are {', '.join(CATALOG)}{suggestion}; a data set of "
        "your own is the path of a directory of four IDX files, or of an .npz file with x_train, y_train, "
        "x_test and y_test, and there is none at this path"
    )
