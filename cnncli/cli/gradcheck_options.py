"""The options of ``cnncli gradcheck`` that are numbers, sizes or a mapping: texts become values here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from cnncli.config.document import read_document
from cnncli.config.faults import Faults, Place, UnreadableError

MOST_DIGITS = 9

F = TypeVar("F", bound="Callable[..., Any]")


def index_option(name: str, *, summary: str, default: str | None = None) -> Callable[[F], F]:
    """Declare an option that takes an integer of at least 0."""

    def check(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
        if value is None:
            return None
        if not _is_number(value):
            raise click.BadParameter(f"expected an integer of at least 0, got {value}", ctx, param)
        return int(value)

    return click.option(name, metavar="N", default=default, callback=check, help=summary)


def input_shape_option(name: str, *, summary: str) -> Callable[[F], F]:
    """Declare an option that takes sizes: ``2,5,4``, or ``(2, 5, 4)`` as Python writes it."""

    def check(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
        if value is None:
            return None
        words = [word.strip() for word in value.strip().strip("()[]").rstrip(",").split(",")]
        if not all(_is_number(word) and int(word) > 0 for word in words):
            expected = "integers of at least 1, such as 2,5,4 for C,H,W, without the batch"
            raise click.BadParameter(f"expected {expected}, got {value}", ctx, param)
        return tuple(map(int, words))

    return click.option(name, metavar="C,H,W", callback=check, help=summary)


def mapping_option(name: str, destination: str, *, summary: str) -> Callable[[F], F]:
    """Declare an option that takes a mapping in YAML, of which JSON is a part."""

    def check(ctx: click.Context, param: click.Parameter, value: str | None) -> dict[str, Any] | None:
        if value is None:
            return None
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


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS
