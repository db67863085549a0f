"""Write the golden texts anew: ``python tests/cli/remake_golden.py``. Read the difference first."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.cli.golden_cases import CASES, GOLDEN


def main() -> None:
    GOLDEN.mkdir(exist_ok=True)
    for name, make in CASES.items():
        (GOLDEN / f"{name}.txt").write_text(make(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
