"""The names of the entries in a zip file that should be one of NumPy's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

_MAX_SHOWN = 60


def fault_of_names(names: Sequence[str]) -> str | None:
    """Say in words what is wrong with the names of the entries; None where nothing is.

    Nothing is ever unpacked to a path of that name, and of two entries with one name every reader
    takes another: a file with such names was made to mislead, or is damaged.
    """
    for name in names:
        parts = name.replace("\\", "/").split("/")
        if parts[0] == "" or ".." in parts or parts[0].endswith(":"):
            return f"an entry has the name {shown_name(name)}, a path that leads out of the file"
        if not name.isprintable():
            return f"an entry has the name {shown_name(name)}, with characters that do not print"
    if len(set(names)) != len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        return f"two entries have the same name, {shown_name(twice)}"
    return None


def shown_name(name: str) -> str:
    """Write the name of an entry on one short line."""
    text = repr(name)
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}..."
