"""Tables of plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

GAP = "  "
NO_BREAK = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class Column:
    """The head of a column, the side its cells are aligned to, and the least width."""

    head: str
    align: Literal["<", ">"] = ">"
    width: int = 0


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lay out the heads and the rows; every column is as wide as its widest cell."""
    fitted = [
        replace(column, width=max(column.width, *(len(row[index]) for row in rows)))
        for index, column in enumerate(columns)
    ]
    return [head(fitted), *(row_of(fitted, row) for row in rows)]


def head(columns: Sequence[Column]) -> str:
    """Lay out the heads alone."""
    return row_of(columns, [column.head for column in columns])


def row_of(columns: Sequence[Column], cells: Sequence[str]) -> str:
    """Lay out one row, for tables whose rows come one at a time."""
    padded = (
        f"{cell:{column.align}{max(column.width, len(column.head))}}"
        for column, cell in zip(columns, cells, strict=True)
    )
    return GAP.join(padded).rstrip()


def labelled(label: str, text: str, *, label_width: int, width: int) -> list[str]:
    """Lay out a label and a text that is wrapped beside it; no-break spaces come out as plain ones."""
    indent = " " * (label_width + len(GAP))
    wrapped = textwrap.wrap(
        text, max(width - len(indent), 20), break_long_words=False, break_on_hyphens=False
    )
    first, *rest = [line.replace(NO_BREAK, " ") for line in wrapped] or [""]
    return [f"{label:{label_width}}{GAP}{first}".rstrip(), *(indent + line for line in rest)]
