"""Opening an address of the web: verified certificates, the user's proxies, few redirects."""

from __future__ import annotations

import http.client
import socket
import ssl
import string
from functools import cache
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
