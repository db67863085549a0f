"""What pages are about in these tests, and what must light up, worked out by plain loops."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cnncli.nn import Sides
from tests.nn import references

Array = NDArray[Any]
NO_PADDING = Sides(0, 0, 0, 0)


@dataclass(frozen=True)
class Reading:
    """One cell of the matrix and the place that it reads."""

    row: int
    column: int
    window: tuple[int, int, int]  # n, oh, ow
    place: tuple[int, int, int, int]  # n, c, h, w; outside the image on padding


@dataclass(frozen=True)
class Case:
    """A page, its arrays batch first."""

    topic: str
    x: Array
    kernel_size: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    padding: Sides = NO_PADDING
    weight: Array | None = None
    upstream: Array | None = None

    @property
    def geometry(self) -> tuple[tuple[int, int], tuple[int, int], references.FourSides]:
        top, bottom, left, right = self.padding
        return self.kernel_size, self.stride, (top, bottom, left, right)

    @property
    def output_size(self) -> tuple[int, int]:
        H, W = self.x.shape[2:]
        return references.output_size((H, W), *self.geometry)

    @cached_property
    def readings(self) -> list[Reading]:
        """Every cell of the matrix, by plain loops."""
        N, C, H, W = self.x.shape
        KH, KW = self.kernel_size
        _, OW = self.output_size
        found = []
        for window in references.windows((H, W), *self.geometry):
            for n in range(N):
                for c in range(C):
                    for i in range(KH):
                        for j in range(KW):
                            row = c * KH * KW + i * KW + j
                            column = (window.oh * OW + window.ow) * N + n
                            h, w = window.top + i - self.padding.top, window.left + j - self.padding.left
                            place = (n, c, h, w)
                            found.append(Reading(row, column, (n, window.oh, window.ow), place))
        return found

    def places(self) -> list[tuple[int, int, int, int]]:
        """Every pixel and every cell of padding, as (n, c, h, w)."""
        N, C, H, W = self.x.shape
        top, bottom, left, right = self.padding
        return [
            (n, c, h, w)
            for n in range(N)
            for c in range(C)
            for h in range(-top, H + bottom)
            for w in range(-left, W + right)
        ]

    def is_padding(self, place: tuple[int, int, int, int]) -> bool:
        _, _, H, W = self.x.shape
        return not (0 <= place[2] < H and 0 <= place[3] < W)


def counting(*shape: int, start: int = 0) -> Array:
    return np.arange(start, start + int(np.prod(shape)), dtype=np.float64).reshape(shape)


def image(*rows: list[float]) -> Array:
    """One image with one channel."""
    return np.array([[rows]], dtype=np.float64)


def random_case(topic: str, seed: int) -> Case:
    """Draw sizes that are not square, with strides, four different paddings, channels and a batch."""
    rng = np.random.default_rng(seed)
    N, C, F = (int(n) for n in rng.integers(1, 3, 3))
    H, W = (int(n) for n in rng.integers(2, 6, 2))
    kernel_size = (int(rng.integers(1, min(H, 3) + 1)), int(rng.integers(1, min(W, 4) + 1)))
    stride = (int(rng.integers(1, 4)), int(rng.integers(1, 3)))
    most = [k // 2 if topic == "max-pool" else 2 for k in (kernel_size[0],) * 2 + (kernel_size[1],) * 2]
    padding = Sides(*(int(rng.integers(0, side + 1)) for side in most))
    case = Case(topic, rng.integers(-9, 10, (N, C, H, W)).astype(float), kernel_size, stride, padding)
    if topic not in ("conv", "max-pool"):
        return case
    weight = rng.integers(-3, 4, (F, C, *kernel_size)).astype(float) if topic == "conv" else None
    upstream = rng.integers(-9, 10, (N, F if topic == "conv" else C, *case.output_size)).astype(float)
    return Case(topic, case.x, kernel_size, stride, padding, weight, upstream)
