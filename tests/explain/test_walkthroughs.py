"""Every number of a walk-through: its own lines of NumPy, and plain loops, give the same."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cnncli.explain import (
    TOPICS,
    Case,
    SizeRequest,
    Walkthrough,
    count_from,
    draw,
    explain,
    laid_out,
    resolve_sizes,
)
from cnncli.explain.walkthrough import Check, compared
from cnncli.nn import windows
from tests.explain.cases import case_of, case_of_geometry, check_code, panels, run_code
from tests.nn import references
from tests.nn.geometries import Geometry, geometries


def text_of(walkthrough: Walkthrough, width: int = 80) -> str:
    return "\n".join(line.text for line in laid_out(walkthrough, width))


def assert_equal(panel: Any, expected: NDArray[Any]) -> None:
    assert panel.values.shape == expected.shape
    np.testing.assert_allclose(panel.values, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("topic", ["im2col", "col2im", "conv"])
@given(geometry=geometries(), whole=st.booleans())
def test_the_lines_of_code_give_the_numbers(topic: str, geometry: Geometry, whole: bool) -> None:
    case = case_of_geometry(geometry, whole=whole)
    walkthrough = explain(topic, case)
    check_code(walkthrough, case)
    assert walkthrough.agrees
    text_of(walkthrough)


@given(geometry=geometries(pooling=True), whole=st.booleans())
def test_the_lines_of_code_of_max_pool_give_the_numbers(geometry: Geometry, whole: bool) -> None:
    case = case_of_geometry(geometry, pooling=True, whole=whole)
    walkthrough = explain("max-pool", case)
    check_code(walkthrough, case)
    assert walkthrough.agrees
    text_of(walkthrough)


def arguments(geometry: Geometry) -> tuple[Any, ...]:
    return geometry.kernel_size, geometry.stride, geometry.sides


@given(geometry=geometries())
def test_im2col_shows_the_matrix_of_plain_loops(geometry: Geometry) -> None:
    case = case_of_geometry(geometry)
    shown = panels(explain("im2col", case))
    cols = references.im2col(case.x.values, *arguments(geometry))
    assert_equal(shown["cols"], cols)
    # the book has windows as rows, and the batch slowest
    by_window = cols.reshape(len(cols), -1, geometry.N).transpose(2, 1, 0)
    assert_equal(shown["rows"], by_window.reshape(-1, len(cols)))


@given(geometry=geometries())
def test_the_origin_of_every_cell(geometry: Geometry) -> None:
    case = case_of_geometry(geometry)
    origin = panels(explain("im2col", case))["origin"].values
    W = geometry.W
    for row, column in np.ndindex(origin.shape):
        c = row // (geometry.kernel_size[0] * geometry.kernel_size[1])
        n = column % geometry.N
        cell, pixel = case.cols[row, column], int(origin[row, column])
        assert cell == (0 if pixel < 0 else case.x.values[n, c, pixel // W, pixel % W])


@given(geometry=geometries())
def test_col2im_shows_the_sums_of_plain_loops(geometry: Geometry) -> None:
    case = case_of_geometry(geometry)
    shown = panels(explain("col2im", case))
    x, shape = case.x.values, case.shape
    coverage = references.col2im(
        references.im2col(np.ones(shape), *arguments(geometry)), shape, *arguments(geometry)
    )
    assert_equal(shown["back"], x * coverage)
    assert_equal(shown["coverage"], coverage[0, 0])
    assert_equal(shown["again"], x * (coverage > 0))
    assert_equal(shown["dx"], references.col2im(shown["dcols"].values, shape, *arguments(geometry)))


@given(geometry=geometries())
def test_conv_shows_the_gradients_of_plain_loops(geometry: Geometry) -> None:
    case = case_of_geometry(geometry)
    assert case.weight is not None and case.bias is not None and case.upstream is not None
    shown = panels(explain("conv", case))
    weight, dout = case.weight.values, case.upstream.values
    slide = (geometry.stride, geometry.sides)
    assert_equal(shown["y"], references.convolve(case.x.values, weight, case.bias.values, *slide))
    expected = references.convolve_backward(case.x.values, weight, *slide, dout)
    for name, gradient in zip(("dx", "dW", "db"), expected, strict=True):
        assert_equal(shown[name], gradient)


@given(geometry=geometries(pooling=True), whole=st.booleans())
def test_max_pool_shows_the_gradients_of_plain_loops(geometry: Geometry, whole: bool) -> None:
    case = case_of_geometry(geometry, pooling=True, whole=whole)
    assert case.upstream is not None
    shown = panels(explain("max-pool", case))
    x, dout = case.x.values, case.upstream.values
    assert_equal(shown["out"], references.max_pool(x, *arguments(geometry)))
    dx = references.max_pool_backward(x, geometry.kernel_size, geometry.stride, geometry.sides, dout)
    for name in ("dx", "own_dx"):
        assert_equal(shown[name], dx)


def test_the_numbers_everyone_starts_with() -> None:
    walkthrough = explain("col2im", case_of(np.arange(9.0).reshape(1, 1, 3, 3)))
    shown = panels(walkthrough)
    assert shown["back"].values.tolist() == [[[[0, 2, 2], [6, 16, 10], [6, 14, 8]]]]
    assert shown["coverage"].values.tolist() == [[1, 2, 1], [2, 4, 2], [1, 2, 1]]
    text = text_of(walkthrough)
    assert "4 + 4 + 4 + 4 = 16" in text
    assert "<im2col(x), dcols> = 353\n" in text
    assert "<x, col2im(dcols)> = 353\n" in text


def test_both_mistakes_of_col2im_lose_the_same_gradients() -> None:
    shown = panels(explain("col2im", case_of(np.arange(9.0).reshape(1, 1, 3, 3))))
    assert shown["stored"].values.tolist() == [[[[8, 3, 1], [2, 5, 6], [6, 9, 7]]]]
    assert shown["once"].values.tolist() == shown["stored"].values.tolist()
    assert shown["dx"].values[0, 0, 1, 1] == 17


def test_windows_side_by_side_are_the_identity() -> None:
    walkthrough = explain("col2im", case_of(np.arange(16.0).reshape(1, 1, 4, 4), stride=(2, 2)))
    assert panels(walkthrough)["back"].values.ravel().tolist() == list(range(16))
    assert "Yours is such a case: back is x." in " ".join(text_of(walkthrough).split())
    assert "neither mistake shows" in " ".join(text_of(walkthrough).split())


def test_pixels_in_no_window_are_lost_and_said_so() -> None:
    walkthrough = explain("col2im", case_of(np.arange(1.0, 26).reshape(1, 1, 5, 5), stride=(2, 2)))
    assert panels(walkthrough)["again"].values[0, 0, 4].tolist() == [0] * 5
    assert "9 pixels of 25 lie in no window" in text_of(walkthrough)


def test_an_image_that_no_window_reads() -> None:
    case = case_of(np.ones((1, 1, 1, 1)), kernel_size=(1, 1), stride=(2, 2), padding=(1, 1))
    walkthrough = explain("col2im", case)
    assert panels(walkthrough)["back"].values.tolist() == [[[[0]]]]
    check_code(walkthrough, case)


def test_the_first_of_tied_numbers_gets_all() -> None:
    case = case_of(np.array([[1.0, 2], [2, 2]]).reshape(1, 1, 2, 2), topic="max-pool")
    shown = panels(explain("max-pool", case))
    assert shown["dx"].values.tolist() == [[[[0, 1], [0, 0]]]]
    assert shown["first"].values.tolist() == [[0, 1], [0, 0]]
    assert shown["paid"].values.tolist() == [[0, 1], [1, 1]]


def test_a_pixel_that_wins_four_windows() -> None:
    image = np.array([[1.0, 2, 3], [4, 9, 5], [6, 7, 8]]).reshape(1, 1, 3, 3)
    walkthrough = explain("max-pool", case_of(image, topic="max-pool", stride=(1, 1)))
    assert panels(walkthrough)["dx"].values.tolist() == [[[[0, 0, 0], [0, 10, 0], [0, 0, 0]]]]
    assert "1 + 2 + 3 + 4 = 10" in text_of(walkthrough)
    # where nothing of the reader's overlaps, the same picture with gradients of one
    apart = panels(explain("max-pool", case_of(np.arange(16.0).reshape(1, 1, 4, 4), topic="max-pool")))
    assert apart["added"].values.tolist() == [[0, 0, 0], [0, 4, 0], [0, 0, 0]]


def test_a_pixel_that_wins_two_windows_is_shown() -> None:
    image = np.array([[1.0, 9, 2]]).reshape(1, 1, 1, 3)
    case = case_of(image, topic="max-pool", kernel_size=(1, 2), stride=(1, 1))
    shown = panels(explain("max-pool", case))
    assert shown["stored[near]"].values.tolist() == [[0, 2, 0]]
    assert shown["dx[near]"].values.tolist() == [[0, 3, 0]]


def test_padding_never_wins() -> None:
    image = np.array([[-1.0, -2, -3], [-3, -4, -5], [-2, -3, -6]]).reshape(1, 1, 3, 3)
    case = case_of(image, topic="max-pool", kernel_size=(3, 3), stride=(2, 2), padding=(1, 1))
    assert panels(explain("max-pool", case))["out"].values.tolist() == [[[[-1, -2], [-2, -3]]]]


def test_a_dout_of_ones_hides_the_missing_factor() -> None:
    case = case_of(np.arange(4.0).reshape(1, 1, 2, 2), topic="max-pool")
    assert "Here dout is all ones, and the mistake does not show." in " ".join(
        text_of(explain("max-pool", case)).split()
    )


def default_case(topic: str) -> Case:
    sizes = resolve_sizes(SizeRequest(topic))
    F = sizes.upstream_shape[1]
    make = draw("x", sizes.shape, 0) if topic == "max-pool" else count_from(0, "x", sizes.shape)
    return Case(
        make,
        sizes.windows,
        upstream=count_from(1, "dout", sizes.upstream_shape),
        weight=count_from(1, "weight", (F, sizes.shape[1], *sizes.windows.kernel_size)),
        bias=count_from(1, "bias", (F,)),
    )


@pytest.mark.parametrize("topic", TOPICS)
def test_generated_numbers_have_the_code_that_makes_them(topic: str) -> None:
    case = default_case(topic)
    check_code(explain(topic, case), case)


@pytest.mark.parametrize("topic", TOPICS)
def test_a_page_fits_80_columns_in_plain_ascii(topic: str) -> None:
    text = text_of(explain(topic, default_case(topic)))
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 80
    assert not any(line != line.rstrip() for line in text.splitlines())
    assert text.splitlines()[-1] == "They agree: the largest difference is 0."


@pytest.mark.parametrize("topic", TOPICS)
def test_every_step_says_why_and_shows_something(topic: str) -> None:
    for step in explain(topic, default_case(topic)).steps:
        assert step.why.endswith((".", ".)")), step.title
        assert step.panels or step.table or step.notes, step.title


@pytest.mark.parametrize(
    ("topic", "function"),
    [("im2col", "im2col"), ("col2im", "col2im"), ("conv", "col2im"), ("max-pool", "im2col")],
)
def test_wrong_numbers_are_found_out(topic: str, function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = getattr(windows, function)

    def wrong(*arguments: Any, **options: Any) -> Any:
        result = right(*arguments, **options)
        result.flat[0] += 1
        return result

    for module in ("explain.case", "nn.layers.conv", "nn.layout"):
        if hasattr(import_module(f"cnncli.{module}"), function):
            monkeypatch.setattr(f"cnncli.{module}.{function}", wrong)
    walkthrough = explain(topic, default_case(topic))
    assert not walkthrough.agrees
    text = text_of(walkthrough)
    assert text.splitlines()[-1].startswith("They DISAGREE: the largest difference is ")
    assert "differs" in text


def test_agreement_allows_for_rounding_and_no_more() -> None:
    values = np.array([1e6, -2.0])
    assert compared("x", values, values * (1 + 1e-15)).agrees
    assert not compared("x", values, values + 1e-3).agrees
    assert not compared("x", values, np.array([np.nan, -2.0])).agrees
    assert not compared("x", values, np.zeros(3)).agrees
    assert Check("x", 1, 0.0, 1.0).agrees


def test_code_is_run_and_not_only_read() -> None:
    case = default_case("im2col")
    names = run_code(explain("im2col", case), case)
    assert names["cols"].tolist()[0] == [0, 1, 2, 4, 5, 6]
