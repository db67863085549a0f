"""The arrays that a page explains: checked against each other, and cut to what a page can hold."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cnncli.errors import OptionError, ShapeError
from cnncli.nn import Sides, Windows, windows_over
from cnncli.nn.arrays import FloatArray

# what a page holds at most; the browser computes everything anew at each step
MATRIX_CELLS = 20_000
MULTIPLY_ADDS = 500_000
DEFAULT_FILTERS = 2


@dataclass(frozen=True)
class ExplainCase:
    """What one page is about: float64 arrays, batch first.

    Attributes
    ----------
    x : (N, C, H, W)
    weight : (F, C, KH, KW) for ``conv``, None otherwise
    upstream : (N, F, OH, OW) for ``conv``, (N, C, OH, OW) for ``max-pool``, None otherwise
    """

    topic: str
    windows: Windows
    x: FloatArray
    weight: FloatArray | None = None
    upstream: FloatArray | None = None

    @property
    def has_backward(self) -> bool:
        return self.topic in ("conv", "max-pool")


def checked_case(
    topic: str,
    x: NDArray[Any],
    geometry: tuple[tuple[int, int], tuple[int, int], Sides],
    weight: NDArray[Any] | None,
    upstream: NDArray[Any] | None,
) -> ExplainCase:
    """Check the arrays against each other; what is left out is made by `part_that_fits`, or not needed.

    Raises
    ------
    ShapeError : an array has another shape than the others ask for, or holds no numbers
    OptionError : the kernel does not fit
    """
    images = _as_array("x", x, "(N, C, H, W)")
    N, C, H, W = images.shape
    windows = windows_over((H, W), *geometry)
    filters = _checked_weight(weight, C, windows) if topic == "conv" else None
    case = ExplainCase(topic, windows, images, filters)
    if upstream is None or not case.has_backward:
        return case
    gradient = _as_array("upstream", upstream, "(N, F, OH, OW)")
    shape = (N, C if filters is None else len(filters), *windows.output_size)
    if gradient.shape != shape:
        raise ShapeError(f"upstream: expected an array of shape {shape}, got {gradient.shape}")
    return replace(case, upstream=gradient)


def _checked_weight(weight: NDArray[Any] | None, C: int, windows: Windows) -> FloatArray:
    KH, KW = windows.kernel_size
    if weight is None:
        return counting((DEFAULT_FILTERS, C, KH, KW))
    filters = _as_array("weight", weight, "(F, C, KH, KW)")
    if filters.shape[1:] != (C, KH, KW):
        raise ShapeError(f"weight: expected an array of shape (F, {C}, {KH}, {KW}), got {filters.shape}")
    return filters


def _as_array(name: str, values: NDArray[Any], axes: str) -> FloatArray:
    array = np.asarray(values)
    if array.ndim != 4 or 0 in array.shape or array.dtype.kind not in "biuf":
        raise ShapeError(f"{name}: expected numbers of shape {axes}, got {array.dtype} of {array.shape}")
    return array.astype(np.float64)


def counting(shape: tuple[int, ...], start: int = 1) -> FloatArray:
    """Count on in row-major order."""
    return np.arange(start, start + math.prod(shape), dtype=np.float64).reshape(shape)


def part_that_fits(case: ExplainCase) -> ExplainCase:
    """Take as much of the arrays as a page holds: all, or the first images, channels and pixels.

    A gradient of the output that was not given counts from 1.
    """
    N, C, _, _ = case.x.shape
    windows = _over_the_top_left(case.windows)
    (H, W), (OH, OW) = windows.image_size, windows.output_size
    of_a_plane = _numbers_of_a_plane(windows)
    C = min(C, max(1, MATRIX_CELLS // of_a_plane))
    N = min(N, max(1, MATRIX_CELLS // (of_a_plane * C)))
    F, weight = C, case.weight
    if weight is not None:
        F = min(len(weight), max(1, MULTIPLY_ADDS // (of_a_plane * C * N)))
        weight = weight[:F, :C]
    upstream = case.upstream
    if upstream is not None:
        upstream = upstream[:N, :F, :OH, :OW]
    elif case.has_backward:
        upstream = counting((N, F, OH, OW))
    return ExplainCase(case.topic, windows, case.x[:N, :C, :H, :W], weight, upstream)


def _over_the_top_left(windows: Windows) -> Windows:
    """Halve the image until one channel of it fits a page."""
    (H, W), (KH, KW) = windows.image_size, windows.kernel_size
    top, bottom, left, right = windows.sides
    least = (max(KH - top - bottom, 1), max(KW - left - right, 1))
    while _numbers_of_a_plane(windows) > MATRIX_CELLS:
        if least == (H, W):
            raise OptionError(
                "kernel_size", f"with its padding at most {MATRIX_CELLS} numbers on a page", f"{KH}x{KW}"
            )
        H, W = max(H // 2, least[0]), max(W // 2, least[1])
        windows = windows_over((H, W), *windows.geometry)
    return windows


def _numbers_of_a_plane(windows: Windows) -> int:
    (H, W), (KH, KW), (OH, OW) = windows.image_size, windows.kernel_size, windows.output_size
    top, bottom, left, right = windows.sides
    return max(KH * KW * OH * OW, (H + top + bottom) * (W + left + right))


def what_is_left_out(case: ExplainCase, part: ExplainCase) -> str:
    """Say what of the arrays given is not on the page."""
    names = ("images", "channels", "rows", "columns")
    axes = list(zip(case.x.shape, part.x.shape, names, strict=True))
    if case.weight is not None and part.weight is not None:
        axes.append((len(case.weight), len(part.weight), "filters"))
    cut = [f"{kept} of {given} {name}" for given, kept, name in axes if kept < given]
    if not cut:
        return ""
    note = f"The arrays given are larger than a page can hold; here are the first {_listed(cut)}."
    if case.topic == "conv" and case.x.shape[1] > part.x.shape[1]:
        note += " Sums run over these channels alone."
    return note


def _listed(items: list[str]) -> str:
    return ", ".join(items[:-1]) + " and " + items[-1] if len(items) > 1 else items[0]
