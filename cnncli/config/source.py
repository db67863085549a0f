"""The bytes of a configuration file, read as UTF-8 whatever the locale says."""

from __future__ import annotations

from pathlib import Path

from cnncli.errors import ConfigError

MAX_BYTES = 1 << 20


def read_text(path: Path) -> str:
    """Return the text of a configuration file; a byte order mark is dropped.

    Raises
    ------
    ConfigError : no such file, a directory, unreadable, larger than 1 MiB, or not UTF-8
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; expected a configuration in YAML") from None
    except IsADirectoryError:
        raise ConfigError(f"{path}: expected a configuration file in YAML, got a directory") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(content) > MAX_BYTES:
        raise ConfigError(f"{path}: expected a configuration of at most 1 MiB, got a larger file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{path}:{line}: expected UTF-8 text, got the byte 0x{content[error.start]:02x}; "
            "save the file as UTF-8"
        ) from None
