"""``cnncli predict``."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from cnncli.data import Split, load_dataset
from cnncli.training import Workers, evaluate, load_checkpoint
from cnncli.training.evaluation import predict
from tests.cli.program import MNIST, Cnncli, make_workspace, run_program
from tests.data.made_files import idx_bytes
from tests.data.photos import photo_of

N_TRAIN = 12_000
# the network of configs/quickstart.yaml, narrower
CONFIG = """\
data: {dataset: digits.npz, validation_size: 0}
network:
  - conv2d: {out_channels: 16, kernel_size: 5}
  - max_pool2d: {kernel_size: 2}
  - relu
  - conv2d: {out_channels: 24, kernel_size: 3}
  - max_pool2d: {kernel_size: 2}
  - relu
  - flatten
  - dense: {out_features: 64}
  - relu
  - dense: {out_features: 10}
optimizer: {adam: {learning_rate: 0.006}}
schedule: {one_cycle: {warmup: 0.3}}
loss: {label_smoothing: 0.05}
training: {epochs: 2, batch_size: 64}
"""


@pytest.fixture(scope="module")
def digits() -> Split:
    """Return MNIST's test set."""
    return load_dataset("mnist", MNIST).test


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, digits: Split) -> Path:
    """Train a network on 12,000 digits of MNIST."""
    directory = tmp_path_factory.mktemp("digits")
    train = load_dataset("mnist", MNIST).train
    np.savez(
        directory / "digits.npz",
        x_train=train.images[:N_TRAIN],
        y_train=train.labels[:N_TRAIN],
        x_test=digits.images[:100],
        y_test=digits.labels[:100],
    )
    (directory / "digits.yaml").write_text(CONFIG)
    # in a process of its own, which sets up NumPy for this before it is imported
    done = run_program("train", "--config", "digits.yaml", "--run-dir", "run", cwd=directory)
    assert done.returncode == 0, done.stderr
    return directory / "run"


def sheet_with_a_one() -> NDArray[np.uint8]:
    sheet = np.full((120, 90), 225, np.uint8)
    sheet[20:95, 50:59] = 40
    return sheet


def test_test_digits_get_the_classes_of_an_evaluation(
    trained: Path, digits: Split, cnncli: Cnncli, tmp_path: Path
) -> None:
    n = 200
    checkpoint = load_checkpoint(trained / "best.npz")
    network = checkpoint.build_network()
    part = Split(digits.images[:n], digits.labels[:n])
    with Workers(1) as workers:
        evaluation = evaluate(network, part, checkpoint.normalization, workers)
    images = digits.images[:n, 0]
    np.save(tmp_path / "digits.npy", images)
    np.save(tmp_path / "floats.npy", images[:, None] / 255)
    (tmp_path / "digits.idx").write_bytes(idx_bytes(255 - images))
    documents = [
        cnncli("predict", trained, tmp_path / name, "--json", "--limit", n).json
        for name in ("digits.npy", "floats.npy", "digits.idx")
    ]
    for index in range(20):
        Image.fromarray(images[index]).save(tmp_path / f"{index}.png")
    pngs = cnncli("predict", trained, *(tmp_path / f"{index}.png" for index in range(20)), "--json").json
    for document in documents:
        classes = [entry["class"] for entry in document]
        matrix = np.zeros((10, 10), int)
        np.add.at(matrix, (part.labels, classes), 1)
        assert np.array_equal(matrix, evaluation.confusion_matrix)
        assert [entry["probabilities"] for entry in document] == [e["probabilities"] for e in documents[0]]
    assert [entry["class"] for entry in pngs] == [entry["class"] for entry in documents[0][:20]]
    assert [entry["probability"] for entry in pngs] == pytest.approx(
        [entry["probability"] for entry in documents[0][:20]], rel=1e-5
    )


def test_photos_of_digits_are_told(trained: Path, digits: Split, cnncli: Cnncli, tmp_path: Path) -> None:
    """At least 95 % of them, where the network tells 97 % or so of the digits themselves."""
    n, rng = 300, np.random.default_rng(11)
    chosen = rng.choice(len(digits), n, replace=False)
    names = []
    for index in chosen:
        names.append(tmp_path / f"{index}.pgm")
        photo = photo_of(digits.images[index, 0], rng)
        names[-1].write_bytes(b"P5 %d %d 255\n" % photo.shape[::-1] + photo.tobytes())
    found = [entry["class"] for entry in cnncli("predict", trained, *names, "--json").json]
    assert np.mean(np.array(found) == digits.labels[chosen]) >= 0.95


def test_the_document(trained: Path, cnncli: Cnncli, tmp_path: Path) -> None:
    Image.fromarray(sheet_with_a_one()).convert("RGB").save(tmp_path / "one.jpg")
    np.save(tmp_path / "two.npy", np.stack([sheet_with_a_one(), 255 - sheet_with_a_one()]))
    result = cnncli("predict", trained, tmp_path / "one.jpg", f"{tmp_path / 'two.npy'}:1", "--json")
    assert (result.code, result.err) == (0, "")
    assert [(entry["file"], entry["index"], entry["class"]) for entry in result.json] == [
        (str(tmp_path / "one.jpg"), 0, 1),
        (str(tmp_path / "two.npy"), 1, 1),
    ]
    for entry in result.json:
        assert entry.keys() == {"file", "index", "class", "probability", "probabilities"}
        assert len(entry["probabilities"]) == 10
        assert sum(entry["probabilities"]) == pytest.approx(1)
        assert entry["probability"] == max(entry["probabilities"]) == entry["probabilities"][1]


