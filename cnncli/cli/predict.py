"""``cnncli predict``: a checkpoint on pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from cnncli.cli import formats
from cnncli.cli.arguments import PathText, count_option, json_option
from cnncli.cli.run_plan import checkpoint_file
from cnncli.cli.terminal import Column, Stream, notices, results, table, write_json
from cnncli.data.pictures import Preparation, read_pictures
from cnncli.errors import DataError, UsageError
from cnncli.explain.grids import picture
from cnncli.training import load_checkpoint
from cnncli.training.evaluation import predict

FAILED = 1
DEFAULT_LIMIT = 10


@click.command("predict")
@click.argument("checkpoint", metavar="CHECKPOINT", type=PathText(path_type=Path))
@click.argument("names", metavar="IMAGE...", type=PathText(), nargs=-1, required=True)
@click.option("--show", is_flag=True, help="Draw every picture as the network sees it.")
@count_option(
    "--limit",
    summary=f"Most pictures to take from a file that holds many; the first {DEFAULT_LIMIT} by default.",
)
@json_option()
def predict_pictures(
    checkpoint: Path, names: Sequence[str], show: bool, limit: int | None, as_json: bool
) -> None:
    """Recognise the digit in a picture.

    CHECKPOINT is a file, or a run directory, which stands for its best. IMAGE is a picture (PNG, JPEG,
    PGM, BMP, GIF, TIFF, WebP; these need Pillow: pip install "cnncli[images]"), or an array of one or many
    pictures: .npy of shape (H, W), (N, H, W) or (N, C, H, W), or IDX. FILE:INDEX is one of many, counted
    from 0.

    For a network trained on MNIST, or on other bright strokes on black of 28 x 28 pixels, a picture may
    be a photo of one digit on paper: the ground, dark or light, is taken away, the digit cut out, scaled
    and centred as MNIST's digits were. For any other network a picture must have the size of the
    training images, and goes in as it is.
    """
    if show and as_json:
        raise UsageError("--show: expected no --json, which holds no drawings; leave out one of them")
    loaded = load_checkpoint(checkpoint_file(checkpoint))
    network = loaded.build_network()
    gathered = _Gathered(Preparation(loaded.image_shape, loaded.normalization))
    for name in names:
        gathered.add(name, limit or DEFAULT_LIMIT)
    if gathered.images:
        images = np.stack(gathered.images)
        rows = predict(network, images, loaded.normalization)
        predictions = [Prediction(*place, row) for place, row in zip(gathered.places, rows, strict=True)]
        if as_json:
            write_json([prediction.to_dict() for prediction in predictions])
        else:
            if show:
                write_seen(predictions, images, results())
            write_predictions(predictions, results())
    if gathered.has_failed:
        click.get_current_context().exit(FAILED)


class _Gathered:
    """Images for the network, where each came from, and whether any could not be had."""

    def __init__(self, preparation: Preparation) -> None:
        self.images: list[np.ndarray] = []
        self.places: list[tuple[str, int, str]] = []
        self.has_failed = False
        self._preparation = preparation

    def add(self, name: str, limit: int) -> None:
        """Read the pictures of a file; say what is wrong with those that cannot be used."""
        try:
            pictures = read_pictures(name, self._preparation.image_shape, limit)
        except DataError as error:
            self._fail(error)
            return
        n_read = len(pictures.images)
        if pictures.is_cut:
            notices().write(
                f"{pictures.path}: the first {n_read} of {formats.counted(pictures.n_stored, 'picture')}; "
                f"--limit takes more, {pictures.path}:INDEX another"
            )
        for place in range(n_read):
            try:
                self.images.append(self._preparation.prepare(pictures, place))
            except DataError as error:
                self._fail(error)
                continue
            self.places.append((str(pictures.path), pictures.first + place, pictures.where(place)))

    def _fail(self, error: DataError) -> None:
        self.has_failed = True
        notices().write(f"{notices().red('error:')} {error}")


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
