"""From a picture to an image as a network was trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cnncli.data.arrays import as_images
from cnncli.data.normalization import Normalization
from cnncli.data.pictures.digit import SIZE, as_digit
from cnncli.data.pictures.files import Pictures
from cnncli.errors import DataError

# mean and standard deviation of the training images, in parts of white: MNIST has 0.13 and 0.31,
# Fashion-MNIST 0.29 and 0.35
MOST_MEAN_OF_STROKES = 0.25
LEAST_STD_OF_STROKES = 0.2
# values of 8 standard deviations occur in few images
FAR = 8.0


@dataclass(frozen=True)
class Preparation:
    """Makes pictures into images for a network.

    Attributes
    ----------
    image_shape : (C, H, W) that the network takes
    normalization : of its training images
    """

    image_shape: tuple[int, int, int]
    normalization: Normalization

    @property
    def makes_digits(self) -> bool:
        """Whether the training images were like MNIST's: 28 x 28, bright strokes on black.

        Only then is there a convention by which any picture can be made into one of them.
        """
        if self.image_shape != (1, SIZE, SIZE):
            return False
        mean, std = self.normalization.mean[0] / self._white, self.normalization.std[0] / self._white
        return 0 <= mean <= MOST_MEAN_OF_STROKES and std >= LEAST_STD_OF_STROKES

    @property
    def _is_small(self) -> bool:
        """Whether the values of the training images were about 1, not up to 255."""
        return all(abs(mean) <= 1 for mean in self.normalization.mean) and max(self.normalization.std) <= 1

    @property
    def _white(self) -> float:
        return 1.0 if self._is_small else 255.0

    def prepare(self, pictures: Pictures, place: int) -> NDArray[Any]:
        """Return one of the pictures as an image (C, H, W), uint8 or float32.

        Raises
        ------
        DataError : nothing is drawn on it, its shape is not the network's, or its values are in other units
        """
        image, where = pictures.images[place], pictures.where(place)
        if not self.makes_digits:
            return self._as_stored(image, pictures, where)
        if len(image) != 1:
            raise DataError(f"{where}: expected a grey picture, an array (H, W), got shape {image.shape}")
        if pictures.white is None:
            raise DataError(
                f"{where}: expected values from 0 to 1, 255 or 65535, got {_extent(image)}; "
                "save them as uint8 from 0 for black to 255 for white"
            )
        digit = as_digit(image[0], pictures.white, where)[np.newaxis]
        return digit if self._white > 1 else (digit / 255).astype(np.float32)

    def _as_stored(self, image: NDArray[Any], pictures: Pictures, where: str) -> NDArray[Any]:
        """Take an image as it is, but for the white of picture formats."""
        if image.shape != self.image_shape:
            raise DataError(
                f"{where}: expected a picture of shape (C, H, W) = {self.image_shape}, as the network was "
                f"trained on, got {image.shape}; only pictures for networks trained on MNIST or its like are "
                "cut and scaled"
            )
        if not pictures.is_array:
            assert pictures.white is not None
            image = image * (self._white / pictures.white) if pictures.white != self._white else image
        image = as_images(image[np.newaxis], where)[0]
        self._check_units(image, where)
        return image

    def _check_units(self, image: NDArray[Any], where: str) -> None:
        """Refuse values that are in other units than those that the network has learnt."""
        mean, std = np.array(self.normalization.mean), np.array(self.normalization.std)
        is_far = float(np.abs(image.mean(axis=(1, 2), dtype=np.float64) - mean).max() / std.max()) > FAR
        is_flat = image.dtype != np.uint8 and not self._is_small and float(np.abs(image).max()) <= 1
        if is_far or (is_flat and image.any()):
            known = ", ".join(f"{m:.3g} +- {s:.3g}" for m, s in zip(mean, std, strict=True))
            raise DataError(
                f"{where}: holds values {_extent(image)}, but those of the training images are about "
                f"{known}; give an .npy file in the same units"
            )


def _extent(image: NDArray[Any]) -> str:
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return f"from {float(image.min()):.6g} to {float(image.max()):.6g}"
