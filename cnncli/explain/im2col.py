"""im2col, cell by cell: where each comes from, and the product that makes it a convolution."""

from __future__ import annotations

from typing import cast

import numpy as np

from cnncli.explain import textbook
from cnncli.explain.case import Case, columns_of_rows
from cnncli.explain.lines import place, window_lines
from cnncli.explain.numbers import written, written_all
from cnncli.explain.orders import orders_step
from cnncli.explain.walkthrough import Array, Index, Panel, Step, Walkthrough, compared, counted, nowrap
from cnncli.nn import Conv2D, batch_first, batch_last
from cnncli.nn.options import PaddingLike

ROWS = ("c", "i", "j")
COLUMNS = ("oh", "ow", "n")
MATRIX_AXES = ("C*KH*KW", "OH*OW*N")
IMAGE_AXES = ("N", "C", "H", "W")


def explain_im2col(case: Case) -> Walkthrough:
    """Walk through im2col."""
    x = case.x.values
    steps = [image_step(case), _one_window_step(case), _origin_step(case), matrix_step(case)]
    kernel = np.arange(1.0, case.cols_shape[0] + 1).reshape(1, -1)
    y = _convolved(case, kernel)
    steps += [_product_step(case, kernel, y), _book_step(case)]
    if case.order is not None:
        steps.append(orders_step("x", x, case.order))
    by_rows = columns_of_rows(textbook.im2col(x, case.slide), case)
    weight = kernel.reshape(1, case.shape[1], *case.windows.kernel_size)
    book_y = textbook.conv(x, weight, np.zeros(1), case.slide)
    return Walkthrough(
        title="im2col: every window becomes a column of one matrix",
        answer="A convolution is the same small sum of products for every window of the image. im2col "
        "copies the windows into the columns of a matrix, so that all these sums are one matrix "
        "product, which is the fastest thing a processor does. The price is memory: a pixel is "
        "copied once for each window that it lies in.",
        setting=case.setting,
        steps=tuple(steps),
        checks=(
            compared("im2col, by the book's loops", case.cols, by_rows),
            compared("im2col, by CS231n's indices", case.cols, textbook.im2col_by_index(x, case.slide)),
            compared("convolution, by the book", y, book_y, terms=len(case.cols)),
        ),
    )


def image_step(case: Case) -> Step:
    """Show the images that it starts from."""
    x = case.x.values
    N, C, _, _ = case.shape
    (KH, KW), (SH, SW) = case.windows.kernel_size, case.windows.stride
    why = (
        f"x is {counted(N, 'image')} of {counted(C, 'channel')}; a {KH}x{KW} window slides over it, "
        f"{SH} down and {SW} across at a time."
    )
    panel = Panel("x", x, IMAGE_AXES)
    picture = (Panel("x[0, 0]", x[0, 0], form="picture"),) if case.x.is_picture else ()
    return Step(
        title="The input",
        why=f"{why} {case.x.remark}".strip(),
        code=("import numpy as np", *case.x.code),
        panels=(*picture, panel),
    )


def matrix_step(case: Case) -> Step:
    """Show the matrix."""
    K, L = case.cols_shape
    n_pixels = case.x.values.size
    relation = f"{K * L:,} numbers, the input has {n_pixels:,}"
    return Step(
        title="All windows: the matrix",
        why=f"The same for every window gives one matrix; it holds {relation}.",
        code=(f"cols = windows.transpose(1, 4, 5, 2, 3, 0).reshape({K}, {L})",),
        panels=(Panel("cols", case.cols, MATRIX_AXES),),
    )


def matrix_index(case: Case) -> tuple[Index, Index]:
    """Tell what the rows and the columns of the matrix run over."""
    N, C, _, _ = case.shape
    return (
        Index(ROWS, (C, *case.windows.kernel_size)),
        Index(COLUMNS, (*case.windows.output_size, N)),
    )


def origins(case: Case) -> Array:
    """Give for each cell of the matrix the pixel h*W + w that it was read from, and -1 for padding."""
    N, C, H, W = case.shape
    numbers = np.broadcast_to(np.arange(1, H * W + 1).reshape(H, W), (N, C, H, W))
    return case.im2col(numbers) - 1


def _one_window_step(case: Case) -> Step:
    windows = case.windows
    (OH, OW), N = windows.output_size, case.shape[0]
    oh, ow = OH // 2, OW // 2
    column = (oh * OW + ow) * N
    h, w = oh * windows.stride[0] - windows.sides.top, ow * windows.stride[1] - windows.sides.left
    cells = case.cols[:, column]
    at = f"starts at pixel ({h}, {w})"
    if min(h, w) < 0:
        at += ", outside of the image, where padding reads as 0"
    return Step(
        title="One window becomes one column",
        why=f"The window (oh, ow) = ({oh}, {ow}) of image 0 {at}. Read row by row, one channel after the "
        f"other, its cells are column {nowrap(f'(oh*OW + ow)*N + n = {column}')} of the matrix.",
        code=(
            *window_lines(windows),
            f"window = windows[0, :, {oh}, {ow}]",
            "column = window.ravel()",
        ),
        panels=(
            Panel("window", cells.reshape(case.shape[1], *windows.kernel_size), ("C", "KH", "KW")),
            Panel("column", cells, ("C*KH*KW",)),
        ),
    )


