"""Loading, describing and splitting whole data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cnncli.data import Split, describe_dataset, load_dataset, load_split, split_validation
from cnncli.errors import DataError, LabelError, ShapeError
from tests.data.made_files import MNIST_DIRECTORY, small_arrays, write_idx_directory, write_npz


def write(form: str, directory: Path, arrays: dict[str, Any]) -> str:
    """Write a data set in one of its two forms, and return its path."""
    if form == "npz":
        return str(write_npz(directory / "digits.npz", arrays))
    return str(write_idx_directory(directory / "digits", arrays))


both_forms = pytest.mark.parametrize("form", ["npz", "idx"])


@both_forms
def test_images_keep_their_labels(tmp_path: Path, form: str) -> None:
    arrays = small_arrays()
    dataset = load_dataset(write(form, tmp_path, arrays))
    np.testing.assert_array_equal(dataset.train.images, arrays["x_train"][:, np.newaxis])
    np.testing.assert_array_equal(dataset.train.labels, arrays["y_train"])
    np.testing.assert_array_equal(dataset.test.images, arrays["x_test"][:, np.newaxis])
    np.testing.assert_array_equal(dataset.test.labels, arrays["y_test"])
    assert dataset.train.labels.dtype == np.int64
    assert dataset.name in ("digits.npz", "digits")
    only_test = load_split(write(form, tmp_path, arrays), None, "test")
    np.testing.assert_array_equal(only_test.images, dataset.test.images)


@both_forms
def test_rank_4_images(tmp_path: Path, form: str) -> None:
    rng = np.random.default_rng(0)
    arrays = small_arrays() | {
        "x_train": rng.integers(0, 256, (12, 3, 6, 5), dtype=np.uint8),
        "x_test": rng.integers(0, 256, (5, 3, 6, 5), dtype=np.uint8),
    }
    dataset = load_dataset(write(form, tmp_path, arrays))
    assert dataset.image_shape == (3, 6, 5)
    np.testing.assert_array_equal(dataset.train.images, arrays["x_train"])


def test_idx_images_have_their_channels_first(tmp_path: Path) -> None:
    arrays = small_arrays() | {
        "x_train": np.zeros((12, 6, 5, 3), np.uint8),
        "x_test": np.zeros((5, 6, 5, 3), np.uint8),
    }
    assert load_dataset(write("idx", tmp_path, arrays)).image_shape == (6, 5, 3)


@both_forms
def test_classes_are_counted_up_to_the_highest_label(tmp_path: Path, form: str) -> None:
    arrays = small_arrays()
    arrays["y_train"][1] = 6
    path = write(form, tmp_path, arrays)
    assert load_dataset(path).class_count == describe_dataset(path).class_count == 7
    assert describe_dataset(path).unused_labels == (3, 4, 5)


@both_forms
def test_a_class_that_only_the_test_part_has_is_refused(tmp_path: Path, form: str) -> None:
    arrays = small_arrays()
    arrays["y_test"][1] = 9
    path = write(form, tmp_path, arrays)
    for function in (load_dataset, describe_dataset):
        with pytest.raises(DataError, match=r"label 1 is 9, a class that .* does not have") as caught:
            function(path)
        assert str(caught.value).startswith(path)
    # what is evaluated by itself may have it: the network says whether it knows the class
    assert load_split(path, None, "test").labels[1] == 9


@both_forms
@pytest.mark.parametrize("part", ["train", "test"])
def test_labels_that_are_no_class_numbers_are_refused(tmp_path: Path, form: str, part: str) -> None:
    arrays = small_arrays()
    arrays |= {name: arrays[name].astype(np.int32) for name in ("y_train", "y_test")}
    arrays[f"y_{part}"][2] = 10**9
    path = write(form, tmp_path, arrays)
    for function in (load_dataset, describe_dataset):
        with pytest.raises(DataError, match=r"expected labels below 10000.*, label 2 is 1000000000"):
            function(path)


@both_forms
def test_description_agrees_with_what_is_loaded(tmp_path: Path, form: str) -> None:
    path = write(form, tmp_path, small_arrays())
    description, dataset = describe_dataset(path), load_dataset(path)
    assert description.image_shape == dataset.image_shape == (1, 6, 4)
    assert description.class_count == dataset.class_count == 3
    assert description.train_size == len(dataset.train) == 12


def test_description_of_channels_last(tmp_path: Path) -> None:
    arrays = small_arrays() | {"x_train": np.zeros((12, 6, 4, 3)), "x_test": np.zeros((5, 6, 4, 3))}
    assert describe_dataset(write("npz", tmp_path, arrays)).image_shape == (3, 6, 4)


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_description_of_a_known_data_set_touches_no_file(tmp_path: Path, name: str) -> None:
    description = describe_dataset(name, tmp_path / "nowhere")
    assert description.image_shape == (1, 28, 28)
    assert (description.class_count, description.train_size) == (10, 60_000)


def test_known_files_by_their_path() -> None:
    test = load_split(str(MNIST_DIRECTORY), None, "test")
    assert test.images.shape == (10_000, 1, 28, 28) and test.labels[0] == 7
    assert describe_dataset(str(MNIST_DIRECTORY)).class_count == 10


WRONG_ARRAYS: dict[str, tuple[dict[str, Any], str]] = {
    "counts": ({"y_train": np.zeros(11, np.uint8)}, r"holds 12 images, but .* holds 11 labels"),
    "counts in test": ({"y_test": np.zeros(4, np.uint8)}, r"holds 5 images, but .* holds 4 labels"),
    "column of labels": ({"y_train": np.zeros((12, 1), np.uint8)}, "flatten them"),
    "float labels": ({"y_train": np.zeros(12, np.float32)}, "expected integer labels, got float32"),
    "negative label": ({"y_test": np.array([0, 1, -1, 0, 2], np.int8)}, "label 2 is -1"),
    "image shapes": ({"x_test": np.zeros((5, 4, 6), np.uint8)}, r"\(1, 6, 4\) as in .*, got \(1, 4, 6\)"),
    "channels": ({"x_test": np.zeros((5, 3, 6, 4), np.uint8)}, r"\(1, 6, 4\) as in .*, got \(3, 6, 4\)"),
    "units": ({"x_test": np.zeros((5, 6, 4), np.float32)}, r"expected uint8 images .*, got float32"),
    "not finite": (
        {
            "x_train": np.full((12, 6, 4), np.nan, np.float32),
            "x_test": np.zeros((5, 6, 4), np.float32),
        },
        "image 0 holds NaN",
    ),
}


@both_forms
@pytest.mark.parametrize("case", WRONG_ARRAYS)
def test_arrays_that_do_not_fit_together(tmp_path: Path, form: str, case: str) -> None:
    arrays, message = WRONG_ARRAYS[case]
    path = write(form, tmp_path, small_arrays() | arrays)
    with pytest.raises(DataError, match=message) as caught:
        load_dataset(path)
    assert str(caught.value).startswith(path)
    if case not in ("negative label", "not finite"):  # these are seen only in the values
        with pytest.raises(DataError, match=message):
            describe_dataset(path)


@pytest.mark.parametrize("dataset", ["emnist", "Mnist", "nowhere/digits.npz", "nowhere"])
@pytest.mark.parametrize("directory", [None, Path("nowhere")])
def test_what_is_neither_a_name_nor_a_path(dataset: str, directory: Path | None) -> None:
    for function in (load_dataset, describe_dataset):
        with pytest.raises(DataError, match="known by name are mnist, fashion-mnist"):
            function(dataset, directory)


def test_directory_with_a_path_is_refused(tmp_path: Path) -> None:
    path = write("npz", tmp_path, small_arrays())
    with pytest.raises(DataError, match=r"data.directory: expected none with the path"):
        load_dataset(path, tmp_path)


@pytest.mark.parametrize("path", ["x" * 5000, "a\0b"])
def test_impossible_paths(path: str) -> None:
    with pytest.raises(DataError):
        load_dataset(path)


def numbered(n: int) -> Split:
    """Make images that hold their own index, which is also their label."""
    return Split(np.arange(n, dtype=np.float32).reshape(n, 1, 1, 1), np.arange(n))


@given(data=st.data(), n=st.integers(2, 60), seed=st.integers(0, 2**70))
def test_validation_split_parts_the_images_with_their_labels(data: st.DataObject, n: int, seed: int) -> None:
    size = data.draw(st.integers(1, n - 1))
    training, validation = split_validation(numbered(n), size, seed)
    assert validation is not None and len(validation) == size and len(training) == n - size
    assert sorted([*training.labels, *validation.labels]) == list(range(n))
    for split in (training, validation):
        np.testing.assert_array_equal(split.images[:, 0, 0, 0], split.labels)
        assert (np.diff(split.labels) > 0).all()  # in the order of the file


def test_validation_split_depends_on_the_seed_alone() -> None:
    np.random.default_rng(0).random(5)
    first, second, other = (split_validation(numbered(1000), 100, seed)[1] for seed in (3, 3, 4))
    assert first is not None and second is not None and other is not None
    np.testing.assert_array_equal(first.labels, second.labels)
    assert 0 < len(set(first.labels) & set(other.labels)) < 50


def test_validation_images_come_from_everywhere() -> None:
    _, validation = split_validation(numbered(1000), 100, 0)
    assert validation is not None
    assert 400 < validation.labels.mean() < 600


def test_no_validation_images() -> None:
    train = numbered(10)
    assert split_validation(train, 0, seed=0) == (train, None)


@pytest.mark.parametrize("size", [10, 11, 60_000, -1])
def test_validation_size_that_leaves_nothing(size: int) -> None:
    with pytest.raises(DataError, match=rf"from 0 to 9, as the training set has 10 images, got {size}"):
        split_validation(numbered(10), size, seed=0)


def test_split_refuses_what_does_not_belong_together() -> None:
    images = np.zeros((3, 1, 2, 2), np.uint8)
    wrong: list[Any] = [np.zeros(2, int), np.zeros((3, 1), int), np.zeros(3), np.zeros(3, np.int32)]
    for labels in wrong:
        with pytest.raises(LabelError, match="one int64 label for each of 3 images"):
            Split(images, labels)
    with pytest.raises(ShapeError, match=r"\(N, C, H, W\)"):
        Split(images[0], np.zeros(1, int))
