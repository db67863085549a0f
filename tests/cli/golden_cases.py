"""What the program says, case by case: the texts of golden/ are made from these."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import numpy as np

from cnncli.cli.evaluate import write_evaluation
from cnncli.cli.gradcheck import Part, write_elements, write_parts
from cnncli.cli.main import COMMANDS, run
from cnncli.cli.predict import Prediction, write_predictions, write_seen
from cnncli.cli.profile import write_profile
from cnncli.cli.terminal import Stream
from cnncli.nn.gradient_check import ArrayCheck, Element
from cnncli.training import Evaluation
from cnncli.training.step_profile import LayerProfile, PassProfile, Profile, ReferenceRates
from tests.cli.program import CONFIGS, make_workspace

GOLDEN = Path(__file__).parent / "golden"

BROKEN_CONFIG = """\
sed: 1
data: {dataset: fashion, validation_size: -1}
network:
  - conv2d: {out_channels: 8, kernal_size: 3}
  - max_pool2d: {kernel_size: 0}
  - dense: {out_features: 10}
optimizer:
  adam: {learning_rate: 1e-3, lr: 2}
schedule: linear
"""

MISFIT_CONFIG = """\
network:
  - conv2d: {out_channels: 8, kernel_size: 3}
  - dense: {out_features: 10}
