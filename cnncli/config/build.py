"""A checked configuration into the objects that it describes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cnncli.config.schema import Choice, Config, takes
from cnncli.data import Augmentation
from cnncli.errors import ConfigError, OptionError, ShapeError
from cnncli.nn.arrays import DType
from cnncli.nn.layers import LAYERS, BatchNorm, Layer, Parameter
from cnncli.nn.network import Network
from cnncli.nn.optimizers import OPTIMIZERS, Optimizer
from cnncli.nn.schedules import SCHEDULES, Schedule

# 4 GiB in float32: with such a padding a forward pass would use up the machine before it failed
MAX_OUTPUTS = 1 << 30
# a damaged checkpoint can ask for images of any size, and a batch norm takes memory for each feature at once
MAX_NORMALIZED = 1 << 24


def build_network(
    config: Config,
    input_shape: tuple[int, ...],
    class_count: int,
    rng: np.random.Generator | None = None,
    dtype: DType = np.float32,
) -> Network:
    """Build the layers in turn, each for what the one before it gives.

    Parameters
    ----------
    input_shape : shape of one image, (C, H, W)
    class_count : outputs that the last layer needs at least
    rng : source of the initial weights, drawn layer after layer
    dtype : type of the parameters

    Raises
    ------
    ConfigError : a layer does not fit the one before it, or the last one gives no score for every
        class; with the place in the file and what fixes it
    """
    shape, layers = input_shape, list[Layer]()
    for index, choice in enumerate(config.network):
        layers.append(_build_layer(config, index, choice, layers, shape, {"rng": rng, "dtype": dtype}))
        shape = layers[-1].output_shape
        _check_batch_norm(config, index, layers[-1])
    _check_output(config, shape, class_count)
    network = Network(layers)
    if not network.parameters:
        message = "expected a layer with parameters to train, such as dense, got none"
        fix = f"end with dense: {{out_features: {class_count}}}"
        raise config.error("network", f"{message}; {fix}")
    return network


def build_optimizer(config: Config, parameters: Mapping[str, Parameter]) -> Optimizer:
    """Build the optimizer over the parameters of a network."""
    cls: Any = OPTIMIZERS[config.optimizer.name]
    optimizer: Optimizer = cls(parameters, **config.optimizer.options)
    return optimizer


def build_augmentation(config: Config) -> Augmentation | None:
    """Build what changes the training images; None where nothing does."""
    augment = config.data.augment
    return None if augment is None else Augmentation(**vars(augment))


def build_schedule(config: Config, total_steps: int, steps_per_epoch: int) -> Schedule:
    """Build the schedule of a run, with the optimizer's learning rate as its peak."""
    cls: Any = SCHEDULES[config.schedule.name]
    peak = config.optimizer.options["learning_rate"]
    schedule: Schedule = cls(peak, total_steps, steps_per_epoch, **config.schedule.options)
    return schedule


def _build_layer(
    config: Config,
    index: int,
    choice: Choice,
    before: Sequence[Layer],
    shape: tuple[int, ...],
    handed_over: Mapping[str, Any],
) -> Layer:
    cls: Any = LAYERS[choice.name]
    path = f"network[{index}].{choice.name}"
    if issubclass(cls, BatchNorm) and shape[0] > MAX_NORMALIZED:
        message = f"expected at most {MAX_NORMALIZED:,} channels or features, got {shape[0]:,}"
        raise config.error(path, f"{message}; make the layers before it smaller")
    extras = {name: value for name, value in handed_over.items() if takes(cls, name)}
    try:
        layer: Layer = cls(shape, **choice.options, **extras)
    except OptionError as error:
        message = f"expected {error.expected}, got {error.got}; the layer's input is {shape}"
        message += _fix(error.option, before, shape)
        raise config.error(f"{path}.{error.option}", message) from None
    except ShapeError as error:
        message = str(error).removeprefix(f"{cls.__name__}: ")
        raise config.error(path, message + _where_it_was_flattened(before, shape)) from None
    except (MemoryError, OverflowError, ValueError):
        # the ways in which NumPy says that an array is too large; its words name no option
        message = f"too large to fit in memory for an input of {shape}; make the layer or its input smaller"
        raise config.error(path, message) from None
    if math.prod(layer.output_shape) > MAX_OUTPUTS:
        message = f"gives {layer.output_shape} for one image, which is too large; make the layer smaller"
        raise config.error(path, message)
    return layer


def _check_batch_norm(config: Config, index: int, layer: Layer) -> None:
    """Refuse shards of one image for a layer that compares the images of a shard."""
    if not isinstance(layer, BatchNorm) or math.prod(layer.input_shape[1:]) > 1:
        return
    for key in ("batch_size", "shard_size"):
        if getattr(config.training, key) == 1:
            message = (
                f"normalises each feature over the images of a shard, and training.{key} is 1: every output "
                f"would be the layer's bias; set training.{key} to at least 2, better 32"
            )
            raise config.error(f"network[{index}].{config.network[index].name}", message)


def _fix(option: str, before: Sequence[Layer], shape: tuple[int, ...]) -> str:
    """Say what to do about a window that does not fit its input; only shapes show that."""
    if option == "padding":
        return "; make the padding smaller or the kernel larger"
    if option != "kernel_size":
        return ""
    has_shrunk = bool(before) and shape[1:] != before[0].input_shape[1:]
    smaller_before = ", or the image shrink less in the layers before" if has_shrunk else ""
    return f"; make the kernel smaller or the padding larger{smaller_before}"


def _where_it_was_flattened(before: Sequence[Layer], shape: tuple[int, ...]) -> str:
    """Say where a layer that takes images has to go, if there were images before it."""
    if len(shape) != 1:
        return ""
    for index, layer in enumerate(before):
        if len(layer.input_shape) > 1 and len(layer.output_shape) == 1:
            return f"; move it before network[{index}], which gives {layer.output_shape}"
    return ""


def _check_output(config: Config, shape: tuple[int, ...], class_count: int) -> None:
    index = len(config.network) - 1
    last = config.network[index]
    path = f"network[{index}].{last.name}" if last.options else f"network[{index}]"
    needed = f"({class_count},), one number for each of the {class_count} classes"
    if len(shape) != 1:
        fix = f"add flatten and dense: {{out_features: {class_count}}} after it"
        raise config.error(path, f"expected the last layer to give {needed}, got {shape}; {fix}")
    if shape[0] < class_count:
        raise _too_few_outputs(config, path, last, shape[0], needed, class_count)


def _too_few_outputs(
    config: Config, path: str, last: Choice, n_outputs: int, needed: str, class_count: int
) -> ConfigError:
    message = f"expected the last layer to give {needed}, got ({n_outputs},)"
    if last.options.get("out_features") == n_outputs:
        return config.error(f"{path}.out_features", f"{message}; set it to {class_count}")
    return config.error(path, f"{message}; end with dense: {{out_features: {class_count}}}")
