"""Pictures given to ``cnncli predict``: pictures and arrays, on the way to what a network takes."""

from __future__ import annotations

import io
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cnncli.data import Normalization
from cnncli.data.pictures import Preparation, read_pictures
from tests.data.made_files import npy_bytes
from tests.fuzz.mutation import TOKENS, mutate_bytes, mutate_text
from tests.fuzz.npy_files import mutate_npy
from tests.fuzz.target import Case, require, require_same

PREPARATIONS = {
    "digit": Preparation((1, 28, 28), Normalization((33.3,), (78.6,))),
    "floats": Preparation((1, 28, 28), Normalization((0.13,), (0.31,))),
    "as stored": Preparation((1, 6, 5), Normalization((100.0,), (70.0,))),
    "colours": Preparation((3, 6, 5), Normalization((100.0,) * 3, (70.0,) * 3)),
}
LIMIT = 5


class PredictTarget:
    """A picture; what is read is held against another reader, what is prepared against its promises."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "digit"
        rng = np.random.default_rng(0)
        small = rng.integers(0, 256, (6, 5)).astype(np.uint8)
        sheet = np.full((40, 30), 220, np.uint8)
        sheet[8:30, 12:16] = 30
        arrays: list[NDArray[Any]] = [
            small,
            sheet,
            np.stack([sheet, 255 - sheet])[:, None],
            sheet / 255,
            np.asfortranarray(rng.normal(100, 70, (3, 6, 5)).astype(np.float32)),
        ]
        self._arrays = [npy_bytes(array) for array in arrays]
        plain = "\n".join(" ".join(map(str, row)) for row in small.tolist())
        self._plain = f"P2\n# a digit\n5 6\n255\n{plain}\n"
        self._raw = [
            b"P5\n5 6\n255\n" + small.tobytes(),
            b"P5 30 40 255 " + sheet.tobytes(),
            b"P5\n5 6\n65535\n" + (small.astype(">u2") * 257).tobytes(),
        ]

    def make(self, rng: Random) -> Case:
        kind = rng.randrange(6)
        if kind == 0:
            content = mutate_text(self._plain, rng, (*TOKENS, "P5", "P2", "65536")).encode("utf-8", "replace")
        elif kind <= 2:
            content = mutate_bytes(rng.choice((*self._raw, self._plain.encode())), rng)
        else:
            content = mutate_npy(rng.choice(self._arrays), rng)
        return Case(content, (rng.choice(list(PREPARATIONS)),))

    def read(self, case: Case) -> None:
        preparation = PREPARATIONS[case.arguments[0]]
        pictures = read_pictures(str(self.path), preparation.image_shape, LIMIT)
        require(1 <= len(pictures.images) <= LIMIT, "the number of pictures")
        if case.content.startswith(b"\x93NUMPY"):
            stored = np.load(io.BytesIO(case.content), allow_pickle=False)
            stored = stored.reshape(-1, *pictures.images.shape[1:])
            require_same(pictures.images, stored[:LIMIT], "the images")
        for place in range(len(pictures.images)):
            image = preparation.prepare(pictures, place)
            require(image.shape == preparation.image_shape, "the shape")
            require(image.dtype in (np.uint8, np.float32), "the type")
            require(bool(np.isfinite(image).all()), "a number is not finite")
            require(not preparation.makes_digits or image.max() in (1, 255), "nothing is white")
