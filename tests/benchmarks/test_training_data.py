"""What the programs are given: the batches of the table, and the same images."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.networks import CONFIGS
from benchmarks.timing import median_seconds
from benchmarks.training_data import MAX_BATCHES, batches, benchmark_config, normalized
from cnncli.config import load_config
from cnncli.data import Normalization, Split


@pytest.mark.parametrize(
    ("network", "batch_size"),
    [
        ("simple_convnet", 100),
        ("lenet", 100),
        ("keras_mnist", 100),
        ("pytorch_mnist", 64),
        ("quickstart", 256),
    ],
)
def test_the_configuration_but_for_batch_and_rate(network: str, batch_size: int) -> None:
    config, original = benchmark_config(network), load_config(CONFIGS / f"{network}.yaml")
    assert config.training.batch_size == batch_size
    assert config.optimizer.options == {**original.optimizer.options, "learning_rate": 0.001}
    assert config.network == original.network
    assert config.training.shard_size == original.training.shard_size


def test_batches_are_full_and_share_no_image() -> None:
    parts = batches(1000, 64)
    assert [len(part) for part in parts] == [64] * 15
    assert len(set(np.concatenate(parts).tolist())) == 15 * 64
    assert len(batches(60_000, 100)) == MAX_BATCHES


def test_images_are_normalised_as_in_training() -> None:
    images = np.random.default_rng(0).integers(0, 256, (5, 2, 3, 4), dtype=np.uint8)
    normalization = Normalization.from_images(images)
    given = normalized(Split(images, np.zeros(5, dtype=np.int64)), normalization)
    np.testing.assert_array_equal(given, np.moveaxis(normalization.apply(images), -1, 0))


def test_the_median_leaves_the_warm_up_out(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, durations = 0.0, iter([9.0, 9.0, 9.0, 3.0, 1.0, 2.0])

    def work() -> None:
        nonlocal clock
        clock += next(durations)

    monkeypatch.setattr("benchmarks.timing.time.perf_counter", lambda: clock)
    assert median_seconds(work, 1.0) == 2.0
