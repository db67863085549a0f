"""The per-user cache, where data sets live that the user has not placed elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from cnncli.data.catalog import KnownDataset
from cnncli.data.directory import IdxDirectory, find_file
from cnncli.data.listener import DownloadListener
from cnncli.data.source import KINDS, ArrayHeader, Kind, Part
from cnncli.errors import DataError


def cache_directory(name: str) -> Path:
    """Return the directory of one data set in the platform's cache; it need not exist.

    ``$XDG_CACHE_HOME/cnncli/NAME`` or ``~/.cache/cnncli/NAME``; ``~/Library/Caches/cnncli/NAME`` on
    macOS; ``%LOCALAPPDATA%\\cnncli\\NAME`` on Windows.

    Raises
    ------
    DataError : the user has no home directory
    """
    return _platform_cache() / "cnncli" / name


def _platform_cache() -> Path:
    if sys.platform == "darwin":
        return _home() / "Library" / "Caches"
    variable = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME"
    # a relative path would follow the working directory; the XDG specification says to ignore it
    directory = Path(os.environ.get(variable, ""))
    if directory.is_absolute():
        return directory
    return _home() / ("AppData/Local" if sys.platform == "win32" else ".cache")


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:
        raise DataError(
            "there is no home directory to cache data sets in; set data.directory to where the files are"
        ) from error


class CachedDirectory:
    """A directory of the program's own: files of a known data set that it lacks are downloaded.

    Parameters
    ----------
    directory : where the files are, or will be
    parts : which of them are needed
    listener : is told of a download; None tells no one

    Raises
    ------
    DataError : a file is missing and cannot be downloaded
    """

    def __init__(
        self, directory: Path, parts: Sequence[Part], known: KnownDataset, listener: DownloadListener | None
    ) -> None:
        self._directory = directory
        self._parts = parts
        self._known = known
        self._listener = listener
        is_complete = all(find_file(directory, part, kind) for part in parts for kind in KINDS)
        self._files = self._open() if is_complete else self._download()

    def header(self, part: Part, kind: Kind) -> ArrayHeader:
        """Read type and shape of one file."""
        return self._files.header(part, kind)

    def read(self, part: Part, kind: Kind) -> NDArray[Any]:
        """Read and verify one file; one that is damaged, or another one, is downloaded again."""
        try:
            return self._files.read(part, kind)
        except DataError:
            self._files = self._download()
        return self._files.read(part, kind)

    def where(self, part: Part, kind: Kind) -> str:
        """Return the path of one file."""
        return self._files.where(part, kind)

    def _open(self) -> IdxDirectory:
        return IdxDirectory(self._directory, self._parts, self._known)

    def _download(self) -> IdxDirectory:
        # here, as the modules for the web take a fifth of the time that every command needs to start
        from cnncli.data.download import download_dataset

        download_dataset(
            self._known, self._directory, parts=self._parts, replace_damaged=True, listener=self._listener
        )
        return self._open()
