"""From a file, a text or a checkpoint's record to a checked configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cnncli.config.document import MAX_DEPTH, MAX_DIGITS, Node, read_document
from cnncli.config.faults import Faults, Place, UnreadableError
from cnncli.config.overrides import apply_overrides
from cnncli.config.reader import read_config
from cnncli.config.schema import Config
from cnncli.config.source import read_text


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
