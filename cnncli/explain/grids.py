"""Arrays as lines of text: whole where they are small, their ends where they are large, as NumPy does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

import numpy as np

from cnncli.explain.numbers import written_all
from cnncli.explain.walkthrough import Array, Index, Panel

EDGE = 3
# as NumPy does
LARGE = 1000
MOST_ROWS = 36
FEW_ROWS = 12
MOST_COLUMNS = 32
MOST_IN_LINES = 100
MOST_PLANES = 8
MOST_LINES = 40
DOTS = "..."
GAP = "  "
# of fitting a small matrix: the gap between its columns, and the bands that they are broken into
WAYS = (("  ", 1), (" ", 1), ("  ", 2), ("  ", 3))
BETWEEN_PLANES = "    "
SHADES = " .:-=+*#%@"


def body(panel: Panel, room: int) -> list[str]:
    """Write the values of a panel in lines of at most `room` columns, as far as that goes."""
    values = panel.values
    if panel.form == "picture":
        return picture(values.reshape(-1, *values.shape[-2:])[0])
    if values.ndim in (3, 4) and panel.form == "planes":
        return _planes(panel, room)
    if values.ndim <= 1:
        return _vector(panel, values.reshape(-1), room)
    rows = panel.rows
    if values.ndim > 2 and rows is None:
        rows = Index(tuple(axis.lower() for axis in panel.axes[:-1]), values.shape[:-1])
    return _matrix(panel, values.reshape(-1, values.shape[-1]), rows, room)


def picture(plane: Array) -> list[str]:
    """Draw a plane in shades, two characters to a pixel."""
    low, high = float(plane.min()), float(plane.max())
    levels = (plane - low) / max(high - low, 1e-300) * (len(SHADES) - 1)
    return ["".join(2 * SHADES[round(level)] for level in row).rstrip() for row in levels.tolist()]


def shown(size: int, most: int) -> list[int | None]:
    """List the positions that are shown along an axis; None stands for those left out."""
    if size <= max(most, 2 * EDGE):
        return list(range(size))
    return [*range(EDGE), None, *range(size - EDGE, size)]


def _planes(panel: Panel, room: int) -> list[str]:
    """Write one matrix for each index before the last two, side by side where they fit."""
    planes = list(np.ndindex(panel.values.shape[:-2]))
    if len(planes) == 1:
        return _matrix(panel, panel.values[planes[0]], None, room)
    heads = {plane: str(list(plane)) for plane in planes}
    if len(planes) > MOST_PLANES:
        heads = {planes[0]: heads[planes[0]], planes[-1]: f"{DOTS} {heads[planes[-1]]}"}
    blocks = [[head, *_matrix(panel, panel.values[plane], None, room)] for plane, head in heads.items()]
    return _flow(blocks, room)


def _flow(blocks: Sequence[Sequence[str]], room: int) -> list[str]:
    lines: list[str] = []
    row: list[Sequence[str]] = []
    for block in blocks:
        if row and sum(_width(b) + len(BETWEEN_PLANES) for b in row) + _width(block) > room:
            lines += [*_beside(row), ""]
            row = []
        row.append(block)
    return [*lines, *_beside(row)]


def _beside(blocks: Sequence[Sequence[str]]) -> list[str]:
    return [
        BETWEEN_PLANES.join(
            line.ljust(_width(block)) for line, block in zip(lines, blocks, strict=True)
        ).rstrip()
        for lines in zip_longest(*blocks, fillvalue="")
    ]


def _width(block: Sequence[str]) -> int:
    return max(map(len, block))


def _vector(panel: Panel, vector: Array, room: int) -> list[str]:
    """Write a vector in one line, or broken into lines, or its ends."""
    positions = shown(len(vector), MOST_IN_LINES)
    texts = iter(_write(panel, vector[[p for p in positions if p is not None]]))
    words = [DOTS if p is None else next(texts) for p in positions]
    line = GAP.join(words)
    if len(line) <= room:
        return [line]
    width = max(map(len, words))
    per_line = max((room + len(GAP)) // (width + len(GAP)), 1)
    return [
        GAP.join(word.rjust(width) for word in words[start : start + per_line])
        for start in range(0, len(words), per_line)
    ]


def _matrix(panel: Panel, matrix: Array, rows: Index | None, room: int) -> list[str]:
    n_rows, n_columns = matrix.shape
    if panel.values.size <= LARGE and n_rows <= MOST_ROWS and n_columns <= MOST_COLUMNS:
        heads = _row_heads(rows, range(n_rows), panel.columns)
        for gap, n_bands in WAYS:
            bands = _bands(panel, matrix, gap, n_bands) if n_bands * n_rows <= MOST_LINES else []
            lines = _with_heads(heads, bands)
            if bands and _width(lines) <= room:
                return lines
    positions = shown(n_rows, 0 if panel.values.size > LARGE else FEW_ROWS)
    ends = _cells(panel, matrix, positions, shown(n_columns, 0), GAP)
    return _with_heads(_row_heads(rows, positions, panel.columns), [ends])


def _bands(panel: Panel, matrix: Array, gap: str, n_bands: int) -> list[list[str]]:
    """Write all rows of a matrix, its columns broken into bands."""
    n_rows, n_columns = matrix.shape
    parts = [part.tolist() for part in np.array_split(np.arange(n_columns), min(n_bands, n_columns))]
    bands = [_cells(panel, matrix, range(n_rows), part, gap) for part in parts]
    if len(bands) == 1 or panel.columns is not None:
        return bands
    # without a head the second band would look like more rows
    return [[f"columns {part[0]} to {part[-1]}", *band] for part, band in zip(parts, bands, strict=True)]


def _with_heads(heads: Sequence[str] | None, bands: Sequence[Sequence[str]]) -> list[str]:
    """Put the heads of the rows beside every band, and a blank line between bands."""
    lines: list[str] = []
    for band in bands:
        lines += [""] if lines else []
        if heads is None:
            lines += band
            continue
        # the head of the rows stands above them, also where nothing stands above the columns
        above = [""] * (len(heads) - len(band))
        lines += [f"{head}{GAP}{line}".rstrip() for head, line in zip(heads, [*above, *band], strict=True)]
    return lines


def _row_heads(
    rows: Index | None, positions: Sequence[int | None], columns: Index | None
) -> list[str] | None:
    """Write what stands at the left of a matrix, its own head first, all of one width."""
    if rows is None:
        return None
    heads = [DOTS if p is None else rows.written(p) for p in positions]
    above = [] if columns is None else [""]
    texts = [*above, ",".join(rows.axes), *heads]
    width = max(map(len, texts))
    return [text.ljust(width) for text in texts]


def _cells(
    panel: Panel, matrix: Array, rows: Sequence[int | None], columns: Sequence[int | None], gap: str
) -> list[str]:
    """Write the cells in columns of one width, with what stands above them."""
    chosen = [p for p in rows if p is not None]
    kept = [p for p in columns if p is not None]
    texts = iter(_write(panel, matrix[np.ix_(chosen, kept)].ravel()))
    grid = [[_cell(row, column, texts) for column in columns] for row in rows]
    heads = panel.columns
    if heads is not None:
        grid.insert(0, [DOTS if p is None else heads.written(p) for p in columns])
    # columns of dots are narrow
    width = max(
        (len(text) for row in grid for text, c in zip(row, columns, strict=True) if c is not None), default=0
    )
    lines = [
        gap.join(
            text.rjust(len(DOTS) if column is None else width)
            for text, column in zip(row, columns, strict=True)
        )
        for row in grid
    ]
    return lines if heads is None else [",".join(heads.axes), *lines]


def _cell(row: int | None, column: int | None, texts: Iterator[str]) -> str:
    if row is None or column is None:
        return DOTS
    return next(texts)


def _write(panel: Panel, cells: Array) -> list[str]:
    return written_all(cells) if panel.write is None else panel.write(cells)
