"""The paths of a configuration, and the data set that may be a name or a path."""

from __future__ import annotations

import os
from pathlib import Path

from cnncli.config.faults import one_line
from cnncli.config.suggestions import nearest
from cnncli.data.catalog import CATALOG
from cnncli.errors import OptionError


def absolute_directory(text: str, base: Path) -> Path:
    """Return a directory as absolute: ``~`` is the home directory, a relative one starts at `base`."""
    return _absolute("directory", text, base)


def dataset_name_or_path(text: str, base: Path) -> str:
    """Return a name of the catalogue as it is, and anything else as an absolute path.

    A word that is no path by its looks must exist: `fashion` is a misspelt name, not a directory
    that went missing.
    """
    if text in CATALOG:
        return text
    path = _absolute("dataset", text, base)
    if _looks_like_a_path(text) or _exists(path):
        return str(path)
    guess = nearest(text, CATALOG)
    raise OptionError(
        "dataset",
        f"one of {', '.join(CATALOG)}, or the path of a directory of IDX files or of an .npz file",
        one_line(text) + (f"; did you mean {guess}?" if guess else ""),
    )


def _absolute(option: str, text: str, base: Path) -> Path:
    if not text.isprintable():
        raise OptionError(option, "a path without control characters", one_line(text))
    try:
        return (base / Path(text).expanduser()).resolve()
    except (OSError, RuntimeError) as error:
        # no such user after ~, or links that run in a circle
        raise OptionError(option, "a path that can be resolved", f"{one_line(text)}: {error}") from None


def _looks_like_a_path(text: str) -> bool:
    return "/" in text or os.sep in text or text.startswith((".", "~")) or text.endswith(".npz")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False
