"""What lights up with a number is exactly what plain loops say belongs to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cnncli.nn import Sides
from tests.browser.cases import Case, counting, random_case

pytestmark = pytest.mark.browser

if TYPE_CHECKING:
    from tests.browser.conftest import OpenPage

SEEDS = range(5)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("topic", ["im2col", "col2im"])
def test_a_pixel_lights_its_cells_and_windows(open_page: OpenPage, topic: str, seed: int) -> None:
    case = random_case(topic, seed)
    page = open_page(case)
    others = ["windows"] if topic == "im2col" else ["sums", "coverage"]
    visited = set()
    for place, lit in page.point_at_each("x", ["x", "cols", *others]):
        readings = [r for r in case.readings if r.place == place]
        assert lit["x"] == {place}
        assert lit["cols"] == {(r.row, r.column) for r in readings}, place
        for other in others:
            assert lit[other] == ({r.window for r in readings} if other == "windows" else {place}), place
        visited.add(place)
    assert visited == set(case.places())
    assert page.marked("x", "padding") == {place for place in case.places() if case.is_padding(place)}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_cell_lights_its_pixel_and_window(open_page: OpenPage, seed: int) -> None:
    case = random_case("im2col", seed)
    page = open_page(case)
    by_cell = {(r.row, r.column): r for r in case.readings}
    visited = set()
    for cell, lit in page.point_at_each("cols", ["x", "cols", "windows"]):
        reading = by_cell[cell[0], cell[1]]
        assert lit == {"x": {reading.place}, "cols": {cell}, "windows": {reading.window}}
        visited.add(cell)
    assert visited == set(by_cell)
    on_padding = {cell for cell, reading in by_cell.items() if case.is_padding(reading.place)}
    assert page.marked("cols", "padding") == on_padding


@pytest.mark.parametrize("seed", SEEDS)
def test_a_window_lights_its_pixels_and_column(open_page: OpenPage, seed: int) -> None:
    case = random_case("im2col", seed)
    for window, lit in open_page(case).point_at_each("windows", ["x", "cols", "windows"]):
        readings = [r for r in case.readings if r.window == window]
        assert lit["windows"] == {window}
        assert lit["x"] == {r.place for r in readings}
        assert lit["cols"] == {(r.row, r.column) for r in readings}


@pytest.mark.parametrize("seed", SEEDS)
def test_an_output_lights_what_it_is_computed_from(open_page: OpenPage, seed: int) -> None:
    case = random_case("conv", seed)
    seen = ["x", "cols", "weight", "product", "upstream", "gradWeight", "gradInput"]
    for output, lit in open_page(case).point_at_each("product", seen):
        n, f, oh, ow = output
        readings = [r for r in case.readings if r.window == (n, oh, ow)]
        assert lit["product"] == lit["upstream"] == {output}
        assert lit["x"] == lit["gradInput"] == {r.place for r in readings}
        assert lit["cols"] == {(r.row, r.column) for r in readings}
        assert lit["weight"] == lit["gradWeight"] == {(f, r.row) for r in readings}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_pixel_lights_the_outputs_of_every_filter(open_page: OpenPage, seed: int) -> None:
    case = random_case("conv", seed)
    assert case.weight is not None
    for place, lit in open_page(case).point_at_each("x", ["product"]):
        windows = [r.window for r in case.readings if r.place == place]
        assert lit["product"] == {(n, f, oh, ow) for n, oh, ow in windows for f in range(len(case.weight))}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_weight_lights_its_row_and_its_outputs(open_page: OpenPage, seed: int) -> None:
    case = random_case("conv", seed)
    for weight, lit in open_page(case).point_at_each("weight", ["x", "cols", "product", "weight"]):
        readings = [r for r in case.readings if r.row == weight[1]]
        assert lit["weight"] == {weight}
        assert lit["cols"] == {(r.row, r.column) for r in readings}
        assert lit["x"] == {r.place for r in readings}
        assert lit["product"] == {(n, weight[0], oh, ow) for n, oh, ow in (r.window for r in readings)}


@pytest.mark.parametrize("seed", SEEDS)
def test_pooling_keeps_channels_apart(open_page: OpenPage, seed: int) -> None:
    case = random_case("max-pool", seed)
    page = open_page(case)
    for output, lit in page.point_at_each("maxima", ["x", "cols", "scattered", "upstream"]):
        n, c, oh, ow = output
        readings = [r for r in case.readings if r.window == (n, oh, ow) and r.place[1] == c]
        assert lit["x"] == lit["scattered"] == {r.place for r in readings}
        assert lit["cols"] == {(r.row, r.column) for r in readings}
        assert lit["upstream"] == {output}
    for place, lit in page.point_at_each("x", ["maxima"]):
        windows = [r.window for r in case.readings if r.place == place]
        assert lit["maxima"] == {(n, place[1], oh, ow) for n, oh, ow in windows}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_winner_of_a_window_is_its_first_maximum(open_page: OpenPage, seed: int) -> None:
    case = random_case("max-pool", seed)
    page = open_page(case)
    for output in list(page.numbers("maxima"))[:6]:
        page.point("maxima", output)
        n, c, oh, ow = output
        readings = [r for r in case.readings if r.window == (n, oh, ow) and r.place[1] == c]
        inside = [r for r in sorted(readings, key=lambda r: r.row) if not case.is_padding(r.place)]
        best = max(inside, key=lambda r: case.x[r.place])  # the first of equals
        assert page.marked("x", "winner") == {best.place}
        assert page.marked("cols", "winner") == {(best.row, best.column)}


def test_a_real_mouse_and_the_words(open_page: OpenPage) -> None:
    page = open_page(Case("im2col", counting(1, 1, 4, 5), (2, 3)))
    page.point("x", (0, 0, 1, 2))
    assert "pixel (1, 2) lies in 6 windows: (0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)." in page.words
    assert "Its value 7 is copied to 6 cells" in page.words
    assert page.marked("x", "chosen") == {(0, 0, 1, 2)}
    page.point("cols", (4, 2))
    assert page.marked("x") == {(0, 0, 1, 3)}
    assert "pixel (1, 3), 8" in page.words
    page.point_away()
    assert page.marked("x") == page.marked("cols") == set()


def test_padding_is_called_padding(open_page: OpenPage) -> None:
    page = open_page(Case("im2col", counting(1, 1, 2, 2, start=1), (2, 2), padding=Sides(1, 0, 1, 0)))
    page.point("cols", (0, 0))
    assert "padding at (-1, -1), 0" in page.words
    assert page.marked("x") == {(0, 0, -1, -1)}
    page.point("x", (0, 0, -1, 0))
    assert "padding at (-1, 0) lies in 2 windows: (0, 0), (0, 1)." in page.words


def test_a_pixel_outside_every_window(open_page: OpenPage) -> None:
    page = open_page(Case("col2im", counting(1, 1, 5, 5), (2, 2), (2, 2)))
    page.point("x", (0, 0, 4, 4))
    assert "pixel (4, 4) lies in no window. It comes back as 0." in page.words
    assert page.marked("cols") == set()
    assert "9 pixels lie in no window and come back as 0." in page.text("#conclusion")


def test_channel_and_image_are_named_where_there_are_several(open_page: OpenPage) -> None:
    page = open_page(Case("im2col", counting(2, 2, 2, 2), (2, 2)))
    page.point("x", (1, 0, 1, 1))
    assert "pixel (1, 1) of channel 0, image 1 lies in 1 window: (0, 0)." in page.words


def test_headers_of_the_matrix_light_windows_and_kernel_cells(open_page: OpenPage) -> None:
    case = Case("im2col", counting(1, 2, 3, 3), (2, 2))
    page = open_page(case)
    page.focus('.head[data-kind="window"][data-key="2"]')
    assert page.marked("windows") == {(0, 1, 0)}
    assert page.words.startswith("Window (1, 0) is column 2 of the matrix: 3, 4, 6, 7, 12, 13, 15, 16.")
    page.focus('.head[data-kind="offset"][data-key="7"]')
    assert page.marked("x") == {(0, 1, h, w) for h in (1, 2) for w in (1, 2)}
    assert page.marked("cols") == {(7, k) for k in range(4)}


@pytest.mark.parametrize(
    ("pixel", "starts"), [((1, 2), [[0, 0], [0, 2], [1, 0], [1, 2]]), ((1, 4), [[0, 2], [1, 2]])]
)
def test_each_window_of_a_pixel_is_outlined_on_the_image(
    open_page: OpenPage, pixel: tuple[int, int], starts: list[list[int]]
) -> None:
    page = open_page(Case("col2im", counting(1, 1, 3, 5), (2, 3), (1, 2), Sides(0, 0, 0, 1)))
    page.point("x", (0, 0, *pixel))
    outlines = page.run(
        """const box = (h, w) => document
          .querySelector(`[data-panel="x"] [data-h="${h}"][data-w="${w}"]`).getBoundingClientRect();
        const near = (a, b) => Math.abs(a - b) < 9;
        return [...document.querySelectorAll('[data-panel="x"] .outline')].map((outline) => {
          const { left, top, right, bottom } = outline.getBoundingClientRect();
          for (let h = 0; h < 2; h++) for (let w = 0; w < 4; w++) {
            const first = box(h, w), last = box(h + 1, w + 2);
            if (near(left, first.left) && near(top, first.top) &&
                near(right, last.right) && near(bottom, last.bottom)) return [h, w];
          }
          return null;
        });"""
    )
    assert sorted(outlines) == starts


def test_many_windows_get_one_frame_around_all(open_page: OpenPage) -> None:
    page = open_page(Case("im2col", counting(1, 1, 9, 9), (4, 4)))
    page.point("x", (0, 0, 4, 4))
    assert page.run("return document.querySelectorAll('[data-panel=x] .outline').length") == 1
    width = page.run(
        """const one = (selector) => document.querySelector(selector).getBoundingClientRect();
        const cell = (w) => one(`[data-panel="x"] [data-h="4"][data-w="${w}"]`);
        const frame = one("[data-panel=x] .outline");
        return [frame.left - cell(1).left, frame.right - cell(7).right];"""
    )
    assert max(map(abs, width)) < 4
