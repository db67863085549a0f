"""The whole message of every fault in a layer's entry."""

from __future__ import annotations

import pytest

from tests.config.texts import LAYERS, faults

CONV_KEYS = "out_channels, kernel_size, stride, padding, bias, initializer"


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        pytest.param(
            "max_pool2d: {kernel_size: 0}",
            "network[0].max_pool2d.kernel_size: expected int >= 1 or [height, width], got 0",
            id="B36-zero",
        ),
        pytest.param(
            "conv2d: {out_channels: 3, kernal_size: 3}",
            f"network[0].conv2d.kernal_size: unknown key kernal_size, expected one of {CONV_KEYS}; "
            "did you mean kernel_size?",
            id="B36-kernal_size",
        ),
        pytest.param(
            "conv2d: {filters: 3, kernel_size: 3}",
            f"network[0].conv2d.filters: unknown key filters, expected one of {CONV_KEYS}; "
            "did you mean out_channels?",
            id="B36-filters",
        ),
        pytest.param(
            "dropout: {stride: 2}",
            "network[0].dropout.stride: unknown key stride, expected one of drop_probability; "
            "it belongs to a conv2d layer or a max_pool2d layer or an average_pool2d layer",
            id="B36-stride",
        ),
        (
            "softmax",
            f"network[0]: unknown layer softmax, expected one of {LAYERS}; "
            "leave it out: softmax is part of the loss",
        ),
        (
            "conv2d: {out_channels: 2, kernel_size: 3, activation: relu}",
            f"network[0].conv2d.activation: unknown key activation, expected one of {CONV_KEYS}; "
            "write it as a layer of its own, such as relu, after this one",
        ),
        (
            "conv2d: {in_channels: 1, out_channels: 2, kernel_size: 3}",
            f"network[0].conv2d.in_channels: unknown key in_channels, expected one of {CONV_KEYS}; "
            "leave it out: it is what the layer before gives",
        ),
        ("relu: {a: 1}", "network[0].relu.a: unknown key a, relu takes no options"),
        ("dense", "network[0].dense.out_features: expected an integer of at least 1, but the key is missing"),
        ("dense: 10", "network[0].dense: expected a mapping with keys such as out_features, got 10"),
        ("reluu", f"network[0]: unknown layer reluu, expected one of {LAYERS}; did you mean relu?"),
        (
            "MaxPool2D: {kernel_size: 2}",
            f"network[0].MaxPool2D: unknown layer MaxPool2D, expected one of {LAYERS}; "
            "did you mean max_pool2d?",
        ),
        (
            "linear: {}",
            f"network[0].linear: unknown layer linear, expected one of {LAYERS}; did you mean dense?",
        ),
        (
            "AvgPool2d: {kernel_size: 2}",
            f"network[0].AvgPool2d: unknown layer AvgPool2d, expected one of {LAYERS}; "
            "did you mean average_pool2d?",
        ),
        (
            "batch_norm2d: {eps: 1e-3}",
            "network[0].batch_norm2d.eps: unknown key eps, expected one of momentum, epsilon; "
            "did you mean epsilon?",
        ),
        (
            "batch_norm1d: {momentum: 1.5}",
            "network[0].batch_norm1d.momentum: expected a number from 0 to 1, got 1.5",
        ),
        ("null", "network[0]: expected one layer, such as relu or dense: {out_features: 10}, got null"),
        (
            "{}",
            "network[0]: expected one layer, such as relu or dense: {out_features: 10}, got an empty mapping",
        ),
        (
            "{type: dense, out_features: 10}",
            "network[0]: expected one layer with its options under it, "
            "such as relu or dense: {out_features: 10}, got the keys type, out_features",
        ),
        (
            "conv2d: {out_channels: 2, kernel_size: [3, 3, 3]}",
            "network[0].conv2d.kernel_size: expected int >= 1 or [height, width], got [3, 3, 3]",
        ),
        (
            "conv2d: {out_channels: 2, kernel_size: 3, padding: Same}",
            'network[0].conv2d.padding: expected int >= 0, [height, width] or "same", got Same',
        ),
    ],
)
def test_fault_of_a_layer(layer: str, message: str) -> None:
    text = f"network:\n  - {layer}\n  - flatten\n  - dense: {{out_features: 10}}\n"
    assert faults(text) == [f"c.yaml:2: {message}"]
