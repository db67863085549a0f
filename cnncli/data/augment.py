"""Training images moved, turned, resized and slanted at random, by one bilinear resampling each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Augmentation:
    """How far images are changed; every image draws its own numbers, evenly from both directions.

    Attributes
    ----------
    shift : pixels, down or up and right or left
    rotate : degrees, about the centre
    scale : fraction, below 1: 0.1 makes images by up to a tenth larger or smaller
    shear : fraction: 0.1 moves a row sideways by up to a tenth of its distance from the centre
    """

    shift: float = 0.0
    rotate: float = 0.0
    scale: float = 0.0
    shear: float = 0.0

    @property
    def is_identity(self) -> bool:
        """Whether nothing is to be changed."""
        return not (self.shift or self.rotate or self.scale or self.shear)

    def apply(self, images: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        """Return changed images; those given where nothing is to be changed.

        Parameters
        ----------
        images : ndarray of shape (N, C, H, W), uint8 or float32; not modified
        rng : source of five numbers for each image, whichever of them are used

        Returns
        -------
        ndarray of shape (N, C, H, W), float32, in the same units; what comes in from outside is 0
        """
        if self.is_identity:
            return images
        u = rng.uniform(-1, 1, (5, len(images)))
        angle, slant = np.radians(self.rotate) * u[2], self.shear * u[4]
        cosine, sine = (turn(angle) / (1 + self.scale * u[3]) for turn in (np.cos, np.sin))
        # a point is slanted (x += slant * y), resized, turned, and moved; this undoes all but the last
        inverse = np.array([[cosine, -sine], [sine - slant * cosine, cosine + slant * sine]])
        return resample(images, inverse.transpose(2, 0, 1), self.shift * u[:2].T)


def resample(images: NDArray[Any], inverse: NDArray[Any], shift: NDArray[Any]) -> NDArray[np.float32]:
    """Read every pixel from where it comes from, between four pixels by their distance.

    Parameters
    ----------
    images : ndarray of shape (N, C, H, W)
    inverse : ndarray of shape (N, 2, 2): the pixel (y, x) from the centre, less the shift, comes from
        ``inverse @ (y, x)``
    shift : ndarray of shape (N, 2), pixels down and to the right

    Returns
    -------
    ndarray of shape (N, C, H, W), float32; outside an image everything is 0
    """
    N, C, H, W = images.shape
    rows, columns = _sources(inverse.astype(np.float32), shift.astype(np.float32), H, W)
    # one row and column of zeros before the image and two behind it: the neighbours of what lies outside
    padded = np.zeros((N, H + 3, W + 3), np.float32)
    place = _split_off_whole(rows)
    place *= W + 3
    place += _split_off_whole(columns)
    place += (np.arange(N) * padded[0].size + W + 4)[:, None, None]
    pixels = padded.reshape(-1)
    value, below, step = np.empty((3, N, H, W), np.float32)
    result = np.empty(images.shape, np.float32)
    for channel in range(C):
        padded[:, 1:-2, 1:-2] = images[:, channel]
        _between(pixels, place, columns, value, step)
        _between(pixels[W + 3 :], place, columns, below, step)
        below -= value
        below *= rows
        np.add(value, below, out=result[:, channel])
    return result


def _sources(
    inverse: NDArray[np.float32], shift: NDArray[np.float32], H: int, W: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Give the row and the column that each pixel comes from: two arrays (N, H, W)."""
    middle = (H - 1) / 2, (W - 1) / 2
    y = np.arange(H, dtype=np.float32) - np.float32(middle[0]) - shift[:, :1]  # (N, H)
    x = np.arange(W, dtype=np.float32) - np.float32(middle[1]) - shift[:, 1:]  # (N, W)
    sources = []
    for axis, size in enumerate((H, W)):
        across, along = inverse[:, axis, :1] * y, inverse[:, axis, 1:] * x
        source = across[:, :, None] + along[:, None, :]
        source += np.float32(middle[axis])
        # a whole pixel outside there are only zeros, however far it is
        sources.append(np.clip(source, -1, size, out=source))
    return sources[0], sources[1]


def _split_off_whole(numbers: NDArray[np.float32]) -> NDArray[np.intp]:
    """Return the whole parts, rounded down, and leave the fractions."""
    whole = np.floor(numbers)
    numbers -= whole
    return whole.astype(np.intp)


def _between(
    pixels: NDArray[np.float32],
    place: NDArray[np.intp],
    fraction: NDArray[np.float32],
    value: NDArray[np.float32],
    step: NDArray[np.float32],
) -> None:
    """Write what lies between the pixels at some places and their right neighbours to `value`."""
    # the places are valid; "clip" only spares NumPy a copy that "raise" would make
    np.take(pixels, place, out=value, mode="clip")
    np.take(pixels[1:], place, out=step, mode="clip")
    step -= value
    step *= fraction
    value += step
