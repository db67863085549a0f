"""Data sets in one .npz file: accepted layouts, and files that are wrong or dangerous."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cnncli.data import load_dataset, load_split
from cnncli.errors import DataError
from tests.data.made_files import npy_bytes, small_arrays, write_npz, write_npz_entries


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "digits.npz"


def load_images(path: Path, images: NDArray[Any]) -> NDArray[Any]:
    """Store images as the training set, and load them."""
    write_npz(path, {"x_train": images, "y_train": np.arange(len(images))})
    return load_split(str(path), None, "train").images


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_round_trip(path: Path, save: Any) -> None:
    arrays = small_arrays()
    save(path, **arrays, extra=np.zeros(3))
    dataset = load_dataset(str(path))
    assert dataset.name == "digits.npz" and dataset.class_count == 3 and dataset.image_shape == (1, 6, 4)
    for split, part in ((dataset.train, "train"), (dataset.test, "test")):
        np.testing.assert_array_equal(split.images[:, 0], arrays[f"x_{part}"])
        np.testing.assert_array_equal(split.labels, arrays[f"y_{part}"])
        assert split.images.flags.writeable and split.labels.flags.writeable


def test_name_need_not_end_in_npz(path: Path, tmp_path: Path) -> None:
    write_npz(path, small_arrays()).rename(tmp_path / "digits.data")
    assert len(load_dataset(str(tmp_path / "digits.data")).train) == 12


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ((5, 6, 4), (5, 1, 6, 4)),
        ((5, 1, 6, 7), (5, 1, 6, 7)),
        ((5, 3, 6, 7), (5, 3, 6, 7)),
        ((5, 2, 6, 7), (5, 2, 6, 7)),
        ((5, 6, 7, 1), (5, 1, 6, 7)),
        ((5, 6, 7, 3), (5, 3, 6, 7)),
        ((5, 6, 7, 4), (5, 4, 6, 7)),
        ((5, 3, 8, 4), (5, 3, 8, 4)),  # both axes could be channels: first wins
        ((5, 1, 8, 1), (5, 1, 8, 1)),
        ((5, 6, 7, 2), (5, 6, 7, 2)),  # no picture has two channels last
    ],
)
def test_axes(path: Path, stored: tuple[int, ...], expected: tuple[int, ...]) -> None:
    images = np.random.default_rng(0).integers(0, 256, stored, dtype=np.uint8)
    loaded = load_images(path, images)
    assert loaded.shape == expected and loaded.flags.c_contiguous
    if len(stored) == 3:
        images = images[:, np.newaxis]
    elif stored != expected:
        images = np.moveaxis(images, -1, 1)
    np.testing.assert_array_equal(loaded, images)


@pytest.mark.parametrize("dtype", ["i1", "<i2", ">i2", ">u4", "i8", "f2", "<f4", ">f4", ">f8"])
def test_all_but_bytes_become_native_float32(path: Path, dtype: str) -> None:
    images = np.arange(2 * 3 * 4).reshape(2, 3, 4).astype(dtype)
    loaded = load_images(path, images)
    assert loaded.dtype == np.float32 and loaded.dtype.isnative and loaded.flags.writeable
    np.testing.assert_array_equal(loaded[:, 0], np.arange(2 * 3 * 4).reshape(2, 3, 4))


def test_bytes_stay_bytes(path: Path) -> None:
    loaded = load_images(path, np.full((2, 3, 4), 200, np.uint8))
    assert loaded.dtype == np.uint8 and (loaded == 200).all()


def test_fortran_order(path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (5, 6, 7), dtype=np.uint8)
    loaded = load_images(path, np.asfortranarray(images))
    np.testing.assert_array_equal(loaded[:, 0], images)
    assert loaded.flags.c_contiguous


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e39])
def test_values_that_are_not_finite_in_float32(path: Path, value: float) -> None:
    images = np.zeros((4, 3, 3))
    images[2, 1, 1] = value
    with pytest.raises(DataError, match=r"x_train: expected finite float32 values, image 2 holds"):
        load_images(path, images)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((4, 36)), r"x_train: expected images of shape .*, got shape \(4, 36\)"),
        (np.zeros((4, 1, 1, 6, 6)), r"got shape \(4, 1, 1, 6, 6\)"),
        (np.array(3.0), r"got shape \(\)"),
        (np.zeros((0, 6, 6)), r"holds no images, its shape is \(0, 6, 6\)"),
        (np.zeros((4, 0, 6)), r"holds no images, its shape is \(4, 0, 6\)"),
        (np.zeros((4, 6, 6), bool), "expected images of integers or floats, got bool"),
        (np.zeros((4, 6, 6), complex), "got complex128"),
        (np.zeros((4, 6, 6), "S3"), "got bytes"),
        (np.zeros((4, 6, 6), [("a", "u1")]), "got void"),
        (np.full((4, 6, 6), None), "holds Python objects, expected numbers"),
    ],
)
def test_what_is_no_array_of_images(path: Path, images: NDArray[Any], message: str) -> None:
    write_npz(path, {"x_train": images, "y_train": np.zeros(4, int)})
    with pytest.raises(DataError, match=message) as caught:
        load_split(str(path), None, "train")
    assert str(caught.value).startswith(f"{path}: x_train: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.zeros((12, 1), int), r"got shape \(12, 1\); flatten them"),
        (np.zeros((1, 12), int), r"got shape \(1, 12\); flatten them"),
        (np.eye(12, dtype=int), r"got shape \(12, 12\); turn one-hot rows into class numbers"),
        (np.array(1), r"expected labels of shape \(N,\), got shape \(\)"),
        (np.zeros(12), "expected integer labels, got float64"),
        (np.zeros(12, bool), "expected integer labels, got bool"),
        (np.full(12, "7"), "expected integer labels, got str"),
        (np.array([0, 1, -1] * 4), "expected labels of at least 0, label 2 is -1"),
        (np.array([0, 2**63] * 6, np.uint64), "label 1 is 9223372036854775808"),
        (np.zeros(0, int), "holds no labels"),
        (np.zeros(11, int), "holds 12 images, but .*y_train holds 11 labels"),
        (np.full(12, None), "holds Python objects"),
    ],
)
def test_what_is_no_array_of_labels(path: Path, labels: NDArray[Any], message: str) -> None:
    write_npz(path, small_arrays() | {"y_train": labels})
    with pytest.raises(DataError, match=message) as caught:
        load_dataset(str(path))
    assert f"{path}: y_train" in str(caught.value)


def test_missing_arrays_are_all_named(path: Path) -> None:
    arrays = small_arrays()
    write_npz(path, {"x_train": arrays["x_train"], "Y_train": arrays["y_train"], "x_test": arrays["x_test"]})
    with pytest.raises(DataError, match=r"has no y_train, y_test; .* it holds x_train, Y_train, x_test"):
        load_dataset(str(path))


def test_one_part_needs_only_its_own_arrays(path: Path) -> None:
    arrays = small_arrays()
    write_npz(path, {"x_test": arrays["x_test"], "y_test": arrays["y_test"]})
    assert len(load_split(str(path), None, "test")) == 5


def test_no_object_is_unpickled(path: Path, tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return Path.touch, (tmp_path / "sprung",)

    trap = np.empty(12, object)
    trap[:] = [Trap() for _ in range(12)]
    write_npz(path, small_arrays() | {"y_train": trap})
    with pytest.raises(DataError, match="holds Python objects"):
        load_dataset(str(path))
    assert not (tmp_path / "sprung").exists()


def stored_npz(path: Path) -> bytes:
    return write_npz(path, small_arrays()).read_bytes()


def huge_npy(shape: tuple[int, ...], descr: str = "|u1") -> bytes:
    """Write the header of an array, and none of its items."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": descr, "fortran_order": False, "shape": shape})
    return stream.getvalue()


