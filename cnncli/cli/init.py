"""``cnncli init``: a configuration to start from."""

from __future__ import annotations

import json
import os
import re
from importlib.resources import files
from pathlib import Path

import click

from cnncli.cli import formats
from cnncli.cli.arguments import PathText
from cnncli.cli.terminal import notices, results
from cnncli.data import Part
from cnncli.data.atomic_files import write_text_exclusively
from cnncli.data.catalog import KINDS
from cnncli.data.sources import find_file
from cnncli.errors import UsageError

STARTER = "starter.yaml"
NO_DIRECTORY = "  # directory: data     # where"
HERE = Path("data", "mnist")


@click.command()
@click.argument("path", metavar="[FILE]", default="cnncli.yaml", type=PathText(path_type=Path))
def init(path: Path) -> None:
    """Write a commented starter configuration.

    FILE is cnncli.yaml by default, and never overwritten; - stands for standard output.
    """
    text = _starter(Path() if str(path) == "-" else path.parent)
    if str(path) == "-":
        results().write(text.removesuffix("\n"))
        return
    if path.is_dir():
        raise UsageError(f"{path}: is a directory; name a file in it")
    try:
        write_text_exclusively(path, text)
    except FileExistsError:
        raise UsageError(f"{path}: exists already; name another file") from None
    except OSError as error:
        error.filename = str(path)  # not the temporary file beside it
        raise
    stream = notices()
    stream.write(f"wrote {path}")
    stream.write(f"next: {formats.command('train', '--config', path)}")


def _starter(directory: Path) -> str:
    """Return the starter for a file in `directory`; it names the MNIST files if they are at hand."""
    text = files("cnncli.cli").joinpath(STARTER).read_text("utf-8")
    parts: tuple[Part, ...] = ("train", "test")
    if all(find_file(HERE, part, kind) for part in parts for kind in KINDS):
        place = Path(os.path.relpath(HERE, directory)).as_posix()
        # quotes are for names that YAML would read as something else
        written = place if re.fullmatch(r"[./]*[A-Za-z][A-Za-z0-9_./-]*", place) else json.dumps(place)
        text = text.replace(NO_DIRECTORY, f"  directory: {written}  # where")
    return text
