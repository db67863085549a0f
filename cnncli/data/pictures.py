"""Pictures that a network is asked about: reading them, and making them what it was trained on."""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cnncli.data.dataset import as_images
from cnncli.data.digit import SIZE, as_digit
from cnncli.data.idx import read_idx
from cnncli.data.normalization import Normalization
from cnncli.data.numpy_files import NPY_START, read_npy, read_npy_header
from cnncli.data.reading import briefly, describe_start, reading
from cnncli.errors import DataError

if TYPE_CHECKING:
    from PIL.Image import Image

INSTALL = 'pip install "cnncli[images]"'
# those of Pillow that run no other program
FORMATS = ("PNG", "JPEG", "PPM", "WEBP", "BMP", "GIF", "TIFF")
MODES = {1: "L", 3: "RGB"}
WHITE_OF_16_BITS = 65535.0
# a telephone takes 12 to 50 millions; four bytes for each are what preparing them needs at a time
MAX_PIXELS = 64_000_000
IDX_STARTS = (b"\0\0", b"\x1f\x8b")
INDEXED = re.compile(r"(.+):([0-9]{1,12})", re.DOTALL)

# mean and standard deviation of the training images, in parts of white: MNIST has 0.13 and 0.31,
# Fashion-MNIST 0.29 and 0.35
MOST_MEAN_OF_STROKES = 0.25
LEAST_STD_OF_STROKES = 0.2
# values of 8 standard deviations occur in few images
FAR = 8.0


@dataclass(frozen=True, eq=False)
class Pictures:
    """Some or all pictures of a file.

    Attributes
    ----------
    path : of the file
    images : ndarray of shape (N, C, H, W), integers or floats as they are stored
    white : the value that stands for white; None where an array holds other things than 0 to white
    is_array : whether the file is an array of numbers in units of its own, and no picture format
    first : index in the file of the first of them
    n_stored : number of pictures in the file
    is_cut : whether there are more than the limit that was asked for
    """

    path: Path
    images: NDArray[Any]
    white: float | None
    is_array: bool
    first: int = 0
    n_stored: int = 1
    is_cut: bool = False

    def where(self, place: int) -> str:
        """Name one of the pictures: by the file, and by its index where there are several."""
        return str(self.path) if self.n_stored == 1 else f"{self.path}:{self.first + place}"


def read_pictures(name: str, image_shape: tuple[int, int, int], limit: int) -> Pictures:
    """Read the pictures of a file.

    Parameters
    ----------
    name : path of a file, or ``FILE:INDEX`` for one picture of a file that holds several
    image_shape : (C, H, W) that the network takes. Arrays of three axes are (C, H, W) or (N, H, W)
        by it, and photos become grey or RGB
    limit : most pictures to take, unless one is named

    Raises
    ------
    DataError : the file is missing, damaged, of another format, too large, or has no such picture
    """
    indexed = INDEXED.fullmatch(name)
    with reading(name):
        # a name may end in a colon and digits
        if indexed is None or Path(name).exists():
            pictures = _read_all(Path(name), image_shape)
            n_stored, images = len(pictures.images), pictures.images[:limit]
            return replace(pictures, images=images, n_stored=n_stored, is_cut=n_stored > limit)
    pictures, index = _read_all(Path(indexed[1]), image_shape), int(indexed[2])
    n_stored = len(pictures.images)
    if index >= n_stored:
        raise DataError(f"{name}: expected an index below {n_stored}, the number of pictures in the file")
    return replace(pictures, images=pictures.images[index : index + 1], first=index, n_stored=n_stored)


def _read_all(path: Path, image_shape: tuple[int, int, int]) -> Pictures:
    with reading(str(path)), path.open("rb") as file:
        start = file.read(64)
    if start.startswith(NPY_START):
        _check_axes(read_npy_header(path).shape, image_shape, str(path))
        images = _array_as_images(read_npy(path), image_shape, str(path))
    elif start.startswith(IDX_STARTS):
        images = _array_as_images(read_idx(path).array, image_shape, str(path))
    else:
        image, white = _read_picture(path, image_shape[0], start)
        return Pictures(path, image[None], white, is_array=False)
    return Pictures(path, images, _white_of(images), is_array=True)


