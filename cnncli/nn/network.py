"""A network: layers in a row, and the one place where forward and backward go through them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np

from cnncli.errors import ShapeError
from cnncli.nn.arrays import FloatArray
from cnncli.nn.layers import BatchNorm, Conv2D, Layer, MaxPool2D, Parameter, ReLU
from cnncli.nn.layout import short_buffers


@dataclass(frozen=True)
class LayerPass:
    """What an observer is told after each pass through a layer.

    Attributes
    ----------
    kind : "forward", or of backward "parameters", which writes the gradients of the layer's parameters,
        and "input", which returns that of its input
    index : place of the layer in the network
    layer : what was computed; it may be laid out for its neighbour, see `computed_layers`
    given, result : the argument, and what was returned; None for "parameters"
    """

    kind: Literal["forward", "parameters", "input"]
    index: int
    layer: Layer
    given: FloatArray
    result: FloatArray | None


Observer: TypeAlias = Callable[[LayerPass], None]


class Network:
    """Layers in a row, each taking what the one before it gives.

    Parameters
    ----------
    layers : at least one; the output shape of each is the input shape of the next

    Attributes
    ----------
    layers : as given; they hold the parameters, which are named by their place here. What a forward pass
        leaves behind is in the layers that are computed, see `computed_layers`

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
        self._computed = computed_layers(layers)
        # nothing before the first layer with parameters needs a gradient in training
        self._first_trained = next(
            (place for place, (_, layer) in enumerate(self._computed) if layer.parameters), len(layers)
        )

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

    @short_buffers()
    def forward(
        self,
        x: FloatArray,
        training: bool = False,
        rng: np.random.Generator | None = None,
        *,
        observe: Observer | None = None,
    ) -> FloatArray:
        """Map (*input_shape, N) to (*output_shape, N); layers that drop or draw take `rng` in turn."""
        for index, layer in self._computed:
            y = layer.forward(x, training=training, rng=rng)
            if observe is not None:
                observe(LayerPass("forward", index, layer, x, y))
            x = y
        return x

    @short_buffers()
    def backward(
        self, grad_output: FloatArray, *, to_input: bool = True, observe: Observer | None = None
    ) -> FloatArray:
        """Write the gradient of every parameter and return that of the input.

        Without `to_input` it goes no further down than training needs: to the gradient of the output of
        the first layer that has parameters, which is returned.
        """
        first = 0 if to_input else self._first_trained
        for place in reversed(range(first, len(self._computed))):
            index, layer = self._computed[place]
            layer.check_grad_output(grad_output)
            layer.parameter_gradients(grad_output)
            if observe is not None:
                observe(LayerPass("parameters", index, layer, grad_output, None))
            if place == first and not to_input:
                break
            grad_input = layer.input_gradient(grad_output)
            if observe is not None:
                observe(LayerPass("input", index, layer, grad_output, grad_input))
            grad_output = grad_input
        return grad_output

    def replica(self) -> Network:
        """Make a network that shares the parameter values and owns its gradients and scratch."""
        return Network([layer.replica() for layer in self.layers])

    def __repr__(self) -> str:
        return "Network([\n" + "".join(f"    {layer!r},\n" for layer in self.layers) + "])"


def computed_layers(layers: Sequence[Layer]) -> tuple[tuple[int, Layer], ...]:
    """Give the layers in the order in which they are computed, each with its index.

    For finite numbers two exchanges change nothing but the time (docs/adr/0005-execution-plan.md):

    - A ReLU before a max-pool comes behind it, where there are fewer numbers. The maximum of rectified
      numbers is the rectified maximum; where it is 0 the gradient is 0 either way.
    - A convolution whose outputs a max-pool takes next lays them out for it, cell by cell; see
      `cnncli.nn.layout`.
    """
    computed = list(enumerate(layers))
    for place in range(len(computed) - 1):
        (index, relu), (pool_index, pool) = computed[place : place + 2]
        if isinstance(relu, ReLU) and isinstance(pool, MaxPool2D):
            computed[place : place + 2] = (pool_index, pool), (index, ReLU(pool.output_shape))
    for place in range(len(computed) - 1):
        (index, conv), (pool_index, pool) = computed[place : place + 2]
        if isinstance(conv, Conv2D) and isinstance(pool, MaxPool2D) and pool.windows.are_side_by_side:
            computed[place] = index, conv.before_pool(pool.windows)
            computed[place + 1] = pool_index, pool.by_cell()
    return tuple(computed)
