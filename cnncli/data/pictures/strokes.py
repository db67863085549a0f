"""The width of strokes: a thin pen on a large sheet would fade away in 20 x 20 pixels."""

from __future__ import annotations

import math

import numpy as np

from cnncli.data.pictures.resampling import Plane, resized

# pixels of the small image; MNIST's strokes are rarely thinner
LEAST_WIDTH = 2.0
# a pixelated outline is longer than the smooth one by this factor, in the mean over all directions
_OUTLINE = 4 / math.pi


def thickened(ink: Plane, size: int, pixel: int) -> Plane:
    """Resample ink so that its longer side is `size`, and make its strokes wide enough.

    Parameters
    ----------
    ink : ndarray of shape (H, W), from 0 to 1, cropped to what is drawn
    pixel : side of a pixel of the small image that will be made of the result

    Returns
    -------
    ndarray of shape (H', W') : the larger is `size`, both are multiples of `pixel`
    """
    width = stroke_width(ink) / max(ink.shape)
    least = LEAST_WIDTH * pixel / size
    # solves width * (size - 2 * radius) + 2 * radius = least * size
    radius = max(0, round(size * (least - width) / (2 * (1 - width)))) if width < least else 0
    scale = (size - 2 * radius) / max(ink.shape)
    inner = [max(1, round(side * scale)) for side in ink.shape]
    outer = [max(pixel, pixel * round((side + 2 * radius) / pixel)) for side in inner]
    inner = [max(1, side - 2 * radius) for side in outer]
    padded: Plane = np.pad(resized(ink, (inner[0], inner[1])), radius)
    return _dilated(padded, radius)


def stroke_width(ink: Plane) -> float:
    """Estimate the mean width of strokes in pixels: twice the area by the length of the outline."""
    mask = np.pad(ink >= 0.5, 1)
    outline = np.count_nonzero(np.diff(mask, axis=0)) + np.count_nonzero(np.diff(mask, axis=1))
    return float(2 * _OUTLINE * np.count_nonzero(mask) / outline)


def _dilated(plane: Plane, radius: int) -> Plane:
    """Give every pixel the largest value within a disc around it."""
    if radius == 0:
        return plane
    H, W = plane.shape
    padded = np.pad(plane, radius)
    result: Plane = plane.copy()
    for dy in range(-radius, radius + 1):
        reach = math.isqrt(radius**2 - dy**2)
        for dx in range(-reach, reach + 1):
            y, x = radius + dy, radius + dx
            np.maximum(result, padded[y : y + H, x : x + W], out=result)
    return result
