"""Max-pool on rows of windows, forward and backward, as the book does it and as this tool does."""

from __future__ import annotations

import numpy as np

from cnncli.explain import textbook
from cnncli.explain.case import Case
from cnncli.explain.im2col import IMAGE_AXES, image_step
from cnncli.explain.lines import crop_line, padded_shape, reach, window_lines
from cnncli.explain.max_pool_mistakes import mistake_steps
from cnncli.explain.numbers import exact, written, written_all
from cnncli.explain.orders import orders_step, readings_step
from cnncli.explain.pooled import ROW_AXES, Pooled
from cnncli.explain.walkthrough import (
    Array,
    Check,
    Panel,
    Step,
    Walkthrough,
    compared,
    counted,
    nowrap,
)
from cnncli.nn import Conv2D, MaxPool2D, Network, batch_first, batch_last

OUTPUT_AXES = ("N", "C", "OH", "OW")
# longer windows are not spelt out in a sentence
MOST_SPELT = 9


def explain_max_pool(case: Case) -> Walkthrough:
    """Walk through max-pool, forward and backward."""
    pooled = Pooled(case)
    steps = [
        image_step(case),
        _rows_step(pooled),
        _maximum_step(pooled),
        _upstream_step(pooled),
        _transpose_step(pooled),
        _flatten_step(pooled),
        _scatter_step(pooled),
        _col2im_step(pooled),
        _own_step(pooled),
        *mistake_steps(pooled),
        *_order_steps(pooled),
    ]
    return Walkthrough(
        title="max-pool: the winner takes the gradient",
        answer="Max-pool keeps the largest number of every window and remembers which cell that was. Its "
        "gradient is 1 for that cell and 0 for all others, so backward hands the upstream gradient of "
        "a window to the one pixel that won it. Where windows overlap, a pixel that won several "
        "collects several gradients.",
        setting=case.setting,
        steps=tuple(steps),
        checks=tuple(_checks(pooled)),
    )


def _rows_step(pooled: Pooled) -> Step:
    case = pooled.case
    size, pool_size = pooled.rows.shape
    padding = " Padding stands for minus infinity, so that it never wins." if case.windows.is_padded else ""
    return Step(
        part="Forward",
        title="Every window becomes a row",
        why=f"im2col as in the book: one row for each window of each channel, {size:,} in all, with its "
        f"{pool_size} cells.{padding}",
        code=(
            *window_lines(case.windows, "-np.inf"),
            f"rows = windows.transpose(0, 2, 3, 1, 4, 5).reshape({size}, {pool_size})",
        ),
        panels=(Panel("rows", pooled.rows, ("N*OH*OW*C", "KH*KW"), rows=pooled.row_index),),
    )


def _maximum_step(pooled: Pooled) -> Step:
    (N, C, _, _), (OH, OW) = pooled.case.shape, pooled.case.windows.output_size
    return Step(
        title="The largest of each row, and which cell it is",
        why="The maximum is the output. The argmax is all that backward needs to remember.",
        code=(
            "arg_max = rows.argmax(axis=1)",
            f"out = rows.max(axis=1).reshape({N}, {OH}, {OW}, {C}).transpose(0, 3, 1, 2)",
        ),
        panels=(
            Panel("arg_max", pooled.arg_max, ("N*OH*OW*C",)),
            Panel("out", pooled.out, OUTPUT_AXES),
        ),
        notes=_note_on_maximum(pooled),
    )


def _note_on_maximum(pooled: Pooled) -> tuple[str, ...]:
    if pooled.pool_size > MOST_SPELT:
        return ()
    cell, row = int(pooled.arg_max[0]), pooled.rows[0]
    i, j = divmod(cell, pooled.case.windows.kernel_size[1])
    return (
        f"Row 0 is {', '.join(written_all(row))}: the largest is {written(float(row[cell]))}, in cell "
        f"{cell}, which is row {i}, column {j} of the window.",
    )


def _upstream_step(pooled: Pooled) -> Step:
    upstream = pooled.case.upstream
    assert upstream is not None
    return Step(
        part="Backward, as in the book",
        title="It starts from the upstream gradient",
        why="dout says how the loss changes with each number of out, so it has the shape of out. The layer "
        "behind this one computed it.",
        code=upstream.code,
        panels=(Panel("dout", pooled.dout, OUTPUT_AXES),),
    )


def _transpose_step(pooled: Pooled) -> Step:
    return Step(
        title="Its axes are put in the order of the rows",
        why=f"The rows run over {', '.join(ROW_AXES)}, the channel fastest. dout has the channel second, so "
        "it moves to the end.",
        code=("dout_t = dout.transpose(0, 2, 3, 1)",),
        panels=(Panel("dout_t", pooled.dout_t, ("N", "OH", "OW", "C"), form="rows"),),
    )


def _flatten_step(pooled: Pooled) -> Step:
    return Step(
        title="flatten() gives one gradient for each row",
        why="Read off in that order, number r of flat belongs to row r: "
        f"{counted(pooled.dout.size, 'gradient')} for {counted(len(pooled.rows), 'row')}.",
        code=("flat = dout_t.flatten()",),
        panels=(Panel("flat", pooled.dout_t.ravel(), ("N*OH*OW*C",)),),
    )


