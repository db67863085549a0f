"""Pictures made into images of MNIST's kind."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from cnncli.data import load_split
from cnncli.data.digit import (
    LEAST_WIDTH,
    as_digit,
    blurred,
    find_foreground,
    label_parts,
    otsu_threshold,
    resized,
    shrunk,
    stroke_width,
)
from cnncli.errors import DataError
from tests.cli.program import MNIST
from tests.data.photos import photo_of


@pytest.fixture(scope="module")
def digits() -> NDArray[np.uint8]:
    """Return MNIST's test images (10000, 28, 28)."""
    images: NDArray[np.uint8] = load_split("mnist", MNIST, "test").images[:, 0]
    return images


def bar(height: int, width: int, stroke: int) -> NDArray[np.uint8]:
    """Draw a dark ring, 10 pixels from the edges of a light sheet."""
    sheet = np.full((height, width), 220, np.uint8)
    sheet[10:-10, 10:-10] = 30
    sheet[10 + stroke : -10 - stroke, 10 + stroke : -10 - stroke] = 220
    return sheet


def extent(image: NDArray[np.uint8]) -> tuple[int, int]:
    rows, columns = np.flatnonzero(image.any(axis=1)), np.flatnonzero(image.any(axis=0))
    return int(np.ptp(rows)) + 1, int(np.ptp(columns)) + 1


def center(image: NDArray[np.uint8]) -> list[float]:
    mass = image.sum(dtype=float)
    return [float(image.sum(axis=a, dtype=float) @ np.arange(28)) / mass for a in (1, 0)]


def test_every_digit_of_mnist_stays_as_it_is(digits: NDArray[np.uint8]) -> None:
    for index, digit in enumerate(digits):
        assert np.array_equal(as_digit(digit, 255, "a"), digit), index


@pytest.mark.parametrize(
    ("change", "white"),
    [
        (lambda x: 255 - x, 255.0),
        (lambda x: x / 255, 1.0),
        (lambda x: (1 - x / 255).astype(np.float32), 1.0),
        (lambda x: x.astype(np.uint16) * 257, 65535.0),
    ],
    ids=["inverted", "floats", "inverted floats", "16 bits"],
)
def test_other_units_and_dark_on_light(digits: NDArray[np.uint8], change, white: float) -> None:  # type: ignore[no-untyped-def]
    for digit in digits[:200]:
        assert np.array_equal(as_digit(change(digit), white, "a"), digit)


@pytest.mark.parametrize("is_dark", [False, True])
def test_a_large_copy_comes_back_nearly_as_it_was(digits: NDArray[np.uint8], is_dark: bool) -> None:
    differences = []
    for digit in digits[:60]:
        large = np.kron(digit, np.ones((7, 7), np.uint8))
        again = as_digit(255 - large if is_dark else large, 255, "a")
        differences.append(np.abs(again.astype(float) - digit).mean())
    # of 255; one pixel off in any direction would be 20
    assert np.mean(differences) < 6


def test_a_digit_in_a_corner_is_centred_and_keeps_its_proportions() -> None:
    sheet = np.full((300, 400), 235, np.uint8)
    sheet[20:80, 300:330] = 40
    image = as_digit(sheet, 255, "a")
    assert extent(image) == (20, 10)
    assert image.max() == 255 and image[0].max() == 0
    assert all(13.5 <= c <= 14.5 for c in center(image))


def test_a_small_picture_off_centre_is_centred(digits: NDArray[np.uint8]) -> None:
    moved = np.roll(digits[:100], (-3, 2), axis=(1, 2))
    images = [as_digit(image, 255, "a") for image in moved if not image[-3:].any() and not image[:, :2].any()]
    assert len(images) > 50
    for image in images:
        assert all(13.4 <= c <= 14.6 for c in center(image))


@settings(max_examples=20)
@given(st.integers(5, 12), st.integers(0, 120), st.integers(0, 100))
def test_where_it_stands_and_which_is_darker_makes_no_difference(stroke: int, top: int, left: int) -> None:
    first, moved = (np.full((200, 160), 220, np.uint8) for _ in range(2))
    first[60:140, 50:110] = moved[top : top + 80, left : left + 60] = bar(80, 60, stroke)
    expected = as_digit(first, 255, "a").astype(int)
    for picture in (moved, 255 - moved):
        assert np.abs(as_digit(picture, 255, "a") - expected).max() <= 2


def test_a_thin_pen_is_as_wide_as_the_thinnest_strokes_of_mnist() -> None:
    thin, wide = (as_digit(bar(500, 500, stroke), 255, "a") for stroke in (4, 72))
    # a side of the ring, across its middle
    assert thin[14, :14].sum() / 255 == pytest.approx(LEAST_WIDTH, abs=0.3)
    assert wide[14, :14].sum() / 255 == pytest.approx(20 * 72 / 480, abs=0.2)
    assert extent(thin) == extent(wide) == (20, 20)


def test_specks_and_a_shadow_along_an_edge_are_left_out() -> None:
    sheet = np.full((240, 240), 220, np.uint8)
    sheet[60:160, 100:140] = 40
    expected = as_digit(sheet, 255, "a")
    sheet[200:206, 20:26] = 40
    sheet[:, 225:] = 40
    assert np.abs(as_digit(sheet, 255, "a").astype(int) - expected).max() <= 2


