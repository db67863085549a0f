"""Fill the transcripts of README.md with what the commands print: python docs/remake_readme.py

Each transcript stands between ``<!-- transcript: NAME -->`` and ``<!-- end -->``. The commands run one
after the other in a scratch directory with the repository's configurations in it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

BROKEN = """\
trainning: {epochs: 3}
network:
  - conv2d: {out_channels: 8, kernal_size: 3}
  - max_pool2d: {kernel_size: 0}
  - flatten
  - dense: {out_features: 10}
optimizer:
  adam: {learning_rate: yes}
"""

COMMANDS = {
    "train": "train --config configs/quickstart.yaml",
    "eval": "eval runs/quickstart",
    "inspect-shapes": "inspect-shapes --config configs/lenet.yaml",
    "errors": "train --config broken.yaml",
}


def transcript(arguments: str, directory: Path) -> str:
    """Run a command and return it with all it prints, as on a screen of 100 columns."""
    finished = subprocess.run(
        [sys.executable, "-m", "cnncli", *arguments.split()],
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={"PATH": "", "PYTHONPATH": str(ROOT), "COLUMNS": "100", "PYTHONUTF8": "1"},
        check=False,
    )
    return f"```console\n$ cnncli {arguments}\n{finished.stdout.rstrip()}\n```\n"


def main() -> None:
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "configs").symlink_to(ROOT / "configs")
        (directory / "broken.yaml").write_text(BROKEN, encoding="utf-8")
        for key, arguments in COMMANDS.items():
            start, end = f"<!-- transcript: {key} -->\n", "<!-- end -->"
            body = transcript(arguments, directory).replace(str(directory) + "/", "")
            pattern = re.escape(start) + ".*?" + re.escape(end)
            text = re.sub(pattern, lambda _, s=start, b=body, e=end: s + b + e, text, flags=re.DOTALL)
    readme.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
