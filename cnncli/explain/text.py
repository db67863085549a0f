"""A walk-through as lines of plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from cnncli.explain.grids import body
from cnncli.explain.numbers import written_difference
from cnncli.explain.walkthrough import NO_BREAK, Check, Panel, Step, Walkthrough

MARGIN = "   "
GAP = "    "
# prose in longer lines is hard to read
TEXT_WIDTH = 78
VERDICT = "This tool and the textbook"
HOW_TO_READ = (
    "All numbers come from the code that trains. The lines after >>> do the same in plain NumPy; they run "
    "as they stand, one after the other."
)


class Line(NamedTuple):
    """One line; headings can be shown as such where there is more than plain text."""

    text: str
    is_heading: bool = False


def laid_out(walkthrough: Walkthrough, width: int) -> list[Line]:
    """Lay a walk-through out for a page of some columns; matrices use the whole width, prose less."""
    lines = [*_head(walkthrough)]
    for number, step in enumerate(walkthrough.steps, 1):
        lines += _part(step.part)
        lines += step_lines(number, step, width)
    return [*lines, *_verdict(walkthrough)]


def step_lines(number: int, step: Step, width: int) -> list[Line]:
    """Lay one step out."""
    lines = [Line(""), Line(f"{number}. {step.title}", is_heading=True)]
    lines += _texts(_wrapped(step.why))
    if step.table:
        lines += [Line(""), *_texts(table(step.table))]
    if step.code:
        lines += [Line(""), *_code(step.code)]
    if step.panels:
        lines += [Line(""), *_texts(_panels(step.panels, width - len(MARGIN)))]
    if step.notes:
        lines += [Line("")]
        for note in step.notes:
            lines += _texts(_wrapped(note))
    return lines


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lay rows of text out in columns; a column of figures stands to the right."""
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    right = [all(cell.replace(",", "").isdigit() for cell in column[1:]) for column in columns]
    return [
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in rows
    ]


def _head(walkthrough: Walkthrough) -> Iterator[Line]:
    yield Line(walkthrough.title, is_heading=True)
    yield Line("=" * len(walkthrough.title), is_heading=True)
    yield Line("")
    yield from (Line(text) for text in textwrap.wrap(walkthrough.answer, TEXT_WIDTH))
    yield Line("")
    width = max(len(name) for name, _ in walkthrough.setting)
    for name, text in walkthrough.setting:
        yield Line(f"{MARGIN}{name:{width}}  {text}")
    yield Line("")
    yield from (Line(text) for text in textwrap.wrap(HOW_TO_READ, TEXT_WIDTH))


def _part(title: str) -> list[Line]:
    if not title:
        return []
    return [Line(""), Line(""), Line(title, is_heading=True), Line("-" * len(title), is_heading=True)]


def _verdict(walkthrough: Walkthrough) -> Iterator[Line]:
    title = "This tool and the textbook"
    yield from (
        Line(""),
        Line(""),
        Line(title, is_heading=True),
        Line("-" * len(title), is_heading=True),
        Line(""),
    )
    rows = [("computed twice", "numbers", "largest difference")]
    rows += [_check_row(check) for check in walkthrough.checks]
    yield from _texts(table(rows))
    yield Line("")
    largest = written_difference(walkthrough.difference)
    if walkthrough.agrees:
        yield Line(f"They agree: the largest difference is {largest}.", is_heading=True)
    else:
        yield Line(f"They DISAGREE: the largest difference is {largest}.", is_heading=True)


def _check_row(check: Check) -> tuple[str, str, str]:
    verdict = "" if check.agrees else "  differs"
    return check.name, f"{check.size:,}", written_difference(check.difference) + verdict


def _code(code: Sequence[str]) -> Iterator[Line]:
    for line in code:
        # what belongs to a block is indented
        prompt = "..." if line.startswith(" ") else ">>>"
        yield Line(f"{MARGIN}{prompt} {line}")


def _texts(texts: Sequence[str]) -> list[Line]:
    return [Line(f"{MARGIN}{text}".rstrip()) for text in texts]


def _wrapped(text: str) -> list[str]:
    lines = textwrap.wrap(text, TEXT_WIDTH - len(MARGIN), break_long_words=False, break_on_hyphens=False)
    return [line.replace(NO_BREAK, " ") for line in lines]


def _panels(panels: Sequence[Panel], room: int) -> list[str]:
    """Lay panels out side by side as far as they fit, the rest below."""
    if len(panels) == 1:
        return _alone(panels[0], room)
    lines: list[str] = []
    row: list[list[str]] = []
    for panel in panels:
        block = _beside_others(panel, room)
        if row and _width([*row, block]) > room:
            lines += [*side_by_side(row), ""]
            row = []
        row.append(block)
    return [*lines, *side_by_side(row)]


def _alone(panel: Panel, room: int) -> list[str]:
    shape = _shape(panel)
    axes = f"({', '.join(panel.axes)}{',' if len(panel.axes) == 1 else ''})"
    head = f"{panel.heading} {axes} = {shape}" if panel.axes else f"{panel.heading} {shape}"
    return [head, "", *_indented(body(panel, room - 2))]


def _beside_others(panel: Panel, room: int) -> list[str]:
    return [panel.heading, _shape(panel), "", *_indented(body(panel, room - 2))]


def _shape(panel: Panel) -> str:
    return str(panel.values.shape)


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}".rstrip() for line in lines]


def side_by_side(blocks: Sequence[Sequence[str]]) -> list[str]:
    """Put blocks of lines beside each other."""
    widths = [max(map(len, block)) for block in blocks]
    return [
        GAP.join(line.ljust(width) for line, width in zip(lines, widths, strict=True)).rstrip()
        for lines in zip_longest(*blocks, fillvalue="")
    ]


def _width(blocks: Sequence[Sequence[str]]) -> int:
    return sum(max(map(len, block)) for block in blocks) + len(GAP) * (len(blocks) - 1)
