"""The slow references give what was worked out by hand, so that they can judge the fast code."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.nn import references

NO_PADDING = (0, 0, 0, 0)
NINE = np.arange(9.0).reshape(1, 1, 3, 3)


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "expected"),
    [(5, 2, 1, [0, 1, 2, 3]), (5, 2, 2, [0, 2]), (7, 2, 3, [0, 3]), (3, 3, 5, [0]), (2, 3, 1, [])],
)
def test_windows_fit_whole(size: int, kernel: int, stride: int, expected: list[int]) -> None:
    assert references.starts(size, kernel, stride) == expected


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "expected"),
    [
        ((28, 28), (2, 2), (1, 1), (0, 1, 0, 1)),
        ((1, 6), (1, 3), (1, 2), (0, 0, 0, 1)),
        ((5, 4), (3, 5), (1, 1), (1, 1, 2, 2)),
        ((8, 9), (1, 2), (3, 4), (0, 0, 0, 1)),
    ],
)
def test_same_padding(
    size: tuple[int, int], kernel: tuple[int, int], stride: tuple[int, int], expected: references.FourSides
) -> None:
    assert references.same_sides(size, kernel, stride) == expected


def test_im2col_by_hand() -> None:
    images = np.stack([NINE[0], NINE[0] + 9])
    cols = references.im2col(images, (2, 2), (1, 1), NO_PADDING)
    assert cols.tolist() == [
        [0, 9, 1, 10, 3, 12, 4, 13],
        [1, 10, 2, 11, 4, 13, 5, 14],
        [3, 12, 4, 13, 6, 15, 7, 16],
        [4, 13, 5, 14, 7, 16, 8, 17],
    ]


def test_padded_im2col_by_hand() -> None:
    cols = references.im2col(np.array([[[[1.0, 2.0]]]]), (1, 2), (1, 1), (0, 0, 1, 0))
    assert cols.tolist() == [[0, 1], [1, 2]]


def test_col2im_by_hand() -> None:
    cols = references.im2col(NINE, (2, 2), (1, 1), NO_PADDING)
    image = references.col2im(cols, (1, 1, 3, 3), (2, 2), (1, 1), NO_PADDING)
    assert image[0, 0].tolist() == [[0, 2, 2], [6, 16, 10], [6, 14, 8]]


def test_convolve_by_hand() -> None:
    weight = np.array([[[[1.0, 2.0]]], [[[0.0, -1.0]]]])
    output = references.convolve(NINE, weight, np.array([0.5, 0.0]), (2, 1), (0, 0, 1, 0))
    assert output[0, 0].tolist() == [[0.5, 2.5, 5.5], [12.5, 20.5, 23.5]]
    assert output[0, 1].tolist() == [[0, -1, -2], [-6, -7, -8]]


def test_convolve_backward_by_hand() -> None:
    weight = np.array([[[[1.0, 2.0]]]])
    grad = np.array([[[[1.0, 10.0], [0.0, 0.0], [100.0, 0.0]]]])
    grad_images, grad_weight, grad_bias = references.convolve_backward(NINE, weight, (1, 1), NO_PADDING, grad)
    assert grad_images[0, 0].tolist() == [[1, 12, 20], [0, 0, 0], [100, 200, 0]]
    assert grad_weight.tolist() == [[[[0 + 10 + 600, 1 + 20 + 700]]]]
    assert grad_bias.tolist() == [111]


def test_max_pool_by_hand() -> None:
    images = np.array([[[[1.0, 5.0, 5.0], [5.0, 2.0, 3.0]]]])
    output = references.max_pool(images, (2, 2), (1, 1), NO_PADDING)
    assert output[0, 0].tolist() == [[5, 5]]
    grad = references.max_pool_backward(images, (2, 2), (1, 1), NO_PADDING, np.array([[[[1.0, 10.0]]]]))
    assert grad[0, 0].tolist() == [[0, 11, 0], [0, 0, 0]]


def test_max_pool_leaves_padding_out_and_takes_the_first_nan() -> None:
    images = np.array([[[[-math.inf, -2.0, math.nan, math.nan]]]])
    output = references.max_pool(images, (1, 2), (1, 2), (0, 0, 1, 1))
    np.testing.assert_array_equal(output[0, 0], [[-math.inf, math.nan, math.nan]])
    grad = references.max_pool_backward(
        images, (1, 2), (1, 2), (0, 0, 1, 1), np.array([[[[1.0, 10.0, 100.0]]]])
    )
    assert grad[0, 0].tolist() == [[1, 0, 10, 100]]


def test_cross_entropy_by_hand() -> None:
    logits = [[math.log(1), math.log(3)], [0.0, 0.0]]
    assert references.cross_entropy(logits, [0, 1]) == pytest.approx((math.log(4) + math.log(2)) / 2)
    smoothed = (0.75 * math.log(4) + 0.25 * math.log(4 / 3) + math.log(2)) / 2
    assert references.cross_entropy(logits, [0, 1], smoothing=0.5) == pytest.approx(smoothed)
