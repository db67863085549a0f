"""Predictions in a table, and pictures as the network sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cnncli.cli import formats
from cnncli.cli.streams import Stream
from cnncli.cli.tables import Column, table
from cnncli.explain.grids import picture

N_RUNNERS_UP = 2
COLUMNS = (Column("image", "<"), Column("class"), Column("probability"), Column("runners-up", "<"))


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a network makes of one picture.

    Attributes
    ----------
    file, index : where the picture is
    name : of the picture, the file or ``FILE:INDEX``
    probabilities : ndarray of shape (K,)
    """

    file: str
    index: int
    name: str
    probabilities: NDArray[np.float64]

    @property
    def ranking(self) -> list[int]:
        """The classes, the most probable first; of equal ones the lower first, as in an evaluation."""
        ranking: list[int] = np.argsort(-self.probabilities, kind="stable").tolist()
        return ranking

    def to_dict(self) -> dict[str, Any]:
        """Give plain numbers and lists, ready for JSON."""
        best = self.ranking[0]
        return {
            "file": self.file,
            "index": self.index,
            "class": best,
            "probability": float(self.probabilities[best]),
            "probabilities": self.probabilities.tolist(),
        }


def write_predictions(predictions: Sequence[Prediction], stream: Stream) -> None:
    """Write a line for every picture."""
    head, *rows = table(COLUMNS, [_row(prediction) for prediction in predictions])
    stream.write(stream.bold(head))
    for row in rows:
        stream.write(row)


def write_seen(predictions: Sequence[Prediction], images: NDArray[Any], stream: Stream) -> None:
    """Draw the images (N, C, H, W), the mean of their channels in shades."""
    for prediction, image in zip(predictions, images, strict=True):
        C, H, W = image.shape
        stream.write(stream.bold(f"{prediction.name}: class {prediction.ranking[0]}") + f"  {C} x {H} x {W}")
        for line in picture(image.mean(axis=0, dtype=np.float64)):
            stream.write(line)
        stream.write()


def _row(prediction: Prediction) -> list[str]:
    best, *others = prediction.ranking
    return [
        prediction.name,
        str(best),
        formats.percent(prediction.probabilities[best]),
        ", ".join(_share(prediction, label) for label in others[:N_RUNNERS_UP]),
    ]


def _share(prediction: Prediction, label: int) -> str:
    return f"{label} ({formats.percent(prediction.probabilities[label])})"
