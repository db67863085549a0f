"""Windows over images, im2col and its adjoint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cnncli.errors import OptionError, ShapeError
from cnncli.nn import Sides, batch_first, batch_last, col2im, im2col, output_size, windows_over
from tests.nn import references
from tests.nn.geometries import Geometry, geometries


def batch_last_image(rows: list[list[float]]) -> np.ndarray:
    """One image of one channel: (1, H, W, 1)."""
    return np.array(rows)[None, :, :, None]


@given(geometry=geometries())
def test_im2col_matches_the_reference(geometry: Geometry) -> None:
    images = geometry.images(geometry.rng)
    cols = im2col(batch_last(images), geometry.kernel_size, geometry.stride, geometry.padding)
    expected = references.im2col(images, geometry.kernel_size, geometry.stride, geometry.sides)
    np.testing.assert_array_equal(cols, expected)


@given(geometry=geometries())
def test_col2im_matches_the_reference(geometry: Geometry) -> None:
    rng = geometry.rng
    arguments = (geometry.kernel_size, geometry.stride, geometry.padding)
    cols = rng.standard_normal(im2col(batch_last(geometry.images(rng)), *arguments).shape)
    expected = references.col2im(
        cols, (geometry.N, *geometry.input_shape), geometry.kernel_size, geometry.stride, geometry.sides
    )
    image = col2im(cols, (*geometry.input_shape, geometry.N), *arguments)
    assert image.shape == (*geometry.input_shape, geometry.N)
    np.testing.assert_allclose(batch_first(image), expected, rtol=0, atol=1e-13)


@given(geometry=geometries())
def test_col2im_is_the_adjoint_of_im2col(geometry: Geometry) -> None:
    rng = geometry.rng
    arguments = (geometry.kernel_size, geometry.stride, geometry.padding)
    x = rng.standard_normal((*geometry.input_shape, geometry.N))
    cols = im2col(x, *arguments)
    c = rng.standard_normal(cols.shape)
    assert np.vdot(cols, c) == pytest.approx(np.vdot(x, col2im(c, x.shape, *arguments)), abs=1e-11)


@given(geometry=geometries())
def test_col2im_of_im2col_multiplies_by_the_coverage(geometry: Geometry) -> None:
    arguments = (geometry.kernel_size, geometry.stride, geometry.padding)
    x = geometry.rng.integers(-9, 9, (*geometry.input_shape, geometry.N))
    coverage = windows_over(geometry.image_size, *arguments).coverage()
    np.testing.assert_array_equal(
        col2im(im2col(x, *arguments), x.shape, *arguments), x * coverage[:, :, None]
    )


def test_coverage_of_overlapping_windows() -> None:
    assert windows_over((3, 3), 2).coverage().tolist() == [[1, 2, 1], [2, 4, 2], [1, 2, 1]]
    x = np.arange(9).reshape(1, 3, 3, 1)
    assert col2im(im2col(x, 2), x.shape, 2)[0, :, :, 0].tolist() == [[0, 2, 2], [6, 16, 10], [6, 14, 8]]


def test_no_padding_keeps_every_pixel() -> None:
    grad = col2im(np.ones((9, 1)), (1, 3, 3, 1), 3, 1, 0)
    assert grad.shape == (1, 3, 3, 1)
    assert grad.sum() == 9


@pytest.mark.parametrize(
    ("image_size", "kernel_size", "stride", "padding", "expected"),
    [
        pytest.param((10, 10), (6, 1), 1, 0, (5, 10), id="case"),
        pytest.param((2, 4), 2, 2, 0, (1, 2), id="pool"),
        pytest.param((28, 28), 2, 1, "same", (28, 28), id="case"),
        pytest.param((1, 6), (1, 3), (1, 2), "same", (1, 3), id="stride"),
        pytest.param((28, 28), 5, 2, 0, (12, 12), id="case"),
        pytest.param((510, 510), 2, 2, 0, (255, 255), id="case"),
        pytest.param((28, 28), 5, 1, 2, (28, 28), id="lenet"),
        pytest.param((7, 5), (3, 2), (2, 3), (1, 0), (4, 2), id="pairs"),
        pytest.param((3, 3), 3, 4, 0, (1, 1), id="one-window"),
        pytest.param((7, 7), 1, 3, "same", (3, 3), id="same-gaps"),
    ],
)
def test_output_size(
    image_size: tuple[int, int], kernel_size: Any, stride: Any, padding: Any, expected: tuple[int, int]
) -> None:
    size = output_size(image_size, kernel_size, stride, padding)
    assert size == expected
    assert [type(side) for side in size] == [int, int]


def test_same_puts_the_smaller_half_before() -> None:
    assert windows_over((28, 28), 2, 1, "same").sides == Sides(top=0, bottom=1, left=0, right=1)
    assert windows_over((28, 28), 5, 1, "same").sides == Sides(2, 2, 2, 2)
    assert windows_over((1, 6), (1, 3), (1, 2), "same").sides == Sides(0, 0, 0, 1)


@given(size=st.integers(1, 40), kernel=st.integers(1, 9), stride=st.integers(1, 9))
def test_same_gives_one_output_per_stride(size: int, kernel: int, stride: int) -> None:
    windows = windows_over((size, 1), (kernel, 1), (stride, 1), "same")
    assert windows.output_size == (-(-size // stride), 1)
    assert 0 <= windows.sides.bottom - windows.sides.top <= 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((3, 3), 5), "kernel_size: expected at most 3x3, the height and width of the padded input, got 5x5"),
        (((3, 9), (4, 2), 1, (0, 5)), "kernel_size: expected at most 3x19, .* got 4x2"),
        (((3, 3), 0), "kernel_size: expected int >= 1 or .*, got 0"),
        (((3, 3), 1.5), "kernel_size: .* got 1.5"),
        (((3, 3), (1, 2, 3)), r"kernel_size: .* got \[1, 2, 3\]"),
        (((3, 3), 1, 0), "stride: expected int >= 1.* got 0"),
        (((3, 3), 1, True), "stride: .* got true"),
        (((3, 3), 1, 1, -1), 'padding: expected int >= 0, .* or "same", got -1'),
        (((3, 3), 1, 1, "valid"), "padding: .* got 'valid'"),
        (((3, 3), 1, 1, (1, 1, 1, 1)), r"padding: .* got \[1, 1, 1, 1\]"),
        (((3, 3), 1, 1, Sides(0, -1, 0, 0)), "padding: expected int >= 0, .*, got"),
    ],
)
def test_impossible_windows(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        windows_over(*arguments)


def test_padded_cells_are_zero() -> None:
    cols = im2col(batch_last_image([[1.0]]), 3, 1, 1)
    assert cols[:, 0].tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("padding", [0, 1])
def test_dtype_is_kept(dtype: type, padding: int) -> None:
    x: Any = np.ones((2, 4, 3, 2), dtype)
    cols = im2col(x, 2, 1, padding)
    assert cols.dtype == dtype
    assert col2im(cols, x.shape, 2, 1, padding).dtype == dtype


@given(geometry=geometries())
def test_memory_layout_of_the_images_does_not_matter(geometry: Geometry) -> None:
    images = geometry.images(geometry.rng)
    view = np.moveaxis(images, 0, -1)
    arguments = (geometry.kernel_size, geometry.stride, geometry.padding)
    np.testing.assert_array_equal(im2col(view, *arguments), im2col(batch_last(images), *arguments))


@given(geometry=geometries())
def test_im2col_writes_into_out(geometry: Geometry) -> None:
    x = batch_last(geometry.images(geometry.rng))
    arguments = (geometry.kernel_size, geometry.stride, geometry.padding)
    expected = im2col(x, *arguments)
    out = np.full_like(expected, np.nan)
    assert im2col(x, *arguments, out=out) is out
    np.testing.assert_array_equal(out, expected)


def test_col2im_adds_onto_out() -> None:
    out = np.ones((1, 3, 3, 1))
    assert col2im(np.ones((4, 4)), (1, 3, 3, 1), 2, out=out) is out
    assert out[0, :, :, 0].tolist() == [[2, 3, 2], [3, 5, 3], [2, 3, 2]]


def test_arguments_are_untouched() -> None:
    rng = np.random.default_rng(0)
    x, cols = rng.standard_normal((2, 5, 4, 3)), rng.standard_normal((8, 60))
    x.flags.writeable = cols.flags.writeable = False
    result = im2col(x, 2, 1, 1)
    assert not np.shares_memory(result, x)
    assert not np.shares_memory(im2col(x, 1), x)
    assert col2im(cols, (2, 6, 5, 3), 2).flags.writeable


@pytest.mark.parametrize("shape", [(3, 3), (1, 3, 3), (1, 1, 3, 3, 1)])
def test_im2col_refuses_other_ranks(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"im2col: expected images of shape \(C, H, W, N\), got .* \("):
        im2col(np.zeros(shape), 2)


def test_matrices_of_the_wrong_shape() -> None:
    with pytest.raises(ShapeError, match=r"cols: .* \(C\*KH\*KW, OH\*OW\*N\) = \(4, 8\), got \(8, 4\)"):
        col2im(np.zeros((8, 4)), (1, 3, 3, 2), 2)
    with pytest.raises(ShapeError, match=r"out: .* = \(4, 8\), got \(4, 9\)"):
        im2col(np.zeros((1, 3, 3, 2)), 2, out=np.zeros((4, 9)))


@given(geometry=geometries(pooling=True))
def test_first_inside_is_the_first_cell_that_is_no_padding(geometry: Geometry) -> None:
    windows = windows_over(geometry.image_size, geometry.kernel_size, geometry.stride, geometry.padding)
    (H, W), (KH, KW), sides = geometry.image_size, geometry.kernel_size, geometry.sides
    first = np.zeros(windows.output_size, int)
    for number, rows, columns in windows.first_inside():
        first[rows, columns] = number
    for window in references.windows((H, W), (KH, KW), geometry.stride, sides):
        cells = [
            i * KW + j
            for i in range(KH)
            for j in range(KW)
            if 0 <= window.top + i - sides[0] < H and 0 <= window.left + j - sides[2] < W
        ]
        assert first[window.oh, window.ow] == cells[0]


def test_batch_last_and_first() -> None:
    images = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    last = batch_last(images)
    assert last.shape == (3, 4, 5, 2)
    assert last[2, 1, 3, 1] == images[1, 2, 1, 3]
    assert last.flags.c_contiguous
    np.testing.assert_array_equal(batch_first(last), images)
    assert batch_first(last).flags.c_contiguous


@pytest.mark.parametrize("change", [batch_first, batch_last])
def test_orders_of_axes_need_four(change: Any) -> None:
    with pytest.raises(ShapeError, match=r"expected images of shape \(.*\), got an array of shape \(2, 2\)"):
        change(np.zeros((2, 2)))


def test_out_of_another_dtype_is_refused() -> None:
    x = np.full((1, 3, 3, 2), 300.5)
    with pytest.raises(ShapeError, match="expected out of float64 as the images, got int8"):
        im2col(x, 2, out=np.empty((4, 8), np.int8))
    with pytest.raises(ShapeError, match="expected out of float64 and shape"):
        col2im(im2col(x, 2), (1, 3, 3, 2), 2, out=np.zeros((1, 3, 3, 2), np.float32))
