"""Settings of every test."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings

from cnncli.data import fetch, mirrors

# examples are not timed: a busy machine must not fail a test
settings.register_profile("cnncli", deadline=None)
settings.load_profile("cnncli")


@pytest.fixture(scope="session", autouse=True)
def no_network() -> Iterator[None]:
    """Let no test reach beyond this machine, nor wait for what it does not reach."""
    look_up = socket.getaddrinfo

    def look_up_here(host: str, *arguments: Any, **options: Any) -> Any:
        if host not in ("127.0.0.1", "localhost"):
            raise socket.gaierror(socket.EAI_NONAME, "there is no network in a test")
        return look_up(host, *arguments, **options)

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(socket, "getaddrinfo", look_up_here)
        monkeypatch.setattr(mirrors, "PATIENCE", replace(fetch.PATIENCE, sleep=lambda seconds: None))
        yield
