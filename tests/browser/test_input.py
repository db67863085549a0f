"""The page by keyboard, by touch, and by what a screen reader is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cnncli.nn import Sides
from tests.browser.cases import Case, counting

pytestmark = pytest.mark.browser

if TYPE_CHECKING:
    from tests.browser.chromium import Page
    from tests.browser.conftest import OpenPage

CTRL = 2


@pytest.fixture
def page(open_page: OpenPage) -> Page:
    return open_page(Case("im2col", counting(1, 1, 3, 3), (2, 2)))


def test_arrow_keys_move_over_the_numbers(page: Page) -> None:
    page.focus('[data-panel="x"] [tabindex="0"]')
    last = page.focused()
    assert last is not None
    page.press("Home", CTRL)
    assert page.focused() == ("x", (0, 0, 0, 0))
    for key in ("ArrowRight", "ArrowDown", "ArrowDown"):
        page.press(key)
    assert page.focused() == ("x", (0, 0, 2, 1))
    assert page.marked("cols") == {(2, 3), (3, 2)}
    assert "pixel (2, 1) lies in 2 windows: (1, 0), (1, 1)." in page.words
    page.press("ArrowDown")  # the edge
    assert page.focused() == ("x", (0, 0, 2, 1))
    page.press("ArrowUp")
    page.press("ArrowLeft")
    assert page.focused() == ("x", (0, 0, 1, 0))
    page.press("End")
    assert page.focused() == ("x", (0, 0, 1, 2))
    page.press("Home")
    assert page.focused() == ("x", (0, 0, 1, 0))
    page.press("End", CTRL)
    assert page.focused() == ("x", (0, 0, 2, 2))


def test_each_grid_is_one_tab_stop(page: Page) -> None:
    stops = page.run(
        """return [...document.querySelectorAll("[role=grid]")]
          .map((grid) => grid.querySelectorAll('[tabindex="0"]').length);"""
    )
    assert stops == [1, 1, 1]
    page.focus('[data-panel="x"] [tabindex="0"]')
    page.press("ArrowUp")
    here = page.focused()
    page.press("Tab")
    after = page.focused()
    assert after is not None
    assert after[0] == "windows"
    page.press("Tab", 8)  # with Shift, back to where it was
    assert page.focused() == here


def test_enter_pins_and_escape_releases(page: Page) -> None:
    page.focus('[data-panel="cols"] [data-r="1"][data-k="2"]')
    page.press("Enter")
    assert page.marked("x") == {(0, 0, 1, 1)}
    page.point("x", (0, 0, 0, 0))
    assert page.marked("x") == {(0, 0, 1, 1)}, "what is pinned stays lit"
    assert page.run("return document.querySelector('[aria-selected=true]').dataset.k") == "2"
    page.press("Escape")
    page.point("x", (0, 0, 0, 1))
    assert page.marked("x") == {(0, 0, 0, 1)}
    assert page.run("return document.querySelector('[aria-selected=true]')") is None


def test_space_plays_and_pauses(page: Page) -> None:
    page.resize(1280, 400)
    page.focus('[data-panel="x"] [tabindex="0"]')
    place = page.run("return window.scrollY")
    page.press(" ")
    assert page.step == 0
    assert page.run("return document.querySelector('#play').ariaLabel") == "Pause"
    page.press(" ")
    assert page.run("return document.querySelector('#play').ariaLabel") == "Play"
    assert page.run("return window.scrollY") == place, "space must not scroll as well"


def test_arrow_keys_step_where_no_number_has_the_focus(page: Page) -> None:
    page.run("document.activeElement.blur()")
    page.press("ArrowLeft")
    page.press("ArrowLeft")
    assert page.step == 2
    page.press("ArrowRight")
    assert page.step == 3
    page.focus("#back")
    page.press("ArrowLeft")
    assert page.step == 2


def test_keys_typed_into_a_field_stay_there(page: Page) -> None:
    page.focus("#size-N")
    page.press("ArrowLeft")
    page.press(" ")
    assert page.step == 4
    page.press("ArrowUp")
    assert page.run("return document.querySelector('#size-N').value") == "2"
    assert page.step == 8, "two images have twice as many windows"


def test_arrow_keys_on_the_slider_step(page: Page) -> None:
    page.focus("#step")
    page.press("ArrowLeft")
    assert page.step == 3


def test_arrow_keys_go_on_beyond_the_part_shown(open_page: OpenPage) -> None:
    page = open_page(Case("im2col", counting(1, 1, 28, 28), (5, 5)))
    last = max(k for _, k in page.numbers("cols"))
    page.focus(f'[data-panel="cols"] [data-r="3"][data-k="{last}"]')
    page.press("ArrowRight")
    assert page.focused() == ("cols", (3, last + 1))
    page.press("ArrowLeft")
    assert page.focused() == ("cols", (3, last))


def test_the_focus_stays_in_the_matrix_when_another_part_of_it_is_drawn(open_page: OpenPage) -> None:
    page = open_page(Case("im2col", counting(1, 1, 28, 28), (5, 5)))
    page.focus('[data-panel="cols"] [data-r="3"][data-k="7"]')
    page.go_to(576)
    focused = page.focused()
    assert focused is not None
    assert focused[0] == "cols"
    assert page.marked("cols") == {(r, 575) for r in range(25)}, "the step is lit, not what has the focus"


def test_a_tap_pins_and_a_second_tap_releases(page: Page) -> None:
    page.resize(360, 740, touch=True)
    page.tap("x", (0, 0, 1, 1))
    page.wait(lambda: page.marked("cols") == {(3, 0), (2, 1), (1, 2), (0, 3)})
    assert page.marked("x", "chosen") == {(0, 0, 1, 1)}
    page.tap("cols", (0, 2))
    page.wait(lambda: page.marked("x") == {(0, 0, 1, 0)})
    page.tap("cols", (0, 2))
    page.wait(lambda: page.marked("x") == set())


def test_a_finger_that_scrolls_lights_nothing(page: Page) -> None:
    page.resize(360, 740, touch=True)
    x, y = page.centre("x", (0, 0, 1, 1))
    page.command("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
    assert page.marked("cols") == set()
    for way in (20, 60, 120):
        moved = [{"x": x, "y": y - way}]
        page.command("Input.dispatchTouchEvent", type="touchMove", touchPoints=moved)
    page.command("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
    assert page.marked("cols") == set()


def test_a_pin_can_be_released_by_its_button(page: Page) -> None:
    assert page.run("return document.querySelector('#release').hidden")
    page.click("x", (0, 0, 2, 2))
    assert not page.run("return document.querySelector('#release').hidden")
    page.push("release")
    page.point_away()
    assert page.marked("x") == set()
    assert page.run("return document.querySelector('#release').hidden")


def test_stepping_releases_the_pin(page: Page) -> None:
    page.click("x", (0, 0, 2, 2))
    page.push("start", "forward")
    assert page.marked("x") == {(0, 0, h, w) for h in (0, 1) for w in (0, 1)}


def test_what_assistive_technology_is_told(open_page: OpenPage) -> None:
    page = open_page(Case("conv", counting(1, 1, 3, 3), (2, 2), padding=Sides(1, 0, 0, 0)))
    tree = page.command("Accessibility.getFullAXTree")["nodes"]
    told = [node for node in tree if not node["ignored"]]
    named = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in told]
    roles = {role for role, _ in named}
    assert roles >= {"grid", "gridcell", "columnheader", "rowheader", "status", "slider", "main", "heading"}
    assert ("slider", "Step") in named
    assert ("spinbutton", "Kernel height") in named
    assert ("combobox", "Numbers of x") in named
    assert {name for role, name in named if role == "button"} >= {
        "Play", "One step back", "One step forward", "To the start", "To the end", "Start over"
    }  # fmt: skip
    assert {name for role, name in named if role == "grid"} >= {"x", "cols = im2col(x)", "weight"}
    must_be_named = ("button", "grid", "spinbutton", "combobox")
    unnamed = [role for role, name in named if not name and role in must_be_named]
    assert unnamed == []
    assert page.run("return document.querySelector('#words').getAttribute('aria-live')") == "polite"


def test_the_live_region_is_quiet_while_playing(page: Page) -> None:
    page.push("play")
    assert page.run("return document.querySelector('#words').getAttribute('aria-live')") == "off"
    page.push("play")
    assert page.run("return document.querySelector('#words').getAttribute('aria-live')") == "polite"
