"""YAML text into plain values that know where they were written.

Only the events of PyYAML's safe parser are used: nothing is ever constructed from a tag, and the
cost is bounded whatever the text holds. What a plain scalar means is decided here, by the core
schema of YAML 1.2 in its strictest form, because PyYAML's YAML 1.1 reads ``1e-3`` as text, ``yes``
as true, ``010`` as 8 and ``1:30`` as 90.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import yaml

from cnncli.config.faults import Faults, Place, UnreadableError, join, one_line

MAX_NODES = 10_000
MAX_DEPTH = 20
MAX_DIGITS = 30

NULL = re.compile(r"~|null|Null|NULL|")
BOOLEAN = re.compile(r"true|True|TRUE|false|False|FALSE")
INTEGER = re.compile(rf"[-+]?(?:0|[1-9][0-9]{{0,{MAX_DIGITS - 1}}})")
FLOAT = re.compile(
    r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)|\.[0-9]+(?:[eE][-+]?[0-9]+)?)"
)
# what most often lies behind a message of PyYAML
MENDS = {
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
            return "a mapping with " + _some(list(self.value)) if self.value else "an empty mapping"
        if isinstance(self.value, tuple):
            items = [item.shown() for item in self.value[:6]]
            more = ", ..." if len(self.value) > 6 else ""
            return one_line(f"[{', '.join(items)}{more}]")
        return one_line(self.written)


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
        loader = yaml.SafeLoader(text)
    except yaml.reader.ReaderError as error:
        raise _unprintable(error, text, place) from None
    try:
        return _Reader(loader, place, faults).document(key_path)
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, text, place) from None
    except (OverflowError, ValueError):
        # PyYAML hands "\U00110000" to chr() unchecked
        here = _at(place, loader.get_mark())
        raise UnreadableError(here, "not valid YAML: an escape that stands for no character") from None
    finally:
        loader.dispose()


class _Reader:
    """Turns the events of one document into nodes."""

    def __init__(self, loader: yaml.SafeLoader, place: Place, faults: Faults) -> None:
        self._loader = loader
        self._place = place
        self._faults = faults
        self._n_nodes = 0
        # None while the anchored value is still open: an alias to it would contain itself
        self._anchored: dict[str, tuple[Node, int] | None] = {}

    def document(self, key_path: str) -> Node:
        self._next()  # the start of the stream
        event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            return Node(_at(self._place, yaml.Mark("", 0, 0, 0, None, 0)), None, "nothing")
        node = self._node(self._next(), key_path, 0)
        self._next()  # the end of the document
        event = self._next()
        if not isinstance(event, yaml.StreamEndEvent):
            raise UnreadableError(self._at(event), "expected one YAML document, but a second one starts here")
        return node

    def _next(self) -> Any:
        event: Any = self._loader.get_event()  # type: ignore[no-untyped-call]
        return event

    def _at(self, event: Any) -> Place:
        return _at(self._place, event.start_mark)

    def _node(self, event: Any, key_path: str, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise UnreadableError(self._at(event), f"nested more than {MAX_DEPTH} deep")
        self._count(1, event)
        if isinstance(event, yaml.AliasEvent):
            return self._aliased(event)
        self._refuse_tag(event)
        if event.anchor is None:
            return self._content(event, key_path, depth)
        before = self._n_nodes
        self._anchored[event.anchor] = None
        node = self._content(event, key_path, depth)
        self._anchored[event.anchor] = (node, self._n_nodes - before)
        return node

    def _content(self, event: Any, key_path: str, depth: int) -> Node:
        if isinstance(event, yaml.ScalarEvent):
            return _scalar(event, self._at(event))
        if isinstance(event, yaml.SequenceStartEvent):
            return Node(self._at(event), self._sequence(key_path, depth))
        return Node(self._at(event), self._mapping(key_path, depth))

    def _sequence(self, key_path: str, depth: int) -> tuple[Node, ...]:
        items: list[Node] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            items.append(self._node(event, f"{key_path}[{len(items)}]", depth + 1))
        return tuple(items)

    def _mapping(self, key_path: str, depth: int) -> dict[str, Node]:
        entries: dict[str, Node] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key, place = self._key(event), self._at(event)
            path = join(key_path, one_line(key))
            node = self._node(self._next(), path, depth + 1)
            if key in entries:
                first = entries[key].place.line
                where = f", first on line {first}" if first else ""
                self._faults.add(place, path, f"the key is written twice{where}; keep one of the two")
            else:
                entries[key] = replace(node, place=place)
        return entries

    def _key(self, event: Any) -> str:
        """Take a key as it is written: ``on`` and ``1`` are names too, though of no option."""
        if not isinstance(event, yaml.ScalarEvent):
            raise UnreadableError(
                self._at(event), "expected a name as key, not a list, a mapping or an alias"
            )
        self._refuse_tag(event)
        if event.anchor is not None:
            self._anchored[event.anchor] = (_scalar(event, self._at(event)), 1)
        return str(event.value)

    def _aliased(self, event: Any) -> Node:
        if event.anchor not in self._anchored:
            raise UnreadableError(
                self._at(event), f"the alias *{one_line(event.anchor)} has no anchor before it"
            )
        anchored = self._anchored[event.anchor]
        if anchored is None:
            raise UnreadableError(self._at(event), f"the alias *{one_line(event.anchor)} contains itself")
        node, size = anchored
        self._count(size, event)
        return replace(node, place=self._at(event))

    def _count(self, n_nodes: int, event: Any) -> None:
        self._n_nodes += n_nodes
        if self._n_nodes > MAX_NODES:
            raise UnreadableError(self._at(event), f"more than {MAX_NODES:,} values, aliases counted in full")

    def _refuse_tag(self, event: Any) -> None:
        if event.tag is not None:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!", 1)
            raise UnreadableError(
                self._at(event), f"the tag {one_line(tag)} is not allowed; write a plain value"
            )


def _scalar(event: Any, place: Place) -> Node:
    if event.implicit[0]:  # not quoted
        return Node(place, resolve(event.value), event.value or "null")
    quote = "'" if event.style == "'" else '"'
    return Node(place, event.value, f"{quote}{event.value}{quote}")


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
    message = f"not valid YAML: {problem}"
    if error.context:
        message += f" {error.context}"
        if error.context_mark is not None and not source.is_override:
            message += f" that starts on line {error.context_mark.line + 1}"
    message += next((f"; {mend}" for part, mend in MENDS.items() if part in problem), "")
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


def _some(names: list[str]) -> str:
    shown = ", ".join(one_line(name, 30) for name in names[:6])
    return shown + (", ..." if len(names) > 6 else "")
