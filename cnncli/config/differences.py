"""What two configurations do not have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cnncli.config.faults import join
from cnncli.config.schema import Config
from cnncli.nn.options import written


@dataclass(frozen=True)
class Difference:
    """One key path with two values.

    Attributes
    ----------
    before, after : plain values; a whole layer, optimizer or schedule where their names differ, and
        None where one of the two networks has no such layer
    """

    key_path: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.key_path}: {_shown(self.before)} before, {_shown(self.after)} now"


def differences(a: Config, b: Config) -> list[Difference]:
    """Compare two configurations value by value, in the order of the file."""
    return list(_compare(a.to_dict(), b.to_dict(), ""))


def _compare(a: Any, b: Any, key_path: str) -> Iterator[Difference]:
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        for key in a:
            yield from _compare(a[key], b[key], join(key_path, key))
    elif key_path == "network":
        for index in range(max(len(a), len(b))):
            yield from _compare(_item(a, index), _item(b, index), f"network[{index}]")
    elif a != b:
        yield Difference(key_path, a, b)


def _item(items: list[Any], index: int) -> Any:
    return items[index] if index < len(items) else None


def _shown(value: Any) -> str:
    if not isinstance(value, Mapping):
        return value if isinstance(value, str) else written(value)
    text = ", ".join(f"{key}: {_shown(entry)}" for key, entry in value.items())
    is_choice = all(isinstance(entry, Mapping) for entry in value.values())
    return text if is_choice else f"{{{text}}}"
