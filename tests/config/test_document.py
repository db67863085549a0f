"""YAML text into located values: what scalars mean, and every way of not being a document."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cnncli.config.document import MAX_NODES, Node, read_document, resolve
from cnncli.config.faults import Faults, Place
from tests.config.texts import NETWORK, faults, read


def document(text: str) -> Node:
    return read_document(text, Place("c.yaml"), Faults())


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1e-3", 0.001),
        ("1e3", 1000.0),
        ("1.0e3", 1000.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("-2.5E+2", -250.0),
        ("+7", 7),
        ("-0", 0),
        ("60000", 60000),
        ("", None),
        ("~", None),
        ("null", None),
        ("NULL", None),
        ("true", True),
        ("False", False),
    ],
)
def test_scalar_has_a_type(written: str, value: object) -> None:
    resolved = resolve(written)
    assert resolved == value
    assert type(resolved) is type(value)


@pytest.mark.parametrize(
    "written",
    [
        *["nan", ".nan", ".NaN", "inf", "-.inf", "1e400", "-1e999"],
        *["yes", "no", "on", "off", "y", "tRUE"],
        *["None", "none", "nUll"],
        *["010", "-010", "00", "0x1F", "0o17", "1_000", "1:30", "1,5", "01.5", "1e", "e3", ".", "+", "1.2.3"],
        *["9" * 31, "1 000", "١٢"],
        *["2024-01-01", "<<", "="],  # YAML 1.1 has types for these
    ],
)
def test_scalar_stays_text(written: str) -> None:
    assert resolve(written) == written


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: '3'", {"a": "3"}),
        ('a: "null"', {"a": "null"}),
        ("a: |\n  1\n", {"a": "1\n"}),
        ("on: 1\n2: 2\nnull: 3\n1.5: 4", {"on": 1, "2": 2, "null": 3, "1.5": 4}),
        ("a: &x [1, 2]\nb: *x", {"a": [1, 2], "b": [1, 2]}),
        ("&x a: 1\nb: *x", {"a": 1, "b": "a"}),
        ("--- {a: }\n...\n", {"a": None}),
        ("", None),
        ("# nothing but a comment\n", None),
    ],
)
def test_document_is_plain_values(text: str, value: object) -> None:
    assert document(text).plain() == value


def test_values_know_where_they_are_written() -> None:
    root = document("training:\n  epochs:\n    3\nnetwork:\n  - relu\n  - dense:\n      out_features: 10\n")
    training, network = child(root, "training"), child(root, "network")
    assert child(training, "epochs").place == Place("c.yaml", 2, 3)  # its key, not its value
    assert isinstance(network.value, tuple)
    assert [item.place.line for item in network.value] == [5, 6]
    assert child(child(network.value[1], "dense"), "out_features").place.line == 7


def child(node: Node, key: str) -> Node:
    assert isinstance(node.value, dict)
    value: Node = node.value[key]
    return value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "a:\n\tb: 1",
            "c.yaml:2:1: a tab, where YAML allows only spaces; indent with spaces",
            id="indent",
        ),
        pytest.param(
            "a:\n  b: 1\n \tc: 2",
            "c.yaml:3:2: a tab, where YAML allows only spaces; indent with spaces",
            id="after-spaces",
        ),
        pytest.param(
            "a:\t3",
            "c.yaml:1:3: a tab, where YAML allows only spaces; indent with spaces",
            id="separator",
        ),
        pytest.param(
            NETWORK + "x: !!python/object/apply:os.system ['touch hacked']",
            "c.yaml:2:4: the tag !!python/object/apply:os.system is not allowed; write a plain value",
            id="case",
        ),
        ("x: !!int 3", "c.yaml:1:4: the tag !!int is not allowed; write a plain value"),
        ("!mine x: 3", "c.yaml:1:1: the tag !mine is not allowed; write a plain value"),
        (
            "a: b: c",
            "c.yaml:1:5: not valid YAML: mapping values are not allowed here; "
            "check the indent, and that a space follows every colon",
        ),
        (
            "learning_rate:0.1\n",
            "c.yaml:1: a configuration must be a mapping of keys to values, got learning_rate:0.1",
        ),
        (
            "a: [1, 2\nb: 3\n",
            "c.yaml:2:2: not valid YAML: expected ',' or ']', but got ':' "
            "while parsing a flow sequence that starts on line 1; "
            "check that every bracket is closed, and that commas stand between the entries",
        ),
        (
            "training:\n  epochs: 3\n batch_size: 3\n",
            "c.yaml:3:2: not valid YAML: expected <block end>, but found '<block mapping start>' "
            "while parsing a block mapping that starts on line 1; "
            "check that the lines of one section have the same indent",
        ),
        (
            "a: @x",
            "c.yaml:1:4: not valid YAML: found character '@' that cannot start any token "
            "while scanning for the next token; a text that starts with it needs quotes",
        ),
        ('a: "\\UFFFFFFFF"', "c.yaml: not valid YAML: an escape that stands for no character"),
        ("a: 1\nb: \x01", "c.yaml:2:4: the character U+0001 is not allowed in YAML"),
        ("a: 1\n---\nb: 2", "c.yaml:2:1: expected one YAML document, but a second one starts here"),
        ("? [a]\n: 1", "c.yaml:1:3: expected a name as key, not a list or a mapping"),
        ("a: *x", "c.yaml:1:4: not valid YAML: found undefined alias 'x'"),
        ("a: &x [1, *x]", "c.yaml:1:8: nested more than 20 deep, or an alias contains itself"),
        ("[" * 100_000, "c.yaml: nested more than 20 deep"),
        ("- " * 100_000, "c.yaml: nested more than 20 deep"),
    ],
)
def test_unreadable_text_is_one_line(text: str, message: str) -> None:
    assert faults(text) == [message]


def test_tag_runs_nothing(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    faults(NETWORK + "x: !!python/object/apply:os.system ['touch hacked']")
    assert not list(tmp_path.iterdir())


def test_aliases_do_not_multiply_without_end() -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    (message,) = faults("\n".join(lines))
    assert message == f"c.yaml:1:37: more than {MAX_NODES:,} values, aliases counted in full"


def test_layers_are_shared_by_anchors_and_merge_keys() -> None:
    text = """
