"""``--set``: every form of key path and value, and the faults of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from cnncli.config import Choice, load_config
from tests.config.texts import NETWORK, read

BASE = """
network:
  - conv2d: {out_channels: 4, kernel_size: 3}
  - relu
  - flatten
  - dense: {out_features: 10}
optimizer:
  adam: {learning_rate: 0.01, epsilon: 1e-6}
training: {epochs: 2}
"""


@pytest.mark.parametrize(
    ("override", "written"),
    [
        ("training.epochs=3", "training: {epochs: 3}"),
        ("training.epochs = 3", "training: {epochs: 3}"),
        ("training={epochs: 3, batch_size: 7}", "training: {epochs: 3, batch_size: 7}"),
        ("training=", "training:"),
        ("training.early_stopping.patience=4", "training: {early_stopping: {patience: 4}}"),
        ("seed=7", "seed: 7"),
        ("loss.label_smoothing=1e-1", "loss: {label_smoothing: 0.1}"),
        ("optimizer=sgd", "optimizer: sgd"),
        ("optimizer={sgd: {momentum: 0.9}}", "optimizer: {sgd: {momentum: 0.9}}"),
        ("optimizer.sgd.momentum=0.9", "optimizer: {sgd: {momentum: 0.9}}"),
        ("optimizer.sgd=", "optimizer: sgd"),
        ("optimizer.adam.betas=[0.7, 0.9]", "optimizer: {adam: {betas: [0.7, 0.9]}}"),
        ("schedule=cosine", "schedule: cosine"),
        ("schedule.step.every=2", "schedule: {step: {every: 2}}"),
        ("network=[flatten, dense: {out_features: 12}]", "network: [flatten, dense: {out_features: 12}]"),
        ("network[1].dense.out_features=12", "network: [flatten, dense: {out_features: 12}]"),
        ("network.1.dense.out_features=12", "network: [flatten, dense: {out_features: 12}]"),
        ("network[1]=dense: {out_features: 12}", "network: [flatten, dense: {out_features: 12}]"),
        ("network[0]=relu", "network: [relu, dense: {out_features: 10}]"),
        (
            "network[0].dropout.drop_probability=0.1",
            "network: [dropout: {drop_probability: 0.1}, dense: {out_features: 10}]",
        ),
        ("network.0.dropout=", "network: [dropout, dense: {out_features: 10}]"),
    ],
)
def test_override_reads_as_if_written(override: str, written: str) -> None:
    expected = read(written if written.startswith("network") else NETWORK + written)
    assert read(NETWORK, [override]) == expected


def test_other_values_of_the_file_stay() -> None:
    config = read(BASE, ["optimizer.adam.learning_rate=0.5", "network[0].conv2d.kernel_size=[5, 3]"])
    assert config.optimizer.options["learning_rate"] == 0.5
    assert config.optimizer.options["epsilon"] == 1e-6
    assert config.network[0].options["out_channels"] == 4
    assert config.network[0].options["kernel_size"] == (5, 3)
    assert config.training.epochs == 2


def test_naming_another_optimizer_replaces_the_section() -> None:
    config = read(BASE, ["optimizer.adamw.weight_decay=0.1", "optimizer.adamw.epsilon=1e-4"])
    assert config.optimizer == Choice(
        "adamw", {"learning_rate": 0.001, "betas": (0.9, 0.999), "epsilon": 1e-4, "weight_decay": 0.1}
    )


def test_naming_the_same_optimizer_alone_resets_it() -> None:
    assert read(BASE, ["optimizer=adam"]).optimizer == read(NETWORK).optimizer


def test_item_of_a_list_value() -> None:
    text = NETWORK + "optimizer: {adam: {betas: [0.9, 0.99]}}\n"
    assert read(text, ["optimizer.adam.betas[0]=0.5"]).optimizer.options["betas"] == (0.5, 0.99)


def test_later_overrides_win() -> None:
    assert read(BASE, ["training.epochs=3", "training.epochs=4"]).training.epochs == 4
    assert read(BASE, ["training.epochs=3", "training={batch_size: 8}"]).training.epochs == 1


def test_override_mends_a_fault_of_the_file() -> None:
    assert read(NETWORK + "training: {epochs: 0}\n", ["training.epochs=3"]).training.epochs == 3


def test_empty_file_with_overrides() -> None:
    assert read("", ["network=[flatten, dense: {out_features: 10}]"]) == read(NETWORK)


def test_null_seed_is_drawn() -> None:
    assert len({read(NETWORK, ["seed=null"]).seed for _ in range(5)}) > 1


def test_paths_start_from_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "here").mkdir()
    path = tmp_path / "configs" / "c.yaml"
    path.write_text(NETWORK + "data: {directory: ../mnist}\n")
    monkeypatch.chdir(tmp_path / "here")
    here = tmp_path.resolve() / "here"
    assert load_config(path, ["data.directory=mnist"]).data.directory == here / "mnist"
    assert load_config(path, ["data={directory: mnist}"]).data.directory == here / "mnist"
    assert load_config(path, ["data.dataset=./digits.npz"]).data.dataset == str(here / "digits.npz")
    assert load_config(path, ["data.directory="]).data.directory is None
    # another key of the section leaves the file's path where it was
    assert load_config(path, ["data.validation_size=1"]).data.directory == tmp_path.resolve() / "mnist"
