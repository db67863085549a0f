"""The per-user cache directory, where data sets live that the user has not placed elsewhere."""

from __future__ import annotations

import os
import sys
from pathlib import Path

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
