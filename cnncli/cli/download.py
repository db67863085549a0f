"""``cnncli download``: the files of a data set known by name, verified."""

from __future__ import annotations

import difflib
from pathlib import Path

import click

from cnncli.cli import formats
from cnncli.cli.arguments import json_option, path_option
from cnncli.cli.progress import DownloadProgress
from cnncli.cli.terminal import Stream, notices, results, write_json
from cnncli.data import CATALOG, KnownDataset, cache_directory
from cnncli.data.fetch import AddressError, check_address
from cnncli.data.mirrors import PlacedFile, download_dataset


def _known_dataset(ctx: click.Context, param: click.Parameter, value: str) -> KnownDataset:
    if value in CATALOG:
        return CATALOG[value]
    near = difflib.get_close_matches(value.lower().replace("_", "-"), CATALOG, n=1)
    suggestion = f"; did you mean {near[0]}?" if near else ""
    raise click.BadParameter(f"expected {' or '.join(CATALOG)}, got {value}{suggestion}", ctx, param)


def _mirror(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    try:
        check_address(value)
    except AddressError as error:
        raise click.BadParameter(f"{value}: {error}", ctx, param) from None
    return value


@click.command()
@click.argument("dataset", metavar="DATASET", callback=_known_dataset)
@path_option(
    "--directory",
    metavar="DIR",
    summary="Where to put the files, instead of the cache. What is there is never overwritten.",
)
@click.option(
    "--mirror",
    metavar="URL",
    callback=_mirror,
    help="Directory on a server to fetch from, and from no other; plain http will do, since the content "
    "is verified.",
)
@click.option("--quiet", is_flag=True, help="Print only the result.")
@json_option()
def download(
    dataset: KnownDataset, directory: Path | None, mirror: str | None, quiet: bool, as_json: bool
) -> None:
    """Download a data set and verify it.

    DATASET is mnist or fashion-mnist. Files that are there already, gzipped or not, are verified and
    kept. In the cache directory, where train and eval look by themselves, a damaged file is fetched
    again; in a directory that you name it is refused and left alone.

    Behind a proxy, set https_proxy and http_proxy. For a classroom, run python3 -m http.server in a
    directory with the four files, and give --mirror http://HOST:8000/ to the others.
    """
    place = cache_directory(dataset.name) if directory is None else directory
    with DownloadProgress(Stream(None) if quiet else notices()) as progress:
        files = download_dataset(
            dataset,
            place,
            mirrors=() if mirror is None else (mirror,),
            replace_damaged=directory is None,
            listener=progress,
        )
    if as_json:
        write_json(_as_json(dataset, place, files))
    else:
        results().write(_verdict(dataset, place, files))


def _verdict(dataset: KnownDataset, directory: Path, files: list[PlacedFile]) -> str:
    n_downloaded = sum(file.url is not None for file in files)
    origin = f"{n_downloaded} downloaded, {len(files) - n_downloaded} there before"
    return f"{dataset.title}: {formats.counted(len(files), 'file')} verified in {directory} ({origin})"


def _as_json(dataset: KnownDataset, directory: Path, files: list[PlacedFile]) -> dict[str, object]:
    return {
        "dataset": dataset.name,
        "directory": str(directory),
        "files": [
            {"path": str(file.path), "sha256": file.known.sha256, "downloaded_from": file.url}
            for file in files
        ],
    }
