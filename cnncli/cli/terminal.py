"""The two output streams, and tables of plain text on them.

Results go to standard output, progress and notices to standard error.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, TextIO

import click


@dataclass(frozen=True)
class Stream:
    """One stream and what it can show; `file` is None where the caller has closed it."""

    file: TextIO | None

    @property
    def is_terminal(self) -> bool:
        return self.file is not None and self.file.isatty()

    @property
    def can_redraw(self) -> bool:
        """Whether a line may be drawn over."""
        return self.is_terminal and os.environ.get("TERM") != "dumb"

    @property
    def has_color(self) -> bool:
        return self.can_redraw and not os.environ.get("NO_COLOR")

    @property
    def has_unicode(self) -> bool:
        encoding = getattr(self.file, "encoding", None) or "ascii"
        return encoding.lower().replace("-", "") == "utf8"

    @property
    def width(self) -> int:
        """Columns to lay text out in."""
        if self.file is not None and self.is_terminal:
            # some terminals say 0
            return os.get_terminal_size(self.file.fileno()).columns or 80
        return shutil.get_terminal_size().columns

    def write(self, text: str = "") -> None:
        """Write a text and end the line."""
        if self.file is not None:
            with _naming(self.file):
                click.echo(text, file=self.file, color=self.has_color)

    def bold(self, text: str) -> str:
        return click.style(text, bold=True) if self.has_color else text

    def dim(self, text: str) -> str:
        return click.style(text, dim=True) if self.has_color else text

    def red(self, text: str) -> str:
        return click.style(text, fg="red", bold=True) if self.has_color else text


def results() -> Stream:
    """Return the stream for what a command was asked for."""
    return Stream(sys.stdout)


def notices() -> Stream:
    """Return the stream for everything else."""
    return Stream(sys.stderr)


def write_json(document: dict[str, Any] | list[dict[str, Any]]) -> None:
    """Write one JSON document to standard output, in ASCII."""
    results().write(json.dumps(document, indent=2, allow_nan=False))


def make_streams_lenient() -> None:
    """Escape what a stream's encoding lacks, such as a letter of a path on an ASCII terminal."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def flush_streams() -> None:
    """Write out what is buffered, so that what goes wrong goes wrong here and not at exit."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with _naming(stream):
                stream.flush()


@contextmanager
def _naming(file: TextIO) -> Iterator[None]:
    """Name the stream in the error of one that cannot be written, as a full disk."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        name = "standard error" if file is sys.stderr else "standard output"
        raise OSError(error.errno, error.strerror or str(error), name) from None


def discard_streams() -> None:
    """Drop what can no longer be written: Python would complain of it once more at exit."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            os.dup2(devnull, stream.fileno())
        except (OSError, ValueError, AttributeError):
            continue  # not a real file, or closed
    os.close(devnull)


GAP = "  "
NO_BREAK = "\N{NO-BREAK SPACE}"
# a narrower column of text is hard to read
MIN_TEXT_WIDTH = 20


@dataclass(frozen=True)
class Column:
    """The head of a column, the side its cells are aligned to, and the least width.

    `above` is the first word of a head of two lines; it may reach over the columns to the left.
    """

    head: str
    align: Literal["<", ">"] = ">"
    width: int = 0
    above: str = ""

    @property
    def least_width(self) -> int:
        return max(self.width, len(self.head))


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lay out the heads and the rows; every column is as wide as its widest cell."""
    fitted = [
        replace(column, width=max(column.width, *(len(row[index]) for row in rows)))
        for index, column in enumerate(columns)
    ]
    return [head(fitted), *(row_of(fitted, row) for row in rows)]


def head(columns: Sequence[Column]) -> str:
    """Lay out the heads alone."""
    line = row_of(columns, [column.head for column in columns])
    above, edge = "", 0
    for column in columns:
        edge += column.least_width
        above = above.ljust(edge - len(column.above)) + column.above if column.above else above
        edge += len(GAP)
    return f"{above}\n{line}" if above else line


def row_of(columns: Sequence[Column], cells: Sequence[str]) -> str:
    """Lay out one row, for tables whose rows come one at a time."""
    padded = (
        f"{cell:{column.align}{column.least_width}}" for column, cell in zip(columns, cells, strict=True)
    )
    return GAP.join(padded).rstrip()


def labelled(label: str, text: str, *, label_width: int, width: int) -> list[str]:
    """Lay out a label and a text that is wrapped beside it, or below where there is little room.

    No-break spaces come out as plain ones.
    """
    indent = " " * (label_width + len(GAP))
    is_beside = width - len(indent) >= MIN_TEXT_WIDTH
    if not is_beside:
        indent = GAP * 2
    room = max(width - len(indent), 1)
    wrapped = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)
    lines = [line.replace(NO_BREAK, " ") for line in wrapped] or [""]
    if not is_beside:
        return [label.rstrip(), *(indent + line for line in lines if line)]
    return [f"{label:{label_width}}{GAP}{lines[0]}".rstrip(), *(indent + line for line in lines[1:])]
