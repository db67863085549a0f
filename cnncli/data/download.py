"""Downloading a known data set into a directory: what is missing there, and nothing half."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cnncli.data.catalog import KnownDataset, KnownFile
from cnncli.data.directory import find_file
from cnncli.data.fetch import PATIENCE
from cnncli.data.listener import DownloadListener, Silent
from cnncli.data.mirrors import Mirrors, UnavailableError
from cnncli.data.placing import GZIP_START, fault_of_file, place
from cnncli.data.source import KINDS, PARTS, Kind, Part
from cnncli.data.streams import reading
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
    listener : is told how it goes; None tells no one

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
                f"{path}: cannot be written: {error.strerror or error}; mend that, or name another "
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
