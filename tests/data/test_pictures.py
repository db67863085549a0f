"""Reading pictures of every format."""

from __future__ import annotations

import gzip
import io
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from cnncli.data import Normalization
from cnncli.data.pictures import Pictures, Preparation, _read_picture, read_pictures
from cnncli.errors import DataError
from tests.data.made_files import idx_bytes

GREY = (1, 28, 28)
MNIST_LIKE = Normalization((33.3,), (78.6,))
RAMP = np.linspace(0, 255, 20).astype(np.uint8).reshape(4, 5)
EIGHT = np.arange(8, dtype=np.uint8).reshape(2, 2, 2)


def read(name: Path | str, shape: tuple[int, int, int] = GREY, limit: int = 10) -> Pictures:
    return read_pictures(str(name), shape, limit)


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("content", "values", "white"),
    [
        (b"P2 # a\n2 1 # c\n255 7 9", [[7, 9]], 255),
        (b"P5\n3 2\n255\n\x00\x01\x02\n\x20\xff", [[0, 1, 2], [10, 32, 255]], 255),
        (b"P5 2 1 65535 \x01\x00\x00\x07", [[256, 7]], 65535),
    ],
)
def test_pgm(tmp_path: Path, content: bytes, values: list[list[int]], white: float) -> None:
    pictures = read(written(tmp_path / "a.pgm", content))
    assert (pictures.images[0, 0].tolist(), pictures.white) == (values, white)


@pytest.mark.parametrize("kind", ["bmp", "gif", "tif", "webp", "ppm"])
def test_other_formats_of_pillow(tmp_path: Path, kind: str) -> None:
    Image.fromarray(RAMP).save(tmp_path / f"a.{kind}", lossless=True)
    assert np.abs(read(tmp_path / f"a.{kind}").images[0, 0].astype(int) - RAMP).max() <= 2


SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, int, int], tuple[int, ...]]] = {
    "one": ((6, 5), GREY, (1, 1, 6, 5)),
    "one with a channel": ((1, 6, 5), GREY, (1, 1, 6, 5)),
    "a stack": ((3, 6, 5), GREY, (3, 1, 6, 5)),
    "a stack with channels": ((3, 1, 6, 5), GREY, (3, 1, 6, 5)),
    "a colour image": ((3, 6, 5), (3, 6, 5), (1, 3, 6, 5)),
    "colour images": ((2, 3, 6, 5), (3, 6, 5), (2, 3, 6, 5)),
    "as narrow as colours": ((20, 20, 3), (1, 20, 3), (20, 1, 20, 3)),
}


@pytest.mark.parametrize("case", SHAPES)
def test_arrays(tmp_path: Path, case: str) -> None:
    shape, wanted, expected = SHAPES[case]
    array = np.random.default_rng(0).random(shape)
    for order in (array, np.asfortranarray(array)):
        np.save(tmp_path / "a.npy", order)
        pictures = read(tmp_path / "a.npy", wanted, limit=100)
        assert pictures.images.shape == expected
        assert np.array_equal(pictures.images.ravel(), array.ravel())
        assert pictures.is_array and pictures.n_stored == expected[0]


def test_one_of_many_and_the_first_of_many(tmp_path: Path) -> None:
    stack = np.arange(12, dtype=np.uint8)[:, None, None].repeat(2, 1).repeat(3, 2)
    np.save(tmp_path / "a.npy", stack)
    written(tmp_path / "raw", idx_bytes(stack))
    written(tmp_path / "packed", gzip.compress(idx_bytes(stack[:, None])))
    for name in ("a.npy", "raw", "packed"):
        path = tmp_path / name
        assert read(path, limit=5).images[:, 0, 0, 0].tolist() == [0, 1, 2, 3, 4]
        assert len(read(path, limit=50).images) == 12
        one = read(f"{path}:11")
        assert one.images.shape == (1, 1, 2, 3) and one.images.max() == 11
        assert (one.first, one.n_stored, one.where(0)) == (11, 12, f"{path}:11")
        with pytest.raises(DataError, match=rf"^{path}:12: expected an index below 12"):
            read(f"{path}:12")
    (tmp_path / "a.npy").rename(tmp_path / "a:3")
    assert len(read(tmp_path / "a:3").images) == 10
    assert read(f"{tmp_path / 'a:3'}:4").first == 4


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(5), r"expected images of shape .*, got \(5,\)"),
        (np.zeros((1, 2, 1, 3, 4)), "expected images of shape"),
        (np.zeros((0, 3, 4)), r"holds no pixels, its shape is \(0, 3, 4\)"),
        (np.zeros((28, 28, 3)), r"with the colours last; .* np.moveaxis\(x, -1, -3\)"),
        (np.zeros((3, 3), complex), "expected images of numbers, got an array of complex128"),
        (np.array([["a"]]), "expected images of numbers, got an array of <U1"),
        (np.array([[{}]]), "holds Python objects"),
    ],
)
def test_arrays_that_are_no_pictures(tmp_path: Path, array: NDArray[Any], message: str) -> None:
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(DataError, match=message):
        read(tmp_path / "a.npy")


