"""Small data sets that take the place of the known ones, and what is told of a download."""

from __future__ import annotations

import gzip
import hashlib
import struct
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from cnncli.data import CATALOG, KnownDataset, KnownFile, Transfer
from cnncli.data.catalog import KINDS, PARTS, Kind, Part
from tests.download.server import LocalServer, content

SIZES: dict[Part, int] = {"train": 40, "test": 20}


@dataclass(frozen=True)
class SmallDataset:
    """A known data set of few images, with the content of its files by their names."""

    known: KnownDataset
    raw: dict[str, bytes]

    @property
    def names(self) -> list[str]:
        return list(self.raw)

    def gzipped(self, name: str) -> bytes:
        return gzip.compress(self.raw[name], mtime=0)

    def write(self, directory: Path) -> Path:
        """Write the files as mirrors offer them."""
        directory.mkdir(parents=True, exist_ok=True)
        for name in self.names:
            (directory / f"{name}.gz").write_bytes(self.gzipped(name))
        return directory

    def serve(self, server: LocalServer, path: str = "") -> str:
        """Have a server offer the files, and return the address of the mirror."""
        for name in self.names:
            server.answers[f"{path}/{name}.gz"] = [content(self.gzipped(name))]
        return f"{server.url}{path}"


def small_dataset(name: str, seed: int) -> SmallDataset:
    """Make 40 training and 20 test images of 28x28, ten classes, under the names of a known data set."""
    rng = np.random.default_rng(seed)
    raw, files = {}, {}
    for part, n in SIZES.items():
        images = struct.pack(">4B3I", 0, 0, 8, 3, n, 28, 28) + rng.bytes(n * 28 * 28)
        labels = struct.pack(">4BI", 0, 0, 8, 1, n) + bytes((np.arange(n) % 10).astype(np.uint8) ^ (seed % 2))
        contents: dict[Kind, bytes] = {"images": images, "labels": labels}
        for kind, data in contents.items():
            file_name = CATALOG[name].files[part, kind].name
            raw[file_name] = data
            files[part, kind] = KnownFile(file_name, len(data), hashlib.sha256(data).hexdigest())
    known = KnownDataset(
        name=name,
        title=CATALOG[name].title,
        mirrors=("http://127.0.0.1:1/first", "http://127.0.0.1:1/second"),
        image_shape=(1, 28, 28),
        class_count=10,
        train_size=SIZES["train"],
        test_size=SIZES["test"],
        files={(part, kind): files[part, kind] for part in PARTS for kind in KINDS},
    )
    return SmallDataset(known, raw)


@dataclass
class Heard:
    """Listens to a download and remembers all of it."""

    notices: list[str] = field(default_factory=list)
    transfers: list[Transfer] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)

    def notice(self, message: str) -> None:
        self.notices.append(message)

    def received(self, transfer: Transfer) -> None:
        self.transfers.append(transfer)

    def placed(self, path: Path, transfer: Transfer) -> None:
        self.paths.append(path)
        assert transfer.n_received == path.stat().st_size
