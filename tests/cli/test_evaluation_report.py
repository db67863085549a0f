"""The words and tables of an evaluation."""

from __future__ import annotations

import io

import numpy as np
import pytest

from cnncli.cli.evaluate import write_evaluation
from cnncli.cli.terminal import Stream
from cnncli.training import Evaluation


def evaluation(matrix: list[list[int]]) -> Evaluation:
    counts = np.array(matrix)
    n = int(counts.sum())
    return Evaluation(n, 0.25, int(np.trace(counts)) / n, counts)


def written(subject: Evaluation) -> list[str]:
    file = io.StringIO()
    write_evaluation("test", subject, Stream(file))
    return file.getvalue().splitlines()


def test_the_most_frequent_confusion_is_named() -> None:
    assert written(evaluation([[9, 1, 0], [0, 9, 3], [1, 0, 9]]))[-1] == (
        "most frequent confusion: 1 taken for 2, 3 times"
    )
    assert written(evaluation([[9, 1], [0, 9]]))[-1].endswith("0 taken for 1, 1 time")
    assert written(evaluation([[9, 0], [0, 9]]))[-1] == "no image was taken for another class"


def test_a_class_without_images_has_scores_of_zero() -> None:
    row = next(line for line in written(evaluation([[5, 1], [0, 0]])) if line.startswith("    1 "))
    assert row.split() == ["1", "0.00", "%", "0.00", "%", "0.00", "%", "0"]


@pytest.mark.parametrize(("n_classes", "is_shown"), [(26, True), (27, False)])
def test_a_matrix_too_wide_for_any_screen_is_left_to_json(n_classes: int, is_shown: bool) -> None:
    lines = written(evaluation(np.eye(n_classes, dtype=int).tolist()))
    assert any(line.startswith("confusion matrix:") for line in lines) is is_shown
    assert any("--json" in line for line in lines) is not is_shown
