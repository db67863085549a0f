"""Options that several commands take: texts become numbers, sizes and paths here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

# more of anything is a slip of the finger, or something to break tables with
MAX_COUNT = 1_000_000_000
# far above any number of cores
MAX_THREADS = 1024
MAX_DIGITS = 9

F = TypeVar("F", bound="Callable[..., Any]")


class PathText(click.Path):
    """A path that is not empty: ``Path("")`` would be the current directory."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value):
            self.fail("expected a path, but it is empty", param, ctx)
        return super().convert(value, param, ctx)


def count_option(name: str, *, summary: str, at_most: int = MAX_COUNT) -> Callable[[F], F]:
    """Declare an option that takes an integer of at least 1."""

    def check(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
        if value is None:
            return None
        digits = value.lstrip("0") if value.isascii() and value.isdigit() else ""
        # a million digits need not be converted to be too many
        number = int(digits[: len(str(MAX_COUNT)) + 1] or "0")
        if 1 <= number <= at_most:
            return number
        has_limit = number > at_most or at_most < MAX_COUNT
        expected = f"an integer from 1 to {at_most}" if has_limit else "an integer of at least 1"
        raise click.BadParameter(f"expected {expected}, got {value}", ctx, param)

    return click.option(name, metavar="N", callback=check, help=summary)


def index_option(name: str, *, summary: str, default: str | None = None) -> Callable[[F], F]:
    """Declare an option that takes an integer of at least 0."""

    def check(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
        sizes = () if value is None else _integers(value)
        if sizes is None or len(sizes) > 1:
            raise click.BadParameter(f"expected an integer of at least 0, got {value}", ctx, param)
        return sizes[0] if sizes else None

    return click.option(name, metavar="N", default=default, callback=check, help=summary)


def shape_option(name: str, *, metavar: str, summary: str) -> Callable[[F], F]:
    """Declare an option that takes sizes, ``2,5,4`` or ``(2, 5, 4)``: four if the metavar has four."""
    count = metavar.count(",") + 1

    def check(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
        if value is None:
            return None
        sizes = _integers(value)
        if sizes is None or min(sizes) < 1 or (count == 4 and len(sizes) != 4):
            number = "four integers" if count == 4 else "integers"
            raise click.BadParameter(f"expected {number} of at least 1, {metavar}, got {value}", ctx, param)
        return sizes

    return click.option(name, metavar=metavar, callback=check, help=summary)


def pair_option(name: str, *, metavar: str, at_least: int, word: str = "", summary: str) -> Callable[[F], F]:
    """Declare an option that takes one integer or two, height and width; or one word."""

    def check(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, int] | str | None:
        if value is None or (word and value == word):
            return value
        sizes = _integers(value)
        if sizes is None or len(sizes) > 2 or min(sizes) < at_least:
            expected = f"an integer of at least {at_least}, or two, height,width"
            expected += f", or {word}" if word else ""
            raise click.BadParameter(f"expected {expected}, got {value}", ctx, param)
        return sizes[0], sizes[-1]

    return click.option(name, metavar=metavar, callback=check, help=summary)


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
        help="Override a configuration value, such as training.epochs=3. Repeatable. A relative path in it "
        "starts from the current directory.",
    )


def threads_option() -> Callable[[F], F]:
    """Declare ``--threads``."""
    return count_option(
        "--threads",
        summary="Worker threads, at most 16; all cores by default. Their number does not change the results.",
        at_most=MAX_THREADS,
    )


def json_option() -> Callable[[F], F]:
    """Declare ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


def mapping_option(name: str, destination: str, *, summary: str) -> Callable[[F], F]:
    """Declare an option that takes a mapping in YAML, of which JSON is a part."""

    def check(ctx: click.Context, param: click.Parameter, value: str | None) -> dict[str, Any] | None:
        if value is None:
            return None
        from cnncli.config.document import read_document
        from cnncli.config.faults import Faults, Place, UnreadableError

        faults, place = Faults(), Place(name, rank=1)
        try:
            node = read_document(value, place, faults)
        except UnreadableError as fault:
            raise fault.to_error() from None
        faults.raise_any()
        plain = node.plain()
        if not isinstance(plain, dict):
            expected = "a mapping such as '{kernel_size: 3}'"
            raise click.BadParameter(f"expected {expected}, got {value}", ctx, param)
        return plain

    return click.option(name, destination, metavar="MAPPING", callback=check, help=summary)


def _integers(text: str) -> tuple[int, ...] | None:
    """Read ``12,30`` or, as Python writes it, ``(12, 30)``; None where it is not that."""
    inner = text.strip()
    if inner[:1] + inner[-1:] in ("()", "[]"):
        inner = inner[1:-1].rstrip(",")
    words = [word.strip() for word in inner.split(",")]
    if not all(word.isascii() and word.isdigit() and len(word) <= MAX_DIGITS for word in words):
        return None
    return tuple(map(int, words))
