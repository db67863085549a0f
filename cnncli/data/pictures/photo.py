"""PNG and JPEG, decoded by Pillow, which the extra [images] installs."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cnncli.data.pictures.limits import check_pixels
from cnncli.data.streams import briefly, reading
from cnncli.errors import DataError

if TYPE_CHECKING:
    from PIL.Image import Image

PHOTO_STARTS = (b"\x89PNG", b"\xff\xd8\xff")
INSTALL = 'pip install "cnncli[images]"'

_MODES = {1: "L", 3: "RGB"}
_16_BITS = 65535.0


def read_photo(path: Path, n_channels: int) -> tuple[NDArray[Any], float]:
    """Read a PNG or JPEG picture the way up that its EXIF data says.

    What is transparent becomes white where the visible is dark, and black where it is light.

    Parameters
    ----------
    n_channels : 1 for grey, 3 for red, green and blue

    Returns
    -------
    image : ndarray of shape (C, H, W), uint8 or uint16
    white : 255 or 65535

    Raises
    ------
    DataError : Pillow is missing; the file is damaged, animated, or has too many pixels
    """
    where = str(path)
    if n_channels not in _MODES:
        raise DataError(
            f"{where}: the network takes images of {n_channels} channels, a PNG or JPEG picture has 1 or 3; "
            "save an array (C, H, W) with np.save"
        )
    try:
        import PIL.Image
        import PIL.ImageOps
    except ImportError:
        raise DataError(f"{where}: PNG and JPEG pictures need Pillow: {INSTALL}") from None
    with reading(where), path.open("rb") as file:
        try:
            # Pillow warns of what it takes for a bomb, and of much else; the limit here is stricter
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with PIL.Image.open(file, formats=["PNG", "JPEG"]) as stored:
                    check_pixels(stored.width, stored.height, where)
                    _check_animation(stored, where)
                    return _decode(PIL.ImageOps.exif_transpose(stored), n_channels)
        except (DataError, MemoryError):
            raise
        except PIL.Image.DecompressionBombError as error:
            raise DataError(f"{where}: has too many pixels ({briefly(error)}); save a smaller copy") from None
        except Exception as error:  # Pillow has many ways to complain of nonsense
            reason = briefly(error) or type(error).__name__
            raise DataError(f"{where}: is damaged, or no picture ({reason}); save it again") from error


def _check_animation(stored: Image, where: str) -> None:
    # a JPEG with previews has frames too, and the first is the picture
    n_frames = getattr(stored, "n_frames", 1)
    if stored.format == "PNG" and n_frames > 1:
        raise DataError(f"{where}: is an animation of {n_frames} pictures; save one of them alone")


def _decode(picture: Image, n_channels: int) -> tuple[NDArray[Any], float]:
    if picture.mode.startswith("I"):
        plane = np.asarray(picture).astype(np.uint16)
        return np.broadcast_to(plane, (n_channels, *plane.shape)), _16_BITS
    if picture.has_transparency_data:
        picture = _opaque(picture.convert("RGBA"))
    pixels = np.asarray(picture.convert(_MODES[n_channels]))
    return pixels.reshape(*pixels.shape[:2], n_channels).transpose(2, 0, 1), 255.0


def _opaque(picture: Image) -> Image:
    """Lay the picture on white or black, whichever shows what is drawn on it."""
    import PIL.Image

    visible = np.asarray(picture.getchannel("A"), np.float32)
    grey = np.asarray(picture.convert("L"), np.float32)
    is_dark = float((grey * visible).sum()) <= 255 / 2 * float(visible.sum())
    ground = PIL.Image.new("RGBA", picture.size, "white" if is_dark else "black")
    return PIL.Image.alpha_composite(ground, picture)
