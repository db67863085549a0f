"""Normalisation: exact statistics, and the way into batch-last arrays."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from cnncli.data import Normalization, load_split
from cnncli.errors import DataError, ShapeError
from tests.data.made_files import MNIST_DIRECTORY

SHAPES = hnp.array_shapes(min_dims=4, max_dims=4, max_side=6)
SIXTEENTHS = st.integers(-800, 800).map(lambda n: n / 16)
ANY_IMAGES = hnp.arrays("u1", SHAPES) | hnp.arrays("f4", SHAPES, elements=SIXTEENTHS)


@pytest.fixture(scope="module")
def mnist_test_images() -> NDArray[Any]:
    return load_split("mnist", MNIST_DIRECTORY, "test").images


def test_statistics_of_the_real_digits(mnist_test_images: NDArray[Any]) -> None:
    # sums of integers: exact in any order
    total = int(mnist_test_images.sum(dtype=np.int64))
    squares = int((mnist_test_images.astype(np.int64) ** 2).sum())
    mean = total / mnist_test_images.size
    normalization = Normalization.from_images(mnist_test_images)
    assert normalization.mean[0] == pytest.approx(mean, rel=1e-12)
    assert normalization.std[0] == pytest.approx(
        math.sqrt(squares / mnist_test_images.size - mean**2), rel=1e-12
    )
    assert normalization.mean[0] / 255 == pytest.approx(0.13251, abs=1e-5)


@given(images=ANY_IMAGES)
def test_statistics_are_numpys_in_float64(images: NDArray[Any]) -> None:
    normalization = Normalization.from_images(images)
    wide = images.astype(np.float64)
    np.testing.assert_allclose(normalization.mean, wide.mean(axis=(0, 2, 3)), rtol=1e-12, atol=1e-12)
    std = wide.std(axis=(0, 2, 3))
    np.testing.assert_allclose(
        normalization.std, np.where(np.ptp(wide, axis=(0, 2, 3)) == 0, 1, std), rtol=1e-9
    )


def test_statistics_over_many_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    images = np.random.default_rng(0).normal(1000, 0.5, (50, 3, 4, 5)).astype(np.float32)
    images[:, 1] *= 2
    whole = Normalization.from_images(images)
    monkeypatch.setattr("cnncli.data.normalization._BLOCK_BYTES", 8 * 60 * 7)
    in_blocks = Normalization.from_images(images)
    np.testing.assert_allclose(in_blocks.mean, images.mean(axis=(0, 2, 3), dtype=np.float64), rtol=1e-13)
    np.testing.assert_allclose(in_blocks.std, images.std(axis=(0, 2, 3), dtype=np.float64), rtol=1e-10)
    np.testing.assert_allclose(whole.std, in_blocks.std, rtol=1e-10)


@pytest.mark.parametrize("value", [0, 7, 255])
def test_constant_bytes_get_std_1(value: int) -> None:
    images = np.full((3, 1, 2, 2), value, np.uint8)
    assert Normalization.from_images(images) == Normalization((value,), (1.0,))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [0.1, -1e30, 1e-42])
def test_constant_floats_get_std_1_whatever_rounding_leaves(value: float, dtype: Any) -> None:
    assert Normalization.from_images(np.full((997, 1, 5, 3), value, dtype)).std == (1.0,)


def test_spread_that_float32_cannot_divide_by_gets_std_1() -> None:
    images = np.zeros((2, 1, 3, 3), np.float32)
    images[0] = 1e-45
    normalization = Normalization.from_images(images)
    assert normalization.std == (1.0,)
    assert np.isfinite(normalization.apply(images)).all()


def test_only_the_constant_channel_gets_std_1() -> None:
    images = np.zeros((4, 2, 3, 3), np.uint8)
    images[0, 1] = 9
    mean, std = Normalization.from_images(images).mean, Normalization.from_images(images).std
    assert mean == (0.0, 2.25) and std[0] == 1.0
    assert std[1] == pytest.approx(math.sqrt(9 * 9 / 4 - 2.25**2))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(images=ANY_IMAGES)
def test_apply_is_the_formula_with_the_batch_last(dtype: Any, images: NDArray[Any]) -> None:
    C = images.shape[1]
    normalization = Normalization(tuple(10.5 + c for c in range(C)), tuple(3.25 + c for c in range(C)))
    before = images.copy()
    result = normalization.apply(images, dtype)
    N, C, H, W = images.shape
    assert result.shape == (C, H, W, N) and result.dtype == dtype and result.flags.c_contiguous
    for n in range(N):
        for c in range(C):
            expected = (images[n, c].astype(dtype) - dtype(10.5 + c)) / dtype(3.25 + c)
            np.testing.assert_array_equal(result[c, :, :, n], expected)
    np.testing.assert_array_equal(images, before)


def test_applied_to_its_own_images(mnist_test_images: NDArray[Any]) -> None:
    images = mnist_test_images[:2000]
    result = Normalization.from_images(images).apply(images, np.float64)
    assert result.mean() == pytest.approx(0, abs=1e-12)
    assert result.std() == pytest.approx(1, rel=1e-12)


def test_apply_writes_to_out() -> None:
    images = np.arange(24, dtype=np.uint8).reshape(2, 1, 3, 4)
    out = np.full((1, 3, 4, 2), np.nan, np.float32)
    assert Normalization((1.0,), (2.0,)).apply(images, out=out) is out
    np.testing.assert_array_equal(out[0, :, :, 1], (np.arange(12).reshape(3, 4) + 12 - 1) / 2)


def test_apply_to_a_slice_of_images() -> None:
    images = np.random.default_rng(0).integers(0, 256, (6, 2, 3, 4), dtype=np.uint8)
    normalization = Normalization((1.0, 2.0), (3.0, 4.0))
    np.testing.assert_array_equal(normalization.apply(images[1::2]), normalization.apply(images[1::2].copy()))


@pytest.mark.parametrize(
    "out",
    [
        np.zeros((2, 1, 3, 4), np.float32),
        np.zeros((1, 3, 4, 2), np.float64),
        np.zeros((1, 3, 4, 4), np.float32)[..., ::2],
    ],
    ids=["batch first", "dtype", "strided"],
)
def test_apply_refuses_another_out(out: NDArray[Any]) -> None:
    with pytest.raises(ShapeError, match=r"contiguous float32 array of shape \(1, 3, 4, 2\)"):
        Normalization((0.0,), (1.0,)).apply(np.zeros((2, 1, 3, 4), np.uint8), out=out)


@pytest.mark.parametrize("shape", [(2, 3, 4, 4), (2, 4, 4), (1, 4)])
def test_apply_refuses_other_images(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"expected images of shape \(N, 1, H, W\)"):
        Normalization((0.0,), (1.0,)).apply(np.zeros(shape, np.uint8))


@pytest.mark.parametrize("shape", [(0, 1, 4, 4), (2, 4, 4)])
def test_nothing_to_measure(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"\(N, C, H, W\)"):
        Normalization.from_images(np.zeros(shape, np.uint8))


def test_json_keeps_every_bit() -> None:
    normalization = Normalization.from_images(
        np.random.default_rng(0).integers(0, 256, (7, 3, 5, 5), dtype=np.uint8)
    )
    assert Normalization.from_dict(json.loads(json.dumps(normalization.to_dict()))) == normalization


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"mean": [1.0]},
        {"mean": [1.0], "std": [1.0], "more": 1},
        {"mean": [1.0], "std": [1.0, 2.0]},
        {"mean": [], "std": []},
        {"mean": 1.0, "std": 1.0},
        {"mean": ["1"], "std": [1.0]},
        {"mean": [True], "std": [1.0]},
        {"mean": [math.nan], "std": [1.0]},
        {"mean": [0.0], "std": [0.0]},
        {"mean": [0.0], "std": [-1.0]},
        {"mean": [0.0], "std": [math.inf]},
    ],
)
def test_records_that_are_no_normalization(data: object) -> None:
    with pytest.raises(DataError, match=r"^normalization: expected"):
        Normalization.from_dict(data)
