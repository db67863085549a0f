"""Examine a backward pass array by array, and name the numbers that are wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from cnncli.nn.arrays import FloatArray
from cnncli.nn.element_search import TOLERANCE, ArraySlopes, Element, common_factor
from cnncli.nn.frozen_subject import FrozenSubject, Subject, spread_parameters
from cnncli.nn.promises import INPUT, broken_promises
from cnncli.nn.slopes import Slopes

N_IMAGES = 3
N_DIRECTIONS = 2
N_DRAWS = 8

Verdict = Literal["right", "wrong", "unclear"]


@dataclass(frozen=True)
class ArrayCheck:
    """What was found for the gradient of one array.

    Attributes
    ----------
    name : "input" or a parameter's name
    shape : of the array, for the input with the batch axis last
    relative_error : the largest met, of whole directions and of single elements; None where the
        gradient cannot be compared, see `faults`, or every step met a kink
    elements : those compared one by one, the worst first
    faults : what else is wrong, in words
    """

    name: str
    shape: tuple[int, ...]
    relative_error: float | None
    elements: tuple[Element, ...]
    faults: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """Say "unclear" only where no step without a kink was found."""
        if self.faults or (self.relative_error is not None and self.relative_error > TOLERANCE):
            return "wrong"
        return "unclear" if self.relative_error is None else "right"


def examine_gradients(
    subject: Subject, input_shape: tuple[int, ...], rng: np.random.Generator, *, n_elements: int = 8
) -> tuple[ArrayCheck, ...]:
    """Compare every gradient that backward gives with differences of forward, in training.

    For each array, whole random directions first: one of them feels every number. Then single
    elements: some drawn, and where a direction disagrees, a wrong one found by halving. Inputs have
    no ties and none near 0; the upstream gradient is random; parameters are moved off their initial
    values and put back at the end. `broken_promises` and ties are looked at as well.

    Parameters
    ----------
    subject : a layer, a network, or what has their methods; its parameters should be float64
    input_shape : without the batch axis
    n_elements : of each array, to compare one by one; all of an array that has no more

    Raises
    ------
    ShapeError : forward does not give an array of finite numbers in the promised shape
    """
    frozen = FrozenSubject(subject, seed=int(rng.integers(2**32)))
    with np.errstate(all="ignore"), spread_parameters(frozen.parameters, rng):
        checks = _Examination(frozen, input_shape, rng, n_elements).checks()
        frozen.restore_buffers()
        return checks


def spaced_numbers(shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
    """Draw numbers from 0.1 to 2 and their negatives, no two of the same size."""
    n = int(np.prod(shape))
    sizes = 0.1 + 1.9 * (rng.permutation(n) + 0.5) / n
    numbers: FloatArray = sizes * rng.choice([-1.0, 1.0], n)
    return numbers.reshape(shape)


class _Point:
    """An input, an upstream gradient, and what the subject makes of them."""

    def __init__(self, frozen: FrozenSubject, x: FloatArray, rng: np.random.Generator) -> None:
        self.x = x
        self.y = frozen.output(x)
        self.upstream = rng.standard_normal(self.y.shape)
        self.gradients = frozen.gradients(x, self.upstream)
        self.slopes = Slopes(frozen, x, self.y, self.upstream)
        self.arrays = {INPUT: x, **{name: p.value for name, p in frozen.parameters.items()}}


class _Examination:
    def __init__(
        self, frozen: FrozenSubject, input_shape: tuple[int, ...], rng: np.random.Generator, n_elements: int
    ) -> None:
        self._frozen = frozen
        self._shape = (*input_shape, N_IMAGES)
        self._rng = rng
        self._n_elements = n_elements
        self._points: list[_Point] = []

    def checks(self) -> tuple[ArrayCheck, ...]:
        point = self._first
        faults = broken_promises(self._frozen, point.x, point.y, point.upstream)
        checks = {name: self._check(name, faults[name]) for name in point.arrays}
        if checks[INPUT].verdict == "right":
            checks[INPUT] = replace(checks[INPUT], faults=tuple(self._tie_faults()))
        return tuple(checks.values())

    @cached_property
    def _first(self) -> _Point:
        return next(self._draws())

    def _draws(self) -> Iterator[_Point]:
        """Give the points that there are, then new ones."""
        for place in range(N_DRAWS):
            if place == len(self._points):
                x = spaced_numbers(self._shape, self._rng)
                self._points.append(_Point(self._frozen, x, self._rng))
            yield self._points[place]

    def _check(self, name: str, faults: list[str]) -> ArrayCheck:
        array, gradient = self._first.arrays[name], self._first.gradients[name]
        unusable = _unusable(array, gradient)
        if unusable:
            return ArrayCheck(name, array.shape, None, (), (*faults, unusable))
        error: float | None = None
        elements: list[Element] = []
        for point in self._draws():
            slopes = ArraySlopes(point.slopes, point.arrays[name], point.gradients[name], self._rng)
            error = slopes.error_along_directions(N_DIRECTIONS)
            if error is not None:
                elements = slopes.elements(self._n_elements, search=error > TOLERANCE)
                error = max([error, *(element.relative_error for element in elements)])
                break
        if error is not None and error > TOLERANCE:
            faults = [*faults, *_factor_faults(elements)]
        return ArrayCheck(name, array.shape, error, tuple(elements), tuple(faults))

    def _tie_faults(self) -> list[str]:
        """Move equal numbers together: there the slope is defined, and every share must add up to it.

        A max-pool that hands the gradient to each of its tied maxima is right everywhere else.
        """
        shades = spaced_numbers(self._shape[-1:], self._rng)
        x = np.broadcast_to(shades, self._shape).copy()
        y = np.array(self._frozen.forward(x.copy()))
        upstream = self._rng.standard_normal(y.shape)
        gradient = self._frozen.gradients(x, upstream)[INPUT]
        if _unusable(x, gradient) or not np.isfinite(y).all():
            return []
        slopes = ArraySlopes(Slopes(self._frozen, x, y, upstream), x, gradient, self._rng)
        found = slopes.compare(slice(0, x.size), np.ones(x.size))
        if found is None or found.relative_error <= TOLERANCE:
            return []
        return [
            "where all numbers of an image are equal, and move together, its gradient adds up to "
            f"{found.analytic:.6g}, but the slope is {found.numeric:.6g}; a tie counts once"
        ]


def _unusable(array: FloatArray, gradient: FloatArray) -> str:
    if gradient.shape != array.shape:
        return f"expected a gradient of shape {array.shape}, got {_described(gradient)}"
    if gradient.dtype.kind != "f":
        return f"expected a gradient of float64, got {gradient.dtype}"
    if not np.isfinite(gradient).all():
        return "the gradient holds numbers that are not finite"
    return ""


def _described(gradient: Any) -> str:
    return "None" if gradient.dtype == object else str(gradient.shape)


def _factor_faults(elements: list[Element]) -> list[str]:
    factor = common_factor(elements)
    if factor is None or abs(factor - 1) < 1e-3:
        return []
    return [
        "it is 0 in every number compared"
        if factor == 0
        else f"it is {factor:.6g} times the slope in every number compared"
    ]
