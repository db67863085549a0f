"""Data sets in one .npz file."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np

from cnncli.data import describe_dataset, load_dataset
from tests.data.made_files import npy_bytes, small_arrays
from tests.fuzz.mutation import mutate_bytes
from tests.fuzz.target import Case, require, require_same
from tests.fuzz.zip_files import arrays_in, mutate_zip, stored, zip_bytes


class NpzTarget:
    """Zip structure, the headers of arrays, and their values; held against what NumPy reads."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "digits.npz"
        arrays = small_arrays()
        self._arrays = {name: npy_bytes(array) for name, array in arrays.items()}
        floats = {f"x_{part}": npy_bytes(arrays[f"x_{part}"] / 7) for part in ("train", "test")}
        self._float_arrays = self._arrays | floats
        self._whole = zip_bytes([stored(f"{name}.npy".encode(), data) for name, data in self._arrays.items()])

    def make(self, rng: Random) -> Case:
        if rng.random() < 0.2:
            return Case(mutate_bytes(self._whole, rng))
        return Case(mutate_zip(rng.choice((self._arrays, self._arrays, self._float_arrays)), rng))

    def read(self, case: Case) -> None:
        description = describe_dataset(str(self.path))
        dataset = load_dataset(str(self.path))
        require(description.image_shape == dataset.image_shape, "the described shape")
        require(description.class_count == dataset.class_count, "the described number of classes")
        require(description.train_size == len(dataset.train), "the described number of images")
        expected = arrays_in(self.path)
        for part, split in (("train", dataset.train), ("test", dataset.test)):
            images = expected[f"x_{part}"]
            if images.shape != split.images.shape:
                images = images[:, np.newaxis] if images.ndim == 3 else np.moveaxis(images, -1, 1)
            kind = np.uint8 if images.dtype == np.uint8 else np.float32
            require_same(split.images, images.astype(kind), f"x_{part}")
            require_same(split.labels, expected[f"y_{part}"], f"y_{part}")
            require(bool(np.isfinite(split.images).all()), f"x_{part} is not finite")
