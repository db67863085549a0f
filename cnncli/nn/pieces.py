"""Parameters cut into pieces that stay in the processor's cache while they are worked on."""

from __future__ import annotations

from collections.abc import Mapping

from cnncli.nn.layers.base import Parameter

# An optimizer's step makes a dozen passes over the value, the gradient and the moments: in pieces
# that stay in the cache together it is several times faster than over whole arrays.
PIECE_SIZE = 16384


def parameter_pieces(parameters: Mapping[str, Parameter]) -> list[tuple[str, slice]]:
    """Cut all parameters into pieces of at most PIECE_SIZE numbers of their flat form."""
    return [
        (name, slice(start, start + PIECE_SIZE))
        for name, parameter in parameters.items()
        for start in range(0, parameter.value.size, PIECE_SIZE)
    ]
