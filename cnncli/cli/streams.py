"""The two output streams: results on standard output, progress and notices on standard error."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TextIO

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
