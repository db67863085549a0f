"""Small configurations for the tests, and what reading them comes to."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cnncli.config import Config, parse_config
from cnncli.errors import ConfigError

# the smallest one there is: every other value has a default
NETWORK = "network: [flatten, dense: {out_features: 10}]\n"
TOP_LEVEL = "seed, data, network, optimizer, schedule, loss, training"
TRAINING = "epochs, batch_size, shard_size, threads, clip_norm, early_stopping"
LAYERS = (
    "conv2d, max_pool2d, average_pool2d, global_average_pool2d, dense, batch_norm2d, batch_norm1d, "
    "relu, sigmoid, tanh, flatten, dropout"
)
OPTIMIZERS = "sgd, adam, adamw"


def read(text: str, overrides: Sequence[str] = ()) -> Config:
    """Read a text as if it stood in ``c.yaml`` in an empty directory."""
    return parse_config(text, "c.yaml", "/nowhere", overrides)


def faults(text: str, overrides: Sequence[str] = ()) -> list[str]:
    """Return the lines of the message of a text that has faults."""
    with pytest.raises(ConfigError) as caught:
        read(text, overrides)
    return str(caught.value).split("\n")
