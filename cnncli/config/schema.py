"""The checked configuration: what `load_config` returns and everything else is built from.

The signatures of layers, optimizers and schedules, and the sections below, are the schema: names, checks and
defaults of all options come from them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, get_args

from cnncli.config.faults import Place, located
from cnncli.errors import ConfigError
from cnncli.nn.options import (
    Degrees,
    FractionBelowOne,
    NonNegativeFloat,
    NonNegativeInt,
    Option,
    PositiveInt,
    count_up_to,
    non_negative_int,
    option_of,
    optional,
    positive_float,
    positive_int,
    text,
)

# keyword arguments of layers that the program hands over, not the configuration
HANDED_OVER = ("rng", "dtype")


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED = _Required()


@dataclass(frozen=True)
class Field:
    """One option of a layer, an optimizer, a schedule or a section.

    Attributes
    ----------
    check : what the value may be; None where the option is a section of its own
    section : the dataclass of that section, or None
    default : in the type that `check` gives, or `REQUIRED`
    """

    name: str
    check: Option[Any] | None
    section: type[Any] | None
    default: Any

    @property
    def is_required(self) -> bool:
        return self.default is REQUIRED


def fields_of(cls: type[Any]) -> Mapping[str, Field]:
    """Return the options of a class: its keyword-only arguments, without `rng` and `dtype`.

    Raises
    ------
    TypeError : an annotation carries no check, so the class cannot stand in a configuration
    """
    fields = {}
    for parameter in inspect.signature(cls, eval_str=True).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.name not in HANDED_OVER:
            fields[parameter.name] = _field(cls, parameter)
    return MappingProxyType(fields)


def takes(cls: type[Any], name: str) -> bool:
    """Tell whether a constructor has an argument of this name."""
    return name in inspect.signature(cls).parameters


def _field(cls: type[Any], parameter: inspect.Parameter) -> Field:
    check, section = option_of(parameter.annotation), _section_of(parameter.annotation)
    if check is None and section is None:
        raise TypeError(f"{cls.__name__}: the annotation of {parameter.name} carries no check")
    default = REQUIRED if parameter.default is parameter.empty else parameter.default
    if check is not None and default is not REQUIRED:
        default = check(parameter.name, default)
    return Field(parameter.name, check, section, default)


def _section_of(annotation: Any) -> type[Any] | None:
    for kind in (annotation, *get_args(annotation)):
        if isinstance(kind, type) and is_dataclass(kind):
            return kind
    return None


# Twelve days of epochs of a second each: more is a slip of the finger, or of a script.
MAX_EPOCHS = 1_000_000
# No data set that fits into memory has more; all that are more than the training set mean all of it.
MAX_BATCH_SIZE = 1_000_000_000

EpochCount = Annotated[int, count_up_to(MAX_EPOCHS)]
ImageCount = Annotated[int, count_up_to(MAX_BATCH_SIZE)]

# null stands in a file only: reading it draws a seed
Seed = Annotated[int, optional(non_negative_int)]


@dataclass(frozen=True)
class Choice:
    """A layer, an optimizer or a schedule: its name and its options, every default filled in."""

    name: str
    options: Mapping[str, Any]

    def to_plain(self) -> str | dict[str, Any]:
        """Give what stands in a configuration: ``"relu"`` or ``{"dense": {"out_features": 10, ...}}``."""
        if not self.options:
            return self.name
        return {self.name: {name: _plain(value) for name, value in self.options.items()}}


@dataclass(frozen=True, kw_only=True)
class AugmentConfig:
    """Change every training image at random, anew in each epoch; see `cnncli.data.Augmentation`.

    Attributes
    ----------
    shift : pixels, in both directions of both axes
    rotate : degrees, in both directions
    scale : fraction by which images become larger or smaller
    shear : fraction of a row's distance from the centre by which it moves sideways
    """

    shift: NonNegativeFloat = 0.0
    rotate: Degrees = 0.0
    scale: FractionBelowOne = 0.0
    shear: NonNegativeFloat = 0.0


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Where the images come from.

    Attributes
    ----------
    dataset : a name of the catalogue, or the absolute path of a directory of IDX files or of an .npz
    directory : where the files of a catalogue name are, absolute; None for the per-user cache
        directory, and always None where `dataset` is a path
    validation_size : images taken from the training set to choose the best epoch by
    augment : random changes of the training images; None leaves them as they are
    """

    dataset: Annotated[str, text] = "mnist"
    directory: Annotated[Path | None, optional(text)] = None
    validation_size: NonNegativeInt = 5000
    augment: AugmentConfig | None = None


