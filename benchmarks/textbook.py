"""The implementations that people come from, beside cnncli: each checked against it, then timed."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.children import in_turn, run_module
from benchmarks.command import command_parser
from benchmarks.machine import load_average
from benchmarks.results import duration, present, table

COMMAND = "textbook"

# the first is what the others are compared with
LAYERS: Mapping[str, str] = {
    "cnncli_float32": "cnncli, float32",
    "cnncli_float64": "cnncli, float64",
    "offset_loops": "loops over kernel offsets, as in Deep Learning from Scratch, float64",
    "fancy_indexing": "fancy indexing and np.add.at, as in CS231n, float64",
    "plain_loops": "nested Python loops, float64 (one image, times 100)",
}
STEP: Mapping[str, str] = {
    name: title for name, title in LAYERS.items() if name not in ("cnncli_float64", "plain_loops")
}


def measure(
    measurement: str, names: Mapping[str, str], threads: int, seconds: float, rounds: int
) -> dict[str, list[float]]:
    """Run each implementation in turn. The textbooks' matrix products have all threads in their BLAS."""

    def program(name: str) -> Callable[[], float]:
        ours = name.startswith("cnncli")
        options = ("--threads", threads, "--seconds", seconds)
        return lambda: float(
            run_module(
                "textbook_run", measurement, name, *options, blas_threads=1 if ours else threads
            ).result["seconds"]
        )

    return in_turn(measurement, rounds, {name: program(name) for name in names})


def comparison(titles: Mapping[str, str], times: Mapping[str, Sequence[float]]) -> str:
    """Lay out the times, and how many times longer than the first each takes."""
    median = {name: statistics.median(values) for name, values in times.items()}
    first = next(iter(median.values()))
    rows = [[titles[name], duration(value), f"{value / first:,.1f}"] for name, value in median.items()]
    return table(("implementation", "time", "times cnncli"), rows)


def main() -> None:
    arguments: Any = command_parser(COMMAND, __doc__, rounds=5).parse_args()
    load = load_average()
    options = (arguments.threads, arguments.seconds, arguments.rounds)
    layers, steps = measure("layers", LAYERS, *options), measure("step", STEP, *options)
    conditions = f"batch 100, {arguments.threads} threads, medians of {arguments.rounds} processes in turn"
    sections = [
        "Convolution and max-pool of simple_convnet (30 kernels 5x5, then 2x2), forward and backward, "
        f"{conditions}:",
        comparison(LAYERS, layers),
        f"A training step of simple_convnet, {conditions}:",
        comparison(STEP, steps),
    ]
    data = {"seconds_for_layers": layers, "seconds_per_step": steps}
    present(COMMAND, load, sections, data, as_json=arguments.as_json, write=arguments.write)


if __name__ == "__main__":
    main()
