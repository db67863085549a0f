"""``cnncli gradcheck``: what it shows, what it refuses, and where it points in the user's own code."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from cnncli.nn import Conv2D, Dense
from tests.cli.program import CONFIGS, REPOSITORY, Cnncli, run_program

LEAKY = '''\
import numpy as np


class LeakyReLU:
    """max(x, slope * x)"""

    def __init__(self, input_shape, *, slope=0.01):
        self.slope = slope

    def forward(self, x):
        self.factor = np.where(x > 0, 1.0, self.slope)
        print("in forward")
        return x * self.factor

    def backward(self, grad_output):
        return grad_output * BACKWARD
'''
RIGHT = LEAKY.replace("BACKWARD", "self.factor")
WRONG = LEAKY.replace("BACKWARD", "(self.factor == 1)")

OWN_LAYER = '''\
import numpy as np
from cnncli.nn import Layer, Parameter
from cnncli.nn.options import PositiveInt, positive_int


class Scale(Layer):
    """One factor for each channel."""

    def __init__(self, input_shape, *, times: PositiveInt = 1, rng=None, dtype=np.float32):
        super().__init__(input_shape, input_shape)
        self.times = positive_int("times", times)
        self.parameters["factor"] = Parameter(rng.standard_normal(input_shape[0]).astype(dtype))

    def forward(self, x, training=False, rng=None):
        self.check_input(x)
        self._x = x
        return (self.times * x.T * self.parameters["factor"].value).T

    def parameter_gradients(self, grad_output):
        axes = tuple(range(1, grad_output.ndim))
        self.parameters["factor"].grad[...] = self.times * (grad_output * self._x).sum(axis=axes)

    def input_gradient(self, grad_output):
        return (self.times * grad_output.T * self.parameters["factor"].value).T
'''

# what the file that the page adds to has already
CONTRIBUTING_IMPORTS = """\
import numpy as np
from cnncli.nn.arrays import FloatArray
from cnncli.nn.layers.base import Layer, positive_shape
"""


_numbers = count()
WriteModule = Callable[[str], str]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WriteModule]:
    """Write a module of a new name into the current directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    written = []

    def write(source: str) -> str:
        name = f"user_layers_{next(_numbers)}"
        written.append(name)
        (tmp_path / f"{name}.py").write_text(source)
        return name

    yield write
    for name in written:
        sys.modules.pop(name, None)


def test_every_array_has_a_row(workspace: Path, cnncli: Cnncli) -> None:
    result = cnncli("gradcheck", "--config", "tiny.yaml")
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0] == "tiny.yaml  float64, 3 images, seed 0"
    rows = [line.split() for line in lines if line.endswith("right")]
    assert [row[:3] if row[0].isdigit() else row[:1] for row in rows] == [
        ["0", "conv2d", "input"],
        ["weight"],
        ["bias"],
        ["1", "relu", "input"],
        ["2", "max_pool2d", "input"],
        ["3", "flatten", "input"],
        ["4", "dropout", "input"],
        ["5", "dense", "input"],
        ["weight"],
        ["bias"],
        ["network"],
        ["0/weight"],
        ["0/bias"],
        ["5/weight"],
        ["5/bias"],
    ]
    assert " ".join(" ".join(lines[-2:]).split()).startswith(
        "All 15 gradients are right: the largest relative error"
    )
    assert " ".join(result.out.split()).endswith("At most 1e-05 is right; --help says why.")
    assert max(map(len, lines)) <= 80
    assert result.out.isascii()


def test_json(workspace: Path, cnncli: Cnncli) -> None:
    result = cnncli("gradcheck", "--config", "tiny.yaml", "--json", "--seed", "7")
    assert (result.code, result.err) == (0, "")
    document = result.json
    assert document.keys() == {"tolerance", "seed", "right", "parts"}
    assert (document["tolerance"], document["seed"], document["right"]) == (1e-5, 7, True)
    assert [(part["index"], part["name"]) for part in document["parts"]] == [
        *enumerate(["conv2d", "relu", "max_pool2d", "flatten", "dropout", "dense"]),
        (None, "network"),
    ]
    weight = document["parts"][0]["arrays"][1]
    assert (weight["name"], weight["shape"], weight["verdict"]) == ("weight", [4, 1, 3, 3], "right")
    assert 0 < weight["relative_error"] < 1e-6
    assert weight["elements"][0].keys() == {"index", "analytic", "numeric", "relative_error"}


