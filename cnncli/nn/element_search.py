"""The gradient of one array beside the slopes: along directions, and element by element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cnncli.nn.arrays import FloatArray
from cnncli.nn.slopes import Slopes

# Rounding leaves a right gradient with an error of 1e-7 at most, mostly far less; one wrong number
# among n shows along a random direction as about 1 / sqrt(n), so 1e-5 finds it among billions.
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Element:
    """One number of a gradient: what backward gives, and the slope that differences give."""

    index: tuple[int, ...]
    analytic: float
    numeric: float
    relative_error: float


class Comparison(NamedTuple):
    """The same along a direction."""

    analytic: float
    numeric: float
    relative_error: float


class ArraySlopes:
    """Compares the gradient of one array with slopes.

    Parameters
    ----------
    array : what moves
    gradient : what backward gives for it
    rng : source of directions and of the choice of elements
    """

    def __init__(
        self, slopes: Slopes, array: FloatArray, gradient: FloatArray, rng: np.random.Generator
    ) -> None:
        self._slopes = slopes
        self._array = array
        self._gradient = gradient.reshape(-1)
        self._rng = rng

    def compare(self, span: slice, direction: FloatArray) -> Comparison | None:
        """Compare along a direction within a part of the array, or give None where kinks are in the way.

        The error is the difference of the two, divided by the largest of: the length of the gradient
        (which the slope along a random direction is expected to have), the slope, and the slope that
        rounding could make up.
        """
        gradient = self._gradient[span]
        analytic, length = float(gradient @ direction), float(np.sqrt(gradient @ gradient))
        slope = self._slopes.along(self._array, span, direction, length)
        if slope is None:
            return None
        largest = max(length, abs(slope.value), 10 * slope.noise / TOLERANCE, 1e-300)
        return Comparison(analytic, slope.value, abs(slope.value - analytic) / largest)

    def error_along_directions(self, n_directions: int) -> float | None:
        """Return the largest error along random directions of the whole array, or None; see `compare`."""
        errors = [0.0]
        for _ in range(n_directions if self._array.size else 0):
            found = self._compare_at_random(slice(0, self._array.size))
            if found is None:
                return None
            errors.append(found.relative_error)
        return max(errors)

    def elements(self, n_elements: int, *, search: bool) -> list[Element]:
        """Compare some elements, the worst first; with `search` also one that is wrong."""
        size = self._array.size
        places = set(map(int, self._rng.choice(size, min(n_elements, size), replace=False)))
        if search:
            places.add(self._wrong_place())
        found = [element for place in sorted(places) if (element := self._element(place)) is not None]
        return sorted(found, key=lambda element: -element.relative_error)

    def _element(self, place: int) -> Element | None:
        found = self.compare(slice(place, place + 1), np.ones(1))
        if found is None:
            return None
        index = tuple(map(int, np.unravel_index(place, self._array.shape)))
        return Element(index, *found)

    def _wrong_place(self) -> int:
        """Halve the array again and again, going on where gradient and slope differ most."""
        start, stop = 0, self._array.size
        while stop - start > 1:
            middle = (start + stop) // 2
            first, second = self._gap(slice(start, middle)), self._gap(slice(middle, stop))
            start, stop = (start, middle) if first >= second else (middle, stop)
        return start

    def _gap(self, span: slice) -> float:
        found = self._compare_at_random(span)
        return 0.0 if found is None else abs(found.numeric - found.analytic)

    def _compare_at_random(self, span: slice) -> Comparison | None:
        return self.compare(span, self._rng.standard_normal(span.stop - span.start))


def common_factor(elements: Sequence[Element]) -> float | None:
    """Return what every slope must be multiplied by to give the gradient, if there is one such number."""
    largest = max((abs(element.numeric) for element in elements), default=0.0)
    telling = [element for element in elements if abs(element.numeric) > 1e-3 * largest]
    if len(telling) < 2:
        return None
    factors = np.array([element.analytic / element.numeric for element in telling])
    factor = float(factors[0])
    return factor if bool(np.allclose(factors, factor, rtol=1e-4, atol=1e-9)) else None
