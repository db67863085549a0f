"""The size of the buffer in which NumPy combines parts of arrays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

# Where the last axes that can be walked in one go hold fewer numbers than its buffer (8192), NumPy
# copies every operand through the buffer. With a shorter one it works in place: adding a
# (24, 10, 10, 32) part of an array onto a part of another is about three times faster.
_NUMBERS = 512


@contextmanager
def short_buffers() -> Iterator[None]:
    """Let NumPy combine parts of arrays in place, in the calling thread; also a decorator."""
    before = np.setbufsize(_NUMBERS)
    try:
        yield
    finally:
        np.setbufsize(before)
