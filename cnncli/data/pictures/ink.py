"""What is drawn on a picture: its ground, light or dark and unevenly lit, taken away."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cnncli.data.pictures.components import label_parts
from cnncli.data.pictures.resampling import Plane, blurred
from cnncli.errors import DataError

# the ground is a surface of second degree through the border, then through all that is not ink
BORDER = 1 / 50
FITS = 3
# so many pixels tell a surface of six numbers as well as all of them
MOST_FITTED = 10_000
# fainter strokes, in parts of white, are no strokes, nor are those that noise could make
LEAST_CONTRAST = 0.06
LEAST_CONTRAST_IN_NOISE = 5.0
# in parts of the largest: smaller ones are specks
LEAST_PART = 0.04
# of one that stands clear of the border, while others run along it: shadows, edges of the paper
LEAST_CLEAR_PART = 0.2
# a line of this many pixels across keeps its contrast when it is blurred once
BLUR_PER_PIXELS = 150
N_BINS = 256


def find_ink(grey: Plane, where: str) -> Plane:
    """Return how much ink is on each pixel, from 0 to 1, whichever of ink and ground is lighter.

    Parameters
    ----------
    grey : ndarray of shape (H, W), from 0 for black to 1 for white

    Raises
    ------
    DataError : nothing is drawn on the picture
    """
    smooth = blurred(grey, round(min(grey.shape) / BLUR_PER_PIXELS))
    contrast = smooth - _surface(smooth, _border(grey.shape))
    # ink is the lesser part of a picture, and far from the ground
    if float((contrast * contrast * contrast).sum(dtype=np.float64)) < 0:
        smooth, contrast = -smooth, -contrast
    contrast = _improved(contrast, smooth)
    level = _level(contrast, where)
    # half way is the edge of a stroke, however blurred
    ink: Plane = np.clip((contrast - 0.25 * level) / (0.5 * level), 0, 1)
    return np.where(_near(_strokes(ink >= 0.5)), ink, np.float32(0))


def _border(shape: tuple[int, ...]) -> NDArray[np.bool_]:
    width = max(1, round(BORDER * min(shape)))
    border = np.ones(shape, np.bool_)
    border[width:-width, width:-width] = False
    return border


def _improved(contrast: Plane, smooth: Plane) -> Plane:
    """Take away the ground that is found with the ink left out; ink is positive."""
    for _ in range(FITS):
        ground = contrast < 0.5 * otsu_threshold(contrast)
        if np.count_nonzero(ground) < 0.2 * ground.size:
            break
        contrast = smooth - _surface(smooth, ground)
    return contrast


def _level(contrast: Plane, where: str) -> float:
    """Return the contrast of ink, or refuse a picture that has none."""
    threshold = otsu_threshold(contrast)
    is_ink = contrast > threshold
    ground = contrast[~is_ink]
    level = float(np.median(contrast[is_ink])) if is_ink.any() else 0.0
    middle = float(np.median(ground))
    # 1.4826 times this is the standard deviation of normal noise (Rousseeuw and Croux 1993, section 1)
    noise = 1.4826 * float(np.median(np.abs(ground - middle)))
    if level < LEAST_CONTRAST or level - middle < LEAST_CONTRAST_IN_NOISE * noise:
        raise DataError(
            f"{where}: nothing is drawn on it: expected one digit that stands out from its ground; "
            "take a picture with more light or a thicker pen, and cut away what is around the digit"
        )
    return level


def otsu_threshold(values: Plane) -> float:
    """Return the value that divides others best into two classes (Otsu 1979): least variance within them."""
    lowest, highest = float(values.min()), float(values.max())
    if not lowest < highest:
        return highest
    counts, edges = np.histogram(values, N_BINS, (lowest, highest))
    centers = (edges[:-1] + edges[1:]) / 2
    n_below = counts.cumsum()
    sum_below = (counts * centers).cumsum()
    n_above = n_below[-1] - n_below
    # the last bin has none above it
    means_apart = sum_below[:-1] / n_below[:-1] - (sum_below[-1] - sum_below[:-1]) / n_above[:-1]
    between = n_below[:-1].astype(np.float64) * n_above[:-1] * means_apart**2
    return float(edges[1 + int(between.argmax())])


def _surface(values: Plane, chosen: NDArray[np.bool_]) -> Plane:
    """Fit a surface of second degree to the chosen pixels by least squares, less their outliers."""
    H, W = values.shape
    places = np.flatnonzero(chosen)
    rows, columns = np.divmod(places[:: 1 + len(places) // MOST_FITTED], W)
    y, x = np.linspace(-1, 1, H), np.linspace(-1, 1, W)
    v, u = y[rows], x[columns]
    basis = np.stack([np.ones_like(u), u, v, u * u, u * v, v * v], axis=1)
    targets = values[rows, columns].astype(np.float64)
    # a level ground at first: ink or a shadow on the border would bend it
    c = np.array([np.median(targets), 0, 0, 0, 0, 0])
    for _ in range(FITS):
        distances = np.abs(targets - basis @ c)
        kept = distances <= 3 * np.median(distances)
        c = _least_squares(basis[kept], targets[kept])
    y = y[:, np.newaxis]
    surface: NDArray[np.float64] = (c[0] + c[1] * x + c[3] * x * x) + (c[2] * y + c[5] * y * y) + c[4] * y * x
    return surface.astype(np.float32)


def _least_squares(basis: NDArray[np.float64], targets: NDArray[np.float64]) -> NDArray[np.float64]:
    # the normal equations are small, and a surface of a few pixels may be any of many
    coefficients: NDArray[np.float64] = np.linalg.lstsq(basis.T @ basis, basis.T @ targets, rcond=1e-9)[0]
    return coefficients


def _strokes(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Keep the parts that belong to what is drawn."""
    labels = label_parts(mask)
    areas = np.bincount(labels.ravel())
    areas[0] = 0
    sides = [np.unique(side) for side in (labels[0], labels[-1], labels[:, 0], labels[:, -1])]
    n_sides = np.bincount(np.concatenate(sides), minlength=len(areas))
    clear = np.where(n_sides == 0, areas, 0)
    if clear.max() >= LEAST_CLEAR_PART * areas.max():
        areas = np.where(n_sides >= 2, 0, areas)
    kept: NDArray[np.bool_] = (areas > 0) & (areas >= LEAST_PART * areas.max())
    return kept[labels]


def _near(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Add the pixels around a mask, where its strokes fade away."""
    padded = np.pad(mask, 1)
    H, W = mask.shape
    shifted = [padded[dy : dy + H, dx : dx + W] for dy in range(3) for dx in range(3)]
    near: NDArray[np.bool_] = np.logical_or.reduce(shifted)
    return near
