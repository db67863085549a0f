"""Redirects, certificates and proxies, and addresses that nothing is fetched from."""

from __future__ import annotations

import base64
import socket
from collections.abc import Iterator

import pytest

from cnncli.data.fetch import AddressError, FetchError, check_address, fetch, tls_context
from tests.download.conftest import Waits
from tests.download.server import CERTIFICATE, Answer, Handler, LocalServer, content, redirect, text
from tests.download.small_dataset import Heard

DATA = b"0123456789"


@pytest.fixture
def tls_server() -> Iterator[LocalServer]:
    with LocalServer(certificate=CERTIFICATE) as local:
        yield local


@pytest.fixture
def trusted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Trust the certificate of the tests."""
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    tls_context.cache_clear()
    yield
    tls_context.cache_clear()


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def fetched(url: str, waits: Waits) -> bytes:
    return fetch(url, 1000, Heard(), waits.patience)[0]


def fault(url: str, waits: Waits) -> str:
    with pytest.raises(FetchError) as caught:
        fetched(url, waits)
    return str(caught.value)


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("location", ["b", "/b", "{url}/b"])
def test_redirects_are_followed(server: LocalServer, waits: Waits, code: int, location: str) -> None:
    server.answers["/a"] = [redirect(location.format(url=server.url), code)]
    server.answers["/b"] = [content(DATA)]
    assert fetched(f"{server.url}/a", waits) == DATA


@pytest.mark.parametrize(
    "location",
    [
        "file:///etc/hosts",
        "ftp://127.0.0.1/a",
        "data:text/plain,a",
        "http://name:word@127.0.0.1/",
        "http://127.0.0.1:99999/",
        "http://[/",
    ],
)
def test_a_redirect_to_something_else_is_refused(server: LocalServer, waits: Waits, location: str) -> None:
    server.answers["/a"] = [redirect(location)]
    cause = fault(f"{server.url}/a", waits)
    assert cause.startswith("it redirects to ")
    assert cause.endswith(", only http and https are followed")
    assert waits.seconds == [] and server.requests == ["/a"]


def test_the_address_of_a_redirect_is_shown_safely_and_not_at_full_length(
    server: LocalServer, waits: Waits
) -> None:
    server.answers["/a"] = [
        text(b"HTTP/1.0 302 x\r\nLocation: gopher://\x1b[31m \xff" + b"x" * 5000 + b"\r\n\r\n")
    ]
    cause = fault(f"{server.url}/a", waits)
    assert "gopher://%1B[31m%20%FFxxx" in cause and cause.isprintable()
    assert len(cause) < 300


@pytest.mark.usefixtures("trusted")
def test_a_redirect_from_https_to_http_is_refused(
    server: LocalServer, tls_server: LocalServer, waits: Waits
) -> None:
    server.answers["/a"] = [redirect(f"{tls_server.url}/a")]
    tls_server.answers["/a"] = [content(DATA)]
    tls_server.answers["/b"] = [redirect(f"{server.url}/c")]
    server.answers["/c"] = [content(DATA)]
    assert fetched(f"{server.url}/a", waits) == DATA
    assert fault(f"{tls_server.url}/b", waits).endswith("from https to http")
    assert "/c" not in server.requests


def test_a_certificate_that_nobody_vouches_for_is_refused(tls_server: LocalServer, waits: Waits) -> None:
    tls_server.answers["/a"] = [content(DATA)]
    cause = fault(f"{tls_server.url}/a", waits)
    assert "its certificate is not to be trusted: self-signed certificate" in cause.replace(
        "self signed", "self-signed"
    )
    assert "SSL_CERT_FILE" in cause
    assert tls_server.requests == [] and waits.seconds == []


@pytest.mark.usefixtures("trusted")
def test_a_certificate_that_is_vouched_for_is_accepted(tls_server: LocalServer, waits: Waits) -> None:
    tls_server.answers["/a"] = [content(DATA)]
    assert fetched(f"{tls_server.url}/a", waits) == DATA


@pytest.mark.usefixtures("trusted")
def test_a_certificate_for_another_host_is_refused(tls_server: LocalServer, waits: Waits) -> None:
    tls_server.answers["/a"] = [content(DATA)]
    cause = fault(f"https://localhost:{tls_server.port}/a", waits)
    assert "its certificate is not to be trusted: Hostname mismatch" in cause
    assert tls_server.requests == []


def test_https_from_a_server_without_it(server: LocalServer, waits: Waits) -> None:
    cause = fault(f"https://127.0.0.1:{server.port}/a", waits)
    assert cause.startswith("there is no secure connection: ")


def test_a_host_without_a_server(closed_port: int, waits: Waits) -> None:
    assert fault(f"http://127.0.0.1:{closed_port}/a", waits) == "Connection refused (3 attempts)"
    assert waits.seconds == [1, 2]


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a..b", f"{'x' * 70}.invalid"])
def test_a_host_that_is_not_found(host: str, waits: Waits) -> None:
    cause = fault(f"http://{host}/a", waits)
    assert "the host is not found, or there is no network" in cause or "label" in cause


def proxied(handler: Handler) -> None:
    """Answer as a proxy does: the path is a whole address."""
    content(f"{handler.path} {handler.headers.get('Proxy-Authorization')}".encode())(handler)


def as_proxy(server: LocalServer, url: str) -> None:
    answer: Answer = proxied
    server.answers[url] = [answer]


def test_a_proxy_of_the_environment_is_used(
    server: LocalServer, waits: Waits, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_proxy(server, "http://mirror.invalid/a")
    monkeypatch.setenv("http_proxy", f"http://name:word@127.0.0.1:{server.port}")
    login = base64.b64encode(b"name:word").decode()
    assert fetched("http://mirror.invalid/a", waits) == f"http://mirror.invalid/a Basic {login}".encode()


def test_no_proxy_goes_past_it(
    server: LocalServer, closed_port: int, waits: Waits, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answers["/a"] = [content(DATA)]
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{closed_port}")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert fetched(f"{server.url}/a", waits) == DATA


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_dead_proxy_is_named_without_its_password(
    scheme: str, closed_port: int, waits: Waits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{scheme}_proxy", f"http://name:word@127.0.0.1:{closed_port}")
    cause = fault(f"{scheme}://mirror.invalid/a", waits)
    assert cause == f"Connection refused (through the proxy http://127.0.0.1:{closed_port}) (3 attempts)"


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "127.0.0.1:nowhere", "http://[", "::::"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_makes_no_sense_is_a_cause_like_any_other(
    scheme: str, proxy: str, waits: Waits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{scheme}_proxy", proxy)
    assert "the proxy" in fault(f"{scheme}://mirror.invalid/a", waits)


def test_a_proxy_that_refuses_to_connect(
    server: LocalServer, waits: Waits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", server.url)
    assert "through the proxy" in fault("https://mirror.invalid/a", waits)


@pytest.mark.usefixtures("trusted")
def test_https_goes_through_a_proxy_without_being_read_there(
    server: LocalServer, tls_server: LocalServer, waits: Waits, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls_server.answers["/a"] = [content(DATA)]
    monkeypatch.setenv("https_proxy", server.url)
    assert fetched(f"{tls_server.url}/a", waits) == DATA
    assert server.requests == [f"CONNECT 127.0.0.1:{tls_server.port}"]
    assert tls_server.requests == ["/a"]


def test_a_proxy_does_not_vouch_for_a_certificate(
    server: LocalServer, tls_server: LocalServer, waits: Waits, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls_server.answers["/a"] = [content(DATA)]
    monkeypatch.setenv("https_proxy", server.url)
    assert "its certificate is not to be trusted" in fault(f"{tls_server.url}/a", waits)
    assert tls_server.requests == []


@pytest.mark.parametrize("url", ["http://a", "https://a.b/c", "http://127.0.0.1:8000/d/", "http://[::1]:80/"])
def test_addresses_to_fetch_from(url: str) -> None:
    check_address(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "mnist",
        "/data/mnist",
        "file:///data",
        "ftp://a/b",
        "http:a",
        "http://",
        "http://:80/",
        "http://a:0/",
        "http://a:x/",
        "http://a:65536/",
        "http://user@a/",
        "http://a/ b",
        "http://a/\n",
        "http://a/ü",
        "http://[::1/",
    ],
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(AddressError):
        check_address(url)
