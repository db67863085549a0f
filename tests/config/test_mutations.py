"""Random damage to the five configurations: it ends in a configuration or in a `ConfigError`."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cnncli.config import build_network, dump_config, load_config, parse_config
from cnncli.errors import ConfigError

pytestmark = pytest.mark.fuzz

CONFIGS = sorted((Path(__file__).resolve().parents[2] / "configs").glob("*.yaml"))
# without comments, so that every edit meets something that counts
BARE = [
    "\n".join(
        line.partition("#")[0].rstrip()
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.partition("#")[0].strip()
    )
    for path in CONFIGS
]
LINES = sorted({line for text in BARE for line in text.splitlines()})
TOKENS = sorted({token for text in BARE for token in re.findall(r"\w+|[^\w\s]", text)})
FRAGMENTS = [
    *["", " ", "\t", "\n", "\n    ", ": ", "- ", "{a: 1}", "[1, 2]", "? ", "<<: ", "---\n", "...\n"],
    *["&a ", "*a", "!!int ", "\\", "\x00", "\ufeff", "\u2028", "\x85", "é"],
    *":{}[],'\"#|>%@",
    *["null", "None", "yes", "-1", "0", "1", "1e400", "1e-9", ".nan", "010", "same"],
    *["9" * 40, "1" + "0" * 20, "1" + "0" * 4400, "training.epochs"],
]
PATHS = [
    "seed",
    "data",
    "network",
    "network[1]",
    "network.4.dense",
    "optimizer.sgd",
    "training.epochs",
    "a.b[3]",
]

fragments = st.sampled_from(FRAGMENTS) | st.sampled_from(TOKENS)
edits = st.tuples(st.integers(0, 1200), st.integers(0, 12), fragments)
overrides = st.tuples(st.sampled_from([*PATHS, ""]), st.sampled_from(["=", ""]), fragments).map("".join)
# weights of gigabytes are no fault, but slow; what no memory holds is refused at once
IS_SLOW = re.compile(r"(?<![0-9.])[0-9]{4,15}(?![0-9])")


def survives(text: str, arguments: list[str]) -> None:
    """Read a text; check the message of a fault, and that what has none can be written and built."""
    try:
        config = parse_config(text, "c.yaml", "/nowhere", arguments)
        assert parse_config(dump_config(config), "dumped", "/") == config
        if not IS_SLOW.search(str(config.network)):
            build_network(config, (1, 28, 28), 10, np.random.default_rng(0))
    except ConfigError as error:
        for line in str(error).split("\n"):
            assert line.startswith(("c.yaml:", "--set ", "and "))
            assert line.isprintable()
            assert len(line) < 700


@settings(max_examples=600)
@given(st.sampled_from(BARE), st.lists(edits, min_size=1, max_size=4), st.lists(overrides, max_size=2))
def test_edited_text(text: str, changes: list[tuple[int, int, str]], arguments: list[str]) -> None:
    for position, length, fragment in changes:
        start = position % len(text)
        text = text[:start] + fragment + text[start + length :]
    survives(text, arguments)


@settings(max_examples=600)
@given(st.sampled_from(BARE), st.lists(st.tuples(st.integers(0, 400), fragments), min_size=1, max_size=3))
def test_exchanged_tokens(text: str, changes: list[tuple[int, str]]) -> None:
    tokens = re.findall(r"\w+|\s+|[^\w\s]", text)
    for position, fragment in changes:
        tokens[position % len(tokens)] = fragment
    survives("".join(tokens), [])


@settings(max_examples=200)
@given(st.lists(st.sampled_from(LINES), max_size=25), st.lists(overrides, max_size=2))
def test_lines_in_any_order(lines: list[str], arguments: list[str]) -> None:
    survives("\n".join(lines), arguments)


@pytest.fixture(scope="module")
def damaged_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damaged") / "c.yaml"


@settings(max_examples=600)
@given(
    st.sampled_from(BARE),
    st.lists(st.tuples(st.integers(0, 1200), st.integers(0, 255)), min_size=1, max_size=3),
)
def test_exchanged_bytes(damaged_path: Path, text: str, changes: list[tuple[int, int]]) -> None:
    content = bytearray(text.encode())
    for position, byte in changes:
        content[position % len(content)] = byte
    damaged_path.write_bytes(content)
    try:
        load_config(damaged_path)
    except ConfigError as error:
        assert all(line.startswith(f"{damaged_path}:") for line in str(error).split("\n"))
