"""How large the content of a compressed file may be."""

from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest

from cnncli.data.idx import parse_idx
from cnncli.data.reading import HARMLESS_BYTES, MAX_BYTES, briefly, check_size
from cnncli.errors import DataError


@pytest.mark.parametrize(
    ("promised", "compressed"),
    [
        (HARMLESS_BYTES, HARMLESS_BYTES // 1032 + 1),  # nothing but zeros, and no harm in it
        (HARMLESS_BYTES + 1, HARMLESS_BYTES // 100 + 1),
        (47_040_016, 9_912_422),  # MNIST
        (MAX_BYTES, MAX_BYTES // 100 + 1),
        (MAX_BYTES, None),
    ],
)
def test_sizes_that_may_be_right(promised: int, compressed: int | None) -> None:
    check_size("a", promised, compressed=compressed)


@pytest.mark.parametrize(
    ("promised", "compressed", "message"),
    [
        (1033, 1, "a: declares 1033 bytes, more than 1 compressed bytes can hold"),
        (HARMLESS_BYTES + 1, HARMLESS_BYTES // 200, "a: would unpack 1342177 bytes to 268435457"),
        (MAX_BYTES + 1, MAX_BYTES, "8 GiB"),
        (MAX_BYTES + 1, None, "8 GiB"),
    ],
)
def test_sizes_that_cannot(promised: int, compressed: int | None, message: str) -> None:
    with pytest.raises(DataError, match=message):
        check_size("a", promised, compressed=compressed)


def test_a_bomb_in_a_gzip_is_refused_by_its_header() -> None:
    """300 MB in 300 kB: as much as deflate can hold, and more than images do."""
    header = struct.pack(">4B3I", 0, 0, 8, 3, 10_000, 100, 300)
    with pytest.raises(DataError, match=r"a: would unpack \d+ bytes to 300000016"):
        parse_idx(gzip.compress(header + np.random.default_rng(0).bytes(300_000)), "a")


def test_what_a_library_says_is_kept_short_and_on_one_line() -> None:
    assert briefly(ValueError("a\nb\x1b")) == "a b "
    assert briefly(ValueError("x" * 200)) == "x" * 200
    assert briefly(ValueError("x" * 201)) == "x" * 197 + "..."
