"""SIGINT and SIGTERM: at once, or held back until a safe place."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeAlias

Handler: TypeAlias = "Callable[[int, FrameType | None], Any]"

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt at once for either signal; further ones change nothing."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        _handle_by(_pass_over)
        raise KeyboardInterrupt

    with _handled_by(interrupt):
        yield


@contextmanager
def deferred_interrupts() -> Iterator[Callable[[], None]]:
    """Hold both signals back, however often they come.

    Yields the function to call where stopping does no harm: it raises KeyboardInterrupt if a signal
    has come. So does the end of the context. Further signals change nothing.
    """
    has_come = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal has_come
        has_come = True

    def check() -> None:
        if has_come:
            _handle_by(_pass_over)
            raise KeyboardInterrupt

    with _handled_by(note):
        yield check
        check()


def ignore_interrupts() -> None:
    """Ignore both signals from now to the end of the program, while the last words are written."""
    _handle_by(signal.SIG_IGN)


def _pass_over(number: int, frame: FrameType | None) -> None:
    # unlike SIG_IGN it also takes a signal that has come already, of which Python would complain
    pass


def _handle_by(handler: Handler | signal.Handlers) -> None:
    for number in SIGNALS:
        signal.signal(number, handler)


@contextmanager
def _handled_by(handler: Handler) -> Iterator[None]:
    # also where a script started the program in the background with SIGINT ignored: whoever sends
    # the signal by number means it
    previous = {number: signal.signal(number, handler) for number in SIGNALS}
    try:
        yield
    except KeyboardInterrupt:
        raise  # the program is on its way out
    except BaseException:
        _restore(previous)
        raise
    _restore(previous)


def _restore(handlers: Mapping[signal.Signals, Any]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)