@dataclass(frozen=True, kw_only=True)
class LossConfig:
    """Softmax cross-entropy.

    Attributes
    ----------
    label_smoothing : probability that is spread evenly over all classes
    """

    label_smoothing: FractionBelowOne = 0.0


@dataclass(frozen=True, kw_only=True)
class EarlyStopping:
    """Stop when the best epoch is too long ago.

    Attributes
    ----------
    patience : epochs without a better one after which training stops
    """

    patience: PositiveInt = 3


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """The loop.

    Attributes
    ----------
    epochs : passes over the training images
    batch_size : images of one optimizer step; all of them where there are fewer
    shard_size : images that one thread takes through the network at a time, about: shards are cut evenly
    threads : worker threads; None for as many as there are processors. More than 16 would be idle.
    clip_norm : largest global norm of the gradient; None leaves it as it is
    early_stopping : None trains all epochs
    """

    epochs: EpochCount = 1
    batch_size: ImageCount = 128
    shard_size: ImageCount = 50
    threads: Annotated[int | None, optional(positive_int)] = None
    clip_norm: Annotated[float | None, optional(positive_float)] = None
    early_stopping: EarlyStopping | None = None


@dataclass(frozen=True, kw_only=True)
class Config:
    """A whole configuration, checked, with every default filled in.

    Two are equal when their values are, wherever they were written.

    Attributes
    ----------
    source : the file, as the user named it
    places : where each key path was written; key paths left to their defaults are not in it
    """

    seed: Seed = 0
    data: DataConfig = DataConfig()
    network: tuple[Choice, ...]
    optimizer: Choice
    schedule: Choice
    loss: LossConfig = LossConfig()
    training: TrainingConfig = TrainingConfig()
    source: str = field(default="configuration", compare=False, repr=False)
    places: Mapping[str, Place] = field(default_factory=dict, compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Give the whole configuration as JSON-able values that `config_from_dict` reads back."""
        return {
            "seed": self.seed,
            "data": _section(self.data),
            "network": [choice.to_plain() for choice in self.network],
            "optimizer": self.optimizer.to_plain(),
            "schedule": self.schedule.to_plain(),
            "loss": _section(self.loss),
            "training": _section(self.training),
        }

    def place_of(self, key_path: str) -> Place:
        """Return where a key path was written, or else the section that it belongs to."""
        while key_path:
            if key_path in self.places:
                return self.places[key_path]
            key_path = re.sub(r"(\.[^.\[\]]*|\[\d+\]|^[^.\[\]]*)$", "", key_path)
        return Place(self.source)

    def error(self, key_path: str, message: str) -> ConfigError:
        """Make the error for a value that turns out wrong later, such as when the data is known."""
        return ConfigError(located(self.place_of(key_path), key_path, message))


SECTIONS: dict[str, type[Any]] = {"data": DataConfig, "loss": LossConfig, "training": TrainingConfig}
TOP_LEVEL = ("seed", "data", "network", "optimizer", "schedule", "loss", "training")


def _section(section: Any) -> dict[str, Any]:
    return {entry.name: _plain(getattr(section, entry.name)) for entry in fields(section)}


def _plain(value: Any) -> Any:
    if isinstance(value, (AugmentConfig, EarlyStopping)):
        return _section(value)
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, tuple):
        # every option that takes a pair of integers takes one for both: 3 reads better than [3, 3]
        square = isinstance(value[0], int) and value[0] == value[-1]
        return value[0] if square else list(value)
    return value
