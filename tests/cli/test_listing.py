"""``cnncli list`` and ``cnncli init``."""

from __future__ import annotations

import inspect
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from cnncli.cli import formats
from cnncli.config import fields_of, load_config
from cnncli.config.schema import SECTIONS, TOP_LEVEL
from cnncli.nn import LAYERS, OPTIMIZERS, SCHEDULES
from tests.cli.program import MNIST, Cnncli, run_program

REGISTRIES: dict[str, dict[str, type[Any]]] = {
    "network": LAYERS,
    "optimizer": OPTIMIZERS,
    "schedule": SCHEDULES,
}


def classes() -> list[tuple[str, str, type[Any]]]:
    return [(section, name, cls) for section, known in REGISTRIES.items() for name, cls in known.items()]


def test_everything_that_a_configuration_may_hold_is_listed(cnncli: Cnncli) -> None:
    document = cnncli("list", "--json").json
    assert list(document) == list(TOP_LEVEL)
    text = cnncli("list").out
    for section, name, cls in classes():
        assert document[section][name]["options"].keys() == fields_of(cls).keys()
        assert f"\n  {name} " in text
    for section, cls in SECTIONS.items():
        assert document[section]["options"].keys() == fields_of(cls).keys()
        assert f"\n{section} " in text


def test_what_is_listed_is_what_the_signatures_say(cnncli: Cnncli) -> None:
    document = cnncli("list", "--json").json
    conv2d = document["network"]["conv2d"]
    assert conv2d["description"].startswith("Slide F kernels over images")
    assert conv2d["options"]["out_channels"] == {"expected": "an integer of at least 1", "required": True}
    assert conv2d["options"]["padding"]["default"] == 0
    assert document["optimizer"]["adam"]["options"]["betas"]["default"] == [0.9, 0.999]
    assert document["schedule"]["one_cycle"]["options"]["warmup"]["default"] == 0.3
    patience = document["training"]["options"]["early_stopping"]["options"]["patience"]
    assert patience == {"expected": "an integer of at least 1", "required": False, "default": 3}
    assert document["seed"]["default"] == 0


def test_the_defaults_are_those_of_the_constructors(cnncli: Cnncli) -> None:
    document = cnncli("list", "--json").json
    for section, name, cls in classes():
        for option, listed in document[section][name]["options"].items():
            default = inspect.signature(cls).parameters[option].default
            plain = list(default) if isinstance(default, tuple) else default
            assert listed.get("default", inspect.Parameter.empty) == plain


def test_the_starter_trains_as_it_is(tmp_path: Path) -> None:
    """Its data is where a user's would be: in the cache directory."""
    cache = tmp_path / "cache" / "cnncli" / "mnist"
    cache.mkdir(parents=True)
    for path in MNIST.glob("*.gz"):
        (cache / path.name).symlink_to(path)
    variables = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    written = run_program("init", "my.yaml", cwd=tmp_path, variables=variables)
    assert (written.returncode, written.stdout) == (0, "")
    assert written.stderr == "wrote my.yaml\nnext: cnncli train --config my.yaml\n"
    # a thousand images and one epoch, for the time it takes
    short = ("--set", "training.epochs=1", "--set", "data.validation_size=59000")
    trained = run_program("train", "--config", "my.yaml", *short, cwd=tmp_path, variables=variables)
    assert trained.returncode == 0, trained.stderr
    assert (tmp_path / "runs" / "my" / "best.npz").exists()


def test_the_starter_says_the_shapes_that_come_out(workspace: Path, cnncli: Cnncli) -> None:
    cnncli("init")
    layers = cnncli("inspect-shapes", "--config", "cnncli.yaml", "--json").json["layers"]
    text = Path("cnncli.yaml").read_text()
    lines = [line for line in text.splitlines() if line.startswith("  - ")]
    assert len(lines) == len(layers)
    for line, layer in zip(lines, layers, strict=True):
        comment = line.partition("#")[2].strip()
        if comment.startswith("("):
            assert comment.startswith(str(tuple(layer["output_shape"])))


@pytest.mark.parametrize("path", ["none/my.yaml", "."])
def test_init_where_nothing_can_be_written(workspace: Path, cnncli: Cnncli, path: str) -> None:
    result = cnncli("init", path)
    assert result.code in (1, 2)
    assert result.err.startswith(f"error: {path}: ")


def test_init_names_the_mnist_files_that_are_at_hand(workspace: Path, cnncli: Cnncli) -> None:
    Path("data").mkdir()
    Path("data/mnist").symlink_to(MNIST)
    Path("configs").mkdir()
    assert cnncli("init", "configs/my.yaml").code == 0
    assert load_config("configs/my.yaml").data.directory == MNIST.resolve()
    text = Path("configs/my.yaml").read_text()
    assert "  directory: ../data/mnist  # where the files are" in text


def test_a_full_disk_leaves_no_half_configuration(
    workspace: Path, cnncli: Cnncli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    before = sorted(workspace.iterdir())
    result = cnncli("init", "my.yaml")
    assert (result.code, result.err) == (1, "error: my.yaml: No space left on device\n")
    assert sorted(workspace.iterdir()) == before


@pytest.mark.parametrize(
    ("called", "on_path", "shown"),
    [
        (".venv/bin/cnncli", False, ".venv/bin/cnncli eval runs/a"),
        (".venv/bin/cnncli", True, "cnncli eval runs/a"),
        ("cnncli/__main__.py", False, "cnncli eval runs/a"),
    ],
)
def test_a_command_to_try_is_one_that_the_shell_finds(
    monkeypatch: pytest.MonkeyPatch, called: str, on_path: bool, shown: str
) -> None:
    monkeypatch.setattr(sys, "argv", [called])
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}" if on_path else None)
    assert formats.command("eval", Path("runs/a")) == shown
