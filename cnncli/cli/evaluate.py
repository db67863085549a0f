"""``cnncli eval``: a checkpoint on images."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from cnncli.cli import formats
from cnncli.cli.arguments import PathText, json_option, path_option, threads_option
from cnncli.cli.progress import DownloadProgress
from cnncli.cli.run_plan import checkpoint_file, make_workers
from cnncli.cli.terminal import Column, Stream, notices, results, table, write_json
from cnncli.data import CATALOG, DownloadListener, Part, Split, load_split, split_validation
from cnncli.data.catalog import KINDS
from cnncli.data.sources import find_file
from cnncli.errors import DataError, DivergenceError, UsageError
from cnncli.training import Checkpoint, Evaluation, evaluate, load_checkpoint


@click.command("eval")
@click.argument("checkpoint", metavar="CHECKPOINT", type=PathText(path_type=Path))
@click.option(
    "--split",
    type=click.Choice(["test", "validation", "train"]),
    default="test",
    metavar="NAME",
    help="Images to evaluate on: test, which is the default, or the validation or train images of the run.",
)
@path_option(
    "--data-dir",
    "data_directory",
    metavar="DIR",
    summary="Where the data is, if not where the run found it or in the cache.",
)
@threads_option()
@json_option()
def evaluate_checkpoint(
    checkpoint: Path, split: str, data_directory: Path | None, threads: int | None, as_json: bool
) -> None:
    """Evaluate a checkpoint on a data set.

    CHECKPOINT is a file, or a run directory, which stands for its best. Nothing else is needed: the
    file says what the network is and what it was trained on.
    """
    file = checkpoint_file(checkpoint)
    loaded = load_checkpoint(file)
    network = loaded.build_network()
    with DownloadProgress(notices()) as progress:
        images = load_recorded_split(loaded, split, data_directory, progress)
    with make_workers(threads, loaded.config) as workers:
        try:
            evaluation = evaluate(network, images, loaded.normalization, workers)
        except DivergenceError as error:
            raise DivergenceError(f"{file}: {error}") from None
    if as_json:
        write_json(evaluation.to_dict())
        return
    place, n_epochs = data_place(loaded, data_directory), loaded.config.training.epochs
    notices().write(f"{file}: epoch {loaded.epoch} of {n_epochs}, {split} images of {place}")
    write_evaluation(split, evaluation, results())


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


def load_recorded_split(
    checkpoint: Checkpoint, split: str, directory: Path | None, listener: DownloadListener
) -> Split:
    """Load the test, validation or train split of the run that left a checkpoint.

    Parameters
    ----------
    directory : where the user says that the data is; None looks where the run found it, then, for a
        data set known by name, in the cache directory, and downloads what is missing there
    listener : is notified of a download

    Raises
    ------
    UsageError : the run had no validation set
    DataError : the data is missing, damaged, or not such as the network takes
    """
    config = checkpoint.config
    n_validation = config.data.validation_size
    if split == "validation" and n_validation == 0:
        raise UsageError(
            "--split validation: the run set no images aside (data.validation_size: 0); take test or train"
        )
    part: Part = "test" if split == "test" else "train"
    if config.data.dataset in CATALOG:
        images = _load_known(config.data.dataset, config.data.directory, directory, part, listener)
    else:
        images = _load_own(Path(config.data.dataset), directory, part)
    _check_fit(images, checkpoint)
    if part == "test":
        return images
    train, validation = split_validation(images, n_validation, config.seed)
    if split == "train":
        return train
    assert validation is not None
    return validation


def _load_known(
    dataset: str, recorded: Path | None, named: Path | None, part: Part, listener: DownloadListener
) -> Split:
    if named is not None:
        return load_split(dataset, named, part)
    if recorded is None or all(find_file(recorded, part, kind) for kind in KINDS):
        return load_split(dataset, recorded, part, listener)
    try:
        return load_split(dataset, None, part, listener)
    except DataError as error:
        raise DataError(
            f"{recorded}: the files of {dataset} are no longer there, where the run found them; say where "
            f"they are with --data-dir DIR\n{error}"
        ) from None


def data_place(checkpoint: Checkpoint, directory: Path | None) -> str:
    """Say in words which data `load_recorded_split` reads."""
    dataset = checkpoint.config.data.dataset
    if dataset not in CATALOG:
        return str(_own_path(Path(dataset), directory))
    return dataset if directory is None else f"{dataset} in {directory}"


def _own_path(recorded: Path, named: Path | None) -> Path:
    if named is not None and recorded.suffix == ".npz" and named.is_dir():
        return named / recorded.name
    return recorded if named is None else named


def _load_own(recorded: Path, named: Path | None, part: Part) -> Split:
    """Load images of the user's own, from where the run found them or from where they are now."""
    path = _own_path(recorded, named)
    if not path.exists():
        raise DataError(f"{path}: the data set of the run is not here; say where it is with --data-dir")
    return load_split(str(path), None, part)


def _check_fit(images: Split, checkpoint: Checkpoint) -> None:
    shape, dataset = images.images.shape[1:], checkpoint.config.data.dataset
    if shape != checkpoint.image_shape:
        raise DataError(
            f"expected images of shape (C, H, W) = {checkpoint.image_shape}, as the network was trained on, "
            f"got {shape}; is this {dataset}?"
        )
    highest = int(images.labels.max())
    if highest >= checkpoint.class_count:
        raise DataError(
            f"expected labels from 0 to {checkpoint.class_count - 1}, as the network was trained on, "
            f"got {highest}; is this {dataset}?"
        )
