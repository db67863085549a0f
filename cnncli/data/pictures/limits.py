"""How large a picture may be."""

from __future__ import annotations

from cnncli.errors import DataError

# a telephone takes 12 to 50 millions; four bytes for each are what preparing them needs at a time
MAX_PIXELS = 64_000_000


def check_pixels(width: int, height: int, where: str) -> None:
    """Refuse a picture of no pixels, or of too many, before anything of it is decoded.

    Raises
    ------
    DataError : it is such
    """
    if width < 1 or height < 1:
        raise DataError(f"{where}: holds no pixels, its size is {width} x {height}")
    if width * height > MAX_PIXELS:
        raise DataError(
            f"{where}: expected a picture of at most {MAX_PIXELS:,} pixels, got {width} x {height}; "
            "save a smaller copy, or a part of it"
        )
