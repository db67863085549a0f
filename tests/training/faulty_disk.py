"""A disk that refuses one operation, or every one from a certain one on."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path
from typing import IO, Any

import pytest

ERRORS = (errno.ENOSPC, errno.EROFS, errno.EIO)


class FaultyDisk:
    """Counts what is written to a directory, and fails at one operation.

    Attributes
    ----------
    count : operations so far: opening, writing, flushing to the disk, renaming, linking, removing
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
        self._directory = directory
        self._fails_at: int | None = None
        self._goes_on_failing = False
        self.count = 0
        patch = monkeypatch.setattr
        path_open = Path.open

        def open_file(path: Path, mode: str = "r", *rest: Any, **options: Any) -> IO[Any]:
            if mode not in ("wb", "xb") or not path.is_relative_to(directory):
                return path_open(path, mode, *rest, **options)
            self.operate(path)
            # small, so that a checkpoint takes several writes
            return io.BufferedWriter(_FaultyFile(self, path, mode), buffer_size=4096)

        patch(Path, "open", open_file)
        patch(os, "fsync", self._counted(lambda descriptor: None))  # no power cut is played here
        patch(os, "link", self._counted(os.link))
        for name in ("replace", "unlink", "mkdir"):
            patch(Path, name, self._counted(getattr(Path, name)))

    def fail_at(self, operation: int, *, go_on: bool) -> None:
        """Fail at the operation with this number, from 0, and go on failing if so told."""
        self.count, self._fails_at, self._goes_on_failing = 0, operation, go_on

    def mend(self) -> None:
        """Fail no more."""
        self._fails_at = None

    def operate(self, *places: object) -> None:
        """Take part in an operation, or fail."""
        number, self.count = self.count, self.count + 1
        if self._fails_at is None:
            return
        if number == self._fails_at or (self._goes_on_failing and number > self._fails_at):
            code = ERRORS[self._fails_at % len(ERRORS)]
            raise OSError(code, os.strerror(code), str(places[0]) if places else None)

    def _counted(self, function: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            self.operate(*arguments)
            return function(*arguments, **options)

        return call


class _FaultyFile(io.FileIO):
    def __init__(self, disk: FaultyDisk, path: Path, mode: str) -> None:
        super().__init__(path, mode)
        self._disk = disk

    def write(self, data: Any) -> int:
        self._disk.operate()
        return super().write(data)