BLANKS = {
    "white": np.full((50, 40), 255, np.uint8),
    "black": np.zeros((28, 28), np.uint8),
    "one pixel": np.zeros((1, 1), np.uint8),
    "one row": np.full((1, 30), 9, np.uint8),
    "noise": np.random.default_rng(0).normal(128, 30, (300, 200)).clip(0, 255).astype(np.uint8),
    "much noise": np.random.default_rng(1).integers(0, 256, (28, 28)).astype(np.uint8),
    "light from one side": np.linspace(100, 230, 150)[None].repeat(99, axis=0).astype(np.uint8),
    "a lamp": (230 - 100 * np.hypot(*np.mgrid[-1:1:90j, -1:1:90j]) ** 2).clip(0).astype(np.uint8),
}


@pytest.mark.parametrize("blank", BLANKS)
def test_nothing_is_drawn(blank: str) -> None:
    with pytest.raises(DataError, match=r"^blank\.png: nothing is drawn on it"):
        as_digit(BLANKS[blank], 255, "blank.png")


@given(arrays(np.uint8, st.tuples(st.integers(1, 40), st.integers(1, 40))))
def test_whatever_the_picture_it_is_a_digit_or_refused(plane: NDArray[np.uint8]) -> None:
    try:
        image = as_digit(plane, 255, "a")
    except DataError:
        return
    assert image.shape == (28, 28) and image.dtype == np.uint8 and image.max() == 255


def test_uneven_light_is_taken_away(digits: NDArray[np.uint8]) -> None:
    rng = np.random.default_rng(3)
    foreground = find_foreground(photo_of(digits[0], rng) / np.float32(255), "a")
    # a seven covers little of its sheet
    assert 0.02 < (foreground > 0.5).mean() < 0.2 and np.median(foreground) == 0


@given(arrays(np.bool_, st.tuples(st.integers(1, 9), st.integers(1, 9))))
def test_parts_are_those_of_a_flood(mask: NDArray[np.bool_]) -> None:
    labels = label_parts(mask)
    assert np.array_equal(labels > 0, mask)
    assert np.array_equal(np.unique(labels[mask]), np.arange(1, labels.max() + 1))
    for place in np.argwhere(mask):
        assert np.array_equal(flood(mask, tuple(place.tolist())), labels == labels[tuple(place)])


def flood(mask: NDArray[np.bool_], start: tuple[int, ...]) -> NDArray[np.bool_]:
    """Find what is connected to a pixel, a step at a time."""
    part = np.zeros_like(mask)
    part[start] = True
    while True:
        grown = part.copy()
        for y, x in np.argwhere(part):
            grown[max(y - 1, 0) : y + 2, max(x - 1, 0) : x + 2] = True
        grown &= mask
        if np.array_equal(grown, part):
            return part
        part = grown


def test_resized_takes_means() -> None:
    plane = np.array([[0, 2, 4], [6, 8, 10]], np.float32)
    assert resized(plane, (1, 3)).tolist() == [[3, 5, 7]]
    # the middle pixel is shared
    assert resized(plane, (2, 2)) == pytest.approx(np.array([[2 / 3, 10 / 3], [20 / 3, 28 / 3]]))
    assert resized(plane, (4, 3))[1].tolist() == [0, 2, 4]


@given(st.integers(1, 50), st.integers(1, 50), st.integers(1, 50), st.integers(1, 50))
def test_resized_keeps_the_mean(h: int, w: int, new_h: int, new_w: int) -> None:
    plane = np.random.default_rng(h * w).random((h, w)).astype(np.float32)
    assert resized(plane, (new_h, new_w)).mean() == pytest.approx(plane.mean(), rel=1e-4)


def test_shrunk_takes_means_of_blocks() -> None:
    plane = np.arange(35, dtype=np.uint8).reshape(5, 7)
    assert shrunk(plane, 7).tolist() == plane.tolist()
    assert shrunk(plane, 4).tolist() == [[4, 6, 8], [18, 20, 22]]
    assert shrunk(plane[:1], 3).tolist() == [[1, 4]]


def test_blurred_weighs_neighbours() -> None:
    point = np.zeros((3, 3), np.float32)
    point[1, 1] = 16
    assert blurred(point, 1).tolist() == [[1, 2, 1], [2, 4, 2], [1, 2, 1]]
    assert blurred(np.full((1, 4), 3, np.float32), 2).tolist() == [[3, 3, 3, 3]]


@given(arrays(np.uint8, st.integers(2, 40)))
def test_the_threshold_separates_best(values: NDArray[np.uint8]) -> None:
    if values.min() == values.max():
        return

    def within(threshold: float) -> float:
        classes = [values[values > threshold], values[values <= threshold]]
        return float(sum(len(c) * c.var() for c in classes if len(c)))

    # bins are narrower than the distance of two values
    found = otsu_threshold(values.astype(np.float32))
    assert within(found) <= min(within(t) for t in range(256)) + 1e-6 * (1 + within(255)) + 2 * len(values)


@pytest.mark.parametrize("stroke", [3, 8, 20])
def test_the_width_of_a_stroke(stroke: int) -> None:
    foreground = (bar(300, 240, stroke) < 128).astype(np.float32)[10:-10, 10:-10]
    # along the axes, an outline is no longer than it looks
    assert stroke_width(foreground) * np.pi / 4 == pytest.approx(stroke, rel=0.02)
