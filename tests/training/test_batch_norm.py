"""Batch norm in training: one update of the running averages per step, by what all shards have seen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cnncli.config import Config, build_network, parse_config
from cnncli.data.numpy_files import write_npz
from cnncli.errors import CheckpointError, ConfigError, DivergenceError
from cnncli.nn import BatchNorm1D, BatchNorm2D, Network
from cnncli.training import StepReport, Trainer, Workers, evaluate, load_checkpoint
from cnncli.training.gradients import _BatchNormStatistics
from tests.training.runs import all_arrays, arrays_after, arrays_in, make_data, same_bits

NETWORK = """
network:
  - conv2d: {out_channels: 3, kernel_size: 3}
  - batch_norm2d
  - relu
  - max_pool2d: {kernel_size: 2}
  - conv2d: {out_channels: 4, kernel_size: 2}
  - batch_norm2d: {momentum: 0.3, epsilon: 1e-3}
  - tanh
  - average_pool2d: {kernel_size: 2, stride: 1, padding: 1}
  - global_average_pool2d
  - dense: {out_features: 6}
  - batch_norm1d
  - sigmoid
  - dense: {out_features: 4}
"""
# the pixels themselves: what the first layer should know of them is easily said
PIXELS = "network: [batch_norm2d, flatten, batch_norm1d: {momentum: 0.25}, dense: {out_features: 4}]"
TRAINING = """
optimizer: {adam: {learning_rate: 0.01}}
schedule: cosine
training: {epochs: 2, batch_size: 33, shard_size: 10}
"""


def make_config(*overrides: str, network: str = NETWORK) -> Config:
    return parse_config(f"seed: 3\n{network}\n{TRAINING}", "made.yaml", Path.cwd(), overrides)


def test_every_number_of_threads_gives_the_same_bits() -> None:
    reference = arrays_after(make_config(), n_threads=1)
    assert sum(name.startswith("buffers/") for name in reference) == 6
    for n_threads in (2, 3, 4):
        assert same_bits(reference, arrays_after(make_config(), n_threads))


def test_more_shards_than_are_in_flight() -> None:
    config = make_config("training.shard_size=2", "training.batch_size=80", "training.epochs=1")
    reference = arrays_after(config, n_threads=1)
    assert same_bits(reference, arrays_after(config, n_threads=4))


@pytest.mark.parametrize("stop", [1, 2])
def test_going_on_gives_the_same_bits(stop: int, tmp_path: Path) -> None:
    config = make_config("training.epochs=3")
    uninterrupted = arrays_after(config)
    with Workers(2) as workers:
        first = Trainer(config, make_data(), workers)
        epochs = first.epochs()
        for _ in range(stop):
            next(epochs)
        first.checkpoint().save(tmp_path / "last.npz")
        second = Trainer(config, make_data(), workers)
        second.restore(load_checkpoint(tmp_path / "last.npz"))
        assert len(list(second.epochs())) == 3 - stop
        assert same_bits(uninterrupted, all_arrays(second))


def test_validation_moves_no_average() -> None:
    config = make_config()
    without = arrays_after(config, data=make_data(n_validation=0))
    assert same_bits(without, arrays_after(config, data=make_data(n_validation=40)))


@pytest.mark.parametrize(("batch_size", "shard_size"), [(33, 10), (100, 3), (40, 40)])
def test_the_averages_are_those_of_whole_batches(batch_size: int, shard_size: int) -> None:
    """Shards of unequal size, more of them than are in flight, or one."""
    settings = (f"training.batch_size={batch_size}", f"training.shard_size={shard_size}")
    data = make_data(101)
    batches: list[np.ndarray] = []
    with Workers(2) as workers:
        trainer = Trainer(make_config(*settings, network=PIXELS), data, workers)
        compute = trainer._gradients.compute

        def noting(indices: Any, step: int) -> Any:
            batches.append(data.normalization.apply(data.train.images[indices], np.float64))
            return compute(indices, step)

        trainer._gradients.compute = noting  # type: ignore[method-assign]
        for _ in trainer.epochs():
            pass
    assert len(batches) == 2 * -(-101 // batch_size)
    mean, variance = np.zeros(1), np.ones(1)
    for x in batches:
        mean = 0.9 * mean + 0.1 * x.mean()
        variance = 0.9 * variance + 0.1 * x.var(ddof=1)
    buffers = trainer.network.buffers
    np.testing.assert_allclose(buffers["0/running_mean"], mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(buffers["0/running_var"], variance, rtol=1e-5)


def test_a_step_of_shards_moves_the_averages_as_one_forward_of_the_whole_batch_does() -> None:
    data = make_data(50)
    config = make_config("training.batch_size=50", "training.shard_size=9", network=PIXELS)
    with Workers(3) as workers:
        trainer = Trainer(config, data, workers)
        whole = BatchNorm2D((1, 8, 7))
        whole.forward(data.normalization.apply(data.train.images, np.float32), training=True)
        trainer._gradients.compute(np.arange(50), 0)
        assert not trainer.network.buffers["0/running_mean"].any()  # not before the step is known to be good
        trainer._gradients.update_averages()
    for name, expected in whole.buffers.items():
        np.testing.assert_allclose(trainer.network.buffers[f"0/{name}"], expected, rtol=1e-6, atol=1e-7)


def test_slots_that_are_written_again_are_not_lost() -> None:
    x = np.random.default_rng(0).standard_normal((3, 10))
    network = Network([BatchNorm1D((3,), dtype=np.float64)])
    whole = BatchNorm1D((3,), dtype=np.float64)
    whole.forward(x, training=True)
    statistics, replica = _BatchNormStatistics(network), network.replica()
    for part in (slice(0, 3), slice(3, 4), slice(4, 10)):
        replica.forward(x[:, part], training=True)
        statistics.note(0, replica)
        statistics.gather(1, first=part.start == 0)
    statistics.update_averages()
    for name, expected in whole.buffers.items():
        np.testing.assert_allclose(network.buffers[f"0/{name}"], expected, rtol=1e-13)


def test_the_last_image_by_itself_is_a_batch() -> None:
    config = make_config("training.batch_size=50", "training.epochs=1")
    arrays = arrays_after(config, data=make_data(51))
    assert all(np.isfinite(array).all() for array in arrays.values())


# so many images to validate on that every worker gets some
DATA = make_data(n_validation=400)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    with Workers(3) as workers:
        trainer = Trainer(make_config(), DATA, workers)
        for _ in trainer.epochs():
            pass
        trainer.checkpoint().save(tmp_path / "last.npz")
    return tmp_path / "last.npz"


@pytest.mark.parametrize("n_threads", [1, 3])
def test_evaluating_the_file_gives_the_figures_of_training(saved: Path, n_threads: int) -> None:
    checkpoint = load_checkpoint(saved)
    assert DATA.validation is not None
    network = checkpoint.build_network()
    with Workers(n_threads) as workers:
        found = evaluate(network, DATA.validation, checkpoint.normalization, workers)
    last = checkpoint.metrics[-1]
    assert (found.loss, found.accuracy) == (last["validation_loss"], last["validation_accuracy"])
    # and they depend on the averages
    network.buffers["5/running_mean"][...] += 1
    with Workers(n_threads) as workers:
        moved = evaluate(network, DATA.validation, checkpoint.normalization, workers)
    assert moved.loss != found.loss


def spoil(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    arrays = arrays_in(path)
    change(arrays)
    write_npz(path, arrays)


def test_averages_are_saved_under_their_names(saved: Path) -> None:
    names = {name for name in arrays_in(saved) if name.startswith("buffers/")}
    assert names == {
        f"buffers/{index}/{name}" for index in (1, 5, 10) for name in ("running_mean", "running_var")
    }


def test_averages_that_do_not_fit_are_refused(saved: Path) -> None:
    def change(arrays: dict[str, Any]) -> None:
        arrays["buffers/1/else"] = arrays.pop("buffers/1/running_mean")
        arrays["buffers/5/running_var"] = np.ones(3, np.float32)
        arrays["buffers/5/running_mean"] = np.ones(4)
        arrays["buffers/10/running_var"][2] = np.nan

    spoil(saved, change)
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(saved).build_network()
    assert [line.strip() for line in str(caught.value).splitlines()[1:]] == [
        "buffers/1/running_mean: missing in the checkpoint",
        "buffers/1/else: unknown to the network",
        "buffers/5/running_mean: expected float32 (4,), the checkpoint has float64 (4,)",
        "buffers/5/running_var: expected float32 (4,), the checkpoint has float32 (3,)",
        "buffers/10/running_var: holds values that are not finite",
    ]


def message_of(change: Callable[[Trainer], None]) -> str:
    """Train with something changed after the second step, and return why it stops."""
    with Workers(2) as workers:
        trainer = Trainer(make_config(), make_data(), workers)

        def step(report: StepReport) -> None:
            if trainer.step == 2:
                change(trainer)

        with pytest.raises(DivergenceError) as caught:
            list(trainer.epochs(step))
    return str(caught.value)


def test_a_variance_that_overflows_is_found_though_the_loss_is_finite() -> None:
    """What is divided by an infinite deviation is 0: neither loss nor gradient would ever tell."""

    def change(trainer: Trainer) -> None:
        trainer.network.parameters["4/weight"].value[...] *= 1e25

    assert message_of(change) == (
        "epoch 1, step 3 of 4: the running_var of layer network[5].batch_norm2d has become infinite\n"
        "  lower optimizer.adam.learning_rate (it was 0.0096194), or set training.clip_norm"
    )


def test_an_average_that_is_no_number_is_never_saved() -> None:
    def change(trainer: Trainer) -> None:
        trainer.network.buffers["10/running_mean"][1] = np.nan

    message = message_of(change)
    assert message.startswith(
        "epoch 1, step 3 of 4: the running_mean of layer network[10].batch_norm1d has become NaN\n"
    )


def test_a_batch_norm_that_gives_no_number_is_named() -> None:
    def change(trainer: Trainer) -> None:
        trainer.network.parameters["5/weight"].value[...] = 3e38

    message = message_of(change)
    assert "layer network[5].batch_norm2d is the first whose output is not finite" in message
    assert "its weight 3e+38" in message


@pytest.mark.parametrize("key", ["batch_size", "shard_size"])
def test_shards_of_one_image_are_refused_where_they_leave_nothing_to_compare(key: str) -> None:
    network = (
        "network:\n  - flatten\n  - dense: {out_features: 9}\n  - batch_norm1d\n  - dense: {out_features: 4}"
    )
    config = make_config(f"training.{key}=1", network=network)
    message = (
        rf"^made\.yaml:5: network\[2\]\.batch_norm1d: normalises .* training\.{key} is 1: .*"
        rf"set training\.{key} to at least 2"
    )
    with pytest.raises(ConfigError, match=message):
        arrays_after(config)
    # the pixels of one image can be compared
    images = "network: [batch_norm2d, flatten, dense: {out_features: 4}]"
    arrays_after(make_config(f"training.{key}=1", "training.epochs=1", network=images), data=make_data(4))


def test_features_beyond_all_reason_are_refused_before_memory_is_taken_for_them() -> None:
    config = make_config(network="network: [flatten, batch_norm1d, dense: {out_features: 4}]")
    message = r"network\[1\]\.batch_norm1d: expected at most 16,777,216 channels or features, got 900,000,000"
    with pytest.raises(ConfigError, match=message):
        build_network(config, (1, 30_000, 30_000), 4)


def test_an_update_counts_every_image_once() -> None:
    """Weights of shards by their size: an average of averages would not do."""
    layer = BatchNorm1D((1,), momentum=1.0)
    data = make_data(5)
    config = make_config(
        *("training.batch_size=5", "training.shard_size=3"),
        network="network: [flatten, batch_norm1d: {momentum: 1.0}, dense: {out_features: 4}]",
    )
    with Workers(1) as workers:
        trainer = Trainer(config, data, workers)
        trainer._gradients.compute(np.arange(5), 0)
        trainer._gradients.update_averages()
    layer.forward(data.normalization.apply(data.train.images, np.float32)[0, 3, 3][None], training=True)
    place = 3 * 7 + 3
    for name, expected in layer.buffers.items():
        assert trainer.network.buffers[f"1/{name}"][place] == pytest.approx(expected[0], rel=1e-5)
