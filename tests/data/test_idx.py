"""The IDX reader: every item type, and every way a file can lie or end early."""

from __future__ import annotations

import gzip
import hashlib
import struct
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from cnncli.data import parse_idx, read_idx, read_idx_header
from cnncli.errors import DataError
from tests.data.made_files import MNIST_DIRECTORY, idx_bytes

ANY_ARRAY = hnp.arrays(
    dtype=st.sampled_from(["u1", "i1", "i2", "i4", "f4", "f8"]),
    shape=hnp.array_shapes(min_dims=1, max_dims=4, max_side=5),
)
SMALL = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)


@given(array=ANY_ARRAY, compress=st.booleans())
def test_any_array_comes_back_fresh_writable_and_native(array: NDArray[Any], compress: bool) -> None:
    data = idx_bytes(array)
    result = parse_idx(gzip.compress(data) if compress else data, "made")
    np.testing.assert_array_equal(result, array)
    assert result.dtype == array.dtype and result.dtype.isnative
    assert result.flags.writeable and result.flags.c_contiguous and result.flags.aligned
    result[...] = 1


def test_big_endian_values() -> None:
    header = bytes([0, 0, 0x0C, 1, 0, 0, 0, 2])
    items = bytes([0, 0, 1, 2, 255, 255, 255, 254])
    np.testing.assert_array_equal(parse_idx(header + items, "made"), [258, -2])


@pytest.mark.parametrize("name", ["images", "images.gz"])
@pytest.mark.parametrize("compress", [False, True])
def test_compression_is_told_by_the_content_not_by_the_name(
    tmp_path: Path, name: str, compress: bool
) -> None:
    path = tmp_path / name
    data = idx_bytes(SMALL)
    path.write_bytes(gzip.compress(data) if compress else data)
    content = read_idx(path)
    np.testing.assert_array_equal(content.array, SMALL)
    assert content.sha256 == hashlib.sha256(data).hexdigest()
    assert read_idx_header(path).shape == (2, 3, 4)
    assert read_idx_header(path).dtype == np.uint8


def test_hash_is_of_the_bytes_in_the_file_not_of_the_native_array(tmp_path: Path) -> None:
    data = idx_bytes(np.arange(5, dtype=np.int32))
    (tmp_path / "labels").write_bytes(data)
    assert read_idx(tmp_path / "labels").sha256 == hashlib.sha256(data).hexdigest()


def test_gzip_of_several_members() -> None:
    data = idx_bytes(SMALL)
    np.testing.assert_array_equal(
        parse_idx(gzip.compress(data[:20]) + gzip.compress(data[20:]), "made"), SMALL
    )


def test_real_mnist() -> None:
    test_images = read_idx(MNIST_DIRECTORY / "t10k-images-idx3-ubyte.gz")
    assert test_images.array.shape == (10_000, 28, 28)
    assert test_images.sha256 == "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"
    labels = read_idx(MNIST_DIRECTORY / "t10k-labels-idx1-ubyte.gz").array
    assert labels[:10].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]


def header_bytes(code: int, *dimensions: int) -> bytes:
    return struct.pack(f">BBBB{len(dimensions)}I", 0, 0, code, len(dimensions), *dimensions)


