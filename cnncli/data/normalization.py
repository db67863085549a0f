"""Mean and standard deviation per channel, taken from the training images."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cnncli.errors import DataError, ShapeError

# float64 copies of one block stay in the cache
_BLOCK_BYTES = 2**20


@dataclass(frozen=True)
class Normalization:
    """Maps each channel of the images to mean 0 and standard deviation 1.

    Parameters
    ----------
    mean, std : one number per channel, in the images' own units (0 to 255 for uint8 images);
        finite, `std` above 0

    Raises
    ------
    DataError : the numbers are not such
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.mean or len(self.mean) != len(self.std):
            raise DataError(
                "normalization: expected one mean and one std per channel, "
                f"got {len(self.mean)} and {len(self.std)}"
            )
        if not all(map(math.isfinite, self.mean)):
            raise DataError(f"normalization: expected finite means, got {list(self.mean)}")
        if not all(math.isfinite(std) and std > 0 for std in self.std):
            raise DataError(f"normalization: expected finite stds above 0, got {list(self.std)}")

    @classmethod
    def from_images(cls, images: NDArray[Any]) -> Normalization:
        """Measure images (N, C, H, W), accumulated in float64; a constant channel gets std 1.

        Raises
        ------
        ShapeError : there are no images, or they are not of rank 4
        """
        if images.ndim != 4 or images.size == 0:
            raise ShapeError(f"normalization: expected images of shape (N, C, H, W), got {images.shape}")
        count = images.size // images.shape[1]
        # Two passes: the squares of large numbers that hardly vary would cancel in one.
        mean = sum(block.sum(axis=(0, 2, 3)) for block in _blocks(images)) / count
        squares = sum(_squared_distances(block, mean) for block in _blocks(images))
        std = np.sqrt(squares / count)
        # below the resolution of float32 there is only rounding, and 1 / std would blow it up
        resolution = np.finfo(np.float32)
        constant = std <= np.maximum(resolution.eps * np.abs(mean), resolution.tiny)
        return cls(tuple(mean.tolist()), tuple(np.where(constant, 1.0, std).tolist()))

    def apply(
        self, images: NDArray[Any], dtype: Any = np.float32, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Return (images - mean) / std with the batch last.

        Parameters
        ----------
        images : ndarray of shape (N, C, H, W), uint8 or floats; not modified
        dtype : float32 or float64, also of `out`
        out : contiguous ndarray of shape (C, H, W, N) to write to; allocated by default

        Returns
        -------
        ndarray of shape (C, H, W, N) : `out`

        Raises
        ------
        ShapeError : images or `out` have another shape or dtype
        """
        if images.ndim != 4 or images.shape[1] != len(self.mean):
            raise ShapeError(
                f"normalization of {len(self.mean)} channels: expected images of shape "
                f"(N, {len(self.mean)}, H, W), got {images.shape}"
            )
        shape = (*images.shape[1:], images.shape[0])
        if out is None:
            out = np.empty(shape, dtype)
        elif out.shape != shape or out.dtype != dtype or not out.flags.c_contiguous:
            raise ShapeError(
                f"normalization: expected out as a contiguous {np.dtype(dtype)} array of shape {shape}, "
                f"got {out.dtype} of shape {out.shape}"
            )
        # transposing the bytes first moves a quarter of what transposing floats would
        np.copyto(out, np.ascontiguousarray(images.transpose(1, 2, 3, 0)))
        for channel, mean, std in zip(out, self.mean, self.std, strict=True):
            channel -= mean
            channel /= std
        return out

    def to_dict(self) -> dict[str, list[float]]:
        """Return plain lists that survive JSON without losing a bit."""
        return {"mean": list(self.mean), "std": list(self.std)}

    @classmethod
    def from_dict(cls, data: object) -> Normalization:
        """Rebuild what `to_dict` gave.

        Raises
        ------
        DataError : `data` is something else
        """
        if not isinstance(data, Mapping) or set(data) != {"mean", "std"}:
            raise DataError(f"normalization: expected the entries mean and std, got {data!r}")
        return cls(_numbers("mean", data["mean"]), _numbers("std", data["std"]))


def _blocks(images: NDArray[Any]) -> Iterator[NDArray[np.float64]]:
    step = max(1, _BLOCK_BYTES // (8 * math.prod(images.shape[1:])))
    for start in range(0, len(images), step):
        yield images[start : start + step].astype(np.float64)


def _squared_distances(block: NDArray[np.float64], mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum the squared distances from the mean of each channel: (C,)."""
    block -= mean[:, np.newaxis, np.newaxis]
    distances: NDArray[np.float64] = np.einsum("nchw,nchw->c", block, block)
    return distances


def _numbers(name: str, values: object) -> tuple[float, ...]:
    if not isinstance(values, (list, tuple)) or not all(
        isinstance(value, (int, float)) and not isinstance(value, bool) for value in values
    ):
        raise DataError(f"normalization: expected {name} to be a list of numbers, got {values!r}")
    return tuple(float(value) for value in values)
