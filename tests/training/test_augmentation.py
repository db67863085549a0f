"""Augmented training: the same bits for any threads, other images in every step, none in evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cnncli.config import Config
from cnncli.data import Augmentation
from cnncli.data.randomness import AUGMENTATION, stream
from cnncli.training import Trainer, Workers
from tests.cli.program import Cnncli
from tests.training.runs import all_arrays, arrays_after, make_config, make_data, same_bits

AUGMENT = "data.augment={shift: 1.5, rotate: 20, scale: 0.2, shear: 0.1}"


def augmented(*overrides: str, epochs: int = 2) -> Config:
    return make_config(AUGMENT, *overrides, epochs=epochs)


def test_every_number_of_threads_gives_the_same_bits() -> None:
    reference = arrays_after(augmented())
    assert not same_bits(reference, arrays_after(make_config()))
    for n_threads in (2, 3, 4):
        assert same_bits(reference, arrays_after(augmented(), n_threads))


def test_going_on_gives_the_same_bits() -> None:
    config = augmented(epochs=3)
    uninterrupted = arrays_after(config)
    with Workers(2) as workers:
        first = Trainer(config, make_data(), workers)
        next(first.epochs())
        second = Trainer(config, make_data(), workers)
        second.restore(first.checkpoint())
        assert len(list(second.epochs())) == 2
        assert same_bits(uninterrupted, all_arrays(second))


def test_no_change_is_no_augmentation() -> None:
    assert same_bits(arrays_after(make_config()), arrays_after(make_config("data.augment={}")))


def test_images_are_changed_by_the_stream_of_their_step_and_shard() -> None:
    data, indices = make_data(), np.arange(7)
    with Workers(1) as workers:
        trainer = Trainer(augmented(), data, workers)
    augmentation = Augmentation(shift=1.5, rotate=20, scale=0.2, shear=0.1)

    def expected(step: int, shard: int) -> Any:
        rng = stream(trainer.config.seed, AUGMENTATION, step, shard)
        changed = augmentation.apply(data.train.images[indices], rng)
        return data.normalization.apply(changed)

    for step, shard in ((0, 0), (0, 1), (5, 0)):
        np.testing.assert_array_equal(
            trainer._gradients._load(indices, step, shard).images, expected(step, shard)
        )
    assert not np.array_equal(expected(0, 0), expected(5, 0))
    assert not np.array_equal(expected(0, 0), expected(0, 1))


def test_images_to_validate_on_are_left_alone() -> None:
    """A rate of next to nothing leaves the weights: only what is trained on can differ."""
    rate = "optimizer.sgd.learning_rate=1e-12"
    with Workers(2) as workers:
        plain = next(Trainer(make_config(rate), make_data(), workers).epochs())
        changed = next(Trainer(augmented(rate), make_data(), workers).epochs())
    assert changed.train_loss != plain.train_loss
    assert changed.validation_loss == pytest.approx(plain.validation_loss, rel=1e-9)
    assert changed.validation_accuracy == plain.validation_accuracy


def test_a_run_says_how_its_images_are_changed(workspace: Path, cnncli: Cnncli) -> None:
    def shown(augment: str) -> str:
        """Return what is said, in one line."""
        out = cnncli("train", "--config", "tiny.yaml", "--dry-run", "--set", f"data.augment={augment}").out
        return " ".join(out.split())

    assert "60 for validation; augmented: shift 1.5, rotate 20 network" in shown("{shift: 1.5, rotate: 20}")
    assert "augmented" not in shown("{}")
