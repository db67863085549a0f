"""What the fuzzer and the reading of its targets have found: each input that once went wrong."""

from __future__ import annotations

import io
import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cnncli.config import load_config
from cnncli.data import load_dataset
from cnncli.data.dataset import as_images
from cnncli.data.idx import parse_idx
from cnncli.errors import CheckpointError, ConfigError, DataError
from cnncli.explain import read_array
from cnncli.training import load_checkpoint
from tests.cli.conftest import cnncli
from tests.cli.program import Cnncli, make_workspace
from tests.data.made_files import npy_bytes, small_arrays, write_npz_entries
from tests.fuzz.checkpoint_target import make_checkpoint
from tests.fuzz.npy_files import header_bytes
from tests.fuzz.zip_files import stored, zip_bytes

pytestmark = pytest.mark.fuzz

__all__ = ["cnncli"]

U1 = "{'descr': '|u1', 'fortran_order': False, 'shape': %s, }"


@pytest.fixture
def arrays(tmp_path: Path) -> dict[str, bytes]:
    """Return the entries of a small checkpoint."""
    make_checkpoint().save(tmp_path / "whole.npz")
    with np.load(tmp_path / "whole.npz") as file:
        return {name: npy_bytes(file[name]) for name in file.files}


def refusal(path: Path, entries: dict[str, bytes]) -> str:
    """Write a checkpoint, and return what is said of it."""
    path.write_bytes(zip_bytes([stored(f"{name}.npy".encode(), data) for name, data in entries.items()]))
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(path).build_network()
    assert str(path) in str(caught.value)
    return str(caught.value)


def with_metadata(arrays: dict[str, bytes], **changes: Any) -> dict[str, bytes]:
    """Change entries of the metadata."""
    metadata = json.loads(str(np.load(io.BytesIO(arrays["metadata"]))))
    return arrays | {"metadata": npy_bytes(np.array(json.dumps(metadata | changes)))}


HEADERS = {
    "an open bracket": "{'descr': '|u1', 'fortran_order': False, 'shape': (3, }",  # tokenize.TokenError
    "Python 2": U1 % "(3L,)",  # a warning
    "an old letter": "{'descr': '|a5', 'fortran_order': False, 'shape': (3,), }",  # a warning
    "axes in the type": "{'descr': '(2,3)f4', 'fortran_order': False, 'shape': (0, 9), }",
    "deep": U1 % ("-" * 5000 + "1"),  # RecursionError or MemoryError
    "more digits than Python writes": U1 % f"({'9' * 2500}, {'9' * 2500}, 1, 1)",  # ValueError in a message
    "many axes": U1 % f"({'1, ' * 3000})",  # a message of 9,000 letters
    "an escape": U1 % "('\\x1b[31m',)",
}


@pytest.mark.parametrize("case", HEADERS)
def test_headers(tmp_path: Path, arrays: dict[str, bytes], case: str) -> None:
    header = header_bytes(HEADERS[case])
    message = refusal(tmp_path / "last.npz", arrays | {"parameters/0/bias": header})
    assert "parameters/0/bias: is damaged: its header" in message and len(message) < 300
    (tmp_path / "x.npy").write_bytes(header)
    with pytest.raises(DataError, match="is damaged: its header") as caught:
        read_array("x", tmp_path / "x.npy", "(N, C, H, W)")
    assert len(str(caught.value)) < 300 and str(caught.value).isprintable()


CHANGES: dict[str, dict[str, Any]] = {
    "half a pixel": {"image_shape": [1, 6.5, 5]},
    "digits as text": {"image_shape": ["1", "6", "5"]},
    "true for one": {"image_shape": [True, 6, 5]},
    "no pixels": {"image_shape": [1, 0, 5]},
    "classes below zero": {"class_count": -3},
    "more classes than can be counted": {"class_count": 10**400},
    "half an epoch": {"epoch": 2.5},
    "a trillion epochs": {"epoch": 10**12},
    "metrics of pairs": {"metrics": [[["epoch", 1]], [["epoch", 2]]]},
    "metrics without figures": {"metrics": [{"epoch": 1}, {"epoch": 2}]},
    "another number of channels": {"normalization": {"mean": [1.0, 2.0], "std": [1.0, 1.0]}},
    "a list of 5,000": {"normalization": [0] * 5000},
    "faults on two lines": {"config": {"network": "relu", "seed": -1}},
}


@pytest.mark.parametrize("case", CHANGES)
def test_metadata(tmp_path: Path, arrays: dict[str, bytes], case: str) -> None:
    message = refusal(tmp_path / "last.npz", with_metadata(arrays, **CHANGES[case]))
    assert "its metadata" in message
    assert "\n" not in message and len(message) < 600


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("validation_accuracy", None),
        ("validation_accuracy", "0.9"),
        ("train_loss", None),
        ("epoch", 3),
        ("seconds", True),
        ("train_loss", float("inf")),
    ],
)
def test_metrics_that_later_epochs_could_not_be_compared_with(
    tmp_path: Path, arrays: dict[str, bytes], key: str, value: object
) -> None:
    first, second = make_checkpoint().metrics
    message = refusal(tmp_path / "last.npz", with_metadata(arrays, metrics=[first, second | {key: value}]))
    assert "its metadata" in message


