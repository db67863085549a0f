"""col2im: what it does, why it is not the inverse of im2col, and why backward wants it so."""

from __future__ import annotations

import numpy as np

from cnncli.explain import textbook
from cnncli.explain.case import Case, rows_of_columns
from cnncli.explain.col2im_mistakes import mistakes_step
from cnncli.explain.im2col import IMAGE_AXES, MATRIX_AXES, image_step
from cnncli.explain.lines import crop_line, padded_shape, reach, window_lines
from cnncli.explain.numbers import exact, written, written_all, written_sum
from cnncli.explain.orders import orders_step
from cnncli.explain.traced_pixel import cells_of_one_pixel, surroundings, windows_of_one_pixel
from cnncli.explain.walkthrough import (
    NO_BREAK,
    Array,
    Panel,
    Step,
    Walkthrough,
    compared,
    counted,
    nowrap,
)
from cnncli.nn import batch_first, batch_last, col2im, im2col

PLANE_AXES = ("H", "W")
MOST_WINDOWS = 4


def explain_col2im(case: Case) -> Walkthrough:
    """Walk through col2im."""
    x, back = case.x.values, case.col2im(case.cols)
    dcols = np.random.default_rng(case.seed).integers(1, 10, case.cols_shape).astype(np.float64)
    dx = case.col2im(dcols)
    steps = [
        image_step(case),
        _copy_step(case),
        _adding_step(case, back),
        *([_window_by_window_step(case)] if case.windows.coverage().any() else []),
        _coverage_step(case),
        _product_step(case, back),
        _division_step(case, back),
        _identity_step(case),
        _adjoint_step(case, dcols, dx),
        mistakes_step(case, dcols, dx),
    ]
    if case.order is not None:
        steps.append(orders_step("x", x, case.order))
    shape, slide, terms = x.shape, case.slide, float(case.windows.coverage().max())
    book_back = textbook.col2im(rows_of_columns(case.cols, case), shape, slide)
    book_dx = textbook.col2im(rows_of_columns(dcols, case), shape, slide)
    indexed_dx = textbook.col2im_by_index(dcols, shape, slide)
    products = np.array([(case.cols * dcols).sum()]), np.array([(x * dx).sum()])
    n_terms = float(np.abs(case.cols * dcols).sum()) / max(abs(products[0][0]), 1.0)
    return Walkthrough(
        title="col2im: what it does, and why col2im(im2col(x)) is not x",
        answer="im2col copies every pixel once for each window that it lies in. col2im goes the other way "
        "and adds all these copies up. So a pixel that lies in k windows comes back k times as "
        "large: col2im is not the inverse of im2col but its transpose, and that is what backward "
        "needs, for a pixel that was used k times collects k gradients.",
        setting=case.setting,
        steps=tuple(steps),
        checks=(
            compared("col2im(cols), by the book's loops", back, book_back, terms),
            compared("col2im(dcols), by the book's loops", dx, book_dx, terms),
            compared("col2im(dcols), by CS231n's np.add.at", dx, indexed_dx, terms),
            compared("the two inner products", *products, terms=n_terms),
        ),
    )


def _copy_step(case: Case) -> Step:
    K, L = case.cols_shape
    return Step(
        title="im2col copies",
        why=f"Each of the windows becomes a column. x has {case.x.values.size:,} numbers, cols has "
        f"{K * L:,}: what lies in several windows is there several times.",
        code=(*window_lines(case.windows), f"cols = windows.transpose(1, 4, 5, 2, 3, 0).reshape({K}, {L})"),
        panels=(Panel("cols", case.cols, MATRIX_AXES),),
    )


