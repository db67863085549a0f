"""The tables and the JSON of ``cnncli gradcheck``."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cnncli.cli import formats
from cnncli.cli.streams import Stream
from cnncli.cli.tables import Column, table
from cnncli.nn.element_search import TOLERANCE
from cnncli.nn.gradient_examination import ArrayCheck

MOST_ELEMENTS = 5
ELEMENTS = (
    "The numbers that differ most. backward: the gradient that backward gives. difference: how much the "
    "output changes with the number, each output weighted by the gradient from above."
)


@dataclass(frozen=True)
class Part:
    """A layer or the whole network, and what was found.

    Attributes
    ----------
    index : the layer's place in the network; None for the whole network, and for a class by itself
    name : ``conv2d``, ``network``, or the name of a class
    """

    name: str
    index: int | None
    checks: tuple[ArrayCheck, ...]

    @property
    def place(self) -> str:
        """The part in a sentence."""
        if self.index is not None:
            return f"layer {self.index}, {self.name}"
        return f"the whole {self.name}" if self.name == "network" else self.name


def not_right(parts: Sequence[Part]) -> list[tuple[Part, ArrayCheck]]:
    """Collect what is not right, the worst first.

    A wrong layer makes the whole network wrong, so layers come before it; what cannot be compared at
    all comes before what can.
    """
    found = [(part, check) for part in parts for check in part.checks if check.verdict != "right"]
    return sorted(found, key=lambda pair: _badness(*pair), reverse=True)


def failure(parts: Sequence[Part]) -> str:
    """Name the worst of what is not right, in one sentence."""
    part, check = not_right(parts)[0]
    if check.verdict == "unclear":
        what = "cannot be checked: every step meets a kink"
    elif check.relative_error is None or check.relative_error <= TOLERANCE:
        what = f"is wrong: {check.faults[0]}"
    else:
        what = f"is wrong: relative error {check.relative_error:.1e}, at most {TOLERANCE:.0e} is right"
    return f"{part.place}: the gradient of {check.name} {what}"


def write_parts(parts: Sequence[Part], stream: Stream) -> None:
    """Write one row for each array, and in words what is wrong."""
    numbers = [len(str(part.index)) for part in parts if part.index is not None]
    width = max(numbers, default=0)
    head = f"{'#':>{width}} layer" if numbers else "layer"
    columns = (
        Column(head, "<"),
        Column("array", "<"),
        Column("shape", "<"),
        Column("relative error"),
        Column("verdict", "<"),
    )
    heads, *lines = table(columns, list(_rows(parts, width if numbers else None)))
    stream.write(stream.bold(heads))
    for line in lines:
        stream.write(_colored(line, stream))
    stream.write()
    for line in _summary(parts, stream.width):
        stream.write(line)


def write_elements(part: Part, stream: Stream) -> None:
    """Write the elements of each array that differ most: their index, and both numbers."""
    columns = (
        Column("array", "<"),
        Column("element", "<"),
        Column("backward"),
        Column("difference"),
        Column("relative error"),
    )
    heads, *lines = table(columns, list(_element_rows(part)))
    for line in _wrapped(ELEMENTS, stream.width):
        stream.write(line)
    stream.write()
    stream.write(stream.bold(heads))
    for line in lines:
        stream.write(line)
    stream.write()


def parts_as_json(parts: Sequence[Part], seed: int) -> dict[str, Any]:
    """Give everything that was found, ready for JSON."""
    return {
        "tolerance": TOLERANCE,
        "seed": seed,
        "right": not not_right(parts),
        "parts": [
            {"name": part.name, "index": part.index, "arrays": [_check_as_json(c) for c in part.checks]}
            for part in parts
        ],
    }


def _check_as_json(check: ArrayCheck) -> dict[str, Any]:
    return {
        "name": check.name,
        "shape": check.shape,
        "relative_error": check.relative_error,
        "verdict": check.verdict,
        "faults": check.faults,
        "elements": [vars(element) for element in check.elements[:MOST_ELEMENTS]],
    }


def _badness(part: Part, check: ArrayCheck) -> tuple[bool, bool, float]:
    error = float("inf") if check.relative_error is None else check.relative_error
    return check.verdict == "wrong", part.index is not None, error


def _rows(parts: Sequence[Part], width: int | None) -> Iterator[list[str]]:
    for part in parts:
        number = "" if width is None else f"{'' if part.index is None else part.index:>{width}} "
        label = number + part.name
        for check in part.checks:
            error = "" if check.relative_error is None else f"{check.relative_error:.1e}"
            yield [label, check.name, str(check.shape), error, check.verdict]
            label = ""


def _element_rows(part: Part) -> Iterator[list[str]]:
    for check in part.checks:
        name = check.name
        is_off = check.relative_error is not None and check.relative_error > TOLERANCE
        shown = MOST_ELEMENTS if is_off else 1
        for element in check.elements[:shown]:
            yield [
                name,
                str(list(element.index)),
                f"{element.analytic:.8g}",
                f"{element.numeric:.8g}",
                f"{element.relative_error:.1e}",
            ]
            name = ""


def _summary(parts: Sequence[Part], width: int) -> Iterator[str]:
    n_checks = sum(len(part.checks) for part in parts)
    found = not_right(parts)
    for part, check in found:
        for fault in _in_words(check):
            yield from _wrapped(f"{part.place}, {check.name}: {fault}", width)
    if any(_in_words(check) for _, check in found):
        yield ""
    errors = [check.relative_error or 0.0 for part in parts for check in part.checks]
    if found:
        text = f"{len(found)} of {formats.counted(n_checks, 'gradient')} "
        text += "is not right." if len(found) == 1 else "are not right."
    else:
        who = "The gradient is" if n_checks == 1 else f"All {n_checks} gradients are"
        text = f"{who} right: the largest relative error is {max(errors):.1e}."
    yield from _wrapped(f"{text} At most {TOLERANCE:.0e} is right; --help says why.", width)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _in_words(check: ArrayCheck) -> list[str]:
    """Say how many numbers are wrong, and what else is."""
    n_wrong = sum(element.relative_error > TOLERANCE for element in check.elements)
    counts = (
        [f"{n_wrong} of the {len(check.elements)} numbers compared one by one are wrong"] if n_wrong else []
    )
    return [*counts, *check.faults]


def _colored(line: str, stream: Stream) -> str:
    for verdict in ("wrong", "unclear"):
        if line.endswith(verdict):
            return line.removesuffix(verdict) + stream.red(verdict)
    return line
