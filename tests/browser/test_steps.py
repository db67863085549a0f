"""Stepping plays each algorithm window by window, forwards and backwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from cnncli.nn import Sides
from tests.browser.cases import Array, Case, counting, image, random_case
from tests.nn import references

pytestmark = pytest.mark.browser

if TYPE_CHECKING:
    from tests.browser.chromium import Page
    from tests.browser.conftest import OpenPage

SEEDS = range(3)
NOT_YET = "\u00b7"


def grid(page: Page, panel: str, n: int = 0, c: int = 0) -> list[list[str]]:
    """Return one image of a panel as rows of text, padding left out."""
    numbers = page.numbers(panel)
    padding = page.marked(panel, "padding")
    rows = sorted({place[2] for place in numbers if place not in padding})
    columns = sorted({place[3] for place in numbers if place not in padding})
    return [[numbers[n, c, row, column] for column in columns] for row in rows]


def shown(values: Array) -> list[list[str]]:
    return [[str(int(value)) for value in row] for row in values]


@pytest.mark.parametrize("seed", SEEDS)
def test_im2col_copies_one_window_a_step(open_page: OpenPage, seed: int) -> None:
    case = random_case("im2col", seed)
    page = open_page(case)
    cols = references.im2col(case.x, *case.geometry)
    for step in (0, 1, cols.shape[1] // 2, cols.shape[1]):
        page.go_to(step)
        expected = {
            (r, k): str(int(cols[r, k])) if k < step else NOT_YET
            for r in range(cols.shape[0])
            for k in range(cols.shape[1])
        }
        assert page.numbers("cols") == expected
        if step:
            readings = [r for r in case.readings if r.column == step - 1]
            assert page.marked("cols") == {(r.row, r.column) for r in readings}
            assert page.marked("x") == {r.place for r in readings}


@pytest.mark.parametrize("seed", SEEDS)
def test_col2im_adds_one_column_a_step(open_page: OpenPage, seed: int) -> None:
    case = random_case("col2im", seed)
    page = open_page(case)
    cols = references.im2col(case.x, *case.geometry)
    for step in (0, 1, cols.shape[1] // 2, cols.shape[1]):
        page.go_to(step)
        so_far = cols * (np.arange(cols.shape[1]) < step)
        ones = np.ones_like(cols) * (np.arange(cols.shape[1]) < step)
        sums = references.col2im(so_far, case.x.shape, *case.geometry)
        coverage = references.col2im(ones, case.x.shape, *case.geometry)
        for n, c in np.ndindex(*case.x.shape[:2]):
            assert grid(page, "sums", n, c) == shown(sums[n, c])
            assert grid(page, "coverage", n, c) == shown(coverage[n, c])


@pytest.mark.parametrize("seed", SEEDS)
def test_conv_multiplies_forward_and_adds_backward(open_page: OpenPage, seed: int) -> None:
    case = random_case("conv", seed)
    assert case.weight is not None
    assert case.upstream is not None
    page = open_page(case)
    N, F, OH, OW = case.upstream.shape
    # outputs in the order of the network: (F, OH, OW, N)
    order = [(n, f, oh, ow) for f in range(F) for oh in range(OH) for ow in range(OW) for n in range(N)]
    _, stride, sides = case.geometry
    y = references.convolve(case.x, case.weight, np.zeros(F), stride, sides)
    for step in (0, 1, len(order) // 2, len(order), len(order) + 1, len(order) * 3 // 2, 2 * len(order)):
        page.go_to(step)
        assert page.numbers("product") == {
            place: str(int(y[place])) if at < step else NOT_YET for at, place in enumerate(order)
        }
        returned = np.zeros_like(case.upstream)
        for place in order[: max(0, step - len(order))]:
            returned[place] = case.upstream[place]
        dx, dw, _ = references.convolve_backward(case.x, case.weight, stride, sides, returned)
        assert page.numbers("gradWeight") == {
            place: str(int(value)) for place, value in np.ndenumerate(dw.reshape(F, -1))
        }
        for n, c in np.ndindex(*case.x.shape[:2]):
            assert grid(page, "gradInput", n, c) == shown(dx[n, c])


@pytest.mark.parametrize("seed", SEEDS)
def test_max_pool_compares_forward_and_scatters_backward(open_page: OpenPage, seed: int) -> None:
    case = random_case("max-pool", seed)
    assert case.upstream is not None
    page = open_page(case)
    N, C, OH, OW = case.upstream.shape
    order = [(n, c, oh, ow) for c in range(C) for oh in range(OH) for ow in range(OW) for n in range(N)]
    y = references.max_pool(case.x, *case.geometry)
    for step in (0, 1, len(order), len(order) + 1, len(order) * 3 // 2, 2 * len(order)):
        page.go_to(step)
        assert page.numbers("maxima") == {
            place: str(int(y[place])) if at < step else NOT_YET for at, place in enumerate(order)
        }
        returned = np.zeros_like(case.upstream)
        for place in order[: max(0, step - len(order))]:
            returned[place] = case.upstream[place]
        dx = references.max_pool_backward(case.x, *case.geometry, returned)
        for n, c in np.ndindex(*case.x.shape[:2]):
            assert grid(page, "scattered", n, c) == shown(dx[n, c])


def test_running_sums_in_words(open_page: OpenPage) -> None:
    page = open_page(Case("col2im", counting(1, 1, 3, 3), (2, 2)))
    page.push("back")
    assert page.step == 3
    assert grid(page, "sums") == [["0", "2", "2"], ["6", "12", "5"], ["6", "7", "0"]]
    assert "Column 2 is added onto window (1, 0): (1, 0) 3 + 3 = 6, (1, 1) 8 + 4 = 12" in page.words
    page.push("forward")
    assert "(1, 1) 12 + 4 = 16" in page.words


def test_buttons_and_slider(open_page: OpenPage) -> None:
    page = open_page(Case("im2col", counting(1, 1, 3, 3), (2, 2)))
    assert page.step == 4
    page.push("start")
    assert page.step == 0
    page.push("back")
    assert page.step == 0
    page.push("forward", "forward")
    assert page.step == 2
    assert page.run("return document.querySelector('#step').value") == "2"
    page.push("end", "forward")
    assert page.step == 4


def test_play_runs_to_the_end_and_stops(open_page: OpenPage) -> None:
    page = open_page(Case("im2col", counting(1, 1, 2, 3), (2, 2)))
    page.push("play")
    assert page.step == 0
    assert page.run("return document.querySelector('#play').ariaLabel") == "Pause"
    page.wait(lambda: page.step == 2)
    assert page.run("return document.querySelector('#play').ariaLabel") == "Play"
    assert page.numbers("cols")[3, 1] == "5"


def test_pause_stays_where_it_is(open_page: OpenPage) -> None:
    page = open_page(Case("im2col", counting(1, 1, 9, 9), (2, 2)))
    page.push("play")
    page.wait(lambda: page.step >= 1)
    page.push("play")
    step = page.step
    page.push("forward")
    assert page.step == step + 1


# the numbers of known reports


def test_b01_col2im_is_x_times_the_coverage(open_page: OpenPage) -> None:
    page = open_page(Case("col2im", counting(1, 1, 3, 3), (2, 2)))
    assert grid(page, "sums") == [["0", "2", "2"], ["6", "16", "10"], ["6", "14", "8"]]
    assert grid(page, "coverage") == [["1", "2", "1"], ["2", "4", "2"], ["1", "2", "1"]]
    assert "x \u00d7 coverage" in page.text("#conclusion")


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (image([1, 2], [2, 2]), [["0", "1"], ["0", "0"]]),
        (image([0, 0], [0, 0]), [["1", "0"], ["0", "0"]]),
    ],
    ids=["tie", "all-equal"],
)
def test_b14_the_first_of_equal_maxima_takes_the_gradient(
    open_page: OpenPage, x: Array, expected: list[list[str]]
) -> None:
    page = open_page(Case("max-pool", x, (2, 2), (2, 2), upstream=np.ones((1, 1, 1, 1))))
    assert grid(page, "scattered") == expected
    page.point("maxima", (0, 0, 0, 0))
    assert "the first in row-major order wins" in page.words


def test_b15_overlapping_gradients_add_up(open_page: OpenPage) -> None:
    x = image([1, 2, 3], [4, 9, 5], [6, 7, 8])
    page = open_page(Case("max-pool", x, (2, 2), upstream=np.ones((1, 1, 2, 2))))
    assert grid(page, "scattered") == [["0", "0", "0"], ["0", "4", "0"], ["0", "0", "0"]]
    page.point("x", (0, 0, 1, 1))
    assert "It wins in all of them, so its gradient is 4." in page.words
    page.push("back")
    assert "pixel (1, 1): 2 + 1 = 3" in page.words


def test_b18_padding_never_wins(open_page: OpenPage) -> None:
    x = image([-1, -2, -3], [-3, -4, -5], [-2, -3, -6])
    page = open_page(Case("max-pool", x, (3, 3), (2, 2), Sides(1, 1, 1, 1)))
    assert grid(page, "maxima") == [["-1", "-2"], ["-2", "-3"]]
    assert page.numbers("x")[0, 0, -1, -1] == "-\u221e"


def test_b19_nan_and_infinities(open_page: OpenPage) -> None:
    x = np.stack([image([1, np.nan], [5, 6])[0], np.full((1, 2, 2), np.nan), np.full((1, 2, 2), -np.inf)])
    page = open_page(Case("max-pool", x, (2, 2), (2, 2), Sides(1, 1, 1, 1), upstream=None))
    assert not page.is_alarmed
    page = open_page(Case("max-pool", x, (2, 2), (2, 2), upstream=counting(3, 1, 1, 1, start=1)))
    assert not page.is_alarmed
    assert [grid(page, "maxima", n)[0][0] for n in range(3)] == ["NaN", "NaN", "-\u221e"]
    assert [grid(page, "scattered", n) for n in range(3)] == [
        [["0", "1"], ["0", "0"]],
        [["2", "0"], ["0", "0"]],
        [["3", "0"], ["0", "0"]],
    ]


def test_col2im_is_the_identity_where_windows_tile(open_page: OpenPage) -> None:
    page = open_page(Case("col2im", counting(1, 1, 4, 4), (2, 2), (2, 2)))
    assert grid(page, "sums") == grid(page, "x")
    assert "every pixel lies in exactly one window" in page.text("#conclusion")
