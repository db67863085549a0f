"""A picture of a digit made like those of MNIST.

The digits of MNIST were scaled to fit into 20 x 20 pixels, keeping their proportions, with grey levels
from the averaging, and put into 28 x 28 pixels so that their centre of mass is in the middle; they are
white on black (LeCun, Cortes and Burges, http://yann.lecun.com/exdb/mnist/).

First the background, light or dark and unevenly lit, is taken away; then the strokes are cut out, made wide
enough, scaled and centred.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from cnncli.errors import DataError

Plane = NDArray[np.float32]

SIZE = 28
BOX = 20
WHITE = 255
# index of the pixel that the centre of mass is on: measured, it lies from 13.5 to 14.5 in every image
CENTER = SIZE // 2

# what is larger is shrunk before anything else
LONGEST = 600
FINE = 8
# of white: compression leaves such traces on black
BLACK = 1 / 16
BRIGHT = 1 / 2
# sides of the box of all images of MNIST, with what is almost black left out
LEAST_BOX = 16
CENTER_TOLERANCE = 0.1


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
    foreground = find_foreground(shrunk(plane, LONGEST) / np.float32(white), where)
    return _centered(_scaled(_cropped(foreground)))


def _is_finished(image: NDArray[np.float64]) -> bool:
    """Whether an image is white on black, as large as those of MNIST, and centred."""
    border = np.concatenate([image[0], image[-1], image[:, 0], image[:, -1]])
    if np.median(border) > BLACK or image.max() < BRIGHT:
        return False
    top, bottom, left, right = _bounds(image > BLACK)
    distance = np.abs(np.subtract(_center_of_mass(image), CENTER)).max()
    return LEAST_BOX <= max(bottom - top, right - left) <= BOX and distance <= 0.5 + CENTER_TOLERANCE


def _cropped(foreground: Plane) -> Plane:
    top, bottom, left, right = _bounds(foreground >= 0.5)
    return foreground[top:bottom, left:right]


def _scaled(foreground: Plane) -> Plane:
    """Scale to fit into 20 x 20, with strokes that are not too thin for that."""
    fine = thickened(foreground, BOX * FINE, FINE)
    H, W = (max(1, round(size / FINE)) for size in fine.shape)
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


# the background is a surface of second degree through the border, then through all that is not foreground
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


def find_foreground(grey: Plane, where: str) -> Plane:
    """Return how much each pixel is drawn on, from 0 to 1, whichever of drawing and background is lighter.

    Parameters
    ----------
    grey : ndarray of shape (H, W), from 0 for black to 1 for white

    Raises
    ------
    DataError : nothing is drawn on the picture
    """
    smooth = blurred(grey, round(min(grey.shape) / BLUR_PER_PIXELS))
    contrast = smooth - _surface(smooth, _border(grey.shape))
    # foreground is the lesser part of a picture, and far from the background
    if float((contrast * contrast * contrast).sum(dtype=np.float64)) < 0:
        smooth, contrast = -smooth, -contrast
    contrast = _improved(contrast, smooth)
    level = _level(contrast, where)
    # half way is the edge of a stroke, however blurred
    foreground: Plane = np.clip((contrast - 0.25 * level) / (0.5 * level), 0, 1)
    return np.where(_near(_strokes(foreground >= 0.5)), foreground, np.float32(0))


def _border(shape: tuple[int, ...]) -> NDArray[np.bool_]:
    width = max(1, round(BORDER * min(shape)))
    border = np.ones(shape, np.bool_)
    border[width:-width, width:-width] = False
    return border


def _improved(contrast: Plane, smooth: Plane) -> Plane:
    """Take away the background that is found with the foreground left out; foreground is positive."""
    for _ in range(FITS):
        background = contrast < 0.5 * otsu_threshold(contrast)
        if np.count_nonzero(background) < 0.2 * background.size:
            break
        contrast = smooth - _surface(smooth, background)
    return contrast


def _level(contrast: Plane, where: str) -> float:
    """Return the contrast of foreground, or refuse a picture that has none."""
    threshold = otsu_threshold(contrast)
    is_foreground = contrast > threshold
    background = contrast[~is_foreground]
    level = float(np.median(contrast[is_foreground])) if is_foreground.any() else 0.0
    middle = float(np.median(background))
    # 1.4826 times this is the standard deviation of normal noise (Rousseeuw and Croux 1993, section 1)
    noise = 1.4826 * float(np.median(np.abs(background - middle)))
    if level < LEAST_CONTRAST or level - middle < LEAST_CONTRAST_IN_NOISE * noise:
        raise DataError(
            f"{where}: nothing is drawn on it: expected one digit that stands out from its background; "
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
    # a level background at first: foreground or a shadow on the border would bend it
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


# pixels of the small image; MNIST's strokes are rarely thinner
LEAST_WIDTH = 2.0
# a pixelated outline is longer than the smooth one by this factor, in the mean over all directions
OUTLINE = 4 / math.pi


def thickened(foreground: Plane, size: int, pixel: int) -> Plane:
    """Resample foreground so that its longer side is `size`, and make its strokes wide enough.

    Parameters
    ----------
    foreground : ndarray of shape (H, W), from 0 to 1, cropped to what is drawn
    pixel : side of a pixel of the small image that will be made of the result

    Returns
    -------
    ndarray of shape (H', W') : the larger is `size`, both are multiples of `pixel`
    """
    width = stroke_width(foreground) / max(foreground.shape)
    least = LEAST_WIDTH * pixel / size
    # solves width * (size - 2 * radius) + 2 * radius = least * size
    radius = max(0, round(size * (least - width) / (2 * (1 - width)))) if width < least else 0
    scale = (size - 2 * radius) / max(foreground.shape)
    inner = [max(1, round(side * scale)) for side in foreground.shape]
    outer = [max(pixel, pixel * round((side + 2 * radius) / pixel)) for side in inner]
    inner = [max(1, side - 2 * radius) for side in outer]
    padded: Plane = np.pad(resized(foreground, (inner[0], inner[1])), radius)
    return _dilated(padded, radius)


def stroke_width(foreground: Plane) -> float:
    """Estimate the mean width of strokes in pixels: twice the area by the length of the outline."""
    mask = np.pad(foreground >= 0.5, 1)
    outline = np.count_nonzero(np.diff(mask, axis=0)) + np.count_nonzero(np.diff(mask, axis=1))
    return float(2 * OUTLINE * np.count_nonzero(mask) / outline)


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


def resized(plane: Plane, shape: tuple[int, int]) -> Plane:
    """Resample a plane (H, W) to another shape, larger or smaller along each axis."""
    rows, columns = (_coverage(n, n_new) for n, n_new in zip(plane.shape, shape, strict=True))
    result: Plane = rows @ plane @ columns.T
    return result


def shrunk(plane: NDArray[np.number], longest: int) -> Plane:
    """Take the means of square blocks, so that no side is longer than about `longest`; or the plane itself.

    Up to a block less one pixel is cut off at the right and at the bottom.
    """
    block = -(-max(plane.shape) // longest)
    # a side shorter than a block is one block
    height, width = (min(block, size) for size in plane.shape)
    n_rows, n_columns = plane.shape[0] // height, plane.shape[1] // width
    kept = plane[: n_rows * height, : n_columns * width]
    means: Plane = kept.reshape(n_rows, height, n_columns, width).mean(axis=(1, 3), dtype=np.float32)
    return means


def blurred(plane: Plane, times: int) -> Plane:
    """Weigh every pixel with its neighbours by 1, 2, 1 along both axes, several times; edges are repeated."""
    for _ in range(times):
        for axis in (0, 1):
            padding = [(1, 1) if a == axis else (0, 0) for a in (0, 1)]
            padded = np.moveaxis(np.pad(plane, padding, mode="edge"), axis, 0)
            mixed = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / np.float32(4)
            plane = np.moveaxis(mixed, 0, axis)
    return plane


def _coverage(n: int, n_new: int) -> Plane:
    """Return the matrix (n_new, n) of the share that each old pixel has in each new one."""
    step = n / n_new
    starts = np.arange(n_new)[:, np.newaxis] * step
    pixels = np.arange(n)
    overlap = np.minimum(starts + step, pixels + 1) - np.maximum(starts, pixels)
    shares: Plane = (np.maximum(overlap, 0) / step).astype(np.float32)
    return shares


def label_parts(mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Number the connected parts of a mask (H, W) from 1; 0 stands for what is not in it.

    Runs of pixels in a row are joined with those that they touch in the row before.
    """
    H, W = mask.shape
    edges = np.diff(np.pad(mask, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    rows, starts = np.nonzero(edges == 1)
    stops = np.nonzero(edges == -1)[1]
    first_of_row = np.searchsorted(rows, np.arange(H + 1)).tolist()
    parents = _joined(first_of_row, starts.tolist(), stops.tolist())
    roots = np.array([_root(parents, run) for run in range(len(parents))], np.int64)
    _, numbers = np.unique(roots, return_inverse=True)
    labels = np.zeros(H * W, np.int64)
    # in row-major order the pixels of the mask are those of the runs
    labels[mask.ravel()] = np.repeat(numbers.ravel() + 1, stops - starts)
    return labels.reshape(H, W)


def _joined(first_of_row: list[int], starts: list[int], stops: list[int]) -> list[int]:
    """Return a parent for every run; runs of one part have the same root."""
    parents = list(range(len(starts)))
    for row in range(1, len(first_of_row) - 1):
        above, end_above = first_of_row[row - 1], first_of_row[row]
        run, end = end_above, first_of_row[row + 1]
        while above < end_above and run < end:
            if starts[above] <= stops[run] and starts[run] <= stops[above]:
                parents[_root(parents, run)] = _root(parents, above)
            if stops[above] < stops[run]:
                above += 1
            else:
                run += 1
    return parents


def _root(parents: list[int], run: int) -> int:
    while parents[run] != run:
        # halving the path keeps it short
        parents[run] = parents[parents[run]]
        run = parents[run]
    return run