def _read_picture(path: Path, n_channels: int, start: bytes) -> tuple[NDArray[Any], float]:
    """Read a picture (C, H, W) the way up that its EXIF data says, and the value of its white.

    What is transparent becomes white where the visible is dark, and black where it is light.
    """
    try:
        import PIL.Image
        import PIL.ImageOps
    except ImportError:
        raise DataError(f"{path}: pictures need Pillow: {INSTALL}") from None
    if n_channels not in MODES:
        raise DataError(
            f"{path}: the network takes images of {n_channels} channels, a picture has 1 or 3; "
            "save an array (C, H, W) with np.save"
        )
    with reading(str(path)), path.open("rb") as file:
        try:
            # Pillow warns of what it takes for a bomb, and of much else; the limit here is stricter
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with PIL.Image.open(file, formats=FORMATS) as stored:
                    _check_pixels(stored.width, stored.height, str(path))
                    # a JPEG with previews has frames too, and the first is the picture
                    if stored.format != "JPEG" and getattr(stored, "n_frames", 1) > 1:
                        raise DataError(f"{path}: holds several pictures; save one of them alone")
                    return _decode(PIL.ImageOps.exif_transpose(stored), n_channels)
        except (DataError, MemoryError):
            raise
        except PIL.UnidentifiedImageError:
            raise DataError(
                f"{path}: expected a picture ({', '.join(FORMATS)}), an .npy or an IDX file, got "
                f"{describe_start(start)}; if it is one of these, it is damaged"
            ) from None
        except PIL.Image.DecompressionBombError as error:
            raise DataError(f"{path}: has too many pixels ({briefly(error)}); save a smaller copy") from None
        except Exception as error:  # Pillow has many ways to complain of nonsense
            reason = briefly(error) or type(error).__name__
            raise DataError(f"{path}: is damaged, or no picture ({reason}); save it again") from error


def _decode(picture: Image, n_channels: int) -> tuple[NDArray[Any], float]:
    if picture.mode.startswith("I"):
        plane = np.asarray(picture).astype(np.uint16)
        return np.broadcast_to(plane, (n_channels, *plane.shape)), WHITE_OF_16_BITS
    if picture.has_transparency_data:
        picture = _opaque(picture.convert("RGBA"))
    pixels = np.asarray(picture.convert(MODES[n_channels]))
    return pixels.reshape(*pixels.shape[:2], n_channels).transpose(2, 0, 1), 255.0


def _opaque(picture: Image) -> Image:
    """Lay the picture on white or black, whichever shows what is drawn on it."""
    import PIL.Image

    visible = np.asarray(picture.getchannel("A"), np.float32)
    grey = np.asarray(picture.convert("L"), np.float32)
    is_dark = float((grey * visible).sum()) <= 255 / 2 * float(visible.sum())
    ground = PIL.Image.new("RGBA", picture.size, "white" if is_dark else "black")
    return PIL.Image.alpha_composite(ground, picture)


def _array_as_images(array: NDArray[Any], image_shape: tuple[int, int, int], where: str) -> NDArray[Any]:
    """Return images (N, C, H, W) of an array (H, W), (N, H, W), (C, H, W) or (N, C, H, W).

    Three axes are those of one image if they are `image_shape`.
    """
    shape = array.shape
    _check_axes(shape, image_shape, where)
    if array.dtype.kind not in "biuf":
        raise DataError(f"{where}: expected images of numbers, got an array of {str(array.dtype)[:80]}")
    if len(shape) == 3:
        array = array[None] if shape == image_shape else array[:, None]
    elif len(shape) == 2:
        array = array[None, None]
    if 0 in shape:
        raise DataError(f"{where}: holds no pixels, its shape is {shape}")
    _check_pixels(shape[-1], shape[-2], where)
    return array


def _check_axes(shape: tuple[int, ...], image_shape: tuple[int, int, int], where: str) -> None:
    if len(shape) not in (2, 3, 4):
        raise DataError(
            f"{where}: expected images of shape (H, W), (N, H, W), (C, H, W) or (N, C, H, W), "
            f"got {str(shape)[:80]}"
        )
    fits = shape[-2:] == image_shape[-2:]
    if not fits and len(shape) > 2 and shape[-1] in (3, 4) and math.prod(shape[-3:-1]) > 256:
        raise DataError(
            f"{where}: the shape {shape} looks like (H, W, C), with the colours last; expected "
            "(C, H, W), as np.moveaxis(x, -1, -3) gives, or for grey the mean of the colours, "
            "x[..., :3].mean(axis=-1)"
        )


def _check_pixels(width: int, height: int, where: str) -> None:
    """Refuse a picture of no pixels, or of too many, before anything of it is decoded."""
    if width < 1 or height < 1:
        raise DataError(f"{where}: holds no pixels, its size is {width} x {height}")
    if width * height > MAX_PIXELS:
        raise DataError(
            f"{where}: expected a picture of at most {MAX_PIXELS:,} pixels, got {width} x {height}; "
            "save a smaller copy, or a part of it"
        )


def _white_of(images: NDArray[Any]) -> float | None:
    """Tell the value of white from the values: 1, 255 or 65535; None where it can be none of these."""
    if images.dtype.kind == "b":
        return 1.0
    with np.errstate(invalid="ignore"):  # a signalling NaN
        lowest, highest = float(images.min()), float(images.max())
    if not (lowest >= 0 and highest <= WHITE_OF_16_BITS):  # NaN is neither
        return None
    if images.dtype.kind == "f" and highest <= 1:
        return 1.0
    return 255.0 if highest <= 255 else WHITE_OF_16_BITS


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
