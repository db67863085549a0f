"""Fill the transcripts of README.md with what the commands print: python docs/remake_readme.py

Each transcript stands between ``<!-- transcript: NAME -->`` and ``<!-- end -->``. The commands run one
after the other in a scratch directory with the repository's configurations in it. Names given on the
command line remake those transcripts alone: ``eval`` needs what ``train`` leaves behind.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 80

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
# files that a reader must see to follow a transcript
SHOWN = {"errors": ("broken.yaml", BROKEN)}


def transcript(key: str, directory: Path) -> str:
    """Run a command and return it with all it prints, as on a screen of 80 columns."""
    shown = ""
    if key in SHOWN:
        name, text = SHOWN[key]
        (directory / name).write_text(text, encoding="utf-8")
        shown = f"$ cat {name}\n{text}\n"
    arguments = COMMANDS[key]
    finished = subprocess.run(
        [sys.executable, "-m", "cnncli", *arguments.split()],
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={"PATH": "", "PYTHONPATH": str(ROOT), "COLUMNS": str(WIDTH), "PYTHONUTF8": "1"},
        check=False,
    )
    printed = finished.stdout.rstrip().replace(str(directory) + "/", "")
    return f"```console\n{shown}$ cnncli {arguments}\n{printed}\n```\n"


def with_transcript(text: str, key: str, body: str) -> str:
    """Put a transcript in its place."""
    head, start, rest = text.partition(f"<!-- transcript: {key} -->\n")
    _, end, tail = rest.partition("<!-- end -->")
    return head + start + body + end + tail


def main(keys: Sequence[str]) -> None:
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "configs").symlink_to(ROOT / "configs")
        for key in keys:
            text = with_transcript(text, key, transcript(key, directory))
    readme.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:] or list(COMMANDS))
