"""Loading a known data set from the cache, which fills and mends itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cnncli.data import describe_dataset, load_dataset
from cnncli.errors import DataError
from tests.download.conftest import with_mirrors
from tests.download.server import LocalServer
from tests.download.small_dataset import Heard, SmallDataset

IMAGES = "train-images-idx3-ubyte"


@pytest.fixture
def served(mnist: SmallDataset, server: LocalServer, monkeypatch: pytest.MonkeyPatch) -> SmallDataset:
    """Offer MNIST on the server, its only mirror."""
    return with_mirrors(mnist, monkeypatch, mnist.serve(server))


def pixels(small: SmallDataset, name: str) -> bytes:
    return small.raw[name][16:]


def test_an_empty_cache_is_filled_once(
    served: SmallDataset, server: LocalServer, cache: Path, heard: Heard
) -> None:
    first = load_dataset("mnist", None, heard)
    assert first.train.images.tobytes() == pixels(served, IMAGES)
    assert first.test.labels.tolist() == [n % 10 for n in range(20)]
    assert len(server.requests) == 4
    assert [path.parent for path in heard.paths] == [cache] * 4
    again = load_dataset("mnist")
    assert len(server.requests) == 4
    np.testing.assert_array_equal(again.train.images, first.train.images)


def test_a_description_fetches_nothing(served: SmallDataset, server: LocalServer, cache: Path) -> None:
    assert describe_dataset("mnist").train_size == 40
    assert server.requests == [] and not cache.exists()


@pytest.mark.parametrize("name", [IMAGES, f"{IMAGES}.gz", "train-images.idx3-ubyte.gz"])
@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda mnist, fashion: mnist.gzipped(IMAGES)[:4000], "its compressed data ends early"),
        (lambda mnist, fashion: b"", "this is an empty file"),
        (lambda mnist, fashion: mnist.raw[IMAGES][:-1] + b"\x55", "it is damaged: the SHA-256"),
        (lambda mnist, fashion: fashion.gzipped(IMAGES), "this is Fashion-MNIST's train-images file"),
    ],
    ids=["half", "empty", "flipped", "swapped"],
)
def test_a_damaged_file_is_named_for_what_it_is_and_fetched_again(
    served: SmallDataset,
    fashion: SmallDataset,
    server: LocalServer,
    cache: Path,
    heard: Heard,
    name: str,
    damage: Callable[[SmallDataset, SmallDataset], bytes],
    words: str,
) -> None:
    served.write(cache)
    (cache / f"{IMAGES}.gz").unlink()
    (cache / name).write_bytes(damage(served, fashion))
    dataset = load_dataset("mnist", None, heard)
    assert dataset.train.images.tobytes() == pixels(served, IMAGES)
    assert server.requests == [f"/{IMAGES}.gz"]
    assert heard.notices[0].startswith(f"{cache / name}: {words}")
    assert sorted(path.name for path in cache.iterdir()) == sorted(f"{name}.gz" for name in served.names)


def test_files_placed_by_hand_are_taken(served: SmallDataset, server: LocalServer, cache: Path) -> None:
    served.write(cache)
    (cache / f"{IMAGES}.gz").rename(cache / "train-images.idx3-ubyte.gz")
    assert len(load_dataset("mnist").train) == 40
    assert server.requests == []


@pytest.mark.parametrize("state", ["missing", "damaged"])
def test_a_directory_that_the_user_named_is_only_read(
    served: SmallDataset, server: LocalServer, cache: Path, tmp_path: Path, state: str
) -> None:
    directory = served.write(tmp_path / "mine")
    (directory / f"{IMAGES}.gz").unlink()
    if state == "damaged":
        (directory / IMAGES).write_bytes(b"<html>")
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    with pytest.raises(DataError) as caught:
        load_dataset("mnist", directory)
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == before
    assert server.requests == [] and not cache.exists()
    if state == "missing":
        assert f"cnncli download mnist --directory {directory}" in str(caught.value)
