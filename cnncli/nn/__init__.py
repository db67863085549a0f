"""The mathematics: layers, loss, optimizers. NumPy only; no file, no YAML, no printing."""

from __future__ import annotations

from cnncli.nn.arrays import batch_first, batch_last
from cnncli.nn.gradient_check import ArrayCheck, Checkable, check_gradients
from cnncli.nn.layers import (
    LAYERS,
    AveragePool2D,
    BatchNorm,
    BatchNorm1D,
    BatchNorm2D,
    Conv2D,
    Dense,
    Dropout,
    Flatten,
    GlobalAveragePool2D,
    Layer,
    MaxPool2D,
    Parameter,
    ReLU,
    Sigmoid,
    Tanh,
)
from cnncli.nn.loss import softmax, softmax_cross_entropy
from cnncli.nn.network import LayerPass, Network, Observer
from cnncli.nn.optimizers import OPTIMIZERS, SGD, Adam, AdamW, Optimizer, clip_gradient_norm
from cnncli.nn.options import Sides
from cnncli.nn.schedules import SCHEDULES, Constant, Cosine, OneCycle, Schedule, Step
from cnncli.nn.windows import Windows, col2im, im2col, output_size, windows_over

__all__ = [
    "LAYERS",
    "OPTIMIZERS",
    "SCHEDULES",
    "SGD",
    "Adam",
    "AdamW",
    "ArrayCheck",
    "AveragePool2D",
    "BatchNorm",
    "BatchNorm1D",
    "BatchNorm2D",
    "Checkable",
    "Constant",
    "Conv2D",
    "Cosine",
    "Dense",
    "Dropout",
    "Flatten",
    "GlobalAveragePool2D",
    "Layer",
    "LayerPass",
    "MaxPool2D",
    "Network",
    "Observer",
    "OneCycle",
    "Optimizer",
    "Parameter",
    "ReLU",
    "Schedule",
    "Sides",
    "Sigmoid",
    "Step",
    "Tanh",
    "Windows",
    "batch_first",
    "batch_last",
    "check_gradients",
    "clip_gradient_norm",
    "col2im",
    "im2col",
    "output_size",
    "softmax",
    "softmax_cross_entropy",
    "windows_over",
]
