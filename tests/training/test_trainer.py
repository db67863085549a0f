"""The epoch loop: reproducible, independent of threads and of evaluation, resumable, and it stops on NaN."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cnncli.data import Split
from cnncli.errors import CheckpointError, LabelError
from cnncli.training import StepReport, Trainer, TrainingData, Workers
from cnncli.training.metrics import best_epoch
from tests.training.runs import all_arrays, arrays_after, make_config, make_data, same_bits


def test_every_number_of_threads_gives_the_same_bits() -> None:
    reference = arrays_after(make_config(), n_threads=1)
    assert all(same_bits(reference, arrays_after(make_config(), n_threads)) for n_threads in (2, 3, 4))


def test_another_seed_gives_other_weights() -> None:
    assert not same_bits(arrays_after(make_config(seed=0)), arrays_after(make_config(seed=1)))


def test_training_learns_the_quarters() -> None:
    with Workers(2) as workers:
        trainer = Trainer(make_config(epochs=30), make_data(200), workers)
        reports = list(trainer.epochs())
    accuracies = [report.validation_accuracy for report in reports]
    assert accuracies[-1] is not None
    assert accuracies[-1] > 0.9
    assert reports[-1].train_loss < reports[0].train_loss / 3


def test_evaluating_changes_nothing_in_training() -> None:
    without = arrays_after(make_config(), data=make_data(n_validation=0))
    assert same_bits(without, arrays_after(make_config(), data=make_data(n_validation=40)))


@pytest.mark.parametrize("schedule", ["constant", "{step: {every: 2, factor: 0.5}}", "one_cycle"])
def test_stopping_after_any_epoch_and_going_on_gives_the_same_bits(schedule: str) -> None:
    config = make_config(epochs=4, schedule=schedule)
    uninterrupted = arrays_after(config)
    for stop in (1, 2, 3):
        with Workers(2) as workers:
            first = Trainer(config, make_data(), workers)
            epochs = first.epochs()
            for _ in range(stop):
                next(epochs)
            second = Trainer(config, make_data(), workers)
            second.restore(first.checkpoint())
            reports = list(second.epochs())
            assert [report.epoch for report in reports] == list(range(stop + 1, 5))
            assert same_bits(uninterrupted, all_arrays(second))


def test_step_schedule_goes_on_after_a_stop() -> None:
    # 0.1, a tenth every two epochs: the fourth epoch runs at 0.01, resumed or not
    config = make_config(
        "optimizer.sgd.learning_rate=0.1", epochs=4, schedule="{step: {every: 2, factor: 0.1}}"
    )
    with Workers(1) as workers:
        first = Trainer(config, make_data(), workers)
        epochs = first.epochs()
        rates = [next(epochs).learning_rate for _ in range(3)]
        second = Trainer(config, make_data(), workers)
        second.restore(first.checkpoint())
        rates += [report.learning_rate for report in second.epochs()]
    assert rates == pytest.approx([0.1, 0.1, 0.01, 0.01])


def test_a_checkpoint_of_another_network_is_refused_whole() -> None:
    with Workers(1) as workers:
        small = Trainer(make_config("network[7].dense.out_features=7"), make_data(), workers)
        trainer = Trainer(make_config(), make_data(), workers)
        before = all_arrays(trainer)
        with pytest.raises(CheckpointError, match=r"7/weight: expected float32 \(8, 12\)"):
            trainer.restore(small.checkpoint())
        assert same_bits(before, all_arrays(trainer))


def test_clipping_bounds_the_length_of_a_step() -> None:
    config = make_config("optimizer.sgd.learning_rate=1", "training.clip_norm=0.01", epochs=1)
    with Workers(1) as workers:
        trainer = Trainer(config, make_data(), workers)
        before = all_arrays(trainer)

        def check(report: StepReport) -> None:
            nonlocal before
            after = all_arrays(trainer)
            moved = [after[name] - before[name] for name in after if name.startswith("parameters")]
            assert math.sqrt(sum(float(np.sum(m.astype(np.float64) ** 2)) for m in moved)) < 0.0101
            before = after

        for _ in trainer.epochs(check):
            pass


def test_a_label_beyond_the_classes_is_named() -> None:
    data = make_data()
    labels = data.train.labels.copy()
    labels[17] = 4
    wrong = TrainingData(
        Split(data.train.images, labels), data.validation, data.normalization, data.image_shape, 4
    )
    with (
        Workers(2) as workers,
        pytest.raises(LabelError, match=r"4 is out of range for 4 classes \(0 to 3\)"),
    ):
        list(Trainer(make_config(), wrong, workers).epochs())


def test_batches_cover_every_image_once_and_the_last_is_short() -> None:
    counts: list[int] = []

    def note(report: StepReport) -> None:
        counts.append(report.n_images)

    with Workers(1) as workers:
        for _ in Trainer(make_config(epochs=1), make_data(100), workers).epochs(note):
            pass
    assert counts == [32, 64, 96, 100]


def test_a_batch_larger_than_the_data_is_one_batch() -> None:
    counts: list[int] = []

    def note(report: StepReport) -> None:
        counts.append(report.n_images)

    with Workers(1) as workers:
        for _ in Trainer(make_config(epochs=1), make_data(3), workers).epochs(note):
            pass
    assert counts == [3]


def test_early_stopping_waits_for_its_patience() -> None:
    config = make_config(
        "training.early_stopping.patience=2",
        "optimizer.sgd.learning_rate=1e-9",
        "data.validation_size=40",
        epochs=9,
        schedule="constant",
    )
    with Workers(1) as workers:
        trainer = Trainer(config, make_data(), workers)
        reports = list(trainer.epochs())
    # a rate of next to nothing never improves the accuracy; the loss may still creep down
    best = best_epoch([report.to_dict() for report in reports])
    assert len(reports) == min(best + 2, 9)
    assert trainer.is_finished


def line(epoch: int, accuracy: float | None, loss: float | None) -> dict[str, float | None]:
    return {"epoch": epoch, "validation_accuracy": accuracy, "validation_loss": loss}


@pytest.mark.parametrize(
    ("lines", "best"),
    [
        ([], 0),
        ([line(1, 0.5, 1.0), line(2, 0.7, 1.0), line(3, 0.6, 0.1)], 2),
        ([line(1, 0.7, 1.0), line(2, 0.7, 0.9), line(3, 0.7, 0.95)], 2),
        ([line(1, 0.7, 0.9), line(2, 0.7, 0.9)], 1),
        ([line(1, None, None), line(2, None, None)], 2),
    ],
)
def test_best_is_accuracy_then_loss_then_the_earlier_epoch(
    lines: list[dict[str, float | None]], best: int
) -> None:
    assert best_epoch(lines) == best
