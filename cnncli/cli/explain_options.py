"""The options of ``cnncli explain`` that are sizes: texts become tuples here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

MOST_DIGITS = 9

F = TypeVar("F", bound="Callable[..., Any]")


def shape_option(name: str, *, metavar: str, summary: str) -> Callable[[F], F]:
    """Declare an option that takes four sizes."""

    def check(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
        if value is None:
            return None
        sizes = _integers(value)
        if sizes is None or len(sizes) != 4 or min(sizes) < 1:
            expected = f"four integers of at least 1, {metavar}"
            raise click.BadParameter(f"expected {expected}, got {value}", ctx, param)
        return sizes

    return click.option(name, metavar=metavar, callback=check, help=summary)


def pair_option(name: str, *, metavar: str, at_least: int, word: str = "", summary: str) -> Callable[[F], F]:
    """Declare an option that takes one integer or two, height and width; or one word."""

    def check(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, int] | str | None:
        if value is None or (word and value == word):
            return value
        sizes = _integers(value)
        if sizes is None or len(sizes) not in (1, 2) or min(sizes) < at_least:
            expected = f"an integer of at least {at_least}, or two, height,width"
            expected += f", or {word}" if word else ""
            raise click.BadParameter(f"expected {expected}, got {value}", ctx, param)
        return sizes[0], sizes[-1]

    return click.option(name, metavar=metavar, callback=check, help=summary)


def seed_option() -> Callable[[F], F]:
    """Declare ``--seed``."""

    def check(ctx: click.Context, param: click.Parameter, value: str) -> int:
        sizes = _integers(value)
        if sizes is None or len(sizes) != 1:
            raise click.BadParameter(f"expected an integer of at least 0, got {value}", ctx, param)
        return sizes[0]

    return click.option(
        "--seed", metavar="N", default="0", callback=check, help="Draw other random numbers, or other digits."
    )


def _integers(text: str) -> tuple[int, ...] | None:
    """Read ``12,30`` or, as Python writes it, ``(12, 30)``; None where it is not that."""
    inner = text.strip()
    if inner[:1] + inner[-1:] in ("()", "[]"):
        inner = inner[1:-1]
    words = [word.strip() for word in inner.split(",")]
    if not all(word.isascii() and word.isdigit() and len(word) <= MOST_DIGITS for word in words):
        return None
    return tuple(map(int, words))
