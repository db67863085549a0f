"""What the arrays of the layers are: their shapes in words.

An array that a layer keeps has its true shape from a recording (`cnncli.nn.recording`); the words here only
say what the numbers mean. A temporary array, which NumPy frees within the pass, leaves no trace, so
its shape is worked out from the words. Tests hold both against a real step.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cnncli.nn.layers import (
    AveragePool2D,
    BatchNorm1D,
    BatchNorm2D,
    Conv2D,
    Dense,
    Dropout,
    Flatten,
    GlobalAveragePool2D,
    Layer,
    MaxPool2D,
    ReLU,
    Sigmoid,
    Tanh,
)
from cnncli.nn.layers.pooled_conv import PooledConv2D


@dataclass(frozen=True)
class ArrayWords:
    """An array of a pass through a layer.

    Attributes
    ----------
    name : as in the text of the layer
    words : its axes, each a product of letters
    scratch : what the layer calls it where it asks for memory; empty for a temporary array
    dtype : of a temporary array; empty for that of the numbers
    rows : letter for the number of rows of windows, where an array may hold only some of them
    needs : the parameter without which there is no such array
    count : how many of them a temporary array stands for
    is_read : whether the pass only reads what an earlier one has left
    moments : the moments of a pass at which a temporary array exists, one letter each; the largest
        sum over the arrays of a moment is what the pass needs for a while
    """

    name: str
    words: str
    scratch: str = ""
    dtype: str = ""
    rows: str = ""
    moments: str = "a"
    needs: str = ""
    count: int = 1
    is_read: bool = False


@dataclass(frozen=True)
class PassWords:
    """The arrays of the passes through a layer in the order in which they come to be.

    Attributes
    ----------
    kept : what backward reads that forward has left
    """

    forward: tuple[ArrayWords, ...] = ()
    parameters: tuple[ArrayWords, ...] = ()
    inputs: tuple[ArrayWords, ...] = ()
    kept: tuple[str, ...] = ()


def _kept(name: str, words: str, scratch: str = "", rows: str = "") -> ArrayWords:
    return ArrayWords(name, words, scratch or name, rows=rows)


_COLS = _kept("cols", "(C*KH*KW, rows*OW*N)", "block", rows="OH")
# the products of the blocks are summed up in the first of them, then come the sums of the rows
_WEIGHT_SUMS = (
    ArrayWords("total", "(C*KH*KW, F)", moments="ab"),
    ArrayWords("pieces", "(pieces, C*KH*KW, F)"),
    ArrayWords("their sum", "(C*KH*KW, F)"),
)
_ROW_SUMS = (
    ArrayWords("ones", "(OH*OW*N,)", moments="b", needs="bias"),
    ArrayWords("sums", "(F,)", moments="b", needs="bias"),
)
_WEIGHT_ROWS = ArrayWords("weight rows", "(KH, C*KW, F)")
_GRAD_INPUT = _kept("grad_input", "(INPUT, N)")
_FROM_OUTPUT = PassWords((_kept("output", "(INPUT, N)"),), (), (_GRAD_INPUT,), kept=("output",))


def _batch_norm(ones: str) -> PassWords:
    """Describe a batch norm that sums rows of numbers with `ones`."""
    sums = ArrayWords("ones", ones)
    return PassWords(
        (_kept("output", "(INPUT, N)"), _kept("centred", "(INPUT, N)"), sums),
        (sums,),
        (_GRAD_INPUT,),
        kept=("centred",),
    )


WORDS: Mapping[type[Layer], PassWords] = {
    Conv2D: PassWords(
        (_kept("output", "(F, OH*OW*N)"), _COLS),
        (_COLS, *_WEIGHT_SUMS, *_ROW_SUMS),
        (_WEIGHT_ROWS, _GRAD_INPUT, _kept("grad_cols", "(C*KW, rows*OW*N)", rows="OH")),
        kept=("cols",),
    ),
    PooledConv2D: PassWords(
        (
            _kept("cells", "(PH*PW, F, OH*OW*N)"),
            _COLS,
            _kept("outcomes", "(PH*PW-1, F, OH*OW*N)"),
        ),
        (
            _kept("grad_cells", "(PH*PW, F, OH*OW*N)"),
            ArrayWords("outcomes", "(PH*PW-1, F, OH*OW*N)", "outcomes", is_read=True),
            _COLS,
            *_WEIGHT_SUMS,
            *_ROW_SUMS,
        ),
        (
            _kept("grad_conv", "(F, YH, YW, N)"),
            _WEIGHT_ROWS,
            _GRAD_INPUT,
            _kept("grad_cols", "(C*KW, rows*YW*N)", rows="YH"),
        ),
        kept=("outcomes", "cols"),
    ),
    MaxPool2D: PassWords(
        (
            _kept("output", "(C, OH, OW, N)"),
            _kept("winner", "(C, OH, OW, N)"),
            ArrayWords("better", "(C, OH, OW, N)", dtype="bool"),
            # the last one is freed when the next has been made
            ArrayWords("candidate", "(C, OH, OW, N)", dtype="winner", count=2),
        ),
        (),
        (
            _GRAD_INPUT,
            ArrayWords("won", "(C, OH, OW, N)", dtype="bool"),
            ArrayWords("their part", "(C, OH, OW, N)"),
        ),
        kept=("winner",),
    ),
    AveragePool2D: PassWords(
        (_kept("output", "(C, OH, OW, N)"),),
        (),
        (_kept("share", "(C, OH, OW, N)"), _GRAD_INPUT),
    ),
    GlobalAveragePool2D: PassWords((_kept("output", "(C, N)"),), (), (_GRAD_INPUT,)),
    BatchNorm2D: _batch_norm("(H*W*N,)"),
    BatchNorm1D: _batch_norm("(N,)"),
    Sigmoid: _FROM_OUTPUT,
    Tanh: _FROM_OUTPUT,
    Dense: PassWords(
        (_kept("output", "(K, N)"),),
        (ArrayWords("ones", "(N,)", needs="bias"), ArrayWords("sums", "(K,)", needs="bias")),
        (_GRAD_INPUT,),
        kept=("the input",),
    ),
    ReLU: PassWords(
        (_kept("output", "(INPUT, N)"),),
        (),
        (_kept("active", "(INPUT, N)"), _GRAD_INPUT),
        kept=("output",),
    ),
    Dropout: PassWords(
        (
            ArrayWords("random bits", "(NUMBERS*N/draws,)", dtype="uint64"),
            _kept("kept", "(INPUT, N)"),
            _kept("keep", "(INPUT, N)"),
            _kept("output", "(INPUT, N)"),
        ),
        (),
        (_GRAD_INPUT,),
        kept=("keep",),
    ),
    Flatten: PassWords(),
}

PARAMETER_WORDS: Mapping[type[Layer], Mapping[str, str]] = {
    Conv2D: {"weight": "(F, C, KH, KW)", "bias": "(F,)"},
    PooledConv2D: {"weight": "(F, C, KH, KW)", "bias": "(F,)"},
    Dense: {"weight": "(K, D)", "bias": "(K,)"},
    BatchNorm2D: {"weight": "(C,)", "bias": "(C,)"},
    BatchNorm1D: {"weight": "(D,)", "bias": "(D,)"},
}


def axes_of(computed: Layer, parts: Sequence[Layer], N: int) -> dict[str, int]:
    """Give the size of every axis of a layer that is computed for one layer, or two together."""
    layer = parts[0]
    axes = {"N": N}
    axes |= dict(zip("CHW" if len(computed.input_shape) == 3 else "D", computed.input_shape, strict=True))
    if isinstance(layer, (Conv2D, MaxPool2D, AveragePool2D)):
        axes |= dict(zip(("KH", "KW"), layer.windows.kernel_size, strict=True))
        axes |= dict(zip(("OH", "OW"), parts[-1].output_shape[1:], strict=True))
    if isinstance(layer, Conv2D):
        axes["F"] = layer.out_channels
    if isinstance(layer, Dense):
        axes["K"] = layer.output_shape[0]
    if isinstance(layer, Dropout):
        # as many random numbers as one word of 64 bits gives
        axes["draws"] = 4 if ((1 - layer.drop_probability) * 2**16).is_integer() else 2
    if isinstance(pool := parts[-1], MaxPool2D) and len(parts) > 1:
        axes |= dict(zip(("PH", "PW"), pool.windows.kernel_size, strict=True))
        axes |= dict(zip(("YH", "YW"), pool.input_shape[1:], strict=True))
    return axes


def spelled_out(words: str, axes: Mapping[str, int]) -> str:
    """Write what a layer takes, images or features, for words that leave it open."""
    shape = ("C", "H", "W") if "C" in axes else ("D",)
    return words.replace("INPUT", ", ".join(shape)).replace("NUMBERS", "*".join(shape))


def shape_of(words: str, axes: Mapping[str, int]) -> tuple[int, ...]:
    """Turn words into numbers: ``(C*KH*KW, F)`` -> (25, 6)."""
    return tuple(_size(word, axes) for word in re.findall(r"[^(), ]+", words))


def _size(word: str, axes: Mapping[str, int]) -> int:
    product, _, less = word.partition("-")
    product, _, divisor = product.partition("/")
    size = math.prod(axes[letter] for letter in product.split("*"))
    return -(-size // (axes[divisor] if divisor else 1)) - int(less or 0)
