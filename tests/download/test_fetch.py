"""Fetching one address from a real server, which answers rightly or wrongly."""

from __future__ import annotations

import email.utils
import time

import pytest

from cnncli.data import Transfer
from cnncli.data.fetch import FetchError, Patience, fetch
from tests.download.conftest import Waits
from tests.download.server import (
    Answer,
    LocalServer,
    content,
    drip,
    endless,
    stall,
    status,
    text,
    unmeasured,
)
from tests.download.small_dataset import Heard

DATA = bytes(range(256)) * 1000
LIMIT = 300_000

OK = b"HTTP/1.0 200 OK\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def fault(server: LocalServer, waits: Waits, *answers: Answer) -> str:
    """Fetch in vain, and return the cause."""
    server.answers["/a"] = list(answers)
    with pytest.raises(FetchError) as caught:
        fetch(f"{server.url}/a", LIMIT, Heard(), waits.patience)
    return str(caught.value)


@pytest.mark.parametrize(
    ("answer", "n_total"), [(content(DATA), len(DATA)), (unmeasured(DATA), None)], ids=["measured", "not"]
)
def test_the_content_and_how_it_came(
    server: LocalServer, waits: Waits, heard: Heard, answer: Answer, n_total: int | None
) -> None:
    server.answers["/a"] = [answer]
    fetched, transfer = fetch(f"{server.url}/a", LIMIT, heard, waits.patience)
    assert fetched == DATA
    assert transfer == heard.transfers[-1]
    assert (transfer.url, transfer.n_received, transfer.n_total) == (f"{server.url}/a", len(DATA), n_total)
    amounts = [step.n_received for step in heard.transfers]
    assert amounts[0] == 0 and amounts == sorted(amounts) and len(amounts) > 2
    assert waits.seconds == [] and heard.notices == []


