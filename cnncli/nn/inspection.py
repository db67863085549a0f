"""The facts of a network, layer by layer: shapes, parameters, multiply-adds, memory, receptive field."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from cnncli.nn.layers import LAYER_NAMES, AveragePool2D, Conv2D, Dense, GlobalAveragePool2D, Layer, MaxPool2D
from cnncli.nn.network import Network


@dataclass(frozen=True)
class LayerFacts:
    """What a layer makes of the array before it.

    Attributes
    ----------
    name : as in a configuration, ``conv2d``
    output_shape : without the batch axis, or with it last; see `inspect_network`
    parameters : trained numbers
    macs : multiply-adds of forward
    im2col_shape : (C*KH*KW, OH*OW*N) for a convolution, None for every other layer
    activation_bytes : size of the output
    receptive_field : height and width of the part of the image that one output can see; None where
        the network takes no images
    """

    name: str
    output_shape: tuple[int, ...]
    parameters: int
    macs: int
    im2col_shape: tuple[int, int] | None
    activation_bytes: int
    receptive_field: tuple[int, int] | None


@dataclass(frozen=True)
class NetworkFacts:
    """The facts of all layers, and their sums."""

    input_shape: tuple[int, ...]
    layers: tuple[LayerFacts, ...]

    @property
    def total_parameters(self) -> int:
        return sum(layer.parameters for layer in self.layers)

    @property
    def total_macs(self) -> int:
        return sum(layer.macs for layer in self.layers)

    @property
    def total_activation_bytes(self) -> int:
        return sum(layer.activation_bytes for layer in self.layers)


def inspect_network(network: Network, batch_size: int | None = None) -> NetworkFacts:
    """Collect the facts of a network.

    Parameters
    ----------
    batch_size : None for one image and shapes without the batch axis; N for shapes with the batch
        axis last, N times the columns of im2col, the multiply-adds and the bytes
    """
    batch_axis = () if batch_size is None else (batch_size,)
    facts = tuple(
        _layer_facts(layer, field, batch_axis, network.dtype.itemsize)
        for layer, field in zip(network.layers, _receptive_fields(network), strict=True)
    )
    return NetworkFacts((*network.input_shape, *batch_axis), facts)


def _layer_facts(
    layer: Layer, field: tuple[int, int] | None, batch_axis: tuple[int, ...], itemsize: int
) -> LayerFacts:
    N = math.prod(batch_axis)
    return LayerFacts(
        name=LAYER_NAMES[type(layer)],
        output_shape=(*layer.output_shape, *batch_axis),
        parameters=sum(parameter.value.size for parameter in layer.parameters.values()),
        macs=layer.macs * N,
        im2col_shape=_im2col_shape(layer, N),
        activation_bytes=math.prod(layer.output_shape) * N * itemsize,
        receptive_field=field,
    )


def _im2col_shape(layer: Layer, N: int) -> tuple[int, int] | None:
    if not isinstance(layer, Conv2D):
        return None
    rows, n_windows = layer.im2col_shape
    return rows, n_windows * N


def _receptive_fields(network: Network) -> Iterator[tuple[int, int] | None]:
    """Yield the receptive field after each layer.

    A window of K outputs whose neighbours lie `jump` pixels apart in the image sees (K - 1) * jump
    pixels more than one of them (Araujo et al. 2019, "Computing receptive fields of convolutional
    neural networks", eq. 2). Padding counts as image, so the field can be larger than the image.
    """
    if len(network.input_shape) != 3:
        yield from [None] * len(network.layers)
        return
    field, jump = (1, 1), (1, 1)
    for layer in network.layers:
        if isinstance(layer, (Conv2D, MaxPool2D, AveragePool2D)):
            (KH, KW), (SH, SW) = layer.windows.kernel_size, layer.windows.stride
            field = (field[0] + (KH - 1) * jump[0], field[1] + (KW - 1) * jump[1])
            jump = (jump[0] * SH, jump[1] * SW)
        elif isinstance(layer, (Dense, GlobalAveragePool2D)):
            _, H, W = network.input_shape
            field = (H, W)
        yield field
