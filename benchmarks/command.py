"""Options that the three commands take."""

from __future__ import annotations

import argparse

from benchmarks.networks import BATCH_SIZES


def command_parser(name: str, description: str | None, *, rounds: int) -> argparse.ArgumentParser:
    """Declare the options of every command."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=description)
    parser.add_argument("--threads", type=int, default=2, help="threads of every program (default 2)")
    parser.add_argument(
        "--rounds", type=int, default=rounds, help=f"processes for each figure (default {rounds})"
    )
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="time to measure for in each process (default 1)"
    )
    parser.add_argument("--json", dest="as_json", action="store_true", help="print one JSON document")
    parser.add_argument("--write", action="store_true", help="put the tables into benchmarks/README.md")
    return parser


def add_networks(parser: argparse.ArgumentParser) -> None:
    """Declare ``--networks``."""
    parser.add_argument(
        "--networks",
        nargs="+",
        choices=BATCH_SIZES,
        default=list(BATCH_SIZES),
        metavar="NAME",
        help=f"some of {', '.join(BATCH_SIZES)} (default: all)",
    )