def _scatter_step(pooled: Pooled) -> Step:
    pool_size = pooled.pool_size
    notes = []
    if pool_size <= MOST_SPELT:
        marks = ", ".join("1" if cell == pooled.arg_max[0] else "0" for cell in range(pool_size))
        gradient = written(float(pooled.dout_t.ravel()[0]))
        notes.append(
            f"In row 0 the gradient of the maximum is {nowrap(f'({marks})')}: 1 for the cell that won, 0 for "
            f"those that did not. Times the upstream gradient {gradient} it is the row."
        )
    return Step(
        title="The (size, pool_size) matrix, and the scatter",
        why="One row for each window, one column for each of its cells, all zero; then each gradient is "
        "written into the cell that won.",
        code=(
            f"pool_size = {pool_size}",
            "dmax = np.zeros((dout_t.size, pool_size))",
            "dmax[np.arange(arg_max.size), arg_max] = flat",
        ),
        panels=(Panel("dmax", pooled.dmax, ("size", "pool_size"), rows=pooled.row_index),),
        notes=tuple(notes),
    )


def _col2im_step(pooled: Pooled) -> Step:
    case = pooled.case
    (N, C, _, _), windows = case.shape, case.windows
    (KH, KW), (OH, OW) = windows.kernel_size, windows.output_size
    dcol = pooled.dmax.reshape(N * OH * OW, C * KH * KW)
    return Step(
        title="col2im brings every cell back to its pixel: dx",
        why="The rows of the channels of one window are joined, "
        f"{nowrap(f'(N*OH*OW, C*KH*KW) = {dcol.shape}')}, and col2im adds each cell onto the pixel that "
        "im2col took it from.",
        code=(
            f"dcol = dmax.reshape{dcol.shape}",
            f"cells = dcol.reshape({N}, {OH}, {OW}, {C}, {KH}, {KW}).transpose(0, 3, 4, 5, 1, 2)",
            f"dx = np.zeros({padded_shape(windows, N, C)})",
            f"for i, j in np.ndindex({KH}, {KW}):",
            f"    dx[:, :, {reach(windows)}] += cells[:, :, i, j]",
            *crop_line(windows, "dx"),
        ),
        panels=(Panel("dx", pooled.dx, IMAGE_AXES),),
        notes=(
            f"The sum of dx is {exact(pooled.dx.sum())}, that of dout {exact(pooled.dout.sum())}: pooling "
            "moves gradients and loses none.",
        ),
    )


def _own_step(pooled: Pooled) -> Step:
    case = pooled.case
    (N, C, _, _), windows = case.shape, case.windows
    (KH, KW), (OH, OW) = windows.kernel_size, windows.output_size
    name = "padded" if windows.is_padded else "x"
    plan = (
        " A convolution before it lays its outputs out cell by cell, so that these are whole arrays."
        if windows.are_side_by_side
        else ""
    )
    return Step(
        part="Backward, in this tool",
        title="Whole arrays are compared, and no matrix is made",
        why="With the batch last, cell (i, j) of all windows is one view of the images. Forward compares "
        f"these {KH * KW} views and keeps the number of the winner; backward adds dout where the "
        f"number matches. There is no matrix of zeros, no argmax and no transpose.{plan}",
        code=(
            f"images = {name}.transpose(1, 2, 3, 0)",
            f"best = np.full(({C}, {OH}, {OW}, {N}), -np.inf)",
            f"winner = np.zeros(({C}, {OH}, {OW}, {N}), int)",
            f"for number, (i, j) in enumerate(np.ndindex({KH}, {KW})):",
            f"    cell = images[:, {reach(windows)}]",
            "    winner[cell > best] = number",
            "    best = np.maximum(best, cell)",
            "own_dx, grad = np.zeros_like(images), dout.transpose(1, 2, 3, 0)",
            f"for number, (i, j) in enumerate(np.ndindex({KH}, {KW})):",
            f"    own_dx[:, {reach(windows)}] += grad * (winner == number)",
            "winners = winner.transpose(3, 0, 1, 2)",
            "own_dx = own_dx.transpose(3, 0, 1, 2)",
            *crop_line(windows, "own_dx"),
        ),
        panels=(
            Panel("winners", pooled.winners, OUTPUT_AXES),
            Panel("own_dx", pooled.dx, IMAGE_AXES),
        ),
    )


def _order_steps(pooled: Pooled) -> list[Step]:
    case, steps = pooled.case, []
    if case.order is not None:
        steps += [orders_step("x", case.x.values, case.order), orders_step("dout", pooled.dout, case.order)]
    if case.upstream_shape is not None:
        steps.append(readings_step(case.upstream_shape, None if case.order == "NCHW" else case.order))
    return steps


def _checks(pooled: Pooled) -> list[Check]:
    case = pooled.case
    x, dout, slide = case.x.values, pooled.dout, case.slide
    terms = float(case.windows.coverage().max())
    checks = [
        compared("rows, by the book's loops", pooled.rows, textbook.pool_rows(x, slide)),
        compared("out, by the book's rows", pooled.out, textbook.max_pool(x, slide)),
        compared("dx, by the book's scatter", pooled.dx, textbook.max_pool_backward(x, dout, slide), terms),
    ]
    if case.windows.are_side_by_side:
        checks.append(compared("dx, behind a convolution", pooled.dx, _behind_a_convolution(pooled), terms))
    return checks


def _behind_a_convolution(pooled: Pooled) -> Array:
    """Pool as a network does it, behind a convolution of one cell that changes nothing."""
    N, C, H, W = pooled.case.shape
    kernel_size, stride, _ = pooled.case.windows.geometry
    conv = Conv2D((1, H, W), out_channels=1, kernel_size=1, bias=False, dtype=np.float64)
    conv.parameters["weight"].value[...] = 1
    network = Network([conv, MaxPool2D((1, H, W), kernel_size=kernel_size, stride=stride)])
    network.forward(batch_last(pooled.case.x.values.reshape(N * C, 1, H, W)))
    dout = pooled.dout.reshape(N * C, 1, *pooled.dout.shape[2:])
    return batch_first(network.backward(batch_last(dout))).reshape(N, C, H, W)