def test_damaged_and_foreign_files(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", EIGHT)
    whole = (tmp_path / "a.npy").read_bytes()
    for content, message in (
        (whole[:-1], "its header declares 8 bytes of data .*, 7 follow"),
        (whole + b"x", "9 follow"),
        (b"", "expected a picture .*, got an empty file"),
        (b"GIF89a", "expected a picture|is damaged"),
        (idx_bytes(EIGHT)[:-1], "ends early"),
        (idx_bytes(np.arange(9, dtype=np.uint8)), r"expected images of shape .*, got \(9,\)"),
    ):
        with pytest.raises(DataError, match=message):
            read(written(tmp_path / "b", content))
    with pytest.raises(DataError, match="none: cannot be read: No such file"):
        read(tmp_path / "none")
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        read(tmp_path)
    with pytest.raises(DataError, match="none: cannot be read: No such file"):
        read(f"{tmp_path / 'none'}:3")


@pytest.mark.parametrize(
    ("values", "white"),
    [
        ([[True, False]], 1.0),
        ([[0.0, 0.7]], 1.0),
        ([[0, 1]], 255.0),
        ([[0.0, 200.5]], 255.0),
        ([[0, 256]], 65535.0),
        ([[0, 70000]], None),
        ([[-1, 5]], None),
        ([[0.0, float("nan")]], None),
        ([[0.0, float("inf")]], None),
    ],
)
def test_the_white_of_an_array(tmp_path: Path, values: list[list[float]], white: float | None) -> None:
    np.save(tmp_path / "a.npy", np.array(values))
    pictures = read(tmp_path / "a.npy")
    assert pictures.white == white
    if white is None:
        with pytest.raises(DataError, match="expected values from 0 to 1, 255 or 65535, got from"):
            Preparation(GREY, MNIST_LIKE).prepare(pictures, 0)


@pytest.mark.parametrize("name", ["a.png", "a.jpg"])
def test_photos_in_grey_and_colour(tmp_path: Path, name: str) -> None:
    Image.fromarray(RAMP).save(tmp_path / name, quality=100)
    for n_channels in (1, 3):
        image, white = _read_picture(tmp_path / name, n_channels, b"")
        assert (image.shape, image.dtype.name, white) == ((n_channels, 4, 5), "uint8", 255)
        assert np.abs(image.astype(int) - RAMP).max() <= (0 if name == "a.png" else 2)
    assert read(tmp_path / name).images.shape == (1, 1, 4, 5)
    Image.fromarray(np.stack([RAMP, 0 * RAMP, 0 * RAMP], axis=-1)).save(tmp_path / "b.png")
    red, _ = _read_picture(tmp_path / "b.png", 3, b"")
    assert np.array_equal(red[0], RAMP) and not red[1:].any()
    grey, _ = _read_picture(tmp_path / "b.png", 1, b"")
    # red's weight in ITU-R BT.601
    assert grey.max() == round(0.299 * 255)


def test_16_bits_and_1_bit(tmp_path: Path) -> None:
    Image.fromarray(RAMP.astype(np.uint16) * 257).save(tmp_path / "a.png")
    image, white = _read_picture(tmp_path / "a.png", 1, b"")
    assert (image[0].tolist(), white) == ((RAMP.astype(int) * 257).tolist(), 65535)
    Image.fromarray(RAMP > 99).save(tmp_path / "b.png")
    image, white = _read_picture(tmp_path / "b.png", 1, b"")
    assert (image[0].tolist(), white) == (np.where(RAMP > 99, 255, 0).tolist(), 255)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
@pytest.mark.parametrize(("stroke", "ground"), [(0, 255), (255, 0), (60, 255), (200, 0)])
def test_what_is_drawn_on_transparent_ground_stays_visible(
    tmp_path: Path, mode: str, stroke: int, ground: int
) -> None:
    alpha = np.zeros((6, 6), np.uint8)
    alpha[2:4, 1:5] = 255
    picture = Image.merge("LA", [Image.new("L", (6, 6), stroke), Image.fromarray(alpha)])
    if mode == "P":
        picture = Image.new("P", (6, 6), 1)
        picture.putpalette([stroke] * 6)
        picture.paste(0, (1, 2, 5, 4))
        picture.save(tmp_path / "a.png", transparency=1)
    else:
        picture.convert(mode).save(tmp_path / "a.png")
    image, _ = _read_picture(tmp_path / "a.png", 1, b"")
    assert np.array_equal(image[0], np.where(alpha == 255, stroke, ground))


def test_cmyk(tmp_path: Path) -> None:
    Image.new("CMYK", (8, 8), (0, 0, 0, 255)).save(tmp_path / "a.jpg", quality=100)
    image, _ = _read_picture(tmp_path / "a.jpg", 1, b"")
    assert image.max() < 8


@pytest.mark.parametrize(("orientation", "turns"), [(1, 0), (3, 2), (6, -1), (8, 1)])
def test_a_telephone_that_was_turned(tmp_path: Path, orientation: int, turns: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(RAMP).save(tmp_path / "a.png", exif=exif)
    image, _ = _read_picture(tmp_path / "a.png", 1, b"")
    assert np.array_equal(image[0], np.rot90(RAMP, turns))


def test_animations_are_refused(tmp_path: Path) -> None:
    frames = [Image.new("L", (4, 4), value) for value in (0, 100, 200)]
    frames[0].save(tmp_path / "a.png", save_all=True, append_images=frames[1:])
    with pytest.raises(DataError, match="holds several pictures"):
        read(tmp_path / "a.png")


def chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


@pytest.mark.parametrize("size", [(8001, 8000), (30_000, 30_000), (2**31 - 1, 2**31 - 1)])
def test_pictures_that_would_fill_the_memory_are_refused_unread(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    header = chunk(b"IHDR", struct.pack(">2I5B", *size, 8, 0, 0, 0, 0))
    content = b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(bytes(10**6)))
    with pytest.raises(DataError, match=r"at most 64,000,000 pixels, got|too many pixels"):
        read(written(tmp_path / "a.png", content))


def test_damaged_photos(tmp_path: Path) -> None:
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 40)).astype(np.uint8))
    for kind in ("PNG", "JPEG"):
        file = io.BytesIO()
        picture.save(file, kind)
        whole = file.getvalue()
        for length in range(8, len(whole) - 20, 97):
            path = written(tmp_path / "a", whole[:length])
            with pytest.raises(DataError, match="is damaged") as caught:
                read(path)
            assert str(caught.value).startswith(f"{path}: ") and "\n" not in str(caught.value)


