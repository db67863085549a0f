"""What goes wrong in the backward pass of a max-pool: ties, the missing upstream gradient, overlaps."""

from __future__ import annotations

import numpy as np

from cnncli.explain.im2col import IMAGE_AXES
from cnncli.explain.lines import place
from cnncli.explain.mistakes import pool_that_pays_ties, pool_that_stores
from cnncli.explain.numbers import exact, written, written_sum
from cnncli.explain.pooled import Pooled
from cnncli.explain.walkthrough import Array, Panel, Step, counted, nowrap
from cnncli.nn import MaxPool2D, batch_first, batch_last

PART = "What goes wrong"
WHY_TIES = (
    "Comparing each cell with the maximum marks all that are equal to it, and each gets the whole gradient. "
    "argmax names one, the first, row by row. Equal numbers are no rarity: after a ReLU whole windows are 0."
)
WINDOW_AXES = ("KH", "KW")
# planes up to this size are shown whole, of larger ones the part around a pixel
MOST_SHOWN = 12


def mistake_steps(pooled: Pooled) -> list[Step]:
    """Show three mistakes, on the reader's numbers where these can show them."""
    tied = np.flatnonzero((pooled.rows == pooled.rows.max(axis=1, keepdims=True)).sum(axis=1) > 1)
    wins = pooled.backward(np.ones(pooled.dout.shape))
    return [
        _ties_step(pooled, tied) if len(tied) else _ties_example(),
        _no_upstream_step(pooled, wins),
        _overlaps_step(pooled, wins) if wins.max() > 1 else _overlaps_example(),
    ]


def _ties_step(pooled: Pooled, tied: Array) -> Step:
    flat = pooled.dout_t.ravel()
    paid = pool_that_pays_ties(pooled.case.x.values, pooled.dout, pooled.case.slide)
    # a gradient of 0 shows nothing
    row = int(next((r for r in tied if flat[r] != 0), tied[0]))
    shape = pooled.case.windows.kernel_size
    return Step(
        part=PART,
        title="Ties: every cell that equals the maximum is paid",
        why=WHY_TIES,
        code=(
            "every = (rows == rows.max(axis=1, keepdims=True)) * flat[:, None]",
            f"window, first, paid = (a[{row}].reshape{shape} for a in (rows, dmax, every))",
        ),
        panels=(
            Panel("window", pooled.rows[row].reshape(shape), WINDOW_AXES),
            Panel("first", pooled.dmax[row].reshape(shape), WINDOW_AXES, caption="right"),
            Panel("paid", paid[row].reshape(shape), WINDOW_AXES, caption="x == max"),
        ),
        notes=(
            f"This is row {row}; {counted(len(tied), 'window')} of {len(flat):,} "
            f"{'has' if len(tied) == 1 else 'have'} a tie. In all, `every` hands out "
            f"{exact(paid.sum())} where dout sums to {exact(flat.sum())}.",
        ),
    )


def _ties_example() -> Step:
    window = np.array([[1.0, 2.0], [2.0, 2.0]])
    first = _backward(window, np.ones((1, 1)), stride=2)
    return Step(
        part=PART,
        title="Ties: every cell that equals the maximum is paid",
        why=f"None of your windows holds its maximum twice, so here is one that does. {WHY_TIES}",
        code=(
            "window = np.array([[1.0, 2.0], [2.0, 2.0]])",
            "first = (np.arange(4) == window.argmax()).reshape(2, 2) * 1.0",
            "paid = (window == window.max()) * 1.0",
        ),
        panels=(
            Panel("window", window, WINDOW_AXES),
            Panel("first", first, WINDOW_AXES, caption="right"),
            Panel("paid", (window == window.max()) * 1.0, WINDOW_AXES, caption="x == max"),
        ),
        notes=("A gradient of 1 came in, 3 went out.",),
    )


def _no_upstream_step(pooled: Pooled, wins: Array) -> Step:
    all_ones = bool((pooled.dout == 1).all())
    trap = (
        "Here dout is all ones, and the mistake does not show."
        if all_ones
        else "With a dout of all ones nothing would show: test backward with random gradients."
    )
    return Step(
        title="The upstream gradient, left out",
        why="A 1 at the winner is the gradient of the maximum, not yet that of the loss: the chain rule "
        "multiplies it by dout. Marks alone count how many windows a pixel won.",
        code=(
            *_winner_lines(pooled),
            "marks = np.zeros_like(x)",
            "np.add.at(marks, (n, c, h, w), 1.0)",
        ),
        panels=(
            Panel("marks", wins, IMAGE_AXES, caption="without dout"),
            Panel("dx", pooled.dx, IMAGE_AXES, caption="right"),
        ),
        notes=(
            f"The marks sum to {exact(wins.sum())}, the number of windows, where dout sums to "
            f"{exact(pooled.dout.sum())}. {trap}",
        ),
    )