HTML = b"<!DOCTYPE html><html><body>403 Forbidden</body></html>"
PACKED = gzip.compress(idx_bytes(SMALL))
WRONG_FILES = {
    "empty": (b"", "got an empty file"),
    "three bytes": (b"\0\0\x08", "begins with the bytes 00 00 08"),
    "html": (HTML, "got an HTML or XML page"),
    "html with leading space": (b"\r\n " + HTML, "got an HTML or XML page"),
    "gzipped html": (gzip.compress(HTML), "got an HTML or XML page, .* inside the gzip"),
    "git-lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\n", "Git LFS pointer"),
    "twice gzipped": (gzip.compress(PACKED), "got gzip data inside the gzip"),
    "zip": (b"PK\x03\x04" + bytes(30), "got a zip archive"),
    "npy": (b"\x93NUMPY\x01\x00", "got a single .npy array"),
    "text": (b"5,0,4,1", "begins with the bytes 35 2c 30 2c 34 2c 31"),
    "item type": (header_bytes(0x0A, 2) + b"ab", "expected an IDX item type .*got 0x0a"),
    "rank 0": (header_bytes(0x08) + b"a", "expected an IDX file of rank 1 to 4, got rank 0"),
    "rank 5": (header_bytes(0x08, 1, 1, 1, 1, 1) + b"a", "rank 1 to 4, got rank 5"),
    "no items": (header_bytes(0x08, 0, 28, 28), r"holds nothing, its shape is \(0, 28, 28\)"),
    "half a header": (header_bytes(0x08, 2, 3, 4)[:10], "ends inside its header, after 10 of 16 bytes"),
    "half a file": (idx_bytes(SMALL)[:28], "declares 40 bytes .* it has 28"),
    "one byte too many": (idx_bytes(SMALL) + b"\0", "declares 40 bytes .* it has 41"),
    "half a gzip": (PACKED[: len(PACKED) // 2], "compressed data ends early"),
    "gzip start alone": (b"\x1f\x8b", "compressed data ends early"),
    "half a file, gzipped": (gzip.compress(idx_bytes(SMALL)[:28]), "ends after 12 of the 24 bytes"),
    "too much, gzipped": (gzip.compress(idx_bytes(SMALL) + b"\0"), "goes on after the 24 bytes"),
    "gzip with a tail": (PACKED + b"tail", "is damaged"),
    "gzip checksum": (PACKED[:-8] + b"abcd" + PACKED[-4:], r"is damaged \(CRC check failed"),
    "raw, declares the world": (header_bytes(0x0E, *[2**32 - 1] * 4), "declares .* it has 20"),
    "gzip, declares the world": (
        gzip.compress(header_bytes(0x0E, *[2**32 - 1] * 4)),
        r"declares \d+ bytes; more than 8589934592 \(8 GiB\) are refused",
    ),
    "gzip, declares 4 GB": (
        gzip.compress(header_bytes(0x08, 2**32 - 1)),
        r"declares 4294967303 bytes, more than \d+ compressed bytes can hold",
    ),
}


@pytest.mark.parametrize("case", WRONG_FILES)
def test_wrong_files_are_named_for_what_they_are(tmp_path: Path, case: str) -> None:
    data, message = WRONG_FILES[case]
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(data)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=message) as caught:
            read_idx(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert str(caught.value).startswith(f"{path}: ")
    assert peak < 4 * 2**20  # nothing large is allocated for a promise


def test_gzip_is_not_expanded_beyond_its_promise() -> None:
    content = header_bytes(0x08, 10) + bytes(50_000_000)
    # its checksum is wrong too: whoever expands it all gets to see that instead
    packed = gzip.compress(content, compresslevel=1)[:-8] + bytes(8)
    with pytest.raises(DataError, match="goes on after the 10 bytes"):
        parse_idx(packed, "bomb")


def test_every_truncation_is_found() -> None:
    data = idx_bytes(SMALL)
    for whole in (data, PACKED):
        for length in range(len(whole)):
            with pytest.raises(DataError, match=r"^made: "):
                parse_idx(whole[:length], "made")


def test_no_flipped_bit_in_a_gzip_changes_a_value() -> None:
    for position in range(len(PACKED)):
        for bit in range(8):
            damaged = bytearray(PACKED)
            damaged[position] ^= 1 << bit
            try:
                np.testing.assert_array_equal(parse_idx(bytes(damaged), "made"), SMALL)
            except DataError as error:
                assert str(error).startswith("made: ")


def test_header_is_read_without_the_items(tmp_path: Path) -> None:
    path = tmp_path / "images.gz"
    compressor = zlib.compressobj(wbits=31)
    start = compressor.compress(header_bytes(0x08, 1000, 2, 2) + bytes(40)) + compressor.flush(
        zlib.Z_SYNC_FLUSH
    )
    path.write_bytes(start)
    assert read_idx_header(path).shape == (1000, 2, 2)
    with pytest.raises(DataError, match="ends early"):
        read_idx(path)


@pytest.mark.parametrize("read", [read_idx, read_idx_header])
def test_paths_that_cannot_be_read(tmp_path: Path, read: Any) -> None:
    with pytest.raises(DataError, match="cannot be read: No such file"):
        read(tmp_path / "missing")
    with pytest.raises(DataError, match="cannot be read"):
        read(tmp_path)
