"""Which key paths name a class, and the classes they may name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

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
