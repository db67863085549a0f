"""The table of the epochs: as wide as a terminal at most, in columns."""

from __future__ import annotations

import io

import pytest

from cnncli.cli.progress import Progress
from cnncli.cli.terminal import Stream
from cnncli.training import EpochReport


def rows(n_epochs: int, *accuracies: float) -> list[str]:
    """Write an epoch for each accuracy, every other one as the best, with the widest numbers there are."""
    file = io.StringIO()
    with Progress(Stream(file), n_epochs, has_validation=True) as progress:
        for index, accuracy in enumerate(accuracies):
            report = EpochReport(
                epoch=n_epochs,
                train_loss=123.4567,
                train_accuracy=1.0,
                validation_loss=0.1234,
                validation_accuracy=accuracy,
                learning_rate=1.23e-5,
                seconds=12345.6,
                images_per_second=123456.0,
            )
            progress.epoch(report, is_best=index % 2 == 0)
    return file.getvalue().splitlines()


@pytest.mark.parametrize("n_epochs", [1, 20, 999])
def test_no_row_is_wider_than_a_terminal(n_epochs: int) -> None:
    assert max(map(len, rows(n_epochs, 1.0, 1.0, 0.9876, 0.05))) <= 80


def test_the_marks_stand_below_one_another() -> None:
    legend, head, *lines = rows(100, 1.0, 0.9876, 0.9876, 0.05, 0.05)
    assert legend == "* best epoch so far"
    assert {line.find("*") for line in lines} == {head.index("val acc") + len("val acc") - 1, -1}
    assert [line.count("*") for line in lines] == [1, 0, 1, 0, 1]
    assert "100.00 %*" in lines[0] and " 98.76 % *" in lines[2] and "  5.00 % *" in lines[4]
