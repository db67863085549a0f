"""``cnncli eval``: a checkpoint on images."""

from __future__ import annotations

from pathlib import Path

import click

from cnncli.cli.checkpoints import checkpoint_file
from cnncli.cli.download_progress import DownloadProgress
from cnncli.cli.evaluation_report import write_evaluation
from cnncli.cli.options import PathText, json_option, path_option, threads_option
from cnncli.cli.recorded_data import data_place, load_recorded_split
from cnncli.cli.streams import notices, results, write_json
from cnncli.cli.workers import start_workers
from cnncli.errors import DivergenceError
from cnncli.training import evaluate, load_checkpoint


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
    with start_workers(threads, loaded.config) as workers:
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