def test_chunks_are_put_together(server: LocalServer, waits: Waits, heard: Heard) -> None:
    server.answers["/a"] = [text(CHUNKED + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")]
    assert fetch(f"{server.url}/a", LIMIT, heard, waits.patience)[0] == b"abcde"


@pytest.mark.parametrize("code", [500, 502, 503, 504, 429, 408])
def test_what_may_pass_is_tried_again(server: LocalServer, waits: Waits, heard: Heard, code: int) -> None:
    server.answers["/a"] = [status(code), content(DATA)]
    fetched, _ = fetch(f"{server.url}/a", LIMIT, heard, waits.patience)
    assert fetched == DATA
    assert waits.seconds == [1]
    assert len(heard.notices) == 1
    assert heard.notices[0].startswith(f"{server.url}/a: it answers {code} ")
    assert heard.notices[0].endswith("; trying again in 1 s")


def test_each_wait_is_twice_the_one_before_and_there_are_three_attempts(
    server: LocalServer, waits: Waits
) -> None:
    cause = fault(server, waits, status(503))
    assert cause == "it answers 503 Service Unavailable (3 attempts)"
    assert waits.seconds == [1, 2]
    assert server.requests == ["/a"] * 3


@pytest.mark.parametrize(
    ("header", "wait"),
    [("7", 7), ("0", 1), ("-5", 1), ("soon", 1), ("Wed, 21 Oct 2015 07:28:00 GMT", 1), ("9" * 5000, 1)],
)
def test_a_server_that_names_a_wait_gets_it(
    server: LocalServer, waits: Waits, heard: Heard, header: str, wait: float
) -> None:
    server.answers["/a"] = [status(503, {"Retry-After": header}), content(DATA)]
    assert fetch(f"{server.url}/a", LIMIT, heard, waits.patience)[0] == DATA
    assert waits.seconds == [wait]


def test_a_wait_can_be_named_as_a_date(server: LocalServer, waits: Waits, heard: Heard) -> None:
    date = email.utils.formatdate(time.time() + 20, usegmt=True)
    server.answers["/a"] = [status(429, {"Retry-After": date}), content(DATA)]
    assert fetch(f"{server.url}/a", LIMIT, heard, waits.patience)[0] == DATA
    assert 10 < waits.seconds[0] <= 20


def test_a_server_that_names_too_long_a_wait_is_given_up(server: LocalServer, waits: Waits) -> None:
    cause = fault(server, waits, status(503, {"Retry-After": "3600"}), content(DATA))
    assert cause == "it answers 503 Service Unavailable, and asks to wait 3600 s"
    assert waits.seconds == []


def test_a_content_that_ends_early_is_tried_again(server: LocalServer, waits: Waits, heard: Heard) -> None:
    server.answers["/a"] = [content(DATA[:1000], length=len(DATA)), content(DATA)]
    assert fetch(f"{server.url}/a", LIMIT, heard, waits.patience)[0] == DATA
    assert "it ended after 1000 of 256000 bytes; trying again" in heard.notices[0]
    cause = fault(server, waits, content(DATA[:1000], length=1001))
    assert cause == "it ended after 1000 of 1001 bytes (3 attempts)"


@pytest.mark.parametrize("cut", [CHUNKED + b"5\r\nabc", CHUNKED + b"5\r\nabcde\r\nxyz\r\n"])
def test_chunks_that_end_early_or_make_no_sense(server: LocalServer, waits: Waits, cut: bytes) -> None:
    assert fault(server, waits, text(cut)) == "the connection ended early (3 attempts)"


def test_more_than_can_be_right_is_not_even_begun(server: LocalServer, waits: Waits) -> None:
    cause = fault(server, waits, stall(OK + b"Content-Length: 10000000000\r\n\r\n"))
    assert cause == f"it declares 10000000000 bytes, at most {LIMIT} can be right"
    assert server.requests == ["/a"]


@pytest.mark.parametrize("start", [OK + b"\r\n", CHUNKED + b"FFFFFFFFFF\r\n"], ids=["unmeasured", "chunked"])
def test_an_endless_content_is_left_at_its_limit(
    server: LocalServer, waits: Waits, heard: Heard, start: bytes
) -> None:
    server.answers["/a"] = [endless(start)]
    with pytest.raises(FetchError, match=f"it goes on after {LIMIT} bytes"):
        fetch(f"{server.url}/a", LIMIT, heard, waits.patience)
    assert server.left_alone.wait(5)
    assert heard.transfers[-1].n_received <= LIMIT
    assert server.requests == ["/a"]


@pytest.mark.parametrize(
    ("start", "cause"),
    [
        (b"", "nothing came within 0.3 s (3 attempts)"),
        (b"HTTP/1.0 200", "nothing came within 0.3 s (3 attempts)"),
        (OK + b"Content-Length: 9\r\n\r\nabc", "nothing came within 0.3 s (3 attempts)"),
    ],
    ids=["at once", "in its status", "in its content"],
)
def test_a_server_that_falls_silent(server: LocalServer, waits: Waits, start: bytes, cause: str) -> None:
    """the time-out of a socket ends it."""
    assert fault(server, waits, stall(start)) == cause


def test_headers_that_never_end_are_waited_for_only_so_long(server: LocalServer, waits: Waits) -> None:
    assert fault(server, waits, drip(OK + b"X: ", b"x")) == "there was no answer within 1 s"


def test_a_content_that_never_ends_is_waited_for_only_so_long(server: LocalServer, waits: Waits) -> None:
    cause = fault(server, waits, drip(OK + b"Content-Length: 100000\r\n\r\n", b"x"))
    assert cause == "it was not complete after 1 s"
    assert server.left_alone.wait(5)  # the thread that received has ended


@pytest.mark.parametrize(
    ("n_bytes", "seconds"), [(10_008, 30.1), (60_008, 30.6), (7_840_016, 108.4), (47_040_016, 500.4)]
)
def test_a_large_file_may_take_longer(n_bytes: int, seconds: float) -> None:
    assert Patience().content_seconds(n_bytes) == pytest.approx(seconds, abs=0.05)


def test_what_a_server_writes_about_its_status_is_not_repeated(server: LocalServer, waits: Waits) -> None:
    assert fault(server, waits, text(b"HTTP/1.0 403 \x1b[31mred\r\n\r\n")) == "it answers 403 Forbidden"
    assert fault(server, waits, text(b"HTTP/1.0 499 whatever\r\n\r\n")) == "it answers 499"


def test_a_connection_that_is_dropped_is_tried_again(server: LocalServer, waits: Waits, heard: Heard) -> None:
    server.answers["/a"] = [text(b""), content(DATA)]
    assert fetch(f"{server.url}/a", LIMIT, heard, waits.patience)[0] == DATA
    assert "the connection ended early; trying again" in heard.notices[0]


def test_an_interrupt_ends_it(server: LocalServer, waits: Waits) -> None:
    class Interrupting(Heard):
        def received(self, transfer: Transfer) -> None:
            raise KeyboardInterrupt

    server.answers["/a"] = [drip(OK + b"\r\n", b"x")]
    with pytest.raises(KeyboardInterrupt):
        fetch(f"{server.url}/a", LIMIT, Interrupting(), waits.patience)
    assert server.left_alone.wait(5)
