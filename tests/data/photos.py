"""Digits as a camera would see them on paper, or on a blackboard."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Grey = NDArray[np.float64]


def photo_of(digit: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.uint8]:
    """Draw a white-on-black digit 4 to 12 times as large, dark on light or light on dark.

    It is somewhere on a larger sheet, blurred, unevenly lit and noisy.
    """
    scale = rng.uniform(4, 12)
    large = _blurred(_enlarged(digit / 255, round(len(digit) * scale)), rng.uniform(0, 0.25) * scale)
    height, width = (round(len(large) * rng.uniform(1, 1.5)) for _ in range(2))
    top, left = (int(rng.integers(0, side - len(large) + 1)) for side in (height, width))
    ink = np.zeros((height, width))
    ink[top : top + len(large), left : left + len(large)] = large
    dark, light = rng.uniform(10, 70), rng.uniform(150, 230)
    ground, stroke = (light, dark) if rng.random() < 0.5 else (dark, light)
    picture = (ground + (stroke - ground) * ink) * _light(height, width, rng)
    picture += rng.normal(0, rng.uniform(0, 20), picture.shape)
    return np.clip(np.rint(picture), 0, 255).astype(np.uint8)


def _light(height: int, width: int, rng: np.random.Generator) -> Grey:
    """Fall by up to 40 % from one edge to the opposite one, in any direction."""
    angle = rng.uniform(0, 2 * math.pi)
    y, x = np.linspace(-1, 1, height)[:, None], np.linspace(-1, 1, width)[None, :]
    slope = (math.sin(angle) * y + math.cos(angle) * x) / (abs(math.sin(angle)) + abs(math.cos(angle)))
    return 1 - rng.uniform(0, 0.4) * (slope + 1) / 2


def _enlarged(image: Grey, size: int) -> Grey:
    """Interpolate linearly between the centres of pixels."""
    places = (np.arange(size) + 0.5) * len(image) / size - 0.5
    weights = np.maximum(0, 1 - np.abs(places[:, None] - np.arange(len(image))[None, :]))
    enlarged: Grey = weights @ image @ weights.T
    return enlarged


def _blurred(image: Grey, sigma: float) -> Grey:
    """Weigh neighbours by a normal curve, along both axes."""
    distances = np.arange(len(image))[:, None] - np.arange(len(image))[None, :]
    weights = np.exp(-((distances / max(sigma, 0.1)) ** 2) / 2)
    weights /= weights.sum(axis=1, keepdims=True)
    blurred: Grey = weights @ image @ weights.T
    return blurred
