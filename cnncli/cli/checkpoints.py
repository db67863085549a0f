"""The checkpoint that the user named."""

from __future__ import annotations

from pathlib import Path

from cnncli.errors import CheckpointError
from cnncli.training import RunDirectory


def checkpoint_file(path: Path) -> Path:
    """Return a file as it is, and the best checkpoint of a run directory.

    Raises
    ------
    CheckpointError : the directory holds no run
    """
    if not path.is_dir():
        return path
    best = RunDirectory(path).best
    if not best.is_file():
        raise CheckpointError(f"{path}: holds no run with a checkpoint (there is no {best.name} in it)")
    return best
