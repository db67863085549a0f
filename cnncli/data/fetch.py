"""Fetching what an address holds: bounded in time and size, tried again where that can help."""

from __future__ import annotations

import email.utils
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from http.client import HTTPResponse, responses
from queue import Empty, SimpleQueue
from threading import Event, Thread

from cnncli.data.connection import describe_failure, is_lasting, open_address
from cnncli.data.listener import DownloadListener, Transfer

_PIECE_BYTES = 2**16


@dataclass(frozen=True)
class Patience:
    """How long a download waits, and for what.

    Attributes
    ----------
    stall_seconds : for a connection, and for each further piece of an answer
    answer_seconds : from the look-up of the host to the first byte of the content
    base_seconds, bytes_per_second : the whole content may take base_seconds, and its largest size at
        this rate
    attempts : at one address, where a failure may pass
    backoff_seconds : before the second attempt; twice as long before each further one
    longest_wait_seconds : a server that asks for more (Retry-After) is given up
    """

    stall_seconds: float = 10
    answer_seconds: float = 25
    base_seconds: float = 30
    bytes_per_second: float = 100_000
    attempts: int = 3
    backoff_seconds: float = 1
    longest_wait_seconds: float = 30
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def content_seconds(self, limit_bytes: int) -> float:
        """Return how long a content of up to so many bytes may take."""
        return self.base_seconds + limit_bytes / self.bytes_per_second


PATIENCE = Patience()


class FetchError(Exception):
    """An address does not give its content; the message is the cause alone.

    Attributes
    ----------
    may_pass : whether a further attempt may do better
    retry_after : seconds that the server asks to wait before it
    """

    def __init__(self, cause: str, *, may_pass: bool = False, retry_after: float = 0) -> None:
        super().__init__(cause)
        self.may_pass = may_pass
        self.retry_after = retry_after


def fetch(
    url: str, limit_bytes: int, listener: DownloadListener, patience: Patience
) -> tuple[bytes, Transfer]:
    """Return the content of an address, and what its transfer has cost.

    Parameters
    ----------
    limit_bytes : more than this is refused

    Raises
    ------
    FetchError : it does not come
    """
    attempt = 0
    while True:
        attempt += 1
        try:
            return _fetch_once(url, limit_bytes, listener, patience)
        except FetchError as error:
            if not error.may_pass:
                raise
            wait = max(patience.backoff_seconds * 2 ** (attempt - 1), error.retry_after)
            if wait > patience.longest_wait_seconds:
                raise FetchError(f"{error}, and asks to wait {error.retry_after:.0f} s") from None
            if attempt == patience.attempts:
                raise FetchError(f"{error} ({attempt} attempts)") from None
            listener.notice(f"{url}: {error}; trying again in {wait:.3g} s")
        patience.sleep(wait)


def _fetch_once(
    url: str, limit_bytes: int, listener: DownloadListener, patience: Patience
) -> tuple[bytes, Transfer]:
    start = patience.clock()
    content = bytearray()
    with _Arrivals(url, limit_bytes, patience) as arrivals:
        transfer = Transfer(url, 0, arrivals.promise(), 0)
        listener.received(transfer)
        for piece in arrivals.pieces():
            content += piece
            transfer = replace(transfer, n_received=len(content), seconds=patience.clock() - start)
            listener.received(transfer)
    if transfer.n_total is not None and len(content) < transfer.n_total:
        raise FetchError(f"it ended after {len(content)} of {transfer.n_total} bytes", may_pass=True)
    return bytes(content), transfer


class _Arrivals:
    """An answer that is received in a thread of its own, so that waiting for it can end at any time.

    The time-outs of a socket are not enough: they start anew with each byte, even in the middle of a
    header, and looking up the host has none. A thread that is no longer waited for ends with its
    next piece or the time-out of its socket, and holds nothing but memory until then.
    """

    def __init__(self, url: str, limit_bytes: int, patience: Patience) -> None:
        self._url = url
        self._limit_bytes = limit_bytes
        self._patience = patience
        self._items: SimpleQueue[int | bytes | FetchError | None] = SimpleQueue()
        self._is_abandoned = Event()
        self._thread = Thread(target=self._receive, daemon=True)

    def __enter__(self) -> _Arrivals:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_abandoned.set()

    def promise(self) -> int | None:
        """Wait for the beginning of the answer; return the length that it promises, if it does."""
        seconds = self._patience.answer_seconds
        item = self._next(seconds, f"there was no answer within {seconds:g} s")
        assert not isinstance(item, bytes)
        return item

    def pieces(self) -> Iterator[bytes]:
        """Wait for the content, piece by piece."""
        seconds = self._patience.content_seconds(self._limit_bytes)
        end = self._patience.clock() + seconds
        while True:
            remaining = max(end - self._patience.clock(), 0)
            item = self._next(remaining, f"it was not complete after {seconds:.3g} s")
            assert isinstance(item, bytes)
            if not item:
                self._thread.join()  # it ends with this, and whoever forks next should be alone
                return
            yield item

    def _next(self, seconds: float, cause: str) -> int | bytes | None:
        try:
            item = self._items.get(timeout=seconds)
        except Empty:
            raise FetchError(cause) from None
        if isinstance(item, FetchError):
            raise item
        return item

    def _receive(self) -> None:
        timeout = self._patience.stall_seconds
        try:
            with open_address(self._url, timeout) as response:
                self._receive_answer(response)
        except FetchError as error:
            self._items.put(error)
        except Exception as error:  # whatever it is, it ends the waiting
            cause = describe_failure(self._url, error, timeout)
            self._items.put(FetchError(cause, may_pass=not is_lasting(error)))

    def _receive_answer(self, response: HTTPResponse) -> None:
        _check_status(response)
        n_total, n_received = response.length, 0
        if n_total is not None and n_total > self._limit_bytes:
            raise FetchError(f"it promises {n_total} bytes, at most {self._limit_bytes} can be right")
        self._items.put(n_total)
        while piece := response.read1(_PIECE_BYTES):
            n_received += len(piece)
            if n_received > self._limit_bytes:
                raise FetchError(f"it goes on after {self._limit_bytes} bytes, which no more can be right")
            if self._is_abandoned.is_set():
                return
            self._items.put(piece)
        self._items.put(b"")


def _check_status(response: HTTPResponse) -> None:
    status = response.status
    if 200 <= status < 300:
        return
    # the phrase of the standard: what the server writes may be anything
    cause = f"it answers {status} {responses.get(status, '')}".rstrip()
    may_pass = status in (408, 429) or status >= 500
    raise FetchError(cause, may_pass=may_pass, retry_after=_retry_after(response.headers.get("Retry-After")))


def _retry_after(value: str | None) -> float:
    """Read the header Retry-After: seconds, or a date (RFC 9110, section 10.2.3)."""
    if value is None:
        return 0
    try:
        if value.strip().isdecimal():
            return float(int(value))
        return email.utils.parsedate_to_datetime(value).timestamp() - time.time()
    except (ValueError, TypeError, OverflowError):
        return 0
