"""Arrays that forked processes see each other write."""

from __future__ import annotations

import errno
import mmap
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


def shared_array(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an array of zeros in memory that a fork shares instead of copying.

    Raises
    ------
    MemoryError : there is not that much
    """
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    try:
        memory = mmap.mmap(-1, max(size, 1))  # lives as long as the array that refers to it
    except (OSError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            raise  # some systems open a file for it: it is not memory that is short
        raise MemoryError(f"cannot share {size:,} bytes between the workers ({error})") from None
    return np.frombuffer(memory, dtype=dtype, count=size // np.dtype(dtype).itemsize).reshape(shape)


def shared_copy(array: NDArray[Any]) -> NDArray[Any]:
    """Return a copy in shared memory."""
    copy = shared_array(array.shape, array.dtype)
    copy[...] = array
    return copy
