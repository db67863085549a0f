"""Random shapes, kernels, strides and paddings for hypothesis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.nn import references


@dataclass(frozen=True)
class Geometry:
    """A batch of images and the windows over it."""

    C: int
    H: int
    W: int
    N: int
    kernel_size: tuple[int, int]
    stride: tuple[int, int]
    padding: int | tuple[int, int] | Literal["same"]
    seed: int

    @property
    def image_size(self) -> tuple[int, int]:
        return self.H, self.W

    @property
    def input_shape(self) -> tuple[int, int, int]:
        return self.C, self.H, self.W

    @property
    def sides(self) -> references.FourSides:
        """The padding as the references take it."""
        if isinstance(self.padding, str):
            return references.same_sides(self.image_size, self.kernel_size, self.stride)
        height, width = (self.padding, self.padding) if isinstance(self.padding, int) else self.padding
        return height, height, width, width

    @property
    def output_size(self) -> tuple[int, int]:
        return references.output_size(self.image_size, self.kernel_size, self.stride, self.sides)

    @property
    def rng(self) -> np.random.Generator:
        """A new generator, the same for each call."""
        return np.random.default_rng(self.seed)

    def images(self, rng: np.random.Generator) -> NDArray[Any]:
        """Draw normal images (N, C, H, W)."""
        return rng.standard_normal((self.N, self.C, self.H, self.W))


@st.composite
def geometries(draw: st.DrawFn, pooling: bool = False) -> Geometry:
    """Draw a geometry whose kernel fits; for pooling the padding is at most half the kernel."""
    H, W = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    padding: int | tuple[int, int] | Literal["same"]
    height = draw(st.integers(0, 2))
    width = draw(st.just(height) | st.integers(0, 2))
    if draw(st.integers(0, 3)) == 0:
        padding = "same"
    else:
        padding = height if height == width else (height, width)
    at_least = (2 * height, 2 * width) if pooling and padding != "same" else (1, 1)
    kernel = (
        draw(st.integers(max(at_least[0], 1), min(4, H + 2 * height))),
        draw(st.integers(max(at_least[1], 1), min(4, W + 2 * width))),
    )
    stride = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    C, N = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    return Geometry(C, H, W, N, kernel, stride, padding, draw(st.integers(0, 2**32 - 1)))
