"""Directories of IDX files: finding them, and verifying those of a known data set."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cnncli.data import load_dataset, load_split
from cnncli.errors import DataError
from tests.data.made_files import MNIST_DIRECTORY, USUAL_NAMES, idx_bytes, small_arrays, write_idx_directory

NAMES = list(USUAL_NAMES.values())


@pytest.fixture
def mnist_test_part(tmp_path: Path) -> Path:
    """Make a directory with MNIST's test images and labels, as they come."""
    for name in NAMES[2:]:
        shutil.copy(MNIST_DIRECTORY / f"{name}.gz", tmp_path)
    return tmp_path


def test_real_mnist() -> None:
    mnist = load_dataset("mnist", MNIST_DIRECTORY)
    assert (len(mnist.train), len(mnist.test)) == (60_000, 10_000)
    assert mnist.image_shape == (1, 28, 28) and mnist.class_count == 10 and mnist.name == "mnist"
    assert mnist.train.images.dtype == np.uint8 and mnist.train.labels.dtype == np.int64
    assert mnist.train.labels[:6].tolist() == [5, 0, 4, 1, 9, 2]
    assert np.bincount(mnist.test.labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    for split in (mnist.train, mnist.test):
        assert split.images.flags.writeable and split.images.flags.c_contiguous
        assert split.labels.flags.writeable


def test_raw_and_recompressed_files_are_recognised(mnist_test_part: Path) -> None:
    images, labels = (mnist_test_part / f"{name}.gz" for name in NAMES[2:])
    (mnist_test_part / "t10k-images.idx3-ubyte").write_bytes(gzip.decompress(images.read_bytes()))
    images.unlink()
    labels.write_bytes(gzip.compress(gzip.decompress(labels.read_bytes()), compresslevel=1))
    assert len(load_split("mnist", mnist_test_part, "test")) == 10_000


def test_one_part_needs_only_its_own_files(mnist_test_part: Path) -> None:
    assert len(load_split("mnist", mnist_test_part, "test")) == 10_000
    with pytest.raises(DataError, match="train-images-idx3-ubyte, train-labels-idx1-ubyte") as caught:
        load_split("mnist", mnist_test_part, "train")
    assert "t10k" not in str(caught.value)


def test_another_data_sets_file_is_named_for_what_it_is(mnist_test_part: Path) -> None:
    with pytest.raises(DataError) as caught:
        load_split("fashion-mnist", mnist_test_part, "test")
    message = str(caught.value)
    assert message.startswith(f"{mnist_test_part / 't10k-images-idx3-ubyte.gz'}: ")
    assert "this is MNIST's t10k-images file, expected Fashion-MNIST's t10k-images file" in message
    assert "or set data.dataset to mnist" in message


def test_another_file_of_the_same_data_set_is_named_for_what_it_is(mnist_test_part: Path) -> None:
    shutil.copy(MNIST_DIRECTORY / "train-labels-idx1-ubyte.gz", mnist_test_part / "t10k-labels-idx1-ubyte.gz")
    with pytest.raises(DataError, match="this is MNIST's train-labels file, expected MNIST's t10k-labels"):
        load_split("mnist", mnist_test_part, "test")


def raw_labels() -> bytes:
    return gzip.decompress((MNIST_DIRECTORY / "t10k-labels-idx1-ubyte.gz").read_bytes())


def with_flipped_bit(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


# each has its own words
DAMAGED_LABELS: dict[str, tuple[Callable[[], bytes], str]] = {
    "flipped bit": (
        lambda: with_flipped_bit(raw_labels(), 5000),
        "the SHA-256 .*, expected ff7bcf",
    ),
    "flipped bit in the gzip": (lambda: with_flipped_bit(gzip.compress(raw_labels()), 3000), "is damaged"),
    "html": (lambda: b"<html>503</html>", "got an HTML or XML page"),
    "empty": (lambda: b"", "got an empty file"),
    "first half": (lambda: raw_labels()[:5004], "declares 10008 bytes .* it has 5004"),
    "first half of the gzip": (lambda: gzip.compress(raw_labels())[:2000], "ends early"),
    "other digits": (lambda: idx_bytes(np.zeros(10_000, np.uint8)), "this is not MNIST's t10k-labels file"),
}


@pytest.mark.parametrize("case", DAMAGED_LABELS)
def test_damaged_file_of_a_known_data_set(mnist_test_part: Path, case: str) -> None:
    make, message = DAMAGED_LABELS[case]
    path = mnist_test_part / "t10k-labels-idx1-ubyte.gz"
    path.write_bytes(make())
    with pytest.raises(DataError, match=message) as caught:
        load_split("mnist", mnist_test_part, "test")
    assert str(caught.value).startswith(f"{path}: ")
    assert path.exists()  # a file of the user's is refused, never removed


def test_missing_files_are_all_named_with_the_way_to_get_them(tmp_path: Path) -> None:
    shutil.copy(MNIST_DIRECTORY / "t10k-labels-idx1-ubyte.gz", tmp_path)
    with pytest.raises(DataError) as caught:
        load_dataset("mnist", tmp_path)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path}: files are missing here")
    for name in NAMES[:3]:
        assert f"{name}, " in message or f"{name} " in message
        assert f"{name}.gz" in message
    assert NAMES[3] not in message
    assert "train-images.idx3-ubyte" in message
    assert "https://ossci-datasets.s3.amazonaws.com/mnist/" in message


@pytest.mark.parametrize("dataset", ["mnist", "fashion-mnist"])
def test_missing_directory(tmp_path: Path, dataset: str) -> None:
    with pytest.raises(DataError, match=r"there is no such directory.*train-images-idx3-ubyte"):
        load_dataset(dataset, tmp_path / "nowhere")


def test_file_in_place_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "mnist").write_bytes(b"")
    with pytest.raises(DataError, match="there is no such directory"):
        load_dataset("mnist", tmp_path / "mnist")


def test_cache_directory_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cnncli.data.dataset.cache_directory", lambda name: tmp_path / "cache" / name)
    with pytest.raises(DataError) as caught:
        load_dataset("fashion-mnist")
    assert str(tmp_path / "cache" / "fashion-mnist") in str(caught.value)


def test_own_images_under_every_spelling(tmp_path: Path) -> None:
    arrays = small_arrays()
    write_idx_directory(tmp_path, arrays)
    (tmp_path / NAMES[0]).rename(tmp_path / "train-images.idx3-ubyte")
    (tmp_path / NAMES[1]).rename(tmp_path / "train-labels.idx1-ubyte.gz")
    (tmp_path / f"{NAMES[2]}.gz").write_bytes(gzip.compress((tmp_path / NAMES[2]).read_bytes()))
    (tmp_path / NAMES[2]).unlink()
    dataset = load_dataset(str(tmp_path))
    np.testing.assert_array_equal(dataset.train.images[:, 0], arrays["x_train"])
    np.testing.assert_array_equal(dataset.test.images[:, 0], arrays["x_test"])


def test_folder_with_the_name_of_a_file_is_passed_over(tmp_path: Path) -> None:
    write_idx_directory(tmp_path, small_arrays())
    (tmp_path / NAMES[0]).rename(tmp_path / f"{NAMES[0]}.gz")
    (tmp_path / NAMES[0]).mkdir()
    assert len(load_dataset(str(tmp_path)).train) == 12


def test_own_directory_without_the_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"files are missing here: looked for train-images-idx3-ubyte.*idx4"):
        load_dataset(str(tmp_path))
