"""IDX files, raw and gzipped, on the way to images and labels."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cnncli.data.dataset import as_images, as_labels, image_shape, label_count
from cnncli.data.idx import read_idx, read_idx_header
from tests.data.made_files import IDX_CODES, idx_bytes
from tests.fuzz.mutation import EDGES, mutate_bytes
from tests.fuzz.target import Case, require, require_same

ITEM_TYPES = {code: np.dtype(f">{letters}") for letters, code in IDX_CODES.items()}


class IdxTarget:
    """A header that promises, and the items that follow or do not."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "train-images-idx3-ubyte"
        rng = np.random.default_rng(0)
        arrays: list[NDArray[Any]] = [
            rng.integers(0, 256, (5, 6, 4)).astype(np.uint8),
            np.zeros((3, 2, 4, 4), np.uint8),
            np.arange(12, dtype=np.uint8),
            rng.normal(size=(2, 3, 3)).astype(np.float32),
            rng.normal(size=(2, 3, 3)),
            np.arange(-4, 5, dtype=np.int16),
            np.arange(18, dtype=np.int32).reshape(2, 3, 3),
        ]
        self._raw = [idx_bytes(array) for array in arrays]

    def make(self, rng: Random) -> Case:
        raw = rng.choice(self._raw)
        kind = rng.randrange(4)
        if kind == 0:
            raw = mutate_bytes(raw, rng)
        elif kind == 1:
            raw = _with_other_header(raw, rng)
        is_packed = rng.random() < 0.5
        content = gzip.compress(raw, compresslevel=rng.choice((0, 1, 9)), mtime=0) if is_packed else raw
        if kind == 2 or (is_packed and rng.random() < 0.3):
            content = mutate_bytes(content, rng)
        return Case(content)

    def read(self, case: Case) -> None:
        header = read_idx_header(self.path)
        array = read_idx(self.path).array
        expected = _read_independently(case.content)
        require(
            (header.dtype.newbyteorder(">"), header.shape) == (expected.dtype, expected.shape), "the header"
        )
        require_same(array, expected, "the array")
        where = str(self.path)
        if array.ndim == 1:
            require(label_count(header, where) == len(array), "the number of labels")
            require_same(as_labels(array, where), expected, "the labels")
        else:
            shape = image_shape(header, where)
            images = as_images(array, where)
            require(images.shape == (header.shape[0], *shape), "the shape of the images")
            require(bool(np.isfinite(images).all()), "an image is not finite")


def _with_other_header(raw: bytes, rng: Random) -> bytes:
    """Write another type, rank or shape in front of the items."""
    rank = raw[3]
    sizes = list(struct.unpack(f">{rank}I", raw[4 : 4 + 4 * rank]))
    items = raw[4 + 4 * rank :]
    code, other_rank = raw[2], rank
    kind = rng.randrange(4)
    if kind == 0:
        code = rng.choice((*IDX_CODES.values(), 0, 0x0A, 0xFF))
    elif kind == 1:
        sizes[rng.randrange(rank)] = rng.choice(EDGES) % 2**32
    elif kind == 2:
        sizes = rng.sample(sizes, len(sizes))
    else:
        other_rank = rng.choice((0, 1, 2, 3, 4, 5, 255))
    items = rng.choice((items, items, items[:-1], items + b"\0", items * 4, b""))
    return bytes([0, 0, code, other_rank]) + struct.pack(f">{rank}I", *sizes) + items


def _read_independently(content: bytes) -> NDArray[Any]:
    """Read what must be right, as it has been read already."""
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    rank = content[3]
    shape = struct.unpack(f">{rank}I", content[4 : 4 + 4 * rank])
    items = np.frombuffer(content, ITEM_TYPES[content[2]], offset=4 + 4 * rank)
    return items.reshape(shape)