def test_the_seed_draws_other_numbers(workspace: Path, cnncli: Cnncli) -> None:
    first, again, other = (
        cnncli("gradcheck", "--config", "tiny.yaml", "--json", "--layer", "0", "--seed", seed).json["parts"]
        for seed in ("1", "1", "2")
    )
    assert first == again != other


def test_a_data_set_known_by_name_need_not_be_there(
    tmp_path: Path, cnncli: Cnncli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    none = f"data.directory={tmp_path / 'none'}"
    result = cnncli("gradcheck", "--config", CONFIGS / "lenet.yaml", "--set", none)
    assert (result.code, result.err) == (0, "")


def test_set_changes_what_is_checked(workspace: Path, cnncli: Cnncli) -> None:
    wider = "network.0.conv2d.out_channels=7"
    result = cnncli("gradcheck", "--config", "tiny.yaml", "--set", wider, "--layer", "0", "--json")
    assert result.json["parts"][0]["arrays"][1]["shape"] == [7, 1, 3, 3]


def test_a_wrong_layer_is_named(workspace: Path, cnncli: Cnncli, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Dense.parameter_gradients

    def doubled(self: Dense, grad_output: object) -> None:
        right(self, grad_output)  # type: ignore[arg-type]
        self.parameters["weight"].grad[1, 2] *= 2

    monkeypatch.setattr(Dense, "parameter_gradients", doubled)
    result = cnncli("gradcheck", "--config", "tiny.yaml")
    assert result.code == 1
    assert result.err.startswith("error: layer 5, dense: the gradient of weight is wrong")
    assert result.err.endswith("at most 1e-05 is right; look closer with --layer 5\n")
    assert sum(line.endswith("  wrong") for line in result.out.splitlines()) == 2

    close = cnncli("gradcheck", "--config", "tiny.yaml", "--layer", "5")
    assert close.code == 1
    (row,) = [line for line in close.out.splitlines() if line.startswith("weight") and "[1, 2]" in line]
    backward, difference = map(float, row.split("]")[1].split()[:2])
    assert backward == pytest.approx(2 * difference, rel=1e-5)
    assert row.endswith("5.0e-01")
    assert max(map(len, close.out.splitlines())) <= 80

    document = cnncli("gradcheck", "--config", "tiny.yaml", "--json")
    assert (document.code, document.json["right"]) == (1, False)


def test_what_is_computed_together_is_checked(
    workspace: Path, cnncli: Cnncli, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = Conv2D._by_rows
    monkeypatch.setattr(Conv2D, "_by_rows", lambda self, grad: right(self, grad) * (self._pool is None))
    result = cnncli("gradcheck", "--config", "tiny.yaml")
    assert result.code == 1
    assert "error: the whole network: the gradient of input is wrong" in result.err
    assert "the whole network, input: it is 0 in every number compared" in result.out


def test_a_class_of_ones_own(module: WriteModule, cnncli: Cnncli) -> None:
    name = f"{module(RIGHT)}:LeakyReLU"
    result = cnncli(
        "gradcheck", "--layer-class", name, "--input-shape", "(2, 5, 4)", "--options", '{"slope": 0.2}'
    )
    assert result.code == 0
    assert result.out.startswith(f"{name}  float64, 3 images, seed 0\n")
    assert "The gradient is right: the largest relative error is" in result.out
    assert "in forward" in result.err
    assert "in forward" not in result.out


def test_a_wrong_class_shows_its_wrong_numbers(module: WriteModule, cnncli: Cnncli) -> None:
    name = f"{module(WRONG)}:LeakyReLU"
    result = cnncli("gradcheck", "--layer-class", name, "--input-shape", "2,5,4", "--json")
    assert result.code == 1
    assert "LeakyReLU: the gradient of input is wrong: relative error" in result.err
    (array,) = result.json["parts"][0]["arrays"]
    for element in array["elements"]:
        # the lost slope: 0 where a hundredth belongs
        assert element["analytic"] == 0
        assert element["numeric"] != 0
        assert element["relative_error"] == pytest.approx(1)


def test_a_subclass_with_parameters(module: WriteModule, cnncli: Cnncli) -> None:
    name = f"{module(OWN_LAYER)}:Scale"
    result = cnncli(
        "gradcheck", "--layer-class", name, "--input-shape", "2,5,4", "--options", "{times: 3}", "--json"
    )
    assert (result.code, result.err) == (0, "")
    assert [array["name"] for array in result.json["parts"][0]["arrays"]] == ["input", "factor"]


def test_the_layer_of_contributing(module: WriteModule, cnncli: Cnncli) -> None:
    page = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (block,) = re.findall(r" *```python\n(.*?)```", page, flags=re.DOTALL)
    name = module(CONTRIBUTING_IMPORTS + textwrap.dedent(block))
    options = ("--input-shape", "2,5,4", "--options", "{slope: 0.2}")
    result = cnncli("gradcheck", "--layer-class", f"{name}:LeakyReLU", *options)
    assert (result.code, result.err) == (0, "")


@pytest.mark.parametrize(
    ("source", "code", "message"),
    [
        ("import numpy as np\n1 / 0\n", 1, "{file}:2: ZeroDivisionError: division by zero\n    1 / 0\n"),
        ("x = [\n", 1, "{file}:1: SyntaxError: "),
        ("import not_a_module_of_anyone\n", 1, "{file}:1: ModuleNotFoundError: No module named"),
        ("raise SystemExit(3)\n", 1, "{file}:1: SystemExit: 3"),
        (RIGHT.replace("slope=0.01", "slopes=0.01"), 1, "{file}:8: in __init__: NameError: name 'slope'"),
        (
            RIGHT.replace("return x * self.factor", "return x @ self.factor"),
            1,
            "{file}:13: in forward: ValueError: matmul",
        ),
        (RIGHT.replace("(self, grad_output)", "(self)"), 1, "TypeError: LeakyReLU.backward() takes 1"),
        (RIGHT.replace("return x * self.factor", "pass"), 1, "forward returned NoneType"),
        (RIGHT.replace("return grad_output * self.factor", "pass"), 1, "got None"),
        (
            RIGHT.replace("*, slope=0.01", "slope"),
            2,
            "missing a required argument: 'slope'; the constructor is LeakyReLU(input_shape, slope)",
        ),
    ],
    ids=[
        "import",
        "syntax",
        "missing",
        "exit",
        "constructor",
        "forward",
        "backward",
        "nothing",
        "none",
        "options",
    ],
)
def test_the_place_in_the_users_code(
    module: WriteModule, cnncli: Cnncli, source: str, code: int, message: str
) -> None:
    name = module(source)
    result = cnncli("gradcheck", "--layer-class", f"{name}:LeakyReLU", "--input-shape", "2,5,4")
    assert result.code == code
    assert message.format(file=f"{name}.py") in result.err
    assert "Traceback" not in result.err


def test_the_current_directory_is_looked_in(tmp_path: Path) -> None:
    (tmp_path / "my_layers.py").write_text(RIGHT)
    arguments = ("gradcheck", "--layer-class", "my_layers:LeakyReLU", "--input-shape", "2,5,4")
    done = run_program(
        *arguments, cwd=tmp_path, variables={"PYTHONSAFEPATH": "1", "PYTHONIOENCODING": "ascii"}
    )
    assert done.returncode == 0, done.stderr
    assert "right" in done.stdout


def test_a_configuration_names_no_code(workspace: Path, cnncli: Cnncli, module: WriteModule) -> None:
    name = module("open('was-run', 'w').close()\n" + RIGHT)
    result = cnncli("gradcheck", "--config", "tiny.yaml", "--set", f"network.1={name}:LeakyReLU")
    assert result.code == 2
    assert "unknown layer" in result.err
    assert not Path("was-run").exists()
