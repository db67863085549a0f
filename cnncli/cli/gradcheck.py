"""``cnncli gradcheck``: whether every backward gives the gradient of its forward."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from cnncli.cli import formats
from cnncli.cli.arguments import (
    index_option,
    json_option,
    mapping_option,
    path_option,
    set_option,
    shape_option,
)
from cnncli.cli.layer_class import faults_of_user_code, import_layer_class, make_layer
from cnncli.cli.terminal import Column, Stream, results, table, write_json
from cnncli.config import Config, build_network, load_config
from cnncli.data import describe_dataset
from cnncli.errors import GradientError, UsageError
from cnncli.nn import Network
from cnncli.nn.gradient_check import N_IMAGES, TOLERANCE, ArrayCheck, Checkable, check_gradients

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
@shape_option("--input-shape", metavar="C,H,W", summary="Shape of its input, without the batch.")
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
    checks = check_gradients(network, network.input_shape, rng, n_elements=FEW_ELEMENTS)
    return [*parts, Part("network", None, checks)]


def _check_layer(config: Config, network: Network, index: int, seed: int, n_elements: int) -> Part:
    layer = network.layers[index]
    rng = np.random.default_rng((seed, index))
    checks = check_gradients(layer, layer.input_shape, rng, n_elements=n_elements)
    return Part(config.network[index].name, index, checks)


def _check_class(name: str, input_shape: tuple[int, ...], options: Mapping[str, Any], seed: int) -> Part:
    cls = import_layer_class(name)
    layer: Checkable = make_layer(cls, input_shape, options, seed)
    with faults_of_user_code():
        checks = check_gradients(
            layer, input_shape, np.random.default_rng((seed, 0)), n_elements=MANY_ELEMENTS
        )
    return Part(cls.__name__, None, checks)


def _advice(parts: list[Part]) -> str:
    place = not_right(parts)[0][0].index
    return "" if place is None else f"; look closer with --layer {place}"


MOST_ELEMENTS = 5
ELEMENTS = (
    "The numbers that differ most. backward: the gradient that backward gives. difference: how much the "
    "output changes with the number, each output weighted by the gradient from above."
)


@dataclass(frozen=True)
class Part:
    """A layer or the whole network, and what was found.

    Attributes
    ----------
    index : the layer's place in the network; None for the whole network, and for a class by itself
    name : ``conv2d``, ``network``, or the name of a class
    """

    name: str
    index: int | None
    checks: tuple[ArrayCheck, ...]

    @property
    def place(self) -> str:
        """The part in a sentence."""
        if self.index is not None:
            return f"layer {self.index}, {self.name}"
        return f"the whole {self.name}" if self.name == "network" else self.name


def not_right(parts: Sequence[Part]) -> list[tuple[Part, ArrayCheck]]:
    """Collect what is not right, the worst first.

    A wrong layer makes the whole network wrong, so layers come before it; what cannot be compared at
    all comes before what can.
    """
    found = [(part, check) for part in parts for check in part.checks if check.verdict != "right"]
    return sorted(found, key=lambda pair: _badness(*pair), reverse=True)


def failure(parts: Sequence[Part]) -> str:
    """Name the worst of what is not right, in one sentence."""
    part, check = not_right(parts)[0]
    if check.verdict == "unclear":
        what = "cannot be checked: every step meets a kink"
    elif check.relative_error is None or check.relative_error <= TOLERANCE:
        what = f"is wrong: {check.faults[0]}"
    else:
        what = f"is wrong: relative error {check.relative_error:.1e}, at most {TOLERANCE:.0e} is right"
    return f"{part.place}: the gradient of {check.name} {what}"


def write_parts(parts: Sequence[Part], stream: Stream) -> None:
    """Write one row for each array, and in words what is wrong."""
    numbers = [len(str(part.index)) for part in parts if part.index is not None]
    width = max(numbers, default=0)
    head = f"{'#':>{width}} layer" if numbers else "layer"
    columns = (
        Column(head, "<"),
        Column("array", "<"),
        Column("shape", "<"),
        Column("relative error"),
        Column("verdict", "<"),
    )
    heads, *lines = table(columns, list(_rows(parts, width if numbers else None)))
    stream.write(stream.bold(heads))
    for line in lines:
        stream.write(_colored(line, stream))
    stream.write()
    for line in _summary(parts, stream.width):
        stream.write(line)


def write_elements(part: Part, stream: Stream) -> None:
    """Write the elements of each array that differ most: their index, and both numbers."""
    columns = (
        Column("array", "<"),
        Column("element", "<"),
        Column("backward"),
        Column("difference"),
        Column("relative error"),
    )
    heads, *lines = table(columns, list(_element_rows(part)))
    for line in _wrapped(ELEMENTS, stream.width):
        stream.write(line)
    stream.write()
    stream.write(stream.bold(heads))
    for line in lines:
        stream.write(line)
    stream.write()


def parts_as_json(parts: Sequence[Part], seed: int) -> dict[str, Any]:
    """Give everything that was found, ready for JSON."""
    return {
        "tolerance": TOLERANCE,
        "seed": seed,
        "right": not not_right(parts),
        "parts": [
            {"name": part.name, "index": part.index, "arrays": [_check_as_json(c) for c in part.checks]}
            for part in parts
        ],
    }


def _check_as_json(check: ArrayCheck) -> dict[str, Any]:
    return {
        "name": check.name,
        "shape": check.shape,
        "relative_error": check.relative_error,
        "verdict": check.verdict,
        "faults": check.faults,
        "elements": [vars(element) for element in check.elements[:MOST_ELEMENTS]],
    }


def _badness(part: Part, check: ArrayCheck) -> tuple[bool, bool, float]:
    error = float("inf") if check.relative_error is None else check.relative_error
    return check.verdict == "wrong", part.index is not None, error


def _rows(parts: Sequence[Part], width: int | None) -> Iterator[list[str]]:
    for part in parts:
        number = "" if width is None else f"{'' if part.index is None else part.index:>{width}} "
        label = number + part.name
        for check in part.checks:
            error = "" if check.relative_error is None else f"{check.relative_error:.1e}"
            yield [label, check.name, str(check.shape), error, check.verdict]
            label = ""


def _element_rows(part: Part) -> Iterator[list[str]]:
    for check in part.checks:
        name = check.name
        is_off = check.relative_error is not None and check.relative_error > TOLERANCE
        shown = MOST_ELEMENTS if is_off else 1
        for element in check.elements[:shown]:
            yield [
                name,
                str(list(element.index)),
                f"{element.analytic:.8g}",
                f"{element.numeric:.8g}",
                f"{element.relative_error:.1e}",
            ]
            name = ""


def _summary(parts: Sequence[Part], width: int) -> Iterator[str]:
    n_checks = sum(len(part.checks) for part in parts)
    found = not_right(parts)
    for part, check in found:
        for fault in _in_words(check):
            yield from _wrapped(f"{part.place}, {check.name}: {fault}", width)
    if any(_in_words(check) for _, check in found):
        yield ""
    errors = [check.relative_error or 0.0 for part in parts for check in part.checks]
    if found:
        text = f"{len(found)} of {formats.counted(n_checks, 'gradient')} "
        text += "is not right." if len(found) == 1 else "are not right."
    else:
        who = "The gradient is" if n_checks == 1 else f"All {n_checks} gradients are"
        text = f"{who} right: the largest relative error is {max(errors):.1e}."
    yield from _wrapped(f"{text} At most {TOLERANCE:.0e} is right; --help says why.", width)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _in_words(check: ArrayCheck) -> list[str]:
    """Say how many numbers are wrong, and what else is."""
    n_wrong = sum(element.relative_error > TOLERANCE for element in check.elements)
    counts = (
        [f"{n_wrong} of the {len(check.elements)} numbers compared one by one are wrong"] if n_wrong else []
    )
    return [*counts, *check.faults]


def _colored(line: str, stream: Stream) -> str:
    for verdict in ("wrong", "unclear"):
        if line.endswith(verdict):
            return line.removesuffix(verdict) + stream.red(verdict)
    return line
