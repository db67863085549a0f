"""Arrays to explain: made, drawn, or read from a file that may be anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cnncli.data import load_split
from cnncli.errors import DataError
from cnncli.explain import count_from, draw, read_array, take_digits, zeros
from cnncli.explain.samples import MOST_NUMBERS
from tests.cli.program import MNIST

AXES = "(N, C, H, W)"


def save(path: Path, values: Any) -> Path:
    np.save(path, values, allow_pickle=True)
    return path


def test_counting() -> None:
    assert count_from(0, "x", (1, 1, 2, 2)).values.tolist() == [[[[0, 1], [2, 3]]]]
    assert count_from(1, "w", (2,)).values.tolist() == [1, 2]
    assert count_from(0, "x", (1, 1, 2, 2)).code == ("x = np.arange(4.0).reshape(1, 1, 2, 2)",)
    assert zeros("b", (3,)).values.tolist() == [0, 0, 0]


def test_drawing_depends_on_the_seed_alone() -> None:
    first = draw("x", (1, 1, 20, 20), 3).values
    assert np.array_equal(first, draw("x", (1, 1, 20, 20), 3).values)
    assert not np.array_equal(first, draw("x", (1, 1, 20, 20), 4).values)
    assert set(first.ravel()) == set(range(10))


def test_digits_are_mnist_s() -> None:
    taken = take_digits("x", 2, 0, MNIST, None)
    assert taken.values.shape == (2, 1, 28, 28)
    assert taken.values.max() == 255
    chosen = np.random.default_rng(0).choice(10000, 2, replace=False)
    labels = load_split("mnist", MNIST, "test").labels[chosen]
    first, second = (f"number {i}, a {label}" for i, label in zip(chosen, labels, strict=True))
    assert f"MNIST's test images: {first}, {second}." in taken.remark
    names: dict[str, Any] = {"np": np}
    exec("\n".join(taken.code), names)
    assert np.array_equal(names["x"], taken.values)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, np.bool_, np.dtype(">f4"), np.float16])
def test_other_numbers_become_float64_and_it_is_said(tmp_path: Path, dtype: Any) -> None:
    values = np.array([[200, 0], [1, 7]]).astype(dtype).reshape(1, 1, 2, 2)
    read = read_array("x", save(tmp_path / "a.npy", values), AXES)
    assert read.values.dtype == np.float64
    assert read.values.tolist() == values.astype(float).tolist()
    assert f"holds {np.dtype(dtype).name}" in read.remark
    assert read.code[0].endswith(".astype(float)")


def test_float64_and_the_order_of_fortran(tmp_path: Path) -> None:
    values = np.asfortranarray(np.arange(24.0).reshape(2, 3, 2, 2))
    read = read_array("x", save(tmp_path / "a.npy", values), AXES)
    assert np.array_equal(read.values, values)
    assert read.remark == ""
    assert read.code == (f"x = np.load({str(tmp_path / 'a.npy')!r})",)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([[1], [2, 3]], dtype=object), "holds Python objects"),
        (np.zeros(3), r"expected an array of shape \(N, C, H, W\), got \(3,\)$"),
        (np.zeros((3, 4)), r"got \(3, 4\); one image of one channel is x.reshape\(1, 1, 3, 4\)"),
        (np.zeros((3, 4, 5)), r"x.reshape\(3, 1, 4, 5\), channels of one image x.reshape\(1, 3, 4, 5\)"),
        (np.zeros((1, 1, 1, 1, 1)), r"got \(1, 1, 1, 1, 1\)"),
        (np.zeros((1, 1, 2, 2), complex), "expected real numbers, got complex128"),
        (np.full((1, 1, 2, 2), "a"), "expected real numbers, got <U1"),
        (np.zeros((1, 1, 2, 2), [("a", float)]), "expected real numbers"),
        (np.zeros((0, 1, 2, 2)), "holds no numbers"),
        (np.full((1, 1, 2, 2), np.nan), r"expected finite numbers .* the one at \[0, 0, 0, 0\] is nan"),
        (np.array([0, 1, np.inf, 2]).reshape(1, 1, 2, 2), r"the one at \[0, 0, 1, 0\] is inf"),
        (np.full((1, 1, 2, 2), 1e200), "of at most 1e.100"),
        (np.zeros((1, 1, 1, MOST_NUMBERS + 1), np.uint8), "expected at most 5,000,000 numbers"),
    ],
)
def test_arrays_that_are_no_images(tmp_path: Path, values: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_array("x", save(tmp_path / "a.npy", values), AXES)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "an empty file"),
        (b"hello", "a file that begins with the bytes"),
        (b"PK\x03\x04", "a zip archive"),
        (b"\x93NUMPY", "its header cannot be read"),
        (b"\x93NUMPY\x09\x00abcdef", "its header cannot be read"),
        (b"\x93NUMPY\x01\x00\x10\x00{'descr': 1}     ", "its header cannot be read"),
    ],
)
def test_files_that_are_no_arrays(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_array("x", path, AXES)


def test_a_header_that_lies_costs_nothing(tmp_path: Path) -> None:
    good = save(tmp_path / "a.npy", np.zeros((1, 1, 3, 3), np.uint8)).read_bytes()
    for promise in (b"(9, 9, 9, 9)", b"(1,1,9**9,3)", b"(1,1,3, -30)", b"(1, 1, 3, 4)"):
        path = tmp_path / "b.npy"
        path.write_bytes(good.replace(b"(1, 1, 3, 3)", promise))
        with pytest.raises(DataError, match="is damaged"):
            read_array("x", path, AXES)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read: No such file"):
        read_array("x", tmp_path / "none.npy", AXES)
    with pytest.raises(DataError, match="cannot be read: "):
        read_array("x", tmp_path, AXES)


@given(
    n_bytes=st.none() | st.integers(0, 199),
    mutations=st.lists(st.tuples(st.integers(0, 199), st.integers(0, 255)), max_size=4),
)
def test_mutated_files_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, n_bytes: int | None, mutations: list[tuple[int, int]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "mutated.npy"
    save(path, np.arange(9.0).reshape(1, 1, 3, 3))
    content = bytearray(path.read_bytes())
    for position, byte in mutations:
        content[position] = byte
    path.write_bytes(content[:n_bytes])
    try:
        read = read_array("x", path, AXES)
    except DataError as error:
        assert str(path) in str(error)
    else:
        assert read.values.ndim == 4 and np.isfinite(read.values).all()
