"""Arrays in the .npy format, with headers that lie, nonsense for types, and all edges of numbers."""

from __future__ import annotations

import pickle
import struct
from random import Random

import numpy as np

from tests.data.made_files import npy_bytes
from tests.fuzz.mutation import TOKENS, mutate_bytes, mutate_text

MAGIC = b"\x93NUMPY"
TYPES = (
    *("'|u1'", "'<u2'", "'>u4'", "'<u8'", "'|i1'", "'>i2'", "'<i8'", "'|b1'", "'<f2'", "'<f4'", "'>f4'"),
    *("'<f8'", "'>f8'", "'<f16'", "'<c8'", "'|O'", "'O8'", "'|S3'", "'|S0'", "'<U2'", "'<U0'", "'|V4'"),
    *("'|V0'", "'V99999999999'", "'S2147483647'", "'<M8[ns]'", "'<m8[s]'", "'<M8[1000Y/7]'", "'f4,f4'"),
    *(
        "'3f4'",
        "'(2,3)f4'",
        "'(99999,99999)f8'",
        "'a5'",
        "'nonsense'",
        "''",
        "None",
        "3",
        "{}",
        "('<f4', (2,))",
    ),
    *("[('a', '<f4')]", "[('a', '|O')]", "[('', '')]", "[()]", "[('a', '<f4', (10000000,))]"),
    *("{'names': ['a'], 'formats': ['<f4'], 'offsets': [999999999]}", "'<f4', 'descr': '|O'"),
)
SHAPES = (
    *("()", "(0,)", "(1,)", "(-1,)", "(2.0,)", "(True,)", "('3',)", "3", "None", "[3]", "(3, -4)", "(10L,)"),
    *("(1, 1, 2, 2)", "(2, 3, 2, 2)", "(1000000, 1000000)", "(99999999999999,)", "(9223372036854775807,)"),
    *("(9223372036854775808,)", "(4294967296, 4294967296)", "(0, 99999999999999)", "(((3,),),)"),
    "(" + "1, " * 40 + ")",
    "(" + "1, " * 3000 + ")",
    "(" + "9" * 4000 + ", 1, 1, 1)",
    "(" + "9" * 2500 + ", " + "9" * 2500 + ", 1, 1)",
    *("(" * 150 + ")" * 150, "(" * 3000, "-" * 3000 + "1", "(1 if 1 else 2,)", "(1).__class__", "3 * (9,)"),
    *("(3,", "{3: ", "'''", "(0o7,)", "(1_0,)", "(3 # , )", "(3j,)", "...", "b'\\xff'", "'\\d'"),
)
# the bits of a signalling NaN, and of numbers at the edges of a type
FLOAT_BITS = (
    *(0x7F800001, 0x7FC00000, 0x7F800000, 0xFF800000, 0x7F7FFFFF, 0x00000001, 0x80000000, 0x3F800000),
)
DOUBLE_BITS = tuple(
    struct.unpack("<Q", struct.pack("<d", value))[0]
    for value in (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e100, 1e39, 5e-324, -0.0, 1.0)
)


def mutate_npy(content: bytes, rng: Random) -> bytes:
    """Damage an array: its header, its type, its shape, its items."""
    kind = rng.randrange(8)
    if kind == 0:
        return mutate_bytes(content, rng)
    if kind == 1:
        return mutate_items(content, rng)
    if kind == 2:
        return npy_bytes(np.zeros(rng.choice(((3,), (1, 1, 2, 2), (12, 6, 4))), np.uint8)) + rng.randbytes(
            rng.randrange(3)
        )
    if kind == 3:
        pickled = pickle.dumps([{"a": 1}], protocol=rng.choice((0, 2, 4)))
        return header_bytes("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }") + pickled
    text, items = split(content)
    if kind == 4:
        text = mutate_text(text, rng, (*TOKENS, *TYPES, *SHAPES))
    if kind in (5, 7):
        text = _replaced(text, "'descr': ", rng.choice(TYPES))
    if kind in (6, 7):
        text = _replaced(text, "'shape': ", rng.choice(SHAPES))
    version = rng.choice((1, 1, 1, 1, 2, 3, 9))
    return header_bytes(text, version) + rng.choice((items, items, items, b"", items * 2))


def mutate_items(content: bytes, rng: Random) -> bytes:
    """Write numbers of all kinds over the items of an array."""
    text, items = split(content)
    data = bytearray(items)
    for _ in range(rng.randint(1, 4)):
        size, bits = rng.choice(
            ((4, rng.choice(FLOAT_BITS)), (8, rng.choice(DOUBLE_BITS)), (8, 2**63), (1, 255))
        )
        start = rng.randint(0, max(0, len(data) - size)) // size * size
        data[start : start + size] = bits.to_bytes(size, rng.choice(("little", "big")))
    return header_bytes(text) + bytes(data)


def header_bytes(text: str, version: int = 1) -> bytes:
    """Write a header of any text."""
    encoded = text.encode("utf-8", "surrogatepass")
    if version == 1:
        return MAGIC + b"\x01\x00" + struct.pack("<H", len(encoded) % 2**16) + encoded
    return MAGIC + bytes([version, 0]) + struct.pack("<I", len(encoded)) + encoded


def split(content: bytes) -> tuple[str, bytes]:
    """Take a whole array of version 1 apart into the text of its header and its items."""
    end = 10 + int.from_bytes(content[8:10], "little")
    return content[10:end].decode("latin1"), content[end:]


def _replaced(text: str, key: str, value: str) -> str:
    """Put another value into the text of a header; the old one ends before the next key."""
    before, _, rest = text.partition(key)
    following = rest.find(", '")
    return before + key + value + (rest[following:] if following >= 0 else ", }")
