"""One training step and one evaluation, beside PyTorch's on the same CPU.

Each figure is the median over processes that ran in turn: ours, PyTorch contiguous, PyTorch
channels-last, our matrix products alone; and again.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from benchmarks.children import in_turn, run_module
from benchmarks.command import add_networks, command_parser
from benchmarks.machine import load_average, machine_line
from benchmarks.networks import BATCH_SIZES, ROOT
from benchmarks.results import duration, present, ratio, table, write_into

COMMAND = "training_step"

# seconds of every round, by program
Times: TypeAlias = "dict[str, list[float]]"

STEP_HEADS = (
    "network, batch",
    "cnncli",
    "PyTorch contiguous",
    "PyTorch channels-last",
    "cnncli / faster PyTorch",
    "its products alone",
    "their share of cnncli",
)
TEST_IMAGES = 10_000

EVALUATION_HEADS = (
    "network",
    "cnncli, images/s",
    "PyTorch contiguous",
    "PyTorch channels-last",
    "cnncli / faster PyTorch",
)


def programs(
    measurement: str, network: str, threads: int, seconds: float, *, with_products: bool
) -> dict[str, Callable[[], float]]:
    """Prepare one process for each column; each returns its median in seconds."""
    options = ("--threads", threads, "--seconds", seconds)

    def engine(what: str) -> float:
        return float(run_module("engine", what, network, *options, blas_threads=1).result["seconds"])

    def in_torch(layout: str) -> float:
        return float(run_module("in_torch", measurement, network, layout, *options).result["seconds"])

    columns: dict[str, Callable[[], float]] = {
        "cnncli": lambda: engine(measurement),
        "contiguous": lambda: in_torch("contiguous"),
        "channels_last": lambda: in_torch("channels_last"),
    }
    return columns | ({"products": lambda: engine("products")} if with_products else {})


def medians(times: Times) -> dict[str, float]:
    return {name: statistics.median(values) for name, values in times.items()}


def time_ratio(times: Times) -> float:
    """Divide our time by PyTorch's in the faster of its layouts."""
    median = medians(times)
    return median["cnncli"] / min(median["contiguous"], median["channels_last"])


def step_table(results: dict[str, Times]) -> str:
    """Lay out the training steps; a ratio below 1 means that cnncli is faster."""
    rows = [_step_row(network, times) for network, times in results.items()]
    mean = statistics.geometric_mean(time_ratio(times) for times in results.values())
    return table(STEP_HEADS, [*rows, ["geometric mean", "", "", "", ratio(mean), "", ""]])


def evaluation_table(results: dict[str, Times]) -> str:
    """Lay out the evaluations; a ratio above 1 means that cnncli is faster."""
    rows = []
    for network, times in results.items():
        rates = [TEST_IMAGES / seconds for seconds in medians(times).values()]
        rows.append([network, *(f"{rate:,.0f}" for rate in rates), ratio(1 / time_ratio(times))])
    return table(EVALUATION_HEADS, rows)


def short_table(steps: dict[str, Times], evaluations: dict[str, Times]) -> str:
    """Lay out what the README shows: the training steps, and how evaluation compares."""
    heads = (
        "network, batch",
        "cnncli",
        "PyTorch, its faster layout",
        "times PyTorch's speed: training",
        "evaluation",
    )
    rows = []
    for network, times in steps.items():
        median = medians(times)
        rows.append(
            [
                f"{network}, {BATCH_SIZES[network]}",
                duration(median["cnncli"]),
                duration(min(median["contiguous"], median["channels_last"])),
                ratio(1 / time_ratio(times)),
                ratio(1 / time_ratio(evaluations[network])),
            ]
        )
    return table(heads, rows)


def _step_row(network: str, times: Times) -> list[str]:
    median = medians(times)
    share = median["products"] / median["cnncli"]
    return [
        f"{network}, {BATCH_SIZES[network]}",
        duration(median["cnncli"]),
        duration(median["contiguous"]),
        duration(median["channels_last"]),
        ratio(time_ratio(times)),
        duration(median["products"]),
        f"{100 * share:.0f} %",
    ]


def measure(
    measurement: str, networks: Sequence[str], threads: int, seconds: float, rounds: int
) -> dict[str, Times]:
    """Run every program of every network in turn."""
    is_step = measurement == "step"
    return {
        network: in_turn(
            f"{measurement} of {network}",
            rounds,
            programs(measurement, network, threads, seconds, with_products=is_step),
        )
        for network in networks
    }


def main() -> None:
    parser = command_parser(COMMAND, __doc__, rounds=5)
    add_networks(parser)
    arguments: Any = parser.parse_args()
    load = load_average()
    options = (arguments.networks, arguments.threads, arguments.seconds, arguments.rounds)
    steps = measure("step", *options)
    evaluations = measure("evaluation", *options)
    conditions = f"float32, {arguments.threads} threads, medians of {arguments.rounds} processes in turn"
    sections = [
        f"Training step, optimizer included, {conditions}:",
        step_table(steps),
        f"Evaluation of the {TEST_IMAGES:,} test images with loss and accuracy, PyTorch under `no_grad`, "
        f"{conditions}:",
        evaluation_table(evaluations),
    ]
    data = {"seconds_per_step": steps, "seconds_per_evaluation": evaluations, "evaluated_images": TEST_IMAGES}
    present(COMMAND, load, sections, data, as_json=arguments.as_json, write=arguments.write)
    if arguments.write:
        write_into(ROOT / "README.md", COMMAND, f"{short_table(steps, evaluations)}\n\n{machine_line(load)}.")


if __name__ == "__main__":
    main()
