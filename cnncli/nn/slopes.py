"""Slopes by differences, from steps that cross no kink."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cnncli.nn.arrays import FloatArray
from cnncli.nn.frozen_subject import FrozenSubject

# from long steps, which rounding disturbs least, to short ones, which cross the fewest kinks
STEPS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
# how far the slopes before and after a point may differ where there is no kink between
STRAIGHT = 1e-6
# what a few roundings in a sum amount to
ROUNDING = 32 * float(np.finfo(np.float64).eps)
# what it may leave of a gradient that cancels to 0, for outputs of size 1
LEFT_OVER = 1e-12


class Slope(NamedTuple):
    """A slope, and how far rounding may have moved it, or the gradient."""

    value: float
    noise: float


class Slopes:
    """Measures how ``<upstream, forward(x)>`` changes as an array moves.

    A step counts only if the slopes of its two halves agree, output by output: then no ReLU has
    switched and no maximum has moved to another cell within it, nor is the function so curved that
    differences say little. That is seen from forward alone, so a wrong backward cannot hide behind it.

    Parameters
    ----------
    x, y : the point, and what forward gives there
    upstream : gradient of the output
    """

    def __init__(self, frozen: FrozenSubject, x: FloatArray, y: FloatArray, upstream: FloatArray) -> None:
        self._frozen = frozen
        self._x = x
        self._y = y
        self._upstream = upstream

    def along(self, array: FloatArray, span: slice, direction: FloatArray, scale: float) -> Slope | None:
        """Return the slope along a direction, or None if every step meets a kink.

        Parameters
        ----------
        array : `x` itself or the value of a parameter; it is moved and put back
        span : the part of the array that moves, in its flat order
        direction : one number for each of the span
        scale : size of the slopes to be told apart, such as the length of the gradient
        """
        left_over = LEFT_OVER * _length(self._upstream * self._y)
        for step in STEPS:
            above = self._moved(array, span, step * direction)
            below = self._moved(array, span, -step * direction)
            # per output: what does not move cancels without rounding
            value = float(np.vdot(self._upstream, above - below)) / (2 * step)
            bend = _length(self._upstream * (above - 2 * self._y + below)) / step
            moving = (self._upstream * self._y)[above != below]
            noise = ROUNDING * _length(moving) / step + left_over
            if bend <= max(STRAIGHT * max(scale, abs(value)), noise):
                return Slope(value, noise)
        return None

    def _moved(self, array: FloatArray, span: slice, by: FloatArray) -> FloatArray:
        flat = _flat(array)
        original = flat[span].copy()
        flat[span] = original + by
        try:
            return np.array(self._frozen.forward(self._x.copy()))
        finally:
            flat[span] = original


def _flat(array: FloatArray) -> Any:
    return array.reshape(-1) if array.flags.c_contiguous else array.flat


def _length(array: FloatArray) -> float:
    return float(np.sqrt(np.vdot(array, array)))
