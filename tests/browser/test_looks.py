"""What can be measured of how a page looks: contrast, signals beside colour, phones, print, motion."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest

from cnncli.nn import Sides
from cnncli.report.explain_page import TOPICS
from tests.browser.cases import Case, counting

pytestmark = pytest.mark.browser

if TYPE_CHECKING:
    from tests.browser.conftest import OpenPage

CASE = Case("max-pool", counting(1, 1, 4, 4), (2, 2), padding=Sides(1, 0, 0, 0))

# paints every colour over a canvas, so that any notation becomes red, green, blue
COLOURS = """
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const rgb = (colour) => {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
};
const behind = (one) => {
  for (let at = one; at; at = at.parentElement) {
    const colour = rgb(getComputedStyle(at).backgroundColor);
    if (colour[3] === 255) return colour;
  }
  return rgb("white");
};
return [...document.querySelectorAll(arguments[0])].filter((one) => one.checkVisibility())
  .map((one) => [one.className || one.tagName, rgb(getComputedStyle(one).color), behind(one)]);
"""


def contrast(foreground: list[int], background: list[int]) -> float:
    """Return the contrast ratio of WCAG 2.2."""

    def luminance(colour: list[int]) -> float:
        parts = np.array(colour[:3]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    lighter, darker = sorted((luminance(foreground), luminance(background)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_written_has_contrast(open_page: OpenPage, scheme: Literal["light", "dark"]) -> None:
    page = open_page(CASE)
    page.emulate(scheme, motion="reduce")
    page.enter("size-SH", 0)
    page.click("x", (0, 0, 1, 1))
    written = ".cell, .head, .corner, p, h1, h2, code, legend, label span, button, input, select"
    found = page.run(COLOURS, written)
    assert len(found) > 50
    assert {kind for kind, _, _ in found} >= {"cell lit chosen winner", "cell lit", "cell", "fault", "lead"}
    weak = [(kind, round(contrast(a, b), 2)) for kind, a, b in found if contrast(a, b) < 4.5]
    assert weak == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_scheme_changes_the_paper(open_page: OpenPage, scheme: Literal["light", "dark"]) -> None:
    page = open_page(CASE)
    page.emulate(scheme)
    (_, ink, paper) = page.run(COLOURS, "h1")[0]
    assert (sum(paper) > sum(ink)) == (scheme == "light")


def test_colour_is_not_the_only_signal(open_page: OpenPage) -> None:
    page = open_page(CASE)
    page.point("maxima", (0, 0, 1, 1))
    style = "const s = getComputedStyle(document.querySelector(arguments[0]));"
    get = style + "return [s.fontWeight, s.boxShadow, s.textDecorationLine, s.backgroundImage]"
    lit = page.run(get, '[data-panel="x"] .cell.lit:not(.winner)')
    winner = page.run(get, '[data-panel="x"] .cell.winner')
    plain = page.run(get, '[data-panel="x"] .cell:not(.lit):not(.padding)')
    padding = page.run(get, '[data-panel="x"] .cell.padding')
    assert int(lit[0]) > int(plain[0])
    assert lit[1] != plain[1] == "none", "a frame"
    assert winner[2] == "underline" != lit[2]
    assert "repeating-linear-gradient" in padding[3], "hatching"


@pytest.mark.parametrize("topic", TOPICS)
def test_a_phone_of_360_pixels(open_page: OpenPage, topic: str) -> None:
    page = open_page(Case(topic, counting(2, 2, 6, 6), (3, 3), padding=Sides(1, 1, 1, 1)))
    page.resize(360, 740, touch=True)
    page.chrome.refresh()
    assert page.run("return document.documentElement.scrollWidth") <= 360
    assert not page.run("return document.querySelector('#sizes').open"), "sizes are folded away"
    small = page.run(
        """return [...document.querySelectorAll(".controls button")]
          .map((button) => button.getBoundingClientRect())
          .filter((box) => box.width < 44 || box.height < 44).length;"""
    )
    assert small == 0
    page.run("document.querySelector('#sizes').open = true")
    assert page.run("return document.documentElement.scrollWidth") <= 360


def test_steps_stay_in_sight(open_page: OpenPage) -> None:
    page = open_page(Case("conv", counting(1, 1, 6, 6), (3, 3)))
    page.run("window.scrollTo(0, document.body.scrollHeight)")
    assert page.run("return document.querySelector('.player').getBoundingClientRect().top") == 0


def test_print_leaves_out_what_cannot_be_pressed(open_page: OpenPage) -> None:
    page = open_page(CASE)
    visible = "return document.querySelector(arguments[0]).checkVisibility()"
    assert page.run(visible, "#play")
    page.emulate("dark", media="print")
    for hidden in ("#play", "#step", ".groups"):
        assert not page.run(visible, hidden)
    for kept in ("h1", ".formula", '[data-panel="x"] .cell', "#conclusion"):
        assert page.run(visible, kept)
    (_, _, paper) = page.run(COLOURS, "h1")[0]
    assert paper[:3] == [255, 255, 255], "white paper, whatever the screen"


def test_motion_only_where_it_is_welcome(open_page: OpenPage) -> None:
    page = open_page(CASE)
    duration = "return getComputedStyle(document.querySelector('.cell')).transitionDuration"
    assert re.search("[1-9]", page.run(duration))
    page.emulate(motion="reduce")
    assert page.run(duration) == "0s"


def test_columns_of_numbers_line_up(open_page: OpenPage) -> None:
    page = open_page(CASE)
    numerals = "return getComputedStyle(document.querySelector('.cell')).fontVariantNumeric"
    assert "tabular-nums" in page.run(numerals)
