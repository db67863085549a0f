"""YAML text into plain values that know where they were written.

PyYAML composes the nodes and nothing is ever constructed from them. What a plain scalar means is decided
here, by the core schema of YAML 1.2 in its strictest form, because PyYAML's YAML 1.1 reads ``1e-3`` as
text, ``yes`` as true, ``010`` as 8 and ``1:30`` as 90 (docs/adr/0004-own-scalar-rules.md).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from cnncli.config.faults import Faults, Place, UnreadableError, join, one_line
from cnncli.errors import ConfigError

MAX_BYTES = 1 << 20
MAX_NODES = 10_000
MAX_DEPTH = 20
MAX_DIGITS = 30

NULL = re.compile(r"~|null|Null|NULL|")
BOOLEAN = re.compile(r"true|True|TRUE|false|False|FALSE")
INTEGER = re.compile(rf"[-+]?(?:0|[1-9][0-9]{{0,{MAX_DIGITS - 1}}})")
FLOAT = re.compile(
    r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)|\.[0-9]+(?:[eE][-+]?[0-9]+)?)"
)
# what BaseLoader gives to a node without a tag of its own
PLAIN_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map")}
MERGE = "<<"
# the likely reason behind a message of PyYAML
FIXES = {
    "mapping values are not allowed": "check the indent, and that a space follows every colon",
    "cannot start any token": "a text that starts with it needs quotes",
    "expected <block end>": "check that the lines of one section have the same indent",
    "expected ',' or": "check that every bracket is closed, and that commas stand between the entries",
    "could not find expected ':'": "check that a colon and a space follow every key",
}

Scalar: TypeAlias = "bool | int | float | str | None"
Value: TypeAlias = "Scalar | tuple[Node, ...] | Mapping[str, Node]"


@dataclass(frozen=True)
class Node:
    """A value and where it was written: at its key if it has one.

    `written` is a scalar as it stands in the text, quotes included.
    """

    place: Place
    value: Value = None
    written: str = "null"

    def plain(self) -> Any:
        """Return the value without its places: None, bool, int, float, str, list or dict."""
        if isinstance(self.value, tuple):
            return [item.plain() for item in self.value]
        if isinstance(self.value, Mapping):
            return {key: node.plain() for key, node in self.value.items()}
        return self.value

    def shown(self) -> str:
        """Write the value for a message, as the user wrote it, on one short line."""
        if isinstance(self.value, Mapping):
            names = ", ".join(one_line(name, 30) for name in list(self.value)[:6])
            more = ", ..." if len(self.value) > 6 else ""
            return f"a mapping with {names}{more}" if names else "an empty mapping"
        if isinstance(self.value, tuple):
            items = [item.shown() for item in self.value[:6]]
            more = ", ..." if len(self.value) > 6 else ""
            return one_line(f"[{', '.join(items)}{more}]")
        return one_line(self.written)


def read_text(path: Path) -> str:
    """Return the text of a configuration file, UTF-8 whatever the locale says; a byte order mark is dropped.

    Raises
    ------
    ConfigError : no such file, a directory, unreadable, larger than 1 MiB, or not UTF-8
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; expected a configuration in YAML") from None
    except IsADirectoryError:
        raise ConfigError(f"{path}: expected a configuration file in YAML, got a directory") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(content) > MAX_BYTES:
        raise ConfigError(f"{path}: expected a configuration of at most 1 MiB, got a larger file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{path}:{line}: expected UTF-8 text, got the byte 0x{content[error.start]:02x}; "
            "save the file as UTF-8"
        ) from None


def read_document(text: str, place: Place, faults: Faults, key_path: str = "") -> Node:
    """Read the one document of a text.

    Parameters
    ----------
    place : the source; nodes get their lines only where it is a file (rank 0)
    faults : receives duplicate keys, which do not stop the reading
    key_path : where the document belongs, for a value given by ``--set``

    Raises
    ------
    UnreadableError : not YAML, more than one document, a tag, nested too deep, or too large
    """
    try:
        # a loader without resolvers: it says of no scalar what it is
        root = yaml.compose(text, Loader=yaml.BaseLoader)
    except yaml.reader.ReaderError as error:
        raise _unprintable(error, text, place) from None
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, text, place) from None
    except RecursionError:
        raise UnreadableError(place, f"nested more than {MAX_DEPTH} deep") from None
    except (OverflowError, ValueError):
        # PyYAML hands "\U00110000" to chr() unchecked
        raise UnreadableError(place, "not valid YAML: an escape that stands for no character") from None
    if root is None:
        return Node(_at(place, yaml.Mark("", 0, 0, 0, None, 0)), None, "nothing")
    return _Reader(place, faults).node(root, key_path, 0)


