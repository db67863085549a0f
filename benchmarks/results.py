"""Tables that read well in a terminal and in Markdown, and their place in the README."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.machine import machine_line

README = Path(__file__).parent / "README.md"
END = "<!-- end -->"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out a Markdown table: the first column to the left, all others to the right."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = [
            f"{cell:{'<' if index == 0 else '>'}{width}}"
            for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = ["-" * width if index == 0 else "-" * (width - 1) + ":" for index, width in enumerate(widths)]
    return "\n".join([line(heads), line(rule), *map(line, rows)])


def present(
    command: str, load: float, sections: Sequence[str], data: dict[str, Any], *, as_json: bool, write: bool
) -> None:
    """Print the results of a command, and put them into the README where that is asked for."""
    machine = machine_line(load)
    text = "\n\n".join([*sections, f"{machine}."])
    if as_json:
        print(json.dumps({"machine": machine, **data}, indent=2))
    else:
        print(text)
    if write:
        write_into(README, command, text)


def write_into(file: Path, command: str, text: str) -> None:
    """Put a text into the place of a command in a Markdown file; see `filled`."""
    file.write_text(filled(file.read_text(encoding="utf-8"), command, text), encoding="utf-8")


def filled(document: str, command: str, text: str) -> str:
    """Put a text between ``<!-- results: COMMAND -->`` and the end that follows.

    Raises
    ------
    ValueError : the document has no such place
    """
    marker = f"<!-- results: {command} -->"
    before, found, rest = document.partition(marker)
    _, ended, after = rest.partition(END)
    if not found or not ended:
        raise ValueError(f"expected {marker} and {END} after it, found {'no end' if found else 'neither'}")
    return f"{before}{marker}\n{text}\n{END}{after}"


def duration(seconds: float) -> str:
    """Write a time with three digits: ``9.61 ms``, ``112 ms``, ``7.31 s``."""
    value, unit = (seconds, "s") if seconds >= 1 else (1e3 * seconds, "ms")
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"


def mebibytes(n_bytes: float) -> str:
    return f"{n_bytes / 2**20:.1f} MiB"


def ratio(value: float) -> str:
    return f"{value:.2f}"
