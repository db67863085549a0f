"""Where the first number that is not finite comes from.

A normal step pays one pass over the gradients and one over the weights. Only when one of them is not
finite, the step is computed again and every pass through a layer is looked at, to name the layer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cnncli.nn import LayerPass, Network, Observer, softmax_cross_entropy
from cnncli.nn.arrays import FloatArray
from cnncli.nn.layers import LAYER_NAMES

TOO_FAR_APART = "the outputs of the last layer lie too far apart for the loss"


@dataclass(frozen=True)
class Shard:
    """Images (C, H, W, N) as the network takes them, their labels (N,), and what dropout draws from."""

    images: FloatArray
    labels: NDArray[np.int64]
    rng: np.random.Generator


def all_finite(array: FloatArray) -> bool:
    """Tell whether every number of an array that lies in one piece is finite."""
    flat = array.reshape(-1)
    # one pass of the BLAS: an infinity or NaN makes the sum one too; so may large numbers, rarely
    return math.isfinite(np.dot(flat, flat)) or bool(np.isfinite(flat).all())


class _FoundError(Exception):
    """Ends a pass at the first array that is not finite; the message names it."""


def origin_in_batch(
    network: Network, shards: Iterable[Shard], *, batch_size: int, label_smoothing: float
) -> str | None:
    """Compute a batch again and name the layer whose numbers are the first that are not finite.

    None where every shard is finite, so that it can be their sum alone that is not.
    """
    replica = network.replica()
    observe = _observer(network)
    with np.errstate(all="ignore"):
        for shard in shards:
            try:
                logits = replica.forward(shard.images, training=True, rng=shard.rng, observe=observe)
                loss, grad = softmax_cross_entropy(
                    logits, shard.labels, label_smoothing=label_smoothing, divisor=batch_size
                )
                if not math.isfinite(loss):
                    return f"{TOO_FAR_APART}, up to {_largest(logits)}"
                replica.backward(grad, to_input=False, observe=observe)
            except _FoundError as found:
                return str(found)
    return None


def origin_in_evaluation(network: Network, chunks: Iterable[FloatArray]) -> str:
    """Evaluate images (C, H, W, N) again and name the first layer whose output is not finite."""
    replica = network.replica()
    with np.errstate(all="ignore"):
        try:
            for x in chunks:
                replica.forward(x, observe=_observer(network))
        except _FoundError as found:
            return str(found)
    return TOO_FAR_APART


def first_not_finite(network: Network, arrays: Mapping[str, FloatArray]) -> tuple[str, str]:
    """Find the array, named as ``3/weight``, that is not finite and lies nearest to the loss.

    Returns
    -------
    name : ``weight of layer network[3].dense``; for ``3/weight/second_moment`` likewise
    value : ``infinite``, or ``NaN``
    """
    broken = [name for name, array in arrays.items() if not np.isfinite(array).all()]
    place, _, rest = max(broken, key=lambda name: int(name.partition("/")[0])).partition("/")
    array = arrays[f"{place}/{rest}"]
    what = " of the ".join(reversed(rest.split("/")))
    return f"{what} of {_layer_name(network, int(place))}", "NaN" if np.isnan(array).any() else "infinite"


def _layer_name(network: Network, index: int) -> str:
    """Name a layer as the configuration does."""
    return f"layer network[{index}].{LAYER_NAMES[type(network.layers[index])]}"


def _observer(network: Network) -> Observer:
    """Make an observer that raises `_FoundError` after a pass whose result is not finite."""

    def observe(done: LayerPass) -> None:
        name = _layer_name(network, done.index)
        if done.kind == "forward":
            if done.result is not None and not np.isfinite(done.result).all():
                raise _FoundError(f"{name} is the first whose output is not finite; {_reach(done)}")
            return
        gradients = {key: parameter.grad for key, parameter in done.layer.parameters.items()}
        if done.result is not None:
            gradients = {"input": done.result}
        for key, gradient in gradients.items():
            if not np.isfinite(gradient).all():
                raise _FoundError(
                    f"going back from the loss, the gradient of the {key} of {name} is the first that is not "
                    f"finite; that of its output reaches {_largest(done.given)}"
                )

    return observe


def _reach(done: LayerPass) -> str:
    weight = done.layer.parameters.get("weight")
    reach = f"its input reaches {_largest(done.given)}"
    return reach if weight is None else f"{reach}, its weight {_largest(weight.value)}"


def _largest(array: FloatArray) -> str:
    return f"{float(np.abs(array).max()):.3g}"