class _Reader:
    """Turns the nodes of PyYAML into ours; aliases count in full, so their number is bounded."""

    def __init__(self, place: Place, faults: Faults) -> None:
        self._place = place
        self._faults = faults
        self._n_nodes = 0

    def node(self, node: yaml.Node, key_path: str, depth: int) -> Node:
        place = _at(self._place, node.start_mark)
        self._n_nodes += 1
        if depth > MAX_DEPTH:
            raise UnreadableError(place, f"nested more than {MAX_DEPTH} deep, or an alias contains itself")
        if self._n_nodes > MAX_NODES:
            raise UnreadableError(place, f"more than {MAX_NODES:,} values, aliases counted in full")
        self._check_tag(node, place)
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node, place)
        if isinstance(node, yaml.SequenceNode):
            items = enumerate(node.value)
            return Node(
                place, tuple(self.node(item, f"{key_path}[{index}]", depth + 1) for index, item in items)
            )
        return Node(place, self._mapping(node, key_path, depth))

    def _check_tag(self, node: yaml.Node, place: Place) -> None:
        if node.tag not in PLAIN_TAGS:
            tag = one_line(node.tag.replace("tag:yaml.org,2002:", "!!", 1))
            raise UnreadableError(place, f"the tag {tag} is not allowed; write a plain value")

    def _mapping(self, mapping: yaml.Node, key_path: str, depth: int) -> dict[str, Node]:
        entries: dict[str, Node] = {}
        merged: list[Node] = []
        for key_node, value_node in mapping.value:
            place = _at(self._place, key_node.start_mark)
            if not isinstance(key_node, yaml.ScalarNode):
                raise UnreadableError(place, "expected a name as key, not a list or a mapping")
            self._check_tag(key_node, place)
            key = str(key_node.value)  # as it is written: `on` and `1` are names too, though of no option
            path = join(key_path, one_line(key))
            node = self.node(value_node, path, depth + 1)
            if key == MERGE:
                merged += node.value if isinstance(node.value, tuple) else [node]
            elif key in entries:
                first = entries[key].place.line
                where = f", first on line {first}" if first else ""
                self._faults.add(place, path, f"the key is written twice{where}; keep one of the two")
            else:
                entries[key] = replace(node, place=place)
        return self._with_merged(entries, merged, key_path)

    def _with_merged(
        self, entries: dict[str, Node], merged: Iterable[Node], key_path: str
    ) -> dict[str, Node]:
        """Add what ``<<: *name`` brings; keys of the mapping itself win, then those merged first."""
        for node in merged:
            if isinstance(node.value, Mapping):
                entries = {**node.value, **entries}
            else:
                path = join(key_path, MERGE)
                message = f"expected an alias of a mapping, such as <<: *name, got {node.shown()}"
                self._faults.add(node.place, path, message)
        return entries


def _scalar(node: yaml.ScalarNode, place: Place) -> Node:
    if node.style is None:  # not quoted
        return Node(place, resolve(node.value), node.value or "null")
    quote = "'" if node.style == "'" else '"'
    return Node(place, node.value, f"{quote}{node.value}{quote}")


def resolve(text: str) -> Scalar:
    """Decide what an unquoted scalar means; what is nothing else is text."""
    if NULL.fullmatch(text):
        return None
    if BOOLEAN.fullmatch(text):
        return text.lower() == "true"
    if INTEGER.fullmatch(text):
        return int(text)
    if FLOAT.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) else text
    return text


def _at(source: Place, mark: Any) -> Place:
    return source if source.is_override else replace(source, line=mark.line + 1, column=mark.column + 1)


def _unprintable(error: yaml.reader.ReaderError, text: str, place: Place) -> UnreadableError:
    before = text[: error.position]
    mark = yaml.Mark("", error.position, before.count("\n"), len(before) - before.rfind("\n") - 1, None, 0)
    return UnreadableError(_at(place, mark), f"the character U+{error.character:04X} is not allowed in YAML")


def _syntax_error(error: yaml.MarkedYAMLError, text: str, source: Place) -> UnreadableError:
    mark = error.problem_mark or error.context_mark
    place = source if mark is None else _at(source, mark)
    tab = _tab_column(text, mark)
    if tab is not None:
        if place.line:
            place = replace(place, column=tab + 1)
        return UnreadableError(place, "a tab, where YAML allows only spaces; indent with spaces")
    problem = error.problem or "cannot be read"
    if "another document" in problem:
        return UnreadableError(place, "expected one YAML document, but a second one starts here")
    message = f"not valid YAML: {problem}"
    if error.context:
        message += f" {error.context}"
        if error.context_mark is not None and not source.is_override:
            message += f" that starts on line {error.context_mark.line + 1}"
    message += next((f"; {fix}" for part, fix in FIXES.items() if part in problem), "")
    return UnreadableError(place, one_line(message, 200))


def _tab_column(text: str, mark: Any) -> int | None:
    """Find the tab that a syntax error is about: where it happened, or in the indent of its line."""
    if mark is None:
        return None
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    if line[mark.column : mark.column + 1] == "\t":
        return int(mark.column)
    indent = line[: len(line) - len(line.lstrip())]
    return indent.find("\t") if "\t" in indent else None