def test_without_pillow_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.fromarray(RAMP).save(tmp_path / "a.png")
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(DataError) as caught:
        read(tmp_path / "a.png")
    assert str(caught.value).endswith('a.png: pictures need Pillow: pip install "cnncli[images]"')


@pytest.mark.parametrize(
    ("shape", "mean", "std", "makes_digits"),
    [
        ((1, 28, 28), 33.3, 78.6, True),
        ((1, 28, 28), 0.1307, 0.3081, True),
        ((1, 28, 28), 72.9, 90.0, False),
        ((1, 28, 28), -0.74, 0.62, False),
        ((1, 28, 27), 33.3, 78.6, False),
        ((1, 32, 32), 33.3, 78.6, False),
    ],
)
def test_which_networks_have_a_convention(
    shape: tuple[int, int, int], mean: float, std: float, makes_digits: bool
) -> None:
    assert Preparation(shape, Normalization((mean,), (std,))).makes_digits is makes_digits


def test_a_network_on_floats_gets_digits_in_its_units(tmp_path: Path) -> None:
    sheet = np.full((90, 90), 230, np.uint8)
    sheet[20:70, 40:50] = 20
    np.save(tmp_path / "a.npy", sheet)
    pictures = read(tmp_path / "a.npy")
    bytes_ = Preparation(GREY, MNIST_LIKE).prepare(pictures, 0)
    floats = Preparation(GREY, Normalization((0.13,), (0.31,))).prepare(pictures, 0)
    assert (bytes_.dtype.name, floats.dtype.name) == ("uint8", "float32")
    assert (bytes_.max(), floats.max()) == (255, 1)
    assert floats == pytest.approx(bytes_ / 255)


def test_other_networks_get_pictures_as_they_are(tmp_path: Path) -> None:
    preparation = Preparation((1, 4, 5), Normalization((100.0,), (70.0,)))
    np.save(tmp_path / "a.npy", RAMP)
    Image.fromarray(RAMP).save(tmp_path / "a.png")
    Image.fromarray(RAMP.astype(np.uint16) * 257).save(tmp_path / "b.png")
    for name in ("a.npy", "a.png", "b.png"):
        image = preparation.prepare(read(tmp_path / name, (1, 4, 5)), 0)
        assert image.shape == (1, 4, 5) and image[0] == pytest.approx(RAMP)
    # a picture format says what is white, an array does not
    unit = Preparation((1, 4, 5), Normalization((0.5,), (0.3,)))
    assert unit.prepare(read(tmp_path / "a.png", (1, 4, 5)), 0)[0] == pytest.approx(RAMP / 255)
    with pytest.raises(DataError, match=r"values from 0 to 255, .* are about 0.5 \+- 0.3"):
        unit.prepare(read(tmp_path / "a.npy", (1, 4, 5)), 0)
    np.save(tmp_path / "c.npy", RAMP / 255)
    with pytest.raises(DataError, match=r"values from 0 to 1, .* are about 100 \+- 70"):
        preparation.prepare(read(tmp_path / "c.npy", (1, 4, 5)), 0)
    with pytest.raises(DataError, match=r"of shape \(C, H, W\) = \(1, 5, 4\), .* got \(1, 4, 5\)"):
        Preparation((1, 5, 4), MNIST_LIKE).prepare(read(tmp_path / "a.png", (1, 5, 4)), 0)
    with pytest.raises(DataError, match="takes images of 2 channels"):
        read(tmp_path / "a.png", (2, 4, 5))
