"""What a fuzzed kind of file is: how inputs are made, and what reading one must come to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class WrongSuccessError(Exception):
    """A file was read without an error, and not as it stands there."""


@dataclass(frozen=True)
class Case:
    """One input: the bytes of the file, and what else the command line says."""

    content: bytes
    arguments: tuple[str, ...] = ()


class Target(Protocol):
    """One kind of file.

    Attributes
    ----------
    path : where the file of a case is written before `read`
    """

    path: Path

    def make(self, rng: Random) -> Case:
        """Make an input, mostly a damaged one; equal states of `rng` give equal inputs."""

    def read(self, case: Case) -> None:
        """Read the file as the program does.

        Raises
        ------
        CnncliError : it is refused
        WrongSuccessError : it is read, and what comes out is not what the file says
        """


def require(holds: bool, what: str) -> None:
    """Raise `WrongSuccessError` unless a condition holds."""
    if not holds:
        raise WrongSuccessError(what)


def require_same(found: NDArray[np.generic], expected: NDArray[np.generic], what: str) -> None:
    """Raise `WrongSuccessError` unless two arrays have the same shape and values; NaN equals NaN."""
    same = found.shape == expected.shape and bool(
        np.array_equal(found, expected, equal_nan=expected.dtype.kind in "fcmM")
    )
    require(
        same, f"{what}: {found.dtype} {found.shape} is not the {expected.dtype} {expected.shape} in the file"
    )
