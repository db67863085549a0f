"""The whole command: time, memory, growth with the batch, threads, and start-up.

``cnncli train`` from its start to its exit, with data, checkpoints and the test evaluation, beside
PyTorch's bare loop over the same epoch on normalised images that are in memory already.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.children import Child, in_turn, module_arguments, peak_bytes, run, run_module
from benchmarks.command import add_networks, command_parser
from benchmarks.machine import load_average
from benchmarks.networks import BATCH_SIZES, CONFIGS
from benchmarks.results import duration, mebibytes, present, ratio, table

COMMAND = "whole_command"
CONFIG = CONFIGS / "quickstart.yaml"
NETWORK = "quickstart"

SMALL_BATCH, LARGE_BATCH = 256, 4096
IMAGE_BYTES = 28 * 28  # uint8, as they lie in memory
LAYOUTS = ("contiguous", "channels_last")

# threads are compared where an image costs more multiply-adds than this
MANY_MULTIPLY_ADDS = 1_000_000
START_UPS_PER_ROUND = 5

ESTIMATED_THREADS = (8, 32)


def train_arguments(directory: str, threads: int, batch_size: int | None = None) -> list[str]:
    """Give the command that trains quickstart as a user does."""
    settings = [] if batch_size is None else ["--set", f"training.batch_size={batch_size}"]
    run_directory = str(Path(directory) / "run")
    command = ["-m", "cnncli", "train", "--config", str(CONFIG), "--run-dir", run_directory]
    return [*command, "--threads", str(threads), "--quiet", *settings]


def torch_arguments(layout: str, threads: int) -> list[str]:
    return module_arguments("in_torch", "epoch", NETWORK, layout, "--threads", threads)


def epoch_section(rounds: int, threads: int, data: dict[str, Any]) -> str:
    """Compare the time of one epoch."""

    def train() -> Child:
        with tempfile.TemporaryDirectory() as directory:
            return run(train_arguments(directory, threads), None)

    programs: dict[str, Callable[[], Child]] = {"cnncli": train}
    for layout in LAYOUTS:
        programs[layout] = partial(run, torch_arguments(layout, threads), None)
    children = in_turn("one epoch", rounds, programs)
    data["epoch"] = {
        "whole_seconds": {name: [child.seconds for child in runs] for name, runs in children.items()},
        "loop_seconds": {name: [child.result["seconds"] for child in children[name]] for name in LAYOUTS},
    }
    title = f"One epoch of quickstart, {threads} threads, medians of {rounds} processes in turn:"
    return f"{title}\n\n{epoch_table(**data['epoch'])}"


def epoch_table(whole_seconds: Mapping[str, list[float]], loop_seconds: Mapping[str, list[float]]) -> str:
    """Lay out the epoch; a ratio below 1 means that our whole command is faster than PyTorch's loop."""
    ours = statistics.median(whole_seconds["cnncli"])
    rows = [["`cnncli train`", "", duration(ours), ""]]
    for layout in LAYOUTS:
        loop = statistics.median(loop_seconds[layout])
        whole = duration(statistics.median(whole_seconds[layout]))
        rows.append([f"PyTorch {layout.replace('_', '-')}", duration(loop), whole, ratio(ours / loop)])
    return table(("", "training loop alone", "whole process", "`cnncli train` / PyTorch's loop"), rows)


def memory_section(threads: int, data: dict[str, Any]) -> str:
    """Compare peak memory with PyTorch's, and that of a small and a large batch."""

    def train(batch_size: int) -> int:
        with tempfile.TemporaryDirectory() as directory:
            return peak_bytes(train_arguments(directory, threads, batch_size), None)

    programs: dict[str, Callable[[], int]] = {
        f"cnncli_{size}": partial(train, size) for size in (SMALL_BATCH, LARGE_BATCH)
    }
    for layout in LAYOUTS:
        programs[layout] = partial(peak_bytes, torch_arguments(layout, threads), None)
    peaks = {name: runs[0] for name, runs in in_turn("memory", 1, programs).items()}
    data["peak_bytes"] = peaks
    title = (
        f"Peak memory of one epoch of quickstart, {threads} threads, all processes of a program together "
        "(pages that they share count once):"
    )
    beyond = f"What batches of {LARGE_BATCH:,} need more than batches of {SMALL_BATCH}:"
    return f"{title}\n\n{memory_table(peaks)}\n\n{beyond}\n\n{batch_memory_table(peaks)}"


def memory_table(peaks: Mapping[str, int]) -> str:
    """Lay out peak memory; a ratio below 1 means that cnncli takes less."""
    ours = peaks[f"cnncli_{SMALL_BATCH}"]
    rows = [["`cnncli train`", mebibytes(ours), ""]]
    rows += [
        [f"PyTorch {layout.replace('_', '-')}", mebibytes(peaks[layout]), ratio(ours / peaks[layout])]
        for layout in LAYOUTS
    ]
    return table(("", "peak memory", "cnncli / PyTorch"), rows)


def batch_memory_table(peaks: Mapping[str, int]) -> str:
    small, large = peaks[f"cnncli_{SMALL_BATCH}"], peaks[f"cnncli_{LARGE_BATCH}"]
    images = (LARGE_BATCH - SMALL_BATCH) * IMAGE_BYTES
    heads = (f"batch {SMALL_BATCH}", f"batch {LARGE_BATCH:,}", "more", "of it images", "beyond the images")
    return table(heads, [list(map(mebibytes, (small, large, large - small, images, large - small - images)))])


