"""An evaluation in words and tables."""

from __future__ import annotations

import numpy as np

from cnncli.cli import formats
from cnncli.cli.streams import Stream
from cnncli.cli.tables import Column, table
from cnncli.training import Evaluation

# a wider matrix fits no screen
MAX_MATRIX_CLASSES = 26

CLASS_COLUMNS = (Column("class"), Column("precision"), Column("recall"), Column("f1"), Column("images"))


def verdict(split: str, evaluation: Evaluation) -> str:
    """Word the result in one line, the same after training and in an evaluation."""
    n_wrong = evaluation.examples - int(np.trace(evaluation.confusion_matrix))
    images = formats.counted(evaluation.examples, "image")
    return (
        f"{split} accuracy {formats.percent(evaluation.accuracy)}  "
        f"({formats.count(n_wrong)} of {images} wrong)  loss {formats.loss(evaluation.loss)}"
    )


def write_evaluation(split: str, evaluation: Evaluation, stream: Stream) -> None:
    """Write the verdict, the scores of every class, and what was taken for what."""
    stream.write(stream.bold(verdict(split, evaluation)))
    stream.write()
    _write_table(_class_table(evaluation), stream)
    stream.write()
    if len(evaluation.confusion_matrix) <= MAX_MATRIX_CLASSES:
        stream.write("confusion matrix: rows are true classes, columns are predictions")
        _write_table(_matrix_table(evaluation), stream)
    else:
        stream.write(f"the confusion matrix of {len(evaluation.confusion_matrix)} classes is in --json")
    stream.write()
    stream.write(_most_frequent_confusion(evaluation))


def _write_table(lines: list[str], stream: Stream) -> None:
    heads, *rows = lines
    stream.write(stream.bold(heads))
    for row in rows:
        stream.write(row)


def _class_table(evaluation: Evaluation) -> list[str]:
    rows = [
        [
            str(scores.label),
            formats.percent(scores.precision),
            formats.percent(scores.recall),
            formats.percent(scores.f1),
            formats.count(scores.support),
        ]
        for scores in evaluation.per_class
    ]
    return table(CLASS_COLUMNS, rows)


def _matrix_table(evaluation: Evaluation) -> list[str]:
    matrix = evaluation.confusion_matrix
    width = max(3, len(str(matrix.max())))
    columns = [Column("class"), *(Column(str(label), width=width) for label in range(len(matrix)))]
    # zeros would hide what there is to see
    rows = [
        [str(label), *(str(entry) if entry else "." for entry in row)] for label, row in enumerate(matrix)
    ]
    return table(columns, rows)


def _most_frequent_confusion(evaluation: Evaluation) -> str:
    mistakes = evaluation.confusion_matrix.copy()
    np.fill_diagonal(mistakes, 0)
    true, predicted = np.unravel_index(int(mistakes.argmax()), mistakes.shape)
    if not mistakes[true, predicted]:
        return "no image was taken for another class"
    times = formats.counted(int(mistakes[true, predicted]), "time")
    return f"most frequent confusion: {true} taken for {predicted}, {times}"
