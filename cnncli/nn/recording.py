"""Noting which arrays the layers ask their scratch memory for."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cnncli.nn.arrays import DType, FloatArray
from cnncli.nn.layers.base import Layer
from cnncli.nn.layers.blocks import BlockColumns
from cnncli.nn.scratch import Scratch


class ScratchCall(NamedTuple):
    """One array that was asked for.

    Attributes
    ----------
    new_bytes : memory that it took, beyond what an earlier array of this name had left; mostly 0
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    new_bytes: int


class RecordingScratch(Scratch):
    """Scratch memory that appends every array it gives to a list.

    Parameters
    ----------
    calls : what to append to; several scratch memories may share it
    """

    def __init__(self, calls: list[ScratchCall]) -> None:
        super().__init__()
        self._calls = calls

    @property
    def nbytes(self) -> int:
        """Memory that is kept for the next call."""
        return sum(flat.nbytes for flat in self._buffers.values())

    def array(self, name: str, shape: tuple[int, ...], dtype: DType) -> FloatArray:
        """Return an array of this shape as `Scratch` does, and note it."""
        before = self.nbytes
        array = super().array(name, shape, dtype)
        self._calls.append(ScratchCall(name, shape, array.dtype, self.nbytes - before))
        return array


def record_scratch(owner: Layer | BlockColumns, calls: list[ScratchCall]) -> None:
    """Let a layer, and what it is made of, note in `calls` what it asks its scratch memory for.

    What the layer remembers of its last forward is in its old memory, so a forward must come next.
    """
    for name, value in list(vars(owner).items()):
        if isinstance(value, Scratch):
            setattr(owner, name, RecordingScratch(calls))
        elif isinstance(value, (Layer, BlockColumns)):
            record_scratch(value, calls)