def growth_section(networks: Sequence[str], threads: int, seconds: float, data: dict[str, Any]) -> str:
    """Show the time of an image in batches of several sizes."""

    def growth(network: str) -> dict[str, float]:
        options = ("--threads", threads, "--seconds", seconds)
        result: dict[str, float] = run_module("engine", "growth", network, *options, blas_threads=1).result
        return result

    programs = {network: partial(growth, network) for network in networks}
    times = {network: runs[0] for network, runs in in_turn("growth", 1, programs).items()}
    data["growth_seconds_per_image"] = times
    title = f"Microseconds for an image in batches of several sizes, optimizer apart, {threads} threads:"
    return f"{title}\n\n{growth_table(times)}"


def growth_table(times: Mapping[str, Mapping[str, float]]) -> str:
    """Lay out the time per image; the last column is the slowest size over the fastest."""
    sizes = next(iter(times.values())).keys()
    rows = [
        [
            network,
            *(f"{1e6 * value:.1f}" for value in by_size.values()),
            ratio(max(by_size.values()) / min(by_size.values())),
        ]
        for network, by_size in times.items()
    ]
    return table(("network", *(f"batch {int(size):,}" for size in sizes), "slowest / fastest"), rows)


def threads_section(networks: Sequence[str], rounds: int, seconds: float, data: dict[str, Any]) -> str:
    """Compare a training step on one thread and on two."""

    def step(network: str, threads: int) -> float:
        options = ("--threads", threads, "--seconds", seconds)
        return float(run_module("engine", "step", network, *options, blas_threads=1).result["seconds"])

    times = {
        network: in_turn(
            f"threads, {network}",
            rounds,
            {str(n): partial(step, network, n) for n in (1, 2)},
        )
        for network in networks
    }
    data["seconds_per_step_by_threads"] = times
    title = (
        f"Training step on one thread and on two, networks with more than {MANY_MULTIPLY_ADDS:,} "
        f"multiply-adds for an image, medians of {rounds} processes in turn; for more threads an estimate "
        "on paper:"
    )
    return f"{title}\n\n{threads_table(times)}"


def threads_table(times: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """Lay out the times on one thread and on two, and what more threads should give."""
    rows = []
    for network, by_threads in times.items():
        one, two = (statistics.median(by_threads[n]) for n in ("1", "2"))
        estimates = [f"{estimated_speed_up(one / two, n):.1f}" for n in ESTIMATED_THREADS]
        rows.append(
            [f"{network}, {BATCH_SIZES[network]}", duration(one), duration(two), ratio(one / two), *estimates]
        )
    heads = [f"on {n} (estimate)" for n in ESTIMATED_THREADS]
    return table(("network, batch", "1 thread", "2 threads", "times as fast", *heads), rows)


def estimated_speed_up(on_two: float, n_threads: int) -> float:
    """Estimate how many times as fast as on one thread a step is, from the speed-up on two.

    Amdahl's law: the part that does not get faster is ``2 / on_two - 1`` of the time on one thread. As
    many shards as threads are assumed, and no more than there can be in flight. Cores that share a cache
    or run hot do worse.
    """
    # not at the top: the help needs no NumPy
    from cnncli.training.gradients import SHARDS_IN_FLIGHT

    serial = max(2 / on_two - 1, 0)
    return 1 / (serial + (1 - serial) / min(n_threads, SHARDS_IN_FLIGHT))


def start_section(rounds: int, data: dict[str, Any]) -> str:
    """Compare the start of the program with that of Python and of NumPy."""
    commands = {
        "`python -c pass`": ["-c", "pass"],
        '`python -c "import numpy"`': ["-c", "import numpy"],
        "`cnncli --help`": ["-m", "cnncli", "--help"],
        "`cnncli inspect-shapes --config configs/lenet.yaml`": [
            *("-m", "cnncli", "inspect-shapes", "--config"),
            str(CONFIGS / "lenet.yaml"),
        ],
    }
    programs = {name: partial(run, arguments, None) for name, arguments in commands.items()}
    children = in_turn("start-up", rounds * START_UPS_PER_ROUND, programs)
    times = {name: [child.seconds for child in runs] for name, runs in children.items()}
    data["start_up_seconds"] = times
    title = f"Start-up, medians of {rounds * START_UPS_PER_ROUND} processes in turn:"
    return f"{title}\n\n{start_table(times)}"


def start_table(times: Mapping[str, Sequence[float]]) -> str:
    """Lay out start-up times; the first two programs are what the others are compared with."""
    median = {name: statistics.median(values) for name, values in times.items()}
    bare, with_numpy = list(median.values())[:2]
    rows = [
        [name, duration(value), ratio(value / bare), ratio(value / with_numpy)]
        for name, value in median.items()
    ]
    return table(("", "time", "times `python -c pass`", "times `import numpy`"), rows)


def demanding(networks: Sequence[str]) -> list[str]:
    """Choose the networks with many multiply-adds for an image."""
    # not at the top: the help needs no NumPy
    from benchmarks.engine import built
    from benchmarks.training_data import benchmark_config
    from cnncli.nn.inspection import inspect_network

    return [
        network
        for network in networks
        if inspect_network(built(benchmark_config(network))).total_macs > MANY_MULTIPLY_ADDS
    ]


def main() -> None:
    parser = command_parser(COMMAND, __doc__, rounds=3)
    add_networks(parser)
    arguments: Any = parser.parse_args()
    load = load_average()
    rounds, threads, seconds = arguments.rounds, arguments.threads, arguments.seconds
    data: dict[str, Any] = {}
    sections = [
        epoch_section(rounds, threads, data),
        memory_section(threads, data),
        growth_section(arguments.networks, threads, seconds, data),
        start_section(rounds, data),
        threads_section(demanding(arguments.networks), rounds, seconds, data),
    ]
    present(COMMAND, load, sections, data, as_json=arguments.as_json, write=arguments.write)


if __name__ == "__main__":
    main()
