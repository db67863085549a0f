"""``python -m tests.fuzz``: damaged files by the thousand, and what the program makes of them."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.fuzz.campaign import Fault, feed
from tests.fuzz.checkpoint_target import CheckpointTarget
from tests.fuzz.config_target import ConfigTarget
from tests.fuzz.idx_target import IdxTarget
from tests.fuzz.limits import limit_memory
from tests.fuzz.npz_target import NpzTarget
from tests.fuzz.picture_target import PictureTarget
from tests.fuzz.predict_target import PredictTarget
from tests.fuzz.target import Target
from tests.fuzz.zip_files import bomb

TARGETS: dict[str, Callable[[Path], Target]] = {
    "idx": IdxTarget,
    "checkpoint": CheckpointTarget,
    "config": ConfigTarget,
    "npz": NpzTarget,
    "picture": PictureTarget,
    "predict": PredictTarget,
}
SHOWN_FAULTS = 5


def main() -> int:
    """Fuzz as the command line says; return 1 where a fault was found."""
    arguments = _parser().parse_args()
    names = list(TARGETS) if arguments.target == "all" else [arguments.target]
    numbers = range(arguments.inputs) if arguments.only is None else range(arguments.only, arguments.only + 1)
    shared_memory = Path("/dev/shm")
    if {"npz", "checkpoint"} & {*names}:
        bomb()  # made once, before the memory is limited
    limit_memory()
    n_faults = 0
    with tempfile.TemporaryDirectory(dir=shared_memory if shared_memory.is_dir() else None) as directory:
        for name in names:
            n_faults += _report(name, arguments.seed, numbers, Path(directory), arguments.keep)
    return 1 if n_faults else 0


def _report(name: str, seed: int, numbers: range, directory: Path, keep: Path | None) -> int:
    start = time.perf_counter()
    target = TARGETS[name](directory)
    tally = feed(target, name, seed, numbers)
    seconds = time.perf_counter() - start
    _write(
        f"{name}: {tally.n_inputs:,} inputs of seed {seed}: {tally.n_read:,} read rightly, "
        f"{tally.n_refused:,} refused with a message, {len(tally.faults):,} faults; "
        f"the slowest took {tally.slowest_seconds:.2f} s, all {seconds:.0f} s"
    )
    for fault in tally.faults[:SHOWN_FAULTS]:
        _write(f"  --target {name} --seed {seed} --only {fault.number}: {fault.what}\n")
    for fault in tally.faults:
        _keep(fault, name, keep)
    return len(tally.faults)


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _keep(fault: Fault, name: str, directory: Path | None) -> None:
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"{name}-{fault.number}").write_bytes(fault.case.content)
        (directory / f"{name}-{fault.number}.txt").write_text(
            "\n".join([*map(repr, fault.case.arguments), fault.what]), encoding="utf-8"
        )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--target", choices=[*TARGETS, "all"], default="all")
    parser.add_argument("--inputs", type=int, default=20_000, help="of each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, metavar="NUMBER", help="repeat one input")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="write the inputs that found a fault there")
    return parser


if __name__ == "__main__":
    sys.exit(main())