def _origin_step(case: Case) -> Step:
    W = case.shape[3]
    (SH, SW), sides = case.windows.stride, case.windows.sides
    h = place("oh", SH, "i", sides.top)
    w = place("ow", SW, "j", sides.left)
    rows, columns = matrix_index(case)

    def write(cells: Array) -> list[str]:
        return [f"{cell // W},{cell % W}" if cell >= 0 else "pad" for cell in cells.astype(int).tolist()]

    origin = origins(case)
    return Step(
        title="Where every cell comes from",
        why=f"Row (c, i, j) is one cell of the window, column (oh, ow, n) is one window of one image, and "
        f"they meet at {nowrap('x[n, c, h, w]')} with {nowrap(f'h = {h}')} and {nowrap(f'w = {w}')}. "
        "Below stands h,w.",
        code=_origin_lines(case),
        panels=(Panel("origin", origin, MATRIX_AXES, rows=rows, columns=columns, write=write),),
        notes=tuple(_note_on_origin(case, origin)),
    )


def _origin_lines(case: Case) -> tuple[str, ...]:
    """Read the place of every cell with index arithmetic alone; -1 marks padding."""
    windows, (N, C, H, W) = case.windows, case.shape
    (KH, KW), (SH, SW), (top, _, left, _) = windows.geometry
    OH, OW = windows.output_size
    return (
        f"c, i, j, oh, ow, n = np.indices(({C}, {KH}, {KW}, {OH}, {OW}, {N}))",
        f"h, w = {place('oh', SH, 'i', top)}, {place('ow', SW, 'j', left)}",
        f"inside = (0 <= h) & (h < {H}) & (0 <= w) & (w < {W})",
        f"origin = np.where(inside, h * {W} + w, -1).reshape{case.cols_shape}",
    )


def _note_on_origin(case: Case, origin: Array) -> list[str]:
    coverage = case.windows.coverage()
    h, w = (int(i) for i in np.unravel_index(int(coverage.argmax()), coverage.shape))
    most = int(coverage[h, w])
    notes = [
        f"Pixel ({h}, {w}) lies in {counted(most, 'window')}, so it stands in {most} columns of its image."
    ]
    n_unread = int((coverage == 0).sum())
    if n_unread:
        notes.append(f"{counted(n_unread, 'pixel')} of each image lie in no window and are never read.")
    n_padded = int((origin < 0).sum())
    if n_padded:
        notes.append(f"{counted(n_padded, 'cell')} of {origin.size:,} read padding.")
    return notes


def _product_step(case: Case, kernel: Array, y: Array) -> Step:
    N, C, _, _ = case.shape
    (KH, KW), (OH, OW) = case.windows.kernel_size, case.windows.output_size
    K, L = case.cols_shape
    terms = [f"{a}*{b}" for a, b in zip(_few(kernel[0]), _few(case.cols[:, 0]), strict=True)]
    shown = " + ".join(terms if len(terms) == K else [*terms, "..."])
    return Step(
        title="The product that makes it a convolution",
        why=f"A kernel (C, KH, KW) = ({C}, {KH}, {KW}) laid out as one row, times the matrix, is its sum of "
        "products with every window: one product in place of six loops. More kernels are more rows.",
        code=(
            f"kernel = np.arange(1.0, {K + 1}).reshape(1, {K})",
            f"y = (kernel @ cols).reshape(1, {OH}, {OW}, {N}).transpose(3, 0, 1, 2)",
        ),
        panels=(
            Panel("kernel", kernel, ("F", "C*KH*KW")),
            Panel("y", y, ("N", "F", "OH", "OW")),
        ),
        notes=(
            f"Shapes: ({1}, {K}) @ ({K}, {L}) = ({1}, {L}).",
            f"y[0, 0, 0, 0] = {shown} = {written(float(y[0, 0, 0, 0]))}.",
        ),
    )


def _few(values: Array) -> list[str]:
    return written_all(values[:4])


def _book_step(case: Case) -> Step:
    K, L = case.cols_shape
    rows = textbook.im2col(case.x.values, case.slide)
    return Step(
        title="The same matrix in the book",
        why='"Deep Learning from Scratch" lays windows out as rows and lets n run slowest; CS231n and this '
        "tool lay them out as columns and let n run fastest. The cells are the same.",
        code=(f"rows = windows.transpose(0, 2, 3, 1, 4, 5).reshape({L}, {K})",),
        panels=(Panel("rows", rows, ("N*OH*OW", "C*KH*KW")),),
    )


def _convolved(case: Case, kernel: Array) -> Array:
    """Convolve with the layer that trains."""
    kernel_size, stride, sides = case.windows.geometry
    layer = Conv2D(
        case.shape[1:],
        out_channels=1,
        kernel_size=kernel_size,
        stride=stride,
        padding=cast(PaddingLike, sides),  # a layer takes the four sides too
        bias=False,
        dtype=np.float64,
    )
    layer.parameters["weight"].value[...] = kernel.reshape(layer.parameters["weight"].value.shape)
    return batch_first(layer.forward(batch_last(case.x.values)))
