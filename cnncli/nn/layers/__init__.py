"""The layers, and the names that a configuration calls them by."""

from __future__ import annotations

from cnncli.nn.layers.activation import ReLU, Sigmoid, Tanh
from cnncli.nn.layers.average_pool import AveragePool2D, GlobalAveragePool2D
from cnncli.nn.layers.base import Layer, Parameter
from cnncli.nn.layers.batch_norm import BatchNorm, BatchNorm1D, BatchNorm2D
from cnncli.nn.layers.conv import Conv2D
from cnncli.nn.layers.dense import Dense
from cnncli.nn.layers.dropout import Dropout
from cnncli.nn.layers.flatten import Flatten
from cnncli.nn.layers.pool import MaxPool2D

LAYERS: dict[str, type[Layer]] = {
    "conv2d": Conv2D,
    "max_pool2d": MaxPool2D,
    "average_pool2d": AveragePool2D,
    "global_average_pool2d": GlobalAveragePool2D,
    "dense": Dense,
    "batch_norm2d": BatchNorm2D,
    "batch_norm1d": BatchNorm1D,
    "relu": ReLU,
    "sigmoid": Sigmoid,
    "tanh": Tanh,
    "flatten": Flatten,
    "dropout": Dropout,
}
LAYER_NAMES: dict[type[Layer], str] = {cls: name for name, cls in LAYERS.items()}

__all__ = [
    "LAYERS",
    "LAYER_NAMES",
    "AveragePool2D",
    "BatchNorm",
    "BatchNorm1D",
    "BatchNorm2D",
    "Conv2D",
    "Dense",
    "Dropout",
    "Flatten",
    "GlobalAveragePool2D",
    "Layer",
    "MaxPool2D",
    "Parameter",
    "ReLU",
    "Sigmoid",
    "Tanh",
]
