"""Files that were made to exhaust a machine: the command refuses them with little time and memory.

The commands run in a process whose processor time and address space the operating system limits.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.data.made_files import npy_bytes, small_arrays
from tests.fuzz.checkpoint_target import make_checkpoint
from tests.fuzz.config_target import bomb as alias_bomb
from tests.fuzz.limited_commands import run_limited
from tests.fuzz.npy_files import header_bytes
from tests.fuzz.zip_files import Entry, bomb, deflated, stored, zip_bytes

pytestmark = [
    pytest.mark.fuzz,
    pytest.mark.skipif(sys.platform != "linux", reason="needs limits on a process's memory"),
]

CONFIG = """\
data: {{dataset: {dataset}, validation_size: 0}}
network: [flatten, dense: {{out_features: 3}}]
"""


def refusals(directory: Path, *command_lines: list[str]) -> list[tuple[int, str]]:
    """Run commands that must fail, each with a message; return the exit codes and the messages."""
    found = []
    for code, out, err in run_limited(directory, command_lines):
        lines = err.splitlines()
        assert out == "" and lines and all(line.startswith(("error: ", "  ")) for line in lines), err
        assert "does not fit into memory" not in err and "out of memory" not in err
        found.append((code, err))
    assert not (directory / "sprung").exists()
    return found


def promise(shape: tuple[int, ...], descr: str = "|u1") -> bytes:
    return header_bytes(f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}")


def changed(make: Callable[[bytes, bytes], Entry], **contents: bytes) -> list[Entry]:
    """Make the entries of a small data set, some with another content."""
    arrays = {name: npy_bytes(array) for name, array in small_arrays().items()} | contents
    return [make(f"{name}.npy".encode(), content) for name, content in arrays.items()]


def with_true_bomb() -> list[Entry]:
    """Make a data set all of which is true: 100,000 black images."""
    n, side = 100_000, 56
    header = promise((n, side, side))
    images = header + bytes(n * side * side)
    return changed(deflated, x_train=images, y_train=npy_bytes(np.zeros(n, np.uint8)))


def with_pickle() -> list[Entry]:
    return changed(stored, y_train=promise((12,), "|O") + b"cos\nsystem\n(S'touch sprung'\ntR.")


def with_entry(entry: Entry) -> list[Entry]:
    return [*changed(stored), entry]


def sized(entry: Entry, size: int) -> Entry:
    return replace(entry, size=size, compressed_size=size)


TERABYTES = (10**6, 1000, 1000)
DATASETS: dict[str, tuple[Callable[[], list[Entry]], str]] = {
    "terabytes in a header": (
        lambda: changed(stored, x_train=promise(TERABYTES)),
        "declares 1000000000000 bytes of data",
    ),
    "terabytes in a packed header": (
        lambda: changed(deflated, x_train=promise(TERABYTES)),
        "declares 1000000000000 bytes of data",
    ),
    "more than can be counted": (
        lambda: changed(stored, x_train=promise((2**62, 2**62, 2**62))),
        "its header declares",
    ),
    "terabytes in the directory": (
        lambda: [sized(entry, 2**32 - 2) for entry in changed(stored)],
        "longer than the file",
    ),
    "a bomb for the labels": (
        lambda: [replace(bomb(), name=b"y_train.npy"), *changed(stored)[:1], *changed(stored)[2:]],
        "would unpack",
    ),
    "a true bomb": (with_true_bomb, "would unpack"),
    "objects": (with_pickle, "holds Python objects"),
    "two of a name": (lambda: [*changed(stored), changed(stored)[0]], "two entries have the same name"),
    "absolute": (lambda: with_entry(stored(b"/etc/passwd", b"")), "an entry has the name"),
    "dots": (lambda: with_entry(stored(b"../../x_train.npy", b"")), "an entry has the name"),
    "backslashes": (lambda: with_entry(stored(b"..\\x.npy", b"")), "an entry has the name"),
    "a drive": (lambda: with_entry(stored(b"C:/x.npy", b"")), "an entry has the name"),
    "an escape": (lambda: with_entry(stored(b"\x1b[2J.npy", b"")), "an entry has the name"),
    "encrypted": (lambda: [replace(entry, flags=1) for entry in changed(stored)], "is encrypted"),
}


def test_data_sets(tmp_path: Path) -> None:
    command_lines = []
    for number, (make, _) in enumerate(DATASETS.values()):
        (tmp_path / f"{number}.npz").write_bytes(zip_bytes(make()))
        (tmp_path / f"{number}.yaml").write_text(CONFIG.format(dataset=f"{number}.npz"))
        command_lines.append(["train", "--config", f"{number}.yaml"])
    for number, (code, message) in enumerate(refusals(tmp_path, *command_lines)):
        name, (_, words) = list(DATASETS.items())[number]
        assert code == 1 and f"{number}.npz: " in message and words in message, (name, message)
    assert not (tmp_path / "runs").exists()


def checkpoint_entries(directory: Path) -> dict[str, bytes]:
    path = directory / "whole.npz"
    make_checkpoint().save(path)
    with np.load(path) as file:
        return {name: npy_bytes(file[name]) for name in file.files}


def entries_of(arrays: dict[str, bytes], make: Callable[[bytes, bytes], Entry] = stored) -> list[Entry]:
    return [make(f"{name}.npy".encode(), content) for name, content in arrays.items()]


CHECKPOINTS: dict[str, tuple[Callable[[dict[str, bytes]], list[Entry]], str]] = {
    "terabytes": (
        lambda arrays: entries_of(arrays | {"parameters/5/weight": promise((10**6, 10**6), "<f4")}),
        "is damaged: its header declares",
    ),
    "packed": (lambda arrays: entries_of(arrays, deflated), "compressed"),
    "bomb": (lambda arrays: [*entries_of(arrays), bomb()], "compressed"),
    "objects": (
        lambda arrays: entries_of(arrays | {"parameters/5/bias": promise((3,), "|O") + b"cos\nsystem\n."}),
        "holds Python objects",
    ),
    "two of a name": (lambda arrays: entries_of(arrays) * 2, "two entries have the same name"),
    "absolute": (lambda arrays: [*entries_of(arrays), stored(b"/a.npy", b"")], "an entry has the name"),
    "dots": (lambda arrays: [*entries_of(arrays), stored(b"a/../b.npy", b"")], "an entry has the name"),
    "deep nesting": (
        lambda arrays: entries_of(arrays | {"metadata": npy_bytes(np.array("[" * 100_000))}),
        "is not JSON",
    ),
    "an open bracket": (
        lambda arrays: entries_of(arrays | {"metadata": header_bytes("{'descr': '<U1', 'shape': (")}),
        "its header cannot be read",
    ),
    "a hundred million weights": (
        lambda arrays: entries_of(arrays | {"metadata": _asking(arrays, '"out_features": 3', 2 * 10**7)}),
        "asks for many more weights than it holds",
    ),
    "trillions of weights": (
        lambda arrays: entries_of(arrays | {"metadata": _asking(arrays, '"out_features": 3', 10**12)}),
        "too large to fit in memory",
    ),
    "weights by the window": (
        lambda arrays: entries_of(arrays | {"metadata": _asking(arrays, '"out_channels": 2', 10**7)}),
        "asks for many more weights than it holds",
    ),
}


def _asking(arrays: dict[str, bytes], entry: str, number: int) -> bytes:
    """Change one number in the metadata."""
    text = str(np.load(io.BytesIO(arrays["metadata"])))
    assert text.count(entry) == 1
    return npy_bytes(np.array(text.replace(entry, f"{entry.split(':')[0]}: {number}")))


def test_checkpoints(tmp_path: Path) -> None:
    arrays = checkpoint_entries(tmp_path)
    command_lines = []
    for number, (make, _) in enumerate(CHECKPOINTS.values()):
        (tmp_path / f"{number}.npz").write_bytes(zip_bytes(make(arrays)))
        command_lines.append(["eval", f"{number}.npz"])
    for number, (code, message) in enumerate(refusals(tmp_path, *command_lines)):
        name, (_, words) = list(CHECKPOINTS.items())[number]
        assert code == 1 and f"{number}.npz" in message and words in message, (name, message)


CONFIGS = {
    "aliases": (alias_bomb(30, 10), "more than 10,000 values, aliases counted in full"),
    "an alias of itself": ("a: &a [*a]", "contains itself"),
    "deep nesting": ("network: " + "[" * 500_000, "nested more than 20 deep"),
    "deep mappings": ("{a: " * 100_000, "nested more than 20 deep"),
    "a tag": ("!!python/object/apply:os.system ['touch sprung']", "the tag !!python/object/apply:os.system"),
    "a long number": (f"seed: {'9' * 1_000_000}", "the number is too large"),
    "many keys": ("".join(f"key{number}: 1\n" for number in range(9000)), "unknown key key0"),
    "many layers": ("network:\n" + "".join(f"- relo{n}\n" for n in range(9000)), "unknown layer relo0"),
    "a large file": ("# comment\n" * 200_000, "at most 1 MiB"),
}


def test_configurations(tmp_path: Path) -> None:
    command_lines = []
    for number, (text, _) in enumerate(CONFIGS.values()):
        (tmp_path / f"{number}.yaml").write_text(text)
        command_lines.append(["train", "--config", f"{number}.yaml", "--dry-run"])
    for number, (code, message) in enumerate(refusals(tmp_path, *command_lines)):
        name, (_, words) = list(CONFIGS.items())[number]
        assert code == 2 and f"{number}.yaml" in message and words in message, (name, message)


def test_settings(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("network: [flatten, dense: {out_features: 10}]")
    arguments = [
        "a." * 50_000 + "b=1",
        "network" + "[0]" * 40_000 + "=1",
        "seed=" + "[" * 100_000,
        "x" * 100_000,
        "a=" + "\\" * 100_000,
    ]
    command_lines = [
        ["train", "--config", "c.yaml", "--dry-run", "--set", argument] for argument in arguments
    ]
    for code, message in refusals(tmp_path, *command_lines):
        assert code == 2 and message.startswith("error: --set ") and len(message) < 1000


PICTURES = {
    "terabytes": (promise((1, 1, 10**6, 10**6)), "is damaged"),
    "terabytes of one number": (promise((1, 1, 1, 2), "|V2000000000"), "is damaged"),
    "more than can be written": (
        header_bytes(
            "{'descr': '|u1', 'fortran_order': False, 'shape': (%s, %s, 1, 1), }" % (("9" * 2500,) * 2)
        ),
        "its header cannot be read",
    ),
    "objects": (promise((1, 1, 2, 2), "|O") + b"cos\nsystem\n(S'touch sprung'\ntR.", "holds Python objects"),
    "fewer than promised": (promise((1, 1, 1000, 1000)), "is damaged"),
    "an open bracket": (header_bytes("{'descr': '|u1', 'shape': ("), "its header cannot be read"),
}


def test_pictures(tmp_path: Path) -> None:
    command_lines = []
    for number, (content, _) in enumerate(PICTURES.values()):
        (tmp_path / f"{number}.npy").write_bytes(content)
        command_lines.append(["explain", "im2col", "--input", f"{number}.npy"])
    for number, (code, message) in enumerate(refusals(tmp_path, *command_lines)):
        name, (_, words) = list(PICTURES.items())[number]
        assert code == 1 and message.startswith(f"error: {number}.npy: ") and words in message, (
            name,
            message,
        )