def test_entries_that_overlap(tmp_path: Path, arrays: dict[str, bytes]) -> None:
    """Each would hold all those behind it, and the sizes of a thousand add up to a thousand files."""
    entries = [stored(f"{name}.npy".encode(), data) for name, data in arrays.items()]
    whole = zip_bytes(entries)
    entries = [replace(entry, size=len(whole) - 900, compressed_size=len(whole) - 900) for entry in entries]
    path = tmp_path / "last.npz"
    path.write_bytes(zip_bytes(entries))
    with pytest.raises(CheckpointError, match="entries are said to be longer than the file"):
        load_checkpoint(path)


def test_truncations(tmp_path: Path) -> None:
    path = tmp_path / "last.npz"
    make_checkpoint().save(path)
    whole = path.read_bytes()
    for length in (*range(0, len(whole), 17), *range(len(whole) - 60, len(whole))):
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match="not a cnncli checkpoint"):
            load_checkpoint(path)


def test_many_arrays_of_another_network(tmp_path: Path, arrays: dict[str, bytes]) -> None:
    extra = {f"parameters/\x07{number}{'x' * 500}": npy_bytes(np.zeros(1)) for number in range(50)}
    assert "an entry has the name" in refusal(tmp_path / "last.npz", arrays | extra)
    extra = {f"parameters/{number}{'x' * 500}": npy_bytes(np.zeros(1)) for number in range(50)}
    arrays = with_metadata(arrays | extra, array_count=len(arrays) + 49)
    lines = refusal(tmp_path / "last.npz", arrays).splitlines()
    assert len(lines) == 22 and max(map(len, lines)) < 200 and lines[-1] == "  and 30 more"


def test_weights_so_large_that_the_scores_are_no_numbers(
    tmp_path: Path, cnncli: Cnncli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finite each, so the file is right; JSON has no NaN."""
    make_workspace(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert cnncli("train", "--config", "tiny.yaml", "--quiet", "--run-dir", "run").code == 0
    checkpoint = load_checkpoint(Path("run/best.npz"))
    for array in checkpoint.parameters.values():
        array[...] = 1e38
    checkpoint.save(Path("large.npz"))
    for arguments in ([], ["--json"]):
        result = cnncli("eval", "large.npz", *arguments)
        assert (result.code, result.out) == (1, "")
        assert "the loss on the images is nan" in result.err


def test_names_of_arrays_in_a_message(tmp_path: Path) -> None:
    path = tmp_path / "digits.npz"
    write_npz_entries(path, {"a" * 5000: npy_bytes(np.zeros(1)), **{f"b{n}": b"" for n in range(20)}})
    with pytest.raises(DataError, match="has no x_train") as caught:
        load_dataset(str(path))
    assert len(str(caught.value)) < 500


def test_a_name_in_front_of_an_entry_is_not_repeated_at_length(tmp_path: Path) -> None:
    path = tmp_path / "digits.npz"
    entries = [stored(f"{name}.npy".encode(), npy_bytes(array)) for name, array in small_arrays().items()]
    path.write_bytes(zip_bytes([replace(entry, local_name=b"\xff" * 60_000) for entry in entries]))
    with pytest.raises(DataError, match="is damaged") as caught:
        load_dataset(str(path))
    assert len(str(caught.value)) < 600 and str(caught.value).isprintable()


def test_a_signalling_nan_is_no_warning() -> None:
    bits = np.full((1, 2, 2), 0x7FF0000000000001, ">u8")
    content = bytes([0, 0, 0x0E, 3]) + np.array([1, 2, 2], ">u4").tobytes() + bits.tobytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DataError, match="expected finite float32 values"):
            as_images(parse_idx(content, "a"), "a")


@pytest.mark.parametrize("key", ["a." * 3000 + "b", "network" + "[0]" * 3000])
def test_settings_of_many_parts(tmp_path: Path, key: str) -> None:
    (tmp_path / "c.yaml").write_text("network: [flatten, dense: {out_features: 10}]")
    with pytest.raises(ConfigError, match="expected a key of at most 20 parts, got"):
        load_config(tmp_path / "c.yaml", [f"{key}=1"])


def test_a_key_with_an_escape_is_shown_safely(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("network: [flatten, dense: {out_features: 10}]")
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path / "c.yaml", ["training.\x1b[31m.x=[", "\x1b=1"])
    assert all(line.isprintable() for line in str(caught.value).split("\n"))
