"""Checkpoints: all that training goes on from and all that evaluation needs, in one file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cnncli import __version__
from cnncli.config import Config, build_network, config_from_dict
from cnncli.data import Normalization
from cnncli.errors import CheckpointError, CnncliError
from cnncli.nn import Network
from cnncli.training.archive import ArchiveError, read_arrays, write_arrays

FORMAT_VERSION = 1


@dataclass(frozen=True)
class Checkpoint:
    """The state of a run after an epoch.

    Attributes
    ----------
    config : resolved configuration of the run
    image_shape, class_count : (C, H, W) and K of the data set
    normalization : taken from the training images
    epoch, step : finished epochs and optimizer steps, 0 at the start
    metrics : one dictionary for each finished epoch, as in metrics.jsonl
    parameters, buffers, optimizer_state : arrays by name, ``0/weight``
    """

    config: Config
    image_shape: tuple[int, int, int]
    class_count: int
    normalization: Normalization
    epoch: int
    step: int
    metrics: tuple[dict[str, Any], ...]
    parameters: Mapping[str, NDArray[Any]]
    buffers: Mapping[str, NDArray[Any]]
    optimizer_state: Mapping[str, NDArray[Any]]

    def save(self, path: Path) -> None:
        """Write the checkpoint; what stood at `path` is replaced whole or not at all.

        Raises
        ------
        CheckpointError : the file cannot be written
        """
        metadata = {
            "format_version": FORMAT_VERSION,
            "cnncli": __version__,
            "config": self.config.to_dict(),
            "image_shape": list(self.image_shape),
            "class_count": self.class_count,
            "normalization": self.normalization.to_dict(),
            "epoch": self.epoch,
            "step": self.step,
            "metrics": list(self.metrics),
            "array_count": sum(map(len, self._groups().values())),
        }
        arrays: dict[str, NDArray[Any]] = {"metadata": np.array(json.dumps(metadata))}
        for group, named in self._groups().items():
            arrays.update({f"{group}/{name}": array for name, array in named.items()})
        try:
            write_arrays(path, arrays)
        except OSError as error:
            raise CheckpointError(f"{path}: cannot write the checkpoint: {error.strerror or error}") from None

    def _groups(self) -> dict[str, Mapping[str, NDArray[Any]]]:
        return {
            "parameters": self.parameters,
            "buffers": self.buffers,
            "optimizer": self.optimizer_state,
        }

    def build_network(self) -> Network:
        """Build the network and load its weights.

        Raises
        ------
        CheckpointError : names, shapes or types of the arrays are not the network's; all are listed
        """
        try:
            # the initial weights are overwritten at once, so any generator does
            network = build_network(self.config, self.image_shape, self.class_count, np.random.default_rng(0))
        except CnncliError as error:
            raise CheckpointError(f"the network in the checkpoint cannot be built: {error}") from None
        self.restore(network)
        return network

    def restore(self, network: Network) -> None:
        """Load the weights and buffers into a network, all or none of them."""
        targets = {f"parameters/{name}": parameter.value for name, parameter in network.parameters.items()}
        targets |= {f"buffers/{name}": buffer for name, buffer in network.buffers.items()}
        sources = {f"parameters/{name}": array for name, array in self.parameters.items()}
        sources |= {f"buffers/{name}": array for name, array in self.buffers.items()}
        differences = _differences(targets, sources)
        if differences:
            raise CheckpointError("the checkpoint does not fit the network:\n  " + "\n  ".join(differences))
        for name, target in targets.items():
            target[...] = sources[name]


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint file.

    Raises
    ------
    CheckpointError : it cannot be opened, is not a checkpoint, is damaged, or of a newer format
    """
    try:
        arrays = read_arrays(path)
        metadata = _read_metadata(arrays)
        return _from_parts(metadata, arrays, path)
    except OSError as error:
        raise CheckpointError(f"cannot read the checkpoint {path}: {error.strerror or error}") from None
    except ArchiveError as error:
        raise CheckpointError(f"not a cnncli checkpoint: {path} ({error})") from None


def _read_metadata(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    text = arrays.get("metadata")
    if text is None or text.shape != () or text.dtype.kind != "U":
        raise ArchiveError("it holds no metadata")
    try:
        metadata = json.loads(str(text), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise ArchiveError("its metadata is not JSON") from None
    version = metadata.get("format_version") if isinstance(metadata, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ArchiveError("its metadata names no format version")
    if version > FORMAT_VERSION:
        raise ArchiveError(
            f"its format version is {version}, this program reads up to {FORMAT_VERSION}; "
            "install a newer cnncli"
        )
    assert isinstance(metadata, dict)
    return metadata


def _refuse_constant(name: str) -> float:
    raise ValueError(name)


def _from_parts(metadata: dict[str, Any], arrays: Mapping[str, NDArray[Any]], path: Path) -> Checkpoint:
    try:
        C, H, W = (int(size) for size in metadata["image_shape"])
        metrics = tuple(dict(line) for line in metadata["metrics"])
        checkpoint = Checkpoint(
            config=config_from_dict(metadata["config"], str(path)),
            image_shape=(C, H, W),
            class_count=int(metadata["class_count"]),
            normalization=Normalization.from_dict(metadata["normalization"]),
            epoch=int(metadata["epoch"]),
            step=int(metadata["step"]),
            metrics=metrics,
            parameters=_group(arrays, "parameters"),
            buffers=_group(arrays, "buffers"),
            optimizer_state=_group(arrays, "optimizer"),
        )
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError, CnncliError) as error:
        raise ArchiveError(f"its metadata is not what this program writes: {error}") from None
    # a damaged zip directory may end early without a word
    if metadata.get("array_count") != len(arrays) - 1:
        raise ArchiveError("it does not hold as many arrays as it was saved with")
    if checkpoint.epoch < 0 or checkpoint.step < 0 or len(metrics) != checkpoint.epoch:
        raise ArchiveError("its metadata contradicts itself: the epochs do not match the metrics")
    return checkpoint


def _group(arrays: Mapping[str, NDArray[Any]], group: str) -> dict[str, NDArray[Any]]:
    prefix = f"{group}/"
    return {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}


def _differences(targets: Mapping[str, NDArray[Any]], sources: Mapping[str, NDArray[Any]]) -> list[str]:
    found = [f"{name}: missing in the checkpoint" for name in targets if name not in sources]
    found += [f"{name}: unknown to the network" for name in sources if name not in targets]
    for name, target in targets.items():
        source = sources.get(name)
        if source is None:
            continue
        if source.shape != target.shape or source.dtype != target.dtype:
            found.append(
                f"{name}: expected {target.dtype} {target.shape}, "
                f"the checkpoint has {source.dtype} {source.shape}"
            )
        elif not np.isfinite(source).all():
            found.append(f"{name}: holds values that are not finite")
    return found
