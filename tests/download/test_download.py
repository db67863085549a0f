"""Downloading a data set into a directory."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cnncli.data import Transfer
from cnncli.data.mirrors import download_dataset
from cnncli.errors import DataError
from tests.download.conftest import Waits
from tests.download.server import Answer, LocalServer, content, redirect, stall, status, text
from tests.download.small_dataset import Heard, SmallDataset

IMAGES = "train-images-idx3-ubyte"


@pytest.fixture
def second_server() -> Iterator[LocalServer]:
    with LocalServer() as local:
        yield local


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def offered(small: SmallDataset) -> dict[str, bytes]:
    return {f"{name}.gz": small.gzipped(name) for name in small.names}


def test_all_four_files(mnist: SmallDataset, server: LocalServer, heard: Heard, tmp_path: Path) -> None:
    mirror = mnist.serve(server)
    files = download_dataset(mnist.known, tmp_path / "a" / "b", mirrors=[mirror], listener=heard)
    directory = tmp_path / "a" / "b"
    assert contents(directory) == offered(mnist)
    assert [file.path for file in files] == heard.paths == [directory / f"{name}.gz" for name in mnist.names]
    assert [file.url for file in files] == [f"{mirror}/{name}.gz" for name in mnist.names]
    assert heard.notices == [
        f"downloading MNIST (train-images, train-labels, t10k-images, t10k-labels) to {directory}"
    ]


def test_a_server_may_unpack_the_files(mnist: SmallDataset, server: LocalServer, tmp_path: Path) -> None:
    mirror = mnist.serve(server)
    for name in mnist.names:
        server.answers[f"/{name}.gz"] = [content(mnist.raw[name])]
    download_dataset(mnist.known, tmp_path, mirrors=[f"{mirror}/"])
    assert contents(tmp_path) == mnist.raw


def test_the_second_mirror_gives_what_the_first_refuses(
    mnist: SmallDataset,
    server: LocalServer,
    second_server: LocalServer,
    waits: Waits,
    heard: Heard,
    tmp_path: Path,
) -> None:
    """one warning for all four files, since the mirror that works is then tried first."""
    server.answers[f"/{IMAGES}.gz"] = [status(403)]
    second = mnist.serve(second_server, "/mnist")
    download_dataset(mnist.known, tmp_path, mirrors=[server.url, second], listener=heard)
    assert contents(tmp_path) == offered(mnist)
    assert heard.notices[1:] == [
        f"{server.url}/{IMAGES}.gz: it answers 403 Forbidden; trying another address"
    ]
    assert server.requests == [f"/{IMAGES}.gz"] and len(second_server.requests) == 4
    assert waits.seconds == []


def test_when_no_mirror_has_it_all_is_said_and_nothing_left(
    mnist: SmallDataset,
    server: LocalServer,
    second_server: LocalServer,
    waits: Waits,
    heard: Heard,
    tmp_path: Path,
) -> None:
    server.answers[f"/{IMAGES}.gz"] = second_server.answers[f"/a/{IMAGES}.gz"] = [status(503)]
    mirrors = [server.url, f"{second_server.url}/a"]
    directory = tmp_path / "data"
    with pytest.raises(DataError) as caught:
        download_dataset(mnist.known, directory, mirrors=mirrors, listener=heard)
    message = str(caught.value)
    for mirror in mirrors:
        assert f"\n  {mirror}/{IMAGES}.gz: it answers 503 Service Unavailable (3 attempts)\n" in message
    assert message.startswith(f"{directory}: MNIST's {IMAGES} cannot be downloaded:\n")
    assert all(f"{name}.gz" in message for name in mnist.names)
    assert mnist.known.mirrors[0] in message  # where to get them by hand
    assert "offline: set data.directory" in message and "data/mnist" in message
    assert "cnncli download mnist --mirror URL" in message
    assert list(tmp_path.iterdir()) == []
    assert waits.seconds == [1, 2, 1, 2]


def flipped(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


# what a mirror may answer to a request for the images, and what is said of it
WRONG_ANSWERS: dict[str, tuple[Callable[[SmallDataset, SmallDataset], Answer], str]] = {
    "403": (lambda mnist, fashion: status(403), "it answers 403 Forbidden"),
    "503": (lambda mnist, fashion: status(503), "it answers 503 Service Unavailable (3 attempts)"),
    "html": (
        lambda mnist, fashion: content(b"<html><body>Please sign in</body></html>"),
        "this is an HTML or XML page, as a failed download leaves it",
    ),
    "empty": (lambda mnist, fashion: content(b""), "this is an empty file"),
    "truncated": (
        lambda mnist, fashion: content(mnist.gzipped(IMAGES)[:3000], length=len(mnist.gzipped(IMAGES))),
        "it ended after 3000 of ",
    ),
    "truncated, its length in keeping": (
        lambda mnist, fashion: content(mnist.gzipped(IMAGES)[:3000]),
        "its compressed data ends early",
    ),
    "wrong length": (
        lambda mnist, fashion: content(mnist.gzipped(IMAGES), length=3000),
        "its compressed data ends early",
    ),
    "flipped byte": (
        lambda mnist, fashion: content(gzip.compress(flipped(mnist.raw[IMAGES], 9999))),
        "it is damaged: the SHA-256 of its uncompressed content is ",
    ),
    "another data set": (
        lambda mnist, fashion: content(fashion.gzipped(IMAGES)),
        "this is Fashion-MNIST's train-images file",
    ),
    "another file": (
        lambda mnist, fashion: content(mnist.gzipped("t10k-images-idx3-ubyte")),
        "this is MNIST's t10k-images file",
    ),
    "loop": (lambda mnist, fashion: redirect(f"/{IMAGES}.gz"), "it redirects more than 5 times"),
    "file": (lambda mnist, fashion: redirect("file:///etc/hosts"), "it redirects to file:///etc/hosts"),
    "stall": (lambda mnist, fashion: stall(), "nothing came within 0.3 s (3 attempts)"),
    "endless promise": (
        lambda mnist, fashion: text(b"HTTP/1.0 200 OK\r\nContent-Length: 99999999999\r\n\r\n"),
        "it declares 99999999999 bytes, at most 32431 can be right",
    ),
}


@pytest.mark.parametrize("case", WRONG_ANSWERS)
def test_a_wrong_answer_leads_to_the_next_mirror_or_leaves_nothing(
    mnist: SmallDataset,
    fashion: SmallDataset,
    server: LocalServer,
    second_server: LocalServer,
    heard: Heard,
    tmp_path: Path,
    case: str,
) -> None:
    make, words = WRONG_ANSWERS[case]
    server.answers[f"/{IMAGES}.gz"] = [make(mnist, fashion)]
    with pytest.raises(DataError) as caught:
        download_dataset(mnist.known, tmp_path, mirrors=[server.url], listener=heard)
    assert f"\n  {server.url}/{IMAGES}.gz: {words}" in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    mirrors = [server.url, mnist.serve(second_server)]
    download_dataset(mnist.known, tmp_path, mirrors=mirrors, listener=heard)
    assert contents(tmp_path) == offered(mnist)
    warnings = [notice for notice in heard.notices if "trying another address" in notice]
    assert len(warnings) == 1 and f"{IMAGES}.gz: {words}" in warnings[0]


def test_files_that_are_there_are_recognised_in_every_form(
    mnist: SmallDataset, server: LocalServer, heard: Heard, tmp_path: Path
) -> None:
    forms = {
        "train-images.idx3-ubyte": mnist.raw["train-images-idx3-ubyte"],
        "train-labels.idx1-ubyte.gz": mnist.gzipped("train-labels-idx1-ubyte"),
        "t10k-images-idx3-ubyte": mnist.raw["t10k-images-idx3-ubyte"],
        "t10k-labels-idx1-ubyte.gz": gzip.compress(mnist.raw["t10k-labels-idx1-ubyte"], compresslevel=1),
    }
    for name, data in forms.items():
        (tmp_path / name).write_bytes(data)
    files = download_dataset(mnist.known, tmp_path, mirrors=[server.url], listener=heard)
    assert [file.path.name for file in files] == list(forms)
    assert {file.url for file in files} == {None}
    assert server.requests == [] and heard.notices == [] and contents(tmp_path) == forms


def test_what_is_missing_is_fetched_and_what_is_there_kept(
    mnist: SmallDataset, server: LocalServer, heard: Heard, tmp_path: Path
) -> None:
    kept = tmp_path / "t10k-images.idx3-ubyte"
    kept.write_bytes(mnist.raw["t10k-images-idx3-ubyte"])
    download_dataset(mnist.known, tmp_path, mirrors=[mnist.serve(server)], listener=heard)
    expected = {**offered(mnist), kept.name: mnist.raw["t10k-images-idx3-ubyte"]}
    del expected["t10k-images-idx3-ubyte.gz"]
    assert contents(tmp_path) == expected
    assert heard.notices == [f"downloading MNIST (train-images, train-labels, t10k-labels) to {tmp_path}"]


# what may be in the place of the images
DAMAGED: dict[str, tuple[Callable[[SmallDataset, SmallDataset], bytes], str]] = {
    "first half": (lambda mnist, fashion: mnist.raw[IMAGES][:15_000], "it has 15000 bytes"),
    "first half of the gzip": (lambda mnist, fashion: mnist.gzipped(IMAGES)[:9000], "ends early"),
    "empty": (lambda mnist, fashion: b"", "this is an empty file"),
    "flipped byte": (lambda mnist, fashion: flipped(mnist.raw[IMAGES], 9999), "it is damaged: the SHA-256"),
    "swapped": (lambda mnist, fashion: fashion.raw[IMAGES], "this is Fashion-MNIST's train-images file"),
}
damaged_files = pytest.mark.parametrize("case", DAMAGED)
names_of_images = pytest.mark.parametrize("name", [IMAGES, f"{IMAGES}.gz", "train-images.idx3-ubyte"])


@damaged_files
@names_of_images
def test_a_damaged_file_is_replaced_where_that_is_asked_for(
    mnist: SmallDataset,
    fashion: SmallDataset,
    server: LocalServer,
    heard: Heard,
    tmp_path: Path,
    case: str,
    name: str,
) -> None:
    make, words = DAMAGED[case]
    mnist.write(tmp_path)
    (tmp_path / f"{IMAGES}.gz").unlink()
    (tmp_path / name).write_bytes(make(mnist, fashion))
    download_dataset(
        mnist.known, tmp_path, mirrors=[mnist.serve(server)], replace_damaged=True, listener=heard
    )
    assert contents(tmp_path) == offered(mnist)
    assert server.requests == [f"/{IMAGES}.gz"]
    assert heard.notices[0].startswith(f"{tmp_path / name}: ")
    assert words in heard.notices[0] and heard.notices[0].endswith("; it is fetched again")


@damaged_files
@names_of_images
def test_a_damaged_file_is_refused_and_left_alone_elsewhere(
    mnist: SmallDataset,
    fashion: SmallDataset,
    server: LocalServer,
    heard: Heard,
    tmp_path: Path,
    case: str,
    name: str,
) -> None:
    make, words = DAMAGED[case]
    (tmp_path / name).write_bytes(make(mnist, fashion))
    with pytest.raises(DataError) as caught:
        download_dataset(mnist.known, tmp_path, mirrors=[mnist.serve(server)], listener=heard)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / name}: ") and words in message
    assert "expected MNIST's train-images file; it is left alone" in message
    assert contents(tmp_path) == {name: make(mnist, fashion)}
    assert server.requests == [] and heard.notices == []


def test_all_damaged_files_are_named_at_once(mnist: SmallDataset, tmp_path: Path) -> None:
    for name in mnist.names[:3]:
        (tmp_path / name).write_bytes(b"<html>")
    with pytest.raises(DataError) as caught:
        download_dataset(mnist.known, tmp_path)
    assert [line.partition(":")[0] for line in str(caught.value).splitlines()] == [
        str(tmp_path / name) for name in mnist.names[:3]
    ]


def test_a_damaged_file_that_cannot_be_replaced_stays_and_is_named(
    mnist: SmallDataset, server: LocalServer, tmp_path: Path
) -> None:
    damaged = tmp_path / IMAGES
    damaged.write_bytes(b"<html>")
    with pytest.raises(DataError, match="remove it") as caught:
        download_dataset(mnist.known, tmp_path, mirrors=[server.url], replace_damaged=True)
    assert f"{damaged}: this is an HTML or XML page" in str(caught.value)
    assert contents(tmp_path) == {IMAGES: b"<html>"}


def test_an_interrupt_leaves_whole_files_alone(
    mnist: SmallDataset, server: LocalServer, tmp_path: Path
) -> None:
    class Interrupting(Heard):
        def received(self, transfer: Transfer) -> None:
            if "t10k-images" in transfer.url and transfer.n_received:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download_dataset(mnist.known, tmp_path, mirrors=[mnist.serve(server)], listener=Interrupting())
    expected = offered(mnist)
    assert contents(tmp_path) == {f"{name}.gz": expected[f"{name}.gz"] for name in mnist.names[:2]}
    files = download_dataset(mnist.known, tmp_path, mirrors=[mnist.serve(server)])
    assert [file.url is None for file in files] == [True, True, False, False]


def test_only_what_is_still_missing_is_to_be_placed_by_hand(
    mnist: SmallDataset, server: LocalServer, tmp_path: Path
) -> None:
    mirror = mnist.serve(server)
    server.answers["/t10k-images-idx3-ubyte.gz"] = [status(404)]
    with pytest.raises(DataError) as caught:
        download_dataset(mnist.known, tmp_path, mirrors=[mirror])
    (by_hand,) = [line for line in str(caught.value).splitlines() if "by hand" in line]
    assert "put t10k-images-idx3-ubyte.gz, t10k-labels-idx1-ubyte.gz into that directory" in by_hand


def test_a_file_in_place_of_the_directory(mnist: SmallDataset, server: LocalServer, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    with pytest.raises(DataError, match="expected a directory, there is a file"):
        download_dataset(mnist.known, tmp_path / "a", mirrors=[server.url])
    assert server.requests == []


def test_a_place_that_cannot_be_written(mnist: SmallDataset, server: LocalServer, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    with pytest.raises(
        DataError, match=r"a/b/train-images-idx3-ubyte.gz: cannot be written: Not a directory"
    ):
        download_dataset(mnist.known, tmp_path / "a" / "b", mirrors=[mnist.serve(server)])


@pytest.mark.parametrize("is_there", [True, False])
def test_a_rename_that_another_process_hinders(
    mnist: SmallDataset, server: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    """Windows refuses to rename over a file that is being read; it is as good if it was brought whole."""

    def refuse(self: Path, target: Path) -> Path:
        if is_there:
            target.write_bytes(self.read_bytes())
        raise PermissionError(13, "Permission denied")

    mirror = mnist.serve(server)
    monkeypatch.setattr(Path, "replace", refuse)
    if is_there:
        download_dataset(mnist.known, tmp_path, mirrors=[mirror])
        assert contents(tmp_path) == offered(mnist)
    else:
        with pytest.raises(DataError, match="cannot be written: Permission denied"):
            download_dataset(mnist.known, tmp_path, mirrors=[mirror])
        assert contents(tmp_path) == {}
