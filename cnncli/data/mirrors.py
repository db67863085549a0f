"""Downloading a known data set into a directory: what is missing there, verified, and nothing half."""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cnncli.data.atomic_files import write_atomically
from cnncli.data.catalog import CATALOG, KINDS, PARTS, Kind, KnownDataset, KnownFile, Part, identify
from cnncli.data.fetch import PATIENCE, FetchError, Patience, Silent, fetch
from cnncli.data.reading import describe_start, reading
from cnncli.data.sources import DownloadListener, Transfer, find_file
from cnncli.errors import DataError


@dataclass(frozen=True)
class PlacedFile:
    """A verified file of a data set; `url` is where it was downloaded from, None if it was there."""

    path: Path
    known: KnownFile
    url: str | None


@dataclass(frozen=True)
class _Slot:
    """One file of a data set, and what is in its place.

    Attributes
    ----------
    path : of what has one of its names, if anything has
    fault : what is wrong with that
    """

    known: KnownFile
    path: Path | None
    fault: str | None


def download_dataset(
    known: KnownDataset,
    directory: Path,
    *,
    parts: Sequence[Part] = PARTS,
    mirrors: Sequence[str] = (),
    replace_damaged: bool = False,
    listener: DownloadListener | None = None,
) -> list[PlacedFile]:
    """Download the files of a data set that a directory lacks; those that are there are verified.

    A file has its place only once it is complete and verified, so it does no harm to interrupt this,
    or to do it in several processes at once.

    Parameters
    ----------
    mirrors : addresses of directories to try in turn, and no others; none: those of the catalogue
    replace_damaged : whether a file that is not what its name says is replaced, or refused
    listener : is notified of the progress; None notifies no one

    Raises
    ------
    DataError : no mirror gives a file, each is named with the cause; a file cannot be written; or one
        that is there is refused, before anything is downloaded
    """
    listener = Silent() if listener is None else listener
    slots = [_slot(known, directory, part, kind) for part in parts for kind in KINDS]
    damaged = [slot for slot in slots if slot.fault is not None]
    if damaged and not replace_damaged:
        raise DataError("\n".join(_refusal(known, slot) for slot in damaged))
    for slot in damaged:
        listener.notice(f"{slot.path}: {slot.fault}; it is fetched again")
    to_fill = [slot for slot in slots if slot.path is None or slot.fault is not None]
    if to_fill:
        names = ", ".join(slot.known.label for slot in to_fill)
        listener.notice(f"downloading {known.title} ({names}) to {directory}")
    available = Mirrors(mirrors or known.mirrors, listener, PATIENCE)
    placed = []
    for slot in slots:
        if slot.path is not None and slot.fault is None:
            placed.append(PlacedFile(slot.path, slot.known, None))
            continue
        try:
            placed.append(_fill(slot, directory, available, listener))
        except UnavailableError as error:
            raise DataError(_failure(known, directory, to_fill, slot, error)) from None
    return placed


def _slot(known: KnownDataset, directory: Path, part: Part, kind: Kind) -> _Slot:
    with reading(str(directory)):
        if directory.exists() and not directory.is_dir():
            raise DataError(f"{directory}: expected a directory, there is a file")
    file, path = known.files[part, kind], find_file(directory, part, kind)
    return _Slot(file, path, None if path is None else fault_of_file(path, file))


def _fill(slot: _Slot, directory: Path, mirrors: Mirrors, listener: DownloadListener) -> PlacedFile:
    content, transfer = mirrors.get(slot.known)
    path = directory / (slot.known.name + (".gz" if content.startswith(GZIP_START) else ""))
    try:
        place(path, content)
        if slot.path is not None and slot.path != path:
            slot.path.unlink(missing_ok=True)  # or else it might be found before the good one
    except OSError as error:
        # Windows does not rename over a file that someone reads; another process may have brought it
        if fault_of_file(path, slot.known) is not None:
            raise DataError(
                f"{path}: cannot be written: {error.strerror or error}; fix that, or name another "
                "directory (--directory, data.directory)"
            ) from error
    listener.placed(path, transfer)
    return PlacedFile(path, slot.known, transfer.url)


def _refusal(known: KnownDataset, slot: _Slot) -> str:
    return (
        f"{slot.path}: {slot.fault}, expected {known.title}'s {slot.known.label} file; it is left alone: "
        "move it away, and the right one can be downloaded"
    )


