"""Arrays of the reader's own, given to ``cnncli explain --input``."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from random import Random

import numpy as np

from cnncli.cli.main import run
from cnncli.explain import TOPICS, read_array
from tests.data.made_files import npy_bytes
from tests.fuzz.mutation import mutate_bytes
from tests.fuzz.npy_files import mutate_npy
from tests.fuzz.target import Case, require, require_same

AXES = "(N, C, H, W)"
# a walk-through of more takes longer than there is for one input
MOST_NUMBERS = 30


class PictureTarget:
    """An .npy file; what is read is held against NumPy, and small arrays are walked through."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "picture.npy"
        rng = np.random.default_rng(0)
        self._whole = [
            npy_bytes(np.arange(9.0).reshape(1, 1, 3, 3)),
            npy_bytes(rng.integers(0, 256, (1, 2, 3, 4)).astype(np.uint8)),
            npy_bytes(rng.normal(size=(2, 1, 3, 3)).astype(np.float32)),
            npy_bytes(np.asfortranarray(rng.normal(size=(2, 1, 3, 3)))),
        ]

    def make(self, rng: Random) -> Case:
        whole = rng.choice(self._whole)
        content = mutate_bytes(whole, rng) if rng.random() < 0.3 else mutate_npy(whole, rng)
        return Case(content, (rng.choice(list(TOPICS)),))

    def read(self, case: Case) -> None:
        given = read_array("x", self.path, AXES)
        with self.path.open("rb") as file:
            expected = np.load(file, allow_pickle=False)
        with np.errstate(invalid="ignore"):
            require_same(given.values, expected.astype(np.float64), "the array")
        require(bool(np.isfinite(given.values).all()), "a number is not finite")
        if given.values.size <= MOST_NUMBERS:
            self._explain(case.arguments[0])

    def _explain(self, topic: str) -> None:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(["explain", topic, "--input", str(self.path)])
        if code == 2:  # windows that do not fit the array
            require(out.getvalue() == "" and err.getvalue().startswith("error: --"), err.getvalue())
        else:
            require(code == 0 and err.getvalue() == "", f"exit code {code}: {err.getvalue()[-500:]}")
