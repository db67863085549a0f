"""Checkpoints come back as they were saved; everything else is refused with a reason."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cnncli.data.numpy_files import write_npz
from cnncli.errors import CheckpointError
from cnncli.training import Trainer, Workers, load_checkpoint
from tests.training.runs import arrays_in, make_config, make_data


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "last.npz"
    with Workers(1) as workers:
        trainer = Trainer(make_config(epochs=1), make_data(), workers)
        for _ in trainer.epochs():
            pass
        trainer.checkpoint().save(path)
    return path


def test_a_checkpoint_comes_back(saved: Path) -> None:
    with Workers(1) as workers:
        trainer = Trainer(make_config(epochs=1), make_data(), workers)
        for _ in trainer.epochs():
            pass
    original, loaded = trainer.checkpoint(), load_checkpoint(saved)
    assert loaded.config == original.config
    assert (loaded.epoch, loaded.step) == (1, 4)
    assert loaded.normalization == original.normalization
    assert (loaded.image_shape, loaded.class_count) == ((1, 8, 7), 4)
    assert loaded.metrics[0].keys() == original.metrics[0].keys()
    for name, array in original.parameters.items():
        np.testing.assert_array_equal(loaded.parameters[name], array)
        assert loaded.parameters[name].dtype == np.float32
    assert loaded.optimizer_state.keys() == original.optimizer_state.keys()
    network = loaded.build_network()
    np.testing.assert_array_equal(network.parameters["0/weight"].value, original.parameters["0/weight"])


def test_names_are_the_documented_ones(saved: Path) -> None:
    with np.load(saved, allow_pickle=False) as file:
        assert {"metadata", "parameters/0/weight", "parameters/9/bias"} <= set(file.files)
        assert "optimizer/0/weight/first_moment" in file.files
        metadata = json.loads(str(file["metadata"]))
    assert metadata["format_version"] == 1


def test_equal_arrays_give_equal_bytes(tmp_path: Path) -> None:
    arrays = {"a/b": np.arange(6).reshape(2, 3), "text": np.array("x")}
    write_npz(tmp_path / "one.npz", arrays)
    write_npz(tmp_path / "two.npz", arrays)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


def rewrite(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    arrays = arrays_in(path)
    change(arrays)
    write_npz(path, arrays)


def rewrite_metadata(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    def change_text(arrays: dict[str, Any]) -> None:
        metadata = json.loads(str(arrays["metadata"]))
        change(metadata)
        arrays["metadata"] = np.array(json.dumps(metadata))

    rewrite(path, change_text)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda p: p.write_bytes(b""), "expected an .npz file"),
        (lambda p: p.write_text("epoch 1\n"), "expected an .npz file"),
        (lambda p: p.write_bytes(p.read_bytes()[: p.stat().st_size // 2]), "is damaged"),
        (lambda p: np.savez(p, x=np.zeros(3)), "holds no metadata"),
        (lambda p: np.savez(p, metadata=np.array("{")), "not JSON"),
        (lambda p: np.savez(p, metadata=np.array("[1]")), "no format version"),
        (lambda p: np.savez(p, metadata=np.array([{}], dtype=object)), "Python objects"),
        (lambda p: np.savez_compressed(p, metadata=np.zeros(10**6)), "compressed"),
        (lambda p: rewrite_metadata(p, lambda m: m.update(format_version=2)), "install a newer cnncli"),
        (lambda p: rewrite_metadata(p, lambda m: m.pop("normalization")), "normalization"),
        (lambda p: rewrite_metadata(p, lambda m: m.update(epoch=5)), "contradicts itself"),
        (lambda p: rewrite_metadata(p, lambda m: m["config"].update(network="relu")), "network"),
    ],
)
def test_other_files_are_refused(saved: Path, spoil: Callable[[Path], object], reason: str) -> None:
    spoil(saved)
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(saved)
    assert str(caught.value).startswith(f"not a cnncli checkpoint: {saved} (")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_flipped_bit_is_found_or_changes_no_array(saved: Path) -> None:
    intact, original = saved.read_bytes(), load_checkpoint(saved)
    rng = np.random.default_rng(0)
    n_found = 0
    for position in rng.integers(0, len(intact), 2000):
        content = bytearray(intact)
        content[position] ^= 1 << int(rng.integers(8))
        saved.write_bytes(content)
        try:
            loaded = load_checkpoint(saved)
        except CheckpointError:
            n_found += 1
        else:  # a bit of the zip's own book-keeping, such as a date
            assert loaded.metrics == original.metrics
            for group in ("parameters", "buffers", "optimizer_state"):
                before, after = getattr(original, group), getattr(loaded, group)
                assert before.keys() == after.keys()
                assert all(before[name].tobytes() == after[name].tobytes() for name in before)
    assert n_found > 1000


def test_a_header_that_promises_terabytes_is_refused_unread(saved: Path) -> None:
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000, 1000000), }"
    with zipfile.ZipFile(saved, "w") as file:
        file.writestr("metadata.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(CheckpointError, match="its header declares"):
        load_checkpoint(saved)


def test_a_missing_file_and_a_directory_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"cannot read .*nothing\.npz.*No such file"):
        load_checkpoint(tmp_path / "nothing.npz")
    with pytest.raises(CheckpointError, match="cannot read"):
        load_checkpoint(tmp_path)


def test_every_array_that_does_not_fit_is_listed(saved: Path) -> None:
    def change(arrays: dict[str, Any]) -> None:
        del arrays["parameters/0/bias"]
        arrays["parameters/7/weight"] = arrays["parameters/7/weight"][:, :-1]
        arrays["parameters/9/weight"] = arrays["parameters/9/weight"].astype(np.float64)
        arrays["parameters/3/bias"][0] = np.nan
        arrays["parameters/extra"] = np.zeros(1, dtype=np.float32)

    rewrite(saved, change)
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(saved).build_network()
    lines = str(caught.value).splitlines()[1:]
    assert sorted(line.split(":")[0].strip() for line in lines) == [
        "parameters/0/bias",
        "parameters/3/bias",
        "parameters/7/weight",
        "parameters/9/weight",
        "parameters/extra",
    ]


def test_a_failed_save_leaves_the_old_checkpoint(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_bytes()
    checkpoint = load_checkpoint(saved)

    def full_disk(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(CheckpointError, match="No space left on device"):
        checkpoint.save(saved)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == ["last.npz"]
