"""The known data sets: their names, files and digests agree with one another."""

from __future__ import annotations

import math

import pytest

from cnncli.data import CATALOG, Part, unknown_dataset
from cnncli.data.catalog import KINDS, PARTS, KnownDataset, file_names, identify
from tests.data.made_files import MNIST_DIRECTORY


@pytest.mark.parametrize("known", CATALOG.values(), ids=CATALOG)
def test_sizes_follow_from_the_shapes(known: KnownDataset) -> None:
    sizes: dict[Part, int] = {"train": known.train_size, "test": known.test_size}
    for part, n in sizes.items():
        assert known.files[part, "images"].size == 16 + n * math.prod(known.image_shape)
        assert known.files[part, "labels"].size == 8 + n


def test_all_digests_are_different_and_lead_to_their_file() -> None:
    files = [(known, file) for known in CATALOG.values() for file in known.files.values()]
    assert len({file.sha256 for _, file in files}) == len(files) == 8
    for known, file in files:
        assert len(file.sha256) == 64
        assert identify(file.sha256) == (known, file)
    assert identify("0" * 64) is None


def test_every_spelling_of_a_name() -> None:
    assert set(file_names("train", "labels")) == {
        "train-labels-idx1-ubyte",
        "train-labels-idx1-ubyte.gz",
        "train-labels.idx1-ubyte",
        "train-labels.idx1-ubyte.gz",
    }
    assert {"t10k-images.idx3-ubyte", "t10k-images-idx4-ubyte.gz"} <= set(file_names("test", "images"))


def test_no_name_belongs_to_two_files() -> None:
    names = [name for part in PARTS for kind in KINDS for name in file_names(part, kind)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("emnist", "mnist"),
        ("MNIST", "mnist"),
        ("Fashion_MNIST", "fashion-mnist"),
        ("fashionmnist", "fashion-mnist"),
    ],
)
def test_unknown_name_gets_the_nearest_one_and_the_other_ways(name: str, suggestion: str) -> None:
    message = unknown_dataset(name)
    assert f"unknown data set {name!r}" in message
    assert f"(did you mean {suggestion}?)" in message
    assert "mnist, fashion-mnist" in message
    assert "directory of four IDX files" in message and ".npz" in message


def test_name_without_likeness_gets_no_suggestion() -> None:
    assert "did you mean" not in unknown_dataset("imagewoof")


def test_readme_of_the_data_has_the_same_table() -> None:
    readme = (MNIST_DIRECTORY.parent / "README.md").read_text(encoding="utf-8")
    for file in CATALOG["mnist"].files.values():
        row = next(line for line in readme.splitlines() if line.startswith(f"| `{file.name}.gz`"))
        assert f"| {file.size} |" in row and file.sha256 in row
    assert "CC BY-SA 3.0" in readme and "Yann LeCun and Corinna Cortes" in readme
