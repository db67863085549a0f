"""The sizes of a walk-through: what the reader left open is filled in, what cannot be is refused."""

from __future__ import annotations

import math
from typing import NamedTuple

from cnncli.errors import OptionError
from cnncli.explain.samples import MOST_NUMBERS
from cnncli.nn import Windows, windows_over

POOL = "max-pool"
CONV = "conv"
BACKWARD_TOPICS = (CONV, POOL)
DEFAULT_KERNEL = (2, 2)
DEFAULT_OUT_CHANNELS = 2
# the textbook's loops take one turn for each cell of the kernel
MOST_CELLS = 4096

Pair = tuple[int, int]
Shape = tuple[int, ...]


class SizeRequest(NamedTuple):
    """What the reader said; None stands for what was left open.

    Attributes
    ----------
    shape : (N, C, H, W)
    padding : (height, width), or ``same``
    upstream_shape : (N, F, OH, OW), for max-pool (N, C, OH, OW)
    in_channels, out_channels : C and F of a weight that is there
    """

    topic: str
    shape: Shape | None = None
    kernel_size: Pair | None = None
    stride: Pair | None = None
    padding: Pair | str = (0, 0)
    upstream_shape: Shape | None = None
    in_channels: int | None = None
    out_channels: int | None = None


class Sizes(NamedTuple):
    """The sizes of everything: images (N, C, H, W), windows, and the upstream gradient."""

    shape: Shape
    windows: Windows
    upstream_shape: Shape


def resolve_sizes(request: SizeRequest) -> Sizes:
    """Fill in what was left open.

    Images that were not given get the size that the upstream gradient needs, or a small one.

    Raises
    ------
    OptionError : the kernel does not fit, shapes contradict each other, or it is too much for a page
    """
    kernel = request.kernel_size or DEFAULT_KERNEL
    stride = request.stride or (kernel if request.topic == POOL else (1, 1))
    _check_kernel(kernel)
    shape = request.shape or _shape_for(request, kernel, stride)
    N, C, H, W = shape
    if request.in_channels not in (None, C):
        raise OptionError("weight", f"kernels for {C} channels, as the input has", f"{request.in_channels}")
    windows = windows_over((H, W), kernel, stride, request.padding)
    _check_amount(shape, windows)
    F = C if request.topic == POOL else _out_channels(request)
    _check_amount_of("out_channels", (F, C, *kernel))
    upstream_shape = (N, F, *windows.output_size)
    _check_amount_of("upstream_shape", upstream_shape)
    if request.upstream_shape not in (None, upstream_shape):
        raise OptionError(
            "upstream_shape",
            f"{_written(upstream_shape)}, what comes out for images of shape {_written(shape)}",
            _written(request.upstream_shape or ()),
        )
    return Sizes(shape, windows, upstream_shape)


def _out_channels(request: SizeRequest) -> int:
    if request.out_channels is not None:
        return request.out_channels
    return request.upstream_shape[1] if request.upstream_shape else DEFAULT_OUT_CHANNELS


def _shape_for(request: SizeRequest, kernel: Pair, stride: Pair) -> Shape:
    C = request.in_channels or 1
    if request.upstream_shape is None:
        # two windows down and across; a matrix of windows is not to look like its transpose
        more = stride[1] if request.topic in ("im2col", CONV) else 0
        return 1, C, kernel[0] + stride[0], kernel[1] + stride[1] + more
    N, F, OH, OW = request.upstream_shape
    size = [_size_for(request, axis, (OH, OW)[axis], kernel, stride) for axis in (0, 1)]
    return N, F if request.topic == POOL else C, *size


def _size_for(request: SizeRequest, axis: int, n_windows: int, kernel: Pair, stride: Pair) -> int:
    """Find the least height or width that gives so many windows."""
    if isinstance(request.padding, str):
        return n_windows * stride[axis]
    size = (n_windows - 1) * stride[axis] + kernel[axis] - 2 * request.padding[axis]
    if size < 1:
        raise OptionError(
            "padding",
            f"less, for {n_windows} windows of {kernel[axis]} need no image at all then",
            _written(request.padding),
        )
    return size


def _check_kernel(kernel: Pair) -> None:
    if math.prod(kernel) > MOST_CELLS:
        raise OptionError(
            "kernel_size", f"at most {MOST_CELLS:,} cells for a page", f"{kernel[0]}x{kernel[1]}"
        )


def _check_amount(shape: Shape, windows: Windows) -> None:
    N, C, H, W = shape
    (KH, KW), (OH, OW), (top, bottom, left, right) = windows.kernel_size, windows.output_size, windows.sides
    _check_amount_of("shape", (N, C, H + top + bottom, W + left + right))
    n_cells = N * C * KH * KW * OH * OW
    if n_cells > MOST_NUMBERS:
        raise OptionError(
            "shape",
            f"an im2col matrix of at most {MOST_NUMBERS:,} numbers for a page",
            f"{n_cells:,} ({C * KH * KW} x {OH * OW * N})",
        )


def _check_amount_of(name: str, shape: Shape) -> None:
    if math.prod(shape) > MOST_NUMBERS:
        raise OptionError(
            name, f"at most {MOST_NUMBERS:,} numbers for a page", f"{math.prod(shape):,} of {_written(shape)}"
        )


def _written(shape: Shape) -> str:
    return ",".join(map(str, shape))
