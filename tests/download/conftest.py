"""Local servers, small data sets in the place of the known ones, and no waiting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from cnncli.data import CATALOG
from cnncli.data.fetch import Patience
from tests.cli.conftest import cnncli
from tests.download.server import LocalServer
from tests.download.small_dataset import Heard, SmallDataset, small_dataset

__all__ = ["cnncli"]


@dataclass
class Waits:
    """Patience that is soon at its end, and the waits between attempts that were asked of it."""

    seconds: list[float] = field(default_factory=list)

    @property
    def patience(self) -> Patience:
        return Patience(
            stall_seconds=0.3,
            answer_seconds=1,
            base_seconds=1,
            bytes_per_second=1e9,
            sleep=self.seconds.append,
        )


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for scheme in ("http", "https", "all", "no"):
        for name in (f"{scheme}_proxy", f"{scheme}_proxy".upper()):
            monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[LocalServer]:
    with LocalServer() as local:
        yield local


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    """Make every download but those with a patience of their own take this one."""
    made = Waits()
    monkeypatch.setattr("cnncli.data.mirrors.PATIENCE", made.patience)
    return made


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def mnist(monkeypatch: pytest.MonkeyPatch) -> SmallDataset:
    """Put small data sets in the place of both known ones, and return the one that is now MNIST."""
    small, fashion = small_dataset("mnist", 0), small_dataset("fashion-mnist", 1)
    monkeypatch.setitem(CATALOG, "mnist", small.known)
    monkeypatch.setitem(CATALOG, "fashion-mnist", fashion.known)
    return small


@pytest.fixture
def fashion(mnist: SmallDataset) -> SmallDataset:
    return small_dataset("fashion-mnist", 1)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the cache directory of mnist."""
    monkeypatch.setattr("cnncli.data.sources._platform_cache", lambda: tmp_path / "cache")
    return tmp_path / "cache" / "cnncli" / "mnist"


def with_mirrors(small: SmallDataset, monkeypatch: pytest.MonkeyPatch, *mirrors: str) -> SmallDataset:
    """Give a known data set other mirrors."""
    known = replace(small.known, mirrors=mirrors)
    monkeypatch.setitem(CATALOG, known.name, known)
    return replace(small, known=known)
