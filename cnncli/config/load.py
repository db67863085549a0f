"""From a file, a text or a checkpoint's record to a checked configuration."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cnncli.config.choices import registry_at
from cnncli.config.document import MAX_DEPTH, MAX_DIGITS, Node, read_document, read_text
from cnncli.config.faults import Faults, Place, UnreadableError, join, one_line
from cnncli.config.reader import read_config
from cnncli.config.schema import Config


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Read and check a configuration file.

    Parameters
    ----------
    path : YAML file; relative paths in it start from its directory
    overrides : ``KEY.PATH=VALUE`` each, put over the file in turn; relative paths in them start from
        the current directory

    Raises
    ------
    ConfigError : the file cannot be read, is not YAML, or has faults: every one on a line of its own
    """
    path = Path(path)
    return parse_config(read_text(path), str(path), path.parent, overrides)


def parse_config(text: str, source: str, base_directory: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Read and check the text of a configuration; `source` names it in messages. See `load_config`."""
    faults = Faults()
    try:
        root = read_document(text, Place(source), faults)
    except UnreadableError as fault:
        raise fault.to_error() from None
    if root.value is None or isinstance(root.value, Mapping):
        root = apply_overrides(root, overrides, faults)
    return read_config(root, Path(base_directory), faults)


def config_from_dict(data: object, source: str) -> Config:
    """Read and check what ``Config.to_dict`` gave, such as the record in a checkpoint.

    Raises
    ------
    ConfigError : located by `source` and key path, as there are no lines
    """
    place = Place(source)
    try:
        root = _locate(data, place, 0)
    except UnreadableError as fault:
        raise fault.to_error() from None
    return read_config(root, Path(), Faults())


def _locate(value: Any, place: Place, depth: int) -> Node:
    if depth > MAX_DEPTH:
        raise UnreadableError(place, f"nested more than {MAX_DEPTH} deep")
    if isinstance(value, Mapping):
        return Node(place, {str(key): _locate(entry, place, depth + 1) for key, entry in value.items()})
    if isinstance(value, (list, tuple)):
        return Node(place, tuple(_locate(item, place, depth + 1) for item in value))
    if isinstance(value, int) and abs(value) >= 10**MAX_DIGITS:
        # in a file it would be text as well, and Python does not write out the largest ones
        too_large = f"an integer of more than {MAX_DIGITS} digits"
        return Node(place, too_large, too_large)
    return Node(place, value, json.dumps(value, ensure_ascii=False, default=repr))


_KEY_PATH = re.compile(r"[^.\[\]\s]+(?:\.[^.\[\]\s]+|\[[0-9]+\])*")
_MAX_INDEX_DIGITS = 6


def apply_overrides(root: Node, overrides: Sequence[str], faults: Faults) -> Node:
    """Return the document with every ``KEY.PATH=VALUE`` put in, later ones over earlier ones.

    A list takes an index, as ``network[2].dense.out_features`` or ``network.2.dense.out_features``.
    The value is YAML. Naming another optimizer, schedule or layer replaces the one in the file with
    all its options. Faults are collected; an override that has one is left out.
    """
    for rank, argument in enumerate(overrides, start=1):
        place = Place(f"--set {one_line(argument, 120)}", rank=rank)
        key, equals, value = argument.partition("=")
        key = key.strip()
        if not equals or not _KEY_PATH.fullmatch(key):
            faults.add(place, "", f"expected KEY=VALUE, such as training.epochs=3, got {_got(key, equals)}")
            continue
        steps = re.findall(r"[^.\[\]]+", key)
        if len(steps) > MAX_DEPTH:
            faults.add(place, "", f"expected a key of at most {MAX_DEPTH} parts, got {len(steps)}")
            continue
        override = _Override(place, value, faults)
        try:
            root = override.put(root, steps, "")
        except UnreadableError as fault:
            faults.add(place, override.key_path, fault.message)
    return root


class _Override:
    """One value on its way to its place in the document.

    Attributes
    ----------
    key_path : how far it has got
    """

    def __init__(self, place: Place, value: str, faults: Faults) -> None:
        self.key_path = ""
        self._place = place
        self._value = value
        self._faults = faults

    def put(self, node: Node, steps: Sequence[str], key_path: str) -> Node:
        """Return `node` with the value put in, `steps` below it; the node itself is not changed."""
        self.key_path = key_path
        if not steps:
            return read_document(self._value, self._place, self._faults, key_path)
        step, rest = steps[0], steps[1:]
        if isinstance(node.value, tuple):
            index = self._index(step, len(node.value))
            items = list(node.value)
            items[index] = self.put(items[index], rest, f"{key_path}[{index}]")
            return replace(node, value=tuple(items))
        entries, place = self._entries(node, step)
        child = entries.get(step, Node(self._place))
        entries[step] = self.put(child, rest, join(key_path, one_line(step, 40)))
        return Node(place, entries)

    def _index(self, step: str, length: int) -> int:
        if step.isascii() and step.isdigit() and len(step) <= _MAX_INDEX_DIGITS and int(step) < length:
            return int(step)
        valid = f"an index from 0 to {length - 1}" if length else "entries, but the list is empty"
        raise UnreadableError(self._place, f"expected {valid}, got {one_line(step, 40)}")

    def _entries(self, node: Node, step: str) -> tuple[dict[str, Node], Place]:
        """Return the entries among which `step` is put, and where the mapping counts as written."""
        registry = registry_at(self.key_path)
        entries = self._mapping(node, named=registry is not None)
        if registry is not None and step in registry and step not in entries:
            return {}, self._place
        return entries, node.place

    def _mapping(self, node: Node, named: bool) -> dict[str, Node]:
        if node.value is None:
            return {}
        if isinstance(node.value, Mapping):
            return dict(node.value)
        if named and isinstance(node.value, str):
            # `optimizer: adam` is short for `optimizer: {adam: {}}`
            return {node.value: Node(node.place)}
        raise UnreadableError(
            self._place, f"expected a mapping here to put a key into, but it is {node.shown()}"
        )


def _got(key: str, equals: str) -> str:
    if not equals:
        return "no ="
    return f"the key {one_line(key, 40)}" if key else "no key"