def npy_with_header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode("latin1") + bytes(16)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected an .npz file, got an empty file"),
        (b"<html>", "got an HTML or XML page"),
        (npy_bytes(np.zeros(3)), "got a single .npy array"),
        (b"PK\x03\x04" + bytes(50), "is damaged"),
    ],
)
def test_what_is_no_npz(path: Path, content: bytes, message: str) -> None:
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        load_dataset(str(path))
    assert str(caught.value).startswith(f"{path}: ")


HEADERS = {
    "promises more than follows": (huge_npy((2**31, 28, 28)), r"declares 1683627180032 bytes .*, 0 follow"),
    "promises less": (huge_npy((2, 3, 3)) + bytes(19), r"declares 18 bytes .*, 19 follow"),
    "negative length": (
        npy_with_header("{'descr':'|u1','fortran_order':False,'shape':(-1,4)}"),
        "header cannot be read",
    ),
    "text as shape": (
        npy_with_header("{'descr':'|u1','fortran_order':False,'shape':'abc'}"),
        "header cannot be read",
    ),
    "no dtype": (
        npy_with_header("{'descr':'nonsense','fortran_order':False,'shape':(1,)}"),
        "header cannot be read",
    ),
    "an expression": (npy_with_header("__import__('os').getcwd()"), "header cannot be read"),
    "no dictionary": (npy_with_header("[1, 2]"), "header cannot be read"),
    "entry missing": (npy_with_header("{'descr':'|u1'}"), "header cannot be read"),
    "deep nesting": (npy_with_header("(" * 9000), "header cannot be read"),
    "endless header": (
        b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**31) + bytes(20_000_000),
        "header cannot be read",
    ),
    "no array": (b"not an array at all", "expected an array as numpy.save writes it"),
    "nothing": (b"", "got an empty file"),
    "future version": (b"\x93NUMPY\x09\x00" + bytes(50), "header cannot be read"),
}


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("case", HEADERS)
def test_headers_that_lie(path: Path, case: str, compression: int) -> None:
    entry, message = HEADERS[case]
    write_npz_entries(path, {"x_test": entry, "y_test": npy_bytes(np.zeros(3, int))}, compression)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=message) as caught:
            load_split(str(path), None, "test")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert str(caught.value).startswith(f"{path}: x_test: ")
    assert peak < 4 * 2**20


