"""A configuration as YAML text, laid out as a person would write it."""

from __future__ import annotations

from typing import Any

import yaml

from cnncli.config.schema import Config


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
