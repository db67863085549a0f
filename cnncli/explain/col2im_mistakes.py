"""What goes wrong when col2im is written by hand: storing, and adding through an index."""

from __future__ import annotations

import numpy as np

from cnncli.explain.case import Case
from cnncli.explain.im2col import IMAGE_AXES
from cnncli.explain.lines import crop_line, padded_shape, reach
from cnncli.explain.mistakes import col2im_that_adds_once, col2im_that_stores
from cnncli.explain.numbers import written, written_all, written_sum
from cnncli.explain.traced_pixel import cells_of_one_pixel
from cnncli.explain.walkthrough import Array, Panel, Step, nowrap


def mistakes_step(case: Case, dcols: Array, dx: Array) -> Step:
    """Show what `=` and an indexed `+=` make of a gradient, beside what is right."""
    shape, slide = case.x.values.shape, case.slide
    stored = col2im_that_stores(dcols, shape, slide)
    once = col2im_that_adds_once(dcols, shape, slide)
    return Step(
        title="Two ways to lose gradients, on the same numbers",
        why="`=` in place of `+=` stores: the last cell that comes to a pixel wipes out the others. `+=` "
        "through an index that names a pixel several times adds only once, since NumPy reads all old "
        "values first and then writes: again the last one stays. np.add.at adds them all.",
        code=_mistake_lines(case),
        panels=(
            Panel("stored", stored, IMAGE_AXES, caption="="),
            Panel("once", once, IMAGE_AXES, caption="index +="),
            Panel("dx", dx, IMAGE_AXES, caption="right"),
        ),
        notes=tuple(_notes_on_mistakes(case, dcols, dx, stored)),
    )


def _mistake_lines(case: Case) -> tuple[str, ...]:
    windows, (N, C, _, _) = case.windows, case.shape
    (KH, KW), (SH, SW), _ = windows.geometry
    (OH, OW), (K, _), padded = windows.output_size, case.cols_shape, padded_shape(windows, N, C)
    h = "i + oh" if SH == 1 else f"i + oh*{SH}"
    w = "j + ow" if SW == 1 else f"j + ow*{SW}"
    return (
        f"cells = dcols.reshape({C}, {KH}, {KW}, {OH}, {OW}, {N})",
        f"stored = np.zeros({padded})",
        f"for i, j in np.ndindex({KH}, {KW}):",
        f"    stored[:, :, {reach(windows)}] = cells[:, i, j].transpose(3, 0, 1, 2)",
        *crop_line(windows, "stored"),
        f"c, i, j, oh, ow = np.indices(({C}, {KH}, {KW}, {OH}, {OW})).reshape(5, {K}, {OH * OW})",
        f"once = np.zeros({padded})",
        f"once[:, c, {h}, {w}] += dcols.reshape({K}, {OH * OW}, {N}).transpose(2, 0, 1)",
        *crop_line(windows, "once"),
    )


def _notes_on_mistakes(case: Case, dcols: Array, dx: Array, stored: Array) -> list[str]:
    h, w, cells = cells_of_one_pixel(case, dcols)
    if len(cells) <= 1:
        return [
            "Here no two windows meet, so neither mistake shows. Take a stride smaller than the kernel to "
            "see them."
        ]
    notes = [
        f"For {nowrap(f'x[0, 0, {h}, {w}]')} the sum {nowrap(written_sum(cells))} = "
        f"{written(float(dx[0, 0, h, w]))} is right; both keep {written(float(stored[0, 0, h, w]))} of it."
    ]
    if not case.windows.is_padded:
        total, kept = written_all(np.array([dcols.sum(), stored.sum()]))
        notes.append(f"All of dcols is {total}, and so is all of dx; stored and once kept {kept} of it.")
    notes.append(
        "The trap: on cols both mistakes give x itself, because all copies of a pixel are equal and it does "
        "not matter which one stays. That looks like a col2im that works."
    )
    return notes
