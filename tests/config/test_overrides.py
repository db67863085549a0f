"""``--set``: every form of key path and value, and the faults of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from cnncli.config import Choice, load_config
from tests.config.texts import NETWORK, TOP_LEVEL, TRAINING, faults, read

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


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.epochs=abc", "training.epochs: expected an integer of at least 1, got abc"),
        ("training.epochs=", "training.epochs: expected an integer of at least 1, got nothing"),
        (
            "training.epochs=0x10",
            "training.epochs: expected an integer of at least 1, got 0x10; "
            "write a plain decimal number, such as 10 or 0.001",
        ),
        ("training.epochs", "expected KEY=VALUE, such as training.epochs=3, got no ="),
        ("=3", "expected KEY=VALUE, such as training.epochs=3, got no key"),
        ("", "expected KEY=VALUE, such as training.epochs=3, got no ="),
        ("training..epochs=3", "expected KEY=VALUE, such as training.epochs=3, got the key training..epochs"),
        ("network[1=relu", "expected KEY=VALUE, such as training.epochs=3, got the key network[1"),
        ("network[-1]=relu", "expected KEY=VALUE, such as training.epochs=3, got the key network[-1]"),
        ("network[2]=relu", "network: expected an index from 0 to 1, got 2"),
        ("network.-1=relu", "network: expected an index from 0 to 1, got -1"),
        (f"network.{'9' * 5000}=relu", f"network: expected an index from 0 to 1, got {'9' * 37}..."),
        ("network.dense.out_features=3", "network: expected an index from 0 to 1, got dense"),
        (
            "network[1].dense.out_features.x=3",
            "network[1].dense.out_features: expected a mapping here to put a key into, but it is 10",
        ),
        (
            "training.epochs=[1",
            "training.epochs: not valid YAML: expected ',' or ']', but got '<stream end>' "
            "while parsing a flow sequence; "
            "check that every bracket is closed, and that commas stand between the entries",
        ),
        ("training.epochs=\t3", "training.epochs: a tab, where YAML allows only spaces; indent with spaces"),
        ("seed=!!int 3", "seed: the tag !!int is not allowed; write a plain value"),
        ("training={epochs: 1, epochs: 2}", "training.epochs: the key is written twice; keep one of the two"),
        (
            "epochs=3",
            f"epochs: unknown key epochs, expected one of {TOP_LEVEL}; it belongs to training",
        ),
        (
            "optimizer.learning_rate=0.1",
            "optimizer.learning_rate: unknown key learning_rate beside adam; it belongs to optimizer.adam",
        ),
        (
            "optimizer.Sgd.momentum=0.1",
            "optimizer.Sgd: unknown optimizer Sgd, expected one of sgd, adam, adamw; did you mean sgd?",
        ),
    ],
)
def test_fault(override: str, message: str) -> None:
    shown = override if len(override) <= 120 else override[:117] + "..."
    text = NETWORK + "optimizer: adam\n"
    assert faults(text, [override]) == [f"--set {shown}: {message}".replace("\t3:", "\\t3:")]


def test_faults_of_file_and_overrides_come_together() -> None:
    overrides = ["training.epochs=x", "training.epoch=1", "seed=-1", "data.validation_size"]
    assert faults(NETWORK + "training: {batch_size: 0}\n", overrides) == [
        "c.yaml:2: training.batch_size: expected an integer of at least 1, got 0",
        "--set training.epochs=x: training.epochs: expected an integer of at least 1, got x",
        f"--set training.epoch=1: training.epoch: unknown key epoch, expected one of {TRAINING}; "
        "did you mean epochs?",
        "--set seed=-1: seed: expected an integer of at least 0, or null, got -1",
        "--set data.validation_size: expected KEY=VALUE, such as training.epochs=3, got no =",
    ]


def test_overrides_do_not_hide_that_the_file_is_no_mapping() -> None:
    assert faults("- a\n", ["seed=1"]) == [
        "c.yaml:1: a configuration must be a mapping of keys to values, got [a]"
    ]


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
