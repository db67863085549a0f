"""Options that several commands take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

# more of anything is a slip of the finger, or something to break tables with
MAX_COUNT = 1_000_000_000
# far above any number of cores
MAX_THREADS = 1024

F = TypeVar("F", bound="Callable[..., Any]")


class PathText(click.Path):
    """A path that is not empty: ``Path("")`` would be the current directory."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value):
            self.fail("expected a path, but it is empty", param, ctx)
        return super().convert(value, param, ctx)


def count_option(name: str, *, summary: str, at_most: int = MAX_COUNT) -> Callable[[F], F]:
    """Declare an option that takes an integer of at least 1, refused in the words of the configuration."""

    def check(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
        if value is None:
            return None
        number = _whole_number(value)
        if 1 <= number <= at_most:
            return number
        has_limit = number > at_most or at_most < MAX_COUNT
        expected = f"an integer from 1 to {at_most}" if has_limit else "an integer of at least 1"
        raise click.BadParameter(f"expected {expected}, got {value}", ctx, param)

    return click.option(name, metavar="N", callback=check, help=summary)


def path_option(*names: str, metavar: str, summary: str) -> Callable[[F], F]:
    """Declare an option that takes a path; whether there is anything is for the reader to say."""
    return click.option(*names, metavar=metavar, type=PathText(path_type=Path), help=summary)


def set_option() -> Callable[[F], F]:
    """Declare ``--set``."""
    return click.option(
        "--set",
        "overrides",
        metavar="KEY=VALUE",
        multiple=True,
        help="Put a value over the one in the configuration, such as training.epochs=3. Repeatable. A "
        "relative path in it starts from the current directory; in the file, from the file's.",
    )


def threads_option() -> Callable[[F], F]:
    """Declare ``--threads``."""
    return count_option(
        "--threads",
        summary="Threads to compute with; all cores by default. No more than sixteen "
        "are started: the others would be idle. The numbers come out the same.",
        at_most=MAX_THREADS,
    )


def json_option() -> Callable[[F], F]:
    """Declare ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Write one JSON document to standard output.")


def _whole_number(text: str) -> int:
    """Read digits, of which a few decide; what is no whole number comes out as 0."""
    if not (text.isascii() and text.isdigit()):
        return 0
    return int(text.lstrip("0")[: len(str(MAX_COUNT)) + 1] or "0")
