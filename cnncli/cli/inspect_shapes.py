"""``cnncli inspect-shapes``: what every layer makes of the array before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from cnncli.cli import formats
from cnncli.cli.arguments import (
    count_option,
    json_option,
    path_option,
    set_option,
    threads_option,
)
from cnncli.cli.terminal import Column, Stream, results, table, write_json
from cnncli.config import Config, build_network, load_config
from cnncli.data import describe_dataset
from cnncli.nn import Network
from cnncli.nn.inspection import LayerFacts, NetworkFacts, inspect_network

if TYPE_CHECKING:
    from cnncli.training.step_arrays import StepArray, StepRecord


STEP_COLUMNS = (Column("array", "<"), Column("shape", "<"), Column("dtype", "<"), Column("size"))


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
    summary="Show a batch of N images, the batch axis last. By default: one image, without that axis; "
    "with --backward the configuration's training.batch_size.",
)
@click.option(
    "--backward",
    is_flag=True,
    help="Show every array of one training step instead, forward and backward, with its size.",
)
@threads_option()
@json_option()
@click.pass_context
def inspect_shapes(
    ctx: click.Context,
    config_path: Path | None,
    overrides: tuple[str, ...],
    checkpoint_path: Path | None,
    batch_size: int | None,
    backward: bool,
    threads: int | None,
    as_json: bool,
) -> None:
    """Show shapes, parameters and cost of every layer.

    A data set known by name need not be there; one of your own is looked at for the size of its
    images and the number of its classes.

    \b
    output      shape of what the layer returns
    im2col      shape of the matrix that a convolution multiplies its weights by
    MACs        multiply-adds of a forward pass
    memory      size of the output
    receptive field: height x width of the image that one output depends on

    With --backward one shard of the batch, of zeros, is sent through the network, and the arrays that
    it really needs are listed in the order in which they are written. Layers bear their places in the
    configuration. --threads says how many shards are in memory at once. With --json this is the key
    "step".
    """
    if (config_path is None) == (checkpoint_path is None):
        raise click.UsageError("give one of --config FILE and --checkpoint FILE", ctx)
    if threads is not None and not backward:
        raise click.UsageError("--threads goes with --backward", ctx)
    if config_path is not None:
        config, network, n_images = _from_config(config_path, overrides)
        default_batch_size = min(config.training.batch_size, n_images)
        title = str(config_path)
    else:
        assert checkpoint_path is not None
        if overrides:
            raise click.UsageError("--set goes with --config; a checkpoint is what it is", ctx)
        config, network, title = _from_checkpoint(checkpoint_path)
        default_batch_size = config.training.batch_size
    facts = inspect_network(network, batch_size)
    step = _step(config, network, batch_size or default_batch_size, threads) if backward else None
    if as_json:
        write_json(facts_as_json(facts) | ({} if step is None else {"step": step.to_dict()}))
    elif step is not None:
        _write_step(title, step, results())
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
        Column("MACs"),
        Column("memory"),
        Column("field", above="receptive"),
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


def _from_config(path: Path, overrides: tuple[str, ...]) -> tuple[Config, Network, int]:
    """Build the network of a configuration; tell also how many images an epoch has."""
    config = load_config(path, overrides)
    data = describe_dataset(config.data.dataset, config.data.directory)
    # the weights are not looked at
    network = build_network(config, data.image_shape, data.class_count, np.random.default_rng(0))
    return config, network, max(data.train_size - config.data.validation_size, 1)


# The engine is imported where it is needed: the table of shapes, asked for most, takes half the time without.


def _from_checkpoint(path: Path) -> tuple[Config, Network, str]:
    """Build the network of a checkpoint; return also its file."""
    from cnncli.cli.run_plan import checkpoint_file
    from cnncli.training import load_checkpoint

    file = checkpoint_file(path)
    checkpoint = load_checkpoint(file)
    return checkpoint.config, checkpoint.build_network(), str(file)


def _step(config: Config, network: Network, batch_size: int, threads: int | None) -> StepRecord:
    from cnncli.cli.run_plan import thread_count
    from cnncli.training.step_arrays import record_step

    return record_step(config, network, batch_size=batch_size, n_threads=thread_count(threads, config))


def _write_step(title: str, step: StepRecord, stream: Stream) -> None:
    """Write the arrays of the batch, then those of a shard forward and backward, then the sums."""
    images = formats.counted(step.batch_size, "image")
    stream.write(stream.bold(title) + stream.dim(f"  one step on {images}, {step.dtype}"))
    stream.write()
    shards, size = formats.counted(step.n_shards, "shard"), formats.counted(step.shard_size, "image")
    threads = formats.counted(step.n_threads, "thread")
    stream.write(f"{shards} of at most {size}, {step.n_in_flight} at a time on {threads}")
    rows: list[list[str] | str] = ["once, for all shards", *map(_array_cells, step.once)]
    for head, is_forward in ((f"forward, N = {step.shard_size}", True), ("backward", False)):
        rows.append(head)
        for one in step.passes:
            if (one.kind == "forward") == is_forward:
                label = f"{one.index} {one.name}" if one.kind != "input" else ""
                note = f": {one.note}" if one.note else ""
                rows += [label + note] if label else []
                rows += map(_array_cells, one.arrays)
    for line in _step_lines(rows):
        stream.write(line)
    stream.write()
    for n_bytes, text in (
        (step.once_bytes, "once, for all shards"),
        (step.worker_bytes, "kept by each worker, from shard to shard"),
        (step.total_bytes, f"in all: once and {formats.counted(step.n_in_flight, 'worker')}"),
    ):
        stream.write(f"{formats.size(n_bytes):>10}  {text}")
    stream.write("            without the data set, and what NumPy makes and frees within a pass")


def _step_lines(rows: Sequence[list[str] | str]) -> Iterator[str]:
    """Lay out the rows of arrays as one table, and the lines between them as they are."""
    arrays = iter(table(STEP_COLUMNS, [row for row in rows if isinstance(row, list)])[1:])
    for row in rows:
        if isinstance(row, list):
            yield f"  {next(arrays)}"
        elif row[:1].isdigit():
            yield row
        else:
            yield ""
            yield row


def _array_cells(array: StepArray) -> list[str]:
    count = "" if array.count == 1 else f" x {array.count}"
    return [array.name, f"{array.shape}{count}", array.dtype, formats.size(array.nbytes)]


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
