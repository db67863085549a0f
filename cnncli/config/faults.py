"""Where a value was written, and everything that is wrong with a configuration."""

from __future__ import annotations

from dataclasses import dataclass

from cnncli.errors import ConfigError

MAX_REPORTED = 100
# then reading ends: each fault takes a millisecond to word, with its suggestions
MAX_FOUND = 500


@dataclass(frozen=True)
class Place:
    """Where a value was written.

    Attributes
    ----------
    source : the file as the user named it, or the whole argument such as ``--set training.epochs=3``
    line, column : from 1; 0 where the source has no lines
    rank : 0 for the file, then 1, 2, ... for the ``--set`` arguments in their order
    """

    source: str
    line: int = 0
    column: int = 0
    rank: int = 0

    @property
    def is_override(self) -> bool:
        return self.rank > 0

    def __str__(self) -> str:
        return f"{self.source}:{self.line}" if self.line else self.source

    def exact(self) -> str:
        """Write the place with its column, for faults of the YAML text itself."""
        return f"{self}:{self.column}" if self.line else self.source


class UnreadableError(Exception):
    """The text is not a document that can be looked into any further."""

    def __init__(self, place: Place, message: str) -> None:
        super().__init__(message)
        self.place = place
        self.message = message

    def to_error(self) -> ConfigError:
        return ConfigError(f"{self.place.exact()}: {self.message}")


class Faults:
    """Collects every fault, so that the user meets all of them at once."""

    def __init__(self) -> None:
        self._found: list[tuple[Place, str]] = []

    def __len__(self) -> int:
        return len(self._found)

    def add(self, place: Place, key_path: str, message: str) -> None:
        """Add a fault; of more than anyone would fix, all are raised at once.

        Raises
        ------
        ConfigError : there are `MAX_FOUND`
        """
        self._found.append((place, located(place, key_path, message)))
        if len(self._found) >= MAX_FOUND:
            self.raise_any()

    def raise_any(self) -> None:
        """Raise one `ConfigError` with a line for each fault, in the order of their places."""
        if not self._found:
            return
        ordered = sorted(self._found, key=lambda found: (found[0].rank, found[0].line, found[0].column))
        lines = list(dict.fromkeys(line for _, line in ordered))
        if len(lines) > MAX_REPORTED:
            at_least = "at least " if len(self._found) >= MAX_FOUND else ""
            lines[MAX_REPORTED:] = [f"and {at_least}{len(lines) - MAX_REPORTED} more faults"]
        raise ConfigError("\n".join(lines))


def located(place: Place, key_path: str, message: str) -> str:
    """Write one fault: ``FILE:LINE: key.path: message``."""
    return f"{place}: {key_path}: {message}" if key_path else f"{place}: {message}"


def join(key_path: str, key: str) -> str:
    """Extend a key path: ``training`` and ``epochs`` give ``training.epochs``."""
    return f"{key_path}.{key}" if key_path else key


def one_line(text: str, limit: int = 80) -> str:
    """Escape what a terminal would not print, and shorten to one readable line."""
    # cut first: a mebibyte of text must not be escaped character by character
    cut = text[: limit + 1]
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."
