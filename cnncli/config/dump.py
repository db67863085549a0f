"""A configuration written out as YAML text, and compared with another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from cnncli.config.faults import join
from cnncli.config.schema import Config
from cnncli.nn.options import written


class _Flow(dict[str, Any]):
    """A mapping to write on one line: ``{out_channels: 8, kernel_size: 3}``."""


class _Dumper(yaml.SafeDumper):
    """Writes lists of numbers on one line, and equal values as often as they stand."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_flow(dumper: yaml.SafeDumper, data: _Flow) -> yaml.Node:
    return dumper.represent_mapping("tag:yaml.org,2002:map", data, flow_style=True)


def _represent_list(dumper: yaml.SafeDumper, data: list[Any]) -> yaml.Node:
    is_flow = not any(isinstance(item, (dict, str)) for item in data)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=is_flow)


_Dumper.add_representer(_Flow, _represent_flow)
_Dumper.add_representer(list, _represent_list)


def dump_config(config: Config) -> str:
    """Return YAML text that reads back as an equal configuration; floats are exact."""
    data = config.to_dict()
    data["network"] = [_on_one_line(layer) for layer in data["network"]]
    for key in ("optimizer", "schedule"):
        data[key] = _on_one_line(data[key])
    data["loss"] = _Flow(data["loss"])
    data["data"]["augment"] = _on_one_line(data["data"]["augment"])
    data["training"]["early_stopping"] = _on_one_line(data["training"]["early_stopping"])
    text: str = yaml.dump(
        data,
        Dumper=_Dumper,
        sort_keys=False,
        default_flow_style=False,
        allow_unicode=True,
        width=10_000,  # a folded path would be hard to copy
    )
    return text


def _on_one_line(value: Any) -> Any:
    """Keep ``dense: {...}`` as a key of its own, with its options on the same line."""
    if not isinstance(value, dict):
        return value
    if any(isinstance(options, dict) for options in value.values()):
        return {name: _Flow(options) for name, options in value.items()}
    return _Flow(value)


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
