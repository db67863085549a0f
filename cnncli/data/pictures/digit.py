"""A picture of a digit made like those of MNIST.

The digits of MNIST were scaled to fit into 20 x 20 pixels, keeping their proportions, with grey levels
from the averaging, and put into 28 x 28 pixels so that their centre of mass is in the middle; they are
white on black (LeCun, Cortes and Burges, http://yann.lecun.com/exdb/mnist/).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cnncli.data.pictures.ink import find_ink
from cnncli.data.pictures.resampling import Plane, resized, shrunk
from cnncli.data.pictures.strokes import thickened

SIZE = 28
BOX = 20
WHITE = 255
# index of the pixel that the centre of mass is on: measured, it lies from 13.5 to 14.5 in every image
CENTER = SIZE // 2

# what is larger is shrunk before anything else
_LONGEST = 600
_FINE = 8
# of white: compression leaves such traces on black
_BLACK = 1 / 16
_BRIGHT = 1 / 2
# sides of the box of all images of MNIST, with what is almost black left out
_LEAST_BOX = 16
_TOLERANCE = 0.1


def as_digit(plane: NDArray[np.number], white: float, where: str) -> NDArray[np.uint8]:
    """Make an image of MNIST's kind from a picture of one digit.

    Parameters
    ----------
    plane : ndarray of shape (H, W), from 0 for black to `white`; drawn dark on light or light on dark

    Returns
    -------
    ndarray of shape (28, 28) : unchanged, or only inverted, where it is of that kind already

    Raises
    ------
    DataError : nothing is drawn on the picture
    """
    if plane.shape == (SIZE, SIZE):
        grey = plane.astype(np.float64) / white
        for image in (grey, 1 - grey):
            if _is_finished(image):
                return np.rint(WHITE * image).astype(np.uint8)
    ink = find_ink(shrunk(plane, _LONGEST) / np.float32(white), where)
    return _centered(_scaled(_cropped(ink)))


def _is_finished(image: NDArray[np.float64]) -> bool:
    """Whether an image is white on black, as large as those of MNIST, and centred."""
    border = np.concatenate([image[0], image[-1], image[:, 0], image[:, -1]])
    if np.median(border) > _BLACK or image.max() < _BRIGHT:
        return False
    top, bottom, left, right = _bounds(image > _BLACK)
    distance = np.abs(np.subtract(_center_of_mass(image), CENTER)).max()
    return _LEAST_BOX <= max(bottom - top, right - left) <= BOX and distance <= 0.5 + _TOLERANCE


def _cropped(ink: Plane) -> Plane:
    top, bottom, left, right = _bounds(ink >= 0.5)
    return ink[top:bottom, left:right]


def _scaled(ink: Plane) -> Plane:
    """Scale to fit into 20 x 20, with strokes that are not too thin for that."""
    fine = thickened(ink, BOX * _FINE, _FINE)
    H, W = (max(1, round(size / _FINE)) for size in fine.shape)
    return resized(fine, (H, W))


def _centered(digit: Plane) -> NDArray[np.uint8]:
    H, W = digit.shape
    y, x = (
        # what reaches beyond the field stays in it
        min(max(round(CENTER - center), 0), SIZE - size)
        for center, size in zip(_center_of_mass(digit), (H, W), strict=True)
    )
    field = np.zeros((SIZE, SIZE), np.uint8)
    field[y : y + H, x : x + W] = np.rint(WHITE * np.clip(digit / digit.max(), 0, 1))
    return field


def _center_of_mass(image: NDArray[np.floating]) -> tuple[float, float]:
    mass = float(image.sum())
    rows, columns = image.sum(axis=1), image.sum(axis=0)
    return float(rows @ np.arange(len(rows))) / mass, float(columns @ np.arange(len(columns))) / mass


def _bounds(mask: NDArray[np.bool_]) -> tuple[int, int, int, int]:
    """Return the first row, the row after the last, and the same of the columns."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1
