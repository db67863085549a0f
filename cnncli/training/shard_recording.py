"""One shard on its way forward and backward, with note taken of the memory that its layers ask for."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from cnncli.nn import Network, softmax_cross_entropy
from cnncli.nn.arrays import FloatArray
from cnncli.nn.buffers import short_buffers
from cnncli.nn.recording import ScratchCall, record_scratch


class RecordedPass(NamedTuple):
    """One pass through a layer.

    Attributes
    ----------
    is_view : whether it returned the memory that it was given
    """

    calls: tuple[ScratchCall, ...]
    is_view: bool


class RecordedLayer(NamedTuple):
    """The passes through one layer of the plan; None for one that training leaves out."""

    forward: RecordedPass
    parameters: RecordedPass | None
    inputs: RecordedPass | None


class RecordedShard(NamedTuple):
    """The passes of a shard through all layers.

    Attributes
    ----------
    holds_images : whether a layer still refers to the images, until the next shard comes
    """

    layers: tuple[RecordedLayer, ...]
    holds_images: bool


def record_shard(network: Network, N: int) -> RecordedShard:
    """Send N images of zeros through a replica of the network as a worker does with a shard.

    The gradients go to the replica; `network` is not changed.
    """
    replica, calls = network.replica(), list[ScratchCall]()
    for layer, _ in replica.plan:
        record_scratch(layer, calls)
    first, rng = replica.first_trained, np.random.default_rng(0)
    result: FloatArray = np.zeros((*network.input_shape, N), network.dtype)
    images = weakref.ref(result)

    def recorded(run: Callable[[FloatArray], FloatArray | None], x: FloatArray) -> RecordedPass:
        nonlocal result
        calls.clear()
        y = run(x)
        if y is not None:
            result = y
        return RecordedPass(tuple(calls), y is not None and np.may_share_memory(x, y))

    with np.errstate(all="ignore"), short_buffers():
        forward = [
            recorded(partial(layer.forward, training=True, rng=rng), result) for layer, _ in replica.plan
        ]
        _, result = softmax_cross_entropy(result, np.zeros(N, np.int64))
        backward = dict[int, tuple[RecordedPass, RecordedPass | None]]()
        for index in range(len(replica.plan) - 1, first - 1, -1):
            layer = replica.plan[index].layer
            layer.check_grad_output(result)
            grad = result
            parameters = recorded(layer.parameter_gradients, grad)
            backward[index] = parameters, recorded(layer.input_gradient, grad) if index > first else None
    layers = (
        RecordedLayer(passed, *backward.get(index, (None, None))) for index, passed in enumerate(forward)
    )
    return RecordedShard(tuple(layers), images() is not None)
