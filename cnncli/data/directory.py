"""A data set as a directory of four IDX files, of any kind or of a known data set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from cnncli.data.catalog import KnownDataset, file_names, identify
from cnncli.data.idx import read_idx, read_idx_header
from cnncli.data.source import KINDS, ArrayHeader, Kind, Part
from cnncli.data.streams import reading
from cnncli.errors import DataError


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