def declare_size(path: Path, size: int) -> None:
    """Overwrite the uncompressed size of the first entry in the zip file's directory."""
    data = bytearray(path.read_bytes())
    start = data.index(b"PK\x01\x02")
    data[start + 24 : start + 28] = struct.pack("<I", size)
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("compression", "message"),
    [
        (zipfile.ZIP_STORED, "is damaged"),
        (zipfile.ZIP_DEFLATED, "declares 4000000000 bytes, more than .* compressed bytes can hold"),
    ],
)
def test_zip_directory_that_lies(path: Path, compression: int, message: str) -> None:
    arrays = {name: npy_bytes(array) for name, array in small_arrays().items()}
    write_npz_entries(path, arrays, compression)
    declare_size(path, 4_000_000_000)
    with pytest.raises(DataError, match=message):
        load_dataset(str(path))


def test_more_than_8_gib_is_refused_unread(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cnncli.data.reading.MAX_BYTES", 400)
    write_npz(path, small_arrays())
    with pytest.raises(DataError, match=r"x_train: declares 416 bytes; more than 400"):
        load_dataset(str(path))


def test_other_compression_methods(path: Path) -> None:
    arrays = {name: npy_bytes(array) for name, array in small_arrays().items()}
    write_npz_entries(path, arrays, zipfile.ZIP_LZMA)
    with pytest.raises(DataError, match=r"compressed by zip method 14; expected a file of numpy.savez"):
        load_dataset(str(path))


def test_encrypted_entry(path: Path) -> None:
    data = bytearray(stored_npz(path))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + offset] |= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match="x_train: is encrypted"):
        load_dataset(str(path))


def test_flipped_bit_in_an_image(path: Path) -> None:
    data = bytearray(stored_npz(path))
    data[data.index(bytes([7] * 24))] ^= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"x_train: is damaged \(Bad CRC-32"):
        load_dataset(str(path))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_no_damage_ends_in_anything_but_a_data_error(path: Path, save: Any) -> None:
    arrays = small_arrays(2, 1)
    save(path, **arrays)
    whole = path.read_bytes()
    positions = range(0, len(whole), 3)
    damaged = [whole[:position] for position in positions]
    damaged += [
        whole[:position] + bytes([whole[position] ^ 0xFF]) + whole[position + 1 :] for position in positions
    ]
    for content in damaged:
        path.write_bytes(content)
        try:
            dataset = load_dataset(str(path))
        except DataError as error:
            assert str(path) in str(error)
        else:
            np.testing.assert_array_equal(dataset.train.images[:, 0], arrays["x_train"])
            np.testing.assert_array_equal(dataset.test.labels, arrays["y_test"])
