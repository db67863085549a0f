"""The house: imports run downwards only, and each floor keeps to what it is for."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "cnncli"

# what each floor may import of the others, and of packages from outside the standard library
FLOORS = {
    "errors": (set[str](), set[str]()),
    "nn": ({"errors"}, {"numpy"}),
    "data": ({"errors"}, {"numpy"}),
    "config": ({"nn", "data", "errors"}, {"numpy", "yaml"}),
    "training": ({"config", "nn", "data", "errors"}, {"numpy"}),
    "explain": ({"training", "config", "nn", "data", "errors"}, {"numpy"}),
    "report": ({"training", "config", "nn", "data", "errors"}, {"numpy"}),
    "cli": (
        {"report", "explain", "training", "config", "nn", "data", "errors"},
        {"click", "tqdm", "numpy"},
    ),
    "__main__": ({"cli"}, set[str]()),
    "__init__": (set[str](), set[str]()),
}

# print and exit, the environment, the streams: for `cli`, which alone speaks to the user
FORBIDDEN_NAMES = {"print", "input", "exit", "quit", "breakpoint"}
FORBIDDEN_ATTRIBUTES = {
    "sys": {"exit", "stdout", "stderr", "stdin", "argv"},
    "os": {"environ", "getenv", "putenv", "_exit", "environb"},
}
ALLOWED = {
    "data/sources.py": {"os.environ"},
    # a worker process must not run the clean-up of the program that it was forked from
    "training/workers.py": {"os._exit"},
}

# of an extra, imported where it is used, so that all else works without
EXTRAS = {"data/pictures.py": {"PIL"}}

NO_NOUN = {"utils.py", "util.py", "helpers.py", "helper.py", "common.py", "misc.py"}


def floor_of(path: str) -> str:
    """Return the floor that a file of the package is on: ``nn/layers/conv.py`` is on nn."""
    return path.partition("/")[0].removesuffix(".py")


def imported_modules(tree: ast.AST, path: str) -> Iterator[str]:
    """Yield the full name of every module that a file imports, also within functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from _imported_from(node, path)


def _imported_from(node: ast.ImportFrom, path: str) -> Iterator[str]:
    base = node.module or ""
    if node.level:
        package = ["cnncli", *path.split("/")[:-1]]
        base = ".".join([*package[: len(package) - node.level + 1], *base.split(".")]).rstrip(".")
    # `from cnncli import nn` imports a floor, `from cnncli import __version__` the package itself
    if base == "cnncli":
        yield from (f"cnncli.{alias.name}" for alias in node.names)
    else:
        yield base


def faults_of(source: str, path: str) -> list[str]:
    """Return everything in a file that its floor may not do."""
    tree = ast.parse(source)
    floor = floor_of(path)
    floors, packages = FLOORS[floor]
    faults = list(_import_faults(tree, path, floors, packages | EXTRAS.get(path, set())))
    if floor not in ("cli", "__main__"):
        faults += [
            f"{path}:{line}: {name}"
            for line, name in _spoken_names(tree)
            if name not in ALLOWED.get(path, set())
        ]
    return faults


def _import_faults(tree: ast.AST, path: str, floors: set[str], packages: set[str]) -> Iterator[str]:
    for module in imported_modules(tree, path):
        top, _, rest = module.partition(".")
        if top == "cnncli":
            lower = rest.partition(".")[0]
            if lower in FLOORS and lower not in {*floors, floor_of(path)}:
                yield f"{path}: imports cnncli.{lower}"
        elif top not in sys.stdlib_module_names and top not in packages:
            yield f"{path}: imports {top}"


def _spoken_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FORBIDDEN_NAMES:
            yield node.lineno, node.func.id
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in FORBIDDEN_ATTRIBUTES.get(node.value.id, set()):
                yield node.lineno, f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.ImportFrom) and node.module in FORBIDDEN_ATTRIBUTES:
            for alias in node.names:
                if alias.name in FORBIDDEN_ATTRIBUTES[node.module]:
                    yield node.lineno, f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Name) and node.id == "SystemExit":
            yield node.lineno, node.id


FILES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES)
def test_a_file_keeps_to_its_floor(path: str) -> None:
    assert floor_of(path) in FLOORS, f"{path} is on no floor of the house"
    assert faults_of((PACKAGE / path).read_text(encoding="utf-8"), path) == []


def test_every_file_is_named_by_what_is_in_it() -> None:
    assert not [path for path in FILES if path.rpartition("/")[2] in NO_NOUN]


def test_no_two_files_share_a_name() -> None:
    names = [path.rpartition("/")[2] for path in FILES]
    assert sorted({name for name in names if names.count(name) > 1}) == ["__init__.py"]


@pytest.mark.parametrize(
    ("path", "source", "fault"),
    [
        ("nn/loss.py", "from cnncli.data import Split", "imports cnncli.data"),
        ("data/idx.py", "import cnncli.nn.windows", "imports cnncli.nn"),
        ("config/load.py", "def f():\n    from cnncli.training import Trainer", "imports cnncli.training"),
        ("config/load.py", "from cnncli import cli", "imports cnncli.cli"),
        ("training/trainer.py", "from ..cli.main import run", "imports cnncli.cli"),
        ("nn/layers/conv.py", "from ...cli import main", "imports cnncli.cli"),
        ("explain/im2col.py", "import cnncli.report", "imports cnncli.report"),
        ("errors.py", "import numpy", "imports numpy"),
        ("nn/loss.py", "import yaml", "imports yaml"),
        ("training/trainer.py", "from tqdm import tqdm", "imports tqdm"),
        ("cli/train.py", "import yaml", "imports yaml"),
        ("cli/train.py", "import torch", "imports torch"),
        ("data/idx.py", "import PIL.Image", "imports PIL"),
        ("training/trainer.py", "print('epoch')", "training/trainer.py:1: print"),
        ("training/trainer.py", "import sys\nsys.exit(1)", ":2: sys.exit"),
        ("training/trainer.py", "from sys import stderr", ":1: sys.stderr"),
        ("training/trainer.py", "raise SystemExit(1)", "SystemExit"),
        ("data/idx.py", "import os\nos.environ['HOME']", ":2: os.environ"),
        ("data/sources.py", "import os\nos.getenv('HOME')", "os.getenv"),
    ],
)
def test_a_fault_is_found(path: str, source: str, fault: str) -> None:
    found = faults_of(source, path)
    assert len(found) == 1
    assert fault in found[0]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("training/trainer.py", "from cnncli.config import Config\nfrom cnncli import __version__"),
        ("training/trainer.py", "import numpy.lib.format\nimport os, sys, zipfile"),
        ("nn/layers/conv.py", "from ..windows import im2col\nfrom . import base"),
        ("cli/main.py", "import sys\nprint(sys.stdout)\nimport click"),
        ("data/sources.py", "import os\nos.environ['HOME']"),
        ("data/pictures.py", "import PIL.Image"),
    ],
)
def test_what_is_allowed_is_no_fault(path: str, source: str) -> None:
    assert faults_of(source, path) == []
