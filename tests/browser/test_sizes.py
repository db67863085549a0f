"""Sizes and numbers changed in the page, and arrays too large to draw whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.browser.cases import Case, counting, image, random_case
from tests.browser.test_steps import grid, shown
from tests.nn import references

pytestmark = pytest.mark.browser

if TYPE_CHECKING:
    from tests.browser.chromium import Page
    from tests.browser.conftest import OpenPage

FIELDS = ("N", "C", "H", "W", "KH", "KW", "SH", "SW", "top", "bottom", "left", "right")


def enter_sizes(page: Page, case: Case) -> None:
    """Type the sizes of a case, one after the other."""
    sizes = (*case.x.shape, *case.kernel_size, *case.stride, *case.padding)
    for name, size in zip(FIELDS, sizes, strict=True):
        page.enter(f"size-{name}", size)


@pytest.mark.parametrize("seed", range(10, 14))
def test_other_sizes_give_their_own_numbers_and_highlights(open_page: OpenPage, seed: int) -> None:
    page = open_page(Case("col2im", counting(1, 1, 3, 3), (2, 2)))
    drawn = random_case("col2im", seed)
    case = Case("col2im", counting(*drawn.x.shape), drawn.kernel_size, drawn.stride, drawn.padding)
    enter_sizes(page, case)
    cols = references.im2col(case.x, *case.geometry)
    assert page.text("#fault") == ""
    assert page.numbers("cols") == {place: str(int(value)) for place, value in np.ndenumerate(cols)}
    sums = references.col2im(cols, case.x.shape, *case.geometry)
    for n, c in np.ndindex(*case.x.shape[:2]):
        assert grid(page, "sums", n, c) == shown(sums[n, c])
    for place, lit in page.point_at_each("x", ["cols"]):
        assert lit["cols"] == {(r.row, r.column) for r in case.readings if r.place == place}


def test_filters_of_a_convolution(open_page: OpenPage) -> None:
    page = open_page(Case("conv", counting(1, 1, 3, 3), (2, 2)))
    page.enter("size-F", 3)
    assert {f for f, _ in page.numbers("weight")} == {0, 1, 2}
    # weights and x count on: 9*0 + 10*1 + 11*3 + 12*4
    assert page.numbers("product")[0, 2, 0, 0] == "91"


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("KH", 4, "A kernel of 4\u00d72 does not fit into the padded input of 3\u00d73: make the kernel"),
        ("W", 1, "A kernel of 2\u00d72 does not fit into the padded input of 3\u00d71"),
        ("SH", 0, "Stride height must be a whole number of at least 1, not 0."),
        ("N", "", "Input images in the batch must be a whole number of at least 1."),
        ("H", "2.5", "Input height must be a whole number of at least 1, not 2.5."),
        ("C", -1, "Input channels must be a whole number of at least 1, not -1."),
        ("left", -1, "Padding left must be a whole number of at least 0, not -1."),
        ("N", 10**9, "this page computes up to 100,000 cells. Make N, C, H, W or the kernel smaller."),
        ("top", "9" * 300, "this page computes up to 100,000 cells."),
    ],
)
def test_impossible_sizes_are_explained_and_break_nothing(
    open_page: OpenPage, field: str, value: object, sentence: str
) -> None:
    page = open_page(Case("col2im", counting(1, 1, 3, 3), (2, 2)))
    before = page.numbers("sums")
    good = page.run("return document.querySelector(`#size-${arguments[0]}`).value", field)
    page.enter(f"size-{field}", value)
    assert sentence in page.text("#fault")
    assert page.run("return [...document.querySelectorAll('[aria-invalid]')].length") == 1
    assert page.numbers("sums") == before
    page.push("back", "back", "end")
    assert page.numbers("sums") == before
    page.enter(f"size-{field}", good)
    assert page.text("#fault") == ""
    assert page.run("return document.querySelectorAll('[aria-invalid]').length") == 0


def test_pooling_refuses_padding_above_half_the_kernel(open_page: OpenPage) -> None:
    page = open_page(Case("max-pool", counting(1, 1, 3, 3), (2, 2)))
    page.enter("size-top", 2)
    assert "Max-pool takes padding of at most half the kernel, here 1\u00d71" in page.text("#fault")


def test_numbers_can_be_chosen(open_page: OpenPage) -> None:
    page = open_page(Case("max-pool", image([5, 6], [7, 8]), (2, 2), upstream=image([3])))
    page.enter("numbers-x", "equal")
    assert grid(page, "x") == [["1", "1"], ["1", "1"]]
    assert grid(page, "scattered") == [["3", "0"], ["0", "0"]]
    page.enter("numbers-x", "counting")
    assert grid(page, "scattered") == [["0", "0"], ["0", "3"]]
    page.enter("numbers-x", "random")
    values = [int(text) for row in grid(page, "x") for text in row]
    assert len(set(values)) > 1
    assert all(-9 <= value <= 9 for value in values)
    page.enter("numbers-upstream", "equal")
    assert sorted(text for row in grid(page, "scattered") for text in row) == ["0", "0", "0", "1"]
    page.enter("numbers-x", "given")
    assert grid(page, "x") == [["5", "6"], ["7", "8"]]


def test_numbers_given_are_kept_where_they_reach(open_page: OpenPage) -> None:
    page = open_page(Case("im2col", image([5, 6, 7], [8, 9, 1], [2, 3, 4]), (2, 2)))
    page.enter("size-W", 2)
    assert grid(page, "x") == [["5", "6"], ["8", "9"], ["2", "3"]]
    assert page.text("#notice") == ""
    page.enter("size-H", 4)
    assert grid(page, "x") == [["0", "1"], ["2", "3"], ["4", "5"], ["6", "7"]]
    assert "do not reach these sizes; counted ones stand in" in page.text("#notice")
    page.push("reset")
    assert grid(page, "x") == [["5", "6", "7"], ["8", "9", "1"], ["2", "3", "4"]]
    assert page.text("#notice") == ""


def test_large_sizes_show_a_part_that_follows_the_steps(open_page: OpenPage) -> None:
    page = open_page(Case("im2col", counting(1, 1, 28, 28), (5, 5)))
    assert "so the page shows a part of them" in page.text("#shown")
    columns = {k for _, k in page.numbers("cols")}
    assert 0 in columns
    assert max(columns) < 575
    page.go_to(576)
    assert page.numbers("cols")[24, 575] == "783"
    assert page.marked("cols") == {(r, 575) for r in range(25)}
    page.go_to(1)
    assert page.marked("cols") == {(r, 0) for r in range(25)}
    assert page.numbers("cols")[24, 0] == "116"


def test_turning_the_pages_of_a_large_matrix(open_page: OpenPage) -> None:
    page = open_page(Case("im2col", counting(1, 1, 28, 28), (5, 5)))
    width = len({k for _, k in page.numbers("cols")})
    page.run('document.querySelector(\'[data-axis="k"] button[aria-label^="later"]\').click()')
    assert min(k for _, k in page.numbers("cols")) == width
    page.run('document.querySelector(\'[data-axis="k"] button[aria-label^="earlier"]\').click()')
    assert min(k for _, k in page.numbers("cols")) == 0


def test_what_lies_outside_the_part_shown_is_said_and_pinning_brings_it(open_page: OpenPage) -> None:
    page = open_page(Case("im2col", counting(1, 1, 28, 28), (5, 5)))
    page.point("x", (0, 0, 27, 27))
    assert page.marked("cols") == set()
    assert "Outside the part shown: 1 of 1 lit cell of the matrix." in page.words
    page.click("x", (0, 0, 27, 27))
    assert page.marked("cols") == {(24, 575)}
    assert page.marked("x", "chosen") == {(0, 0, 27, 27)}
    assert page.focused() == ("x", (0, 0, 27, 27))


def test_a_batch_of_large_images_stays_small_enough_to_draw(open_page: OpenPage) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((100, 30, 24, 24))
    page = open_page(Case("max-pool", x, (2, 2), (2, 2), upstream=counting(100, 30, 12, 12)))
    assert not page.is_alarmed
    assert "the first 1 of 100 images" in page.text("#notice")
    assert page.run("return document.querySelectorAll('.cell').length") < 8000
    n, c, h, w = 0, 0, 3, 5
    assert float(page.numbers("x")[n, c, h, w]) == pytest.approx(x[n, c, h, w], abs=0.006)
    page.push("back")
    assert "channel 29" in page.words
    assert page.marked("scattered") == {(0, 29, h, w) for h in (22, 23) for w in (20, 21)}


def test_large_sizes_typed_in_the_page(open_page: OpenPage) -> None:
    page = open_page(Case("im2col", counting(1, 1, 3, 3), (2, 2)))
    page.enter("size-H", 100)
    page.enter("size-W", 100)
    assert page.text("#fault") == ""
    assert page.run("return document.querySelectorAll('.cell').length") < 8000
    page.push("end")
    assert page.marked("x") == {(0, 0, h, w) for h in (98, 99) for w in (98, 99)}
    assert page.numbers("x")[0, 0, 99, 99] == "9999"
