"""The data set that a checkpoint was trained on, found again."""

from __future__ import annotations

from pathlib import Path

from cnncli.data import CATALOG, DownloadListener, Part, Split, load_split, split_validation
from cnncli.data.catalog import KINDS
from cnncli.data.sources import find_file
from cnncli.errors import DataError, UsageError
from cnncli.training import Checkpoint


def load_recorded_split(
    checkpoint: Checkpoint, split: str, directory: Path | None, listener: DownloadListener
) -> Split:
    """Load the test, validation or train split of the run that left a checkpoint.

    Parameters
    ----------
    directory : where the user says that the data is; None looks where the run found it, then, for a
        data set known by name, in the cache directory, and downloads what is missing there
    listener : is told of a download

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
