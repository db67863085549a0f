"""How much work the layers are that a network computes, and which layers of its configuration they are."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cnncli.nn import AveragePool2D, BatchNorm, Conv2D, Flatten, Layer, MaxPool2D, Network
from cnncli.nn.layers import LAYER_NAMES


@dataclass(frozen=True)
class Work:
    """What a pass through a layer has to do.

    Attributes
    ----------
    multiply_adds : those of its matrix products
    bytes_moved : of the arrays that it reads and writes; an estimate, because how much of it goes to
        memory depends on what is in the cache
    """

    multiply_adds: int
    bytes_moved: int


@dataclass(frozen=True)
class PlanWork:
    """One layer of ``Network.plan``.

    Attributes
    ----------
    layer : what is computed
    indices : places in the configuration of the layers that it stands for
    parts : those layers
    """

    layer: Layer
    indices: tuple[int, ...]
    parts: tuple[Layer, ...]

    @property
    def name(self) -> str:
        """As in a configuration: ``dense``, ``conv2d + max_pool2d``."""
        return " + ".join(LAYER_NAMES[type(part)] for part in self.parts)

    def forward_work(self, N: int, itemsize: int) -> Work:
        """Count forward of N images: inputs, outputs and parameters once, what lies between twice."""
        if isinstance(self.layer, Flatten):
            return Work(0, 0)
        if isinstance(self.layer, (MaxPool2D, AveragePool2D)):
            n_numbers = self._pool_passes(N)
        else:
            n_numbers = self._inputs(N) + self._outputs(N) + self._parameters + 2 * self._columns(N)
            n_numbers += self._centred(N)
            if len(self.parts) > 1:
                n_numbers += 2 * self._convolved(N)
        return Work(self._multiply_adds(N), n_numbers * itemsize)

    def backward_work(self, N: int, itemsize: int, *, with_input: bool) -> Work:
        """Count the gradients of the parameters, and that of the input where it is needed."""
        parameters = self._parameter_work(N, itemsize)
        inputs = self._input_work(N, itemsize) if with_input else Work(0, 0)
        return Work(
            parameters.multiply_adds + inputs.multiply_adds, parameters.bytes_moved + inputs.bytes_moved
        )

    def _parameter_work(self, N: int, itemsize: int) -> Work:
        """Count the gradients of the parameters."""
        if not self.layer.parameters:
            return Work(0, 0)
        n_numbers = self._outputs(N) + self._parameters + (self._columns(N) or self._inputs(N))
        if len(self.parts) > 1:
            n_numbers += 2 * self._convolved(N)
        return Work(self._multiply_adds(N), n_numbers * itemsize)

    def _input_work(self, N: int, itemsize: int) -> Work:
        """Count the gradient of the input."""
        if isinstance(self.layer, Flatten):
            return Work(0, 0)
        if isinstance(self.layer, (MaxPool2D, AveragePool2D)):
            n_numbers = self._pool_passes(N)
        elif self.layer.parameters:
            n_numbers = (self._convolved(N) or self._outputs(N)) + self._parameters
            n_numbers += 2 * self._columns(N) + self._inputs(N) + self._centred(N)
        else:
            n_numbers = 2 * self._outputs(N) + self._inputs(N)
        return Work(self._multiply_adds(N), n_numbers * itemsize)

    def _multiply_adds(self, N: int) -> int:
        conv = self.parts[0]
        if isinstance(conv, Conv2D):
            return conv.out_channels * self._columns(N)
        return sum(part.macs for part in self.parts) * N

    def _inputs(self, N: int) -> int:
        return math.prod(self.layer.input_shape) * N

    def _outputs(self, N: int) -> int:
        return math.prod(self.layer.output_shape) * N

    @property
    def _parameters(self) -> int:
        return sum(parameter.value.size for parameter in self.layer.parameters.values())

    def _columns(self, N: int) -> int:
        """Count the numbers of the im2col matrix; 0 where there is none."""
        conv = self.parts[0]
        return conv.im2col_shape[0] * self._n_windows * N if isinstance(conv, Conv2D) else 0

    def _convolved(self, N: int) -> int:
        """Count the outputs of a convolution before its pool; 0 where there is none."""
        conv = self.parts[0]
        return conv.out_channels * self._n_windows * N if isinstance(conv, Conv2D) else 0

    def _centred(self, N: int) -> int:
        """Count what a batch norm keeps for backward; 0 for other layers."""
        return self._inputs(N) if isinstance(self.layer, BatchNorm) else 0

    @property
    def _n_windows(self) -> int:
        """Count the windows of a convolution, without those that the pool behind it leaves out."""
        pool = self.parts[-1]
        inside_pool = math.prod(pool.windows.kernel_size) if isinstance(pool, MaxPool2D) else 1
        return inside_pool * math.prod(self.layer.output_shape[1:])

    def _pool_passes(self, N: int) -> int:
        """Count a pool by itself: for each cell of its window one array read, one read and written."""
        assert isinstance(self.layer, (MaxPool2D, AveragePool2D))
        return 3 * math.prod(self.layer.windows.kernel_size) * self._outputs(N)


def plan_work(network: Network) -> tuple[PlanWork, ...]:
    """Trace every layer of the plan back to the layers that it stands for."""
    return tuple(
        PlanWork(layer, indices, tuple(network.layers[index] for index in indices))
        for layer, indices in network.plan
    )
