"""Random damage to a configuration: whatever comes out, it is a configuration or a `ConfigError`."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cnncli.config import build_network, dump_config, parse_config
from cnncli.errors import ConfigError

QUICKSTART = (Path(__file__).resolve().parents[2] / "configs" / "quickstart.yaml").read_text(encoding="utf-8")
BARE = "\n".join(
    line.partition("#")[0].rstrip() for line in QUICKSTART.splitlines() if line.partition("#")[0].strip()
)
LINES = BARE.splitlines()
FRAGMENTS = [
    *[
        "",
        " ",
        "\t",
        "\n",
        ":",
        ": ",
        "- ",
        "{",
        "}",
        "[",
        "]",
        ",",
        "'",
        '"',
        "#",
        "&a ",
        "*a",
        "!!int ",
        "|",
        ">",
        "? ",
    ],
    *[
        "null",
        "yes",
        "-1",
        "0",
        "1e400",
        ".nan",
        "010",
        "[1, 2]",
        "{a: 1}",
        "relu",
        "same",
        "\\",
        "%",
        "@",
        "\x00",
    ],
    *["\ufeff", "\u2028", "\x85", "é", "<<: ", "---\n", "...\n", "9" * 40, "training.epochs", "network"],
]
KEY_PATHS = [
    "seed",
    "data",
    "network",
    "network[1]",
    "network.9.dense",
    "optimizer.sgd",
    "training.epochs",
    "a.b[3]",
    "",
]
edits = st.tuples(st.integers(0, len(BARE)), st.integers(0, 12), st.sampled_from(FRAGMENTS))
overrides = st.tuples(st.sampled_from(KEY_PATHS), st.sampled_from(["=", ""]), st.sampled_from(FRAGMENTS)).map(
    "".join
)


def survives(text: str, arguments: list[str]) -> None:
    """Read a text; check the message of a fault, and that what has none can be written and built."""
    try:
        config = parse_config(text, "c.yaml", "/nowhere", arguments)
        assert parse_config(dump_config(config), "dumped", "/") == config
        if not re.search("[0-9]{4}", str(config.network)):  # gigabytes of weights are no fault, but slow
            build_network(config, (1, 28, 28), 10, np.random.default_rng(0))
    except ConfigError as error:
        assert all(line.startswith(("c.yaml:", "--set ")) for line in str(error).split("\n"))
        assert all(line.isprintable() for line in str(error).split("\n"))


@settings(max_examples=300)
@given(st.lists(edits, min_size=1, max_size=4), st.lists(overrides, max_size=2))
def test_edited_text(changes: list[tuple[int, int, str]], arguments: list[str]) -> None:
    text = BARE
    for start, length, fragment in changes:
        text = text[:start] + fragment + text[start + length :]
    survives(text, arguments)


@settings(max_examples=100)
@given(st.lists(st.sampled_from(LINES), max_size=25), st.lists(overrides, max_size=2))
def test_lines_in_any_order(lines: list[str], arguments: list[str]) -> None:
    survives("\n".join(lines), arguments)
