"""``cnncli inspect-shapes``: what every layer makes of the array before it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from cnncli.cli import formats
from cnncli.cli.checkpoints import checkpoint_file
from cnncli.cli.options import count_option, json_option, path_option, set_option
from cnncli.cli.streams import Stream, results, write_json
from cnncli.cli.tables import Column, table
from cnncli.config import build_network, load_config
from cnncli.data import describe_dataset
from cnncli.nn import Network
from cnncli.nn.inspection import LayerFacts, NetworkFacts, inspect_network
from cnncli.training import load_checkpoint


@click.command()
@path_option("--config", "config_path", metavar="FILE", summary="Configuration of the network.")
@set_option()
@path_option(
    "--checkpoint",
    "checkpoint_path",
    metavar="FILE",
    summary="Checkpoint or run directory, instead of --config.",
)
@count_option(
    "--batch-size",
    summary="Show a batch of N images, the batch axis last. By default: one image, without that axis.",
)
@json_option()
@click.pass_context
def inspect_shapes(
    ctx: click.Context,
    config_path: Path | None,
    overrides: tuple[str, ...],
    checkpoint_path: Path | None,
    batch_size: int | None,
    as_json: bool,
) -> None:
    """Show shapes, parameters and cost of every layer.

    A data set known by name need not be there; one of your own is looked at for the size of its
    images and the number of its classes.

    \b
    output      shape of what the layer returns
    im2col      shape of the matrix that a convolution multiplies its weights by
    mult-adds   multiplications, each with an addition, of a forward pass
    memory      size of the output
    sees        height x width of the image that one output depends on
    """
    if (config_path is None) == (checkpoint_path is None):
        raise click.UsageError("give one of --config FILE and --checkpoint FILE", ctx)
    if config_path is not None:
        network, title = _from_config(config_path, overrides), str(config_path)
    else:
        assert checkpoint_path is not None
        if overrides:
            raise click.UsageError("--set goes with --config; a checkpoint is what it is", ctx)
        file = checkpoint_file(checkpoint_path)
        network, title = load_checkpoint(file).build_network(), str(file)
    facts = inspect_network(network, batch_size)
    if as_json:
        write_json(facts_as_json(facts))
    else:
        stream = results()
        stream.write(stream.bold(title) + stream.dim(f"  {_per(batch_size)}, {network.dtype}"))
        stream.write()
        write_facts(facts, stream)


def write_facts(facts: NetworkFacts, stream: Stream) -> None:
    """Write the table of a network's layers, with the totals below."""
    width = len(str(len(facts.layers) - 1))
    columns = (
        # the index is that of network[2] in a configuration
        Column(f"{'#':>{width}} layer", "<"),
        Column("output", "<"),
        Column("im2col", "<"),
        Column("parameters"),
        Column("mult-adds"),
        Column("memory"),
        Column("sees"),
    )
    rows = [
        [f"{'':{width}} input", str(facts.input_shape), *[""] * 5],
        *([f"{index:{width}} {layer.name}", *_cells(layer)] for index, layer in enumerate(facts.layers)),
        [f"{'':{width}} total", "", "", *_totals(facts), ""],
    ]
    heads, *lines, totals = table(columns, rows)
    stream.write(stream.bold(heads))
    for line in lines:
        stream.write(line)
    stream.write(stream.bold(totals))


def facts_as_json(facts: NetworkFacts) -> dict[str, Any]:
    """Give the facts under their pinned names, ready for JSON."""
    return {
        "input_shape": facts.input_shape,
        "layers": [vars(layer) for layer in facts.layers],
        "total_parameters": facts.total_parameters,
        "total_macs": facts.total_macs,
    }


def _from_config(path: Path, overrides: tuple[str, ...]) -> Network:
    config = load_config(path, overrides)
    data = describe_dataset(config.data.dataset, config.data.directory)
    # the weights are not looked at
    return build_network(config, data.image_shape, data.class_count, np.random.default_rng(0))


def _cells(layer: LayerFacts) -> list[str]:
    return [
        str(layer.output_shape),
        str(layer.im2col_shape or ""),
        formats.count(layer.parameters) if layer.parameters else "",
        formats.count(layer.macs) if layer.macs else "",
        formats.size(layer.activation_bytes),
        "" if layer.receptive_field is None else "{}x{}".format(*layer.receptive_field),
    ]


def _totals(facts: NetworkFacts) -> list[str]:
    return [
        formats.count(facts.total_parameters),
        formats.count(facts.total_macs),
        formats.size(facts.total_activation_bytes),
    ]


def _per(batch_size: int | None) -> str:
    return "one image" if batch_size is None else f"a batch of {formats.count(batch_size)}"
