"""Which layer, optimizer or schedule an entry names, in each of the forms it may have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cnncli.config.document import Node
from cnncli.config.faults import Faults, join, one_line
from cnncli.config.schema import fields_of
from cnncli.config.suggestions import Chosen, nearest, unknown
from cnncli.nn.layers import LAYERS
from cnncli.nn.optimizers import OPTIMIZERS
from cnncli.nn.schedules import SCHEDULES

_LAYER_PATH = re.compile(r"network\[[0-9]+\]")


def registry_at(key_path: str) -> Mapping[str, type[Any]] | None:
    """Return the classes by name where a key path names one of them, or None elsewhere."""
    if _LAYER_PATH.fullmatch(key_path):
        return LAYERS
    if key_path == "optimizer":
        return OPTIMIZERS
    return SCHEDULES if key_path == "schedule" else None


EXAMPLES = {
    "optimizer": "adam: {learning_rate: 0.001}",
    "schedule": "cosine: {warmup: 0.1}",
    "layer": "relu or dense: {out_features: 10}",
}


@dataclass(frozen=True)
class Entry:
    """A text such as ``relu``, or a mapping such as ``dense: {out_features: 10}``, to take apart.

    Attributes
    ----------
    kind : "layer", "optimizer" or "schedule"
    path : key path of the entry, such as ``network[2]``
    chosen : for the advice about keys that belong elsewhere
    """

    node: Node
    kind: str
    path: str
    chosen: Chosen

    def name_and_options(self, faults: Faults) -> tuple[str, Node] | None:
        """Return the name and the node of its options; None where the entry names nothing that exists."""
        value, registry = self.node.value, registry_of(self.path)
        if isinstance(value, str):
            if value in registry:
                return value, Node(self.node.place)
            faults.add(self.node.place, self.path, unknown(self.kind, value, registry))
            return None
        if not isinstance(value, Mapping) or not value:
            message = f"expected one {self.kind}, such as {EXAMPLES[self.kind]}, got {self.node.shown()}"
            faults.add(self.node.place, self.path, message)
            return None
        known = [name for name in value if name in registry]
        if len(known) == 1:
            return known[0], self._with_strays(value, known[0], faults)
        if len(value) == 1:
            ((name, options),) = value.items()
            faults.add(options.place, join(self.path, one_line(name, 40)), unknown(self.kind, name, registry))
            return None
        keys = ", ".join(one_line(name, 40) for name in [*value][:6])
        message = f"expected one {self.kind} with its options under it, such as {EXAMPLES[self.kind]}"
        faults.add(self.node.place, self.path, f"{message}, got the keys {keys}")
        return None

    def _with_strays(self, entries: Mapping[str, Node], name: str, faults: Faults) -> Node:
        """Report the keys beside a name, and return its options together with those among them.

        Most often they are options that are not indented far enough. They count as given, so that
        nobody is told that they are missing as well.
        """
        options = entries[name]
        fields = fields_of(registry_of(self.path)[name])
        strays = {key: node for key, node in entries.items() if key in fields}
        for key, node in entries.items():
            if key in strays:
                indent = "" if node.place.is_override else f"; indent it further than {name}"
                message = f"unknown key {key} beside {name}; it belongs to {join(self.path, name)}{indent}"
                faults.add(node.place, join(self.path, key), message)
            elif key != name:
                faults.add(node.place, join(self.path, one_line(key, 40)), self._stray(key, name))
        if strays and (options.value is None or isinstance(options.value, Mapping)):
            return replace(options, value={**strays, **(options.value or {})})
        return options

    def _stray(self, key: str, name: str) -> str:
        registry = registry_of(self.path)
        if nearest(key, registry) is not None:
            return unknown(self.kind, key, registry)
        return unknown("key", key, [name], self.chosen)


def registry_of(path: str) -> Mapping[str, type[Any]]:
    """Return the classes that the entry at a key path may name."""
    registry = registry_at(path)
    assert registry is not None
    return registry
