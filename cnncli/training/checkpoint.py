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
from cnncli.config.faults import one_line
from cnncli.data import Normalization
from cnncli.data.numpy_files import open_npz, write_npz
from cnncli.errors import CheckpointError, CnncliError, DataError
from cnncli.nn import Network
from cnncli.training.metrics import is_finite

FORMAT_VERSION = 1

# what a line of metrics has in format 1; more may be added
_MEASURED = ("train_loss", "train_accuracy", "learning_rate", "seconds", "images_per_second")
_VALIDATED = ("validation_loss", "validation_accuracy")

_MAX_REASON = 300
_MAX_DIFFERENCES = 20
# weights that a network may ask for beyond those in the file, so that small differences are all listed
_FEW_WEIGHTS = 1_000_000


class _ForeignFileError(Exception):
    """The file holds arrays, but is no checkpoint of this program; the message is the reason alone."""


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
            write_npz(path, arrays)
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
        CheckpointError : names, shapes or types of the arrays are not the network's; the first 20 are listed
        """
        n_weights = sum(array.size for array in self.parameters.values())
        zeros = _Zeros(2 * n_weights + _FEW_WEIGHTS)
        try:
            network = build_network(self.config, self.image_shape, self.class_count, zeros)
        except CnncliError as error:
            where = f"{self.config.source}: "
            reason = str(error).removeprefix(where)
            raise CheckpointError(f"{where}the network in the checkpoint cannot be built: {reason}") from None
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
            shown = differences[:_MAX_DIFFERENCES]
            if len(differences) > len(shown):
                shown.append(f"and {len(differences) - len(shown)} more")
            raise CheckpointError(
                f"{self.config.source}: the checkpoint does not fit the network:\n  " + "\n  ".join(shown)
            )
        for name, target in targets.items():
            target[...] = sources[name]


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint file.

    Raises
    ------
    CheckpointError : it cannot be opened, is not a checkpoint, is damaged, or of a newer format
    """
    try:
        path.open("rb").close()
        with open_npz(path) as npz:
            if npz.is_compressed:
                raise _ForeignFileError("its arrays are compressed")
            arrays = {name: npz.read(name) for name in npz.names}
        return _from_parts(_read_metadata(arrays), arrays, path)
    except OSError as error:
        raise CheckpointError(f"cannot read the checkpoint {path}: {error.strerror or error}") from None
    except (DataError, _ForeignFileError) as error:
        reason = str(error).removeprefix(f"{path}: ")
        raise CheckpointError(f"not a cnncli checkpoint: {path} ({reason})") from None


def _read_metadata(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    text = arrays.get("metadata")
    if text is None or text.shape != () or text.dtype.kind != "U":
        raise _ForeignFileError("it holds no metadata")
    try:
        metadata = json.loads(str(text), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise _ForeignFileError("its metadata is not JSON") from None
    version = metadata.get("format_version") if isinstance(metadata, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise _ForeignFileError("its metadata names no format version")
    if version > FORMAT_VERSION:
        raise _ForeignFileError(
            f"its format version is {version}, this program reads up to {FORMAT_VERSION}; "
            "install a newer cnncli"
        )
    assert isinstance(metadata, dict)
    return metadata


def _refuse_constant(name: str) -> float:
    raise ValueError(name)


def _from_parts(metadata: dict[str, Any], arrays: Mapping[str, NDArray[Any]], path: Path) -> Checkpoint:
    try:
        C, H, W = (_integer(size, at_least=1) for size in metadata["image_shape"])
        metrics = tuple(_metrics_line(line) for line in metadata["metrics"])
        checkpoint = Checkpoint(
            config=config_from_dict(metadata["config"], str(path)),
            image_shape=(C, H, W),
            class_count=_integer(metadata["class_count"], at_least=1),
            normalization=Normalization.from_dict(metadata["normalization"]),
            epoch=_integer(metadata["epoch"], at_least=0),
            step=_integer(metadata["step"], at_least=0),
            metrics=metrics,
            parameters=_group(arrays, "parameters"),
            buffers=_group(arrays, "buffers"),
            optimizer_state=_group(arrays, "optimizer"),
        )
    except (
        KeyError,
        TypeError,
        ValueError,
        OverflowError,
        AttributeError,
        RecursionError,
        CnncliError,
    ) as error:
        reason = one_line(str(error).partition("\n")[0], _MAX_REASON)
        raise _ForeignFileError(f"its metadata is not what this program writes: {reason}") from None
    # a damaged zip directory may end early without a word
    if metadata.get("array_count") != len(arrays) - 1:
        raise _ForeignFileError("it does not hold as many arrays as it was saved with")
    epochs = [line["epoch"] for line in metrics]
    if checkpoint.epoch != len(metrics) or epochs != list(range(1, len(metrics) + 1)):
        raise _ForeignFileError("its metadata contradicts itself: the epochs do not match the metrics")
    if len({line["validation_loss"] is None for line in metrics}) > 1:
        raise _ForeignFileError(
            "its metadata contradicts itself: some epochs have been validated, others not"
        )
    if len(checkpoint.normalization.mean) != C:
        raise _ForeignFileError("its metadata contradicts itself: the normalization is for other images")
    return checkpoint


def _integer(value: object, *, at_least: int) -> int:
    # JSON has 1.5, true and "1" as well, which int() would take
    if type(value) is not int or not at_least <= value < 2**63:
        raise ValueError(f"expected an integer of at least {at_least} and below 2**63, got {value!r}")
    return value


def _metrics_line(line: object) -> dict[str, Any]:
    """Check one line of the metrics: what later epochs are compared with."""
    if not isinstance(line, dict):
        raise TypeError(f"expected the metrics of an epoch, got {line!r}")
    _integer(line["epoch"], at_least=1)
    for name in (*_MEASURED, *_VALIDATED):
        value = line[name]
        if not _is_number(value) and not (name in _VALIDATED and value is None):
            raise ValueError(f"expected a number as {name} of an epoch, got {value!r}")
    if len({line[name] is None for name in _VALIDATED}) > 1:
        raise ValueError(f"expected {' and '.join(_VALIDATED)} of an epoch, or neither")
    return line


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and is_finite(value)


def _group(arrays: Mapping[str, NDArray[Any]], group: str) -> dict[str, NDArray[Any]]:
    prefix = f"{group}/"
    return {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}


def _differences(targets: Mapping[str, NDArray[Any]], sources: Mapping[str, NDArray[Any]]) -> list[str]:
    found = [f"{name}: missing in the checkpoint" for name in targets if name not in sources]
    found += [f"{one_line(name)}: unknown to the network" for name in sources if name not in targets]
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


class _Zeros(np.random.Generator):
    """Stands in for initial weights that are overwritten at once: draws zeros, and only so many.

    A configuration that was damaged or made up can ask for any number of weights; those in the file
    say how many can be right.
    """

    def __init__(self, most: int) -> None:
        super().__init__(np.random.PCG64(0))
        self._n_left = most

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return self._draw(int(size))

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        return self._draw(int(size))

    def _draw(self, n: int) -> NDArray[np.float64]:
        self._n_left -= n
        if self._n_left < 0:
            raise CheckpointError("its configuration asks for many more weights than it holds")
        return np.zeros(n)
