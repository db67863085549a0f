"""Walk-throughs of im2col, col2im, convolution and pooling, with the reader's own numbers.

A `Case` holds the reader's arrays, `explain` turns it into a `Walkthrough` (steps as data), and
`laid_out` turns that into lines of text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cnncli.explain.case import Case
from cnncli.explain.col2im import explain_col2im
from cnncli.explain.convolution import explain_conv
from cnncli.explain.im2col import explain_im2col
from cnncli.explain.max_pool import explain_max_pool
from cnncli.explain.orders import ORDERS
from cnncli.explain.samples import Sample, count_from, draw, read_array, take_digits, zeros
from cnncli.explain.sizes import BACKWARD_TOPICS, SizeRequest, Sizes, resolve_sizes
from cnncli.explain.text import Line, laid_out
from cnncli.explain.walkthrough import Check, Index, Panel, Step, Walkthrough

__all__ = [
    "BACKWARD_TOPICS",
    "ORDERS",
    "TOPICS",
    "Case",
    "Check",
    "Index",
    "Line",
    "Panel",
    "Sample",
    "SizeRequest",
    "Sizes",
    "Step",
    "Walkthrough",
    "count_from",
    "draw",
    "explain",
    "laid_out",
    "read_array",
    "resolve_sizes",
    "take_digits",
    "zeros",
]

TOPICS: Mapping[str, Callable[[Case], Walkthrough]] = {
    "im2col": explain_im2col,
    "col2im": explain_col2im,
    "conv": explain_conv,
    "max-pool": explain_max_pool,
}


def explain(topic: str, case: Case) -> Walkthrough:
    """Walk through a topic.

    Parameters
    ----------
    topic : one of `TOPICS`

    Raises
    ------
    OptionError : a max-pool is padded by more than half its kernel
    """
    return TOPICS[topic](case)