"""


def _transcript(*commands: str) -> Callable[[], str]:
    """Run commands in a directory with configurations, and write down what a user sees."""

    def make() -> str:
        with TemporaryDirectory() as directory, _working_in(Path(directory)):
            text = "\n".join(_seen(command) for command in commands)
            return text.replace(str(Path(directory).resolve()), "/here")

    return make


def _errors() -> str:
    """Run the commands that stand in the golden text itself: to add a case, add its line there and remake."""
    lines = (GOLDEN / "errors.txt").read_text(encoding="utf-8").splitlines()
    return _transcript(*(line[9:] for line in lines if line.startswith("$ cnncli")))()


@contextlib.contextmanager
def _working_in(directory: Path) -> Iterator[None]:
    for name in ("quickstart", "lenet"):
        shutil.copy(CONFIGS / f"{name}.yaml", directory)
    make_workspace(directory)
    (directory / "bad.yaml").write_text("network: [relu\n")
    (directory / "broken.yaml").write_text(BROKEN_CONFIG)
    (directory / "misfit.yaml").write_text(MISFIT_CONFIG)
    (directory / "text.npz").write_text("no zip file")
    before = Path.cwd()
    os.chdir(directory)
    try:
        with mock.patch.dict(os.environ, {"COLUMNS": "80", "XDG_CACHE_HOME": "/none"}):
            yield
    finally:
        os.chdir(before)


def _seen(command: str) -> str:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(shlex.split(command))
    return f"$ cnncli {command}\n{out.getvalue()}{err.getvalue()}[exit code {code}]\n"


def _made_up_evaluation() -> str:
    matrix = np.diag([970, 1130, 1020, 1000, 970, 880, 940, 1010, 960, 990])
    matrix[4, 9], matrix[9, 4], matrix[7, 2], matrix[5, 3], matrix[6, 0] = 12, 9, 18, 5, 1
    n = int(matrix.sum())
    file = io.StringIO()
    evaluation = Evaluation(n, 0.0321, int(np.trace(matrix)) / n, matrix)
    write_evaluation("test", evaluation, Stream(file))
    return file.getvalue()


def _made_up_profile() -> str:
    def one(milliseconds: float, multiply_adds: int, bytes_moved: int) -> PassProfile:
        return PassProfile(milliseconds / 1e3, multiply_adds, bytes_moved)

    layers = (
        LayerProfile(0, "conv2d", one(0.735, 11_059_200, 17_759_462), one(1.15, 91_059_200, 5_872_025)),
        LayerProfile(2, "max_pool2d", one(0.1, 0, 1_327_104), one(0.1, 0, 1_327_104)),
        LayerProfile(1, "relu", one(0.047, 0, 884_736), one(0.105, 0, 1_327_104)),
        LayerProfile(3, "flatten", one(0.002, 0, 0), one(0.001, 0, 0)),
        LayerProfile(4, "dense", one(0.176, 6_553_600, 955_392), one(0.36, 13_107_200, 1_887_436)),
    )
    profile = Profile(
        dtype="float32",
        rates=ReferenceRates(98.2e9, 22.4e9, 0.42e-6),
        batch_size=256,
        shard_size=32,
        n_shards=8,
        n_threads=2,
        n_parameters=215_194,
        input_seconds=81e-6,
        layers=layers,
        loss_seconds=94e-6,
        optimizer_seconds=611e-6,
        step_seconds=13.4e-3,
    )
    file = io.StringIO()
    with mock.patch.dict(os.environ, {"COLUMNS": "80"}):
        write_profile("my.yaml", "adam", profile, Stream(file))
    return file.getvalue()


def _made_up_gradcheck() -> str:
    def element(*index: int, analytic: float, numeric: float, error: float) -> Element:
        return Element(index, analytic, numeric, error)

    right = ArrayCheck("input", (6, 14, 14, 3), 2.3e-11, (), ())
    weight = ArrayCheck(
        "weight",
        (16, 6, 5, 5),
        0.5,
        (
            element(3, 0, 2, 1, analytic=0.24691357, numeric=0.123456785, error=0.5),
            element(0, 5, 4, 4, analytic=-3.0, numeric=-1.5, error=0.5),
        ),
        ("backward adds to the gradient that is there; it must overwrite it",),
    )
    bias = ArrayCheck("bias", (16,), None, (element(4, analytic=1.0, numeric=1.0, error=1e-12),), ())
    layer = Part("conv2d", 3, (right, weight, bias))
    network = Part("network", None, (ArrayCheck("11/weight", (10, 84), 3.1e-10, (), ()),))
    file = io.StringIO()
    with mock.patch.dict(os.environ, {"COLUMNS": "80"}):
        write_parts([layer, network], Stream(file))
        file.write("\n")
        write_elements(layer, Stream(file))
        write_parts([network], Stream(file))
    return file.getvalue()


def _made_up_predictions() -> str:
    one, two = np.full((2, 10), 0.0002)
    one[[7, 2, 1]] = 0.99, 0.0073, 0.0013
    two[[4, 9, 8]] = 0.51, 0.4865, 0.0021
    predictions = [
        Prediction("photos/seven.jpg", 0, "photos/seven.jpg", one),
        Prediction("digits.npy", 4321, "digits.npy:4321", two),
    ]
    images = np.zeros((2, 1, 6, 5), np.uint8)
    images[0, 0, 1:5, 1:4] = [[255, 255, 255], [0, 0, 200], [0, 120, 60], [0, 255, 0]]
    images[1, 0, 1:5, 1:4] = [[255, 0, 30], [255, 0, 255], [90, 255, 255], [0, 0, 255]]
    file = io.StringIO()
    write_seen(predictions, images, Stream(file))
    write_predictions(predictions, Stream(file))
    return file.getvalue()


CASES: Mapping[str, Callable[[], str]] = {
    "help": _transcript("--help"),
    "help_commands": _transcript(*(f"{name} --help" for name in COMMANDS)),
    "inspect_shapes": _transcript(
        "inspect-shapes --config quickstart.yaml",
        "inspect-shapes --config lenet.yaml",
        "inspect-shapes --config lenet.yaml --batch-size 32",
    ),
    "inspect_shapes_backward": _transcript(
        "inspect-shapes --config lenet.yaml --backward --batch-size 100 --threads 2",
        "inspect-shapes --config quickstart.yaml --backward --batch-size 1 --set training.clip_norm=1",
        "inspect-shapes --config misfit.yaml --backward",
        "inspect-shapes --config lenet.yaml --threads 2",
    ),
    "dry_run": _transcript(
        "train --config quickstart.yaml --threads 2 --set data.directory=null --dry-run",
    ),
    "list": _transcript("list"),
    "init": _transcript("init", "init", "init -"),
    "evaluation": _made_up_evaluation,
    "profile": _made_up_profile,
    "gradcheck": _made_up_gradcheck,
    "predict": _made_up_predictions,
    "errors": _errors,
}
