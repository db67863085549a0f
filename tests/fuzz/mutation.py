"""Damage that knows nothing of a format: to bytes, and to text."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from random import Random

# where signs, carries and limits are
EDGES = (
    *(0, 1, 2, 3, 4, 7, 8, 0x7F, 0x80, 0xFE, 0xFF, 0x7FFF, 0x8000, 0xFFFE, 0xFFFF, 10**6, 10**9),
    *(2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**63, 2**64 - 1),
)
TOKENS = (
    *("0", "1", "-1", "2", "10", "28", "255", "1000000", "1e3", "1e-3", "1e400", "-0.0", "0.1", ".5", "1."),
    *("9" * 31, "9" * 5000, "1" + "0" * 300, "0x1F", "0b1", "010", "1_000", "1:30", "2020-01-01", "+1"),
    *(
        "nan",
        ".nan",
        "NaN",
        "inf",
        "-.inf",
        "Infinity",
        "null",
        "~",
        "None",
        "true",
        "True",
        "yes",
        "off",
        "",
    ),
    *("[", "]", "{", "}", "(", ")", ",", ":", ": ", "-", "- ", "'", '"', "\\", "#", "\n", "\t", " ", "\r"),
    *(
        "\0",
        "\x1b[31m",
        "\x7f",
        "\x85",
        "\u2028",
        "\ufeff",
        "\ufffe",
        "é",
        "数",
        "🜁",
        "\\ud800",
        "\\U00110000",
    ),
    *("../../etc/passwd", "/", "~nobody", "C:\\", "%s%n", "__class__", "a" * 300),
)


def mutate_bytes(content: bytes, rng: Random, most: int = 4) -> bytes:
    """Change a few places of some bytes, or cut them off."""
    data = bytearray(content)
    for _ in range(rng.randint(1, most)):
        rng.choice(BYTE_CHANGES)(data, rng)
    return bytes(data)


def mutate_text(text: str, rng: Random, tokens: Sequence[str] = TOKENS, most: int = 4) -> str:
    """Put tokens in, take pieces out, and move pieces of a text."""
    for _ in range(rng.randint(1, most)):
        start = rng.randint(0, len(text))
        end = min(len(text), start + rng.choice((0, 0, 1, 1, 2, 5, 20)))
        kind = rng.randrange(5)
        if kind == 0:
            piece = text[start:end] * rng.choice((0, 2, 3, 50))
        elif kind == 1:
            other = rng.randint(0, len(text))
            piece = text[other : other + rng.randint(1, 40)]
        else:
            piece = rng.choice(tokens)
        text = text[:start] + piece + text[end:]
    return text


def _position(data: bytearray, rng: Random) -> int:
    # the headers of most formats are at the start, the directory of a zip file is at the end
    near = rng.choice((16, 64, 256, len(data) + 1))
    offset = rng.randrange(min(near, len(data) + 1))
    return offset if rng.random() < 0.7 else len(data) - offset


def _flip(data: bytearray, rng: Random) -> None:
    if data:
        data[_position(data, rng) % len(data)] ^= 1 << rng.randrange(8)


def _set(data: bytearray, rng: Random) -> None:
    if data:
        data[_position(data, rng) % len(data)] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))


def _write_number(data: bytearray, rng: Random) -> None:
    size, letter = rng.choice(((2, "H"), (4, "I"), (8, "Q")))
    number = struct.pack(rng.choice("<>") + letter, rng.choice(EDGES) % 2 ** (8 * size))
    start = _position(data, rng)
    data[start : start + size] = number


def _cut(data: bytearray, rng: Random) -> None:
    del data[rng.randint(0, len(data)) :]


def _remove(data: bytearray, rng: Random) -> None:
    start = _position(data, rng)
    del data[start : start + rng.choice((1, 2, 4, 30, 1000))]


def _insert(data: bytearray, rng: Random) -> None:
    start = _position(data, rng)
    piece = rng.randbytes(rng.choice((1, 2, 4, 16, 300)))
    data[start:start] = rng.choice((piece, bytes(len(piece))))


def _copy(data: bytearray, rng: Random) -> None:
    start, to = _position(data, rng), _position(data, rng)
    piece = data[start : start + rng.choice((1, 4, 46, 200, 5000))]
    data[to : to + rng.choice((0, len(piece)))] = piece


def _blank(data: bytearray, rng: Random) -> None:
    start = _position(data, rng)
    size = min(rng.choice((2, 8, 64, 1000)), len(data) - start)
    data[start : start + size] = rng.choice((b"\0", b"\xff", b"A")) * size


def _append(data: bytearray, rng: Random) -> None:
    data.extend(rng.choice((b"\0", b"PK\x05\x06" + bytes(18), rng.randbytes(40), bytes(data))))


BYTE_CHANGES: tuple[Callable[[bytearray, Random], None], ...] = (
    *(_flip, _flip, _set, _write_number, _write_number),
    *(_cut, _remove, _insert, _copy, _blank, _append),
)