def test_what_the_network_saw(trained: Path, cnncli: Cnncli, tmp_path: Path) -> None:
    Image.fromarray(sheet_with_a_one()).save(tmp_path / "one.png")
    lines = cnncli("predict", trained, tmp_path / "one.png", "--show").out.splitlines()
    assert lines[0] == f"{tmp_path / 'one.png'}: class 1  1 x 28 x 28"
    drawn = [(number, line) for number, line in enumerate(lines[1:29]) if line]
    # 75 x 9 pixels become 20 x 2, two letters to a pixel
    assert [number for number, _ in drawn] == list(range(4, 24))
    assert {line.strip() for _, line in drawn} == {"@@@@"}
    assert lines[29] == "" and lines[30].startswith("image ")
    refused = cnncli("predict", trained, tmp_path / "one.png", "--show", "--json")
    assert (refused.code, refused.out) == (2, "") and "--show" in refused.err


def test_one_bad_picture_does_not_hide_the_others(
    trained: Path, cnncli: Cnncli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Image.fromarray(sheet_with_a_one()).save("one.png")
    np.save("some.npy", np.stack([sheet_with_a_one(), np.full((120, 90), 225, np.uint8)]))
    Path("text.png").write_text("no picture")
    names = ("text.png", "one.png", "none.jpg", "some.npy")
    result = cnncli("predict", trained, *names)
    assert result.code == 1
    assert [row.split()[0] for row in result.out.splitlines()[1:]] == ["one.png", "some.npy:0"]
    first, second, third = result.err.splitlines()
    assert first.startswith("error: text.png: expected a picture (")
    assert second == "error: none.jpg: cannot be read: No such file or directory"
    assert third.startswith("error: some.npy:1: nothing is drawn on it")
    document = cnncli("predict", trained, *names, "--json")
    assert (document.code, [entry["file"] for entry in document.json]) == (1, ["one.png", "some.npy"])
    for arguments in ([], ["--json"]):
        alone = cnncli("predict", trained, "text.png", *arguments)
        assert (alone.code, alone.out) == (1, "")


def test_without_pillow(
    trained: Path, cnncli: Cnncli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.fromarray(sheet_with_a_one()).save(tmp_path / "one.png")
    np.save(tmp_path / "one.npy", sheet_with_a_one())
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    result = cnncli("predict", trained, tmp_path / "one.png", tmp_path / "one.npy", "--json")
    assert (result.code, [entry["class"] for entry in result.json]) == (1, [1])
    assert 'need Pillow: pip install "cnncli[images]"' in result.err


def test_a_network_for_other_images_takes_them_as_they_are(
    cnncli: Cnncli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_workspace(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert cnncli("train", "--config", "tiny.yaml", "--quiet").code == 0
    test = load_dataset("tiny.npz").test
    np.save("digits.npy", test.images)
    checkpoint = load_checkpoint(Path("runs/tiny/best.npz"))
    expected = predict(checkpoint.build_network(), test.images, checkpoint.normalization)
    document = cnncli("predict", "runs/tiny", "digits.npy", "--limit", "100", "--json").json
    assert [entry["probabilities"] for entry in document] == expected.tolist()
    assert np.mean(expected.argmax(axis=1) == test.labels) == pytest.approx(
        cnncli("eval", "runs/tiny", "--json").json["accuracy"]
    )
    np.save("large.npy", np.zeros((9, 8)))
    result = cnncli("predict", "runs/tiny", "large.npy")
    assert (result.code, result.out) == (1, "")
    assert "expected a picture of shape (C, H, W) = (1, 8, 8)" in result.err and "(1, 9, 8)" in result.err


def test_weights_that_are_of_no_use(cnncli: Cnncli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_workspace(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert cnncli("train", "--config", "tiny.yaml", "--quiet").code == 0
    checkpoint = load_checkpoint(Path("runs/tiny/best.npz"))
    for array in checkpoint.parameters.values():
        array[...] = 1e38
    checkpoint.save(Path("large.npz"))
    np.save("a.npy", np.full((8, 8), 100, np.uint8))
    for arguments in ([], ["--json"]):
        result = cnncli("predict", "large.npz", "a.npy", *arguments)
        assert (result.code, result.out) == (1, "")
        assert "scores are not finite" in result.err


def test_on_a_terminal_of_ascii(trained: Path, tmp_path: Path) -> None:
    Image.fromarray(sheet_with_a_one()).save(tmp_path / "eins-é.png")
    done = run_program(
        "predict", trained, "eins-é.png", "--show", cwd=tmp_path, variables={"PYTHONIOENCODING": "ascii"}
    )
    assert done.returncode == 0
    assert done.stdout.isascii() and "@@@@" in done.stdout and "eins-\\xe9.png" in done.stdout
