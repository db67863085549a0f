"""Augmentation: against a slow resampling, pixel by pixel; what is drawn, and what stays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cnncli.data import Augmentation
from cnncli.data.augment import resample

RNG = np.random.default_rng


def pixel(image: Any, row: float, column: float) -> float:
    """Read an image (H, W) between its pixels; outside it is 0."""
    H, W = image.shape
    top, left = math.floor(row), math.floor(column)
    total = 0.0
    for h, w in ((top, left), (top, left + 1), (top + 1, left), (top + 1, left + 1)):
        if 0 <= h < H and 0 <= w < W:
            total += (1 - abs(row - h)) * (1 - abs(column - w)) * float(image[h, w])
    return total


def slow_resample(images: Any, inverse: Any, shift: Any) -> Any:
    N, C, H, W = images.shape
    result = np.zeros(images.shape)
    for n in range(N):
        for h in range(H):
            for w in range(W):
                y, x = h - (H - 1) / 2 - shift[n, 0], w - (W - 1) / 2 - shift[n, 1]
                row = inverse[n, 0, 0] * y + inverse[n, 0, 1] * x + (H - 1) / 2
                column = inverse[n, 1, 0] * y + inverse[n, 1, 1] * x + (W - 1) / 2
                for c in range(C):
                    result[n, c, h, w] = pixel(images[n, c], row, column)
    return result


@given(
    shape=st.tuples(st.integers(1, 3), st.integers(1, 2), st.integers(1, 7), st.integers(1, 7)),
    spread=st.sampled_from([0.0, 0.1, 1.0, 30.0]),
    dtype=st.sampled_from([np.uint8, np.float32]),
    seed=st.integers(0, 2**32),
)
def test_matches_the_reference(
    shape: tuple[int, int, int, int], spread: float, dtype: Any, seed: int
) -> None:
    rng = RNG(seed)
    images = rng.integers(0, 256, shape).astype(dtype)
    inverse = np.eye(2) + spread * rng.standard_normal((shape[0], 2, 2))
    shift = 3 * spread * rng.standard_normal((shape[0], 2))
    before = images.copy()
    result = resample(images, inverse, shift)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(images, before)
    # the places are float32: a millionth of a pixel, in the far corner of the map more
    expected = slow_resample(images, inverse, shift)
    np.testing.assert_allclose(result, expected, rtol=0, atol=255e-6 * (1 + 10 * spread))


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("shape", [(4, 1, 28, 28), (3, 2, 5, 8), (1, 1, 1, 1), (2, 3, 101, 64)])
def test_nothing_to_change_changes_no_bit(shape: tuple[int, ...], dtype: Any) -> None:
    images = RNG(0).integers(0, 256, shape).astype(dtype)
    still = resample(images, np.tile(np.eye(2), (shape[0], 1, 1)), np.zeros((shape[0], 2)))
    np.testing.assert_array_equal(still, images.astype(np.float32))
    assert Augmentation().is_identity
    assert Augmentation().apply(images, RNG(0)) is images


def test_whole_pixels_are_moved_exactly() -> None:
    images = RNG(0).integers(0, 256, (1, 1, 4, 5)).astype(np.uint8)
    moved = resample(images, np.eye(2)[None], np.array([[1.0, -2.0]]))[0, 0]
    np.testing.assert_array_equal(moved[1:, :3], images[0, 0, :3, 2:])
    assert not moved[0].any() and not moved[:, 3:].any()
    gone = resample(images, np.eye(2)[None], np.array([[1e30, -1e30]]))
    assert not gone.any()


def test_a_quarter_turn_is_exact_but_for_rounding() -> None:
    images = RNG(0).integers(0, 256, (1, 1, 6, 6)).astype(np.uint8)
    turned = resample(images, np.array([[[0.0, -1.0], [1.0, 0.0]]]), np.zeros((1, 2)))
    np.testing.assert_allclose(turned[0, 0], np.rot90(images[0, 0], -1), atol=1e-3)


class Extremes(np.random.Generator):
    """Draws one value all the time for one of the five numbers, and 0 for the others."""

    def __init__(self, place: int, value: float) -> None:
        super().__init__(np.random.PCG64(0))
        self._place, self._value = place, value

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        assert (low, high) == (-1, 1)
        numbers = np.zeros(size)
        numbers[self._place] = self._value
        return numbers


def dot(H: int, W: int, y: int, x: int) -> Any:
    """Draw one bright pixel at (y, x) from the centre."""
    image = np.zeros((1, 1, H, W), np.uint8)
    image[0, 0, H // 2 + y, W // 2 + x] = 200
    return image


def centre_of_mass(image: Any) -> tuple[float, float]:
    H, W = image.shape[2:]
    ys, xs = np.mgrid[:H, :W] - np.array([H // 2, W // 2])[:, None, None]
    mass = image[0, 0].sum()
    return float((ys * image[0, 0]).sum() / mass), float((xs * image[0, 0]).sum() / mass)


@pytest.mark.parametrize(
    ("augmentation", "place", "value", "start", "end"),
    [
        # pixels: down, and to the right
        (Augmentation(shift=2.5), 0, 1, (2, -3), (4.5, -3)),
        (Augmentation(shift=2.5), 1, -1, (2, -3), (2, -5.5)),
        # degrees, clockwise and back
        (Augmentation(rotate=90), 2, 1, (0, 6), (6, 0)),
        (Augmentation(rotate=30), 2, -1, (0, 6), (-3, 6 * math.cos(math.pi / 6))),
        (Augmentation(rotate=90), 2, 0.5, (0, 6), (6 * math.sqrt(0.5), 6 * math.sqrt(0.5))),
        # fractions: 0.5 makes it half as large again, or half as large
        (Augmentation(scale=0.5), 3, 1, (4, -2), (6, -3)),
        (Augmentation(scale=0.25), 3, -1, (4, -8), (3, -6)),
        # a row goes sideways by a share of its distance from the centre
        (Augmentation(shear=0.5), 4, 1, (4, 1), (4, 3)),
        (Augmentation(shear=0.5), 4, -1, (-4, 1), (-4, 3)),
    ],
)
def test_the_units(
    augmentation: Augmentation,
    place: int,
    value: float,
    start: tuple[int, int],
    end: tuple[float, float],
) -> None:
    image = dot(31, 35, *start)
    changed = augmentation.apply(image, Extremes(place, value))
    # a single pixel is no disc: what it becomes is off by a fraction of a pixel
    assert centre_of_mass(changed) == pytest.approx(end, abs=0.35)


def test_all_changes_at_once_are_undone_in_the_right_order() -> None:
    """Slanted, then resized, then turned, then moved."""
    images = RNG(0).integers(0, 256, (3, 1, 9, 12)).astype(np.uint8)
    augmentation = Augmentation(shift=1.7, rotate=40, scale=0.3, shear=0.4)
    down, right, angle, size, slant = RNG(5).uniform(-1, 1, (5, 3))
    inverse = []
    for n in range(3):
        # rows and columns: a point is (y, x)
        sine, cosine = np.sin(math.radians(40 * angle[n])), np.cos(math.radians(40 * angle[n]))
        turned = np.array([[cosine, sine], [-sine, cosine]])
        slanted = np.array([[1, 0], [0.4 * slant[n], 1]])
        inverse.append(np.linalg.inv(turned @ ((1 + 0.3 * size[n]) * slanted)))
    expected = slow_resample(images, np.array(inverse), 1.7 * np.stack([down, right], axis=1))
    np.testing.assert_allclose(augmentation.apply(images, RNG(5)), expected, rtol=0, atol=2e-3)


def test_every_image_draws_its_own_numbers() -> None:
    augmentation = Augmentation(shift=2, rotate=20, scale=0.2, shear=0.2)
    images = np.repeat(RNG(0).integers(0, 256, (1, 1, 12, 12)).astype(np.uint8), 6, axis=0)
    changed = augmentation.apply(images, RNG(1))
    assert len({image.tobytes() for image in changed}) == 6
    np.testing.assert_array_equal(changed, augmentation.apply(images, RNG(1)))
    assert not np.array_equal(changed, augmentation.apply(images, RNG(2)))


def test_one_change_does_not_alter_what_the_others_draw() -> None:
    images = RNG(0).integers(0, 256, (5, 1, 9, 9)).astype(np.uint8)
    alone = Augmentation(shift=2).apply(images, RNG(1))
    together = Augmentation(shift=2, rotate=1e-9, shear=1e-9).apply(images, RNG(1))
    np.testing.assert_allclose(together, alone, atol=1e-3)


def test_numbers_are_drawn_evenly_from_both_directions() -> None:
    image = np.repeat(dot(31, 31, 0, 0), 2000, axis=0)
    moved = Augmentation(shift=5).apply(image, RNG(0))
    places = np.array([centre_of_mass(one[None]) for one in moved])
    assert np.abs(places).max() <= 5.001
    np.testing.assert_allclose(places.mean(axis=0), 0, atol=0.2)
    np.testing.assert_allclose(places.std(axis=0), 5 / math.sqrt(3), atol=0.15)