def _adding_step(case: Case, back: Array) -> Step:
    windows, (N, C, _, _) = case.windows, case.shape
    (KH, KW), (OH, OW) = windows.kernel_size, windows.output_size
    h, w, cells = cells_of_one_pixel(case, case.cols)
    return Step(
        title="col2im sends every cell home, and adds",
        why="Every cell goes back to the pixel that it was copied from, and cells that meet there are added "
        "up. One turn of the loop takes one cell (i, j) of all windows at once: these never meet each "
        "other, so += is safe.",
        code=(
            "def col2im(cols):",
            f"    cells = cols.reshape({C}, {KH}, {KW}, {OH}, {OW}, {N})",
            f"    out = np.zeros({padded_shape(windows, N, C)})",
            f"    for i, j in np.ndindex({KH}, {KW}):",
            f"        out[:, :, {reach(windows)}] += cells[:, i, j].transpose(3, 0, 1, 2)",
            *(f"    {line}" for line in crop_line(windows, "out")),
            "    return out",
            "back = col2im(cols)",
        ),
        panels=(Panel("back", back, IMAGE_AXES),),
        notes=(
            f"{nowrap(f'x[0, 0, {h}, {w}]')} is {written(float(case.x.values[0, 0, h, w]))} and lies in "
            f"{counted(len(cells), 'window')}: {nowrap(written_sum(cells))} = "
            f"{written(float(back[0, 0, h, w]))}.",
        ),
    )


def _window_by_window_step(case: Case) -> Step:
    """Show the windows around one pixel, each put back alone."""
    h, w, columns = windows_of_one_pixel(case)
    rows, cols = surroundings(case, columns)
    # of many the first, the last, and some between
    shown = [columns[k] for k in np.unique(np.linspace(0, len(columns) - 1, MOST_WINDOWS).astype(int))]
    which = f"is every window that has pixel ({h}, {w})"
    if len(shown) < len(columns):
        which = f"are {len(shown)} of the {len(columns)} windows that have pixel ({h}, {w})"
    return Step(
        title="The same, seen window by window",
        why="A column alone, put back, is its window in the place that it was taken from. All of them laid "
        f"over each other and added are back. Here {which}.",
        code=(
            "def put_back(column):",
            "    alone = np.zeros_like(cols)",
            "    alone[:, column] = cols[:, column]",
            f"    return col2im(alone)[0, 0, {rows.start}:{rows.stop}, {cols.start}:{cols.stop}]",
        ),
        panels=tuple(
            Panel(f"put_back({column})", _put_back(case, column)[rows, cols], PLANE_AXES, write=_write_or_dot)
            for column in shown
        ),
        notes=("A dot is a pixel that the window does not have: nothing is added there.",),
    )


