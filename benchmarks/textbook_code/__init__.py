"""The ways in which people first write a convolution: batch first, float64, written to be read.

They are here to be compared with. Notation as in the package: N images, C channels, H and W their
size, F kernels of KH x KW, OH and OW the output.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]


class Convolved(NamedTuple):
    """A convolution's output, and backward: grad_output -> (grad_input, grad_weight, grad_bias)."""

    output: Array
    backward: Callable[[Array], tuple[Array, Array, Array]]


class Pooled(NamedTuple):
    """A max-pool's output, and backward: grad_output -> grad_input."""

    output: Array
    backward: Callable[[Array], Array]


class Implementation(NamedTuple):
    """One way to write the two layers, stride 1 without padding and windows side by side.

    Attributes
    ----------
    convolve : images (N, C, H, W), weight (F, C, KH, KW), bias (F,)
    max_pool : images (N, C, H, W), size of the window
    """

    convolve: Callable[[Array, Array, Array], Convolved]
    max_pool: Callable[[Array, int], Pooled]
