"""Checkpoints: the zip file, the arrays, and the JSON of the metadata."""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from cnncli.config import build_network, parse_config
from cnncli.data import Normalization, Split
from cnncli.errors import DivergenceError
from cnncli.nn import Adam, Network
from cnncli.training import Checkpoint, Workers, evaluate, load_checkpoint
from tests.data.made_files import npy_bytes
from tests.fuzz.json_values import mutate_json
from tests.fuzz.mutation import mutate_bytes, mutate_text
from tests.fuzz.target import Case, require, require_same
from tests.fuzz.zip_files import arrays_in, mutate_zip, stored, zip_bytes

CONFIG = """
data: {dataset: mnist, validation_size: 5}
network:
  - conv2d: {out_channels: 2, kernel_size: 3}
  - relu
  - max_pool2d: {kernel_size: 2}
  - flatten
  - dropout: {drop_probability: 0.3}
  - dense: {out_features: 3}
optimizer: {adam: {learning_rate: 0.01}}
training: {epochs: 3, batch_size: 8}
"""
IMAGE_SHAPE, CLASS_COUNT = (1, 6, 5), 3
# a network that asks for more is right, and takes longer than there is for one input
MOST_OUTPUTS = 2_000_000


class CheckpointTarget:
    """A small checkpoint; one that is read is held against its own JSON and arrays, built, evaluated."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "last.npz"
        make_checkpoint().save(self.path)
        self._whole = self.path.read_bytes()
        with np.load(self.path) as file:
            self._metadata = str(file["metadata"])
            self._arrays = {name: npy_bytes(file[name]) for name in file.files}

    def make(self, rng: Random) -> Case:
        kind = rng.randrange(10)
        if kind == 0:
            return Case(mutate_bytes(self._whole, rng))
        arrays = dict(self._arrays)
        if kind <= 5:
            text = self._changed_metadata(rng)
            arrays["metadata"] = npy_bytes(np.array(text))
            if kind <= 4:
                return Case(
                    zip_bytes([stored(f"{name}.npy".encode(), data) for name, data in arrays.items()])
                )
        return Case(mutate_zip(arrays, rng))

    def _changed_metadata(self, rng: Random) -> str:
        if rng.random() < 0.3:
            return mutate_text(self._metadata, rng).replace("\0", "0")
        value = json.loads(self._metadata)
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            mutate_json(value, rng)
        # NaN and Infinity are no JSON, and Python writes and reads them
        return json.dumps(value)

    def read(self, case: Case) -> None:
        loaded = load_checkpoint(self.path)
        self._check_metadata(loaded)
        network = loaded.build_network()
        for name, parameter in network.parameters.items():
            require_same(parameter.value, loaded.parameters[name], name)
        shapes = [loaded.image_shape, *(layer.output_shape for layer in network.layers)]
        if sum(map(math.prod, shapes)) < MOST_OUTPUTS:
            _evaluate(loaded, network)

    def _check_metadata(self, loaded: Checkpoint) -> None:
        file = arrays_in(self.path)
        said: dict[str, Any] = json.loads(str(file["metadata"]))
        groups = {
            "parameters": loaded.parameters,
            "buffers": loaded.buffers,
            "optimizer": loaded.optimizer_state,
        }
        for group, arrays in groups.items():
            for name, array in arrays.items():
                require_same(array, file[f"{group}/{name}"], f"{group}/{name}")
        for key, value in (
            ("image_shape", list(loaded.image_shape)),
            ("class_count", loaded.class_count),
            ("epoch", loaded.epoch),
            ("step", loaded.step),
            ("metrics", list(loaded.metrics)),
        ):
            require(repr(said[key]) == repr(value), key)
        for key, numbers in loaded.normalization.to_dict().items():
            require(list(map(float, said["normalization"][key])) == numbers, f"normalization.{key}")
        # what the file leaves out has its default, and what it says is what counts
        record = loaded.config.to_dict()
        for section, values in said["config"].items():
            if isinstance(values, dict) and section in ("data", "loss", "training"):
                for key, value in values.items():
                    is_plain = isinstance(value, (int, float, str)) and section != "data"
                    require(not is_plain or record[section][key] == value, f"config.{section}.{key}")


def make_checkpoint() -> Checkpoint:
    """Make a checkpoint of two epochs that were never trained."""
    config = parse_config(CONFIG, "made.yaml", "/nowhere")
    network = build_network(config, IMAGE_SHAPE, CLASS_COUNT, np.random.default_rng(0))
    rates = {"learning_rate": 0.01, "seconds": 1.5, "images_per_second": 900.0}
    losses = {"train_loss": 0.7, "train_accuracy": 0.8, "validation_loss": 0.6, "validation_accuracy": 0.75}
    return Checkpoint(
        config=config,
        image_shape=IMAGE_SHAPE,
        class_count=CLASS_COUNT,
        normalization=Normalization((100.0,), (50.0,)),
        epoch=2,
        step=8,
        metrics=tuple({"epoch": epoch, **losses, **rates} for epoch in (1, 2)),
        parameters={name: parameter.value for name, parameter in network.parameters.items()},
        buffers=network.buffers,
        optimizer_state=Adam(network.parameters).state,
    )


def _evaluate(loaded: Checkpoint, network: Network) -> None:
    """Evaluate ten images of the shape that the checkpoint says."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (10, *loaded.image_shape)).astype(np.uint8)
    labels = np.arange(10) % loaded.class_count
    try:
        with Workers(1) as workers:
            evaluation = evaluate(network, Split(images, labels), loaded.normalization, workers)
    except DivergenceError:  # weights near the end of float32: finite, and their products are not
        return
    require(evaluation.examples == 10 == int(evaluation.confusion_matrix.sum()), "the number of examples")
    require(0 <= evaluation.accuracy <= 1, "the accuracy")
    require(math.isfinite(evaluation.loss), f"the loss is {evaluation.loss}")
