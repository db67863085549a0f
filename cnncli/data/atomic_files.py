"""Files that are there whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import errno
import glob
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

# what file systems say that have no hard links
_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


def write_atomically(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file beside its place, flush it to the disk, and rename it: old or new, never half.

    Raises
    ------
    OSError : the file cannot be written; what stood at `path` is untouched
    """
    temporary = _temporary_beside(path)
    try:
        _write_through(temporary, write)
        temporary.replace(path)
    except BaseException:
        _remove(temporary)
        raise
    _sync_directory(path.parent)


def write_text_atomically(path: Path, text: str) -> None:
    """Write a UTF-8 text as `write_atomically` does."""
    write_atomically(path, lambda file: _write_utf8(file, text))


def write_text_exclusively(path: Path, text: str) -> None:
    """Write a UTF-8 text where nothing stands yet: the whole file appears at once, or none.

    Raises
    ------
    FileExistsError : something stands there; of several programs at once only one succeeds
    OSError : the file cannot be written; nothing is left behind
    """
    temporary = _temporary_beside(path)
    try:
        _write_through(temporary, lambda file: _write_utf8(file, text))
        try:
            os.link(temporary, path)  # unlike a rename, it never replaces anything
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            _write_new(path, text)
    finally:
        _remove(temporary)
    _sync_directory(path.parent)


def temporaries(path: Path) -> list[Path]:
    """Find what programs that were killed while they wrote `path` left beside it."""
    return list(path.parent.glob(f".{glob.escape(path.name)}.*.tmp"))


def _temporary_beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")


def _write_through(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file and wait until it is on the disk."""
    with path.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())


def _write_new(path: Path, text: str) -> None:
    with path.open("xb") as file:
        try:
            _write_utf8(file, text)
            file.flush()
        except BaseException:
            _remove(path)
            raise


def _write_utf8(file: IO[bytes], text: str) -> None:
    file.write(text.encode("utf-8"))


def _remove(path: Path) -> None:
    """Remove a file if it can be done: what went wrong before is what there is to tell."""
    with suppress(OSError):
        path.unlink(missing_ok=True)


def _sync_directory(directory: Path) -> None:
    # without this a power cut may undo the rename; Windows has no such call
    if os.name != "posix":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # what network file systems say that cannot do it
            raise
    finally:
        os.close(descriptor)
