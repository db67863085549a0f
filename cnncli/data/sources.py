"""What a data set is read from: a directory of IDX files, an .npz file, or the program's own cache."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from cnncli.data.catalog import KINDS, Kind, KnownDataset, Part, file_names, identify
from cnncli.data.idx import read_idx, read_idx_header
from cnncli.data.numpy_files import open_npz
from cnncli.data.reading import ArrayHeader, reading
from cnncli.errors import DataError

# numbers of channels that pictures have
CHANNEL_COUNTS = (1, 3, 4)


class Source(Protocol):
    """Files that hold the images and the labels of a data set."""

    def header(self, part: Part, kind: Kind) -> ArrayHeader:
        """Read what one array will be, without reading it."""

    def read(self, part: Part, kind: Kind) -> NDArray[Any]:
        """Read one array: fresh, writable, in native byte order."""

    def where(self, part: Part, kind: Kind) -> str:
        """Name the place of one array for an error message."""


@dataclass(frozen=True)
class Transfer:
    """What has come of the content at one address.

    Attributes
    ----------
    n_total : bytes that the server declares; None where it does not say
    seconds : since the request
    """

    url: str
    n_received: int
    n_total: int | None
    seconds: float


class DownloadListener(Protocol):
    """Is notified of the progress of a download."""

    def notice(self, message: str) -> None:
        """Take what the user should know, in one line."""

    def received(self, transfer: Transfer) -> None:
        """Take how far the content of an address has come."""

    def placed(self, path: Path, transfer: Transfer) -> None:
        """Take that a content is verified and has its place, and what its transfer has cost."""


class NpzDataset:
    """An .npz file with x_train, y_train, x_test and y_test.

    Images are (N, H, W), (N, C, H, W), or (N, H, W, C). Channels count as last only where nothing else
    is likely: the last axis has length 1, 3 or 4, and the second axis has not.

    Raises
    ------
    DataError : it is not an .npz file, or arrays of the `parts` are missing; all of them are named
    """

    def __init__(self, path: Path, parts: Sequence[Part]) -> None:
        self._path = path
        needed = [_array_name(part, kind) for part in parts for kind in KINDS]
        with open_npz(path) as npz:
            missing = [name for name in needed if name not in npz.names]
            if missing:
                raise DataError(
                    f"{path}: has no {', '.join(missing)}; expected the arrays x_train, y_train, x_test and "
                    f"y_test, it holds {npz.listing()}"
                )

    def header(self, part: Part, kind: Kind) -> ArrayHeader:
        """Read type and shape of one array, channels first."""
        with open_npz(self._path) as npz:
            header = npz.header(_array_name(part, kind))
        if kind == "images" and _channels_are_last(header.shape):
            N, H, W, C = header.shape
            return ArrayHeader(header.dtype, (N, C, H, W))
        return header

    def read(self, part: Part, kind: Kind) -> NDArray[Any]:
        """Read one array, channels first."""
        with open_npz(self._path) as npz:
            array = npz.read(_array_name(part, kind))
        return array.transpose(0, 3, 1, 2) if kind == "images" and _channels_are_last(array.shape) else array

    def where(self, part: Part, kind: Kind) -> str:
        """Name the file and the array."""
        return f"{self._path}: {_array_name(part, kind)}"


def _array_name(part: Part, kind: Kind) -> str:
    return f"{'x' if kind == 'images' else 'y'}_{part}"


def _channels_are_last(shape: tuple[int, ...]) -> bool:
    return len(shape) == 4 and shape[3] in CHANNEL_COUNTS and shape[1] not in CHANNEL_COUNTS


class IdxDirectory:
    """Four IDX files under one of their usual names (`catalog.file_names`).

    Parameters
    ----------
    directory : where the files are
    parts : which of them are needed
    known : the data set that they must be, told by their SHA-256; None accepts any

    Raises
    ------
    DataError : files are missing; all of them are named
    """

    def __init__(self, directory: Path, parts: Sequence[Part], known: KnownDataset | None = None) -> None:
        self._known = known
        found = {(part, kind): find_file(directory, part, kind) for part in parts for kind in KINDS}
        missing = [key for key, path in found.items() if path is None]
        if missing:
            raise DataError(_missing_files(directory, missing, known))
        self._paths = {key: path for key, path in found.items() if path is not None}

    def header(self, part: Part, kind: Kind) -> ArrayHeader:
        """Read type and shape of one file."""
        return read_idx_header(self._paths[part, kind])

    def read(self, part: Part, kind: Kind) -> NDArray[Any]:
        """Read one file, and verify it where the data set is known."""
        path = self._paths[part, kind]
        content = read_idx(path)
        if self._known is not None:
            _verify(path, content.sha256, self._known, part, kind)
        return content.array

    def where(self, part: Part, kind: Kind) -> str:
        """Return the path of one file."""
        return str(self._paths[part, kind])


def find_file(directory: Path, part: Part, kind: Kind) -> Path | None:
    """Return the first file in the directory that has one of the names of this part and kind."""
    with reading(str(directory)):
        # a folder can carry the name too: some archives unpack each file into one
        return next((path for name in file_names(part, kind) if (path := directory / name).is_file()), None)


def _verify(path: Path, sha256: str, known: KnownDataset, part: Part, kind: Kind) -> None:
    """Raise `DataError` unless the content is the known data set's file."""
    expected = known.files[part, kind]
    if sha256 == expected.sha256:
        return
    wanted = f"{known.title}'s {expected.label} file"
    advice = f"put {expected.name}.gz from {known.mirrors[0]} in its place"
    actual = identify(sha256)
    if actual is None:
        raise DataError(
            f"{path}: this is not {wanted}, or it is damaged: the SHA-256 of its uncompressed content is "
            f"{sha256}, expected {expected.sha256}; {advice}, or set data.dataset to the path of the "
            "directory for images of your own"
        )
    dataset, file = actual
    if dataset is not known:
        advice += f", or set data.dataset to {dataset.name}"
    raise DataError(f"{path}: this is {dataset.title}'s {file.label} file, expected {wanted}; {advice}")


def _missing_files(directory: Path, missing: Sequence[tuple[Part, Kind]], known: KnownDataset | None) -> str:
    with reading(str(directory)):
        problem = "files are missing here" if directory.is_dir() else "there is no such directory"
    preferred, dotted = ([file_names(*key)[place] for key in missing] for place in (0, 2))
    looked_for = f"looked for {', '.join(preferred)} (also spelled {dotted[0]}, and ending in .gz)"
    if known is None:
        advice = (
            "a data set directory holds IDX files of train-images, train-labels, t10k-images and "
            "t10k-labels (idx4 in the name of images that have an axis of channels)"
        )
    else:
        names = ", ".join(f"{known.files[key].name}.gz" for key in missing)
        advice = (
            f"place {known.title}'s {names} from {known.mirrors[0]} there, compressed or not, "
            f"have them fetched with cnncli download {known.name} --directory {directory}, "
            "or set data.directory to where they are"
        )
    return f"{directory}: {problem}: {looked_for}; {advice}"


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
    listener : is notified of a download; None notifies no one

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
        from cnncli.data.mirrors import download_dataset

        download_dataset(
            self._known, self._directory, parts=self._parts, replace_damaged=True, listener=self._listener
        )
        return self._open()
