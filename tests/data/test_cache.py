"""The per-user cache directory."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cnncli.data import cache_directory
from cnncli.errors import DataError

linux = pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="XDG is for other systems")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


@linux
def test_xdg_cache_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "elsewhere"))
    assert cache_directory("mnist") == home / "elsewhere" / "cnncli" / "mnist"


@linux
@pytest.mark.parametrize("value", [None, "", "relative/path"])
def test_dot_cache_in_the_home_directory(
    home: Path, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    if value is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", value)
    assert cache_directory("mnist") == home / ".cache" / "cnncli" / "mnist"


def test_macos(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_directory("mnist") == home / "Library" / "Caches" / "cnncli" / "mnist"


def test_windows(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    assert cache_directory("mnist") == home / "AppData" / "Local" / "cnncli" / "mnist"
    monkeypatch.setenv("LOCALAPPDATA", str(home / "local"))
    assert cache_directory("mnist") == home / "local" / "cnncli" / "mnist"


def test_nothing_is_created(home: Path) -> None:
    cache_directory("mnist")
    assert list(home.iterdir()) == []


def test_no_home_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    with pytest.raises(DataError, match=r"no home directory .* set data.directory"):
        cache_directory("mnist")
