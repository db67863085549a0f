"""Make the listings of the pages in learn/ and seeds/ anew: ``python docs/remake_listings.py``.

A page is text with fenced blocks. A ``console`` block begins with ``$ cnncli ...``: what follows is
what the command writes. A comment before it, ``<!-- steps 3-5 9 end -->``, keeps some steps of a
walk-through and its verdict. A ``pycon`` block is a Python session; the sessions of a page are one.
Everything runs in an empty directory, beside which data/mnist lies.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))

from cnncli.cli.main import run  # noqa: E402

PAGES = sorted([*(DOCS / "learn").glob("*.md"), *(DOCS / "seeds").glob("*.md")])
BLOCK = re.compile(
    r"(?P<head>(?:<!-- steps (?P<steps>[^>]*) -->\n)?```(?P<kind>console|pycon)\n)"
    r"(?P<body>.*?)(?P<foot>```\n)",
    re.DOTALL,
)
STEP = re.compile(r"^(\d+)\. ")
VERDICT = "This tool and the textbook"
LEFT_OUT = "[...]"


def remade(text: str) -> str:
    """Return a page with its listings made anew."""
    session: dict[str, Any] = {"__name__": "__main__"}
    outputs: dict[str, str] = {}
    with _elsewhere():
        return BLOCK.sub(lambda block: _block(block, session, outputs), text)


def _block(block: re.Match[str], session: dict[str, Any], outputs: dict[str, str]) -> str:
    if block["kind"] == "pycon":
        body = _session(block["body"], session)
    else:
        line = block["body"].partition("\n")[0]
        # a page shows a long walk-through piece by piece
        if line not in outputs:
            outputs[line] = _output_of_command(line)
        body = f"{line}\n" + _chosen(outputs[line], block["steps"])
    return block["head"] + body + block["foot"]


@contextlib.contextmanager
def _elsewhere() -> Iterator[None]:
    """Work in a directory of its own, 80 columns wide."""
    before = Path.cwd()
    with TemporaryDirectory() as directory, mock.patch.dict(os.environ, {"COLUMNS": "80"}):
        (Path(directory) / "data").symlink_to(DOCS.parent / "data")
        (Path(directory) / "configs").symlink_to(DOCS.parent / "configs")
        os.chdir(directory)
        try:
            yield
        finally:
            os.chdir(before)


def _output_of_command(line: str) -> str:
    command = shlex.split(line.removeprefix("$ "))
    if command[0] != "cnncli":
        raise ValueError(f"expected a command of cnncli, got {line}")
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        run(command[1:])
    return out.getvalue()


def _chosen(text: str, steps: str | None) -> str:
    """Keep some steps of a walk-through; a mark stands for what is left out. None keeps all."""
    if steps is None:
        return text
    parts = _parts(text)
    kept = [name for word in steps.split() for name in _names(word)]
    unknown = [name for name in kept if name not in parts]
    if unknown:
        raise ValueError(f"there is no step {', '.join(unknown)}")
    names, lines, is_left_out = list(parts), [], False
    for name in names:
        if name in kept:
            lines += [LEFT_OUT, ""] if is_left_out else []
            lines += [*parts[name], ""]
        is_left_out = name not in kept
    if is_left_out:
        lines += [LEFT_OUT, ""]
    return "\n".join(lines)


def _names(word: str) -> list[str]:
    first, dash, last = word.partition("-")
    return [str(number) for number in range(int(first), int(last) + 1)] if dash else [word]


def _parts(text: str) -> dict[str, list[str]]:
    """Cut a walk-through into its head, its steps by number, and its end."""
    parts: dict[str, list[str]] = {"head": []}
    name = "head"
    lines = text.splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        number = STEP.match(line)
        if line == VERDICT:
            name = "end"
        elif number:
            name = number[1]
        elif name != "head" and following and set(following) == {"-"}:
            name = "heading"  # of a part of the walk-through
        parts.setdefault(name, []).append(line)
    return {name: _stripped(part) for name, part in parts.items() if name != "heading"}


def _stripped(lines: list[str]) -> list[str]:
    return "\n".join(lines).strip("\n").split("\n")


def _session(text: str, names: dict[str, Any]) -> str:
    """Run the statements of a session and put what they write below them."""
    lines: list[str] = []
    for statement in _statements(text):
        source = "\n".join(line[4:] for line in statement)
        lines += [*statement, *_output(source, names).splitlines()]
    return "".join(f"{line}\n" for line in lines)


def _statements(text: str) -> Iterator[list[str]]:
    statement: list[str] = []
    for line in text.splitlines():
        if line.startswith(">>>"):
            if statement:
                yield statement
            statement = [line]
        elif line.startswith("..."):
            statement.append(line)
    if statement:
        yield statement


def _output(source: str, names: dict[str, Any]) -> str:
    out = io.StringIO()
    code = compile(f"{source}\n\n", "<session>", "single")
    with contextlib.redirect_stdout(out):
        try:
            exec(code, names)
        except Exception as error:
            # the words of an error are not the same in every NumPy
            kind = traceback.format_exception_only(error)[-1].partition(":")[0]
            return f"{out.getvalue()}Traceback (most recent call last):\n  ...\n{kind}: ..."
    return out.getvalue()


def main() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        page.write_text(remade(text), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