network:
  - conv2d: &conv {out_channels: 8, kernel_size: 3}
  - conv2d: {<<: *conv, out_channels: 16}
  - flatten
  - dense: {<<: [{out_features: 10, bias: false}, {bias: true}]}
"""
    config = read(text)
    first, second, _, dense = config.network
    assert (first.options["out_channels"], second.options["out_channels"]) == (8, 16)
    assert first.options["kernel_size"] == second.options["kernel_size"] == (3, 3)
    assert (dense.options["out_features"], dense.options["bias"]) == (10, False)
    assert faults(NETWORK + "training: {<<: 3}") == [
        "c.yaml:2: training.<<: expected an alias of a mapping, such as <<: *name, got 3"
    ]
    assert "training.epocs: unknown key epocs" in faults(NETWORK + "training: {<<: {epocs: 3}}")[0]


def test_too_many_values() -> None:
    (message,) = faults("a: [" + "1, " * 20_000 + "]")
    assert message.endswith(f"more than {MAX_NODES:,} values, aliases counted in full")


def test_alias_gives_the_same_layer_twice() -> None:
    config = read(
        "network:\n  - &c {conv2d: {out_channels: 4, kernel_size: 3}}\n  - *c\n"
        "  - flatten\n  - dense: {out_features: 10}\n"
    )
    assert config.network[0] == config.network[1]


@given(st.text(max_size=200))
def test_no_text_makes_anything_but_a_config_error(text: str) -> None:
    assert faults(text)