def _failure(
    known: KnownDataset, directory: Path, to_fill: Sequence[_Slot], slot: _Slot, error: UnavailableError
) -> str:
    """Word what was tried for one file, and the other ways to what is missing."""
    names = ", ".join(f"{other.known.name}.gz" for other in to_fill[to_fill.index(slot) :])
    lines = [f"{directory}: {known.title}'s {slot.known.name} cannot be downloaded:"]
    lines += [f"{url}: {cause}" for url, cause in error.failures]
    if slot.path is not None:
        lines.append(f"what is there is of no use, remove it: {slot.path}: {slot.fault}")
    lines += [
        f"by hand: put {names} into that directory, gzipped or unpacked, from {known.mirrors[0]} or from "
        "another computer",
        "offline: set data.directory to where the files are (cnncli's repository has MNIST in data/mnist), "
        f"or fetch them from a server in your network: cnncli download {known.name} --mirror URL",
    ]
    return "\n  ".join(lines)


class UnavailableError(Exception):
    """No mirror gives a file.

    Attributes
    ----------
    failures : each address that was tried, with the cause
    """

    def __init__(self, failures: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{url}: {cause}" for url, cause in failures))
        self.failures = failures


class Mirrors:
    """Addresses of directories that offer the same files.

    Parameters
    ----------
    addresses : in the order in which they are tried; one that gives a file is the first for the next
    """

    def __init__(self, addresses: Sequence[str], listener: DownloadListener, patience: Patience) -> None:
        self._addresses = list(addresses)
        self._listener = listener
        self._patience = patience

    def get(self, file: KnownFile) -> tuple[bytes, Transfer]:
        """Return the verified content of a file, gzipped or not, and what its transfer has cost.

        Raises
        ------
        UnavailableError : no mirror gives it
        """
        failures: list[tuple[str, str]] = []
        for address in list(self._addresses):
            if failures:
                self._listener.notice("{}: {}; trying another address".format(*failures[-1]))
            url = f"{address.rstrip('/')}/{file.name}.gz"
            try:
                content, transfer = self._get(url, file)
            except FetchError as error:
                failures.append((url, str(error)))
                continue
            self._prefer(address)
            return content, transfer
        raise UnavailableError(failures)

    def _get(self, url: str, file: KnownFile) -> tuple[bytes, Transfer]:
        # what does not compress grows by a few bytes for each block
        limit_bytes = file.size + file.size // 1000 + 1024
        content, transfer = fetch(url, limit_bytes, self._listener, self._patience)
        fault = fault_of_content(content, file)
        if fault is not None:
            raise FetchError(fault)
        return content, transfer

    def _prefer(self, address: str) -> None:
        self._addresses.remove(address)
        self._addresses.insert(0, address)


GZIP_START = b"\x1f\x8b"

_IDX_START = b"\0\0\x08"
_PIECE_BYTES = 2**20


def fault_of_file(path: Path, expected: KnownFile) -> str | None:
    """Say in words what is wrong with a file; None if it is the expected one, gzipped or not."""
    try:
        with path.open("rb") as file:
            return _fault(file, expected)
    except OSError as error:
        return f"it cannot be read: {error.strerror or error}"


def fault_of_content(content: bytes, expected: KnownFile) -> str | None:
    """Say in words what is wrong with a content; None if it is the expected one, gzipped or not."""
    return _fault(io.BytesIO(content), expected)


def place(path: Path, content: bytes) -> None:
    """Write a file beside its place, flush it to the disk, and rename it: all of it or nothing.

    Raises
    ------
    OSError : it cannot be written; nothing is left of it
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, lambda file: file.write(content))


def _fault(file: io.BufferedIOBase, expected: KnownFile) -> str | None:
    start = file.read(64)
    file.seek(0)
    try:
        if start.startswith(GZIP_START):
            with gzip.GzipFile(fileobj=file, mode="rb") as unpacked:
                return _content_fault(unpacked, expected)
        if start.startswith(_IDX_START):
            return _content_fault(file, expected)
    except EOFError:
        return "its compressed data ends early, as after an interrupted download or copy"
    except (gzip.BadGzipFile, zlib.error) as error:
        return f"it is damaged ({error})"
    return f"this is {describe_start(start)}"


def _content_fault(stream: io.BufferedIOBase, expected: KnownFile) -> str | None:
    # as far as the largest file goes: a swapped one can be told, a bomb does not go off
    limit = max(file.size for known in CATALOG.values() for file in known.files.values())
    digest, n_bytes = hashlib.sha256(), 0
    while n_bytes <= limit and (piece := stream.read(_PIECE_BYTES)):
        digest.update(piece)
        n_bytes += len(piece)
    sha256 = digest.hexdigest()
    if sha256 == expected.sha256:
        return None
    actual = identify(sha256)
    if actual is not None:
        dataset, file = actual
        return f"this is {dataset.title}'s {file.label} file"
    if n_bytes != expected.size:
        length = f"more than {limit}" if n_bytes > limit else f"{n_bytes}"
        return f"it has {length} bytes, uncompressed, instead of {expected.size}"
    return f"it is damaged: the SHA-256 of its uncompressed content is {sha256}, expected {expected.sha256}"
