"""The networks that everything is measured on, and the batch of each."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
CONFIGS = ROOT / "configs"

BATCH_SIZES = {
    "simple_convnet": 100,
    "lenet": 100,
    "keras_mnist": 100,
    "pytorch_mnist": 64,
    "quickstart": 256,
}
