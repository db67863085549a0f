"""Small data files made for the tests, and where the real MNIST is."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

MNIST_DIRECTORY = Path(__file__).resolve().parents[2] / "data" / "mnist"

IDX_CODES = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}
USUAL_NAMES = {
    "x_train": "train-images-idx3-ubyte",
    "y_train": "train-labels-idx1-ubyte",
    "x_test": "t10k-images-idx3-ubyte",
    "y_test": "t10k-labels-idx1-ubyte",
}


def idx_bytes(array: NDArray[Any]) -> bytes:
    """Write an array in the IDX format."""
    header = struct.pack(
        f">BBBB{array.ndim}I", 0, 0, IDX_CODES[array.dtype.str[1:]], array.ndim, *array.shape
    )
    return header + array.astype(array.dtype.newbyteorder(">")).tobytes()


def small_arrays(n_train: int = 12, n_test: int = 5) -> dict[str, NDArray[Any]]:
    """Make the arrays of a data set of 3 classes and non-square images: image i is filled with i."""
    arrays: dict[str, NDArray[Any]] = {}
    for part, n in (("train", n_train), ("test", n_test)):
        arrays[f"x_{part}"] = np.repeat(np.arange(n, dtype=np.uint8), 6 * 4).reshape(n, 6, 4)
        arrays[f"y_{part}"] = np.arange(n, dtype=np.uint8) % 3
    return arrays


def write_idx_directory(directory: Path, arrays: dict[str, NDArray[Any]]) -> Path:
    """Write the arrays as raw IDX files with their usual names."""
    directory.mkdir(exist_ok=True)
    for name, array in arrays.items():
        rank = f"idx{array.ndim}" if name.startswith("x") else "idx1"
        (directory / USUAL_NAMES[name].replace("idx3", rank)).write_bytes(idx_bytes(array))
    return directory


def write_npz(path: Path, arrays: dict[str, Any]) -> Path:
    """Write the arrays as numpy.savez does."""
    np.savez(path, **arrays)
    return path


def npy_bytes(array: NDArray[Any]) -> bytes:
    """Write an array as a .npy file."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array)
    return stream.getvalue()


def write_npz_entries(path: Path, entries: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    """Write a zip file with these contents under NAME.npy, whatever they are."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in entries.items():
            archive.writestr(f"{name}.npy", content)
    return path
