"""``cnncli profile``: where the time of a training step goes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from cnncli.cli import formats
from cnncli.cli.arguments import (
    count_option,
    json_option,
    path_option,
    set_option,
    threads_option,
)
from cnncli.cli.run_plan import make_workers
from cnncli.cli.terminal import Column, Stream, labelled, results, table, write_json
from cnncli.config import load_config
from cnncli.data import describe_dataset
from cnncli.training.step_profile import Bound, LayerProfile, PassProfile, Profile, profile_step

LABEL_WIDTH = 9
MAX_REPEAT = 10_000

COLUMNS = (
    Column("pass", "<"),
    Column("ms"),
    Column("share"),
    Column("GFLOP/s"),
    Column("moved"),
    Column("bound by", "<"),
)


@click.command("profile")
@path_option("--config", "config_path", metavar="FILE", summary="Configuration of the network.")
@set_option()
@threads_option()
@count_option("--batch-size", summary="Images of a step, instead of the configuration's training.batch_size.")
@count_option("--repeat", summary="Runs that each time is the median of; 20 by default.", at_most=MAX_REPEAT)
@json_option()
@click.pass_context
def profile_network(
    ctx: click.Context,
    config_path: Path | None,
    overrides: tuple[str, ...],
    threads: int | None,
    batch_size: int | None,
    repeat: int | None,
    as_json: bool,
) -> None:
    """Show where the time of a training step goes.

    Layers are timed one by one, for one shard of the batch on one thread; then the whole step on
    all threads. The images are random, so no data is needed. Layers stand in the order in which they
    are computed, with their places in the configuration: a relu before a max_pool2d comes behind it.

    \b
    ms          milliseconds, the median of many runs
    share       of the time of the shard
    GFLOP/s     billions of multiplications and additions per second
    moved       bytes read and written: an estimate, from the sizes of the arrays
    bound by    what takes most of the time, compared with a large matrix product,
                a copy and a small call on this machine:
                compute  its multiply-adds
                memory   reading and writing its arrays
                calls    NumPy itself; the arrays are too small to matter
    """
    if config_path is None:
        raise click.UsageError("give --config FILE", ctx)
    config = load_config(config_path, overrides)
    data = describe_dataset(config.data.dataset, config.data.directory)
    with make_workers(threads, config) as workers:
        profile = profile_step(
            config,
            data.image_shape,
            data.class_count,
            workers,
            batch_size=min(batch_size or config.training.batch_size, data.train_size),
            repeat=repeat or 20,
        )
    if as_json:
        write_json({**profile.to_dict(), "advice": advice(profile)})
    else:
        write_profile(str(config_path), config.optimizer.name, profile, results())


def write_profile(title: str, optimizer: str, profile: Profile, stream: Stream) -> None:
    """Write the table of the layers, the step below it, and a sentence on what to try."""
    shard = formats.counted(profile.shard_size, "image")
    stream.write(stream.bold(title) + stream.dim(f"  a shard of {shard} on one thread, {profile.dtype}"))
    stream.write()
    heads, *rows, total = table((_layer_column(profile), *COLUMNS), list(_rows(profile)))
    stream.write(stream.bold(heads))
    for row in rows:
        stream.write(row)
    stream.write(stream.bold(total))
    stream.write()
    for label, text in _summary(optimizer, profile):
        first, *rest = labelled(label, text, label_width=LABEL_WIDTH, width=stream.width)
        stream.write(stream.dim(first[:LABEL_WIDTH]) + first[LABEL_WIDTH:])
        for line in rest:
            stream.write(line)


def _layer_column(profile: Profile) -> Column:
    return Column(f"{'#':>{_index_width(profile)}} layer", "<")


def _rows(profile: Profile) -> Iterator[list[str]]:
    indent = " " * _index_width(profile)
    yield [f"{indent} input", *_timed(profile.input_seconds, profile)]
    for layer in profile.layers:
        label = f"{layer.index:>{len(indent)}} {layer.name}"
        for name, one in layer.passes.items():
            yield [label, *_pass_cells(name, one, profile)]
            label = ""
    yield [f"{indent} loss", *_timed(profile.loss_seconds, profile)]
    yield [f"{indent} shard", *_timed(profile.shard_seconds, profile)]


def _timed(seconds: float, profile: Profile) -> list[str]:
    return ["", f"{1e3 * seconds:.3f}", _share(seconds, profile), "", "", ""]


def _pass_cells(name: str, one: PassProfile, profile: Profile) -> list[str]:
    return [
        name,
        f"{1e3 * one.seconds:.3f}",
        _share(one.seconds, profile),
        f"{one.flops_per_second / 1e9:.1f}" if one.multiply_adds else "",
        f"~{formats.size(one.bytes_moved)}" if one.bytes_moved else "",
        profile.rates.bound_of(one),
    ]


def _share(seconds: float, profile: Profile) -> str:
    return f"{100 * seconds / profile.shard_seconds:.1f} %"


def _index_width(profile: Profile) -> int:
    return len(str(len(profile.layers) - 1))


def _summary(optimizer: str, profile: Profile) -> list[tuple[str, str]]:
    rates, batch = profile.rates, formats.counted(profile.batch_size, "image")
    shards = formats.counted(profile.n_shards, "shard")
    threads = formats.counted(profile.n_threads, "thread")
    return [
        (
            "optimizer",
            f"{optimizer} over {formats.counted(profile.n_parameters, 'parameter')}: "
            f"{1e3 * profile.optimizer_seconds:.2f} ms for each step, on one thread",
        ),
        (
            "step",
            f"{1e3 * profile.step_seconds:.2f} ms for {batch} in {shards} on {threads}: "
            f"{profile.images_per_second:,.0f} images per second, "
            f"{profile.speed_up:.2f} times as fast as all of the above on one thread",
        ),
        (
            "machine",
            f"one thread: matrix product {rates.flops_per_second / 1e9:.1f} GFLOP/s, "
            f"copy {rates.bytes_per_second / 1e9:.1f} GB/s, "
            f"smallest call {1e6 * rates.seconds_per_call:.2f} microseconds",
        ),
        ("advice", advice(profile)),
    ]


# where the optimizer takes more of a step than this, it is the first thing to change
OPTIMIZER_SHARE = 0.3
# of what the threads could give: below, they mostly wait for one another
LOW_EFFICIENCY = 0.5


def advice(profile: Profile) -> str:
    """Say where the time goes and what to try first."""
    layer, name, one = _longest_pass(profile)
    share, bound = round(100 * one.seconds / profile.shard_seconds), profile.rates.bound_of(one)
    place = f"{layer.name} (network[{layer.index}])"
    where = f"{share} % of a shard is spent in {place}, {name}, bound by {bound}."
    return f"{where} {_remedy(profile, layer, one)}"


def _longest_pass(profile: Profile) -> tuple[LayerProfile, str, PassProfile]:
    passes = [(layer, name, one) for layer in profile.layers for name, one in layer.passes.items()]
    return max(passes, key=lambda entry: entry[2].seconds)


def _remedy(profile: Profile, layer: LayerProfile, one: PassProfile) -> str:
    """Choose one thing to try: what holds back the whole step comes before what holds back a layer."""
    if profile.n_shards < profile.n_threads:
        return (
            f"The batch makes {formats.counted(profile.n_shards, 'shard')} for {profile.n_threads} threads: "
            "a lower training.shard_size or a larger training.batch_size gives work to all."
        )
    optimizer_share = profile.optimizer_seconds / profile.one_thread_seconds
    if optimizer_share > OPTIMIZER_SHARE:
        return (
            f"The optimizer takes {round(100 * optimizer_share)} % of a step: with a larger "
            "training.batch_size it is called less often in an epoch."
        )
    if profile.speed_up < LOW_EFFICIENCY * profile.n_threads:
        return (
            f"{profile.n_threads} threads do the work of {profile.speed_up:.1f}: try a larger "
            "training.shard_size, or fewer --threads if other programs need the processor."
        )
    return _remedy_of_layer(layer, profile.rates.bound_of(one))


def _remedy_of_layer(layer: LayerProfile, bound: Bound) -> str:
    if bound == "calls":
        return "A larger training.shard_size does more in each call."
    if layer.name.startswith("dense"):
        lighter = "mean fewer multiply-adds" if bound == "compute" else "make its weight smaller"
        return f"A pool or stride before it, or fewer out_features, {lighter}."
    if bound == "compute":
        return "Fewer channels, a smaller kernel or a larger stride mean fewer multiply-adds."
    if layer.name.startswith("batch_norm"):
        return "A pool before it instead of behind it makes its arrays smaller."
    return "Fewer channels, a larger stride or a lower training.shard_size make its arrays smaller."
