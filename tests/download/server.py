"""A real server on this machine that answers as it is told, rightly or wrongly."""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Any, TypeAlias

CERTIFICATE = Path(__file__).with_name("certificate.pem")

DRIP_SECONDS = 0.05
# a client that waits for ever fails its test, and does not hang it
MAX_DRIPS = 400


class Handler(BaseHTTPRequestHandler):
    """Looks up what to answer to a path: the answers in turn, the last one for ever."""

    server: _Server

    def do_GET(self) -> None:
        try:
            self.server.local.answer_to(self.path)(self)
        except (ConnectionError, ssl.SSLError):
            self.server.local.left_alone.set()

    def do_CONNECT(self) -> None:
        """Be a proxy for https: pass on what both sides say, unread."""
        self.server.local.requests.append(f"CONNECT {self.path}")
        host, _, port = self.path.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=10) as target:
            self.begin(200, {})
            pass_on(self.connection, target)
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Write no log."""

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def drip(self, piece: bytes) -> None:
        """Send a piece now and then, until the client or the test has enough."""
        for _ in range(MAX_DRIPS):
            if self.server.local.is_closing.wait(DRIP_SECONDS):
                return
            self.wfile.write(piece)
            self.wfile.flush()


def pass_on(client: socket.socket, target: socket.socket) -> None:
    """Pass bytes between two connections until one of them ends."""
    while True:
        for source in select.select([client, target], [], [], 10)[0]:
            data = source.recv(2**16)
            if not data:
                return
            (target if source is client else client).sendall(data)


Answer: TypeAlias = Callable[[Handler], None]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    local: LocalServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that hang up; they are meant to."""


class LocalServer:
    """Answers on 127.0.0.1 while its context lasts.

    Attributes
    ----------
    answers : by path; what has none is 404
    requests : every path that was asked for, in order
    left_alone : set when a client has hung up in the middle of an answer
    """

    def __init__(self, *, certificate: Path | None = None) -> None:
        self.answers: dict[str, list[Answer]] = {}
        self.requests: list[str] = []
        self.is_closing = Event()
        self.left_alone = Event()
        self._lock = Lock()
        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.local = self
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            # the handshake is left to the thread of the request
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        scheme = "http" if certificate is None else "https"
        self.port = self._server.server_port
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def answer_to(self, path: str) -> Answer:
        with self._lock:
            self.requests.append(path)
            answers = self.answers.get(path, [status(404)])
            return answers.pop(0) if len(answers) > 1 else answers[0]

    def __enter__(self) -> LocalServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.is_closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def content(data: bytes, *, length: int | None = None) -> Answer:
    """Answer 200 with this content, and promise its length or another one."""

    def answer(handler: Handler) -> None:
        handler.begin(200, {"Content-Length": str(len(data) if length is None else length)})
        handler.wfile.write(data)

    return answer


def unmeasured(data: bytes) -> Answer:
    """Answer 200 with this content, and promise no length."""

    def answer(handler: Handler) -> None:
        handler.begin(200, {})
        handler.wfile.write(data)

    return answer


def status(code: int, headers: Mapping[str, str] | None = None) -> Answer:
    """Answer with a status and a page about it."""

    def answer(handler: Handler) -> None:
        page = f"<html>{code}</html>".encode()
        handler.begin(code, {"Content-Length": str(len(page)), **(headers or {})})
        handler.wfile.write(page)

    return answer


def redirect(location: str, code: int = 302) -> Answer:
    """Answer that the content is elsewhere."""
    return status(code, {"Location": location})


def text(data: bytes) -> Answer:
    """Answer exactly these bytes, which need not be HTTP."""

    def answer(handler: Handler) -> None:
        handler.wfile.write(data)

    return answer


def stall(start: bytes = b"") -> Answer:
    """Send these bytes, then nothing, and never hang up."""

    def answer(handler: Handler) -> None:
        handler.wfile.write(start)
        handler.server.local.is_closing.wait()

    return answer


def drip(start: bytes, piece: bytes) -> Answer:
    """Send these bytes, then a piece now and then, for longer than any client should wait."""

    def answer(handler: Handler) -> None:
        handler.wfile.write(start)
        handler.drip(piece)

    return answer


def endless(start: bytes) -> Answer:
    """Send these bytes, then as much as the client takes."""

    def answer(handler: Handler) -> None:
        handler.wfile.write(start)
        while not handler.server.local.is_closing.is_set():
            handler.wfile.write(bytes(2**16))

    return answer
