"""A network: layers in a row."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from cnncli.errors import ShapeError
from cnncli.nn.arrays import FloatArray
from cnncli.nn.buffers import short_buffers
from cnncli.nn.layers.base import Layer, Parameter
from cnncli.nn.layers.normalization import BatchNorm
from cnncli.nn.plan import execution_plan


class Network:
    """Layers in a row, each taking what the one before it gives.

    Parameters
    ----------
    layers : at least one; the output shape of each is the input shape of the next

    Attributes
    ----------
    layers : as given; they hold the parameters, which are named by their place here, but not what a
        forward pass leaves behind
    plan : what is computed, see `execution_plan`; it shares the layers' parameters

    Raises
    ------
    ShapeError : there is no layer, or two neighbours do not fit
    """

    def __init__(self, layers: Sequence[Layer]) -> None:
        if not layers:
            raise ShapeError("Network: expected at least one layer, got none")
        if len(set(map(id, layers))) < len(layers):
            raise ShapeError("Network: the same layer stands in two places; each place needs one of its own")
        for index, (before, after) in enumerate(pairwise(layers)):
            if before.output_shape != after.input_shape:
                raise ShapeError(
                    f"Network: layer {index + 1}, {after}, takes {after.input_shape}, "
                    f"but layer {index}, {before}, gives {before.output_shape}"
                )
        self.layers = tuple(layers)
        self.plan = execution_plan(layers)

    @property
    def input_shape(self) -> tuple[int, ...]:
        return self.layers[0].input_shape

    @property
    def output_shape(self) -> tuple[int, ...]:
        return self.layers[-1].output_shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the parameters, which the input must have; float32 where there are none."""
        return next((p.value.dtype for p in self.parameters.values()), np.dtype(np.float32))

    @property
    def parameters(self) -> dict[str, Parameter]:
        """Every parameter by layer index and name: ``{"0/weight": ..., "0/bias": ...}``."""
        return {
            f"{index}/{name}": parameter
            for index, layer in enumerate(self.layers)
            for name, parameter in layer.parameters.items()
        }

    @property
    def buffers(self) -> dict[str, FloatArray]:
        """Every buffer (state that is saved but not trained) by layer index and name."""
        return {
            f"{index}/{name}": buffer
            for index, layer in enumerate(self.layers)
            for name, buffer in layer.buffers.items()
        }

    @property
    def batch_norms(self) -> tuple[BatchNorm, ...]:
        """The layers that keep running averages of what they see in training."""
        return tuple(layer for layer in self.layers if isinstance(layer, BatchNorm))

    @property
    def first_trained(self) -> int:
        """Place in the plan of the first layer that has parameters; the plan's length if none has."""
        return next((place for place, step in enumerate(self.plan) if step.layer.parameters), len(self.plan))

    @short_buffers()
    def forward(
        self, x: FloatArray, training: bool = False, rng: np.random.Generator | None = None
    ) -> FloatArray:
        """Map (*input_shape, N) to (*output_shape, N); layers that drop or draw take `rng` in turn."""
        for layer, _ in self.plan:
            x = layer.forward(x, training=training, rng=rng)
        return x

    @short_buffers()
    def backward(self, grad_output: FloatArray) -> FloatArray:
        """Write the gradient of every parameter and return that of the input."""
        for layer, _ in reversed(self.plan):
            grad_output = layer.backward(grad_output)
        return grad_output

    @short_buffers()
    def parameter_gradients(self, grad_output: FloatArray) -> None:
        """Write the gradient of every parameter and go no further down than the first layer that has any."""
        first = self.first_trained
        for layer, _ in reversed(self.plan[first + 1 :]):
            grad_output = layer.backward(grad_output)
        if first < len(self.plan):
            self.plan[first].layer.check_grad_output(grad_output)
            self.plan[first].layer.parameter_gradients(grad_output)

    def replica(self) -> Network:
        """Make a network that shares the parameter values and owns its gradients and scratch."""
        return Network([layer.replica() for layer in self.layers])

    def __repr__(self) -> str:
        return "Network([\n" + "".join(f"    {layer!r},\n" for layer in self.layers) + "])"
