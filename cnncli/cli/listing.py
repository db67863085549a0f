"""``cnncli list``: every name and option that a configuration may hold, from the signatures."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import click

from cnncli.cli.arguments import json_option
from cnncli.cli.terminal import Stream, labelled, results, write_json
from cnncli.config import Choice, Config, Field, fields_of
from cnncli.config.reader import DEFAULT_CHOICES
from cnncli.config.schema import SECTIONS, TOP_LEVEL, Seed
from cnncli.nn import LAYERS, OPTIMIZERS, SCHEDULES
from cnncli.nn.options import option_of, written

INDENT = "  "
NAME_WIDTH = 23
DEFAULT_WIDTH = 12
MAX_WIDTH = 100

REGISTRIES: Mapping[str, tuple[str, Mapping[str, type[Any]]]] = {
    "network": ("A list of layers, each of which is one of:", LAYERS),
    "optimizer": (f"One of these; {DEFAULT_CHOICES['optimizer']} by default.", OPTIMIZERS),
    "schedule": (f"One of these; {DEFAULT_CHOICES['schedule']} by default.", SCHEDULES),
}


@click.command("list")
@json_option()
def list_options(as_json: bool) -> None:
    """List every layer, optimizer and schedule with its options.

    The keys are those of a configuration, in its order; each option comes with its default and what
    it may be.
    """
    document = _document()
    if as_json:
        write_json(document)
        return
    stream = results()
    _write_option("seed", document["seed"], 0, stream)
    for key, content in document.items():
        if key in REGISTRIES:
            _write_registry(key, content, stream)
        elif key in SECTIONS:
            _write_section(key, content, stream)


def _document() -> dict[str, Any]:
    """Give everything as plain values, in the order of a configuration: options under what has them."""
    document: dict[str, Any] = {
        "seed": {"expected": _seed_expected(), "required": False, "default": Config.seed}
    }
    for key in TOP_LEVEL:
        if key in SECTIONS:
            document[key] = _described(SECTIONS[key])
        elif key in REGISTRIES:
            _, registry = REGISTRIES[key]
            document[key] = {name: _described(cls) for name, cls in registry.items()}
    return document


def _described(cls: type[Any]) -> dict[str, Any]:
    return {"description": _summary(cls), "options": _options(cls)}


def _options(cls: type[Any]) -> dict[str, Any]:
    fields, defaults = fields_of(cls), _defaults(cls)
    return {name: _option(field, defaults.get(name)) for name, field in fields.items()}


def _option(field: Field, default: Any) -> dict[str, Any]:
    option: dict[str, Any] = {"expected": _expected(field), "required": field.is_required}
    if not field.is_required:
        option["default"] = default
    if field.section is not None:
        option["options"] = _options(field.section)
    return option


def _defaults(cls: type[Any]) -> Mapping[str, Any]:
    """Return the defaults as they would stand in YAML."""
    values = {name: field.default for name, field in fields_of(cls).items() if not field.is_required}
    plain = Choice("defaults", values).to_plain()
    return {} if isinstance(plain, str) else plain["defaults"]


def _expected(field: Field) -> str:
    return "a mapping with these keys, or null" if field.check is None else field.check.expected


def _seed_expected() -> str:
    check = option_of(Seed)
    assert check is not None
    return f"{check.expected}, which draws one"


def _summary(cls: type[Any]) -> str:
    """Return the first sentence of a docstring."""
    return " ".join((inspect.getdoc(cls) or "").partition("\n\n")[0].replace("``", "").split())


def _write_section(key: str, section: Mapping[str, Any], stream: Stream) -> None:
    stream.write()
    _write_labelled(key, section["description"], 0, stream)
    _write_options(section["options"], 1, stream)


def _write_registry(key: str, classes: Mapping[str, Any], stream: Stream) -> None:
    stream.write()
    _write_labelled(key, REGISTRIES[key][0], 0, stream)
    for name, described in classes.items():
        _write_labelled(name, described["description"], 1, stream)
        _write_options(described["options"], 2, stream)


def _write_options(options: Mapping[str, Any], level: int, stream: Stream) -> None:
    for name, option in options.items():
        _write_option(name, option, level, stream)
        _write_options(option.get("options", {}), level + 1, stream)


def _write_option(name: str, option: Mapping[str, Any], level: int, stream: Stream) -> None:
    default = "required" if option["required"] else _written(option["default"])
    label = f"{INDENT * level + name:{NAME_WIDTH}}  {default}"
    width = NAME_WIDTH + 2 + DEFAULT_WIDTH
    for line in labelled(label, option["expected"], label_width=width, width=min(stream.width, MAX_WIDTH)):
        stream.write(line)


def _write_labelled(name: str, text: str, level: int, stream: Stream) -> None:
    indent = INDENT * level
    width = NAME_WIDTH - len(indent)
    first, *rest = labelled(name, text, label_width=width, width=min(stream.width, MAX_WIDTH) - len(indent))
    stream.write(indent + stream.bold(first[:width]) + first[width:])
    for line in rest:
        stream.write(indent + line)


def _written(default: Any) -> str:
    return default if isinstance(default, str) else written(default)
