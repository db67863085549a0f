"""Accuracy on the test set of the same configuration with several seeds."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.children import run
from benchmarks.machine import load_average
from benchmarks.networks import BATCH_SIZES, CONFIGS
from benchmarks.results import present, table

COMMAND = "accuracy"


def trained_accuracy(network: str, seed: int, threads: int) -> float:
    """Train as a user does; return the accuracy of the chosen checkpoint, from 0 to 1."""
    print(f"{network}: seed {seed}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as directory:
        run_directory = str(Path(directory) / "run")
        command = ["-m", "cnncli", "train", "--config", str(CONFIGS / f"{network}.yaml"), "--quiet", "--json"]
        options = ["--set", f"seed={seed}", "--run-dir", run_directory, "--threads", str(threads)]
        return float(run([*command, *options], None).result["test"]["accuracy"])


def accuracy_table(accuracies: Mapping[int, float]) -> str:
    """Lay out the accuracies, then their mean and standard deviation (of the sample)."""
    rows = [[f"seed {seed}", f"{accuracy:.2%}"] for seed, accuracy in accuracies.items()]
    rows.append(["mean", f"{statistics.mean(accuracies.values()):.3%}"])
    if len(accuracies) > 1:
        rows.append(["standard deviation", f"{statistics.stdev(accuracies.values()):.3%}"])
    return table(("", "test accuracy"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{COMMAND}", description=__doc__)
    parser.add_argument("--network", choices=BATCH_SIZES, default="quickstart", help="default: quickstart")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4], help="default: 0 1 2 3 4")
    parser.add_argument("--threads", type=int, default=2, help="they change nothing but the time (default 2)")
    parser.add_argument("--json", dest="as_json", action="store_true", help="print one JSON document")
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/README.md")
    arguments: Any = parser.parse_args()
    load = load_average()
    accuracies = {
        seed: trained_accuracy(arguments.network, seed, arguments.threads) for seed in arguments.seeds
    }
    title = f"Test accuracy after `cnncli train --config configs/{arguments.network}.yaml`:"
    data = {"test_accuracy": accuracies}
    sections = [title, accuracy_table(accuracies)]
    present(COMMAND, load, sections, data, as_json=arguments.as_json, write=arguments.write)


if __name__ == "__main__":
    main()
