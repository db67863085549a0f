"""`inspect-shapes --backward` lists what a step really asks for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cnncli.config import build_network, load_config
from cnncli.errors import UsageError
from cnncli.training.step_arrays import StepRecord, record_step
from tests.cli.program import Cnncli

CONFIGS = Path(__file__).parents[2] / "configs"


def recorded(name: str, batch_size: int = 100, n_threads: int = 2) -> StepRecord:
    config = load_config(CONFIGS / f"{name}.yaml")
    network = build_network(config, (1, 28, 28), 10, np.random.default_rng(0))
    return record_step(config, network, batch_size=batch_size, n_threads=n_threads)


def rows(record: StepRecord) -> dict[str, list[str]]:
    """Name the passes, and in each of them the arrays with their shapes."""
    return {
        f"{one.kind} {one.index}": [f"{array.name} {array.shape} x {array.count}" for array in one.arrays]
        for one in record.passes
    }


def test_lenet_by_hand() -> None:
    record = recorded("lenet")
    assert (record.n_shards, record.shard_size, record.n_in_flight) == (2, 50, 2)
    found = rows(record)
    order = [key for key in found if key.startswith("forward")]
    assert order == [f"forward {index}" for index in (0, 2, 1, 3, 5, 4, 6, 7, 8, 9, 10, 11)]
    assert found["forward 0"] == ["output (4, 6, 14, 14, 50) x 1", "cols (25, 9800) x 4"]
    assert found["forward 2"] == ["output (6, 14, 14, 50) x 1", "won (3, 6, 14, 14, 50) x 1"]
    assert found["parameters 3"] == ["weight.grad (16, 6, 5, 5) x 1", "bias.grad (16,) x 1"]
    assert found["input 3"][:2] == ["grad_rows (16, 10, 10, 50) x 1", "grad_input (6, 14, 14, 50) x 1"]
    assert found["input 5"] == ["grad_cells (4, 16, 5, 5, 50) x 1"]
    assert found["forward 6"] == found["input 6"] == []
    assert "input 0" not in found  # nothing before it is trained


def test_sums() -> None:
    record = recorded("simple_convnet", batch_size=256, n_threads=3)
    n_parameters = 433_890
    assert record.once_bytes == 4 * n_parameters * (4 + min(record.n_shards, 16))
    assert record.total_bytes == record.once_bytes + 3 * record.worker_bytes
    written = {
        (one.index, array.name): array.nbytes
        for one in record.passes
        for array in one.arrays
        if not array.name.endswith(".grad")
    }
    assert record.worker_bytes == sum(written.values())


def test_what_is_too_large_is_refused() -> None:
    with pytest.raises(UsageError, match="expected a batch of at most 1,000,000 images, got 1,000,001"):
        recorded("lenet", batch_size=1_000_001)
    with pytest.raises(UsageError, match="GiB of activations"):
        config = load_config(CONFIGS / "lenet.yaml", ["training.shard_size=500000"])
        network = build_network(config, (1, 28, 28), 10, np.random.default_rng(0))
        record_step(config, network, batch_size=500_000, n_threads=1)


def test_json_holds_what_was_recorded(cnncli: Cnncli) -> None:
    document = json.loads(
        cnncli("inspect-shapes", "--config", CONFIGS / "lenet.yaml", "--backward", "--json").out
    )
    record = recorded("lenet", document["step"]["batch_size"], document["step"]["n_threads"])
    assert document["step"] == json.loads(json.dumps(record.to_dict()))
