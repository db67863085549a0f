"""What a data set is read from: four arrays, each with a header that costs next to nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Part: TypeAlias = Literal["train", "test"]
Kind: TypeAlias = Literal["images", "labels"]

PARTS: tuple[Part, ...] = ("train", "test")
KINDS: tuple[Kind, ...] = ("images", "labels")


@dataclass(frozen=True)
class ArrayHeader:
    """Type and shape that a file promises for one array."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Size of the array's items in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


class Source(Protocol):
    """Files that hold the images and the labels of a data set."""

    def header(self, part: Part, kind: Kind) -> ArrayHeader:
        """Read what one array will be, without reading it."""

    def read(self, part: Part, kind: Kind) -> NDArray[Any]:
        """Read one array: fresh, writable, in native byte order."""

    def where(self, part: Part, kind: Kind) -> str:
        """Name the place of one array for an error message."""
