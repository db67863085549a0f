"""``--set training.epochs=3``: values from the command line, put over those of the file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from cnncli.config.document import MAX_DEPTH, Node, read_document
from cnncli.config.faults import Faults, Place, UnreadableError, join, one_line
from cnncli.config.registries import registry_at

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
