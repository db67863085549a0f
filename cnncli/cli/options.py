"""Options that several commands take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from cnncli.config import Config
from cnncli.errors import UsageError
from cnncli.training import Workers, available_cores

# far above any number of cores; far below what the operating system refuses or chokes on
MAX_THREADS = 1024

F = TypeVar("F", bound="Callable[..., Any]")


def count_option(name: str, *, summary: str, at_most: int | None = None) -> Callable[[F], F]:
    """Declare an option that takes an integer of at least 1, refused in the words of the configuration."""
    expected = "an integer of at least 1" if at_most is None else f"an integer from 1 to {at_most}"

    def check(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
        if value is None:
            return None
        is_number = value.isascii() and value.isdigit() and len(value) < 10
        if not is_number or int(value) < 1 or (at_most is not None and int(value) > at_most):
            raise click.BadParameter(f"expected {expected}, got {value}", ctx, param)
        return int(value)

    return click.option(name, metavar="N", callback=check, help=summary)


def path_option(*names: str, metavar: str, summary: str) -> Callable[[F], F]:
    """Declare an option that takes a path; whether there is anything is for the reader to say."""
    return click.option(*names, metavar=metavar, type=click.Path(path_type=Path), help=summary)


def set_option() -> Callable[[F], F]:
    """Declare ``--set``."""
    return click.option(
        "--set",
        "overrides",
        metavar="KEY=VALUE",
        multiple=True,
        help="Put a value over the one in the configuration, such as training.epochs=3. Repeatable.",
    )


def threads_option() -> Callable[[F], F]:
    """Declare ``--threads``."""
    return count_option(
        "--threads",
        summary="Threads to compute with; all cores by default. The numbers come out the same.",
        at_most=MAX_THREADS,
    )


def json_option() -> Callable[[F], F]:
    """Declare ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Write one JSON document to standard output.")


def start_workers(threads: int | None, config: Config) -> Workers:
    """Start as many threads as the command line says, or else the configuration, or one for each core.

    Raises
    ------
    UsageError : the operating system does not start so many
    """
    n_workers = threads or config.training.threads or available_cores()
    if n_workers > MAX_THREADS:
        raise config.error("training.threads", f"expected at most {MAX_THREADS}, got {n_workers}")
    try:
        return Workers(n_workers)
    except RuntimeError as error:
        raise UsageError(f"cannot start {n_workers} threads ({error}); use fewer --threads") from None
