"""The textbook's algorithms against plain loops: what is compared with must be right by itself."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
from hypothesis import given

from cnncli.explain import mistakes, textbook
from cnncli.explain.textbook import Slide
from tests.nn import references
from tests.nn.geometries import Geometry, geometries


def slide_of(geometry: Geometry) -> Slide:
    return Slide(geometry.kernel_size, geometry.stride, geometry.sides)


def shape_of(geometry: Geometry) -> tuple[int, int, int, int]:
    return geometry.N, geometry.C, geometry.H, geometry.W


def test_it_shares_nothing_with_the_code_that_trains() -> None:
    for module in (textbook, mistakes):
        assert module.__file__ is not None
        tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
        imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not any(name and name.startswith(("cnncli.nn", "numpy.lib")) for name in imported)


@given(geometry=geometries())
def test_im2col(geometry: Geometry) -> None:
    x, slide = geometry.images(geometry.rng), slide_of(geometry)
    cols = references.im2col(x, *slide)
    np.testing.assert_array_equal(textbook.im2col_by_index(x, slide), cols)
    rows = cols.reshape(len(cols), -1, geometry.N).transpose(2, 1, 0).reshape(-1, len(cols))
    np.testing.assert_array_equal(textbook.im2col(x, slide), rows)


@given(geometry=geometries())
def test_col2im(geometry: Geometry) -> None:
    rng, slide, shape = geometry.rng, slide_of(geometry), shape_of(geometry)
    cols = rng.standard_normal(references.im2col(np.zeros(shape), *slide).shape)
    expected = references.col2im(cols, shape, *slide)
    np.testing.assert_allclose(textbook.col2im_by_index(cols, shape, slide), expected, rtol=0, atol=1e-13)
    rows = cols.reshape(len(cols), -1, geometry.N).transpose(2, 1, 0).reshape(-1, len(cols))
    np.testing.assert_allclose(textbook.col2im(rows, shape, slide), expected, rtol=0, atol=1e-13)


@given(geometry=geometries())
def test_conv(geometry: Geometry) -> None:
    rng, slide = geometry.rng, slide_of(geometry)
    x = geometry.images(rng)
    weight, bias = rng.standard_normal((2, geometry.C, *geometry.kernel_size)), rng.standard_normal(2)
    y = textbook.conv(x, weight, bias, slide)
    np.testing.assert_allclose(
        y, references.convolve(x, weight, bias, geometry.stride, geometry.sides), rtol=0, atol=1e-12
    )
    dout = rng.standard_normal(y.shape)
    ours = textbook.conv_backward(x, weight, dout, slide)
    expected = references.convolve_backward(x, weight, geometry.stride, geometry.sides, dout)
    for gradient, loops in zip(ours, expected, strict=True):
        np.testing.assert_allclose(gradient, loops, rtol=0, atol=1e-12)


@given(geometry=geometries(pooling=True))
def test_max_pool(geometry: Geometry) -> None:
    rng, slide = geometry.rng, slide_of(geometry)
    x = rng.integers(-2, 3, shape_of(geometry)).astype(float)
    out = textbook.max_pool(x, slide)
    np.testing.assert_array_equal(out, references.max_pool(x, *slide))
    dout = rng.standard_normal(out.shape)
    expected = references.max_pool_backward(x, geometry.kernel_size, geometry.stride, geometry.sides, dout)
    np.testing.assert_allclose(textbook.max_pool_backward(x, dout, slide), expected, rtol=0, atol=1e-13)


def test_padding_of_nothing_keeps_every_pixel() -> None:
    assert textbook.crop(np.ones((1, 1, 3, 3)), (0, 0, 0, 0)).shape == (1, 1, 3, 3)


def test_storing_and_adding_once_keep_one_cell_of_each_pixel() -> None:
    slide = Slide((1, 2), (1, 1), (0, 0, 0, 0))
    cols = np.array([[1.0, 2], [10, 20]])  # pixel 1 is cell j=1 of window 0 and cell j=0 of window 1
    shape = (1, 1, 1, 3)
    assert mistakes.col2im_that_stores(cols, shape, slide).ravel().tolist() == [1, 10, 20]
    assert mistakes.col2im_that_adds_once(cols, shape, slide).ravel().tolist() == [1, 10, 20]
    assert textbook.col2im_by_index(cols, shape, slide).ravel().tolist() == [1, 12, 20]


def test_paying_every_tie() -> None:
    x, slide = np.array([[1.0, 2], [2, 2]]).reshape(1, 1, 2, 2), Slide((2, 2), (2, 2), (0, 0, 0, 0))
    assert mistakes.pool_that_pays_ties(x, np.full((1, 1, 1, 1), 3.0), slide).tolist() == [[0, 3, 3, 3]]


def test_a_pool_that_stores_keeps_the_last_gradient() -> None:
    slide = Slide((2, 2), (1, 1), (0, 0, 0, 0))
    # the centre of 3x3 is cell 3, 2, 1, 0 of the four windows
    winners = np.array([[3, 2], [1, 0]]).reshape(1, 1, 2, 2)
    dout = np.array([[1.0, 2], [3, 4]]).reshape(1, 1, 2, 2)
    stored = mistakes.pool_that_stores(winners, dout, (1, 1, 3, 3), slide)
    assert stored.tolist() == [[[[0, 0, 0], [0, 4, 0], [0, 0, 0]]]]
