"""``cnncli gradcheck``: whether every backward gives the gradient of its forward."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np

from cnncli.cli.gradcheck_options import index_option, input_shape_option, mapping_option
from cnncli.cli.gradcheck_report import (
    Part,
    failure,
    not_right,
    parts_as_json,
    write_elements,
    write_parts,
)
from cnncli.cli.layer_class import faults_of_user_code, import_layer_class, make_layer
from cnncli.cli.options import json_option, path_option, set_option
from cnncli.cli.streams import results, write_json
from cnncli.config import Config, build_network, load_config
from cnncli.data import describe_dataset
from cnncli.errors import GradientError, UsageError
from cnncli.nn import Network
from cnncli.nn.frozen_subject import Subject
from cnncli.nn.gradient_examination import N_IMAGES, examine_gradients

# compared one by one, of each array
FEW_ELEMENTS = 8
MANY_ELEMENTS = 200


@click.command("gradcheck")
@path_option("--config", "config_path", metavar="FILE", summary="Configuration of the network.")
@set_option()
@index_option("--layer", summary="Look at one layer of the network closely, by its place, from 0.")
@click.option(
    "--layer-class",
    metavar="MODULE:CLASS",
    help="Check a class of your own instead, such as my_layers:LeakyReLU for my_layers.py in the current "
    "directory. Its code is run.",
)
@input_shape_option("--input-shape", summary="Shape of one input of that class, without the batch.")
@mapping_option(
    "--options", "class_options", summary="What its constructor takes, in YAML or JSON: '{kernel_size: 3}'."
)
@index_option("--seed", default="0", summary="Draw other random numbers.")
@json_option()
@click.pass_context
def gradcheck(
    ctx: click.Context,
    config_path: Path | None,
    overrides: tuple[str, ...],
    layer: int | None,
    layer_class: str | None,
    input_shape: tuple[int, ...] | None,
    class_options: Mapping[str, Any] | None,
    seed: int,
    as_json: bool,
) -> None:
    """Check every gradient against differences of forward.

    First every layer by itself, then the whole network as it is computed, where a convolution and
    its pool are one: the gradient of the input and of every parameter, in float64, in training, with
    a random gradient from above. A data set known by name need not be there. Exit code 1 if anything
    is not right.

    \b
    relative error  |backward - difference| / the larger of the two, along random
                    directions of the whole array and for some single numbers
    right           at most 1e-05. Rounding leaves 1e-07 or less; one wrong number
                    among a million makes about 1e-03
    wrong           more than that, or something is changed in place that must not
                    be, added to instead of overwritten, or counted twice at a tie
    unclear         every step met a kink, so there is no slope to compare with

    The usual advice to forgive 1e-4, or 1e-2, is for kinks and float32. Here inputs have no ties and
    are not near 0, and only steps count whose two halves have the same slope, so that no ReLU and no
    maximum has switched in between. Dropout drops the same numbers every time.

    A class of your own is made as CLASS(input_shape, **options), with rng and dtype if it takes
    them. It needs forward(x) and backward(grad_output), on arrays with the batch last; training and
    rng go to a forward that takes them. What is trained stands in parameters, by name, with value
    and grad; output_shape and buffers are optional.

    \b
    cnncli gradcheck --config configs/lenet.yaml
    cnncli gradcheck --config configs/lenet.yaml --layer 3
    cnncli gradcheck --layer-class my_layers:LeakyReLU --input-shape 2,5,4
    """
    if (config_path is None) == (layer_class is None):
        raise click.UsageError("give one of --config FILE and --layer-class MODULE:CLASS", ctx)
    if layer_class is not None:
        _refuse("--config", {"--set": overrides or None, "--layer": layer})
        if input_shape is None:
            raise click.UsageError("--layer-class needs --input-shape, such as 2,5,4", ctx)
        title = layer_class
        parts = [_check_class(layer_class, input_shape, class_options or {}, seed)]
    else:
        assert config_path is not None
        _refuse("--layer-class", {"--input-shape": input_shape, "--options": class_options})
        title = str(config_path)
        parts = _check_config(load_config(config_path, overrides), layer, seed)
    is_close_look = layer is not None or layer_class is not None
    if as_json:
        write_json(parts_as_json(parts, seed))
    else:
        stream = results()
        stream.write(stream.bold(title) + stream.dim(f"  float64, {N_IMAGES} images, seed {seed}"))
        stream.write()
        if is_close_look and any(check.elements for check in parts[0].checks):
            write_elements(parts[0], stream)
        write_parts(parts, stream)
    if not_right(parts):
        advice = "" if is_close_look else _advice(parts)
        raise GradientError(failure(parts) + advice)


def _refuse(owner: str, given: Mapping[str, object]) -> None:
    for name, value in given.items():
        if value is not None:
            raise UsageError(f"{name}: goes with {owner}")


def _check_config(config: Config, layer: int | None, seed: int) -> list[Part]:
    data = describe_dataset(config.data.dataset, config.data.directory)
    network = build_network(
        config, data.image_shape, data.class_count, np.random.default_rng(seed), dtype=np.float64
    )
    if layer is not None:
        if layer >= len(network.layers):
            last = len(network.layers) - 1
            raise UsageError(f"--layer: expected a place from 0 to {last}, got {layer}")
        return [_check_layer(config, network, layer, seed, MANY_ELEMENTS)]
    parts = [_check_layer(config, network, index, seed, FEW_ELEMENTS) for index in range(len(network.layers))]
    rng = np.random.default_rng((seed, len(parts)))
    checks = examine_gradients(network, network.input_shape, rng, n_elements=FEW_ELEMENTS)
    return [*parts, Part("network", None, checks)]


def _check_layer(config: Config, network: Network, index: int, seed: int, n_elements: int) -> Part:
    layer = network.layers[index]
    rng = np.random.default_rng((seed, index))
    checks = examine_gradients(layer, layer.input_shape, rng, n_elements=n_elements)
    return Part(config.network[index].name, index, checks)


def _check_class(name: str, input_shape: tuple[int, ...], options: Mapping[str, Any], seed: int) -> Part:
    cls = import_layer_class(name)
    layer: Subject = make_layer(cls, input_shape, options, seed)
    with faults_of_user_code():
        checks = examine_gradients(
            layer, input_shape, np.random.default_rng((seed, 0)), n_elements=MANY_ELEMENTS
        )
    return Part(cls.__name__, None, checks)


def _advice(parts: list[Part]) -> str:
    place = not_right(parts)[0][0].index
    return "" if place is None else f"; look closer with --layer {place}"
