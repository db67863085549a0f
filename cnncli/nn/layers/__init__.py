"""The layers, and the names that a configuration calls them by."""

from __future__ import annotations

from cnncli.nn.layers.activation import ReLU
from cnncli.nn.layers.base import Layer, Parameter
from cnncli.nn.layers.conv import Conv2D
from cnncli.nn.layers.dense import Dense
from cnncli.nn.layers.dropout import Dropout
from cnncli.nn.layers.flatten import Flatten
from cnncli.nn.layers.pool import MaxPool2D

LAYERS: dict[str, type[Layer]] = {
    "conv2d": Conv2D,
    "max_pool2d": MaxPool2D,
    "dense": Dense,
    "relu": ReLU,
    "flatten": Flatten,
    "dropout": Dropout,
}

__all__ = ["LAYERS", "Conv2D", "Dense", "Dropout", "Flatten", "Layer", "MaxPool2D", "Parameter", "ReLU"]
