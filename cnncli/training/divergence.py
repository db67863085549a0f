"""Where the first number that is not finite comes from.

A normal step pays one pass over the gradients and one over the weights. Only when one of them is not
finite, the step is computed again, layer by layer, to find the layer to name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cnncli.nn import Network, softmax_cross_entropy
from cnncli.nn.arrays import FloatArray
from cnncli.nn.buffers import short_buffers
from cnncli.nn.layers import LAYER_NAMES


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


@short_buffers()
def origin_in_batch(
    network: Network, shards: Iterable[Shard], *, batch_size: int, label_smoothing: float
) -> str | None:
    """Compute forward and backward of a batch again and name the layer where they leave the numbers.

    None where every shard is finite, so that it can be their sum alone that is not.
    """
    replica = network.replica()
    with np.errstate(all="ignore"):
        for shard in shards:
            x = shard.images
            for step in replica.plan:
                before, x = x, step.layer.forward(x, training=True, rng=shard.rng)
                if not np.isfinite(x).all():
                    return _output(network, step.indices[0], before)
            loss, grad = softmax_cross_entropy(
                x, shard.labels, label_smoothing=label_smoothing, divisor=batch_size
            )
            if not math.isfinite(loss):
                return f"the outputs of the last layer lie too far apart for the loss, up to {_largest(x)}"
            origin = _origin_in_backward(replica, grad)
            if origin is not None:
                return origin
    return None


@short_buffers()
def origin_in_evaluation(network: Network, chunks: Iterable[FloatArray]) -> str:
    """Evaluate images (C, H, W, N) again and name the first layer whose output is not finite."""
    replica = network.replica()
    with np.errstate(all="ignore"):
        for x in chunks:
            for step in replica.plan:
                before, x = x, step.layer.forward(x)
                if not np.isfinite(x).all():
                    return _output(network, step.indices[0], before)
    return "the outputs of the last layer lie too far apart for the loss"


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
    return f"{what} of {layer_name(network, int(place))}", "NaN" if np.isnan(array).any() else "infinite"


def layer_name(network: Network, index: int) -> str:
    """Name a layer as the configuration does."""
    return f"layer network[{index}].{LAYER_NAMES[type(network.layers[index])]}"


def _output(network: Network, index: int, x: FloatArray) -> str:
    weight = network.layers[index].parameters.get("weight")
    reach = f"its input reaches {_largest(x)}"
    if weight is not None:
        reach += f", its weight {_largest(weight.value)}"
    return f"{layer_name(network, index)} is the first whose output is not finite; {reach}"


def _origin_in_backward(network: Network, grad: FloatArray) -> str | None:
    """Go back from the loss to the first layer with parameters."""
    first = network.first_trained
    for step in reversed(network.plan[first:]):
        step.layer.check_grad_output(grad)
        step.layer.parameter_gradients(grad)
        gradients = {name: parameter.grad for name, parameter in step.layer.parameters.items()}
        if step is not network.plan[first]:
            gradients["input"] = step.layer.input_gradient(grad)
        for name, gradient in gradients.items():
            if not np.isfinite(gradient).all():
                return (
                    f"going back from the loss, the gradient of the {name} of "
                    f"{layer_name(network, step.indices[0])} is the first that is not finite; "
                    f"that of its output reaches {_largest(grad)}"
                )
        grad = gradients.get("input", grad)
    return None


def _largest(array: FloatArray) -> str:
    return f"{float(np.abs(array).max()):.3g}"
