"""Fetching what an address holds: bounded in time and size, tried again where that can help."""

from __future__ import annotations

import email.utils
import http.client
import socket
import ssl
import string
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from http.client import HTTPResponse, responses
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import cast
from urllib.error import URLError
from urllib.parse import quote, urljoin, urlsplit
from urllib.request import (
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    UnknownHandler,
    getproxies,
    proxy_bypass,
)

from cnncli import __version__
from cnncli.data.sources import DownloadListener, Transfer

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
    is_retryable : whether a further attempt may do better
    retry_after : seconds that the server asks to wait before it
    """

    def __init__(self, cause: str, *, is_retryable: bool = False, retry_after: float = 0) -> None:
        super().__init__(cause)
        self.is_retryable = is_retryable
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
            if not error.is_retryable:
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
        transfer = Transfer(url, 0, arrivals.content_length(), 0)
        listener.received(transfer)
        for piece in arrivals.pieces():
            content += piece
            transfer = replace(transfer, n_received=len(content), seconds=patience.clock() - start)
            listener.received(transfer)
    if transfer.n_total is not None and len(content) < transfer.n_total:
        raise FetchError(f"it ended after {len(content)} of {transfer.n_total} bytes", is_retryable=True)
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

    def content_length(self) -> int | None:
        """Wait for the beginning of the answer; return the length that it declares, if it does."""
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
            self._items.put(FetchError(cause, is_retryable=not is_lasting(error)))

    def _receive_answer(self, response: HTTPResponse) -> None:
        _check_status(response)
        n_total, n_received = response.length, 0
        if n_total is not None and n_total > self._limit_bytes:
            raise FetchError(f"it declares {n_total} bytes, at most {self._limit_bytes} can be right")
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
    is_retryable = status in (408, 429) or status >= 500
    raise FetchError(
        cause, is_retryable=is_retryable, retry_after=_retry_after(response.headers.get("Retry-After"))
    )


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


MAX_REDIRECTS = 5
# what a server writes into an error message is kept short
MAX_SHOWN = 200

_REDIRECTS = (301, 302, 303, 307, 308)


class AddressError(Exception):
    """An address, or one that it redirects to, is none that this program goes to."""


def check_address(url: str) -> None:
    """Raise `AddressError` unless this is a complete http or https address.

    The content is known by its hash, so plain http is as good as https; files, ftp and the like are
    none of a server's business, and user names in an address end up in logs.
    """
    try:
        parts = urlsplit(url)
        is_complete = bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets or a port that are none
        is_complete = False
    if not is_complete or parts.scheme not in ("http", "https") or parts.username is not None:
        raise AddressError("it is no address that begins with http:// or https:// and a host")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise AddressError("it has characters that an address must write as %20 and the like")


def open_address(url: str, timeout: float) -> http.client.HTTPResponse:
    """Open an address and return the answer, whatever its status; only redirects are followed.

    Parameters
    ----------
    timeout : seconds for each operation of the connection

    Raises
    ------
    AddressError : it redirects too often, from https to http, or to something else than both
    OSError, http.client.HTTPException : there is no answer, or none in HTTP
    """
    opener = _opener()
    for _ in range(MAX_REDIRECTS + 1):
        check_address(url)
        request = Request(url, headers={"User-Agent": f"cnncli/{__version__}"})
        response = cast(http.client.HTTPResponse, opener.open(request, timeout=timeout))
        location = response.headers.get("Location")
        if response.status not in _REDIRECTS or location is None:
            return response
        response.close()
        url = _redirected(url, location)
    raise AddressError(f"it redirects more than {MAX_REDIRECTS} times")


def describe_failure(url: str, error: Exception, timeout: float) -> str:
    """Say in words why `open_address`, or reading its answer, has failed."""
    if isinstance(error, AddressError):
        return str(error)
    reason = error.reason if isinstance(error, URLError) and isinstance(error.reason, Exception) else error
    proxy = _proxy_of(url)
    return _describe(reason, timeout) + (f" (through the proxy {proxy})" if proxy else "")


def is_lasting(error: Exception) -> bool:
    """Return whether a further attempt must fail in the same way."""
    reason = error.reason if isinstance(error, URLError) else error
    return isinstance(reason, (AddressError, ssl.SSLCertVerificationError))


@cache
def tls_context() -> ssl.SSLContext:
    """Return what verifies certificates and host names; reading the trusted ones takes a while."""
    return ssl.create_default_context()


def _opener() -> OpenerDirector:
    # not urllib's usual one, which also opens files and ftp, and follows redirects to ftp
    opener = OpenerDirector()
    for handler in (ProxyHandler(), HTTPHandler(), HTTPSHandler(context=tls_context()), UnknownHandler()):
        opener.add_handler(handler)
    return opener


def _redirected(url: str, location: str) -> str:
    location = quote(location, encoding="iso-8859-1", errors="replace", safe=string.punctuation)
    shown = location if len(location) <= MAX_SHOWN else f"{location[:MAX_SHOWN]}..."
    try:
        target = urljoin(url, location)
        check_address(target)
    except (AddressError, ValueError):
        raise AddressError(f"it redirects to {shown}, only http and https are followed") from None
    if urlsplit(url).scheme == "https" and urlsplit(target).scheme == "http":
        raise AddressError(f"it redirects to {shown}, from https to http")
    return target


def _proxy_of(url: str) -> str | None:
    """Return the proxy that the user's settings give for an address, without name and password."""
    parts = urlsplit(url)
    proxy = getproxies().get(parts.scheme)
    if proxy is None or proxy_bypass(parts.netloc):
        return None
    scheme, separator, rest = proxy.rpartition("://")
    return scheme + separator + rest.rpartition("@")[2]


def _describe(reason: Exception, timeout: float) -> str:
    if isinstance(reason, TimeoutError):
        return f"nothing came within {timeout:g} s"
    if isinstance(reason, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not to be trusted: {reason.verify_message} (where a network puts in "
            "certificates of its own, SSL_CERT_FILE names a file that holds them)"
        )
    if isinstance(reason, ssl.SSLError):
        return f"there is no secure connection: {reason.reason or reason}"
    if isinstance(reason, socket.gaierror):
        return f"the host is not found, or there is no network ({reason.strerror})"
    if isinstance(reason, (http.client.RemoteDisconnected, http.client.IncompleteRead)):
        return "the connection ended early"
    if isinstance(reason, OSError):
        return f"{reason.strerror or reason}"[:MAX_SHOWN]
    if isinstance(reason, http.client.HTTPException):
        return "the answer is not HTTP"
    return f"{type(reason).__name__}: {reason}"[:MAX_SHOWN]


class Silent:
    """Listens to a download and does nothing."""

    def notice(self, message: str) -> None:
        """Do nothing."""

    def received(self, transfer: Transfer) -> None:
        """Do nothing."""

    def placed(self, path: Path, transfer: Transfer) -> None:
        """Do nothing."""