def _put_back(case: Case, column: int) -> Array:
    """Put one column back alone: a plane (H, W) of the first image and channel, NaN where nothing comes."""
    KH, KW = case.windows.kernel_size
    N, _, H, W = case.shape
    alone = np.zeros((KH * KW, case.n_windows))
    here = np.zeros_like(alone)
    alone[:, column // N], here[:, column // N] = case.cols[: KH * KW, column], 1
    value, count = (col2im(m, (1, H, W, 1), *case.windows.geometry)[0, :, :, 0] for m in (alone, here))
    return np.where(count > 0, value, np.nan)


def _write_or_dot(cells: Array) -> list[str]:
    texts = iter(written_all(cells[~np.isnan(cells)]))
    return ["." if np.isnan(cell) else next(texts) for cell in cells.tolist()]


def _coverage_step(case: Case) -> Step:
    K, L = case.cols_shape
    coverage = case.windows.coverage().astype(np.float64)
    notes = []
    n_unread = int((coverage == 0).sum())
    if n_unread:
        notes.append(f"{counted(n_unread, 'pixel')} of {coverage.size:,} lie in no window: these are lost.")
    return Step(
        title="The coverage: in how many windows each pixel lies",
        why="A matrix of ones, added up, counts the windows of each pixel. It depends on the sizes alone, so "
        "it is the same for every image and channel.",
        code=(f"coverage = col2im(np.ones(({K}, {L})))[0, 0]",),
        panels=(Panel("coverage", coverage, PLANE_AXES),),
        notes=tuple(notes),
    )


def _product_step(case: Case, back: Array) -> Step:
    coverage = case.windows.coverage().astype(np.float64)
    x = case.x.values
    return Step(
        title="So col2im(im2col(x)) is x * coverage",
        why="A pixel in k windows was copied k times, and k equal copies add up to k times the pixel.",
        code=("product = x * coverage", "np.abs(back - product).max()"),
        panels=(
            Panel("x", x, IMAGE_AXES),
            Panel("coverage", coverage, PLANE_AXES),
            Panel("product", x * coverage, IMAGE_AXES, caption="x * coverage"),
        ),
        notes=(f"The largest difference to back is {written(float(np.abs(back - x * coverage).max()))}.",),
    )


def _division_step(case: Case, back: Array) -> Step:
    coverage = case.windows.coverage().astype(np.float64)
    again = np.where(coverage > 0, back / np.maximum(coverage, 1), 0)
    is_covered = bool(coverage.all())
    line = "back / coverage" if is_covered else "np.where(coverage > 0, back / np.maximum(coverage, 1), 0)"
    lost = "" if is_covered else " What lies in no window was never copied and cannot come back."
    return Step(
        title="Divide by the coverage, and x is back",
        why=f"This is how to invert im2col, if that is what you want.{lost}",
        code=(f"again = {line}",),
        panels=(Panel("again", again, IMAGE_AXES),),
    )


def _identity_step(case: Case) -> Step:
    KH, KW = case.windows.kernel_size
    if (case.windows.coverage() == 1).all():
        return Step(
            title="When col2im does undo im2col",
            why="Where every pixel lies in exactly one window, the coverage is 1 everywhere and nothing is "
            "added to anything. Yours is such a case: back is x.",
            code=("np.array_equal(back, x)",),
            notes=(str(np.array_equal(case.col2im(case.cols), case.x.values)),),
        )
    shape = (1, 1, 2 * KH, 2 * KW)
    tiles = np.arange(4.0 * KH * KW).reshape(shape)
    batch = batch_last(tiles)
    same = batch_first(col2im(im2col(batch, (KH, KW), (KH, KW)), batch.shape, (KH, KW), (KH, KW)))
    return Step(
        title="When col2im does undo im2col",
        why=f"With a stride as large as the kernel, {KH}x{KW}, windows lie side by side and every pixel lies "
        "in one of them. The coverage is 1, and col2im(im2col(x)) is x: an example.",
        code=(
            f"tiles = np.arange({tiles.size}.0).reshape{shape}",
            f"views = sliding_window_view(tiles, ({KH}, {KW}), axis=(2, 3))[:, :, ::{KH}, ::{KW}]",
            f"same = views.transpose(0, 1, 2, 4, 3, 5).reshape{shape}",
        ),
        panels=(
            Panel("tiles", tiles, IMAGE_AXES),
            Panel("same", same, IMAGE_AXES, caption="col2im(im2col(tiles))"),
        ),
    )


def _adjoint_step(case: Case, dcols: Array, dx: Array) -> Step:
    h, w, cells = cells_of_one_pixel(case, dcols)
    left, right = float((case.cols * dcols).sum()), float((case.x.values * dx).sum())
    return Step(
        title="Why backward wants the sum, and not the inverse",
        why="In backward the matrix holds no copies of pixels but gradients: dcols says how the loss changes "
        "with each cell of cols. A pixel was copied to k cells, and by the chain rule its gradient is "
        "the sum of the k gradients of its copies. Divided by k it would be wrong.",
        code=(
            f"dcols = np.random.default_rng({case.seed}).integers(1, 10, {dcols.shape}).astype(float)",
            "dx = col2im(dcols)",
            "left = (cols * dcols).sum()",
            "right = (x * dx).sum()",
        ),
        panels=(Panel("dcols", dcols, MATRIX_AXES), Panel("dx", dx, IMAGE_AXES)),
        notes=(
            f"The gradient of {nowrap(f'x[0, 0, {h}, {w}]')} is {nowrap(written_sum(cells))} = "
            f"{written(float(dx[0, 0, h, w]))}.",
            "That is what a transpose (the adjoint) is: for every x and every dcols, "
            f"{nowrap('<im2col(x), dcols>')} = {nowrap('<x, col2im(dcols)>')}, where < , > multiplies cell "
            "by cell and adds up. Here:",
            f"{NO_BREAK * 2}{nowrap('<im2col(x), dcols> = ' + exact(left))}",
            f"{NO_BREAK * 2}{nowrap('<x, col2im(dcols)> = ' + exact(right))}",
        ),
    )
