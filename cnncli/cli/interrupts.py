"""SIGINT and SIGTERM: at once, or held back until a safe place."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeAlias

Handler: TypeAlias = "Callable[[int, FrameType | None], Any]"

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt at once for either signal."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handled_by(interrupt):
        yield


@contextmanager
def deferred_interrupts() -> Iterator[Callable[[], None]]:
    """Hold both signals back, however often they come.

    Yields the function to call where stopping does no harm: it raises KeyboardInterrupt if a signal
    has come. So does the end of the context.
    """
    has_come = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal has_come
        has_come = True

    def check() -> None:
        if has_come:
            raise KeyboardInterrupt

    with _handled_by(note):
        yield check
    check()


def ignore_interrupts() -> None:
    """Ignore both signals from now on, while the last words are written."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def _handled_by(handler: Handler) -> Iterator[None]:
    # also where a script started the program in the background with SIGINT ignored: whoever sends
    # the signal by number means it
    previous = {number: signal.signal(number, handler) for number in SIGNALS}
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)
