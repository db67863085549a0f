"""The three texts that the walk-throughs answer: a wiki's session, a blog's derivation, a question."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from cnncli.explain import Case, SizeRequest, Walkthrough, count_from, draw, explain, laid_out, resolve_sizes
from cnncli.nn import batch_first, batch_last, col2im, im2col
from tests.explain.cases import case_of, panels
from tests.nn.geometries import Geometry, geometries

FIRST_ROW = [0, 3000, 6000, 9000, 12000, 15000, 18000, 21000, 24000, 27000, 30000, 33000]
LAST_ROW = [n + 398999 for n in FIRST_ROW]


def pool_from_upstream(shape: tuple[int, ...], order: str | None = None) -> Case:
    sizes = resolve_sizes(SizeRequest("max-pool", upstream_shape=shape))
    return Case(
        draw("x", sizes.shape, 0),
        sizes.windows,
        upstream=count_from(0, "dout", sizes.upstream_shape),
        order=order,
        upstream_shape=shape,
    )


def lines_of(walkthrough: Walkthrough) -> list[str]:
    """Give the lines of a page with single spaces."""
    return [" ".join(line.text.split()) for line in laid_out(walkthrough, 80)]


@pytest.fixture(scope="module")
def wiki() -> Walkthrough:
    return explain("max-pool", pool_from_upstream((12, 12, 30, 100)))


def test_the_numbers_of_the_session(wiki: Walkthrough) -> None:
    shown = panels(wiki)
    dout_t, flat, dmax = (shown[name].values for name in ("dout_t", "flat", "dmax"))
    assert dout_t.shape == (12, 30, 100, 12)
    assert dout_t[0, 0, 0].tolist() == FIRST_ROW
    assert dout_t[-1, -1, -1].tolist() == LAST_ROW
    assert dout_t[1, 0, 0].tolist() == [n + 36000 for n in FIRST_ROW]
    assert flat[:3].tolist() == [0, 3000, 6000]
    assert flat[-3:].tolist() == [425999, 428999, 431999]
    assert dmax.shape == (432000, 4)


def test_the_numbers_of_the_session_in_print(wiki: Walkthrough) -> None:
    lines = lines_of(wiki)
    assert "dout_t (N, OH, OW, C) = (12, 30, 100, 12)" in lines
    assert "0,0,0 0 3000 6000 ... 27000 30000 33000" in lines
    assert "11,29,99 398999 401999 404999 ... 425999 428999 431999" in lines
    assert "0 3000 6000 ... 425999 428999 431999" in lines
    assert "dmax (size, pool_size) = (432000, 4)" in lines
    assert lines[-1] == "They agree: the largest difference is 0."


def test_the_rest_of_the_way_to_dx(wiki: Walkthrough) -> None:
    shown = panels(wiki)
    x, arg_max, dmax, dx = (shown[name].values for name in ("x", "arg_max", "dmax", "dx"))
    assert x.shape == dx.shape == (12, 12, 60, 200)
    assert arg_max.shape == (432000,) and arg_max[:3].tolist() == [0, 3, 1]
    # element by element for a few windows: the winner has the gradient, its neighbours have 0
    for n, c, oh, ow in [(0, 0, 0, 0), (3, 7, 11, 42), (11, 11, 29, 99), (11, 0, 0, 99)]:
        window = x[n, c, 2 * oh : 2 * oh + 2, 2 * ow : 2 * ow + 2].ravel()
        gradient = dx[n, c, 2 * oh : 2 * oh + 2, 2 * ow : 2 * ow + 2].ravel()
        expected = [0.0] * 4
        expected[int(window.argmax())] = float(((n * 12 + c) * 30 + oh) * 100 + ow)
        assert gradient.tolist() == expected
        row = ((n * 30 + oh) * 100 + ow) * 12 + c
        assert dmax[row].tolist() == expected
    assert dx.sum() == 431999 * 432000 / 2


def test_the_reading_that_r_meant(wiki: Walkthrough) -> None:
    shown = panels(wiki)
    rows, flat = shown["rows_hwcn"].values, shown["flat_hwcn"].values
    assert rows.shape == (100, 12, 12, 30)
    assert rows[0, 0, 0].tolist() == list(range(0, 3000, 100))
    assert rows[-1, -1, -1].tolist() == list(range(429099, 432000, 100))
    grad = np.arange(432000).reshape(12, 12, 30, 100)
    assert rows[7, 3, 9, 21] == grad[3, 9, 21, 7]  # h, w, c, n
    assert flat[-1] == 431999
    text = " ".join(lines_of(wiki))
    assert "HWCN (R) 100 30 12x12 (3, 0, 1, 2) 0 100 200 ... 2900" in text
    assert "100 images with 30 channels of 12x12" in text
    assert "--upstream-shape 100,30,12,12" in text


def test_the_reading_that_r_meant_from_its_own_sizes() -> None:
    walkthrough = explain("max-pool", pool_from_upstream((100, 30, 12, 12), order="HWCN"))
    shown = panels(walkthrough)
    assert shown["x"].values.shape == (100, 30, 24, 24)
    assert shown["dout_hwcn"].values.shape == (12, 12, 30, 100)
    assert shown["dout_hwcn"].values[3, 9, 21, 7] == shown["dout"].values[7, 21, 3, 9]
    assert shown["rows_hwcn"].values[0, 0, 0].tolist() == list(range(0, 3000, 100))
    assert walkthrough.agrees


@pytest.mark.parametrize("winner", range(4))
def test_the_gradient_of_a_maximum(winner: int) -> None:
    window = np.array([1.0, 2, 3, 0])
    window[winner] = 9
    walkthrough = explain("max-pool", case_of(window.reshape(1, 1, 2, 2), topic="max-pool"))
    marks = [int(cell == winner) for cell in range(4)]
    assert panels(walkthrough)["dx"].values.ravel().tolist() == marks
    written = f"({', '.join(map(str, marks))})"
    assert f"the gradient of the maximum is {written}: 1 for the cell" in " ".join(lines_of(walkthrough))


def test_the_derivation_on_several_channels() -> None:
    x = np.array([[[1.0, 2], [4, 3]], [[9, 2], [4, 3]], [[5, 6], [6, 1]]]).reshape(1, 3, 2, 2)
    shown = panels(explain("max-pool", case_of(x, topic="max-pool")))
    assert shown["rows"].values.tolist() == [[1, 2, 4, 3], [9, 2, 4, 3], [5, 6, 6, 1]]
    assert shown["arg_max"].values.tolist() == [2, 0, 1]
    assert shown["out"].values.ravel().tolist() == [4, 9, 6]
    assert shown["dmax"].values.tolist() == [[0, 0, 1, 0], [2, 0, 0, 0], [0, 3, 0, 0]]
    # what the blog's code makes of it: marks without dout, and both of the tied
    assert shown["marks"].values.ravel().tolist() == [0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0]
    assert shown["paid"].values.ravel().tolist() == [0, 3, 3, 0]


def places(shape: tuple[int, ...], KH: int, KW: int, padding: int, stride: int) -> tuple[Any, ...]:
    """Index arrays as in the question, built cell by cell."""
    _, C, H, W = shape
    OH, OW = (H + 2 * padding - KH) // stride + 1, (W + 2 * padding - KW) // stride + 1
    rows = [(c, i, j) for c in range(C) for i in range(KH) for j in range(KW)]
    columns = [(oh, ow) for oh in range(OH) for ow in range(OW)]
    channel = np.array([[c] for c, _, _ in rows])
    row = np.array([[i + stride * oh for oh, _ in columns] for _, i, _ in rows])
    column = np.array([[j + stride * ow for _, ow in columns] for _, _, j in rows])
    return channel, row, column


def im2col_indices(x: NDArray[Any], KH: int, KW: int, padding: int, stride: int) -> NDArray[Any]:
    p = padding
    padded = np.pad(x, ((0, 0), (0, 0), (p, p), (p, p)))
    channel, row, column = places(x.shape, KH, KW, p, stride)
    cells = padded[:, channel, row, column]
    result: NDArray[Any] = cells.transpose(1, 2, 0).reshape(x.shape[1] * KH * KW, -1)
    return result


def col2im_indices(
    cols: NDArray[Any], shape: tuple[int, ...], KH: int, KW: int, padding: int, stride: int
) -> NDArray[Any]:
    N, C, H, W = shape
    padded = np.zeros((N, C, H + 2 * padding, W + 2 * padding))
    cells = cols.reshape(C * KH * KW, -1, N).transpose(2, 0, 1)
    for image, values in zip(padded, cells, strict=True):
        np.add.at(image, places(shape, KH, KW, padding, stride), values)
    return padded[:, :, padding : padding + H, padding : padding + W]


@given(geometry=geometries())
def test_the_code_of_the_question_gives_our_matrix(geometry: Geometry) -> None:
    x = geometry.images(geometry.rng)
    (KH, KW), stride, padding = geometry.kernel_size, geometry.stride[0], 2
    ours = im2col(batch_last(x), (KH, KW), stride, padding)
    np.testing.assert_array_equal(ours, im2col_indices(x, KH, KW, padding, stride))
    grad = geometry.rng.standard_normal(ours.shape)
    back = batch_first(col2im(grad, batch_last(x).shape, (KH, KW), stride, padding))
    theirs = col2im_indices(grad, x.shape, KH, KW, padding, stride)
    np.testing.assert_allclose(back, theirs, rtol=0, atol=1e-13)


def test_the_image_of_the_question_comes_back_times_its_coverage() -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 4))
    walkthrough = explain("col2im", case_of(x, kernel_size=(3, 3), padding=(1, 1)))
    back = col2im_indices(im2col_indices(x, 3, 3, 1, 1), x.shape, 3, 3, 1, 1)
    shown = panels(walkthrough)
    np.testing.assert_allclose(shown["back"].values, back, rtol=0, atol=1e-13)
    assert not np.allclose(back, x)
    np.testing.assert_allclose(back / shown["coverage"].values, x, rtol=0, atol=1e-13)
