"""Initial weights: how wide to draw them so that signals neither fade nor explode."""

from __future__ import annotations

import math
from typing import Annotated, Literal, TypeAlias

import numpy as np

from cnncli.errors import OptionError
from cnncli.nn.arrays import FLOAT_DTYPES, DType, FloatArray
from cnncli.nn.options import one_of

initializer_name = one_of("he", "glorot", "small")
InitializerName: TypeAlias = Literal["he", "glorot", "small"]
Initializer = Annotated[InitializerName, initializer_name]

# Drawn at a time: in float64, of which a whole layer would take three times the memory of its weights.
_PIECE_SIZE = 65536


def initialize(
    name: str,
    shape: tuple[int, ...],
    *,
    fan_in: int,
    fan_out: int,
    rng: np.random.Generator | None,
    dtype: DType,
) -> FloatArray:
    """Draw initial weights.

    Parameters
    ----------
    name : ``he``, normal with variance 2 / fan_in, for layers before a ReLU (He et al. 2015, eq. 10);
        ``glorot``, uniform with variance 2 / (fan_in + fan_out) (Glorot and Bengio 2010, eq. 16);
        ``small``, normal with variance 0.01 / fan_in, for the last layer: the first logits are near
        zero, so the first loss is near ln K
    shape : shape of the weights
    fan_in, fan_out : inputs read by one output, outputs fed by one input
    rng : source of randomness; None draws a fresh one
    dtype : numbers are drawn in float64 and then rounded, so float32 and float64 start alike

    Raises
    ------
    OptionError : `dtype` is neither float32 nor float64
    """
    if np.dtype(dtype) not in FLOAT_DTYPES:
        raise OptionError("dtype", "float32 or float64", str(np.dtype(dtype)))
    rng = np.random.default_rng() if rng is None else rng
    values = np.empty(shape, dtype=dtype)
    flat = values.reshape(-1)
    # a generator gives the same numbers in pieces as at once
    for start in range(0, flat.size, _PIECE_SIZE):
        piece = flat[start : start + _PIECE_SIZE]
        piece[...] = _draw(name, piece.size, fan_in, fan_out, rng)
    return values


def _draw(name: str, n: int, fan_in: int, fan_out: int, rng: np.random.Generator) -> FloatArray:
    if name == "glorot":
        limit = math.sqrt(6 / (fan_in + fan_out))
        return rng.uniform(-limit, limit, n)
    variance = {"he": 2.0, "small": 0.01}[name] / fan_in
    return rng.normal(0.0, math.sqrt(variance), n)
