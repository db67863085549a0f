"""``cnncli init``: a configuration to start from."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import click

from cnncli.cli import formats
from cnncli.cli.streams import notices, results
from cnncli.errors import UsageError

STARTER = "starter.yaml"


@click.command()
@click.argument("path", metavar="[FILE]", default="cnncli.yaml", type=click.Path(path_type=Path))
def init(path: Path) -> None:
    """Write a commented starter configuration.

    FILE is cnncli.yaml by default, and never overwritten; - stands for standard output.
    """
    text = files("cnncli.cli").joinpath(STARTER).read_text("utf-8")
    if str(path) == "-":
        results().write(text.removesuffix("\n"))
        return
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{path}: exists already; name another file") from None
    stream = notices()
    stream.write(f"wrote {path}")
    stream.write(f"next: {formats.command('cnncli', 'train', '--config', path)}")
