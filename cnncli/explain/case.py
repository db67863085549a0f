"""What a walk-through is about: the reader's arrays and sizes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cnncli.explain.samples import Sample
from cnncli.explain.textbook import Slide
from cnncli.explain.walkthrough import Array
from cnncli.nn import Windows, batch_first, batch_last, col2im, im2col


@dataclass(frozen=True, eq=False)
class Case:
    """The arrays, batch first and in float64, and how the window slides over the images.

    Attributes
    ----------
    x : (N, C, H, W)
    upstream : (N, F, OH, OW), the gradient that backward starts from; F is C for max-pool
    weight : (F, C, KH, KW), for a convolution
    bias : (F,), for a convolution
    order : of axes, to show the arrays in as well
    upstream_shape : as the reader gave it
    seed : of numbers that a step draws for itself
    """

    x: Sample
    windows: Windows
    upstream: Sample | None = None
    weight: Sample | None = None
    bias: Sample | None = None
    order: str | None = None
    upstream_shape: tuple[int, ...] | None = None
    seed: int = 0

    @property
    def shape(self) -> tuple[int, int, int, int]:
        N, C, H, W = self.x.values.shape
        return N, C, H, W

    @property
    def slide(self) -> Slide:
        """How the window slides, as the textbook takes it."""
        return Slide(*self.windows.geometry)

    @property
    def n_windows(self) -> int:
        """Windows over one image."""
        OH, OW = self.windows.output_size
        return OH * OW

    @property
    def cols_shape(self) -> tuple[int, int]:
        """Shape of the im2col matrix, (C*KH*KW, OH*OW*N)."""
        N, C, _, _ = self.shape
        KH, KW = self.windows.kernel_size
        return C * KH * KW, self.n_windows * N

    @cached_property
    def cols(self) -> Array:
        """The im2col matrix of the images, (C*KH*KW, OH*OW*N)."""
        return self.im2col(self.x.values)

    def im2col(self, images: Array) -> Array:
        """Lay images (N, C, H, W) out with the function that trains."""
        return im2col(batch_last(images), *self.windows.geometry)

    def col2im(self, cols: Array) -> Array:
        """Add a matrix up to images (N, C, H, W) with the function that trains."""
        N, C, H, W = self.shape
        return batch_first(col2im(cols, (C, H, W, N), *self.windows.geometry))

    @property
    def setting(self) -> tuple[tuple[str, str], ...]:
        """The sizes for the head of a page."""
        (KH, KW), (SH, SW), sides = self.windows.geometry
        OH, OW = self.windows.output_size
        lines = [
            ("image", f"(N, C, H, W) = {self.shape}"),
            ("kernel", f"(KH, KW) = ({KH}, {KW})"),
            ("stride", f"(SH, SW) = ({SH}, {SW})"),
        ]
        if any(sides):
            lines.append(("padding", f"(top, bottom, left, right) = {tuple(sides)}"))
        lines.append(("windows", f"(OH, OW) = ({OH}, {OW}), so {self.n_windows:,} over each image"))
        return tuple(lines)


def rows_of_columns(cols: Array, case: Case) -> Array:
    """Turn (C*KH*KW, OH*OW*N) into the book's rows (N*OH*OW, C*KH*KW)."""
    N = case.shape[0]
    rows: Array = cols.reshape(len(cols), -1, N).transpose(2, 1, 0).reshape((-1, len(cols)))
    return rows


def columns_of_rows(rows: Array, case: Case) -> Array:
    """Turn the book's rows (N*OH*OW, C*KH*KW) into (C*KH*KW, OH*OW*N)."""
    N = case.shape[0]
    return np.ascontiguousarray(rows.reshape(N, -1, rows.shape[1]).transpose(2, 1, 0)).reshape(
        rows.shape[1], -1
    )