def _overlaps_step(pooled: Pooled, wins: Array) -> Step:
    n, c, h, w = (int(i) for i in np.unravel_index(int(wins.argmax()), wins.shape))
    near, text = _surroundings(pooled, n, c, h, w)
    stored = pool_that_stores(pooled.winners, pooled.dout, pooled.case.x.values.shape, pooled.case.slide)
    shares = _shares(pooled, n, c, h, w)
    pixel = nowrap(f"x[{n}, {c}, {h}, {w}]")
    return Step(
        title="Overlaps: a pixel wins twice, and `=` keeps one gradient",
        why="Where windows overlap one pixel can be the largest of several. Its gradients add up, so dx is "
        "added to (+=, np.add.at) and never written (=).",
        code=(
            "stored = np.zeros_like(x)",
            "stored[n, c, h, w] = dout",
            f"near = np.s_[{text}]",
        ),
        panels=(
            Panel("x[near]", pooled.case.x.values[near], ("H", "W")),
            Panel("stored[near]", stored[near], ("H", "W"), caption="="),
            Panel("dx[near]", pooled.dx[near], ("H", "W"), caption="right"),
        ),
        notes=(
            f"{pixel} = {written(float(pooled.case.x.values[n, c, h, w]))} wins "
            f"{counted(len(shares), 'window')}: {nowrap(written_sum(shares))} = "
            f"{written(float(pooled.dx[n, c, h, w]))}; stored keeps {written(float(stored[n, c, h, w]))}.",
        ),
    )


def _overlaps_example() -> Step:
    image = np.array([[1.0, 2, 3], [4, 9, 5], [6, 7, 8]])
    added = _backward(image, np.ones((2, 2)), stride=1)
    return Step(
        title="Overlaps: a pixel wins twice, and `=` keeps one gradient",
        why="No pixel of yours wins twice, so here is one that wins four windows of 2x2 with stride 1. Its "
        "gradients add up, so dx is added to (+=) and never written (=).",
        code=(
            "image = np.array([[1.0, 2, 3], [4, 9, 5], [6, 7, 8]])",
            "stored, added = np.zeros((3, 3)), np.zeros((3, 3))",
            "for oh, ow in np.ndindex(2, 2):",
            "    i, j = divmod(image[oh:oh+2, ow:ow+2].argmax(), 2)",
            "    stored[oh + i, ow + j] = 1.0",
            "    added[oh + i, ow + j] += 1.0",
        ),
        panels=(
            Panel("image", image, ("H", "W")),
            Panel("stored", np.minimum(added, 1.0), ("H", "W"), caption="="),
            Panel("added", added, ("H", "W"), caption="right"),
        ),
        notes=("Four gradients of 1 came in. The right dx has 4 in the centre, stored has 1.",),
    )


def _winner_lines(pooled: Pooled) -> tuple[str, ...]:
    (SH, SW), (top, _, left, _) = pooled.case.windows.stride, pooled.case.windows.sides
    return (
        "n, c, oh, ow = np.indices(dout.shape)",
        f"i, j = np.divmod(winners, {pooled.case.windows.kernel_size[1]})",
        f"h, w = {place('oh', SH, 'i', top)}, {place('ow', SW, 'j', left)}",
    )


def _shares(pooled: Pooled, n: int, c: int, h: int, w: int) -> Array:
    """Give the upstream gradients of the windows that one pixel won."""
    (SH, SW), (top, _, left, _) = pooled.case.windows.stride, pooled.case.windows.sides
    i, j = np.divmod(pooled.winners[n, c], pooled.case.windows.kernel_size[1])
    oh, ow = np.indices(i.shape)
    won: Array = (oh * SH + i - top == h) & (ow * SW + j - left == w)
    shares: Array = pooled.dout[n, c][won]
    return shares


def _surroundings(
    pooled: Pooled, n: int, c: int, h: int, w: int
) -> tuple[tuple[int, int, slice, slice], str]:
    """Give the part of a plane that the windows around a pixel cover, also as it is written."""
    (H, W), (KH, KW) = pooled.case.windows.image_size, pooled.case.windows.kernel_size
    rows, cols = slice(0, H), slice(0, W)
    if max(H, W) > MOST_SHOWN:
        rows = slice(max(h - KH + 1, 0), min(h + KH, H))
        cols = slice(max(w - KW + 1, 0), min(w + KW, W))
    return (n, c, rows, cols), f"{n}, {c}, {rows.start}:{rows.stop}, {cols.start}:{cols.stop}"


def _backward(image: Array, dout: Array, stride: int) -> Array:
    """Pool one image (H, W) by 2x2 with the layer that trains, and give its gradient."""
    layer = MaxPool2D((1, *image.shape), kernel_size=2, stride=stride)
    layer.forward(batch_last(image[None, None]))
    dx: Array = batch_first(layer.backward(batch_last(dout[None, None])))[0, 0]
    return dx
