"""Windows over images: their geometry, im2col and its adjoint col2im.

Notation, here and everywhere: C channels, H and W height and width of the input, N images in the
batch (always the last axis), KH and KW the kernel, SH and SW the stride, OH and OW the output.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from cnncli.errors import OptionError, ShapeError
from cnncli.nn.arrays import FloatArray
from cnncli.nn.options import PairLike, Sides, padding_sides, positive_pair

PaddingArgument: TypeAlias = "int | tuple[int, int] | Sides | str"


class Offset(NamedTuple):
    """One cell (i, j) of the kernel: which outputs it touches, and the inputs it reads for them.

    Cells that fall on padding are left out of the ranges, so nobody ever copies, adds into or
    compares with a padded cell.
    """

    i: int
    j: int
    out_rows: slice
    out_cols: slice
    in_rows: slice
    in_cols: slice


@dataclass(frozen=True)
class Windows:
    """The geometry of sliding a kernel over one image.

    Attributes
    ----------
    image_size : (H, W)
    kernel_size : (KH, KW)
    stride : (SH, SW)
    sides : padding on the four sides
    output_size : (OH, OW)
    """

    image_size: tuple[int, int]
    kernel_size: tuple[int, int]
    stride: tuple[int, int]
    sides: Sides
    output_size: tuple[int, int]

    @property
    def is_padded(self) -> bool:
        return any(self.sides)

    @property
    def are_side_by_side(self) -> bool:
        """Whether no window overlaps another, none is padded, and no gap is left between two."""
        return self.stride == self.kernel_size and not self.is_padded

    @property
    def cover_image(self) -> bool:
        """Whether windows that are side by side leave no pixel over at the right and the bottom."""
        (OH, OW), (SH, SW) = self.output_size, self.stride
        return self.image_size == (OH * SH, OW * SW)

    @property
    def geometry(self) -> tuple[tuple[int, int], tuple[int, int], Sides]:
        """Kernel size, stride and padding: the arguments of `im2col` and `col2im`."""
        return self.kernel_size, self.stride, self.sides

    @property
    def offsets(self) -> Sequence[Offset]:
        """Every cell of the kernel in row-major order; those that only ever see padding are left out."""
        return _offsets(self)

    def coverage(self) -> np.ndarray:
        """Count for each pixel the windows it belongs to: integers of shape (H, W)."""
        counts = np.zeros(self.image_size, dtype=np.int64)
        for offset in self.offsets:
            counts[offset.in_rows, offset.in_cols] += 1
        return counts

    def inside(self, padded: FloatArray) -> FloatArray:
        """View the pixels of padded images (C, top + H + bottom, left + W + right, N)."""
        (H, W), (top, _, left, _) = self.image_size, self.sides
        return padded[:, top : top + H, left : left + W]

    def first_inside(self) -> list[tuple[int, slice, slice]]:
        """List the cells that are the first of some windows not to lie on padding.

        Returns the number of the cell, i*KW + j, with the rows and columns of those windows; cell 0, the
        first of all windows without padding, is left out.
        """
        if not self.is_padded:
            return []
        rows, columns = self._first_inside(axis=0), self._first_inside(axis=1)
        number = self.kernel_size[1]
        return [(i * number + j, rows[i], columns[j]) for i in rows for j in columns if i or j]

    def _first_inside(self, axis: int) -> dict[int, slice]:
        """Give along one axis the windows whose first cell inside the image is each one."""
        before, stride, n_windows = self.sides[2 * axis], self.stride[axis], self.output_size[axis]
        n_padded = min(-(-before // stride), n_windows)  # windows that begin on padding
        first = {before - window * stride: slice(window, window + 1) for window in range(n_padded)}
        return first | ({0: slice(n_padded, n_windows)} if n_padded < n_windows else {})

    def subset(
        self, start: tuple[int, int], step: tuple[int, int], count: tuple[int, int]
    ) -> tuple[slice, slice, Windows]:
        """Choose ``count`` windows by rows and columns, from `start` on and `step` apart.

        Returns the rows and columns of the image that they read, and their geometry over that part.
        """
        rows, height, top, bottom = self._part(0, start[0], step[0], count[0])
        columns, width, left, right = self._part(1, start[1], step[1], count[1])
        stride = (self.stride[0] * step[0], self.stride[1] * step[1])
        sides = Sides(top, bottom, left, right)
        return rows, columns, Windows((height, width), self.kernel_size, stride, sides, count)

    def _part(self, axis: int, start: int, step: int, count: int) -> tuple[slice, int, int, int]:
        size, stride = self.image_size[axis], self.stride[axis]
        first = start * stride - self.sides[2 * axis]
        end = first + (count - 1) * step * stride + self.kernel_size[axis]
        part = slice(min(max(first, 0), size), max(min(end, size), 0))
        return part, max(part.stop - part.start, 0), max(-first, 0), max(end - size, 0)


def windows_over(
    image_size: tuple[int, int],
    kernel_size: PairLike,
    stride: PairLike = 1,
    padding: PaddingArgument = 0,
) -> Windows:
    """Work out the geometry of a convolution or pooling.

    The output has ``floor((H + top + bottom - KH) / SH) + 1`` rows and likewise columns: windows
    that do not fit whole are left out. ``padding="same"`` gives ``ceil(H / SH)`` rows, the smaller
    half of the padding before (as TensorFlow does; PyTorch allows it for stride 1 only).

    Raises
    ------
    OptionError : a value is not an integer, too small, or the kernel is larger than the padded image
    """
    kernel = positive_pair("kernel_size", kernel_size)
    step = positive_pair("stride", stride)
    amount = padding_sides("padding", padding)
    return _windows_over(image_size, kernel, step, amount)


@lru_cache(maxsize=1024)
def _windows_over(
    image_size: tuple[int, int],
    kernel: tuple[int, int],
    step: tuple[int, int],
    padding: Sides | tuple[int, int] | str,
) -> Windows:
    sides = _resolve_padding(image_size, kernel, step, padding)
    padded = (image_size[0] + sides.top + sides.bottom, image_size[1] + sides.left + sides.right)
    if kernel[0] > padded[0] or kernel[1] > padded[1]:
        raise OptionError(
            "kernel_size",
            f"at most {padded[0]}x{padded[1]}, the height and width of the padded input",
            f"{kernel[0]}x{kernel[1]}",
        )
    output = ((padded[0] - kernel[0]) // step[0] + 1, (padded[1] - kernel[1]) // step[1] + 1)
    return Windows(image_size, kernel, step, sides, output)


def output_size(
    image_size: tuple[int, int], kernel_size: PairLike, stride: PairLike = 1, padding: PaddingArgument = 0
) -> tuple[int, int]:
    """Give (OH, OW) for an image of (H, W); see `windows_over`."""
    return windows_over(image_size, kernel_size, stride, padding).output_size


def im2col(
    x: FloatArray,
    kernel_size: PairLike | Windows,
    stride: PairLike = 1,
    padding: PaddingArgument = 0,
    *,
    out: FloatArray | None = None,
) -> FloatArray:
    """Lay every window of every image out as a column of one matrix.

    Parameters
    ----------
    x : ndarray of shape (C, H, W, N)
    kernel_size, stride : int or (height, width); a `Windows` stands for kernel, stride and padding
    padding : int, (height, width), "same" or `Sides`; padded cells are zero
    out : ndarray of shape (C*KH*KW, OH*OW*N), contiguous, of x's dtype, to write into

    Returns
    -------
    ndarray of shape (C*KH*KW, OH*OW*N)
        Row (c*KH + i)*KW + j, column (oh*OW + ow)*N + n holds
        ``x[c, oh*SH + i - top, ow*SW + j - left, n]``.

    Raises
    ------
    ShapeError : `x` is not of rank 4, or `out` has another shape or dtype
    OptionError : see `windows_over`
    """
    x = np.asarray(x)
    if x.ndim != 4:
        raise ShapeError(f"im2col: expected images of shape (C, H, W, N), got an array of shape {x.shape}")
    C, H, W, N = x.shape
    windows = _windows("im2col", (H, W), kernel_size, stride, padding)
    (KH, KW), (OH, OW) = windows.kernel_size, windows.output_size
    if out is None:
        out = np.empty((C * KH * KW, OH * OW * N), dtype=x.dtype)
    elif out.dtype != x.dtype:
        raise ShapeError(f"im2col: expected out of {x.dtype} as the images, got {out.dtype}")
    cols = _six_axes(out, (C, KH, KW, OH, OW, N), "out")
    if windows.is_padded:
        cols.fill(0)
        for o in windows.offsets:
            cols[:, o.i, o.j, o.out_rows, o.out_cols] = x[:, o.in_rows, o.in_cols]
    else:
        # one copy from a view with six axes instead of KH*KW copies
        cols[...] = _window_view(x, windows)
    return out


def col2im(
    cols: FloatArray,
    shape: tuple[int, int, int, int],
    kernel_size: PairLike | Windows,
    stride: PairLike = 1,
    padding: PaddingArgument = 0,
    *,
    out: FloatArray | None = None,
) -> FloatArray:
    """Add every cell of the matrix onto the pixel that `im2col` read it from.

    This is the adjoint (transpose) of im2col, not its inverse: a pixel that lies in k windows
    receives the sum of its k cells, so ``col2im(im2col(x)) == x * coverage``. It is what backward
    needs: a pixel that was used k times collects k gradients.

    Parameters
    ----------
    cols : ndarray of shape (C*KH*KW, OH*OW*N)
    shape : (C, H, W, N) of the images
    kernel_size, stride, padding : as for im2col
    out : ndarray of shape (C, H, W, N), of cols' dtype, to add onto; without it, zeros

    Returns
    -------
    ndarray of shape (C, H, W, N)

    Raises
    ------
    ShapeError : `cols` is not the matrix of such images, or `out` has another shape or dtype
    OptionError : see `windows_over`
    """
    cols = np.asarray(cols)
    if len(shape) != 4:
        raise ShapeError(f"col2im: expected the shape (C, H, W, N) of the images, got {tuple(shape)}")
    if out is not None and (out.shape != tuple(shape) or out.dtype != cols.dtype):
        raise ShapeError(
            f"col2im: expected out of {cols.dtype} and shape {tuple(shape)}, got {out.dtype} and {out.shape}"
        )
    C, H, W, N = shape
    windows = _windows("col2im", (H, W), kernel_size, stride, padding)
    (KH, KW), (OH, OW) = windows.kernel_size, windows.output_size
    cells = _six_axes(cols, (C, KH, KW, OH, OW, N), "cols")
    if out is None:
        out = np.zeros(shape, dtype=cols.dtype)
    for o in windows.offsets:
        # the slices of one offset never meet the same pixel twice, so += is safe here
        out[:, o.in_rows, o.in_cols] += cells[:, o.i, o.j, o.out_rows, o.out_cols]
    return out


def _windows(
    name: str,
    image_size: tuple[int, int],
    kernel_size: PairLike | Windows,
    stride: PairLike,
    padding: PaddingArgument,
) -> Windows:
    if not isinstance(kernel_size, Windows):
        return windows_over(image_size, kernel_size, stride, padding)
    if kernel_size.image_size != image_size:
        raise ShapeError(f"{name}: expected images of {kernel_size.image_size} pixels, got {image_size}")
    return kernel_size


def _six_axes(matrix: FloatArray, axes: tuple[int, ...], name: str) -> FloatArray:
    C, KH, KW, OH, OW, N = axes
    expected = (C * KH * KW, OH * OW * N)
    if matrix.shape != expected:
        raise ShapeError(
            f"{name}: expected a matrix of shape (C*KH*KW, OH*OW*N) = {expected}, got {matrix.shape}"
        )
    return matrix.reshape(axes)


def _window_view(x: FloatArray, windows: Windows) -> FloatArray:
    """View unpadded images as (C, KH, KW, OH, OW, N) without copying anything."""
    (SH, SW), (sc, sh, sw, sn) = windows.stride, x.strides
    return as_strided(
        x,
        (x.shape[0], *windows.kernel_size, *windows.output_size, x.shape[3]),
        (sc, sh, sw, sh * SH, sw * SW, sn),
        writeable=False,
    )


def _resolve_padding(
    image_size: tuple[int, int],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: Sides | tuple[int, int] | str,
) -> Sides:
    """Turn every form of padding into the four sides."""
    if isinstance(padding, Sides):
        return padding
    if isinstance(padding, str):
        top, bottom = _same(image_size[0], kernel[0], stride[0])
        left, right = _same(image_size[1], kernel[1], stride[1])
        return Sides(top, bottom, left, right)
    return Sides(padding[0], padding[0], padding[1], padding[1])


def _same(size: int, kernel: int, stride: int) -> tuple[int, int]:
    n_windows = -(-size // stride)
    total = max((n_windows - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


@lru_cache(maxsize=256)
def _offsets(windows: Windows) -> tuple[Offset, ...]:
    return tuple(
        Offset(i, j, out_rows, out_cols, in_rows, in_cols)
        for i, out_rows, in_rows in _reach(windows, axis=0)
        for j, out_cols, in_cols in _reach(windows, axis=1)
    )


def _reach(windows: Windows, axis: int) -> Iterator[tuple[int, slice, slice]]:
    """Yield along one axis (kernel offset, outputs for which it lies inside the image, those inputs)."""
    size, kernel, stride = windows.image_size[axis], windows.kernel_size[axis], windows.stride[axis]
    before = windows.sides[2 * axis]
    n_windows = windows.output_size[axis]
    # an absurd kernel must not be walked through cell by cell
    for offset in range(max(before - (n_windows - 1) * stride, 0), min(kernel, size + before)):
        first = max(-(-(before - offset) // stride), 0)
        end = min((size - 1 + before - offset) // stride + 1, n_windows)
        if first < end:
            start = first * stride + offset - before
            yield offset, slice(first, end), slice(start, start + (end - first - 1) * stride + 1, stride)
